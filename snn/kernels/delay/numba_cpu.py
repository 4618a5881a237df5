"""Fixed-delay linear on the CPU, compiled by numba: forward and both gradients by shifted accumulation.

One routine serves the forward pass and the gradient of the input (weights transposed, shifts the other way). A delay
costs a shifted read, so time and memory do not grow with the largest delay.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from snn.dispatch import Backend
from snn.kernels.native.compile import numba_is_missing
from snn.kernels.native.threads import in_parts

ROWS = 32
"""Rows of the source that stay in the nearest cache during a forward pass."""

CHUNK = 32
"""Vectors of time that stay in the nearest cache during a weight gradient."""


def _layout(length: int, width: int) -> int:
    """Stride of rows that hold `length` numbers, zeros to the end of a vector, and do not collide in the cache."""
    lines = -(-length // width) + 1
    return (lines + 1 - lines % 2) * width


class _Sheet:
    """Channel-first copy of a (T, B, N) tensor, (N padded, zeros | before | T * B | zeros after), flat in time.

    Attributes
    ----------
    data : Tensor (N padded, stride)
    """

    def __init__(self, x: Tensor, before: int, after: int, history: Tensor | None, width: int) -> None:
        steps, batch, channels = x.shape
        length = steps * batch
        rows = -(-channels // width) * width
        stride = _layout(before + length + after, width)
        # One block of slack behind the last row, which a block that ends outside may read and discard.
        memory = torch.empty(rows * stride + 8 * width, dtype=x.dtype)
        self.data = memory[: rows * stride].view(rows, stride)
        memory[rows * stride :].zero_()
        self.data[channels:].zero_()
        body = self.data[:channels]
        body[:, before + length :].zero_()
        body[:, before : before + length].view(channels, steps, batch).copy_(x.permute(2, 0, 1))
        if history is None:
            body[:, :before].zero_()
        else:
            body[:, :before].view(channels, -1, batch).copy_(history.permute(2, 0, 1))


def _accumulate(sheet: Tensor, weight: Tensor, offset: Tensor, bias: Tensor, length: int, width: int) -> Tensor:
    """(O, length) of `accumulate_rows`, over as many threads as torch has."""
    from snn.kernels.delay.shifted import accumulate_rows

    out = torch.empty(weight.shape[0], length, dtype=sheet.dtype)
    arrays = [t.detach().numpy() for t in (out, sheet, weight, offset)]

    def work(first: int, last: int) -> None:
        accumulate_rows(*arrays, 0, bias.detach().numpy(), ROWS, width, first, last)

    in_parts(work, -(-length // (8 * width)))
    return out


class _FixedDelayLinear(torch.autograd.Function):
    """The layer with its gradients in x, weight, bias and history."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, delay: Tensor, bias: Tensor | None, history: Tensor | None, max_delay: int
    ) -> Tensor:
        from snn.kernels.native.vectors import lanes

        steps, batch, _ = x.shape
        width, lead, length = lanes(x.element_size()), max_delay * batch, steps * batch
        sheet = _Sheet(x, lead, 0, history, width).data
        # A row starts max_delay bins before the first one: delay d reads max_delay - d bins into it.
        offset = delay.new_zeros(weight.shape[0], sheet.shape[0], dtype=torch.int32)
        offset[:, : weight.shape[1]] = (max_delay - delay.to(torch.int32)) * batch
        start = weight.new_zeros(weight.shape[0]) if bias is None else bias.contiguous()
        y = _accumulate(sheet, weight.contiguous(), offset, start, length, width)
        ctx.save_for_backward(sheet, weight, delay, offset)
        ctx.shape, ctx.max_delay, ctx.width = x.shape, max_delay, width
        return y.view(-1, steps, batch).permute(1, 2, 0)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        sheet, weight, delay, offset = ctx.saved_tensors
        for_x, for_weight, _, for_bias, for_history, _ = ctx.needs_input_grad
        steps, batch, inputs = ctx.shape
        width, length = ctx.width, steps * batch
        behind = ctx.max_delay * batch
        # The gradient of the history is the gradient of x in the bins before the first.
        lead = behind if for_history else 0
        g = _Sheet(grad, lead, behind, None, width).data
        outputs = weight.shape[0]
        grad_x = grad_weight = grad_bias = grad_history = None
        if for_bias:
            grad_bias = g[:outputs, lead : lead + length].sum(1)
        if for_weight:
            grad_weight = _correlate(g, lead, sheet, offset, length, width)[:, :inputs].contiguous()
        if for_x or for_history:
            back = (delay.to(torch.int32) * batch).t().contiguous()
            nothing = weight.new_zeros(inputs)
            whole = _accumulate(g, weight.t().contiguous(), back, nothing, lead + length, width)
            whole = whole.view(inputs, -1, batch).permute(1, 2, 0)
            grad_x, grad_history = whole[lead // batch :], whole[: lead // batch] if for_history else None
        return grad_x if for_x else None, grad_weight, None, grad_bias, grad_history, None


def _correlate(g: Tensor, start: int, sheet: Tensor, offset: Tensor, length: int, width: int) -> Tensor:
    """(O, I padded) of `correlate_rows`, over as many threads as torch has."""
    from snn.kernels.delay.shifted import correlate_rows

    out = torch.empty(offset.shape, dtype=sheet.dtype)
    arrays: list[np.ndarray] = [t.numpy() for t in (out, g, sheet, offset)]

    def work(first: int, last: int) -> None:
        correlate_rows(arrays[0], arrays[1], start, arrays[2], arrays[3], length, CHUNK, width, first, last)

    in_parts(work, offset.shape[1] // width)
    return out


def run(
    x: Tensor, weight: Tensor, delay: Tensor, bias: Tensor | None, history: Tensor | None, max_delay: int
) -> Tensor:
    """Apply the layer to `x` (T, B, I) that follows `history` (max_delay, B, I), or silence; returns (T, B, O)."""
    return _FixedDelayLinear.apply(x, weight, delay, bias, history, max_delay)


def supports(arguments: Mapping[str, Any]) -> str | None:
    """Float32 and float64 on the CPU, and fewer than 2^31 numbers of delay."""
    x = arguments["x"]
    if x.device.type != "cpu":
        return f"it runs on the CPU, the call is on {x.device.type}"
    if x.dtype not in (torch.float32, torch.float64):
        return f"it takes float32 and float64, the call is {x.dtype}"
    if arguments["max_delay"] * x.shape[1] >= 2**31:
        return "max_delay times the batch does not fit 32 bits"
    return None


BACKEND = Backend("numba", 100, "compiled shifted accumulation", numba_is_missing, supports, run)
