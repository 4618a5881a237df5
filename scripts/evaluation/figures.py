"""The plots of an evaluation, and the one trial that they show."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from neuro import BIN_SECONDS
from neuro.phonemes import SYMBOLS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from decoders.scoring import Decoded
    from scripts.evaluation.boundaries import Boundaries
    from scripts.evaluation.checkpoint import Loaded
    from scripts.evaluation.report import Report

SHOWN_SECONDS = 12.0  # a longer trial's phoneme names would overlap


@dataclass
class Example:
    """The trial that the raster shows: the longest of at most `SHOWN_SECONDS`, else the shortest.

    Attributes
    ----------
    simulated : bool
        Whether the trials carry true onsets, which only a simulation knows.
    """

    key: str = ""
    seconds: float = 0.0
    logits: np.ndarray | None = None
    spikes: np.ndarray | None = None
    layer: str = ""
    reference: tuple[int, ...] = ()
    simulated: bool = False

    def offer(self, decoded: Decoded) -> None:
        """Keep the batch's trial if it suits better than the one kept so far."""
        from decoders.ctc import feasible

        batch = decoded.batch
        fits = feasible(decoded.lengths, batch) & (batch.phoneme_lengths > 0)
        self.simulated = decoded.simulated
        for b, bins in enumerate(batch.lengths.tolist()):
            seconds = bins * BIN_SECONDS
            frames = int(decoded.lengths[b])
            better = self.logits is None or self.seconds < seconds <= SHOWN_SECONDS
            if not better or not fits[b]:
                continue
            self.key, self.seconds = batch.keys[b], seconds
            self.logits = decoded.logits[:frames, b].numpy()
            self.reference = tuple(batch.phonemes[b, : int(batch.phoneme_lengths[b])].tolist())
            if decoded.spikes:
                self.layer, spikes = list(decoded.spikes.items())[-1]
                steps = round(spikes.shape[0] * bins / batch.features.shape[0])
                self.spikes = spikes[:steps, b].numpy()


def write_figures(folder: Path, report: Report, loaded: Loaded, example: Example, boundaries: Boundaries) -> list[Path]:
    """Draw every plot that the evaluation has data for; hand back the files."""
    from decoders.metrics import confusion_matrix
    from scripts.plots import boundary_entropy, confusion, learning_curve
    from scripts.plots.learning_curve import find_curves, read_curves
    from scripts.plots.style import save

    scores, split, source = report.scores, f"{report.split} split", report.source
    counts = confusion_matrix(scores.references, scores.hypotheses)
    figures = {"confusion": confusion(counts, symbols=SYMBOLS, source=source, split=split)}
    log = None if loaded.official else find_curves(loaded.path)
    if log is not None:
        chance = (report.summary["chance"] or {}).get("best_constant")
        figures["learning_curve"] = learning_curve({loaded.name: read_curves(log)}, source=source, chance=chance)
    if example.logits is not None:
        figures["trial"] = draw_example(example, source, boundaries)
    if not boundaries.missing:
        curves = {
            "with blank": boundaries.curve("entropy"),
            "phonemes alone (renormalised)": boundaries.curve("entropy_nonblank"),
        }
        figures["boundary_entropy"] = boundary_entropy(
            boundaries.offsets, curves, bin_seconds=BIN_SECONDS, source=source, split=split
        )
    return [save(figure, folder / f"{name}.png") for name, figure in figures.items()]


def draw_example(example: Example, source: str, boundaries: Boundaries) -> Figure:
    """The raster of the example trial, with its alignment where there is one."""
    import torch

    from decoders.boundaries import forced_onsets
    from scripts.plots import spike_raster

    assert example.logits is not None
    logits = torch.from_numpy(example.logits)
    size, stride = boundaries.geometry
    spans: list[tuple[str, float, float]] = []
    if not boundaries.missing:
        onsets = forced_onsets(logits.log_softmax(-1), torch.tensor(example.reference))
        # A frame's moment is the middle of the bins that it looks at.
        moments = [*((onsets * stride + (size - 1) / 2) * BIN_SECONDS).tolist(), example.seconds]
        spans = [(SYMBOLS[label], moments[n], moments[n + 1]) for n, label in enumerate(example.reference)]
    return spike_raster(
        example.spikes,
        logits.softmax(-1).numpy(),
        spans,
        symbols=SYMBOLS,
        seconds=example.seconds,
        source=source,
        trial=example.key,
        layer=example.layer or "last spiking layer",
    )
