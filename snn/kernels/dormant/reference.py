"""The Dormant Spiking Neuron as a plain loop over time: any device, any surrogates, differentiable twice."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from snn.dispatch import Backend
from snn.kernels.lif.reference import RESETS


def steps(
    current: Tensor,
    beta: float | Tensor,
    threshold: float | Tensor,
    dormancy_threshold: float,
    spike_grad: Callable[[Tensor], Tensor],
    dormancy_grad: Callable[[Tensor], Tensor] | None,
    reset_mechanism: str,
    membrane: Tensor,
    awake: Tensor,
    wake: Tensor | None,
) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Spikes, membrane after the reset and gate D, each (...), after every step of `current` (T, ...)."""
    fixed = threshold.detach() if isinstance(threshold, Tensor) else threshold
    reset = RESETS[reset_mechanism]
    for t, step in enumerate(current.unbind(0)):
        if wake is not None:
            now = wake[t].view(-1, *[1] * (membrane.dim() - 1))
            # What is not a number stays so, to be found.
            membrane = membrane.masked_fill(now & (awake == 0) & ~membrane.isnan(), 0.0)
            awake = awake.masked_fill(now, 1.0)
        if dormancy_grad is None:
            awake = awake * (membrane > dormancy_threshold).to(membrane.dtype)
        else:
            awake = awake * dormancy_grad(membrane - dormancy_threshold)
        membrane = beta * membrane + step
        spikes = awake * spike_grad(membrane - threshold)
        membrane = reset(membrane, spikes.detach() != 0, fixed)
        yield spikes, membrane, awake


def run(current: Tensor, membrane: Tensor, awake: Tensor, **constants: Any) -> tuple[Tensor, Tensor, Tensor]:
    """Spikes (T, ...), the last membrane and the last gate D (...).

    The constants are those of `steps`. `wake` (T, B) marks the steps at whose beginning dormant neurons wake at rest.
    Without `dormancy_grad` no gradient passes through the gate's test.
    """
    spikes = []
    for fired, last, gate in steps(current, membrane=membrane, awake=awake, **constants):
        spikes.append(fired.to(current.dtype))
        membrane, awake = last, gate
    return torch.stack(spikes), membrane, awake


def _always(arguments: Mapping[str, Any] | None = None) -> None:
    return None


BACKEND = Backend("reference", 0, "plain torch, one step after another", _always, _always, run)
