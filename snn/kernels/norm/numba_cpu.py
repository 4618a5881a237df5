"""Masked batch normalisation on the CPU, compiled by numba: one pass over memory each way."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from snn.dispatch import Backend
from snn.kernels.layout import rows_of
from snn.kernels.native.compile import numba_is_missing
from snn.kernels.native.threads import in_parts
from snn.kernels.norm import operator


def _flat(mask: Tensor | None, rows: Tensor) -> Tensor:
    return torch.ones(rows.shape[1], dtype=torch.bool) if mask is None else mask.contiguous().view(-1)


def forward(x: Tensor, weight: Tensor, bias: Tensor, mask: Tensor | None, eps: float) -> tuple[Tensor, Tensor, Tensor]:
    """y, mean and variance of `ranvier::masked_batch_norm`."""
    from snn.kernels.norm import fused

    rows = rows_of(x)
    flat = _flat(mask, rows)
    weight, bias = weight.detach().contiguous(), bias.detach().contiguous()
    y, mean, var = torch.empty_like(rows), torch.empty_like(weight), torch.empty_like(weight)
    number = rows.numpy().dtype.type
    arrays = (rows.numpy(), flat.numpy(), number(int(flat.sum())), weight.numpy(), bias.numpy(), number(eps))
    results = (y.numpy(), mean.numpy(), var.numpy())

    def work(first: int, last: int) -> None:
        fused.forward(*arrays, *results, first, last)

    in_parts(work, rows.shape[0], least=8)
    return y.view(x.shape[2], *x.shape[:2]).permute(1, 2, 0), mean, var


def backward(
    grad: Tensor, x: Tensor, weight: Tensor, mean: Tensor, var: Tensor, mask: Tensor | None, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of x, weight and bias of `ranvier::masked_batch_norm_grad`."""
    from snn.kernels.norm import fused

    rows, g = rows_of(x), rows_of(grad)
    flat = _flat(mask, rows)
    weight = weight.detach().contiguous()
    out, grad_weight, grad_bias = torch.empty_like(rows), torch.empty_like(weight), torch.empty_like(weight)
    number = rows.numpy().dtype.type
    arrays = (g.numpy(), rows.numpy(), flat.numpy(), number(int(flat.sum())), weight.numpy(), number(eps))
    results = [t.numpy() for t in (mean, var, out, grad_weight, grad_bias)]

    def work(first: int, last: int) -> None:
        fused.backward(*arrays, *results, first, last)

    in_parts(work, rows.shape[0], least=8)
    return out.view(x.shape[2], *x.shape[:2]).permute(1, 2, 0), grad_weight, grad_bias


def run(x: Tensor, weight: Tensor, bias: Tensor, mask: Tensor | None, eps: float) -> tuple[Tensor, Tensor, Tensor]:
    """Normalise `x` (T, B, N); `mask` (T, B) is True at real frames. Returns y, mean and biased variance (N,)."""
    return operator.masked_batch_norm(x, weight, bias, mask, eps)


def supports(arguments: Mapping[str, Any]) -> str | None:
    """Float32 and float64 on the CPU, parameters of the same dtype."""
    x = arguments["x"]
    if x.device.type != "cpu":
        return f"it runs on the CPU, the call is on {x.device.type}"
    if x.dtype not in (torch.float32, torch.float64) or arguments["weight"].dtype != x.dtype:
        return f"it takes float32 and float64, the call is {x.dtype} with {arguments['weight'].dtype} parameters"
    return None


BACKEND = Backend("numba", 100, "compiled, one pass over memory", numba_is_missing, supports, run)
