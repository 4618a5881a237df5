"""Fixed-delay linear in Triton: forward and both gradients on CUDA, or on the CPU under Triton's interpreter."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor

from snn.dispatch import Backend
from snn.kernels.delay.numba_cpu import run
from snn.kernels.delay.plan import plan_of
from snn.kernels.gpu.triton_here import on_device_of, triton_is_missing, unsupported
from snn.kernels.layout import rows_of

BLOCK_M, BLOCK_O, BLOCK_I = 128, 16, 16
"""Tile of a program: numbers of a row, outputs, and inputs in the gradient of the weights."""


def _joined(x: Tensor, history: Tensor | None) -> tuple[Tensor, int]:
    """Rows of the history and what follows, and the place where that begins."""
    rows = rows_of(x)
    if history is None:
        return rows, 0
    past = rows_of(history)
    return torch.cat([past, rows], 1), past.shape[1]


def _accumulate(
    rows: Tensor, origin: int, weight: Tensor, delay: Tensor, bias: Tensor | None, step: int, begin: int, length: int
) -> Tensor:
    """(O, length) of `accumulate_kernel` for weight and delay (I, O)."""
    import triton

    from snn.kernels.delay.triton_kernels import accumulate_kernel

    inputs, outputs = weight.shape
    y = rows.new_empty(outputs, length)
    grid = (triton.cdiv(length, BLOCK_M), triton.cdiv(outputs, BLOCK_O))
    with on_device_of(rows):
        accumulate_kernel[grid](
            y, rows, weight, delay, y if bias is None else bias, inputs, outputs, length, rows.shape[1], origin,
            -origin, rows.shape[1] - origin, begin, step, HAS_BIAS=bias is not None, BLOCK_M=BLOCK_M, BLOCK_O=BLOCK_O,
        )  # fmt: skip
    return y


def forward(
    x: Tensor, weight: Tensor, delay: Tensor, bias: Tensor | None, history: Tensor | None, max_delay: int, path: str
) -> Tensor:
    """`y` (T, B, O) of `ranvier::fixed_delay_linear`."""
    steps, batch, _ = x.shape
    rows, origin = _joined(x, history)
    transposed = weight.detach().t().contiguous()
    start = None if bias is None else bias.detach().contiguous()
    y = _accumulate(rows, origin, transposed, plan_of(delay).transposed, start, -batch, 0, steps * batch)
    return y.view(-1, steps, batch).permute(1, 2, 0)


def backward(
    grad: Tensor, x: Tensor, weight: Tensor, delay: Tensor, history: Tensor | None, max_delay: int, path: str,
    for_x: bool, for_weight: bool, for_history: bool,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """The gradients of `ranvier::fixed_delay_linear_grad`."""
    import triton

    from snn.kernels.delay.triton_kernels import correlate_kernel

    steps, batch, inputs = x.shape
    g, plan = rows_of(grad), plan_of(delay)
    grad_weight, grad_x, grad_history = weight.new_empty(0), x.new_empty(0), x.new_empty(0)
    if for_weight:
        rows, origin = _joined(x, history)
        grad_weight = weight.new_empty(weight.shape)
        with on_device_of(g):
            correlate_kernel[(weight.shape[0], triton.cdiv(inputs, BLOCK_I))](
                grad_weight, g, rows, plan.packed, inputs, g.shape[1], rows.shape[1], origin, -origin, batch,
                BLOCK_M=BLOCK_M, BLOCK_I=BLOCK_I,
            )  # fmt: skip

    def gradient_of(begin: int, frames: int) -> Tensor:
        # The weights as they lie are the transposed ones of the way back.
        whole = _accumulate(g, 0, weight.detach().contiguous(), plan.packed, None, batch, begin, frames * batch)
        return whole.view(inputs, frames, batch).permute(1, 2, 0)

    if for_x:
        grad_x = gradient_of(0, steps)
    if for_history:
        # The gradient of the history is that of x in the bins before the first.
        grad_history = gradient_of(-max_delay * batch, max_delay)
    return grad_x, grad_weight, grad_history


def supports(arguments: Mapping[str, Any]) -> str | None:
    """Float32 and float64 on CUDA."""
    return unsupported(arguments["x"])


BACKEND = Backend(
    "triton", 90, "Triton, a gather for each tile", triton_is_missing, supports, partial(run, path="triton")
)
