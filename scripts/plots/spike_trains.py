"""Spike trains of a few recordings under each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from scripts.plots.style import new_figure, tidy

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def spike_trains(
    trials: Sequence[tuple[np.ndarray, np.ndarray]], titles: Sequence[str], *, n_units: int, source: str
) -> Figure:
    """One raster a trial, all on the same axes of time and units.

    Parameters
    ----------
    trials
        Of each its spikes: seconds (S,) and units (S,).
    titles
        Of each what was said, and by whom.
    n_units
        Units are 0..n_units - 1, low to high frequency.
    """
    rows = max(1, len(trials))
    figure = new_figure(8, 0.6 + 1.5 * rows, "Spike trains", source)
    panels = figure.subplots(rows, 1, sharex=True, sharey=True, squeeze=False)[:, 0]
    size = float(np.clip(600 / n_units, 1.0, 8.0))
    for axes, (times, units), title in zip(panels, trials, titles, strict=False):
        axes.scatter(times, units, s=size, color="black", marker=".", linewidths=0)
        rate = len(times) / max(float(times[-1]) if len(times) else 0.0, 1e-3) / n_units
        tidy(axes, x="", y="unit", title=f"{title}: {len(times)} spikes, {rate:.1f} a unit and second")
    panels[0].set_ylim(-1, n_units)
    panels[-1].set_xlabel("time from the start of the recording (s)")
    return figure
