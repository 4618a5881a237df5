"""Dormant Spiking Neurons over a whole sequence."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

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
from snn.kernels.dormant import reference
from snn.surrogate import Sigmoid

DORMANT_SURROGATE = Sigmoid(alpha=4.0)
"""Of both gates, as in the authors' code."""


class DormantState(NamedTuple):
    """State of dormant neurons between chunks.

    Attributes
    ----------
    membrane : Tensor (B, ...)
        After the last step and its reset; it goes on integrating in a dormant neuron and then means nothing.
    awake : Tensor (B, ...)
        The gate D after the last step: 1 awake, 0 dormant, in the dtype of the membrane.
    clock : Tensor or None
        What a mode of `snn.DormantLIF` carries from chunk to chunk; the function hands it through.
    """

    membrane: Tensor
    awake: Tensor
    clock: Tensor | None = None


def dormant_lif(
    current: Tensor,
    *,
    beta: float | Tensor,
    threshold: float | Tensor = 1.0,
    dormancy_threshold: float = -0.05,
    spike_grad: Callable[[Tensor], Tensor] | None = None,
    dormancy_grad: Callable[[Tensor], Tensor] | None = None,
    detach_gate: bool = False,
    reset_mechanism: str = "zero",
    state: DormantState | None = None,
    wake: Tensor | None = None,
    backend: str | None = None,
) -> tuple[Tensor, DormantState]:
    r"""Dormant Spiking Neurons: leaky integrate-and-fire neurons whose updates end once they are deeply inhibited.

    Each step, in this order: `D = D * (v > dormancy_threshold)` with the membrane that the step before left, then
    `v = beta * v + current[t]`, then `spikes[t] = D * (v > threshold)`, then at once and detached from the gradient
    `v = 0` where it spiked ("zero") or `v = v - threshold` ("subtract"). Both comparisons are strict and both pass
    surrogate gradients. D starts at 1 and is a running product: a dormant neuron sleeps until the sequence ends, unless
    `wake` says otherwise. The gate of a step is known before its input is summed, so the sum of a dormant neuron need
    not be made.

    Parameters
    ----------
    current : Tensor (T, B, ...), floating
        Input current for each bin, usually (T, B, N).
    beta : float or Tensor (...)
        Membrane decay of one step, exp(-dt/tau), in 0..1; the authors' 1 - 1/tau with tau 2 is 0.5.
    threshold : float or Tensor (...)
        In units of the membrane.
    dormancy_threshold : float
        Below 0; -inf is a plain LIF, bit for bit and in every gradient.
    spike_grad : callable, optional
        Takes `v - threshold`, returns spikes with a surrogate gradient; default `Sigmoid(alpha=4)`.
    dormancy_grad : callable, optional
        The same for the gate; default `spike_grad`.
    detach_gate : bool
        No gradient through the gate's test: the ablation in which sleeping is not learned.
    reset_mechanism : str
        "zero", "subtract" or "none".
    state : DormantState, optional
        Of the step before; membrane 0 and awake when absent.
    wake : bool Tensor (T, B), optional
        Steps at whose beginning the dormant neurons of a trial wake at rest, membrane 0; no gradient passes a waking.
        An extension for long sequences, not in the paper.
    backend : str, optional
        Forces a backend, see `snn.dispatch`.

    Returns
    -------
    spikes : Tensor (T, B, ...)
        Zeros and ones, in the dtype of `current`.
    state : DormantState
        In float32 where `current` is a half type.

    Raises
    ------
    ValueError
        A shape, range or name that does not fit; a dormancy threshold of 0 or above, at which every neuron would fall
        dormant at the first step; a membrane that is not a number. TypeError: a dtype or object that does not fit.

    Notes
    -----
    Order of operations, strictness and surrogates follow the published code of the Dormant Spiking Neuron, whose
    dormancy threshold is -0.05 in every released network.

    >>> import torch
    >>> current = torch.tensor([-0.5, 3.0, 3.0]).view(3, 1, 1)
    >>> spikes, state = dormant_lif(current, beta=0.5)
    >>> spikes.flatten().tolist(), state.awake.item()
    ([0.0, 0.0, 0.0], 0.0)
    """
    arguments = _arguments(
        current, beta, threshold, dormancy_threshold, spike_grad, dormancy_grad, detach_gate, reset_mechanism, state,
        wake,
    )  # fmt: skip
    clock = None if state is None else state.clock
    if current.shape[0] == 0:
        return current.clone(), DormantState(arguments["membrane"], arguments["awake"], clock)
    spikes, membrane, awake = dispatch.choose("dormant_lif", arguments, backend).run(**arguments)
    _check_numbers(membrane)
    return spikes.to(current.dtype), DormantState(membrane, awake, clock)


@torch.no_grad()
def awake_trace(current: Tensor, *, state: DormantState | None = None, **options: Any) -> Tensor:
    """Where the gate D of `dormant_lif` is 1: which neurons are updated at each step.

    Parameters
    ----------
    current : Tensor (T, B, ...)
    state, **options
        As `dormant_lif` takes them, but for `backend`.

    Returns
    -------
    bool Tensor (T, B, ...)

    >>> import torch
    >>> awake_trace(torch.tensor([-0.5, 3.0, 3.0]).view(3, 1, 1), beta=0.5).flatten().tolist()
    [True, False, False]
    """
    defaults: dict[str, Any] = {
        "threshold": 1.0, "dormancy_threshold": -0.05, "spike_grad": None, "dormancy_grad": None, "detach_gate": True,
        "reset_mechanism": "zero", "wake": None,
    }  # fmt: skip
    arguments = _arguments(current, state=state, **{**defaults, **options})
    trace = [awake != 0 for _, _, awake in reference.steps(**arguments)]
    return torch.stack(trace) if trace else torch.ones_like(current, dtype=torch.bool)


def _arguments(
    current: Tensor, beta: float | Tensor, threshold: float | Tensor, dormancy_threshold: float, spike_grad: Any,
    dormancy_grad: Any, detach_gate: bool, reset_mechanism: str, state: DormantState | None, wake: Tensor | None,
) -> dict[str, Any]:  # fmt: skip
    """What every backend takes, after all checks."""
    who = "dormant_lif"
    check_current(who, current)
    beta = neuron_constant(who, "beta", beta, current)
    threshold = neuron_constant(who, "threshold", threshold, current)
    check_beta(who, beta)
    check_reset(who, reset_mechanism)
    if not isinstance(dormancy_threshold, (int, float)) or math.isnan(dormancy_threshold) or dormancy_threshold >= 0:
        raise ValueError(
            "dormant_lif: dormancy_threshold must be a number below 0: the test is strict and membranes start at 0, so "
            f"that none would ever fire at 0 or above; found {dormancy_threshold!r}"
        )
    surrogate = check_surrogate(who, "spike_grad", DORMANT_SURROGATE if spike_grad is None else spike_grad)
    gate = check_surrogate(who, "dormancy_grad", surrogate if dormancy_grad is None else dormancy_grad)
    if state is not None and not (isinstance(state, tuple) and len(state) >= 2):
        raise TypeError(f"dormant_lif: state must be a DormantState; found {type(state).__name__}")
    if wake is not None and (wake.dtype != torch.bool or wake.shape != current.shape[:2]):
        raise ValueError(
            f"dormant_lif: wake must be bool (T, B) = {tuple(current.shape[:2])}; "
            f"found {wake.dtype} {tuple(wake.shape)}"
        )
    working = torch.promote_types(current.dtype, torch.float32)
    membrane, awake = (None, None) if state is None else state[:2]
    return {
        "current": current.to(working),
        "beta": beta,
        "threshold": threshold,
        "dormancy_threshold": float(dormancy_threshold),
        "spike_grad": surrogate,
        "dormancy_grad": None if detach_gate else gate,
        "reset_mechanism": reset_mechanism,
        "membrane": neuron_state(who, "membrane", membrane, current, working),
        "awake": neuron_state(who, "awake", awake, current, working, rest=1.0),
        "wake": wake,
    }


def _check_numbers(membrane: Tensor) -> None:
    """A membrane that is not a number fails both tests: it would hide as a dormant neuron that never fires."""
    # A compiled graph cannot stop at a value.
    if not torch.compiler.is_compiling() and bool(membrane.isnan().any()):
        n = int(membrane.isnan().sum())
        raise ValueError(
            f"dormant_lif: {n} of {membrane.numel()} membranes are not numbers (NaN): the current or the state holds "
            "NaN, or infinities that cancel"
        )
