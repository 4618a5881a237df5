"""Leaky integrate-and-fire on the CPU, compiled by numba and fused over time, forward and backward."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from snn.dispatch import Backend
from snn.kernels.layout import channels_first, plane, planes, sequence, state_of
from snn.kernels.lif import operator
from snn.kernels.lif.operator import RESETS
from snn.kernels.native.compile import numba_is_missing
from snn.kernels.native.threads import in_parts
from snn.surrogate import SURROGATES, Surrogate


def forward(current: Tensor, state: Tensor, beta: float, threshold: float, reset: str) -> tuple[Tensor, Tensor]:
    """Spikes and last membrane of `ranvier::lif`."""
    from snn.kernels.lif import fused

    first = channels_first(current)
    x, start = planes(current.detach(), first), plane(state.detach(), first)
    spikes, last = torch.empty_like(x), torch.empty_like(start)
    number = x.numpy().dtype.type
    arrays = [t.numpy() for t in (x, start, spikes, last)]
    run_part, unit, units = _way(x, fused.forward, fused.forward_vectors)

    def work(begin: int, stop: int) -> None:
        run_part(*arrays, number(beta), number(threshold), RESETS[reset], unit, begin, stop)

    in_parts(work, units)
    return sequence(spikes, current.shape, first), state_of(last, state.shape, first)


def backward(
    grad: Tensor, grad_last: Tensor, current: Tensor, state: Tensor, beta: float, threshold: float, slope: str,
    parameter: float, reset: str,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Gradients of the current and of the first membrane of `ranvier::lif_grad`."""
    from snn.kernels.lif import fused

    first = channels_first(current)
    x, begin_at = planes(current.detach(), first), plane(state.detach(), first)
    g, g_last = planes(grad, first), plane(grad_last, first)
    out, start = torch.empty_like(g), torch.empty_like(g_last)
    number = g.numpy().dtype.type
    arrays = [t.numpy() for t in (g, g_last, x, begin_at, out, start)]
    kind = operator.KERNEL_IDS.index(slope)
    run_part, unit, units = _way(x, fused.backward, fused.backward_vectors)

    def work(begin: int, stop: int) -> None:
        run_part(*arrays, number(beta), number(threshold), RESETS[reset], kind, parameter, unit, begin, stop)

    in_parts(work, units)
    return sequence(out, grad.shape, first), state_of(start, grad_last.shape, first)


def _way(x: Tensor, any_width: Callable[..., None], whole_vectors: Callable[..., None]) -> tuple[Any, int, int]:
    """The loops for currents (P, T, Q), with their unit of work and the number of units."""
    from snn.kernels.lif import fused
    from snn.kernels.native.vectors import lanes

    planes, steps, width = x.shape
    size = lanes(x.element_size())
    if width % size == 0:
        return whole_vectors, size, -(-planes * width // (size * fused.GROUP))
    # Many rows are work for all threads already.
    unit = fused.unit_of(steps, width, max(1, torch.get_num_threads() // max(1, planes)))
    return any_width, unit, planes * -(-width // unit)


def run(
    current: Tensor, beta: float, threshold: float, spike_grad: Surrogate, reset_mechanism: str, state: Tensor,
    *, path: str = "numba",
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Step through `current` (T, ...) from the membrane `state` (...); spikes (T, ...) and the last membrane (...)."""
    return operator.lif(
        current, state, beta, threshold, spike_grad.kernel_id, spike_grad.parameter, reset_mechanism, path
    )


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
