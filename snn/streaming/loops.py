"""Compiled loops of one bin: what a spike sends out, what an awake neuron takes in, and the membrane."""

from __future__ import annotations

import numpy as np

from snn.kernels.native.compile import compiled
from snn.kernels.native.vectors import prefetch

DENSE = 0.8
"""Share of wanted outputs above which going through all of them is faster than through a list of them."""

AHEAD = 2
"""Spikes between asking for a spike's connections and adding them: most are far from the core, in memory."""


@compiled
def scatter(ring, row, w, delay, x, bias, past, out, wanted, stale, give_up):
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
    wanted : bool (B, O)
        Outputs whose sums somebody reads; empty for all.
    stale : bool (B, O)
        Outputs whose sums were given up; written to. None of them may be wanted, see `rebuild`.
    give_up : bool
        Whether the sums of more outputs, those not wanted, are given up with this bin.

    Returns
    -------
    int, int, int
        Non-zero inputs, wanted outputs, and the row of the next bin.
    """
    batch, inputs = x.shape
    blocks, rows, width = ring.shape[1:]
    outputs = out.shape[1]
    bits = np.uint64(0)
    while (1 << bits) < width:
        bits += np.uint64(1)
    sums, weights, delays = ring.ravel(), w.ravel(), delay.ravel()
    spikes, columns = np.empty(inputs + 1, np.int64), np.empty(width + 1, np.int64)
    line = 64 // w.itemsize
    found, wants = 0, 0
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
            left = 0
            if wanted.size:
                for j in range(many):
                    columns[left] = j
                    wants += wanted[b, first + j]
                    stale[b, first + j] = not wanted[b, first + j] and (give_up or stale[b, first + j])
                    left += not stale[b, first + j]
                if left == 0:
                    continue
            few = wanted.size > 0 and left < DENSE * many
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
                if few:
                    for c in range(left):
                        j = columns[c]
                        now[(np.uint64(ds[j]) << bits) + np.uint64(j)] += ws[j] * v
                elif v == 1:
                    for j in range(many):
                        now[(np.uint64(ds[j]) << bits) + np.uint64(j)] += ws[j]
                else:
                    for j in range(many):
                        now[(np.uint64(ds[j]) << bits) + np.uint64(j)] += ws[j] * v
            for j in range(many):
                out[b, first + j] = now[j] + bias[first + j]
    return found, wants if wanted.size else batch * outputs, advance(ring, row)


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
def rebuild(ring, row, w, delay, past, newest, stale, wanted):
    """Make the sums of the outputs anew that were given up and are wanted again, from the inputs of earlier bins.

    Parameters
    ----------
    ring, w, delay, past, newest
        As in `refill`, with the current bin in row `row`.
    stale : bool (B, O)
        Outputs whose sums were given up; written to.
    wanted : bool (B, O)
        Empty for all.
    """
    slots, batch, inputs = past.shape
    outputs, width = stale.shape[1], ring.shape[3]
    columns = np.empty(outputs + 1, np.int64)
    for b in range(batch):
        many = 0
        for j in range(outputs):
            columns[many] = j
            back = stale[b, j] and (wanted.size == 0 or wanted[b, j])
            many += back
            stale[b, j] = stale[b, j] and not back
        for c in range(many):
            block, column = columns[c] // width, columns[c] % width
            for r in range(row, ring.shape[2]):
                ring[b, block, r, column] = 0
        if many == 0:
            continue
        for age in range(1, slots):
            x = past[(newest - age + 1) & (slots - 1), b]
            for i in range(inputs):
                v = x[i]
                if v == 0:
                    continue
                for c in range(many):
                    j = columns[c]
                    ahead = np.int64(delay[i, j]) - age
                    if ahead >= 0:
                        ring[b, j // width, row + ahead, j % width] += w[i, j] * v


@compiled
def gather(out, w, delay, bias, past, newest, awake):
    """Sum the inputs of every awake neuron; `out` (B, O) of the others is left alone.

    Parameters
    ----------
    w, delay : (O, I)
    past : (S, B, I)
        Inputs of the current bin in slot `newest`, of the one before in the slot before it; S a power of two.
    awake : bool (B, O)
        Empty for all.

    Returns
    -------
    int
        Awake outputs.
    """
    slots, batch, inputs = past.shape
    flat, mask, row = past.ravel(), np.uint64(slots - 1), np.uint64(batch * inputs)
    now = np.uint64(newest + slots)
    found = 0
    for b in range(batch):
        first = np.uint64(b * inputs)
        for j in range(out.shape[1]):
            if awake.size and not awake[b, j]:
                continue
            found += 1
            weights, delays, total = w[j], delay[j], out.dtype.type(0)
            for i in range(inputs):
                total += weights[i] * flat[((now - np.uint64(delays[i])) & mask) * row + first + np.uint64(i)]
            out[b, j] = total + bias[j]
    return found


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


@compiled
def dormant_membrane(v, gate, alive, current, spikes, wakes, beta, threshold, dormancy_threshold, reset):
    """One step of dormant neurons, all (B, N): `v` and `gate` are stepped in place, `spikes` written.

    `alive` holds whether the next test of the gate will be passed; `wakes` (B,) the trials whose dormant neurons wake,
    or nothing. Returns the number of membranes that are no numbers.
    """
    one, zero = v.dtype.type(1), v.dtype.type(0)
    lost = 0
    for b in range(v.shape[0]):
        waking = wakes.size > 0 and wakes[b]
        for n in range(v.shape[1]):
            spikes[b, n] = zero
            before = v[b, n]
            if waking and gate[b, n] == zero:
                gate[b, n], before = one, zero
            elif not alive[b, n]:
                gate[b, n] = zero
                continue
            u = beta * before + current[b, n]
            lost += u != u
            fired = u > threshold
            spikes[b, n] = one if fired else zero
            if fired and reset == 0:
                u = zero
            elif fired and reset == 1:
                u = u - threshold
            v[b, n] = u
            alive[b, n] = u > dormancy_threshold
    return lost
