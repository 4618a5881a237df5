"""Dormant Spiking Neurons, one neuron and one step at a time, in NumPy float64."""

import numpy as np


def dormant_lif(current, beta, threshold=1.0, gate=-0.05, reset="zero", start=None, awake=None, wake=None):
    """`current` (T, B, N) -> dict of spikes, awake, membranes before and after the reset, each (T, B, N).

    `start` (B, N) and `awake` (B, N) are the state before the first step; `wake` (T, B) marks the steps at whose
    beginning dormant neurons wake at rest.
    """
    steps, batch, neurons = current.shape
    out = {name: np.zeros(current.shape) for name in ("spikes", "awake", "before", "after")}
    for b in range(batch):
        for n in range(neurons):
            v = 0.0 if start is None else float(start[b, n])
            d = 1.0 if awake is None else float(awake[b, n])
            for t in range(steps):
                if wake is not None and wake[t, b] and d == 0:
                    d, v = 1.0, 0.0
                if not v > gate:
                    d = 0.0
                v = beta * v + float(current[t, b, n])
                out["before"][t, b, n] = v
                s = d if v > threshold else 0.0
                if s:
                    v = {"zero": 0.0, "subtract": v - threshold, "none": v}[reset]
                out["spikes"][t, b, n], out["awake"][t, b, n], out["after"][t, b, n] = s, d, v
    return out


def dormant_gradient(
    trace, start, awake, wake, slope, gate_slope, grad_spikes, grad_membrane, grad_awake, beta, threshold, gate, reset
):
    """Gradients of `current`, of the start membrane and of the start's D, with the reset detached.

    `trace` is what `dormant_lif` returned; `slope(x)` and `gate_slope(x)` are the surrogates' derivatives.
    """
    before, after = trace["before"], trace["after"]
    grad_current = np.zeros(before.shape)
    steps, batch, neurons = before.shape
    grad_start, grad_first = np.zeros((batch, neurons)), np.zeros((batch, neurons))
    for b in range(batch):
        for n in range(neurons):
            gv, ga = float(grad_membrane[b, n]), float(grad_awake[b, n])
            for t in reversed(range(steps)):
                v_last = after[t - 1, b, n] if t else float(start[b, n])
                d_last = trace["awake"][t - 1, b, n] if t else float(awake[b, n])
                wakes = bool(wake is not None and wake[t, b])
                woken = wakes and d_last == 0
                v_last, d_last = (0.0 if woken else v_last), (1.0 if wakes else d_last)
                d, v = trace["awake"][t, b, n], before[t, b, n]
                g = float(grad_spikes[t, b, n])
                # Through s = D * step(v - threshold), and through the membrane kept where it was not reset.
                kept = 1.0 - trace["spikes"][t, b, n] if reset == "zero" else 1.0
                to_d = ga + g * float(v > threshold)
                to_v = gv * kept + g * d * slope(v - threshold)
                grad_current[t, b, n] = to_v
                # Through D = D_last * step(v_last - gate).
                gv = beta * to_v + to_d * d_last * gate_slope(v_last - gate)
                ga = to_d * float(v_last > gate)
                gv, ga = (0.0 if woken else gv), (0.0 if wakes else ga)
            grad_start[b, n], grad_first[b, n] = gv, ga
    return grad_current, grad_start, grad_first
