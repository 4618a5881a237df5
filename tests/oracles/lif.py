"""Leaky integrate-and-fire neurons, one neuron and one step at a time, in NumPy float64."""

import numpy as np


def lif(current, beta, threshold=1.0, reset="zero", start=None):
    """`current` (T, B, N) -> spikes, membranes before the reset, membranes after it, each (T, B, N)."""
    steps, batch, neurons = current.shape
    spikes, before, after = (np.zeros(current.shape) for _ in range(3))
    for b in range(batch):
        for n in range(neurons):
            v = 0.0 if start is None else float(start[b, n])
            for t in range(steps):
                v = beta * v + float(current[t, b, n])
                before[t, b, n] = v
                if v > threshold:
                    spikes[t, b, n] = 1.0
                    if reset == "zero":
                        v = 0.0
                    elif reset == "subtract":
                        v = v - threshold
                after[t, b, n] = v
    return spikes, before, after


def lif_gradient(before, spikes, slope, grad_spikes, grad_last, beta, reset="zero"):
    """Gradient of `current` and of the start membrane, with the reset detached.

    `slope` is the surrogate's derivative at each membrane before its reset; all (T, B, N), `grad_last` (B, N).
    """
    grad_current = np.zeros(before.shape)
    carried = grad_last.astype(float).copy()
    for t in reversed(range(before.shape[0])):
        passed = 1.0 - spikes[t] if reset == "zero" else 1.0
        grad_current[t] = grad_spikes[t] * slope[t] + carried * passed
        carried = beta * grad_current[t]
    return grad_current, carried
