"""Entropy of the frame posteriors around phoneme boundaries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from scripts.plots.style import COLOURS, GREY, new_figure, tidy

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def boundary_entropy(
    offsets: np.ndarray, curves: Mapping[str, np.ndarray], *, bin_seconds: float, source: str, split: str
) -> Figure:
    """Mean entropy against the distance to the nearest aligned boundary.

    CTC posteriors are dominated by the blank, so the entropy with blank can fall merely because the blank becomes
    certain; the two curves must be read together.

    Parameters
    ----------
    offsets : int (K,)
        Distance to the boundary in output frames.
    curves
        Name -> mean entropy in nats, (K,).
    bin_seconds
        Length of an output frame.
    """
    figure = new_figure(6, 3.6, f"Entropy around phoneme boundaries, {split}", source)
    axes = figure.subplots()
    milliseconds = 1000 * bin_seconds * np.asarray(offsets)
    for colour, (name, values) in zip(COLOURS, curves.items(), strict=False):
        axes.plot(milliseconds, values, color=colour, label=name, marker="o", markersize=3, linewidth=1.3)
    axes.axvline(0, color=GREY, linestyle="--", linewidth=1)
    axes.set_ylim(bottom=0)
    tidy(axes, x="time from the aligned boundary (ms)", y="entropy (nats)")
    axes.legend(frameon=False, fontsize=8)
    return figure
