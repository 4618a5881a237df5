"""Phoneme error rate with its confidence interval, confusions, and what chance would score."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from decoders.chance import best_constant_sequence, best_run, chance_rates, constant_per
from decoders.edits import (
    ErrorCounts,
    Labels,
    align,
    check_matched,
    edit_distance,
    edit_path,
    edits_and_lengths,
    error_counts,
    ids,
    per,
    total_counts,
)

__all__ = [
    "ErrorCounts",
    "Interval",
    "align",
    "best_constant_sequence",
    "best_run",
    "bootstrap_difference",
    "bootstrap_interval",
    "chance_rates",
    "confusion_matrix",
    "constant_per",
    "edit_distance",
    "edits_and_lengths",
    "error_counts",
    "per",
    "total_counts",
]


def confusion_matrix(refs: Sequence[Labels], hyps: Sequence[Labels], n_symbols: int = 41) -> np.ndarray:
    """How often each phoneme was taken for each other, from the alignments.

    Returns
    -------
    int64 (n_symbols, n_symbols)
        Row the reference, column the hypothesis. Row 0 counts insertions, column 0 deletions (0 is the blank, which
        no label holds).
    """
    check_matched(refs, hyps)
    matrix = np.zeros((n_symbols, n_symbols), np.int64)
    for ref, hyp in zip(refs, hyps, strict=True):
        pairs = np.maximum(edit_path(ids(ref), ids(hyp)), 0)
        np.add.at(matrix, (pairs[:, 0], pairs[:, 1]), 1)
    return matrix


@dataclass(frozen=True)
class Interval:
    """A value and the interval that resampling the sentences gives it."""

    value: float
    low: float
    high: float
    level: float = 0.95


def _resampled(n: int, n_resamples: int, seed: int) -> np.ndarray:
    """How often each of ``n`` sentences is drawn in each resample, (n_resamples, n)."""
    return np.random.default_rng(seed).multinomial(n, np.full(n, 1.0 / n), size=n_resamples)


def _interval(value: float, samples: np.ndarray, level: float) -> Interval:
    low, high = np.quantile(samples[np.isfinite(samples)], [(1 - level) / 2, (1 + level) / 2])
    return Interval(value, float(low), float(high), level)


def bootstrap_interval(
    refs: Sequence[Labels], hyps: Sequence[Labels], *, level: float = 0.95, n_resamples: int = 2000, seed: int = 0
) -> Interval:
    """PER with its percentile bootstrap interval over sentences.

    Parameters
    ----------
    refs, hyps
        Labels and decoded phonemes of each sentence.
    level, n_resamples, seed
        Coverage, resamples of the sentences with replacement, seed of the draw.
    """
    edits, lengths = edits_and_lengths(refs, hyps)
    times = _resampled(len(edits), n_resamples, seed)
    with np.errstate(invalid="ignore", divide="ignore"):
        rates = (times @ edits) / (times @ lengths)
    return _interval(float(edits.sum() / lengths.sum()), rates, level)


def bootstrap_difference(
    edits_a: Sequence[int],
    edits_b: Sequence[int],
    lengths: Sequence[int],
    *,
    level: float = 0.95,
    n_resamples: int = 2000,
    seed: int = 0,
) -> Interval:
    """PER of ``a`` minus PER of ``b`` on the same sentences, with its paired bootstrap interval.

    Each resample draws the same sentences for both, so what makes a sentence hard for both falls out.

    Parameters
    ----------
    edits_a, edits_b : (n,)
        Edits of each sentence, see `edits_and_lengths`.
    lengths : (n,)
        Reference phonemes of each sentence.
    level, n_resamples, seed
        As in `bootstrap_interval`.
    """
    difference = np.asarray(edits_a, np.int64) - np.asarray(edits_b, np.int64)
    phonemes = np.asarray(lengths, np.int64)
    times = _resampled(len(difference), n_resamples, seed)
    with np.errstate(invalid="ignore", divide="ignore"):
        samples = (times @ difference) / (times @ phonemes)
    return _interval(float(difference.sum() / phonemes.sum()), samples, level)
