"""Compiled loops of the delayed layer: shifted accumulation, whole sequences, any input.

Rows are channels, (N, T * B). Columns of the batch are taken a vector at a time where they come in whole vectors, else
all at once; in such a strip, time after time, a delay of d bins is a shift of d * strip numbers. What the loops read is
first copied to a window that stays in the nearest cache, with zeros where nothing was recorded. The cost does not grow
with the delays.
"""

from __future__ import annotations

from snn.kernels.native.compile import compiled
from snn.kernels.native.memory import scratch
from snn.kernels.native.vectors import (
    accumulate_1,
    accumulate_2,
    accumulate_4,
    accumulate_8,
    accumulate_16,
    correlate,
    move,
)


@compiled
def _pack(window, at, row, past, batch, column, strip, begin, count, width):
    """Copy numbers begin..begin + count of the strip at `column` of a row (M,) that follows `past` (P,), else zeros.

    Numbers before 0 lie in the past. `count` is a multiple of `width`; so is `begin` where the strip is one vector.
    """
    low, high = begin, begin + count
    first = min(max(-(past.shape[0] // batch) * strip, low), high)
    last = min(max(row.shape[0] // batch * strip, first), high)
    window[at : at + first - low] = 0
    window[at + last - low : at + count] = 0
    middle = min(max(0, first), last)
    at -= low
    if strip == batch:
        behind = past.shape[0]
        for p in range(first, middle):
            window[at + p] = past[behind + p]
        p = middle
        while p + width <= last:
            move(window, at + p, row, p)
            p += width
        while p < last:
            window[at + p] = row[p]
            p += 1
        return
    source = past.shape[0] + column + first // strip * batch
    for p in range(first, middle, width):
        move(window, at + p, past, source)
        source += batch
    source = column + middle // strip * batch
    for p in range(middle, last, width):
        move(window, at + p, row, source)
        source += batch


@compiled
def strip_of(batch, width):
    """Columns of the batch that are worked on together."""
    return width if batch % width == 0 else batch


@compiled
def _line(size, width):
    """Room for a row of `size` numbers: an odd number of vectors, so that rows do not fall on the same cache lines."""
    vectors = (size + width - 1) // width
    return (vectors + 1 - vectors % 2) * width


@compiled
def tiles_of(steps, batch, width):
    """Blocks of sixteen vectors that `accumulate_rows` computes `steps` bins in."""
    strip = strip_of(batch, width)
    return batch // strip * ((steps * strip + 16 * width - 1) // (16 * width))


@compiled
def accumulate_rows(y, x, past, w, delay, bias, batch, sign, longest, begin, width, first, last):
    """`y[j, t, b] = bias[j] + sum_i w[j, i] * x[i, begin + t + sign * delay[j, i], b]` for the blocks first..last.

    Parameters
    ----------
    y : (O, S * B), written.
    x : (I, T * B)
    past : (I, P * B)
        What came before x; silence further back and behind.
    w, delay : (I / R, O, R)
        Packed for the walk through memory: R neighbouring inputs of all outputs, then the next R. Zeros fill the last.
    bias : (O,)
    batch, sign, longest : int
        B; -1 to read the past or 1 to read what comes; the longest delay.
    begin : int
        Time of the first step of y.
    width : int
        Numbers in one vector.
    first, last : int
        Of the `tiles_of` y.
    """
    groups, outputs, together = w.shape
    inputs, tile, strip = x.shape[0], 16 * width, strip_of(batch, width)
    length = y.shape[1] // max(1, batch) * strip
    tiles = (length + tile - 1) // tile
    w_flat, delay_flat = w.ravel(), delay.ravel()
    reach = longest * strip
    # With the delays in the past the window begins that much earlier.
    lead = reach if sign < 0 else 0
    stride = _line(reach + tile, width)
    window = scratch(together * stride, y)
    # The sums of one tile lie close together: in y they would be a row apart, each in a page of its own.
    sums = scratch(outputs * tile, y)
    for number in range(first, last):
        column, m = number // tiles * strip, number % tiles * tile
        size = min(tile, length - m)
        for j in range(outputs):
            for k in range(tile):
                sums[j * tile + k] = bias[j]
        for group in range(groups):
            rows = min(together, inputs - group * together)
            for k in range(rows):
                i = group * together + k
                start = begin * strip + m - lead
                _pack(window, k * stride, x[i], past[i], batch, column, strip, start, stride, width)
            # Their weights are zeros, and what a group before left here may be infinite.
            window[rows * stride :] = 0
            w_at, step = group * outputs * together, sign * strip
            # As wide as the last block must be.
            if size > 8 * width:
                accumulate_16(sums, window, lead, stride, w_flat, w_at, delay_flat, step, together, outputs)
            elif size > 4 * width:
                accumulate_8(sums, window, lead, stride, w_flat, w_at, delay_flat, step, together, outputs)
            elif size > 2 * width:
                accumulate_4(sums, window, lead, stride, w_flat, w_at, delay_flat, step, together, outputs)
            elif size > width:
                accumulate_2(sums, window, lead, stride, w_flat, w_at, delay_flat, step, together, outputs)
            else:
                accumulate_1(sums, window, lead, stride, w_flat, w_at, delay_flat, step, together, outputs)
        for j in range(outputs):
            if strip == batch:
                y[j, m : m + size] = sums[j * tile : j * tile + size]
            else:
                target = column + m // strip * batch
                for k in range(0, size, width):
                    move(y[j], target, sums, j * tile + k)
                    target += batch


@compiled
def correlate_rows(out, g, x, past, delay, batch, longest, chunk, width, together, first, last):
    """`out[j, i] = sum_tb g[j, t, b] * x[i, t - delay[j, i], b]` for groups first..last of i.

    Parameters
    ----------
    out, delay : (O, I), I a multiple of `together`; out is written.
    g : (O, T * B)
    x : (I or fewer, T * B), past : (I or fewer, P * B)
        As in `accumulate_rows`.
    batch, longest : int
        B, and the longest delay.
    chunk : int
        Pairs of vectors that stay in the nearest cache while all of g passes.
    width, together : int
        Numbers in one vector, and rows of x in a group.
    first, last : int
    """
    outputs, inputs = out.shape
    out_flat, delay_flat = out.ravel(), delay.ravel()
    strip, pair = strip_of(batch, width), 2 * width
    length, reach = g.shape[1] // max(1, batch) * strip, longest * strip
    most = chunk * pair
    stride, g_stride = _line(reach + most, width), _line(most, width)
    window, left = scratch(together * stride, x), scratch(outputs * g_stride, x)
    window[:] = 0
    for j in range(outputs):
        for i in range(first * together, last * together):
            out_flat[j * inputs + i] = 0
    for column in range(0, batch, strip):
        for m in range(0, length, most):
            count = min(chunk, (length - m + pair - 1) // pair)
            for j in range(outputs):
                _pack(left, j * g_stride, g[j], g[j, :0], batch, column, strip, m, count * pair, width)
            for group in range(first, last):
                i = group * together
                for k in range(min(together, x.shape[0] - i)):
                    size = _line(reach + count * pair, width)
                    _pack(window, k * stride, x[i + k], past[i + k], batch, column, strip, m - reach, size, width)
                correlate(
                    out_flat, i, left, 0, g_stride, window, reach, stride, delay_flat, -strip, inputs, count, outputs
                )
