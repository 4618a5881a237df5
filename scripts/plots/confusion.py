"""Phoneme confusion: what was said against what was decoded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from scripts.plots.style import GREY, SEQUENTIAL, new_figure, tidy

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Articulatory order: neighbours on the axes are neighbours in the mouth, so that near misses lie near the diagonal.
ORDER: dict[str, tuple[str, ...]] = {
    "vowels": ("IY", "IH", "EY", "EH", "AE", "AA", "AO", "OW", "UH", "UW", "AH", "ER", "AY", "AW", "OY"),
    "glides, liquids": ("Y", "W", "R", "L"),
    "nasals": ("M", "N", "NG"),
    "stops": ("P", "B", "T", "D", "K", "G"),
    "affricates": ("CH", "JH"),
    "fricatives": ("F", "V", "TH", "DH", "S", "Z", "SH", "ZH", "HH"),
    "silence": ("SIL",),
}


def confusion(counts: np.ndarray, *, symbols: Sequence[str], source: str, split: str) -> Figure:
    """Rows normalised to what became of each reference phoneme.

    Parameters
    ----------
    counts : int (K, K)
        ``counts[r, h]``: reference class r decoded as h. Class 0 stands for "nothing": row 0 insertions, column 0
        deletions.
    symbols
        Names of the K classes; the first is not shown.
    """
    names = [name for group in ORDER.values() for name in group]
    ids = [list(symbols).index(name) for name in names]
    table = counts[np.ix_([*ids, 0], [*ids, 0])].astype(float)
    totals = table.sum(axis=1, keepdims=True)
    share = np.divide(100 * table, totals, out=np.full_like(table, np.nan), where=totals > 0)
    figure = new_figure(8.6, 7.8, f"Phoneme confusion, {split}", source)
    axes = figure.subplots()
    drawn = axes.imshow(share, cmap=SEQUENTIAL, vmin=0, vmax=100, interpolation="nearest")
    axes.set_xticks(range(len(names) + 1), [*names, "deleted"], fontsize=6, rotation=90)
    axes.set_yticks(range(len(names) + 1), [*names, "inserted"], fontsize=6)
    edge = -0.5
    for group in ORDER.values():
        edge += len(group)
        axes.axhline(edge, color=GREY, linewidth=0.5)
        axes.axvline(edge, color=GREY, linewidth=0.5)
    tidy(axes, x="decoded phoneme", y="reference phoneme")
    figure.colorbar(drawn, ax=axes, label="share of the reference phoneme (%)", shrink=0.8)
    return figure
