"""The Dormant Spiking Neuron on the CPU, compiled by numba and fused over time, forward and backward."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from snn.dispatch import Backend
from snn.kernels.dormant import operator
from snn.kernels.dormant.operator import DETACHED
from snn.kernels.layout import channels_first, plane, planes, sequence, state_of
from snn.kernels.lif.numba_cpu import known_constants as known_to_lif
from snn.kernels.lif.numba_cpu import supports as supports_lif
from snn.kernels.lif.operator import KERNEL_IDS, RESETS
from snn.kernels.native.compile import numba_is_missing
from snn.kernels.native.threads import in_parts
from snn.surrogate import Surrogate


def wake_plane(wake: Tensor | None, current: Tensor, first: bool) -> Tensor:
    """`wake` (T, B) as (T, Q), the same for all planes (see `layout.planes`); empty where there is none."""
    if wake is None:
        return torch.empty(0, 0, dtype=torch.bool, device=current.device)
    if first:
        return wake.contiguous()
    each = wake.view(*wake.shape, *[1] * (current.dim() - 2))
    return each.expand(current.shape).reshape(current.shape[0], -1)


def forward(
    current: Tensor, membrane: Tensor, awake: Tensor, wake: Tensor | None, beta: float, threshold: float, gate: float,
    reset: str,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Spikes, last membrane and last gate of `ranvier::dormant_lif`."""
    from snn.kernels.dormant import fused

    first = channels_first(current)
    x, start, gates = planes(current.detach(), first), plane(membrane.detach(), first), plane(awake.detach(), first)
    out = torch.empty_like(x), torch.empty_like(start), torch.empty_like(gates)
    arrays = [t.numpy() for t in (x, start, gates, wake_plane(wake, current, first), *out)]
    constants = _constants(x, beta, threshold, gate)
    unit, units = _units(x)

    def work(begin: int, stop: int) -> None:
        fused.forward(*arrays, *constants, RESETS[reset], unit, begin, stop)

    in_parts(work, units)
    spikes, last, last_awake = out
    return (
        sequence(spikes, current.shape, first), state_of(last, membrane.shape, first),
        state_of(last_awake, awake.shape, first),
    )  # fmt: skip


def backward(
    grad: Tensor, grad_membrane: Tensor, grad_awake: Tensor, current: Tensor, membrane: Tensor, awake: Tensor,
    wake: Tensor | None, beta: float, threshold: float, gate: float, slope: str, parameter: float, gate_slope: str,
    gate_parameter: float, reset: str,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Gradients of the current, of the first membrane and of the first gate of `ranvier::dormant_lif_grad`."""
    from snn.kernels.dormant import fused

    first = channels_first(current)
    g, g_last, g_awake = planes(grad, first), plane(grad_membrane, first), plane(grad_awake, first)
    x, start, gates = planes(current.detach(), first), plane(membrane.detach(), first), plane(awake.detach(), first)
    out = torch.empty_like(g), torch.empty_like(g_last), torch.empty_like(g_awake)
    inputs = (g, g_last, g_awake, x, start, gates, wake_plane(wake, current, first))
    arrays = [t.numpy() for t in (*inputs, *out)]
    constants = _constants(x, beta, threshold, gate)
    kinds = (KERNEL_IDS.index(slope), parameter, gate_number(gate_slope), gate_parameter)
    unit, units = _units(x, kept=7)

    def work(begin: int, stop: int) -> None:
        fused.backward(*arrays, *constants, RESETS[reset], *kinds, unit, begin, stop)

    in_parts(work, units)
    to_current, to_membrane, to_awake = out
    return (
        sequence(to_current, grad.shape, first), state_of(to_membrane, grad_membrane.shape, first),
        state_of(to_awake, grad_awake.shape, first),
    )  # fmt: skip


def gate_number(slope: str) -> int:
    """Number of the gate's surrogate in the kernels; below 0 where no gradient passes."""
    return -1 if slope == DETACHED else KERNEL_IDS.index(slope)


def _constants(x: Tensor, *values: float) -> tuple[Any, ...]:
    number = x.numpy().dtype.type
    return tuple(number(value) for value in values)


def _units(x: Tensor, kept: int = 1) -> tuple[int, int]:
    """Size and number of the units of work on (P, T, Q), of which `kept` numbers a step must stay in the cache."""
    from snn.kernels.dormant import fused

    rows, steps, width = x.shape
    unit = fused.unit_of(kept * steps, width, max(1, torch.get_num_threads() // max(1, rows)))
    return unit, rows * -(-width // unit)


def run(
    current: Tensor, beta: float, threshold: float, dormancy_threshold: float, spike_grad: Surrogate,
    dormancy_grad: Surrogate | None, reset_mechanism: str, membrane: Tensor, awake: Tensor, wake: Tensor | None,
    *, path: str = "numba",
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Spikes (T, ...), the last membrane and the last gate D (...); see `reference.run`."""
    gate = (DETACHED, 1.0) if dormancy_grad is None else (dormancy_grad.kernel_id, dormancy_grad.parameter)
    return operator.dormant_lif(
        current, membrane, awake, wake, beta, threshold, dormancy_threshold, spike_grad.kernel_id,
        spike_grad.parameter, *gate, reset_mechanism, path,
    )  # fmt: skip


def known_constants(arguments: Mapping[str, Any]) -> str | None:
    """Why the kernels cannot take the constants of a call: they need numbers, and surrogates that they know."""
    gate = arguments["dormancy_grad"]
    return known_to_lif(arguments) or (None if gate is None else known_to_lif({**arguments, "spike_grad": gate}))


def supports(arguments: Mapping[str, Any]) -> str | None:
    """Float32 and float64 on the CPU, numbers for the constants, and surrogates whose slopes are compiled in."""
    return supports_lif(arguments) or known_constants(arguments)


BACKEND = Backend("numba", 100, "compiled, fused over time", numba_is_missing, supports, run)
