"""Networks small enough to count by hand, whose neurons fire and sleep as they are told."""

import torch
from torch import nn

from hardware.energy import ACCOUNTINGS
from snn import ConvSNN, SpikingNeuron, Synapses


class Scripted(SpikingNeuron):
    """Fires and sleeps as it was told, whatever its current is."""

    def __init__(self, spikes, awake=None):
        super().__init__()
        self.spikes = spikes
        if awake is not None:
            self.awake_trace = lambda current, state=None: awake.bool()

    def forward(self, current, state=None):
        return self.spikes, None


class Toy(nn.Module):
    """A layer on analogue input, neurons, and further layers and neurons in a row."""

    def __init__(self, first, pairs, last):
        super().__init__()
        self.first = first
        self.neurons = nn.ModuleList([neuron for neuron, _ in pairs])
        self.layers = nn.ModuleList([layer for _, layer in pairs])
        self.last = last
        self.declared = None

    def forward(self, x, state=None, lengths=None):
        x = _plain(self.first(x))
        for neuron, layer in zip(self.neurons, self.layers, strict=True):
            x = _plain(layer(neuron(x)[0]))
        return self.last(x) if self.last is not None else x

    def synapses(self):
        if self.declared is not None:
            return self.declared
        after = [f"neurons.{i}" for i in range(len(self.layers))] + ([] if self.last is None else ["last"])
        found = [Synapses("first", None, after[0], (after[0],))]
        for i in range(len(self.layers)):
            target = after[i + 1] if i + 1 < len(after) else None
            found.append(Synapses(f"layers.{i}", after[i], target, () if target is None else (target,)))
        return found


def _plain(y):
    return y[0] if isinstance(y, tuple) else y


def spikes(*shape, rate=0.4):
    return (torch.rand(*shape) < rate).float()


def prune(layer, share=0.3):
    with torch.no_grad():
        layer.weight[torch.rand_like(layer.weight) < share] = 0.0
    return layer


def settled(neuron):
    """A small network in evaluation, whose norms have seen enough input that its neurons fire."""
    net = ConvSNN(1, 3, size=(5, 5), widths=(2, 3), strides=(1, 2), neuron=neuron)
    with torch.no_grad():
        for _ in range(30):
            net(torch.randn(16, 1, 5, 5))
    return net.eval()


def listed(tally):
    return [tally[accounting].tolist() for accounting in ACCOUNTINGS]


class Frames(nn.Module):
    """A convolution between scripted neurons."""

    def __init__(self, conv, before, after):
        super().__init__()
        self.conv, self.before, self.after = conv, before, after

    def forward(self, x):
        fired, _ = self.before(x)
        return self.after(self.conv(fired.flatten(0, 1)).unflatten(0, fired.shape[:2]))

    def synapses(self):
        return [Synapses("conv", "before", "after", ("after",))]


class Stream(nn.Module):
    """A layer whose output runs on past the next one: two neurons read it."""

    def __init__(self, awake_first, awake_last):
        super().__init__()
        self.first, self.second = nn.Linear(1, 1), nn.Linear(1, 1)
        self.neuron, self.last = (
            Scripted(torch.ones(3, 1, 1), awake[:, None, None]) for awake in (awake_first, awake_last)
        )

    def forward(self, x):
        stream = self.first(x)
        return self.last(stream + self.second(self.neuron(stream)[0]))

    def synapses(self):
        return [
            Synapses("first", None, "neuron", ("neuron", "last")),
            Synapses("second", "neuron", "last", ("last",)),
        ]
