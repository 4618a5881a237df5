"""Edit distance, errors by kind, and the phoneme error rate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numba
import numpy as np

from neuro import DataError

Labels = Sequence[int]


def ids(label: Labels) -> np.ndarray:
    """Phoneme ids as a contiguous int64 vector."""
    return np.ascontiguousarray(label, dtype=np.int64).reshape(-1)


@numba.njit(cache=True)
def edit_table(ref: np.ndarray, hyp: np.ndarray) -> np.ndarray:
    """Edit distances of every prefix of ``ref`` to every prefix of ``hyp``: int32 (R + 1, H + 1)."""
    table = np.empty((len(ref) + 1, len(hyp) + 1), np.int32)
    for j in range(len(hyp) + 1):
        table[0, j] = j
    for i in range(1, len(ref) + 1):
        table[i, 0] = i
        for j in range(1, len(hyp) + 1):
            best = table[i - 1, j - 1] + (ref[i - 1] != hyp[j - 1])
            best = min(best, table[i - 1, j] + 1)
            table[i, j] = min(best, table[i, j - 1] + 1)
    return table


@numba.njit(cache=True)
def edit_path(ref: np.ndarray, hyp: np.ndarray) -> np.ndarray:
    """Pairs (reference, hypothesis) of one cheapest alignment, -1 for a gap: int64 (steps, 2)."""
    table = edit_table(ref, hyp)
    pairs = np.empty((len(ref) + len(hyp), 2), np.int64)
    i, j, n = len(ref), len(hyp), 0
    while i > 0 or j > 0:
        if i > 0 and j > 0 and table[i, j] == table[i - 1, j - 1] + (ref[i - 1] != hyp[j - 1]):
            i, j = i - 1, j - 1
            pairs[n, 0], pairs[n, 1] = ref[i], hyp[j]
        elif i > 0 and table[i, j] == table[i - 1, j] + 1:
            i -= 1
            pairs[n, 0], pairs[n, 1] = ref[i], -1
        else:
            j -= 1
            pairs[n, 0], pairs[n, 1] = -1, hyp[j]
        n += 1
    return pairs[:n][::-1]


def edit_distance(ref: Labels, hyp: Labels) -> int:
    """Fewest substitutions, insertions and deletions that turn ``ref`` into ``hyp`` (Levenshtein), in 32-bit counts.

    Examples
    --------
    >>> edit_distance([1, 2, 3], [1, 3, 3, 4])
    2
    """
    return int(edit_table(ids(ref), ids(hyp))[-1, -1])


def align(ref: Labels, hyp: Labels) -> list[tuple[int | None, int | None]]:
    """One cheapest alignment as (reference, hypothesis) pairs; None for what the other side has no partner for.

    Among equally cheap ones, a match or substitution is preferred to a deletion, and that to an insertion, read from
    the end.
    """
    return [(None if r < 0 else int(r), None if h < 0 else int(h)) for r, h in edit_path(ids(ref), ids(hyp))]


@dataclass(frozen=True)
class ErrorCounts:
    """Errors by kind against a number of reference phonemes; add them up over trials.

    Examples
    --------
    >>> error_counts([1, 2, 3], [1, 3, 3, 4])
    ErrorCounts(substitutions=1, insertions=1, deletions=0, length=3)
    """

    substitutions: int = 0
    insertions: int = 0
    deletions: int = 0
    length: int = 0

    @property
    def edits(self) -> int:
        """Errors of all kinds."""
        return self.substitutions + self.insertions + self.deletions

    @property
    def rate(self) -> float:
        """Errors a reference phoneme; NaN without any."""
        return self.edits / self.length if self.length else float("nan")

    def __add__(self, other: ErrorCounts) -> ErrorCounts:
        return ErrorCounts(
            self.substitutions + other.substitutions,
            self.insertions + other.insertions,
            self.deletions + other.deletions,
            self.length + other.length,
        )


def error_counts(ref: Labels, hyp: Labels) -> ErrorCounts:
    """Errors of one trial by kind, from the alignment that `align` picks."""
    pairs = edit_path(ids(ref), ids(hyp))
    r, h = pairs[:, 0], pairs[:, 1]
    both = (r >= 0) & (h >= 0)
    return ErrorCounts(
        substitutions=int((both & (r != h)).sum()),
        insertions=int((r < 0).sum()),
        deletions=int((h < 0).sum()),
        length=len(ref),
    )


def check_matched(refs: Sequence[Labels], hyps: Sequence[Labels]) -> None:
    """Raise DataError unless there is one hypothesis a reference, and something to score."""
    if len(refs) != len(hyps):
        raise DataError("references and hypotheses differ in number", found=len(hyps), expected=len(refs))
    if not sum(len(ref) for ref in refs):
        raise DataError("no reference phonemes to score against", found=f"{len(refs)} trials")


def total_counts(refs: Sequence[Labels], hyps: Sequence[Labels]) -> ErrorCounts:
    """Errors of all trials together."""
    check_matched(refs, hyps)
    return sum((error_counts(ref, hyp) for ref, hyp in zip(refs, hyps, strict=True)), ErrorCounts())


def edits_and_lengths(refs: Sequence[Labels], hyps: Sequence[Labels]) -> tuple[np.ndarray, np.ndarray]:
    """Edit distance and reference length of each trial, int64 (n,) each."""
    check_matched(refs, hyps)
    edits = np.array([edit_distance(ref, hyp) for ref, hyp in zip(refs, hyps, strict=True)], np.int64)
    return edits, np.array([len(ref) for ref in refs], np.int64)


def per(refs: Sequence[Labels], hyps: Sequence[Labels]) -> float:
    """Phoneme error rate: edits of all trials over reference phonemes of all trials (not a mean of trials' rates).

    Raises
    ------
    DataError
        If the numbers of trials differ, or there is no reference phoneme.

    Examples
    --------
    >>> per([[1, 2, 3, 4], [5, 6]], [[1, 2, 4], []])
    0.5
    """
    edits, lengths = edits_and_lengths(refs, hyps)
    return float(edits.sum() / lengths.sum())
