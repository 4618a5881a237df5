"""Leaky integrate-and-fire over a whole sequence."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from snn import dispatch
from snn.kernels.lif.reference import RESETS
from snn.surrogate import ArcTan

DEFAULT_SURROGATE = ArcTan(alpha=2.0)

RESET_MECHANISMS = tuple(RESETS)
"""Names that `reset_mechanism` takes: `zero`, `subtract`, `none`."""


def lif(
    current: Tensor,
    *,
    beta: float | Tensor,
    threshold: float | Tensor = 1.0,
    spike_grad: Callable[[Tensor], Tensor] | None = None,
    reset_mechanism: str = "zero",
    state: Tensor | None = None,
    backend: str | None = None,
) -> tuple[Tensor, Tensor]:
    r"""Leaky integrate-and-fire neurons, the whole sequence at once.

    Each step `v = beta * v + current[t]`, then `spikes[t] = 1` where `v > threshold` (strictly), then at once and
    detached from the gradient `v = 0` where it spiked ("zero") or `v = v - threshold` ("subtract"). snnTorch by
    default resets one step later (`reset_delay=True`).

    Parameters
    ----------
    current : Tensor (T, B, ...), floating
        Input current for each bin, usually (T, B, N).
    beta : float or Tensor (...)
        Membrane decay of one step, exp(-dt/tau), in 0..1; a tensor holds one for each neuron and may be trained.
    threshold : float or Tensor (...)
        In units of the membrane.
    spike_grad : callable, optional
        Takes `v - threshold`, returns spikes with a surrogate gradient: an object of `snn.surrogate`, or any callable
        such as snnTorch's. Default `ArcTan(alpha=2)`.
    reset_mechanism : str
        "zero", "subtract" or "none".
    state : Tensor (B, ...), optional
        Membrane left by the step before; 0 when absent.
    backend : str, optional
        Forces a backend, see `snn.dispatch`.

    Returns
    -------
    spikes : Tensor (T, B, ...)
        Zeros and ones, in the dtype of `current`.
    state : Tensor (B, ...)
        Membrane after the last step and its reset. Membranes are kept in float32 where `current` is a half type.

    Raises
    ------
    ValueError
        A shape, range or name that does not fit. TypeError: a dtype or object that does not fit.

    Notes
    -----
    Reset to zero with the surrogate's gradient cut at the reset: Zenke and Vogels 2021, Neural Computation 33(4).

    >>> import torch
    >>> spikes, state = lif(torch.full((4, 1, 1), 0.75), beta=0.5)
    >>> spikes.flatten().tolist(), state.item()
    ([0.0, 1.0, 0.0, 1.0], 0.0)
    """
    _check_current(current)
    beta = _neuron_constant("beta", beta, current)
    threshold = _neuron_constant("threshold", threshold, current)
    if isinstance(beta, float) and not 0.0 <= beta <= 1.0:
        raise ValueError(f"lif: beta is exp(-dt/tau), in 0..1; found {beta}")
    if reset_mechanism not in RESETS:
        raise ValueError(f"lif: reset_mechanism must be one of {', '.join(RESETS)}; found {reset_mechanism!r}")
    surrogate = DEFAULT_SURROGATE if spike_grad is None else spike_grad
    if not callable(surrogate):
        raise TypeError(f"lif: spike_grad must be callable; found {type(surrogate).__name__}")
    # A membrane rounded to half precision between chunks would make the result depend on where they are cut.
    working = torch.promote_types(current.dtype, torch.float32)
    state = _check_state(state, current, working)
    if current.shape[0] == 0:
        return current.clone(), state
    arguments = {
        "current": current.to(working),
        "beta": beta,
        "threshold": threshold,
        "spike_grad": surrogate,
        "reset_mechanism": reset_mechanism,
        "state": state,
    }
    spikes, state = dispatch.choose("lif", arguments, backend).run(**arguments)
    return spikes.to(current.dtype), state


def _check_current(current: Tensor) -> None:
    if not isinstance(current, Tensor) or not current.is_floating_point():
        raise TypeError(f"lif: current must be a floating-point tensor; found {getattr(current, 'dtype', current)}")
    if current.dim() < 2:
        raise ValueError(f"lif: current must have the shape (T, B, ...); found {tuple(current.shape)}")


def _check_state(state: Tensor | None, current: Tensor, working: torch.dtype) -> Tensor:
    if state is None:
        return torch.zeros(current.shape[1:], dtype=working, device=current.device)
    if state.shape != current.shape[1:]:
        raise ValueError(
            f"lif: state (B, ...) must fit current (T, B, ...); found {tuple(state.shape)} with {tuple(current.shape)}"
        )
    if state.device != current.device:
        raise ValueError(f"lif: state is on {state.device}, current on {current.device}")
    return state.to(working)


def _neuron_constant(name: str, value: float | Tensor, current: Tensor) -> float | Tensor:
    """A float, or a tensor of one value for each neuron in the working precision."""
    if not isinstance(value, Tensor):
        if not (isinstance(value, (int, float)) and math.isfinite(value)):
            raise ValueError(f"lif: {name} must be a finite number; found {value!r}")
        return float(value)
    if value.dim() and value.shape != current.shape[2:]:
        raise ValueError(
            f"lif: {name} must be one number or one for each neuron {tuple(current.shape[2:])}; "
            f"found {tuple(value.shape)}"
        )
    return value.to(device=current.device, dtype=torch.promote_types(current.dtype, torch.float32))
