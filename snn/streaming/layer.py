"""A delayed layer one bin at a time: the cost of a bin is that of its spikes, or of the neurons still awake."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from snn.delay import FixedDelayLinear
from snn.kernels.native.compile import numba_is_missing

MODES = ("auto", "scatter", "gather")

REVIEW = 32
"""Bins between two looks at whether the other way would be cheaper."""

GATHER_COST = 0.7
"""Cost of a connection that an awake neuron takes in, in connections that a spike sends out."""

LISTED_COST = 1.25
"""Cost of a connection to an output in a list of those awake, in connections of a spike that go to all."""

PAYS_AFTER = 1.5
"""Longest delays that a neuron must sleep for its sums to be given up: making them anew takes about one of them."""

ALL = np.zeros((0, 0), np.bool_)

BLOCK = 256
"""Outputs whose sums of all future bins are kept together: with delays up to 16 they fill half of the nearest cache."""

MARGIN = 1.3
"""How many times cheaper the other way must be: going over costs some bins' work."""


@dataclass
class LayerState:
    """State of a `StreamingLayer` between bins. A step writes into it.

    Attributes
    ----------
    past : ndarray (S, B, I)
        The last inputs, round a ring of S slots.
    slot : int
        Of the current bin in `past`.
    ring : ndarray (B, blocks, R, width)
        What inputs so far send to the current bin and the next ones, see `loops.scatter`; only in the mode "scatter".
    row : int
        Of the current bin in `ring`.
    mode : str
        "scatter" or "gather".
    activity, awake : float
        Running means: share of non-zero inputs, and of awake neurons.
    stale : bool ndarray (B, O)
        Outputs whose sums in `ring` were given up.
    age : int
        Bins so far.
    """

    past: np.ndarray
    slot: int
    ring: np.ndarray
    row: int
    mode: str
    stale: np.ndarray
    activity: float = 0.0
    awake: float = 1.0
    age: int = 0


class StreamingLayer:
    """A `FixedDelayLinear` that takes one bin at a time.

    Each bin runs one of two ways. "scatter": every non-zero input adds its weights to the bins that they reach, in a
    ring of future sums. "gather": every awake neuron sums its delayed inputs, from a ring of past ones. In the mode
    "auto" the cheaper one is taken, by the measured share of non-zero inputs and of awake neurons.

    Parameters
    ----------
    layer : FixedDelayLinear
        Its weights are copied.
    mode : str
        "auto", "scatter" or "gather".

    Raises
    ------
    ValueError
        An unknown mode, or a layer that is not on the CPU in float32 or float64.
    """

    def __init__(self, layer: FixedDelayLinear, mode: str = "auto") -> None:
        if mode not in MODES:
            raise ValueError(f"StreamingLayer: mode must be one of {', '.join(MODES)}; found {mode!r}")
        weight = layer.weight.detach()
        if weight.device.type != "cpu" or weight.dtype not in (torch.float32, torch.float64):
            raise ValueError(
                f"StreamingLayer: it runs on the CPU in float32 or float64; found {weight.dtype} on {weight.device}"
            )
        if missing := numba_is_missing():
            raise RuntimeError(f"StreamingLayer: {missing}")
        self.mode = mode
        self.in_features, self.out_features = layer.in_features, layer.out_features
        self.max_delay, self.min_delay = layer.max_delay, layer.min_delay
        # Both ways round, so that either way reads memory in order.
        self.weight, self.delay = _array(weight), _array(layer.delay)
        self.weight_in, self.delay_in = _array(weight.t()), _array(layer.delay.t())
        bias = weight.new_zeros(self.out_features) if layer.bias is None else layer.bias.detach()
        self.bias = _array(bias)
        self.slots = 1 << self.max_delay.bit_length()  # the first power of two above the longest delay

    @property
    def dtype(self) -> torch.dtype:
        """Of inputs and sums."""
        return torch.float32 if self.weight.dtype == np.float32 else torch.float64

    def start(self, batch: int, history: Tensor | None = None) -> LayerState:
        """The state before the first bin, after `history` (max_delay, B, I), oldest first, or silence."""
        width = min(BLOCK, 1 << (self.out_features - 1).bit_length())
        blocks = -(-self.out_features // width)
        past = np.zeros((self.slots, batch, self.in_features), self.weight.dtype)
        ring = np.zeros((batch, blocks, 2 * (self.max_delay + 1), width), self.weight.dtype)
        stale = np.zeros((batch, self.out_features), np.bool_)
        state = LayerState(past, 0, ring, 0, "gather" if self.mode == "gather" else "scatter", stale)
        if history is not None and self.max_delay:
            past[self.slots - self.max_delay :] = history.detach().numpy()
            self._refill(state)
        return state

    def history(self, state: LayerState) -> Tensor:
        """The last inputs (max_delay, B, I), oldest first: the state of a `FixedDelayLinear`."""
        order = (np.arange(-self.max_delay, 0) + state.slot) % self.slots
        return torch.from_numpy(state.past[order])

    def step(self, x: Tensor, state: LayerState, awake: Tensor | None = None, sleep: float = 0) -> Tensor:
        """One bin.

        Parameters
        ----------
        x : Tensor (B, I)
        state : LayerState
            Written to.
        awake : bool Tensor (B, O), optional
            Neurons whose sum is wanted; all when absent. The sums of the others mean nothing.
        sleep : float
            Bins for which none of the others will be wanted, with this one; math.inf for ever. "scatter" leaves them
            out where that pays: what would have reached them later must be made anew when they wake.

        Returns
        -------
        y : Tensor (B, O)
        """
        wanted = None if awake is None else awake.numpy()
        return torch.from_numpy(self.step_array(np.ascontiguousarray(x.detach().numpy()), state, wanted, sleep))

    def step_array(
        self, x: np.ndarray, state: LayerState, awake: np.ndarray | None = None, sleep: float = 0
    ) -> np.ndarray:
        """`step` on contiguous NumPy arrays: at this size a call into torch costs as much as a hundred spikes."""
        from snn.streaming import loops

        y = np.zeros((x.shape[0], self.out_features), x.dtype)
        wanted = ALL if awake is None else awake
        if state.mode == "scatter":
            before = (state.slot - 1) % self.slots
            loops.rebuild(state.ring, state.row, self.weight_in, self.delay_in, state.past, before, state.stale, wanted)
            found, wants, state.row = loops.scatter(
                state.ring, state.row, self.weight_in, self.delay_in, x, self.bias, state.past[state.slot], y, wanted,
                state.stale, sleep > PAYS_AFTER * self.max_delay,
            )  # fmt: skip
        else:
            state.past[state.slot] = x
            wants = loops.gather(y, self.weight, self.delay, self.bias, state.past, state.slot, wanted)
            found = np.count_nonzero(x)
        state.slot = (state.slot + 1) % self.slots
        self._measure(state, found / x.size, wants / y.size)
        return y

    def carried(self, state: LayerState) -> np.ndarray:
        """The input (B, I) of `min_delay` bins before the bin that was stepped last."""
        return state.past[(state.slot - 1 - self.min_delay) % self.slots]

    def _measure(self, state: LayerState, activity: float, awake: float) -> None:
        state.age += 1
        share = max(1 / state.age, 1 / REVIEW)
        state.activity += share * (activity - state.activity)
        state.awake += share * (awake - state.awake)
        if self.mode != "auto" or state.age % REVIEW:
            return
        costs = {
            "scatter": state.activity * min(1.0, LISTED_COST * state.awake),
            "gather": GATHER_COST * state.awake,
        }
        other = "gather" if state.mode == "scatter" else "scatter"
        if costs[other] * MARGIN < costs[state.mode]:
            state.mode = other
            if other == "scatter":
                self._refill(state)

    def _refill(self, state: LayerState) -> None:
        from snn.streaming import loops

        state.stale.fill(False)
        state.ring.fill(0)
        state.row = 0
        before = (state.slot - 1) % self.slots
        loops.refill(state.ring, self.weight_in, self.delay_in, state.past, before)


def _array(tensor: Tensor) -> np.ndarray:
    """A copy, contiguous; NumPy asks the system for large pages, which random rows of a large matrix need."""
    return np.array(tensor.numpy(), order="C")
