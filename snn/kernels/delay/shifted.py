"""Compiled loops of the delayed layer: shifted accumulation, whole sequences, any input.

Inside, everything is channel first with time and batch flattened, (N, T * B): a delay of d bins is then a shift of
d * B numbers, which stays aligned to whole vectors at the usual batch sizes. The cost does not grow with the delays.
"""

from __future__ import annotations

import numpy as np

from snn.kernels.native.compile import compiled
from snn.kernels.native.vectors import accumulate_1, accumulate_2, accumulate_4, accumulate_8, correlate


@compiled
def accumulate_rows(y, x, w, offset, start, bias, block, width, first, last):
    """`y[j, m] = bias[j] + sum_i w[j, i] * x[i, start + offset[j, i] + m]` for the blocks first..last of m.

    Parameters
    ----------
    y : (O, M), written.
    x : (I, L), with one block of slack behind the last row.
    w : (O, I)
    offset : int32 (O, >= I)
    start : int
    bias : (O,)
    block : int
        Rows of x that stay in the nearest cache while all of y passes.
    width : int
        Numbers in one vector; a block of m is eight of them.
    first, last : int
    """
    outputs, inputs = w.shape
    length = y.shape[1]
    tile = 8 * width
    y_flat, x_flat, w_flat, offset_flat = y.ravel(), x.ravel(), w.ravel(), offset.ravel()
    y_stride, x_stride, offset_stride = y.shape[1], x.shape[1], offset.shape[1]
    scratch = np.empty(tile, y.dtype)
    for t in range(first, last):
        m = t * tile
        size = min(tile, length - m)
        for j in range(outputs):
            for k in range(size):
                y_flat[j * y_stride + m + k] = bias[j]
        for i in range(0, inputs, block):
            count = min(block, inputs - i)
            x_at = i * x_stride + start + m
            for j in range(outputs):
                y_at, w_at, o_at = j * y_stride + m, j * inputs + i, j * offset_stride + i
                if size == tile:
                    accumulate_8(y_flat, y_at, x_flat, x_at, x_stride, w_flat, w_at, offset_flat, o_at, count)
                    continue
                # The last block of m: through a scratch block, as wide as it must be.
                for k in range(size):
                    scratch[k] = y_flat[y_at + k]
                if size <= width:
                    accumulate_1(scratch, 0, x_flat, x_at, x_stride, w_flat, w_at, offset_flat, o_at, count)
                elif size <= 2 * width:
                    accumulate_2(scratch, 0, x_flat, x_at, x_stride, w_flat, w_at, offset_flat, o_at, count)
                elif size <= 4 * width:
                    accumulate_4(scratch, 0, x_flat, x_at, x_stride, w_flat, w_at, offset_flat, o_at, count)
                else:
                    accumulate_8(scratch, 0, x_flat, x_at, x_stride, w_flat, w_at, offset_flat, o_at, count)
                for k in range(size):
                    y_flat[y_at + k] = scratch[k]


@compiled
def correlate_rows(out, g, g_start, x, offset, length, chunk, width, first, last):
    """`out[j, i] = sum_m g[j, g_start + m] * x[i, offset[j, i] + m]`, m < length, for groups first..last of i.

    Parameters
    ----------
    out : (O, I), written; I a multiple of `width`.
    g : (O, L'), zero in the rest of the vector that holds the last m.
    x : (I, L), finite there.
    offset : int32 (O, I)
    length : int
    chunk : int
        Vectors of m that stay in the nearest cache while all of g passes.
    width : int
        Numbers in one vector, and rows of x in a group.
    first, last : int
    """
    outputs, inputs = out.shape
    out_flat, g_flat, x_flat, offset_flat = out.ravel(), g.ravel(), x.ravel(), offset.ravel()
    g_stride, x_stride = g.shape[1], x.shape[1]
    vectors = (length + width - 1) // width
    for j in range(outputs):
        for i in range(first * width, last * width):
            out_flat[j * inputs + i] = 0
    for v in range(0, vectors, chunk):
        count = min(chunk, vectors - v)
        m = v * width
        for group in range(first, last):
            i = group * width
            for j in range(outputs):
                at = j * inputs + i
                correlate(
                    out_flat, at, g_flat, j * g_stride + g_start + m, x_flat, i * x_stride + m, x_stride,
                    offset_flat, at, count,
                )  # fmt: skip
