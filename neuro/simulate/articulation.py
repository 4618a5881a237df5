"""Phonemes to movements of the vocal tract, with coarticulation.

Each phoneme is a target for every articulator and a weight saying how much it insists on it: a /b/ must close the lips
and leaves the tongue alone, so at a /b/ the tongue is on its way from the vowel before to the vowel after. Overlapping
dominance functions blend the targets, after Cohen and Massaro, "Modeling coarticulation in synthetic visual speech",
1993. The targets come from textbook phonetic features of English.
"""

from __future__ import annotations

import numpy as np

ARTICULATORS = (
    "jaw",  # open 1, closed -1
    "lips",  # apart 1, closed -1
    "rounding",  # rounded 1, spread -1
    "tip",  # tongue tip raised 1
    "tip place",  # teeth 1, behind the ridge -1
    "body height",  # high 1, low -1
    "body front",  # front 1, back -1
    "dorsum",  # raised to the velum 1
    "velum",  # open (nasal) 1
    "voicing",  # vocal folds vibrate 1, apart -1
    "friction",  # turbulent flow 1
    "sides",  # sides of the tongue lowered 1
    "bunching",  # r-colour 1
    "effort",  # speaking 1, at rest -1
)
"""Names of the articulatory dimensions."""

_INDEX = {name: i for i, name in enumerate(ARTICULATORS)}

# Where a consonant is made: articulator -> (target, weight).
_PLACES: dict[str, dict[str, tuple[float, float]]] = {
    "lips": {"lips": (-1.0, 1.0), "jaw": (-0.5, 0.5)},
    "lip-teeth": {"lips": (-0.5, 1.0), "jaw": (-0.6, 0.7), "rounding": (-0.3, 0.3)},
    "teeth": {"tip": (0.8, 1.0), "tip place": (1.0, 1.0), "jaw": (-0.3, 0.5)},
    "ridge": {"tip": (1.0, 1.0), "tip place": (0.3, 0.9), "jaw": (-0.5, 0.6)},
    "behind": {"tip": (0.7, 0.8), "tip place": (-0.7, 0.9), "body height": (0.5, 0.5), "rounding": (0.5, 0.5)},
    "palate": {"body height": (1.1, 1.0), "body front": (1.0, 1.0), "rounding": (-0.4, 0.3), "jaw": (-0.5, 0.4)},
    "velum": {"dorsum": (1.0, 1.0), "body height": (0.6, 0.5), "body front": (-0.4, 0.2), "jaw": (-0.2, 0.3)},
    "lips-velum": {"rounding": (1.1, 1.0), "lips": (-0.2, 0.6), "dorsum": (0.6, 0.8), "body front": (-0.8, 0.6)},
    "bunched": {"bunching": (1.0, 1.0), "rounding": (0.4, 0.4), "tip": (0.3, 0.4), "tip place": (-0.8, 0.5)},
    "glottis": {},
}

# How it is made, in one or two steps: articulator -> (target, weight).
_CLOSED: dict[str, tuple[float, float]] = {"friction": (-0.6, 0.6), "velum": (-0.9, 0.8)}
_BURST: dict[str, tuple[float, float]] = {"friction": (0.5, 0.6), "velum": (-0.9, 0.8)}
_NOISY: dict[str, tuple[float, float]] = {"friction": (1.0, 1.0), "velum": (-0.9, 0.8)}
_MANNERS: dict[str, tuple[dict[str, tuple[float, float]], ...]] = {
    "stop": (_CLOSED, _BURST),
    "fricative": (_NOISY,),
    "affricate": (_CLOSED, _NOISY),
    "nasal": ({"velum": (1.0, 1.0), "friction": (-0.8, 0.5)},),
    "glide": ({"friction": (-0.8, 0.5), "velum": (-0.7, 0.4)},),
    "lateral": ({"sides": (1.0, 1.0), "friction": (-0.8, 0.5), "velum": (-0.7, 0.4)},),
}

_CONSONANTS: dict[str, tuple[str, str, bool]] = {
    "B": ("lips", "stop", True),
    "P": ("lips", "stop", False),
    "M": ("lips", "nasal", True),
    "F": ("lip-teeth", "fricative", False),
    "V": ("lip-teeth", "fricative", True),
    "TH": ("teeth", "fricative", False),
    "DH": ("teeth", "fricative", True),
    "T": ("ridge", "stop", False),
    "D": ("ridge", "stop", True),
    "N": ("ridge", "nasal", True),
    "S": ("ridge", "fricative", False),
    "Z": ("ridge", "fricative", True),
    "L": ("ridge", "lateral", True),
    "SH": ("behind", "fricative", False),
    "ZH": ("behind", "fricative", True),
    "CH": ("behind", "affricate", False),
    "JH": ("behind", "affricate", True),
    "Y": ("palate", "glide", True),
    "K": ("velum", "stop", False),
    "G": ("velum", "stop", True),
    "NG": ("velum", "nasal", True),
    "W": ("lips-velum", "glide", True),
    "R": ("bunched", "glide", True),
    "HH": ("glottis", "fricative", False),
}

# Vowels as (height, frontness, rounding, bunching), in one or two steps.
_VOWELS: dict[str, tuple[tuple[float, float, float, float], ...]] = {
    "IY": ((1.0, 1.0, -0.6, 0.0),),
    "IH": ((0.6, 0.7, -0.3, 0.0),),
    "EH": ((0.0, 0.7, -0.2, 0.0),),
    "AE": ((-0.7, 0.8, -0.4, 0.0),),
    "AA": ((-1.0, -0.6, -0.2, 0.0),),
    "AO": ((-0.5, -0.9, 0.6, 0.0),),
    "AH": ((-0.1, -0.1, -0.1, 0.0),),
    "UH": ((0.6, -0.6, 0.4, 0.0),),
    "UW": ((1.0, -0.8, 0.9, 0.0),),
    "ER": ((0.1, -0.1, 0.3, 1.0),),
    "EY": ((0.2, 0.8, -0.3, 0.0), (0.8, 0.9, -0.5, 0.0)),
    "AY": ((-0.9, -0.1, -0.2, 0.0), (0.7, 0.8, -0.4, 0.0)),
    "OY": ((-0.4, -0.9, 0.7, 0.0), (0.7, 0.8, -0.3, 0.0)),
    "OW": ((0.0, -0.7, 0.5, 0.0), (0.7, -0.8, 0.9, 0.0)),
    "AW": ((-0.9, 0.1, -0.2, 0.0), (0.6, -0.8, 0.8, 0.0)),
}

# A word boundary relaxes the tract a little; at rest it is closed, silent and still.
_BOUNDARY = {"effort": (-0.6, 1.0), "voicing": (-0.8, 0.6), "friction": (-0.6, 0.3), "jaw": (-0.4, 0.2)}
_REST = dict.fromkeys(("jaw", "lips", "voicing", "friction"), (-0.7, 1.2))
_REST |= dict.fromkeys(("rounding", "tip", "tip place", "body height", "body front", "dorsum", "bunching"), (0.0, 1.2))
_REST |= {"velum": (0.3, 1.2), "sides": (-0.3, 1.2), "effort": (-1.5, 2.0)}

# Where nothing is said an articulator drifts to this neutral posture, with this small weight.
_NEUTRAL = {"tip": -0.5, "dorsum": -0.5, "sides": -0.5, "velum": -0.5, "bunching": -0.3, "effort": 1.0, "lips": 0.3}
_NEUTRAL_WEIGHT = 0.12


def _vowel(height: float, front: float, rounding: float, bunching: float) -> dict[str, tuple[float, float]]:
    return {
        "jaw": (-0.8 * height, 0.7),
        "lips": (0.6 - 0.5 * rounding, 0.6),
        "rounding": (rounding, 0.7),
        "tip": (-0.7, 0.4),
        "body height": (height, 0.9),
        "body front": (front, 0.9),
        "dorsum": (-0.6, 0.3),
        "velum": (-0.6, 0.25),
        "voicing": (1.0, 1.0),
        "friction": (-0.8, 0.7),
        "sides": (-0.5, 0.3),
        "bunching": (bunching, 0.9 if bunching else 0.4),
        "effort": (1.2, 1.0),
    }


def _consonant(place: str, manner: str, voiced: bool) -> list[dict[str, tuple[float, float]]]:
    common = {"voicing": (0.7 if voiced else -1.0, 0.9), "effort": (0.9, 0.8)}
    return [common | _PLACES[place] | step for step in _MANNERS[manner]]


def _steps(symbol: str) -> list[dict[str, tuple[float, float]]]:
    if symbol in _VOWELS:
        return [_vowel(*step) for step in _VOWELS[symbol]]
    if symbol in _CONSONANTS:
        return _consonant(*_CONSONANTS[symbol])
    return [{"SIL": _BOUNDARY, "REST": _REST}[symbol]]


def targets(symbol: str) -> tuple[np.ndarray, np.ndarray]:
    """Articulatory targets of a phoneme.

    Parameters
    ----------
    symbol
        One of the 39 ARPAbet symbols, ``"SIL"`` (word boundary) or ``"REST"``.

    Returns
    -------
    positions, weights : float32 (2, A)
        Target and weight of each articulator in the first and the second half of the phoneme.

    Raises
    ------
    KeyError
        If there is no such symbol.
    """
    positions = np.tile([_NEUTRAL.get(name, 0.0) for name in ARTICULATORS], (2, 1)).astype(np.float32)
    weights = np.full((2, len(ARTICULATORS)), _NEUTRAL_WEIGHT, np.float32)
    steps = _steps(symbol)
    for half in range(2):
        for name, (target, weight) in steps[min(half, len(steps) - 1)].items():
            positions[half, _INDEX[name]] = target
            weights[half, _INDEX[name]] = weight
    return positions, weights


def symbols() -> tuple[str, ...]:
    """Every symbol that has targets: vowels, consonants, ``"SIL"`` and ``"REST"``."""
    return (*_VOWELS, *_CONSONANTS, "SIL", "REST")


OVERLAP = 0.45
"""Width (standard deviation) of a half-phoneme's dominance, in lengths of that half, plus a fixed part below."""

OVERLAP_SECONDS = 0.022


def trajectories(
    names: list[str], edges: np.ndarray, times: np.ndarray, offsets: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Movements of all articulators over a sentence.

    Parameters
    ----------
    names
        P symbols, beginning and ending with ``"REST"``.
    edges : float (P + 1,)
        Start of each symbol and end of the last, in seconds.
    times : float (T,)
        When to read the positions, in seconds, evenly spaced.
    offsets : float (P, A), optional
        Added to each symbol's targets: no two attempts are the same.

    Returns
    -------
    positions : float32 (T, A)
    velocities : float32 (T, A)
        Per second.
    """
    pairs = [targets(name) for name in names]
    goal = np.concatenate([pair[0] for pair in pairs])
    weight = np.concatenate([pair[1] for pair in pairs])
    if offsets is not None:
        goal = goal + np.repeat(offsets, 2, axis=0).astype(np.float32)
    edges = np.asarray(edges, np.float32)
    middles = 0.5 * (edges[:-1] + edges[1:])
    bounds = np.sort(np.concatenate([edges, middles]))  # halves of symbols
    lengths = np.diff(bounds)
    centres = 0.5 * (bounds[:-1] + bounds[1:])
    # A rectangle as long as the half, with soft shoulders. Long halves dominate no more than short ones.
    width = OVERLAP * np.minimum(lengths, 1.0) + OVERLAP_SECONDS
    distance = np.abs(np.asarray(times, np.float32)[:, None] - centres[None, :])
    beyond = np.maximum(distance - 0.25 * lengths, 0.0) / width
    dominance = np.exp(-0.5 * np.minimum(beyond, 12.0) ** 2) + 1e-30
    positions = (dominance @ (weight * goal)) / (dominance @ weight)
    step = float(times[1] - times[0]) if len(times) > 1 else 1.0
    velocities = np.gradient(positions, step, axis=0) if len(times) > 1 else np.zeros_like(positions)
    return positions.astype(np.float32), velocities.astype(np.float32)
