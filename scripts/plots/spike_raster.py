"""Spike raster of one trial beside its phoneme posteriors and their alignment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from scripts.plots.style import COLOURS, GREY, SEQUENTIAL, new_figure, tidy

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Span = tuple[str, float, float]
"""Phoneme, first moment and last moment in seconds."""

MAX_NEURONS = 256  # more rows than this are thinner than a pixel


def spike_raster(
    spikes: np.ndarray | None,
    posteriors: np.ndarray,
    spans: Sequence[Span],
    *,
    symbols: Sequence[str],
    seconds: float,
    source: str,
    trial: str,
    layer: str = "last spiking layer",
) -> Figure:
    """Raster (top, spiking models only), posteriors (middle) and forced alignment (bottom) on one time axis.

    Parameters
    ----------
    spikes : (T, N), or None
        Spikes of one layer, one row a step; None for a model without spikes.
    posteriors : (T', K)
        Softmax of the logits, one row an output frame, blank first.
    spans
        Where the reference phonemes were aligned to.
    symbols
        Names of the K classes.
    seconds
        Length of the trial in seconds; both time axes cover it.
    """
    heights = [1.6, 2.2, 0.35] if spikes is not None else [2.6, 0.35]
    figure = new_figure(10, 1.9 * sum(heights), f"Trial {trial}", source)
    panels = list(figure.subplots(len(heights), 1, sharex=True, height_ratios=heights, squeeze=False)[:, 0])
    if spikes is not None:
        raster = panels.pop(0)
        shown = np.linspace(0, spikes.shape[1] - 1, min(MAX_NEURONS, spikes.shape[1])).astype(int)
        steps, neurons = np.nonzero(spikes[:, shown])
        raster.scatter((steps + 0.5) * seconds / len(spikes), neurons, s=1.2, color="black", marker="|", linewidths=0.6)
        rate = float((spikes != 0).mean())
        tidy(raster, x="", y="neuron", title=f"spikes, {layer}: {100 * rate:.1f} % of neurons active per step")
        raster.set_ylim(-1, len(shown))
    image, ribbon = panels
    drawn = image.imshow(
        posteriors.T, aspect="auto", origin="lower", interpolation="nearest", cmap=SEQUENTIAL, vmin=0, vmax=1,
        extent=(0, seconds, -0.5, posteriors.shape[1] - 0.5),
    )  # fmt: skip
    image.set_yticks(range(len(symbols)), symbols, fontsize=5)
    tidy(image, x="", y="phoneme", title="posteriors")
    figure.colorbar(drawn, ax=image, label="probability", pad=0.01)
    for position, (phoneme, start, end) in enumerate(spans):
        silent = phoneme == "SIL"
        colour = GREY if silent else COLOURS[position % 2]
        ribbon.axvspan(start, end, color=colour, alpha=0.25 if silent else 0.45, linewidth=0)
        ribbon.text((start + end) / 2, 0.5, phoneme, ha="center", va="center", fontsize=6, rotation=90 if silent else 0)
    ribbon.set_yticks([])
    ribbon.set_xlim(0, seconds)
    tidy(ribbon, x="time from the start of the trial (s)", y="", title="alignment of the reference")
    return figure
