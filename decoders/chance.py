"""What a decoder that never looks at the brain would score: the best constant answer."""

from __future__ import annotations

from collections.abc import Sequence

import numba
import numpy as np

from decoders.edits import Labels, edit_table, ids, per
from neuro import DataError

SIL = 40
"""Silence between words, in torch order."""


@numba.njit(cache=True)
def _total_distance(string: np.ndarray, flat: np.ndarray, starts: np.ndarray) -> int:
    total = 0
    for k in range(len(starts) - 1):
        total += edit_table(string, flat[starts[k] : starts[k + 1]])[-1, -1]
    return total


@numba.njit(cache=True)
def _edit_costs(
    string: np.ndarray, flat: np.ndarray, starts: np.ndarray, n_symbols: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Total distance to all labels after every single edit of ``string``, from two tables a label.

    With F[i, j] the distance of the first i symbols to the label's first j, and S[i, j] that of what follows them, the
    best alignment through a changed place is a minimum over j of F + S around it.

    Returns
    -------
    replaced : (I, n_symbols), inserted : (I + 1, n_symbols), deleted : (I,)
    """
    n = len(string)
    replaced = np.zeros((n, n_symbols), np.int64)
    inserted = np.zeros((n + 1, n_symbols), np.int64)
    deleted = np.zeros(n, np.int64)
    by_symbol = np.empty(n_symbols, np.int64)
    for k in range(len(starts) - 1):
        label = flat[starts[k] : starts[k + 1]]
        m = len(label)
        first = edit_table(string, label)
        last = edit_table(string[::-1].copy(), label[::-1].copy())[::-1, ::-1]
        for i in range(n + 1):
            # A new symbol at place i, before string[i]: it meets no symbol of the label, another one, or its like.
            for replace in range(2):
                if replace == 1 and i == n:
                    continue
                after = i + replace
                other = first[i, m] + last[after, m] + 1
                gone = first[i, m] + last[after, m]
                for j in range(m):
                    here = first[i, j] + last[after, j]
                    gone = min(gone, here)
                    other = min(other, here + 1, first[i, j] + last[after, j + 1] + 1)
                by_symbol[:] = other
                for j in range(m):
                    like = first[i, j] + last[after, j + 1]
                    if like < by_symbol[label[j]]:
                        by_symbol[label[j]] = like
                if replace == 1:
                    replaced[i] += by_symbol
                    deleted[i] += gone
                else:
                    inserted[i] += by_symbol
    return replaced, inserted, deleted


def _flatten(labels: Sequence[Labels]) -> tuple[np.ndarray, np.ndarray]:
    arrays = [ids(label) for label in labels]
    starts = np.concatenate([[0], np.cumsum([len(a) for a in arrays])]).astype(np.int64)
    return np.concatenate([*arrays, np.zeros(0, np.int64)]), starts


def _climb(string: np.ndarray, flat: np.ndarray, starts: np.ndarray, n_symbols: int) -> tuple[np.ndarray, int]:
    """Take the single edit that helps most, until none helps."""
    cost = _total_distance(string, flat, starts)
    while True:
        replaced, inserted, deleted = _edit_costs(string, flat, starts, n_symbols)
        # The blank is no phoneme: never put it in.
        replaced[:, 0] = inserted[:, 0] = np.iinfo(np.int64).max
        best = int(min(replaced.min(initial=cost), inserted.min(initial=cost), deleted.min(initial=cost)))
        if best >= cost:
            return string, cost
        if deleted.min(initial=cost) == best:
            string = np.delete(string, int(deleted.argmin()))
        elif inserted.min(initial=cost) == best:
            place, symbol = np.unravel_index(int(inserted.argmin()), inserted.shape)
            string = np.insert(string, place, symbol)
        else:
            place, symbol = np.unravel_index(int(replaced.argmin()), replaced.shape)
            string = string.copy()
            string[place] = symbol
        cost = best


def best_constant_sequence(train_labels: Sequence[Labels], *, max_labels: int = 500, seed: int = 0) -> list[int]:
    """The one answer that scores best on the training labels when it is given to every trial.

    Looks for the string of least total edit distance (generalised median string, Kohonen 1985): steepest descent over
    all single insertions, deletions and replacements, from the empty string, from a run of the commonest phoneme, and
    from the label of least distance to the others.

    Parameters
    ----------
    train_labels
        Phoneme ids of the training trials.
    max_labels
        Search on this many labels, drawn at random; on all where there are fewer.
    seed
        Of that draw. The same labels and seed give the same answer.

    Raises
    ------
    DataError
        If no label holds a phoneme.
    """
    labels = [label for label in train_labels if len(label)]
    if not labels:
        raise DataError("no training label holds a phoneme", found=f"{len(train_labels)} labels")
    if len(labels) > max_labels:
        chosen = np.random.default_rng(seed).choice(len(labels), max_labels, replace=False)
        labels = [labels[k] for k in np.sort(chosen)]
    flat, starts = _flatten(labels)
    n_symbols = int(flat.max()) + 1
    commonest = int(np.bincount(flat)[1:].argmax()) + 1 if n_symbols > 1 else 0
    some = [ids(label) for label in labels[:100]]
    medoid = min(some, key=lambda label: int(_total_distance(label, flat, starts)))
    beginnings = (
        np.zeros(0, np.int64),
        np.full(int(np.median(np.diff(starts))) // 2, commonest, np.int64),
        medoid,
    )
    found = [_climb(beginning, flat, starts, n_symbols) for beginning in beginnings]
    return min(found, key=lambda result: result[1])[0].tolist()


def best_run(train_labels: Sequence[Labels], symbol: int = SIL) -> list[int]:
    """The run of one symbol, of the length that scores best on the training labels."""
    labels = [ids(label) for label in train_labels]
    lengths = np.array([len(label) for label in labels], np.int64)
    times = np.array([(label == symbol).sum() for label in labels], np.int64)
    # A run of n meets min(n, times) of its like; every other place costs one edit.
    totals = [
        int((np.maximum(lengths, n) - np.minimum(times, n)).sum()) for n in range(int(lengths.max(initial=0)) + 1)
    ]
    return [symbol] * int(np.argmin(totals))


def constant_per(sequence: Labels, refs: Sequence[Labels]) -> float:
    """PER of giving the same answer to every trial."""
    return per(refs, [sequence] * len(refs))


def chance_rates(
    train_labels: Sequence[Labels], refs: Sequence[Labels], *, max_labels: int = 500, seed: int = 0
) -> dict[str, float]:
    """PER on ``refs`` of the answers that need no recording, each chosen on the training labels alone.

    Returns
    -------
    dict
        ``best_constant`` (what this project calls chance), ``empty`` (always 1) and ``sil_run``.
    """
    answers = {
        "best_constant": best_constant_sequence(train_labels, max_labels=max_labels, seed=seed),
        "empty": [],
        "sil_run": best_run(train_labels),
    }
    return {name: constant_per(answer, refs) for name, answer in answers.items()}
