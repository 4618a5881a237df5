"""The best sentence by trying every path of symbols."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping

import numpy as np

BLANK, SIL = 0, 40
Words = tuple[str, ...]


def readings(labels: tuple[int, ...], spellings: Mapping[tuple[int, ...], Words]) -> Iterator[Words]:
    """All sentences with these labels: every word ends with SIL, and more SIL may stand between words."""
    if not labels:
        yield ()
        return
    if labels[0] == SIL:
        yield from readings(labels[1:], spellings)
    for spelling, words in spellings.items():
        if labels[: len(spelling) + 1] == (*spelling, SIL):
            for rest in readings(labels[len(spelling) + 1 :], spellings):
                yield from ((word, *rest) for word in words)


def best_scores(
    emissions: np.ndarray, spellings: Mapping[tuple[int, ...], Words], language: Callable[[Words], float]
) -> dict[Words, float]:
    """Score of the best path of every sentence that (T, 41) log-probabilities can spell."""
    symbols = sorted({BLANK, SIL, *itertools.chain(*spellings)})
    found: dict[Words, float] = {}
    for path in itertools.product(symbols, repeat=len(emissions)):
        labels = tuple(key for key, _ in itertools.groupby(path) if key != BLANK)
        acoustic = float(emissions[np.arange(len(path)), path].sum())
        for words in readings(labels, spellings):
            found[words] = max(found.get(words, -np.inf), acoustic + language(words))
    return found
