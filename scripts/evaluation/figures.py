"""The plots of an evaluation, and the one trial that they show."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from neuro import BIN_SECONDS
from neuro.phonemes import SYMBOLS

if TYPE_CHECKING:
    from decoders.scoring import Decoded
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
        batch = decoded.batch
        for b, bins in enumerate(batch.lengths.tolist()):
            seconds = bins * BIN_SECONDS
            frames = int(decoded.lengths[b])
            better = self.logits is None or self.seconds < seconds <= SHOWN_SECONDS
            if not better or frames < int(batch.phoneme_lengths[b]):
                continue
            self.key, self.seconds = batch.keys[b], seconds
            self.logits = decoded.logits[:frames, b].numpy()
            self.reference = tuple(batch.phonemes[b, : int(batch.phoneme_lengths[b])].tolist())
            if decoded.spikes:
                self.layer, spikes = list(decoded.spikes.items())[-1]
                steps = round(spikes.shape[0] * bins / batch.features.shape[0])
                self.spikes = spikes[:steps, b].numpy()


def write_figures(folder: Path, report: Report, loaded: Loaded, example: Example) -> list[Path]:
    """Draw every plot that the evaluation has data for; hand back the files."""
    from decoders.metrics import confusion_matrix
    from scripts.plots import confusion, learning_curve
    from scripts.plots.learning_curve import find_metrics, read_metrics
    from scripts.plots.style import save

    scores, split, source = report.scores, f"{report.split} split", report.source
    written = [
        save(
            confusion(
                confusion_matrix(scores.references, scores.hypotheses), symbols=SYMBOLS, source=source, split=split
            ),
            folder / "confusion.png",
        )
    ]
    log = find_metrics(loaded.path)
    if log is not None:
        chance = (report.summary["chance"] or {}).get("best_constant")
        figure = learning_curve({loaded.name: read_metrics(log)}, source=source, chance=chance)
        written.append(save(figure, folder / "learning_curve.png"))
    return written
