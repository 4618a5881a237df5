"""Leaky integrate-and-fire over a whole sequence."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from snn import dispatch
from snn.functional.neuron_checks import (
    check_beta,
    check_current,
    check_reset,
    check_surrogate,
    neuron_constant,
    neuron_state,
)
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
    check_current("lif", current)
    beta = neuron_constant("lif", "beta", beta, current)
    threshold = neuron_constant("lif", "threshold", threshold, current)
    check_beta("lif", beta)
    check_reset("lif", reset_mechanism)
    surrogate = check_surrogate("lif", "spike_grad", DEFAULT_SURROGATE if spike_grad is None else spike_grad)
    # A membrane rounded to half precision between chunks would make the result depend on where they are cut.
    working = torch.promote_types(current.dtype, torch.float32)
    state = neuron_state("lif", "state", state, current, working)
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
