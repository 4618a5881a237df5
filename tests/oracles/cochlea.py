"""The ear, one sample and one channel at a time."""

from __future__ import annotations

import cmath
import math

import numpy as np


def gammatone(wave: np.ndarray, centre_hz: float, rate: int) -> np.ndarray:
    """Four equal complex one-pole filters in a row (Hohmann 2002); twice the real part, unit gain at the centre."""
    radius = math.exp(-2 * math.pi * 1.019 * 24.7 * (4.37 * centre_hz / 1000 + 1) / rate)
    pole = radius * cmath.exp(2j * math.pi * centre_hz / rate)
    states = [0j] * 4
    out = np.empty(len(wave))
    for t, sample in enumerate(wave):
        value = complex(sample)
        for stage in range(4):
            states[stage] = pole * states[stage] + (1 - radius) * value
            value = states[stage]
        out[t] = 2 * value.real
    return out


def drive(channel: np.ndarray, ear, rate: int) -> tuple[np.ndarray, np.ndarray]:
    """Rectified, compressed and low-passed; then the same less a share of its recent mean."""
    fast, slow = math.exp(-2 * math.pi * ear.cutoff_hz / rate), math.exp(-1 / (ear.adaptation_seconds * rate))
    membrane = recent = 0.0
    plain, adapted = np.empty(len(channel)), np.empty(len(channel))
    for t, sample in enumerate(channel):
        compressed = max(sample - ear.threshold, 0.0) ** ear.compression
        membrane = fast * membrane + (1 - fast) * compressed
        recent = slow * recent + (1 - slow) * membrane
        plain[t], adapted[t] = membrane, max(membrane - ear.adaptation * recent, 0.0)
    return plain, adapted


def integrate_and_fire(expected: np.ndarray, phase: float) -> np.ndarray:
    """Spikes per bin of one channel: a spike whenever the charge reaches 1, the charge less 1 after it."""
    charge, counts = phase, []
    for amount in expected:
        charge += amount
        spikes = 0
        while charge >= 1:
            charge -= 1
            spikes += 1
        counts.append(spikes)
    return np.array(counts)
