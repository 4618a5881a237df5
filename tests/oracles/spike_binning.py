"""Spikes counted in bins, one by one, with exact fractions."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction


def spike_binning(
    times: Sequence[Fraction], units: Sequence[int], dt: Fraction, steps: int, n_units: int, channels: int
) -> list[list[int]]:
    """Counts [T][N]; channel c holds the units u with c <= u * channels / n_units < c + 1."""
    counts = [[0] * channels for _ in range(steps)]
    for time, unit in zip(times, units, strict=True):
        for k in range(steps):
            for c in range(channels):
                if k * dt <= time < (k + 1) * dt and c * n_units <= unit * channels < (c + 1) * n_units:
                    counts[k][c] += 1
    return counts
