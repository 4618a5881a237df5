"""Independent random streams, so that no draw depends on how many others were made before it."""

from __future__ import annotations

from enum import IntEnum

import numpy as np


class Stream(IntEnum):
    """What a random generator is for. The values are part of the data format: never renumber them."""

    CORTEX = 0
    DAY = 1
    BLOCK = 2
    TRIAL = 3
    SENTENCE = 4
    CALENDAR = 5
    SPLIT = 6
    TEXT = 7


def generator(seed: int, stream: Stream, *position: int) -> np.random.Generator:
    """Random generator of one place in the data: the same whatever else is drawn.

    Parameters
    ----------
    seed
        The participant's seed, at least 0.
    stream
        What the generator is for.
    position
        Where: day, block, trial, ... each at least 0.
    """
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, int(stream), *position])))
