"""Compiled loops of the leaky integrate-and-fire neuron, fused over time, forward and backward.

Arrays are (P, T, Q): T is stepped through, Q is contiguous. A unit of work is one p and some neighbours of Q, whose
membranes stay in the nearest cache for the whole sequence. The way back computes them again.
"""

from __future__ import annotations

import math

import numpy as np

from snn.kernels.lif.vectors import (
    GROUP,
    back_none,
    back_subtract,
    back_zero,
    membranes_none,
    membranes_subtract,
    membranes_zero,
    spikes_none,
    spikes_subtract,
    spikes_zero,
)
from snn.kernels.native.compile import compiled
from snn.kernels.native.memory import scratch

SCRATCH = 1 << 19
"""Membranes of a unit over the whole sequence, at most so many, that stay in the nearer cache on the way back."""


def unit_of(steps: int, width: int, parts: int) -> int:
    """Neurons that are stepped together, out of `width` in a row: a multiple of 16, and work for all `parts`."""
    most = min(2048, SCRATCH // max(1, steps), -(-width // parts))
    return max(16, most // 16 * 16)


@compiled
def _slope(kind, a, threshold, v, out):
    """Slope of surrogate `kind` (a place in `operator.KERNEL_IDS`) with parameter `a` at membranes `v`, into `out`."""
    one = v.dtype.type(1)
    if kind == 0:
        half, scale = v.dtype.type(a / 2), v.dtype.type(math.pi / 2 * a)
        for q in range(v.shape[0]):
            x = scale * (v[q] - threshold)
            out[q] = half / (one + x * x)
    elif kind == 1:
        k = v.dtype.type(a)
        for q in range(v.shape[0]):
            x = one + k * abs(v[q] - threshold)
            out[q] = one / (x * x)
    elif kind == 2:
        k = v.dtype.type(a)
        for q in range(v.shape[0]):
            s = one / (one + np.exp(-k * (v[q] - threshold)))
            out[q] = k * s * (one - s)
    else:
        w = v.dtype.type(a)
        for q in range(v.shape[0]):
            out[q] = max(one - abs(v[q] - threshold) / w, v.dtype.type(0)) / w


@compiled
def _reset(v, threshold, reset):
    """What becomes of the membranes `v` where they are above the threshold."""
    zero = v.dtype.type(0)
    if reset == 0:
        for q in range(v.shape[0]):
            v[q] = zero if v[q] > threshold else v[q]
    elif reset == 1:
        for q in range(v.shape[0]):
            v[q] = v[q] - threshold if v[q] > threshold else v[q]


@compiled
def forward(current, start, spikes, last, beta, threshold, reset, unit, first, stop):
    """Units first..stop: spikes (P, T, Q) and the membrane `last` (P, Q)."""
    _, steps, width = current.shape
    units = (width + unit - 1) // unit
    one, zero = current.dtype.type(1), current.dtype.type(0)
    v = np.empty(unit, current.dtype)
    for u in range(first, stop):
        p, q0 = u // units, (u % units) * unit
        size = min(unit, width - q0)
        for q in range(size):
            v[q] = start[p, q0 + q]
        for t in range(steps):
            row, fired = current[p, t, q0 : q0 + size], spikes[p, t, q0 : q0 + size]
            for q in range(size):
                v[q] = beta * v[q] + row[q]
                fired[q] = one if v[q] > threshold else zero
            _reset(v[:size], threshold, reset)
        for q in range(size):
            last[p, q0 + q] = v[q]


@compiled
def backward(
    grad, grad_last, current, start, grad_current, grad_start, beta, threshold, reset, kind, a, unit, first, stop
):
    """Units first..stop of the gradients of the currents (P, T, Q) and of the start (P, Q), the reset detached."""
    _, steps, width = grad.shape
    units = (width + unit - 1) // unit
    zero = grad.dtype.type(0)
    carried, slope = np.empty(unit, grad.dtype), np.empty(unit, grad.dtype)
    membranes, after = np.empty((steps, unit), grad.dtype), np.empty(unit, grad.dtype)
    for u in range(first, stop):
        p, q0 = u // units, (u % units) * unit
        size = min(unit, width - q0)
        for q in range(size):
            after[q] = start[p, q0 + q]
            carried[q] = grad_last[p, q0 + q]
        for t in range(steps):
            v, row = membranes[t], current[p, t, q0 : q0 + size]
            for q in range(size):
                v[q] = beta * after[q] + row[q]
                after[q] = v[q]
            _reset(after[:size], threshold, reset)
        for t in range(steps - 1, -1, -1):
            v, g = membranes[t, :size], grad[p, t, q0 : q0 + size]
            out = grad_current[p, t, q0 : q0 + size]
            _slope(kind, a, threshold, v, slope)
            if reset == 0:
                for q in range(size):
                    out[q] = (zero if v[q] > threshold else carried[q]) + g[q] * slope[q]
            else:
                for q in range(size):
                    out[q] = carried[q] + g[q] * slope[q]
            for q in range(size):
                carried[q] = beta * out[q]
        for q in range(size):
            grad_start[p, q0 + q] = carried[q]


@compiled
def _places(bases, ends, group, vectors, lanes, width, steps):
    """Where the vectors of a group begin in (P, T, Q) and in (P, Q); the last group may hold its last vector twice."""
    for k in range(GROUP):
        n = min(group * GROUP + k, vectors - 1) * lanes
        bases[k] = n // width * width * steps + n % width
        ends[k] = n


@compiled
def _take(held, plane, ends, lanes):
    for k in range(GROUP):
        for lane in range(lanes):
            held[k * lanes + lane] = plane[ends[k] + lane]


@compiled
def _give(held, plane, ends, lanes):
    for k in range(GROUP):
        for lane in range(lanes):
            plane[ends[k] + lane] = held[k * lanes + lane]


@compiled
def forward_vectors(current, start, spikes, last, beta, threshold, reset, lanes, first, stop):
    """As `forward`, for Q of whole vectors: groups first..stop of `GROUP` vectors."""
    _, steps, width = current.shape
    x, y, begin, end = current.ravel(), spikes.ravel(), start.ravel(), last.ravel()
    size, vectors = GROUP * lanes, start.size // lanes
    bases, ends, v = np.empty(GROUP, np.int64), np.empty(GROUP, np.int64), scratch(size, current)
    for g in range(first, stop):
        _places(bases, ends, g, vectors, lanes, width, steps)
        _take(v, begin, ends, lanes)
        if reset == 0:
            spikes_zero(x, y, bases, 0, 0, 0, width, v, beta, threshold, steps)
        elif reset == 1:
            spikes_subtract(x, y, bases, 0, 0, 0, width, v, beta, threshold, steps)
        else:
            spikes_none(x, y, bases, 0, 0, 0, width, v, beta, threshold, steps)
        _give(v, end, ends, lanes)


@compiled
def backward_vectors(
    grad, grad_last, current, start, grad_current, grad_start, beta, threshold, reset, kind, a, lanes, first, stop
):
    """As `backward`, for Q of whole vectors: groups first..stop of `GROUP` vectors."""
    _, steps, width = grad.shape
    g_in, x, out = grad.ravel(), current.ravel(), grad_current.ravel()
    begin, g_last, g_start = start.ravel(), grad_last.ravel(), grad_start.ravel()
    size, vectors = GROUP * lanes, start.size // lanes
    bases, ends, held = np.empty(GROUP, np.int64), np.empty(GROUP, np.int64), scratch(size, grad)
    membranes, slopes = scratch(steps * size, grad), scratch(steps * size, grad)
    for g in range(first, stop):
        _places(bases, ends, g, vectors, lanes, width, steps)
        _take(held, begin, ends, lanes)
        if reset == 0:
            membranes_zero(x, membranes, bases, 0, lanes, size, width, held, beta, threshold, steps)
        elif reset == 1:
            membranes_subtract(x, membranes, bases, 0, lanes, size, width, held, beta, threshold, steps)
        else:
            membranes_none(x, membranes, bases, 0, lanes, size, width, held, beta, threshold, steps)
        _slope(kind, a, threshold, membranes, slopes)
        _take(held, g_last, ends, lanes)
        if reset == 0:
            back_zero(g_in, out, bases, 0, width, membranes, slopes, held, beta, threshold, steps)
        elif reset == 1:
            back_subtract(g_in, out, bases, 0, width, membranes, slopes, held, beta, threshold, steps)
        else:
            back_none(g_in, out, bases, 0, width, membranes, slopes, held, beta, threshold, steps)
        _give(held, g_start, ends, lanes)
