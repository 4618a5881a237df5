"""Compiled loops of the delayed layer over the spikes alone, for sparse inputs.

The cost is one addition for each spike and connection. The sums of the forward pass have the order and the rounding of
`snn.kernels.delay.shifted`: which of the two runs changes no bit of the result.

Positions are those of a flattened row, (t * B + b), counted from the start of the history where there is one.
"""

from __future__ import annotations

import numpy as np

from snn.kernels.native.compile import compiled
from snn.kernels.native.vectors import differing, lowest_bit, multiply_add

ROWS = 4
"""Outputs that share one walk over the spikes of an input; their sums stay in the nearest cache."""


SPAN = 4096
"""Numbers that are counted in floating point at a time, which runs in vectors and is exact."""


def _counts_in_vectors(function):
    return compiled(function, fastmath={"reassoc", "nsz"})


@_counts_in_vectors
def _count_row(x):
    zero, one = x.dtype.type(0), x.dtype.type(1)
    found = 0
    for first in range(0, x.shape[0], SPAN):
        part, here = x[first : first + SPAN], zero
        for m in range(part.shape[0]):
            here += one if part[m] != zero else zero
        found += int(here)
    return found


@compiled
def count(x):
    """Non-zero numbers of x (I, M)."""
    found = 0
    for i in range(x.shape[0]):
        found += _count_row(x[i])
    return found


@compiled
def _find_in_row(row, shift, at, positions, width):
    """`find` for one row; its positions go from `at` on."""
    zero, one = row.dtype.type(0), row.dtype.type(1)
    most, others = positions.shape[0], 0
    whole = row.shape[0] // width * width
    for m in range(0, whole, width):
        bits = differing(row, m, zero)
        if bits == 0:
            continue
        if at + width > most:
            return -1, 0
        if bits & differing(row, m, one):
            others += 1
        while bits != 0:
            positions[at] = np.uint64(m + shift) + lowest_bit(bits)
            at += 1
            bits &= bits - np.uint64(1)
    for m in range(whole, row.shape[0]):
        if row[m] != zero:
            if at == most:
                return -1, 0
            others += row[m] != one
            positions[at] = m + shift
            at += 1
    return at, others


@compiled
def find(past, x, starts, positions, width):
    """Where the non-zero numbers of each row of `past` (I, P) and then x (I, M) are, counted from the past's first.

    Row i's positions are `starts[i]..starts[i + 1]`. Returns their number, or -1 where `positions` might not take them
    and `width` more, and whether they are all ones.
    """
    at, others, behind = 0, 0, past.shape[1]
    starts[0] = 0
    for i in range(x.shape[0]):
        at, found = _find_in_row(past[i], 0, at, positions, width)
        others += found
        if at >= 0:
            at, found = _find_in_row(x[i], behind, at, positions, width)
            others += found
        if at < 0:
            return -1, False
        starts[i + 1] = at
    return at, others == 0


@compiled
def take(past, x, starts, positions, values):
    """The numbers at the `positions` that `find` found."""
    before = past.shape[1]
    for i in range(x.shape[0]):
        for e in range(starts[i], starts[i + 1]):
            m = np.int64(positions[e])
            values[e] = past[i, m] if m < before else x[i, m - before]


@compiled
def scatter_rows(y, w, delay, bias, starts, positions, values, batch, longest, before, first, last):
    """`y[j, m] = bias[j] + sum_i w[j, i] * x[i, m - batch * delay[j, i]]` for the outputs first..last.

    Parameters
    ----------
    y : (O, M), written.
    w, delay : (O, I)
    bias : (O,)
    starts : (I + 1,), positions : uint32, values
        Spikes of input i are starts[i]..starts[i + 1]; `values` is empty where all are 1.
    batch, longest, before : int
        B, the longest delay, and the numbers of history before m = 0.
    first, last : int
    """
    inputs, length = w.shape[1], y.shape[1]
    stride = before + length + longest * batch
    sums = np.empty(ROWS * stride, y.dtype)
    for j0 in range(first, last, ROWS):
        rows = min(ROWS, last - j0)
        for r in range(rows):
            sums[r * stride : (r + 1) * stride] = bias[j0 + r]
        for i in range(inputs):
            begin, end = starts[i], starts[i + 1]
            if begin == end:
                continue
            if rows == ROWS:
                w0, w1, w2, w3 = w[j0, i], w[j0 + 1, i], w[j0 + 2, i], w[j0 + 3, i]
                # Unsigned, so that no index is looked at for counting from the end.
                s0 = np.uint64(batch * delay[j0, i])
                s1 = np.uint64(stride + batch * delay[j0 + 1, i])
                s2 = np.uint64(2 * stride + batch * delay[j0 + 2, i])
                s3 = np.uint64(3 * stride + batch * delay[j0 + 3, i])
                if values.shape[0] == 0:
                    for e in range(begin, end):
                        p = np.uint64(positions[e])
                        sums[s0 + p] += w0
                        sums[s1 + p] += w1
                        sums[s2 + p] += w2
                        sums[s3 + p] += w3
                else:
                    for e in range(begin, end):
                        p, v = np.uint64(positions[e]), values[e]
                        sums[s0 + p] = multiply_add(w0, v, sums[s0 + p])
                        sums[s1 + p] = multiply_add(w1, v, sums[s1 + p])
                        sums[s2 + p] = multiply_add(w2, v, sums[s2 + p])
                        sums[s3 + p] = multiply_add(w3, v, sums[s3 + p])
                continue
            for r in range(rows):
                weight, shift = w[j0 + r, i], np.uint64(r * stride + batch * delay[j0 + r, i])
                for e in range(begin, end):
                    p = shift + np.uint64(positions[e])
                    v = values[e] if values.shape[0] else y.dtype.type(1)
                    sums[p] = multiply_add(weight, v, sums[p])
        for r in range(rows):
            y[j0 + r] = sums[r * stride + before : r * stride + before + length]


@compiled
def gather_rows(out, g, delay, starts, positions, values, batch, longest, before, first, last):
    """`out[j, i] = sum_m g[j, m] * x[i, m - batch * delay[j, i]]` for the outputs first..last.

    Parameters
    ----------
    out, delay : (O, I); out is written.
    g : (O, M)
    starts, positions, values, batch, longest, before, first, last
        As in `scatter_rows`.
    """
    inputs, length = out.shape[1], g.shape[1]
    stride = before + length + longest * batch
    copied = np.zeros(ROWS * stride, g.dtype)
    for j0 in range(first, last, ROWS):
        rows = min(ROWS, last - j0)
        for r in range(rows):
            copied[r * stride + before : r * stride + before + length] = g[j0 + r]
        for i in range(inputs):
            begin, end = starts[i], starts[i + 1]
            if rows == ROWS:
                s0 = np.uint64(batch * delay[j0, i])
                s1 = np.uint64(stride + batch * delay[j0 + 1, i])
                s2 = np.uint64(2 * stride + batch * delay[j0 + 2, i])
                s3 = np.uint64(3 * stride + batch * delay[j0 + 3, i])
                a0 = a1 = a2 = a3 = g.dtype.type(0)
                if values.shape[0] == 0:
                    for e in range(begin, end):
                        p = np.uint64(positions[e])
                        a0 += copied[s0 + p]
                        a1 += copied[s1 + p]
                        a2 += copied[s2 + p]
                        a3 += copied[s3 + p]
                else:
                    for e in range(begin, end):
                        p, v = np.uint64(positions[e]), values[e]
                        a0 = multiply_add(copied[s0 + p], v, a0)
                        a1 = multiply_add(copied[s1 + p], v, a1)
                        a2 = multiply_add(copied[s2 + p], v, a2)
                        a3 = multiply_add(copied[s3 + p], v, a3)
                out[j0, i], out[j0 + 1, i], out[j0 + 2, i], out[j0 + 3, i] = a0, a1, a2, a3
                continue
            for r in range(rows):
                shift, total = np.uint64(r * stride + batch * delay[j0 + r, i]), g.dtype.type(0)
                for e in range(begin, end):
                    v = values[e] if values.shape[0] else g.dtype.type(1)
                    total = multiply_add(copied[shift + np.uint64(positions[e])], v, total)
                out[j0 + r, i] = total
