"""How long each phoneme of a sentence takes."""

from __future__ import annotations

import numpy as np

from neuro.simulate.settings import Pace
from neuro.trial import BIN_SECONDS

# Time of a symbol relative to the mean over running speech; word boundaries are short, vowels and hisses long.
_KINDS: dict[str, tuple[float, tuple[str, ...]]] = {
    "diphthong": (1.45, ("AW", "AY", "EY", "OW", "OY")),
    "long vowel": (1.3, ("AA", "AE", "AO", "ER", "IY", "UW")),
    "short vowel": (1.0, ("AH", "EH", "IH", "UH")),
    "hiss": (1.15, ("S", "SH", "Z", "ZH", "F", "CH", "JH", "TH")),
    "nasal or liquid": (0.95, ("M", "N", "NG", "L", "R", "W", "Y")),
    "stop or brief": (0.85, ("B", "D", "DH", "G", "HH", "K", "P", "T", "V")),
    "boundary": (0.85, ("SIL",)),
}
RELATIVE = {symbol: factor for factor, members in _KINDS.values() for symbol in members}
"""Relative mean duration of each symbol."""

JITTER = 0.28
"""Standard deviation of the logarithm of a single duration."""

PACE_JITTER = 0.14
"""Standard deviation of the logarithm of a sentence's pace."""

SHORTEST_SECONDS = 0.06
FINAL_LENGTHENING = 1.35
PAUSE_CHANCE = 0.08
PAUSE_FACTOR = 3.0


def _lognormal(mean: float, sd: float, rng: np.random.Generator) -> float:
    spread = np.sqrt(np.log1p((sd / mean) ** 2))
    return float(mean * np.exp(spread * rng.standard_normal() - 0.5 * spread**2))


def durations(symbols: list[str], pace: Pace, rng: np.random.Generator, speed: float = 1.0) -> np.ndarray:
    """Draw the time of each symbol of a sentence.

    Parameters
    ----------
    symbols
        L symbols, a ``"SIL"`` after every word.
    pace
        The participant's pace.
    rng
        Source of randomness.
    speed
        Factor on the speaking rate.

    Returns
    -------
    float64 (L,)
        Seconds, each at least 60 ms.
    """
    relative = np.array([RELATIVE[symbol] for symbol in symbols])
    boundary = np.array([symbol == "SIL" for symbol in symbols])
    relative[-3:] *= FINAL_LENGTHENING
    jitter = np.exp(JITTER * rng.standard_normal(len(symbols)))
    pauses = boundary & (rng.random(len(symbols)) < PAUSE_CHANCE)
    jitter[pauses] *= PAUSE_FACTOR
    sentence = np.exp(PACE_JITTER * rng.standard_normal())
    return np.maximum(relative * jitter * sentence * pace.phoneme_seconds / speed, SHORTEST_SECONDS)


def silences(pace: Pace, rng: np.random.Generator, factor: float = 1.0) -> tuple[float, float]:
    """Draw the silence before and after a sentence, in seconds, each at least 0.1."""
    before = _lognormal(*pace.before_seconds, rng) * factor
    after = _lognormal(*pace.after_seconds, rng) * factor
    return max(before, 0.1), max(after, 0.1)


def bins(seconds: float) -> int:
    """Number of whole feature bins in a time, at least 1."""
    return max(1, round(seconds / BIN_SECONDS))
