"""Triton kernels of the delayed layer: a gather for each tile of outputs and time, no atomics, one order of sums.

Rows are channel first with time and batch flattened, (N, M), so that neighbouring threads read neighbouring numbers
whatever the delay. Address arithmetic is in 64 bits.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def accumulate_kernel(
    y_ptr, x_ptr, w_ptr, d_ptr, bias_ptr, inputs, outputs, length, x_stride, origin, low, high, begin, step,
    HAS_BIAS: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_O: tl.constexpr,
):  # fmt: skip
    """`y[j, m] = bias[j] + sum_i w[i, j] * x[i, begin + m + step * d[i, j]]`, zero outside low..high of a row."""
    m = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    j = tl.program_id(1).to(tl.int64) * BLOCK_O + tl.arange(0, BLOCK_O)
    inside_m, inside_j = m < length, j < outputs
    kind = y_ptr.dtype.element_ty
    total = tl.zeros((BLOCK_O, BLOCK_M), dtype=kind)
    if HAS_BIAS:
        total += tl.load(bias_ptr + j, mask=inside_j, other=0.0)[:, None]
    # Pointers that move along, so that no product of two 32-bit numbers can run over.
    w_at, d_at, x_at = w_ptr + j, d_ptr + j, x_ptr + origin
    for _ in range(0, inputs):
        w = tl.load(w_at, mask=inside_j, other=0.0)
        d = tl.load(d_at, mask=inside_j, other=0).to(tl.int64)
        at = begin + m[None, :] + step * d[:, None]
        there = (at >= low) & (at < high) & inside_m[None, :] & inside_j[:, None]
        total += w[:, None] * tl.load(x_at + at, mask=there, other=0.0)
        w_at += outputs
        d_at += outputs
        x_at += x_stride
    tl.store(y_ptr + j[:, None] * length + m[None, :], total, mask=inside_j[:, None] & inside_m[None, :])


@triton.jit
def correlate_kernel(
    out_ptr, g_ptr, x_ptr, d_ptr, inputs, length, x_stride, origin, low, batch,
    BLOCK_M: tl.constexpr, BLOCK_I: tl.constexpr,
):  # fmt: skip
    """`out[j, i] = sum_m g[j, m] * x[i, m - batch * d[j, i]]`, zero before `low` of a row."""
    j = tl.program_id(0).to(tl.int64)
    i = tl.program_id(1).to(tl.int64) * BLOCK_I + tl.arange(0, BLOCK_I)
    inside_i = i < inputs
    d = tl.load(d_ptr + j * inputs + i, mask=inside_i, other=0).to(tl.int64)
    total = tl.zeros((BLOCK_I, BLOCK_M), dtype=out_ptr.dtype.element_ty)
    for first in range(0, length, BLOCK_M):
        m = first + tl.arange(0, BLOCK_M).to(tl.int64)
        g = tl.load(g_ptr + j * length + m, mask=m < length, other=0.0)
        at = m[None, :] - batch * d[:, None]
        there = (at >= low) & (m[None, :] < length) & inside_i[:, None]
        x = tl.load(x_ptr + i[:, None] * x_stride + origin + at, mask=there, other=0.0)
        total += g[None, :] * x
    tl.store(out_ptr + j * inputs + i, tl.sum(total, 1), mask=inside_i)
