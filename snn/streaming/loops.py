"""Compiled loops of one bin: what a spike sends out, what an awake neuron takes in, and the membrane."""

from __future__ import annotations

import numpy as np

from snn.kernels.native.compile import compiled


@compiled
def scatter(ring, slot, w, delay, x):
    """Add the connections of every non-zero input to the bins that they reach.

    Parameters
    ----------
    ring : (S, B, O)
        Sums of the current bin in slot `slot`, of the next in the one after it, and so on round; S a power of two.
    w, delay : (I, O)
    x : (B, I)

    Returns
    -------
    int
        Non-zero inputs.
    """
    slots, batch, outputs = ring.shape
    flat, mask, row = ring.ravel(), np.uint64(slots - 1), np.uint64(batch * outputs)
    found = 0
    for b in range(batch):
        for i in range(x.shape[1]):
            v = x[b, i]
            if v == 0:
                continue
            found += 1
            first, weights, delays = np.uint64(b * outputs), w[i], delay[i]
            now = np.uint64(slot)
            if v == 1:
                for j in range(outputs):
                    at = ((now + np.uint64(delays[j])) & mask) * row + first + np.uint64(j)
                    flat[at] += weights[j]
            else:
                for j in range(outputs):
                    at = ((now + np.uint64(delays[j])) & mask) * row + first + np.uint64(j)
                    flat[at] += weights[j] * v
    return found


@compiled
def refill(ring, slot, w, delay, past, newest):
    """What the inputs of earlier bins still send to the current bin (`slot`) and to later ones, into an empty ring.

    `past` (S, B, I) holds the input of the bin before in slot `newest`, of the one before that in the slot before it.
    """
    slots, batch, outputs = ring.shape
    for age in range(1, slots):
        x = past[(newest - age + 1) & (slots - 1)]
        for b in range(batch):
            for i in range(x.shape[1]):
                v = x[b, i]
                if v == 0:
                    continue
                for j in range(outputs):
                    ahead = np.int64(delay[i, j]) - age
                    if ahead >= 0:
                        ring[(slot + ahead) & (slots - 1), b, j] += w[i, j] * v


@compiled
def gather(out, w, delay, past, newest, awake):
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
            out[b, j] = total


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
