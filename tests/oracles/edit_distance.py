"""Edit distance and its cheapest answers by trying everything."""

from __future__ import annotations

from functools import cache
from itertools import product


def edit_distance(ref: tuple[int, ...], hyp: tuple[int, ...]) -> int:
    """Fewest edits, by the three ways to begin."""

    @cache
    def fewest(i: int, j: int) -> int:
        if i == len(ref):
            return len(hyp) - j
        if j == len(hyp):
            return len(ref) - i
        return min(
            fewest(i + 1, j + 1) + (ref[i] != hyp[j]),
            fewest(i + 1, j) + 1,
            fewest(i, j + 1) + 1,
        )

    return fewest(0, 0)


def median_string(labels: list[tuple[int, ...]], symbols: range, longest: int) -> int:
    """Least total distance that any one string of at most ``longest`` symbols has to all labels."""
    strings = (string for n in range(longest + 1) for string in product(symbols, repeat=n))
    return min(sum(edit_distance(label, string) for label in labels) for string in strings)
