"""CTC by writing down every path."""

from __future__ import annotations

from itertools import groupby, product

import numpy as np


def collapse(path: tuple[int, ...]) -> tuple[int, ...]:
    """Repeats merged, then blanks (0) dropped."""
    return tuple(symbol for symbol, _ in groupby(path) if symbol != 0)


def paths(T: int, n_symbols: int, label: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Every path of T frames that spells the label."""
    return [path for path in product(range(n_symbols), repeat=T) if collapse(path) == label]


def loss(log_probs: np.ndarray, label: tuple[int, ...]) -> float:
    """Minus the log probability (nats) of a label under ``log_probs (T, symbols)``; infinite without a path."""
    T, n_symbols = log_probs.shape
    scores = [sum(log_probs[t, symbol] for t, symbol in enumerate(path)) for path in paths(T, n_symbols, label)]
    return float("inf") if not scores else -float(np.logaddexp.reduce(scores))


def best_path(log_probs: np.ndarray, label: tuple[int, ...]) -> tuple[int, ...]:
    """The likeliest path that spells a label."""
    T, n_symbols = log_probs.shape
    return max(paths(T, n_symbols, label), key=lambda path: sum(log_probs[t, symbol] for t, symbol in enumerate(path)))
