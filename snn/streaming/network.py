"""A residual spiking network one bin at a time, as a device would run it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from snn.fold import fold_batch_norm
from snn.residual import BlockState, CurrentShortcut, MembraneShortcut, ResidualSNN, ResidualState
from snn.streaming.layer import LayerState, StreamingLayer
from snn.streaming.neurons import AnySteps, own, steps_of


@dataclass
class StreamState:
    """State of a `StreamingSNN` between bins. A step writes into it.

    Attributes
    ----------
    layers : list of LayerState
        Of the first layer and of each block's.
    neurons : list
        Of each block's neurons and of the last ones, see `snn.streaming.neurons`.
    readout
        Of the readout.
    """

    layers: list[LayerState]
    neurons: list[Any]
    readout: Any


class StreamingSNN:
    """Runs a `ResidualSNN` one bin at a time, event by event, with explicit state.

    The network is copied in evaluation mode with its batch norms folded. What comes out equals the whole-sequence
    result: bit for bit where sums are exact (dyadic weights without a norm), and to rounding elsewhere.

    Parameters
    ----------
    net : ResidualSNN
        On the CPU, in float32 or float64. Any module of neurons works; `LIF` and `DormantLIF` with one beta and
        threshold are fastest. A neuron with a method `awake(state) -> bool Tensor (B, N)`, such as `DormantLIF`, tells
        which of its neurons may fire in the next bin: the sums that only dormant ones would read are skipped.
    mode : str
        How the delayed layers run: "auto", "scatter" or "gather", see `StreamingLayer`.
    skip : bool
        Skip the sums of dormant neurons; without it all are made, with the same result.

    Raises
    ------
    ValueError
        An unknown mode, another device or dtype, or a norm that cannot be folded.

    >>> net = ResidualSNN(4, 8, 2, max_delay=3, readout="linear", out_features=5).eval()
    >>> stream, x = StreamingSNN(net), torch.randn(6, 1, 4)
    >>> state = stream.start(batch=1)
    >>> out = torch.stack([stream.step(bin, state) for bin in x])
    >>> torch.allclose(out, net(x)[0], atol=1e-5)
    True
    """

    def __init__(self, net: ResidualSNN, mode: str = "auto", skip: bool = True) -> None:
        if not isinstance(net, ResidualSNN):
            raise TypeError(f"StreamingSNN: net must be a ResidualSNN; found {type(net).__name__}")
        self.skip = skip
        self.net: Any = fold_batch_norm(net).requires_grad_(False)
        self.layers = [StreamingLayer(layer.linear, mode) for layer in (net_layers(self.net))]
        self.neurons: list[AnySteps] = [steps_of(block.neuron) for block in self.net.blocks]
        self.neurons.append(steps_of(self.net.neuron))
        # The membrane shortcut hands a layer's output on to all neurons above, the current shortcut to the next alone.
        shortcuts = [block.shortcut for block in self.net.blocks]
        self._combine = [_combination(shortcut) for shortcut in shortcuts]
        self._hands_on = [not isinstance(shortcut, CurrentShortcut) for shortcut in shortcuts]

    def start(self, batch: int = 1, state: ResidualState | None = None) -> StreamState:
        """The state before the first bin: rest, or where a `ResidualSNN` left off.

        Raises
        ------
        ValueError
            A batch below 1.
        """
        if batch < 1:
            raise ValueError(f"StreamingSNN: batch must be at least 1; found {batch}")
        if state is None:
            layers = [layer.start(batch) for layer in self.layers]
            dtype = self.layers[0].dtype
            neurons = [neuron.rest(batch, self.net.hidden, dtype) for neuron in self.neurons]
            return StreamState(layers, neurons, None)
        histories = [state.first, *(block.delayed for block in state.blocks)]
        neurons = [*(block.neuron for block in state.blocks), state.last]
        layers = [layer.start(h.shape[1], h) for layer, h in zip(self.layers, histories, strict=True)]
        taken = [steps.take(neuron) for steps, neuron in zip(self.neurons, neurons, strict=True)]
        return StreamState(layers, taken, own(state.readout))

    def residual_state(self, state: StreamState) -> ResidualState:
        """The same state as a `ResidualSNN` takes it, to go on with whole sequences."""
        first, *rest = (layer.history(s) for layer, s in zip(self.layers, state.layers, strict=True))
        *neurons, last = (steps.hand(neuron) for steps, neuron in zip(self.neurons, state.neurons, strict=True))
        blocks = tuple(BlockState(neuron, history) for neuron, history in zip(neurons, rest, strict=True))
        return ResidualState(first, blocks, last, own(state.readout))

    @torch.no_grad()
    def step(self, x: Tensor, state: StreamState) -> Tensor:
        """One bin: `x` (B, in_features) to spikes (B, hidden), or to the readout (B, out_features).

        Parameters
        ----------
        x : Tensor (B, in_features)
        state : StreamState
            From `start`; written to.

        Raises
        ------
        ValueError
            A shape that does not fit the network and the state. TypeError: another dtype.
        """
        first = self.layers[0]
        shape = (state.layers[0].past.shape[1], first.in_features)
        if x.shape != shape:
            raise ValueError(f"StreamingSNN: x must be (B, in_features) = {shape}; found {tuple(x.shape)}")
        if x.dtype != first.dtype or x.device.type != "cpu":
            raise TypeError(f"StreamingSNN: x must be {first.dtype} on the CPU; found {x.dtype} on {x.device}")
        wanted, sleep = self._wanted(state), self._sleep(state)
        beneath = np.ascontiguousarray(x.numpy())
        stream = first.step_array(beneath, state.layers[0], wanted[0], sleep)
        for k, combine in enumerate(self._combine):
            spikes, state.neurons[k] = self.neurons[k].step(stream, state.neurons[k], beneath)
            layer = self.layers[k + 1]
            update = layer.step_array(spikes, state.layers[k + 1], wanted[k + 1], sleep)
            stream, beneath = combine(stream, update, layer.carried(state.layers[k + 1])), spikes
        spikes, state.neurons[-1] = self.neurons[-1].step(stream, state.neurons[-1], beneath)
        out = torch.from_numpy(spikes)
        if self.net.readout is not None:
            out, state.readout = self.net.readout(out.unsqueeze(0), state.readout)
            out = out[0]
        return out

    def activity(self, state: StreamState) -> list[dict[str, Any]]:
        """How each delayed layer runs: its way, and running means of non-zero inputs and of awake neurons."""
        return [{"mode": s.mode, "activity": s.activity, "awake": s.awake} for s in state.layers]

    def _wanted(self, state: StreamState) -> list[np.ndarray | None]:
        """For each delayed layer the neurons whose sum somebody reads; None for all."""
        wanted: list[np.ndarray | None] = [None] * len(self.layers)
        if not self.skip:
            return wanted
        above: np.ndarray | None = None
        for k in range(len(self.neurons) - 1, -1, -1):
            mine = self.neurons[k].awake(state.neurons[k])
            hands_on = k < len(self._hands_on) and self._hands_on[k]
            if mine is not None and hands_on:
                mine = None if above is None else mine | above
            wanted[k] = above = mine
        return wanted

    def _sleep(self, state: StreamState) -> float:
        """Bins for which no dormant neuron wakes, with the next one."""
        return min(neuron.sleep(s) for neuron, s in zip(self.neurons, state.neurons, strict=True))


def net_layers(net: ResidualSNN) -> list[Any]:
    """The delayed layers of a network, first to last."""
    return [net.first, *(block.layer for block in net.blocks)]


def _combination(shortcut: nn.Module) -> Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]:
    """`shortcut.combine` on arrays."""
    if type(shortcut) is MembraneShortcut:
        return lambda stream, update, carried: stream + update
    if type(shortcut) is CurrentShortcut:
        gain = shortcut.gain.detach().numpy()
        return lambda stream, update, carried: update + gain * carried
    return lambda *arrays: shortcut.combine(*map(torch.from_numpy, arrays)).numpy()
