"""What every spiking neuron asks of its arguments; `who` names the function in the message."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from snn.kernels.lif.reference import RESETS


def check_current(who: str, current: Tensor) -> None:
    """Floating, (T, B, ...)."""
    if not isinstance(current, Tensor) or not current.is_floating_point():
        raise TypeError(f"{who}: current must be a floating-point tensor; found {getattr(current, 'dtype', current)}")
    if current.dim() < 2:
        raise ValueError(f"{who}: current must have the shape (T, B, ...); found {tuple(current.shape)}")


def check_surrogate(who: str, name: str, surrogate: Any) -> Callable[[Tensor], Tensor]:
    """Callable."""
    if not callable(surrogate):
        raise TypeError(f"{who}: {name} must be callable; found {type(surrogate).__name__}")
    return surrogate


def check_reset(who: str, reset_mechanism: str) -> None:
    """A name in `RESETS`."""
    if reset_mechanism not in RESETS:
        raise ValueError(f"{who}: reset_mechanism must be one of {', '.join(RESETS)}; found {reset_mechanism!r}")


def check_beta(who: str, beta: float | Tensor) -> None:
    """In 0..1; a tensor may be anything that training makes of it."""
    if isinstance(beta, float) and not 0.0 <= beta <= 1.0:
        raise ValueError(f"{who}: beta is exp(-dt/tau), in 0..1; found {beta}")


def neuron_state(
    who: str, name: str, state: Tensor | None, current: Tensor, working: torch.dtype, rest: float = 0.0
) -> Tensor:
    """The state (B, ...) in the working precision; `rest` everywhere when absent."""
    if state is None:
        return torch.full(current.shape[1:], rest, dtype=working, device=current.device)
    if state.shape != current.shape[1:]:
        found = f"{tuple(state.shape)} with {tuple(current.shape)}"
        raise ValueError(f"{who}: {name} (B, ...) must fit current (T, B, ...); found {found}")
    if state.device != current.device:
        raise ValueError(f"{who}: {name} is on {state.device}, current on {current.device}")
    return state.to(working)


def neuron_constant(who: str, name: str, value: float | Tensor, current: Tensor) -> float | Tensor:
    """A float, or a tensor of one value for each neuron in the working precision."""
    if not isinstance(value, Tensor):
        if not (isinstance(value, (int, float)) and math.isfinite(value)):
            raise ValueError(f"{who}: {name} must be a finite number; found {value!r}")
        return float(value)
    if value.dim() and value.shape != current.shape[2:]:
        raise ValueError(
            f"{who}: {name} must be one number or one for each neuron {tuple(current.shape[2:])}; "
            f"found {tuple(value.shape)}"
        )
    return value.to(device=current.device, dtype=torch.promote_types(current.dtype, torch.float32))
