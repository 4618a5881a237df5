"""What networks declare about their wiring is what they do: tested by disturbing one layer at a time."""

import pytest
import torch
from torch import nn

from snn import ConvSNN, MSResNet, ResidualSNN, SpikingNeuron, Synapses
from snn.wiring import declared_synapses

NETWORKS = {
    "conv": (lambda: ConvSNN(1, 3, size=(6, 6), widths=(3, 4, 5)), (1, 6, 6)),
    "conv, mean": (lambda: ConvSNN(2, 3, size=(5, 5), widths=(3, 4), strides=(2, 1), readout="mean"), (2, 5, 5)),
    "resnet": (lambda: MSResNet(2, 3, widths=(3, 4, 5), blocks=(2, 1, 2)), (2, 8, 8)),
    "resnet of one stage": (lambda: MSResNet(2, 3, widths=(3,), blocks=(2,)), (2, 6, 6)),
    "resnet, 7x7": (lambda: MSResNet(2, 3, widths=(3, 4), blocks=(1, 2), stem="7x7"), (2, 16, 16)),
}
every = pytest.mark.parametrize("name", NETWORKS)


def ready(name):
    make, shape = NETWORKS[name]
    net = make()
    for module in net.modules():  # statistics that have settled: with those from nowhere the neurons may be silent
        if isinstance(module, nn.BatchNorm2d):
            module.momentum = 0.5
    with torch.no_grad():
        for _ in range(5):
            net(torch.randn(3, 8, *shape))
    return net.eval(), torch.randn(4, 4, *shape)


def run(net, x, layers, neurons, replaced=None, disturbed=None):
    """Outputs of the layers and inputs of the neurons; outputs in `replaced` are put in place of the layers' own."""
    modules = dict(net.named_modules())
    outputs, currents, inputs, handles = {}, {}, {}, []

    def of_layer(name):
        def hook(module, args, output):
            output = output if replaced is None else replaced[name]
            output = output + torch.randn_like(output) if name == disturbed else output
            inputs[name], outputs[name] = args[0], output
            return output

        return hook

    def of_neuron(name):
        def hook(module, args):
            currents[name] = args[0]

        return hook

    for name in layers:
        handles.append(modules[name].register_forward_hook(of_layer(name)))
    for name in neurons:
        handles.append(modules[name].register_forward_pre_hook(of_neuron(name)))
    with torch.no_grad():
        net(x)
    for handle in handles:
        handle.remove()
    return outputs, currents, inputs


@every
def test_readers_are_the_neurons_that_hear_a_layer_before_another_one_does(name):
    net, x = ready(name)
    declared = declared_synapses(net)
    layers = [one.layer for one in declared]
    neurons = [name for name, module in net.named_modules() if isinstance(module, SpikingNeuron)]
    outputs, before, _ = run(net, x, layers, neurons)
    for one in declared:
        _, after, _ = run(net, x, layers, neurons, outputs, one.layer)
        assert {name for name in neurons if not torch.equal(before[name], after[name])} == set(one.readers), one
        assert one.target == (next((name for name in before if name in one.readers), None)), one


@every
def test_sources_are_the_neurons_whose_spikes_a_layer_receives(name):
    net, x = ready(name)
    modules = dict(net.named_modules())
    declared = declared_synapses(net)
    neurons = [name for name, module in net.named_modules() if isinstance(module, SpikingNeuron)]
    layers = [one.layer for one in declared]
    outputs, _, before = run(net, x, layers, neurons)
    for source in neurons:
        # Layers keep their outputs, so that only what hears these neurons directly sees the change.
        handle = modules[source].register_forward_hook(lambda module, args, output: (1 - output[0], output[1]))
        _, _, after = run(net, x, layers, neurons, outputs)
        handle.remove()
        changed = {layer for layer in layers if not torch.equal(before[layer], after[layer])}
        assert changed == {one.layer for one in declared if one.source == source}
    for one in declared:
        if one.source is None:
            assert one is declared[0] and before[one.layer].unique().numel() > 2
        else:
            assert set(before[one.layer].unique().tolist()) == {0.0, 1.0}


@every
def test_every_weight_is_declared_once(name):
    net, _ = ready(name)
    declared = [one.layer for one in declared_synapses(net)]
    weighted = [name for name, module in net.named_modules() if isinstance(module, (nn.Linear, nn.Conv2d))]
    assert sorted(declared) == sorted(weighted)


class Wrong(nn.Module):
    def __init__(self, *declared):
        super().__init__()
        self.conv, self.declared = nn.Conv2d(1, 1, 1), declared

    def synapses(self):
        return self.declared


def test_bad_declarations_are_named():
    with pytest.raises(TypeError, match=r"Linear does not say .* synapses\(\)"):
        declared_synapses(nn.Linear(2, 2))
    with pytest.raises(ValueError, match="'conv' names 'neuron'"):
        declared_synapses(Wrong(Synapses("conv", None, "neuron", ("neuron",))))
    with pytest.raises(ValueError, match="twice: conv"):
        declared_synapses(Wrong(Synapses("conv", None, None), Synapses("conv", None, None)))


@pytest.mark.parametrize(("target", "readers"), [("a", ()), ("a", ("b",)), (None, ("b",))])
def test_a_target_is_one_of_the_readers(target, readers):
    with pytest.raises(ValueError, match="one of the readers"):
        Synapses("conv", None, target, readers)


@pytest.mark.parametrize("shortcut", ["membrane", "current"])
@pytest.mark.parametrize("depth", [0, 1, 3])
def test_a_residual_network_says_who_hears_its_layers(shortcut, depth):
    net = ResidualSNN(4, 6, depth, max_delay=3, shortcut=shortcut, norm=None, readout="linear", out_features=2).eval()
    modules, x = dict(net.named_modules()), 5 * torch.randn(20, 4, 4)
    declared = [one for one in declared_synapses(net) if one.target is not None]
    neurons = [name for name, module in modules.items() if isinstance(module, SpikingNeuron)]
    kept, currents = {}, {}

    def hook(name, disturb):
        def replace(module, args, output):
            currents[name] = args[0]
            value = kept.setdefault(name, output[0])
            return (value + torch.randn_like(value) if disturb else value, *output[1:])

        return replace

    def run_with(disturbed=None):
        held = [name for name in modules if name in neurons or (name.endswith("linear") and "readout" not in name)]
        handles = [modules[name].register_forward_hook(hook(name, name == disturbed)) for name in held]
        with torch.no_grad():
            net(x)
        for handle in handles:
            handle.remove()
        return {name: currents[name] for name in neurons}

    before = run_with()
    for one in declared:
        if one.layer.endswith("shortcut"):
            with torch.no_grad():
                modules[one.layer].gain.add_(1.0)
        after = run_with(None if one.layer.endswith("shortcut") else one.layer)
        changed = {name for name in neurons if not torch.equal(before[name], after[name])}
        assert changed == set(one.readers), one
        before = run_with()
    assert {one.layer for one in declared_synapses(net)} >= {name for name in modules if name.endswith("linear")}
