"""Synaptic events as their definition says them, one connection and one step at a time.

Each function returns (T, B, *outputs): connections of each output whose weight and input both differ from zero.
"""

import numpy as np


def linear(x, weight):
    """`x` (T, B, I), `weight` (O, I)."""
    steps, batch, inputs = x.shape
    events = np.zeros((steps, batch, len(weight)), dtype=np.int64)
    for t in range(steps):
        for b in range(batch):
            for j in range(len(weight)):
                for i in range(inputs):
                    if weight[j, i] != 0 and x[t, b, i] != 0:
                        events[t, b, j] += 1
    return events


def delayed(x, weight, delay, history=None):
    """`x` (T, B, I), `weight` and `delay` (O, I), `history` (D, B, I) oldest first."""
    steps, batch, inputs = x.shape
    events = np.zeros((steps, batch, len(weight)), dtype=np.int64)
    for t in range(steps):
        for b in range(batch):
            for j in range(len(weight)):
                for i in range(inputs):
                    sent = t - int(delay[j, i])
                    if sent >= 0:
                        value = x[sent, b, i]
                    elif history is not None:
                        value = history[len(history) + sent, b, i]
                    else:
                        value = 0
                    if weight[j, i] != 0 and value != 0:
                        events[t, b, j] += 1
    return events


def conv2d(x, weight, stride=1, padding=0, groups=1, dense=False):
    """`x` (T, B, C, H, W), `weight` (O, C / groups, K, L); `dense` counts zero weights and inputs too."""
    steps, batch, channels, height, width = x.shape
    outputs, per_group, kernel_h, kernel_w = weight.shape
    tall = (height + 2 * padding - kernel_h) // stride + 1
    wide = (width + 2 * padding - kernel_w) // stride + 1
    events = np.zeros((steps, batch, outputs, tall, wide), dtype=np.int64)
    for t, b, o, r, c in np.ndindex(events.shape):
        first = o // (outputs // groups) * (channels // groups)
        for i, k, n in np.ndindex(per_group, kernel_h, kernel_w):
            row, column = r * stride + k - padding, c * stride + n - padding
            if not (0 <= row < height and 0 <= column < width):
                continue
            if dense or (weight[o, i, k, n] != 0 and x[t, b, first + i, row, column] != 0):
                events[t, b, o, r, c] += 1
    return events


def gated(events, awake):
    """Sum over steps and outputs, (B,), of the events at the places that are awake; both (T, B, ...)."""
    steps, batch = events.shape[:2]
    total = np.zeros(batch, dtype=np.int64)
    for t in range(steps):
        for b in range(batch):
            total[b] += events[t, b][awake[t, b]].sum()
    return total
