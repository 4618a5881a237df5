"""Leaky integrate-and-fire on the CPU, compiled by numba and fused over time, forward and backward."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from snn.dispatch import Backend
from snn.kernels.native.compile import numba_is_missing
from snn.kernels.native.threads import in_parts
from snn.surrogate import SURROGATES, Surrogate

SURROGATES_KNOWN = ("arctan", "fast_sigmoid", "sigmoid", "triangle")
"""Each `kernel_id` whose slope is compiled in; the same names as `fused.SLOPES`, which needs numba to import."""


def _channels_first(x: Tensor) -> bool:
    """Whether the memory of (T, B, N) lies as the delayed layer's kernels leave it, (N, T, B)."""
    return x.dim() == 3 and x.permute(2, 0, 1).is_contiguous()


def _planes(x: Tensor, channels_first: bool) -> Tensor:
    """(T, B, ...) as (P, T, Q), copied only where its memory lies otherwise."""
    if channels_first:
        return x.permute(2, 0, 1).contiguous()
    return x.contiguous().view(1, x.shape[0], -1)


def _plane(state: Tensor, channels_first: bool) -> Tensor:
    """A state (B, ...) as (P, Q)."""
    return state.t().contiguous() if channels_first else state.contiguous().view(1, -1)


def _unplane(x: Tensor, shape: torch.Size, channels_first: bool) -> Tensor:
    """Inverse of `_planes` for the sequence and of `_plane` for the state, by their number of dimensions."""
    if not channels_first:
        return x.view(shape)
    return x.permute(1, 2, 0) if x.dim() == 3 else x.t()


class _Lif(torch.autograd.Function):
    """Spikes and the last membrane, with gradients in the current and the first membrane."""

    @staticmethod
    def forward(
        ctx: Any, current: Tensor, state: Tensor, beta: float, threshold: float, surrogate: Surrogate, reset: str
    ) -> tuple[Tensor, Tensor]:
        from snn.kernels.lif import fused

        first = _channels_first(current)
        planes, start = _planes(current, first), _plane(state, first)
        keep = any(ctx.needs_input_grad[:2])
        spikes, last = torch.empty_like(planes), torch.empty_like(start)
        membranes = torch.empty_like(planes) if keep else planes[:, :0]
        number = planes.numpy().dtype.type
        arrays = [t.detach().numpy() for t in (planes, start, spikes, membranes, last)]

        def work(begin: int, stop: int) -> None:
            fused.forward(*arrays, number(beta), number(threshold), fused.RESETS[reset], keep, fused.UNIT, begin, stop)

        in_parts(work, _units(planes, fused.UNIT), least=8)
        ctx.save_for_backward(membranes)
        ctx.options = (beta, threshold, surrogate, reset)
        ctx.channels_first, ctx.shapes = first, (current.shape, state.shape)
        return _unplane(spikes, current.shape, first), _unplane(last, state.shape, first)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor, grad_last: Tensor) -> tuple[Tensor | None, ...]:
        from snn.kernels.lif import fused

        (membranes,) = ctx.saved_tensors
        beta, threshold, surrogate, reset = ctx.options
        first, (shape, state_shape) = ctx.channels_first, ctx.shapes
        g, g_last = _planes(grad, first), _plane(grad_last, first)
        out, start = torch.empty_like(g), torch.empty_like(g_last)
        number = g.numpy().dtype.type
        arrays = [t.numpy() for t in (g, g_last, membranes, out, start)]
        kind = fused.SLOPES[surrogate.kernel_id]

        def work(begin: int, stop: int) -> None:
            fused.backward(
                *arrays, number(beta), number(threshold), fused.RESETS[reset], kind, surrogate.parameter,
                fused.UNIT, begin, stop,
            )  # fmt: skip

        in_parts(work, _units(g, fused.UNIT), least=8)
        return _unplane(out, shape, first), _unplane(start, state_shape, first), None, None, None, None


def _units(planes: Tensor, unit: int) -> int:
    return planes.shape[0] * -(-planes.shape[2] // unit)


def run(
    current: Tensor, beta: float, threshold: float, spike_grad: Surrogate, reset_mechanism: str, state: Tensor
) -> tuple[Tensor, Tensor]:
    """Step through `current` (T, ...) from the membrane `state` (...); spikes (T, ...) and the last membrane (...)."""
    return _Lif.apply(current, state, beta, threshold, spike_grad, reset_mechanism)


def supports(arguments: Mapping[str, Any]) -> str | None:
    """Float32 and float64 on the CPU, numbers for beta and threshold, and a surrogate whose slope is compiled in."""
    current, surrogate = arguments["current"], arguments["spike_grad"]
    if current.device.type != "cpu":
        return f"it runs on the CPU, the call is on {current.device.type}"
    if current.dtype not in (torch.float32, torch.float64):
        return f"it takes float32 and float64, the call is {current.dtype}"
    for name in ("beta", "threshold"):
        if isinstance(arguments[name], Tensor):
            return f"it takes one {name} for all neurons, the call has a tensor"
    known = getattr(surrogate, "kernel_id", None)
    # The very class: one derived from it may have another slope.
    if known not in SURROGATES_KNOWN or SURROGATES.get(known) is not type(surrogate):
        return f"it knows the surrogates {', '.join(SURROGATES_KNOWN)}; the call uses {surrogate!r}"
    return None


BACKEND = Backend("numba", 100, "compiled, fused over time", numba_is_missing, supports, run)
