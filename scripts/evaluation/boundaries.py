"""Boundary analysis of a whole split, added up batch by batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from decoders.boundaries import BoundaryAnalysis
    from decoders.scoring import Decoded

CURVES = ("entropy", "entropy_nonblank", "probability", "probability_nonblank")


class Boundaries:
    """Means over all boundaries of the batches that are added.

    Boundaries are found by forced alignment of the reference on the model's own posteriors, for simulated data too, so
    that figures from simulated and recorded data mean the same.

    Parameters
    ----------
    decoder
        For the bins that a frame of its logits stands for.

    Attributes
    ----------
    missing : str, or None
        Why there is no analysis, where there is none.
    """

    def __init__(self, decoder: Any) -> None:
        from decoders.scoring import frame_geometry

        self.geometry = frame_geometry(decoder)
        self.missing: str | None = "no trial is long enough to align its labels"
        self._parts: list[BoundaryAnalysis] = []

    def add(self, decoded: Decoded) -> None:
        """Analyse one batch."""
        from decoders.boundaries import analyse_boundaries
        from decoders.ctc import feasible

        batch = decoded.batch
        usable = feasible(decoded.lengths, batch) & (batch.phoneme_lengths > 0)
        if not usable.any():
            return
        self._parts.append(
            analyse_boundaries(
                decoded.logits[:, usable],
                decoded.lengths[usable],
                batch.phonemes[usable],
                batch.phoneme_lengths[usable],
                patch=self.geometry,
            )
        )
        self.missing = None

    @property
    def offsets(self) -> np.ndarray:
        """Bins from the boundary."""
        return self._parts[0].offsets

    def curve(self, name: str) -> np.ndarray:
        """Mean of one of `CURVES` at each offset."""
        return np.average([getattr(part, name) for part in self._parts], axis=0, weights=self._weights)

    def summary(self) -> dict[str, Any] | None:
        """Contrasts, latency and jitter over all boundaries; None where nothing was analysed."""
        if not self._parts:
            return None
        latency = self._mean("latency")
        # The variance of all is the mean of the parts' variances plus the variance of their means.
        spread = np.average(
            [part.jitter**2 + (part.latency - latency) ** 2 for part in self._parts], weights=self._weights
        )
        return {
            "boundaries": int(sum(self._weights)),
            "entropy_contrast_nats": self._mean("contrast"),
            "entropy_contrast_without_blank_nats": self._mean("contrast_nonblank"),
            "emission_latency_bins": latency,
            "emission_jitter_bins": float(np.sqrt(spread)),
            "alignment": "forced, on the model's own posteriors",
        }

    @property
    def _weights(self) -> list[int]:
        return [part.n_boundaries for part in self._parts]

    def _mean(self, name: str) -> float:
        return float(np.average([getattr(part, name) for part in self._parts], weights=self._weights))
