"""The leaky integrate-and-fire neuron as a plain loop over time: any device, any surrogate, differentiable twice."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from snn.dispatch import Backend


def _to_zero(membrane: Tensor, fired: Tensor, threshold: float | Tensor) -> Tensor:
    return membrane.masked_fill(fired, 0.0)


def _by_subtraction(membrane: Tensor, fired: Tensor, threshold: float | Tensor) -> Tensor:
    return membrane - threshold * fired.to(membrane.dtype)


def _none(membrane: Tensor, fired: Tensor, threshold: float | Tensor) -> Tensor:
    return membrane


RESETS: dict[str, Callable[[Tensor, Tensor, float | Tensor], Tensor]] = {
    "zero": _to_zero,
    "subtract": _by_subtraction,
    "none": _none,
}
"""Reset mechanism -> what becomes of the membrane where it fired. `fired` carries no gradient."""


def run(
    current: Tensor,
    beta: float | Tensor,
    threshold: float | Tensor,
    spike_grad: Callable[[Tensor], Tensor],
    reset_mechanism: str,
    state: Tensor,
) -> tuple[Tensor, Tensor]:
    """Step through `current` (T, ...) from the membrane `state` (...); spikes (T, ...) and the last membrane (...)."""
    reset = RESETS[reset_mechanism]
    fixed = threshold.detach() if isinstance(threshold, Tensor) else threshold
    membrane, spikes = state, []
    for step in current.unbind(0):
        membrane = beta * membrane + step
        spikes.append(spike_grad(membrane - threshold).to(current.dtype))
        membrane = reset(membrane, membrane > threshold, fixed)
    return torch.stack(spikes), membrane


def _always(arguments: Mapping[str, Any] | None = None) -> None:
    return None


BACKEND = Backend("reference", 0, "plain torch, one step after another", _always, _always, run)
