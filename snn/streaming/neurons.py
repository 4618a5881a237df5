"""One bin of a layer of neurons, on NumPy arrays: at this size a call into torch costs as much as a hundred spikes.

To make another neuron fast, write a class like `LIFSteps` and list it in `STEPS`; any other module runs as it is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from snn.dormant import DormantLIF
from snn.functional import DormantState
from snn.kernels.lif.operator import RESETS
from snn.neurons import LIF


class AnySteps:
    """Any module of neurons, `(current (T, B, N), state) -> (spikes, state)`.

    Parameters
    ----------
    neuron : Module
    """

    def __init__(self, neuron: nn.Module) -> None:
        self.neuron: Any = neuron

    def rest(self, batch: int, features: int, dtype: torch.dtype) -> Any:
        """The state before the first bin."""
        nothing = torch.zeros(0, batch, features, dtype=dtype)
        drive = (torch.zeros(0, batch, dtype=dtype),) if getattr(self.neuron, "listens", False) else ()
        return self.take(self.neuron(nothing, None, *drive)[1])

    def take(self, state: Any) -> Any:
        """The state of the module as a bin takes it, a copy."""
        return own(state)

    def hand(self, state: Any) -> Any:
        """Inverse of `take`."""
        return own(state)

    def step(self, current: np.ndarray, state: Any, beneath: np.ndarray) -> tuple[np.ndarray, Any]:
        """Spikes (B, N) and the next state; `beneath` (B, I) is what the layer below took in."""
        drive = (torch.from_numpy(share_of_nonzero(beneath)[None]),) if getattr(self.neuron, "listens", False) else ()
        spikes, state = self.neuron(torch.from_numpy(current).unsqueeze(0), state, *drive)
        return spikes[0].contiguous().numpy(), state

    def awake(self, state: Any) -> np.ndarray | None:
        """Neurons that may fire in the next bin, bool (B, N); None for all."""
        ask = getattr(self.neuron, "awake", None)
        return None if ask is None else ask(state).numpy()

    def sleep(self, state: Any) -> float:
        """Bins for which none of its dormant neurons wakes, with the next one; 0 where that is not known."""
        return 0


class LIFSteps(AnySteps):
    """`LIF` with one beta and one threshold."""

    def step(self, current: np.ndarray, state: Tensor, beneath: np.ndarray) -> tuple[np.ndarray, Tensor]:
        """See `AnySteps`; the membrane is stepped in place."""
        from snn.streaming import loops

        spikes, number, lif = np.empty_like(current), current.dtype.type, self.neuron
        reset = RESETS[lif.reset_mechanism]
        loops.membrane(state.numpy(), current, spikes, number(lif.beta), number(lif.threshold), reset)
        return spikes, state

    def awake(self, state: Tensor) -> None:
        """All of them."""
        return

    def sleep(self, state: Tensor) -> float:
        """None is dormant."""
        return math.inf


@dataclass
class DormantArrays:
    """State of `DormantSteps`.

    Attributes
    ----------
    membrane, gate : ndarray (B, N)
        As in `DormantState`; the membrane of a dormant neuron is left where it was.
    alive : bool ndarray (B, N)
        Whether the gate's next test, of the membrane as it is, will be passed.
    clock
        As in `DormantState`, a number or a NumPy array.
    """

    membrane: np.ndarray
    gate: np.ndarray
    alive: np.ndarray
    clock: Any


class DormantSteps(AnySteps):
    """`DormantLIF` with one beta and one threshold: dormant neurons are passed over."""

    def take(self, state: DormantState) -> DormantArrays:
        """See `AnySteps`."""
        membrane, gate, clock = own(state)
        alive = (gate != 0) & (membrane > self.neuron.dormancy_threshold)
        membrane, gate, alive = (t.contiguous().numpy() for t in (membrane, gate, alive))
        return DormantArrays(membrane, gate, alive, None if clock is None else clock.numpy()[()])

    def hand(self, state: DormantArrays) -> DormantState:
        """See `AnySteps`."""
        clock = None if state.clock is None else torch.as_tensor(state.clock)
        return own(DormantState(torch.from_numpy(state.membrane), torch.from_numpy(state.gate), clock))

    def step(self, current: np.ndarray, state: DormantArrays, beneath: np.ndarray) -> tuple[np.ndarray, DormantArrays]:
        """See `AnySteps`; the arrays are stepped in place.

        Raises
        ------
        ValueError
            If a membrane is not a number.
        """
        from snn.streaming import loops

        lif, number = self.neuron, current.dtype.type
        spikes, wakes = np.empty_like(current), self._wakes(state)
        wakes = NOBODY if wakes is None else wakes
        state.clock = lif.waking.tick(state.clock, share_of_nonzero(beneath) if lif.listens else None)
        lost = loops.dormant_membrane(
            state.membrane, state.gate, state.alive, current, spikes, wakes, number(lif.beta), number(lif.threshold),
            number(lif.dormancy_threshold), RESETS[lif.reset_mechanism],
        )  # fmt: skip
        if lost:
            raise ValueError(f"DormantLIF: {lost} of {current.size} membranes are not numbers (NaN)")
        return spikes, state

    def awake(self, state: DormantArrays) -> np.ndarray:
        """See `AnySteps`."""
        wakes = self._wakes(state)
        return state.alive if wakes is None else state.alive | (wakes[:, None] & (state.gate == 0))

    def sleep(self, state: DormantArrays) -> float:
        """See `AnySteps`."""
        return self.neuron.waking.sleep(state.clock)

    def _wakes(self, state: DormantArrays) -> np.ndarray | None:
        """Trials whose dormant neurons wake in the next bin, bool (B,); None for none."""
        opens = self.neuron.waking.opens(state.clock)
        if opens is None or (np.ndim(opens) == 0 and not opens):
            return None
        return np.broadcast_to(opens, len(state.gate))


def share_of_nonzero(beneath: np.ndarray) -> np.ndarray:
    """Share of non-zero inputs (B,) of (B, I)."""
    return (np.count_nonzero(beneath, axis=1) / beneath.shape[1]).astype(beneath.dtype)


NOBODY = np.zeros(0, np.bool_)

STEPS: dict[type[nn.Module], type[AnySteps]] = {LIF: LIFSteps, DormantLIF: DormantSteps}
"""Neuron -> its fast bins. The very class: one derived from it may do something else."""


def steps_of(neuron: nn.Module) -> AnySteps:
    """The fastest bins that the neuron has."""
    uniform = not any(isinstance(getattr(neuron, name, None), Tensor) for name in ("beta", "threshold"))
    return STEPS.get(type(neuron), AnySteps)(neuron) if uniform else AnySteps(neuron)


def own(state: Any) -> Any:
    """A copy of a neuron's state, whatever tuple of tensors it is."""
    if isinstance(state, Tensor):
        return state.detach().clone()
    if isinstance(state, tuple):
        parts = [own(part) for part in state]
        return type(state)(*parts) if hasattr(state, "_fields") else tuple(parts)
    return state
