"""Compiled loops of the delayed layer: shifted accumulation, whole sequences, any input.

Inside, everything is channel first with time and batch flattened, (N, T * B): a delay of d bins is then a shift of
d * B numbers, which stays aligned to whole vectors at the usual batch sizes. The cost does not grow with the delays.
"""

from __future__ import annotations

import numpy as np

from snn.kernels.native.compile import compiled
from snn.kernels.native.vectors import accumulate_1, accumulate_2, accumulate_4, accumulate_8, accumulate_16, correlate


@compiled
def lay_out(memory, rows, past, origin, stride):
    """Write `rows` (N, M) into `memory`: row i from `origin + i * stride` on, `past` (N, P) before it, else zeros."""
    length, before = rows.shape[1], past.shape[1]
    end = 0
    for i in range(rows.shape[0]):
        at = origin + i * stride
        memory[end : at - before] = 0
        for k in range(before):
            memory[at - before + k] = past[i, k]
        for m in range(length):
            memory[at + m] = rows[i, m]
        end = at + length
    memory[end:] = 0


@compiled
def accumulate_rows(y, x, origin, stride, w, delay, bias, step, low, high, begin, width, first, last):
    """`y[j, m] = bias[j] + sum_i w[j, i] * x[i, begin + m + step * delay[j, i]]` for the blocks first..last of m.

    Parameters
    ----------
    y : (O, M), written.
    x : (memory,)
        Row i begins at `origin + i * stride`; a block that is read may reach one block over either end.
    w, delay : (I / R, O, R)
        Packed for the walk through memory: R neighbouring inputs of all outputs, then the next R. Zeros fill the last.
    bias : (O,)
    step : int
        Numbers for each bin of delay: the batch, negative to read the past.
    low, high : int
        First numbers of blocks of zeros, before and after a row: where a block that lies further out is read instead.
    begin : int
        Place of the first m in the row.
    width : int
        Numbers in one vector; a block of m is sixteen of them.
    first, last : int
    """
    groups, outputs, together = w.shape
    length = y.shape[1]
    tile = 16 * width
    w_flat, delay_flat = w.ravel(), delay.ravel()
    # The sums of one block of m lie close together: in y they would be a row apart, each in a page of its own.
    sums = np.empty(outputs * tile, y.dtype)
    for t in range(first, last):
        m = t * tile
        size = min(tile, length - m)
        at = begin + m
        for j in range(outputs):
            for k in range(tile):
                sums[j * tile + k] = bias[j]
        for group in range(groups):
            x_at = origin + group * together * stride
            for j in range(outputs):
                s, w_at = j * tile, (group * outputs + j) * together
                # As wide as the last block must be.
                if size > 8 * width:
                    accumulate_16(sums, s, x, x_at, stride, w_flat, w_at, delay_flat, at, step, low, high, together)
                elif size > 4 * width:
                    accumulate_8(sums, s, x, x_at, stride, w_flat, w_at, delay_flat, at, step, low, high, together)
                elif size > 2 * width:
                    accumulate_4(sums, s, x, x_at, stride, w_flat, w_at, delay_flat, at, step, low, high, together)
                elif size > width:
                    accumulate_2(sums, s, x, x_at, stride, w_flat, w_at, delay_flat, at, step, low, high, together)
                else:
                    accumulate_1(sums, s, x, x_at, stride, w_flat, w_at, delay_flat, at, step, low, high, together)
        for j in range(outputs):
            y[j, m : m + size] = sums[j * tile : j * tile + size]


@compiled
def correlate_rows(
    out, g, g_origin, g_stride, x, origin, stride, before, delay, batch, longest, length, chunk, width, first, last
):
    """`out[j, i] = sum_m g[j, m] * x[i, m - batch * delay[j, i]]`, m < length, for groups first..last of i.

    Parameters
    ----------
    out, delay : (O, I), I a multiple of `width`; out is written.
    g : (memory,)
        Row j begins at `g_origin + j * g_stride`; zero in the rest of the vector that holds the last m.
    x : (memory,)
        Row i begins at `origin + i * stride`, with `before` numbers of its past in front; zeros further back.
    batch, longest : int
        B, and the longest delay.
    length : int
    chunk : int
        Vectors of m that stay in the nearest cache while all of g passes.
    width : int
        Numbers in one vector, and rows of x in a group.
    first, last : int
    """
    outputs, inputs = out.shape
    out_flat, delay_flat = out.ravel(), delay.ravel()
    reach = longest * batch
    # Where a delay may reach behind the row: that part goes through a copy of the group with zeros in front.
    head = 0 if before >= reach else min(length, (reach + width - 1) // width * width)
    copy_stride = reach + (head + width - 1) // width * width + width
    copied = np.zeros(width * copy_stride, x.dtype)
    for j in range(outputs):
        for i in range(first * width, last * width):
            out_flat[j * inputs + i] = 0
    for group in range(first, last):
        i = group * width
        if head:
            for k in range(width):
                row, source = k * copy_stride + reach, origin + (i + k) * stride
                for m in range(head):
                    copied[row + m] = x[source + m]
            count = (head + width - 1) // width
            for j in range(outputs):
                at = j * inputs + i
                correlate(
                    out_flat, at, g, g_origin + j * g_stride, copied, reach, copy_stride, delay_flat, at, -batch, count
                )
    vectors = (length + width - 1) // width
    for v in range((head + width - 1) // width, vectors, chunk):
        count = min(chunk, vectors - v)
        m = v * width
        for group in range(first, last):
            i = group * width
            for j in range(outputs):
                at = j * inputs + i
                g_at, x_at = g_origin + j * g_stride + m, origin + i * stride + m
                correlate(out_flat, at, g, g_at, x, x_at, stride, delay_flat, at, -batch, count)
