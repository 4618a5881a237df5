"""Compiled loops of the Dormant Spiking Neuron, fused over time, forward and backward.

Arrays are (P, T, Q) as in `snn.kernels.lif.fused`: T is stepped through, Q is contiguous; a unit of work is one p and
some neighbours of Q, whose state stays in the nearest cache for the whole sequence. `wake` is (T, Q), the same for
every p, or empty.
"""

from __future__ import annotations

import numpy as np

from snn.kernels.lif.fused import _slope, unit_of
from snn.kernels.native.compile import compiled

__all__ = ["backward", "forward", "unit_of"]


@compiled
def _waken(v, awake, wake):
    """Dormant neurons wake at rest where `wake` says so; what is not a number stays so, to be found."""
    one, zero = v.dtype.type(1), v.dtype.type(0)
    for q in range(v.shape[0]):
        v[q] = zero if wake[q] and awake[q] == zero and v[q] == v[q] else v[q]
        awake[q] = one if wake[q] else awake[q]


@compiled
def _step(v, awake, row, fired, beta, threshold, gate, reset):
    """One step: the gate's test, the membrane, spikes into `fired`, the reset."""
    zero = v.dtype.type(0)
    for q in range(v.shape[0]):
        d = awake[q] if v[q] > gate else zero
        u = beta * v[q] + row[q]
        s = d if u > threshold else zero
        fired[q] = s
        awake[q] = d
        after_zero = u if s == zero else zero
        after_subtract = u - threshold * s
        v[q] = after_zero if reset == 0 else (after_subtract if reset == 1 else u)


@compiled
def forward(
    current, start, first_awake, wake, spikes, last, last_awake, beta, threshold, gate, reset, unit, first, stop
):
    """Units first..stop: spikes (P, T, Q), the membrane `last` and the gate `last_awake` (P, Q)."""
    _, steps, width = current.shape
    units = (width + unit - 1) // unit
    wakes = wake.size > 0
    held, gates = np.empty(unit, current.dtype), np.empty(unit, current.dtype)
    for u in range(first, stop):
        p, q0 = u // units, (u % units) * unit
        size = min(unit, width - q0)
        v, awake = held[:size], gates[:size]
        for q in range(size):
            v[q] = start[p, q0 + q]
            awake[q] = first_awake[p, q0 + q]
        for t in range(steps):
            if wakes:
                _waken(v, awake, wake[t, q0 : q0 + size])
            row, fired = current[p, t, q0 : q0 + size], spikes[p, t, q0 : q0 + size]
            _step(v, awake, row, fired, beta, threshold, gate, reset)
        for q in range(size):
            last[p, q0 + q] = v[q]
            last_awake[p, q0 + q] = awake[q]


@compiled
def _slope_or_none(kind, a, threshold, v, out):
    """Slope of surrogate `kind` at membranes `v`; 0 for a kind below 0, through which no gradient passes."""
    if kind < 0:
        out[:] = 0
    else:
        _slope(kind, a, threshold, v, out)


@compiled
def backward(
    grad, grad_last, grad_last_awake, current, start, first_awake, wake, grad_current, grad_start, grad_first_awake,
    beta, threshold, gate, reset, kind, a, gate_kind, gate_a, unit, first, stop,
):  # fmt: skip
    """Units first..stop of the gradients of the currents (P, T, Q), of the start and of the first gate (P, Q)."""
    _, steps, width = grad.shape
    units = (width + unit - 1) // unit
    wakes = wake.size > 0
    kind_of = grad.dtype
    carried, carried_awake = np.empty(unit, kind_of), np.empty(unit, kind_of)
    held, gates = np.empty(unit, kind_of), np.empty(unit, kind_of)
    # Of every step: the membrane and gate that its test met, the gate after it, the membrane before the reset, spikes.
    met, met_awake = np.zeros((steps, unit), kind_of), np.zeros((steps, unit), kind_of)
    awakes, membranes = np.zeros((steps, unit), kind_of), np.zeros((steps, unit), kind_of)
    fired = np.zeros((steps, unit), kind_of)
    slopes, gate_slopes = np.empty((steps, unit), kind_of), np.empty((steps, unit), kind_of)
    for u in range(first, stop):
        p, q0 = u // units, (u % units) * unit
        size = min(unit, width - q0)
        v, awake = held[:size], gates[:size]
        for q in range(size):
            v[q] = start[p, q0 + q]
            awake[q] = first_awake[p, q0 + q]
        for t in range(steps):
            if wakes:
                _waken(v, awake, wake[t, q0 : q0 + size])
            row = current[p, t, q0 : q0 + size]
            met[t, :size] = v
            met_awake[t, :size] = awake
            _integrate(membranes[t, :size], v, row, beta)
            _step(v, awake, row, fired[t, :size], beta, threshold, gate, reset)
            awakes[t, :size] = awake
        # In one go: calls for a few numbers at each step would take longer than the numbers. A last unit that is
        # narrower has more of them made than are read.
        _slope(kind, a, threshold, membranes.ravel(), slopes.ravel())
        _times(slopes.ravel(), awakes.ravel())
        _slope_or_none(gate_kind, gate_a, gate, met.ravel(), gate_slopes.ravel())
        _times(gate_slopes.ravel(), met_awake.ravel())
        c, to_gate = carried[:size], carried_awake[:size]
        for q in range(size):
            c[q] = grad_last[p, q0 + q]
            to_gate[q] = grad_last_awake[p, q0 + q]
        for t in range(steps - 1, -1, -1):
            g, out = grad[p, t, q0 : q0 + size], grad_current[p, t, q0 : q0 + size]
            _add_above(to_gate, g, membranes[t, :size], threshold)
            if reset == 0:
                _clear_where(c, fired[t, :size])
            _add_product(c, g, slopes[t, :size])
            out[:] = c
            _decay(c, beta, to_gate, gate_slopes[t, :size])
            _keep_above(to_gate, met[t, :size], gate)
            if wakes and t:
                _cut(c, to_gate, wake[t, q0 : q0 + size], awakes[t - 1, :size])
            elif wakes:
                _cut(c, to_gate, wake[t, q0 : q0 + size], first_awake[p, q0 : q0 + size])
        for q in range(size):
            grad_start[p, q0 + q] = c[q]
            grad_first_awake[p, q0 + q] = to_gate[q]


# Loops of few arrays each: LLVM runs them in vectors only where it can rule out that the arrays overlap.


@compiled
def _integrate(out, v, row, beta):
    for q in range(out.shape[0]):
        out[q] = beta * v[q] + row[q]


@compiled
def _times(x, y):
    for q in range(x.shape[0]):
        x[q] *= y[q]


@compiled
def _add_above(x, g, v, threshold):
    zero = x.dtype.type(0)
    for q in range(x.shape[0]):
        x[q] += g[q] if v[q] > threshold else zero


@compiled
def _clear_where(x, fired):
    zero = x.dtype.type(0)
    for q in range(x.shape[0]):
        x[q] = zero if fired[q] != zero else x[q]


@compiled
def _add_product(x, g, slope):
    for q in range(x.shape[0]):
        x[q] += g[q] * slope[q]


@compiled
def _decay(x, beta, y, slope):
    for q in range(x.shape[0]):
        x[q] = beta * x[q] + y[q] * slope[q]


@compiled
def _keep_above(x, v, gate):
    zero = x.dtype.type(0)
    for q in range(x.shape[0]):
        x[q] = x[q] if v[q] > gate else zero


@compiled
def _cut(carried, carried_awake, wake, awake_before):
    """No gradient passes a waking: the gate was set, and the membrane of a dormant neuron with it."""
    zero = carried.dtype.type(0)
    for q in range(wake.shape[0]):
        carried[q] = zero if wake[q] and awake_before[q] == zero else carried[q]
        carried_awake[q] = zero if wake[q] else carried_awake[q]
