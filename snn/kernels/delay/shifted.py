"""Compiled loops of the delayed layer: shifted accumulation, whole sequences, any input.

Inside, everything is channel first with time and batch flattened, (N, T * B): a delay of d bins is then a shift of
d * B numbers, which stays aligned to whole vectors at the usual batch sizes. The cost does not grow with the delays.
"""

from __future__ import annotations

from snn.kernels.native.compile import compiled
from snn.kernels.native.memory import scratch
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
    sums = scratch(outputs * tile, y)
    for t in range(first, last):
        m = t * tile
        size = min(tile, length - m)
        at = begin + m
        for j in range(outputs):
            for k in range(tile):
                sums[j * tile + k] = bias[j]
        for group in range(groups):
            x_at, w_at = origin + group * together * stride, group * outputs * together
            # As wide as the last block must be.
            if size > 8 * width:
                accumulate_16(sums, x, x_at, stride, w_flat, w_at, delay_flat, at, step, low, high, together, outputs)
            elif size > 4 * width:
                accumulate_8(sums, x, x_at, stride, w_flat, w_at, delay_flat, at, step, low, high, together, outputs)
            elif size > 2 * width:
                accumulate_4(sums, x, x_at, stride, w_flat, w_at, delay_flat, at, step, low, high, together, outputs)
            elif size > width:
                accumulate_2(sums, x, x_at, stride, w_flat, w_at, delay_flat, at, step, low, high, together, outputs)
            else:
                accumulate_1(sums, x, x_at, stride, w_flat, w_at, delay_flat, at, step, low, high, together, outputs)
        for j in range(outputs):
            y[j, m : m + size] = sums[j * tile : j * tile + size]


@compiled
def correlate_rows(
    out, g, g_origin, g_stride, x, origin, stride, before, delay, batch, longest, length, chunk, width, together,
    first, last,
):  # fmt: skip
    """`out[j, i] = sum_m g[j, m] * x[i, m - batch * delay[j, i]]`, m < length, for groups first..last of i.

    Parameters
    ----------
    out, delay : (O, I), I a multiple of `together`; out is written.
    g : (memory,)
        Row j begins at `g_origin + j * g_stride`; zeros for two vectors behind it.
    x : (memory,)
        Row i begins at `origin + i * stride`, with `before` numbers of its past in front; zeros further back.
    batch, longest : int
        B, and the longest delay.
    length : int
    chunk : int
        Pairs of vectors of m that stay in the nearest cache while all of g passes.
    width, together : int
        Numbers in one vector, and rows of x in a group.
    first, last : int
    """
    outputs, inputs = out.shape
    out_flat, delay_flat = out.ravel(), delay.ravel()
    reach, pair = longest * batch, 2 * width
    # Where a delay may reach behind the row: that part goes through a copy of the group with zeros in front.
    head = 0 if before >= reach else min((length + pair - 1) // pair, (reach + pair - 1) // pair)
    copy_stride = reach + (head + 1) * pair
    copied = scratch(together * copy_stride, x)
    copied[:] = 0
    for j in range(outputs):
        for i in range(first * together, last * together):
            out_flat[j * inputs + i] = 0
    for group in range(first, last):
        i = group * together
        if head:
            for k in range(together):
                row, source = k * copy_stride + reach, origin + (i + k) * stride
                for m in range(min(length, head * pair)):
                    copied[row + m] = x[source + m]
            correlate(
                out_flat, i, g, g_origin, g_stride, copied, reach, copy_stride, delay_flat, -batch, inputs, head,
                outputs,
            )  # fmt: skip
    pairs = (length + pair - 1) // pair
    for v in range(head, pairs, chunk):
        count = min(chunk, pairs - v)
        m = v * pair
        for group in range(first, last):
            i = group * together
            x_at = origin + i * stride + m
            correlate(
                out_flat, i, g, g_origin + m, g_stride, x, x_at, stride, delay_flat, -batch, inputs, count, outputs
            )
