"""One look for every plot: readable, safe for the colour-blind, and labelled with where the data come from."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito (2008), without its yellow, which vanishes on white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
GREY = "#6B6B6B"
SEQUENTIAL = "cividis"  # perceptually even, and the same to colour-blind eyes
DOTS_PER_INCH = 110


def new_figure(width: float, height: float, title: str, source: str) -> Figure:
    """Empty figure of a size in inches, headed by a title that ends with the data's source.

    The figure belongs to no window system and no global state, so plots can be drawn on machines without a display.

    Parameters
    ----------
    source
        Where the data come from, such as ``simulated participant`` or ``recorded speech``.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    figure.suptitle(f"{title} ({source})", fontsize=11)
    return figure


def tidy(axes: Axes, *, x: str, y: str, title: str = "") -> None:
    """Label both axes (units belong into the label) and take away the frame that says nothing."""
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    if title:
        axes.set_title(title, fontsize=9, loc="left")
    axes.spines[["top", "right"]].set_visible(False)


def save(figure: Figure, path: Path) -> Path:
    """Write a figure as PNG and hand back its path."""
    figure.savefig(path, dpi=DOTS_PER_INCH)
    return path
