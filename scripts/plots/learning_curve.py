"""Learning curve: phoneme error rate and loss against updates, for one run or several."""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from neuro.errors import DataError
from scripts.plots.style import COLOURS, GREY, new_figure, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Curves = dict[str, tuple[np.ndarray, np.ndarray]]
"""Logged name -> (updates, values)."""

CURVE_FILE = "learning_curve.csv"
"""What `ranvier train` writes into a run's folder."""


def read_curves(path: Path) -> Curves:
    """Every logged quantity of a run's ``learning_curve.csv``.

    A row holds what was measured at one update and leaves the other cells empty; a quantity's curve is its filled
    cells.

    Raises
    ------
    DataError
        If the file has no column ``update``, no rows, or a cell that is no number.
    """
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    if not rows or "update" not in rows[0]:
        raise DataError("a run's log needs a column `update` and at least one row", file=path)
    curves: Curves = {}
    for name in rows[0].keys() - {"update"}:
        try:
            points = [(int(row["update"]), float(row[name])) for row in rows if row[name]]
        except ValueError as error:
            raise DataError("a run's log holds something that is no number", file=path, field=name) from error
        if points:
            steps, values = zip(*points, strict=True)
            curves[name] = (np.array(steps), np.array(values))
    return curves


def find_curves(checkpoint: Path) -> Path | None:
    """The log of the run that a checkpoint belongs to, in the checkpoint's folder or the one above; None without."""
    for folder in list(checkpoint.resolve().parents)[:2]:
        if (folder / CURVE_FILE).is_file():
            return folder / CURVE_FILE
    return None


def learning_curve(runs: Mapping[str, Curves], *, source: str, chance: float | None = None) -> Figure:
    """Validation PER (left) and training loss (right) against updates, one colour a run.

    Parameters
    ----------
    runs
        Name of the run -> its curves, as `read_curves` hands them out; drawn are ``val_per`` and ``train_loss``.
    chance
        PER of the best constant sequence, as a fraction; drawn as a dashed line.
    """
    figure = new_figure(8.5, 3.4, "Learning curve", source)
    left: Axes
    right: Axes
    left, right = figure.subplots(1, 2)
    for colour, (name, curves) in zip(COLOURS * math.ceil(len(runs) / len(COLOURS)), runs.items(), strict=False):
        for axes, quantity, scale in ((left, "val_per", 100.0), (right, "train_loss", 1.0)):
            curve = curves.get(quantity)
            if curve is not None:
                mark = "o" if len(curve[0]) < 40 else None
                axes.plot(
                    curve[0], scale * curve[1], color=colour, label=name, marker=mark, markersize=3, linewidth=1.3
                )
    if chance is not None:
        left.axhline(100 * chance, color=GREY, linestyle="--", linewidth=1, label="chance (best constant sequence)")
    tidy(left, x="updates", y="phoneme error rate, validation (%)")
    tidy(right, x="updates", y="CTC loss, training (nats per phoneme)")
    left.set_ylim(bottom=0)
    for axes in (left, right):
        if axes.get_legend_handles_labels()[1]:
            axes.legend(frameon=False, fontsize=8)
        else:
            axes.text(0.5, 0.5, "not logged", transform=axes.transAxes, ha="center", color=GREY)
    return figure
