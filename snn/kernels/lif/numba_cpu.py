"""Leaky integrate-and-fire on the CPU, compiled by numba and fused over time, forward and backward."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from snn.dispatch import Backend
from snn.kernels.lif import operator
from snn.kernels.lif.operator import RESETS, channels_first, plane, planes, sequence, state_of
from snn.kernels.native.compile import numba_is_missing
from snn.kernels.native.threads import in_parts
from snn.surrogate import SURROGATES, Surrogate


def forward(
    current: Tensor, state: Tensor, beta: float, threshold: float, reset: str, keep: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """Spikes, last membrane and membranes of `ranvier::lif`."""
    from snn.kernels.lif import fused

    first = channels_first(current)
    x, start = planes(current.detach(), first), plane(state.detach(), first)
    spikes, last = torch.empty_like(x), torch.empty_like(start)
    membranes = torch.empty_like(x) if keep else x[:, :0]
    number = x.numpy().dtype.type
    arrays = [t.numpy() for t in (x, start, spikes, membranes, last)]

    def work(begin: int, stop: int) -> None:
        fused.forward(*arrays, number(beta), number(threshold), RESETS[reset], keep, fused.UNIT, begin, stop)

    in_parts(work, _units(x, fused.UNIT), least=8)
    kept = sequence(membranes, current.shape, first) if keep else current.new_empty(0)
    return sequence(spikes, current.shape, first), state_of(last, state.shape, first), kept


def backward(
    grad: Tensor, grad_last: Tensor, membranes: Tensor, beta: float, threshold: float, slope: str, parameter: float,
    reset: str,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Gradients of the current and of the first membrane of `ranvier::lif_grad`."""
    from snn.kernels.lif import fused

    first = channels_first(membranes)
    g, g_last, v = planes(grad, first), plane(grad_last, first), planes(membranes, first)
    out, start = torch.empty_like(g), torch.empty_like(g_last)
    number = g.numpy().dtype.type
    arrays = [t.numpy() for t in (g, g_last, v, out, start)]
    kind = operator.KERNEL_IDS.index(slope)

    def work(begin: int, stop: int) -> None:
        fused.backward(
            *arrays, number(beta), number(threshold), RESETS[reset], kind, parameter, fused.UNIT, begin, stop
        )

    in_parts(work, _units(g, fused.UNIT), least=8)
    return sequence(out, grad.shape, first), state_of(start, grad_last.shape, first)


def _units(x: Tensor, unit: int) -> int:
    return x.shape[0] * -(-x.shape[2] // unit)


def run(
    current: Tensor, beta: float, threshold: float, spike_grad: Surrogate, reset_mechanism: str, state: Tensor,
    *, path: str = "numba",
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Step through `current` (T, ...) from the membrane `state` (...); spikes (T, ...) and the last membrane (...)."""
    keep = torch.is_grad_enabled() and (current.requires_grad or state.requires_grad)
    spikes, last, _ = operator.lif(
        current, state, beta, threshold, spike_grad.kernel_id, spike_grad.parameter, reset_mechanism, keep, path
    )
    return spikes, last


def known_constants(arguments: Mapping[str, Any]) -> str | None:
    """Why the kernels cannot take the constants of a call: they need numbers, and a surrogate that they know."""
    for name in ("beta", "threshold"):
        if isinstance(arguments[name], Tensor):
            return f"it takes one {name} for all neurons, the call has a tensor"
    surrogate = arguments["spike_grad"]
    known = getattr(surrogate, "kernel_id", None)
    # The very class: one derived from it may have another slope.
    if known not in operator.KERNEL_IDS or SURROGATES.get(known) is not type(surrogate):
        return f"it knows the surrogates {', '.join(operator.KERNEL_IDS)}; the call uses {surrogate!r}"
    return None


def supports(arguments: Mapping[str, Any]) -> str | None:
    """Float32 and float64 on the CPU, numbers for beta and threshold, and a surrogate whose slope is compiled in."""
    current = arguments["current"]
    if current.device.type != "cpu":
        return f"it runs on the CPU, the call is on {current.device.type}"
    if current.dtype not in (torch.float32, torch.float64):
        return f"it takes float32 and float64, the call is {current.dtype}"
    return known_constants(arguments)


BACKEND = Backend("numba", 100, "compiled, fused over time", numba_is_missing, supports, run)
