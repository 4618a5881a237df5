"""A residual spiking network one bin at a time, as a device would run it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from snn.fold import fold_batch_norm
from snn.kernels.lif.operator import RESETS
from snn.neurons import LIF
from snn.residual import BlockState, CurrentShortcut, MembraneShortcut, ResidualSNN, ResidualState
from snn.streaming.layer import LayerState, StreamingLayer


@dataclass
class StreamState:
    """State of a `StreamingSNN` between bins. A step writes into it.

    Attributes
    ----------
    layers : list of LayerState
        Of the first layer and of each block's.
    neurons : list
        Of each block's neurons and of the last ones, as their module has it.
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
        On the CPU, in float32 or float64. Any module of neurons works; `LIF` with one beta and threshold is fastest.
        A neuron with a method `awake(state) -> bool Tensor (B, N)` tells which of its neurons may still fire: the
        sums that only sleeping ones would read are skipped.
    mode : str
        How the delayed layers run: "auto", "scatter" or "gather", see `StreamingLayer`.

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

    def __init__(self, net: ResidualSNN, mode: str = "auto") -> None:
        if not isinstance(net, ResidualSNN):
            raise TypeError(f"StreamingSNN: net must be a ResidualSNN; found {type(net).__name__}")
        self.net: Any = fold_batch_norm(net).requires_grad_(False)
        self.layers = [StreamingLayer(layer.linear, mode) for layer in (net_layers(self.net))]
        self.neurons: list[nn.Module] = [*(block.neuron for block in self.net.blocks), self.net.neuron]
        self._steps = [_neuron_step(neuron) for neuron in self.neurons]
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
            neurons = [self._rest(neuron, batch) for neuron in self.neurons]
            return StreamState(layers, neurons, None)
        histories = [state.first, *(block.delayed for block in state.blocks)]
        neurons = [*(block.neuron for block in state.blocks), state.last]
        layers = [layer.start(h.shape[1], h) for layer, h in zip(self.layers, histories, strict=True)]
        return StreamState(layers, [_own(neuron) for neuron in neurons], _own(state.readout))

    def residual_state(self, state: StreamState) -> ResidualState:
        """The same state as a `ResidualSNN` takes it, to go on with whole sequences."""
        first, *rest = (layer.history(s) for layer, s in zip(self.layers, state.layers, strict=True))
        *neurons, last = (_own(neuron) for neuron in state.neurons)
        blocks = tuple(BlockState(neuron, history) for neuron, history in zip(neurons, rest, strict=True))
        return ResidualState(first, blocks, last, _own(state.readout))

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
        wanted = self._wanted(state)
        stream = first.step_array(np.ascontiguousarray(x.numpy()), state.layers[0], wanted[0])
        for k, combine in enumerate(self._combine):
            spikes, state.neurons[k] = self._steps[k](stream, state.neurons[k])
            layer = self.layers[k + 1]
            update = layer.step_array(spikes, state.layers[k + 1], wanted[k + 1])
            stream = combine(stream, update, layer.carried(state.layers[k + 1]))
        spikes, state.neurons[-1] = self._steps[-1](stream, state.neurons[-1])
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
        above: np.ndarray | None = None
        for k in range(len(self.neurons) - 1, -1, -1):
            ask = getattr(self.neurons[k], "awake", None)
            mine = None if ask is None else ask(state.neurons[k]).numpy()
            hands_on = k < len(self._hands_on) and self._hands_on[k]
            if mine is not None and hands_on:
                mine = None if above is None else mine | above
            wanted[k] = above = mine
        return wanted

    def _rest(self, neuron: nn.Module, batch: int) -> Any:
        return neuron(torch.zeros(0, batch, self.net.hidden, dtype=self.layers[0].dtype))[1]


def net_layers(net: ResidualSNN) -> list[Any]:
    """The delayed layers of a network, first to last."""
    return [net.first, *(block.layer for block in net.blocks)]


def _own(state: Any) -> Any:
    """A copy of a neuron's state, whatever tuple of tensors it is."""
    if isinstance(state, Tensor):
        return state.detach().clone()
    if isinstance(state, tuple):
        parts = [_own(part) for part in state]
        return type(state)(*parts) if hasattr(state, "_fields") else tuple(parts)
    return state


def _combination(shortcut: nn.Module) -> Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]:
    """`shortcut.combine` on arrays."""
    if type(shortcut) is MembraneShortcut:
        return lambda stream, update, carried: stream + update
    if type(shortcut) is CurrentShortcut:
        gain = shortcut.gain.detach().numpy()
        return lambda stream, update, carried: update + gain * carried
    return lambda *arrays: shortcut.combine(*map(torch.from_numpy, arrays)).numpy()


def _neuron_step(neuron: nn.Module) -> Callable[[np.ndarray, Any], tuple[np.ndarray, Any]]:
    """One bin of a module of neurons: `(current (B, N), state) -> (spikes (B, N), state)`."""
    if type(neuron) is not LIF or any(isinstance(getattr(neuron, name), Tensor) for name in ("beta", "threshold")):

        def any_neuron(current: np.ndarray, state: Any) -> tuple[np.ndarray, Any]:
            spikes, state = neuron(torch.from_numpy(current).unsqueeze(0), state)
            return spikes[0].contiguous().numpy(), state

        return any_neuron
    reset = RESETS[neuron.reset_mechanism]

    def lif(current: np.ndarray, state: Tensor) -> tuple[np.ndarray, Tensor]:
        from snn.streaming import loops

        spikes = np.empty_like(current)
        number = current.dtype.type
        loops.membrane(state.numpy(), current, spikes, number(neuron.beta), number(neuron.threshold), reset)
        return spikes, state

    return lif
