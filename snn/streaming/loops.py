"""Compiled loops of one bin: what a spike sends out, what an awake neuron takes in, and the membrane."""

from __future__ import annotations

import numpy as np

from snn.kernels.native.compile import compiled
from snn.kernels.native.vectors import prefetch

AHEAD = 2
"""Spikes between asking for a spike's connections and adding them: most are far from the core, in memory."""


@compiled
def scatter(ring, row, w, delay, x, bias, past, out):
    """One bin: add the connections of every non-zero input to the bins that they reach, and hand out the current bin.

    Blocks of outputs are done one after the other, so that the sums which a block's spikes fall into stay in the
    nearest cache.

    Parameters
    ----------
    ring : (B, blocks, R, width)
        Sums of the current bin in row `row`, of the next ones in those after it; all earlier rows are spent. Outputs
        are dealt to blocks of `width`, a power of two; R is above twice the longest delay.
    w, delay : (I, O)
    x : (B, I)
    bias : (O,)
    past : (B, I)
        Receives `x`.
    out : (B, O)
        Receives the sums of the current bin.

    Returns
    -------
    int, int
        Non-zero inputs, and the row of the next bin.
    """
    batch, inputs = x.shape
    blocks, rows, width = ring.shape[1:]
    outputs = out.shape[1]
    bits = np.uint64(0)
    while (1 << bits) < width:
        bits += np.uint64(1)
    sums, weights, delays = ring.ravel(), w.ravel(), delay.ravel()
    spikes = np.empty(inputs + 1, np.int64)
    line = 64 // w.itemsize
    found = 0
    for b in range(batch):
        n = 0
        for i in range(inputs):
            past[b, i] = x[b, i]
            spikes[n] = i
            n += x[b, i] != 0
        found += n
        for block in range(blocks):
            first = block * width
            many = min(width, outputs - first)
            now = sums[((b * blocks + block) * rows + row) * width :]
            for k in range(n):
                v, here = x[b, spikes[k]], spikes[k] * outputs + first
                if k + AHEAD < n:
                    after = spikes[k + AHEAD] * outputs + first
                    for j in range(0, many, line):
                        prefetch(weights, after + j)
                    for j in range(0, many, 64 // delay.itemsize):
                        prefetch(delays, after + j)
                # Slices that begin where the loop does leave it nothing to compute but the row.
                ws, ds = weights[here : here + many], delays[here : here + many]
                if v == 1:
                    for j in range(many):
                        now[(np.uint64(ds[j]) << bits) + np.uint64(j)] += ws[j]
                else:
                    for j in range(many):
                        now[(np.uint64(ds[j]) << bits) + np.uint64(j)] += ws[j] * v
            for j in range(many):
                out[b, first + j] = now[j] + bias[first + j]
    return found, advance(ring, row)


@compiled
def advance(ring, row):
    """The row of the next bin; where too few are left for the longest delay, what is still owed moves to the front."""
    batch, blocks, rows, _ = ring.shape
    row += 1
    if row < rows // 2:
        return row
    left = rows - row
    for b in range(batch):
        for block in range(blocks):
            part = ring[b, block]
            for r in range(left):
                part[r] = part[row + r]
            part[left:] = 0
    return 0


@compiled
def refill(ring, w, delay, past, newest):
    """What the inputs of earlier bins still send to the current bin (row 0) and to later ones, into an empty ring.

    `past` (S, B, I) holds the input of the bin before in slot `newest`, of the one before that in the slot before it.
    """
    slots, batch, inputs = past.shape
    width = ring.shape[3]
    for age in range(1, slots):
        x = past[(newest - age + 1) & (slots - 1)]
        for b in range(batch):
            for i in range(inputs):
                v = x[b, i]
                if v == 0:
                    continue
                for j in range(delay.shape[1]):
                    ahead = np.int64(delay[i, j]) - age
                    if ahead >= 0:
                        ring[b, j // width, ahead, j % width] += w[i, j] * v


@compiled
def gather(out, w, delay, bias, past, newest, awake):
    """Sum the inputs of every awake neuron; `out` (B, O) of the others is left alone.

    Parameters
    ----------
    w, delay : (O, I)
    past : (S, B, I)
        Inputs of the current bin in slot `newest`, of the one before in the slot before it; S a power of two.
    awake : uint8 (B, O)
    """
    slots, batch, inputs = past.shape
    flat, mask, row = past.ravel(), np.uint64(slots - 1), np.uint64(batch * inputs)
    now = np.uint64(newest + slots)
    for b in range(batch):
        first = np.uint64(b * inputs)
        for j in range(out.shape[1]):
            if not awake[b, j]:
                continue
            weights, delays, total = w[j], delay[j], out.dtype.type(0)
            for i in range(inputs):
                total += weights[i] * flat[((now - np.uint64(delays[i])) & mask) * row + first + np.uint64(i)]
            out[b, j] = total + bias[j]


@compiled
def membrane(v, current, spikes, beta, threshold, reset):
    """One step of leaky integrate-and-fire neurons, all (B, N): `v` is stepped in place, `spikes` written."""
    one, zero = v.dtype.type(1), v.dtype.type(0)
    for b in range(v.shape[0]):
        for n in range(v.shape[1]):
            u = beta * v[b, n] + current[b, n]
            fired = u > threshold
            spikes[b, n] = one if fired else zero
            if fired and reset == 0:
                u = zero
            elif fired and reset == 1:
                u = u - threshold
            v[b, n] = u
