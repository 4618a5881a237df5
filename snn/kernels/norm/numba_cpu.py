"""Masked batch normalisation on the CPU, compiled by numba: one pass over memory each way."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from snn.dispatch import Backend
from snn.kernels.native.compile import numba_is_missing
from snn.kernels.native.threads import in_parts


def _rows(x: Tensor) -> Tensor:
    """(T, B, N) as contiguous (N, T * B); no copy where the delayed layer's kernels wrote it."""
    return x.permute(2, 0, 1).contiguous().view(x.shape[2], -1)


class _MaskedBatchNorm(torch.autograd.Function):
    """y, mean and variance; the statistics come without a gradient of their own."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, mask: Tensor | None, eps: float
    ) -> tuple[Tensor, Tensor, Tensor]:
        from snn.kernels.norm import fused

        rows = _rows(x)
        flat = torch.ones(rows.shape[1], dtype=torch.bool) if mask is None else mask.contiguous().view(-1)
        y = torch.empty_like(rows)
        mean, var = torch.empty_like(weight), torch.empty_like(weight)
        number = rows.numpy().dtype.type
        count = number(int(flat.sum()))
        scale, shift = weight.detach().contiguous(), bias.detach().contiguous()

        def work(first: int, last: int) -> None:
            fused.forward(
                rows.numpy(), flat.numpy(), count, scale.numpy(), shift.numpy(), number(eps),
                y.numpy(), mean.numpy(), var.numpy(), first, last,
            )  # fmt: skip

        in_parts(work, rows.shape[0], least=8)
        ctx.save_for_backward(rows, flat, scale, mean, var)
        ctx.eps, ctx.shape = eps, x.shape
        ctx.mark_non_differentiable(mean, var)
        return y.view(x.shape[2], *x.shape[:2]).permute(1, 2, 0), mean, var

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor, *unused: Any) -> tuple[Tensor | None, ...]:
        from snn.kernels.norm import fused

        rows, flat, scale, mean, var = ctx.saved_tensors
        g = _rows(grad)
        out, grad_weight, grad_bias = torch.empty_like(rows), torch.empty_like(scale), torch.empty_like(scale)
        number = rows.numpy().dtype.type
        count, eps = number(int(flat.sum())), number(ctx.eps)
        arrays = [t.numpy() for t in (g, rows, flat)]
        results = [t.numpy() for t in (mean, var, out, grad_weight, grad_bias)]

        def work(first: int, last: int) -> None:
            fused.backward(*arrays, count, scale.numpy(), eps, *results, first, last)

        in_parts(work, rows.shape[0], least=8)
        steps, batch, channels = ctx.shape
        return out.view(channels, steps, batch).permute(1, 2, 0), grad_weight, grad_bias, None, None


def run(x: Tensor, weight: Tensor, bias: Tensor, mask: Tensor | None, eps: float) -> tuple[Tensor, Tensor, Tensor]:
    """Normalise `x` (T, B, N); `mask` (T, B) is True at real frames. Returns y, mean and biased variance (N,)."""
    return _MaskedBatchNorm.apply(x, weight, bias, mask, eps)


def supports(arguments: Mapping[str, Any]) -> str | None:
    """Float32 and float64 on the CPU, parameters of the same dtype."""
    x = arguments["x"]
    if x.device.type != "cpu":
        return f"it runs on the CPU, the call is on {x.device.type}"
    if x.dtype not in (torch.float32, torch.float64) or arguments["weight"].dtype != x.dtype:
        return f"it takes float32 and float64, the call is {x.dtype} with {arguments['weight'].dtype} parameters"
    return None


BACKEND = Backend("numba", 100, "compiled, one pass over memory", numba_is_missing, supports, run)
