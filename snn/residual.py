"""Residual spiking network with one fixed delay for each connection."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from snn.delay import FixedDelayLinear
from snn.dropout import Dropout
from snn.learned_delay import LearnedDelayLinear
from snn.neurons import LIF
from snn.norm import MaskedBatchNorm
from snn.readout import READOUTS
from snn.wiring import Synapses

NORMS: dict[str, Callable[..., nn.Module]] = {"batch": MaskedBatchNorm}
"""Name -> norm built from (features, initial_scale=...); None is a network without one."""


class DelayedLayer(nn.Module):
    """A `FixedDelayLinear` and the norm of its output, which folds into it.

    Parameters
    ----------
    linear : FixedDelayLinear
    norm : Module or None
        Takes (x, lengths).
    """

    def __init__(self, linear: FixedDelayLinear, norm: nn.Module | None) -> None:
        super().__init__()
        self.linear = linear
        self.norm = norm

    def forward(self, x: Tensor, state: Tensor | None = None, lengths: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """From (T, B, I) to (T, B, O); the state is the linear layer's (max_delay, B, I)."""
        y, state = self.linear(x, state)
        return (y if self.norm is None else self.norm(y, lengths)), state


class MembraneShortcut(nn.Module):
    """Carries the real-valued stream past a layer: `u + layer(spikes)`.

    Every product of a weight is with a spike, and the identity trains deep stacks; the order of operations is the one
    of MS-ResNet (Hu et al. 2021, arXiv 2112.08954).
    """

    block_gain = staticmethod(lambda depth: 1 / math.sqrt(2 * depth))

    def __init__(self, features: int, threshold: float) -> None:
        super().__init__()

    def forward(self, stream: Tensor, update: Tensor, spikes: Tensor, history: Tensor | None, delay: int) -> Tensor:
        """The stream (T, B, N) after the layer whose output is `update`."""
        return self.combine(stream, update, spikes)

    def combine(self, stream: Tensor, update: Tensor, carried: Tensor) -> Tensor:
        """The same from the spikes `carried` past the layer already, of any leading shape (..., N)."""
        return stream + update


class CurrentShortcut(nn.Module):
    """Carries the spikes past a layer: `layer(spikes) + gain * spikes[t - delay]`, one to one, as current.

    The stream is not kept, so that each neuron listens to one layer alone: in hardware this is one connection for each
    neuron where the membrane shortcut needs one from every earlier layer. The delay is the layer's smallest one.

    Attributes
    ----------
    gain : Parameter (N,)
        Starts at half the threshold: a carried spike invites a resting neuron to fire and does not make it.
    """

    block_gain = staticmethod(lambda depth: 1.0)

    def __init__(self, features: int, threshold: float) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.full((features,), 0.5 * threshold))

    def forward(self, stream: Tensor, update: Tensor, spikes: Tensor, history: Tensor | None, delay: int) -> Tensor:
        """The current (T, B, N) of the next neurons."""
        return self.combine(stream, update, _delayed(spikes, history, delay))

    def combine(self, stream: Tensor, update: Tensor, carried: Tensor) -> Tensor:
        """The same from the spikes `carried` past the layer already, of any leading shape (..., N)."""
        return update + self.gain * carried


def _delayed(x: Tensor, history: Tensor | None, delay: int) -> Tensor:
    """`x` (T, B, N) shifted by `delay` steps; the frames before it are the last of `history`, or silence."""
    if delay == 0:
        return x
    if history is None:
        history = x.new_zeros(delay, *x.shape[1:])
    return torch.cat([history[history.shape[0] - delay :].to(x.dtype), x])[: x.shape[0]]


SHORTCUTS: dict[str, type[MembraneShortcut] | type[CurrentShortcut]] = {
    "membrane": MembraneShortcut,
    "current": CurrentShortcut,
}
"""Name -> what a block adds to the output of its layer."""


class BlockState(NamedTuple):
    """State between chunks of one block: the neurons', and the last inputs of the layer after them."""

    neuron: Any
    delayed: Tensor


class ResidualState(NamedTuple):
    """State of a `ResidualSNN` between chunks."""

    first: Tensor
    blocks: tuple[BlockState, ...]
    last: Any
    readout: Any


class Block(nn.Module):
    """Neurons, the delayed layer that listens to them, and the shortcut past it.

    Parameters
    ----------
    neuron, layer, shortcut : Module
    dropout : float
        Share of the spikes dropped before the layer, in training.
    """

    def __init__(self, neuron: nn.Module, layer: DelayedLayer, shortcut: nn.Module, dropout: float) -> None:
        super().__init__()
        self.neuron, self.layer, self.shortcut = neuron, layer, shortcut
        self.dropout = Dropout(dropout)

    def forward(
        self, stream: Tensor, beneath: Tensor, state: BlockState | None = None, lengths: Tensor | None = None
    ) -> tuple[Tensor, Tensor, BlockState]:
        """From the stream (T, B, N) that enters to the one that leaves, and the spikes that its layer took in.

        `beneath` (T, B, I) is what the layer before took in.
        """
        neuron_state, history = state if state is not None else (None, None)
        spikes, neuron_state = fire(self.neuron, stream, neuron_state, beneath)
        spikes = self.dropout(spikes)
        update, delayed = self.layer(spikes, history, lengths)
        stream = self.shortcut(stream, update, spikes, history, self.layer.linear.min_delay)
        return stream, spikes, BlockState(neuron_state, delayed)


def fire(neuron: nn.Module, current: Tensor, state: Any, beneath: Tensor) -> tuple[Tensor, Any]:
    """Run neurons; those that listen are told the share of non-zero inputs `beneath` (T, B, I) of the layer below."""
    if getattr(neuron, "listens", False):
        return neuron(current, state, (beneath != 0).to(current.dtype).mean(2))
    return neuron(current, state)


class ResidualSNN(nn.Module):
    r"""Residual spiking network whose connections each have one fixed delay.

    A delayed layer in_features -> hidden, then `depth` blocks hidden -> hidden, then a last layer of neurons. With the
    membrane shortcut a block is `u = u + norm(delayed(spikes(u)))`; with the current shortcut it is
    `u = norm(delayed(spikes(u))) + gain * spikes(u)[t - min_delay]`. There is no recurrence but the membrane.

    Parameters
    ----------
    in_features, hidden, depth : int
        C, H and the number of blocks (0 or more).
    max_delay, min_delay : int
        Range of the delays of every layer, in steps. `max_delay = min_delay = 1` is the control without delays.
    shortcut : str
        "membrane" or "current".
    norm : str or None
        "batch" (`MaskedBatchNorm`) or None; without it the layers have biases.
    beta, threshold, spike_grad, reset_mechanism
        Of the `LIF` neurons.
    dropout : float
        On spikes, wherever they meet weights, in training.
    readout : str or None
        None returns the spikes of the last neurons; "linear" and "leaky" map them to `out_features`.
    out_features : int, optional
        Required by a readout.
    seed : int
        Of the delays; weights come from torch's global generator.
    neuron : callable () -> Module, optional
        Makes each layer of neurons in place of `LIF`; a module with `forward(current, state) -> (spikes, state)`, such
        as a `DormantLIF`. One with a true attribute `listens` is also given the share of non-zero inputs (T, B) of the
        layer beneath.
    delay_cap, delay_sharing
        See `FixedDelayLinear`.
    learn_delays : bool
        Build the network from `LearnedDelayLinear`, a costly ceiling to compare with.

    Raises
    ------
    ValueError
        An unknown name, a size out of range, or a readout without `out_features`.

    Notes
    -----
    At the start the input current of the neurons has a spread that makes about a tenth of them fire in a bin at the
    default `beta` when the inputs are normalised, fewer when the membrane is slower, whatever the threshold.

    >>> net = ResidualSNN(8, 16, 2, max_delay=4, readout="linear", out_features=5)
    >>> out, state = net(torch.randn(10, 3, 8), lengths=torch.tensor([10, 7, 4]))
    >>> out.shape
    torch.Size([10, 3, 5])
    """

    def __init__(
        self,
        in_features: int,
        hidden: int,
        depth: int,
        *,
        max_delay: int,
        min_delay: int = 1,
        shortcut: str = "membrane",
        norm: str | None = "batch",
        beta: float = 0.5,
        threshold: float = 1.0,
        spike_grad: Callable[[Tensor], Tensor] | None = None,
        reset_mechanism: str = "zero",
        dropout: float = 0.0,
        readout: str | None = None,
        out_features: int | None = None,
        seed: int = 0,
        neuron: Callable[[], nn.Module] | None = None,
        delay_cap: int = 63,
        delay_sharing: str = "none",
        learn_delays: bool = False,
    ) -> None:
        super().__init__()
        _known("shortcut", shortcut, SHORTCUTS)
        _known("norm", norm, NORMS, or_none=True)
        _known("readout", readout, READOUTS, or_none=True)
        if depth < 0:
            raise ValueError(f"ResidualSNN: depth must be 0 or more; found {depth}")
        if (readout is None) != (out_features is None):
            raise ValueError("ResidualSNN: readout and out_features go together: give both or neither")
        self.in_features, self.hidden, self.depth = in_features, hidden, depth
        self.max_delay, self.min_delay = max_delay, min_delay
        self.out_features = hidden if out_features is None else out_features

        def make_neuron() -> nn.Module:
            if neuron is not None:
                return neuron()
            return LIF(beta=beta, threshold=threshold, spike_grad=spike_grad, reset_mechanism=reset_mechanism)

        # Made first, though it comes last: its checks speak plainer than the arithmetic below.
        last = make_neuron()

        # A generator hands each layer a seed of its own: seed 0's second layer is not seed 1's first.
        drawn = torch.randint(2**31, (depth + 1,), generator=torch.Generator().manual_seed(seed), device="cpu")
        seeds = drawn.tolist()

        def make_layer(index: int, features: int, spread: float, power: float) -> DelayedLayer:
            kind = LearnedDelayLinear if learn_delays else FixedDelayLinear
            linear = kind(
                features, hidden, max_delay=max_delay, min_delay=min_delay, bias=norm is None, seed=seeds[index],
                delay_cap=delay_cap, sharing=delay_sharing,
            )  # fmt: skip
            if norm is not None:
                return DelayedLayer(linear, NORMS[norm](hidden, initial_scale=spread))
            nn.init.normal_(linear.weight, std=spread / math.sqrt(features * power))
            nn.init.zeros_(linear.bias)
            return DelayedLayer(linear, None)

        # White current of this spread gives a membrane of spread START_SPREAD thresholds.
        fresh = max(1 - beta**2, 0.01)
        spread = START_SPREAD * threshold * math.sqrt(fresh)
        kind = SHORTCUTS[shortcut]
        self.first = make_layer(0, in_features, spread, 1.0)
        self.blocks = nn.ModuleList(
            Block(
                make_neuron(),
                make_layer(index, hidden, spread * kind.block_gain(depth), START_RATE * fresh),
                kind(hidden, threshold),
                dropout,
            )
            for index in range(1, depth + 1)
        )
        self.neuron = last
        self.dropout = Dropout(dropout)
        self.readout = None if readout is None else READOUTS[readout](hidden, self.out_features)

    def forward(
        self, x: Tensor, state: ResidualState | None = None, lengths: Tensor | None = None
    ) -> tuple[Tensor, ResidualState]:
        """Run the network.

        Parameters
        ----------
        x : Tensor (T, B, in_features)
        state : ResidualState, optional
            Returned by the call on the chunk before; rest when absent.
        lengths : Tensor (B,), optional
            Real frames of each trial: padding is left out of the statistics of the norm. It changes nothing else.

        Returns
        -------
        out : Tensor (T, B, hidden) or (T, B, out_features)
            Spikes of the last neurons, or the readout of them.
        state : ResidualState
        """
        first, blocks, last, read = state if state is not None else (None, (None,) * self.depth, None, None)
        if len(blocks) != self.depth:
            raise ValueError(f"ResidualSNN: the state has {len(blocks)} blocks, the network {self.depth}")
        stream, first = self.first(x, first, lengths)
        beneath, passed = x, []
        for block, block_state in zip(self.blocks, blocks, strict=True):
            stream, beneath, block_state = block(stream, beneath, block_state, lengths)
            passed.append(block_state)
        out, last = fire(self.neuron, stream, last, beneath)
        if self.readout is not None:
            out, read = self.readout(self.dropout(out), read)
        return out, ResidualState(first, tuple(passed), last, read)

    def synapses(self) -> list[Synapses]:
        """How the network is wired, see `Synapses`.

        With the membrane shortcut the output of a layer runs on in the stream and is read by all neurons above it; with
        the current shortcut by the next ones alone, which also hear the spikes carried past the layer.
        """
        neurons = [*(f"blocks.{k}.neuron" for k in range(self.depth)), "neuron"]
        streams = bool(self.depth) and isinstance(self.blocks[0].shortcut, MembraneShortcut)

        def readers(k: int) -> tuple[str, ...]:
            return tuple(neurons[k:]) if streams else (neurons[k],)

        found = [Synapses("first.linear", None, neurons[0], readers(0))]
        for k in range(self.depth):
            found.append(Synapses(f"blocks.{k}.layer.linear", neurons[k], neurons[k + 1], readers(k + 1)))
            if not streams:
                found.append(Synapses(f"blocks.{k}.shortcut", neurons[k], neurons[k + 1], readers(k + 1)))
        if self.readout is not None:
            found.append(Synapses("readout.linear", "neuron", None))
        return found


START_SPREAD = 0.8
"""Spread of a membrane without reset at the start, in thresholds."""

START_RATE = 0.105
"""Spikes a step of a neuron whose membrane has that spread, divided by 1 - beta^2; for layers without a norm to measure
it. From a simulation of white current: 0.105, 0.074, 0.054, 0.022 and 0.012 at beta 0, 0.5, 0.7, 0.9 and 0.95."""


def _known(argument: str, name: str | None, table: dict[str, Any], *, or_none: bool = False) -> None:
    if name in table or (or_none and name is None):
        return
    names = ", ".join(repr(key) for key in table) + (" or None" if or_none else "")
    raise ValueError(f"ResidualSNN: {argument} must be one of {names}; found {name!r}")
