"""Smoothing one sample at a time, as the two official sources state it."""

from __future__ import annotations

import math

import numpy as np
from scipy.ndimage import gaussian_filter1d


def kernel_b2t24(size: int = 20, sd: float = 2.0) -> np.ndarray:
    """neural_seq_decoder: a Gaussian density on 0..size-1 about (size - 1) / 2, divided by its sum."""
    middle = (size - 1) / 2
    density = [math.exp(-(((i - middle) / sd) ** 2) / 2) / (sd * math.sqrt(2 * math.pi)) for i in range(size)]
    return np.array([value / sum(density) for value in density])


def kernel_b2t25(size: int = 100, sd: float = 2.0) -> np.ndarray:
    """nejm-brain-to-text: a unit impulse through gaussian_filter1d, taps above 0.01, divided by their sum."""
    impulse = np.zeros(size, np.float32)
    impulse[size // 2] = 1
    response = gaussian_filter1d(impulse, sd)
    kept = response[response > 0.01]
    return kept / kept.sum()


def smooth_trial(trial: np.ndarray, kernel: np.ndarray) -> np.ndarray:
    """(T, N) with zeros outside; an even kernel reaches one further ahead than back, as torch pads it."""
    before = (len(kernel) - 1) // 2
    out = np.zeros(trial.shape)
    for t in range(len(trial)):
        for k, tap in enumerate(kernel):
            source = t + k - before
            if 0 <= source < len(trial):
                out[t] += tap * trial[source]
    return out
