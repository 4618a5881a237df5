"""One trial: a sentence that was attempted, and what the electrodes saw meanwhile."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

BIN_SECONDS = 0.02
"""Length of one feature bin in every Brain-to-Text release, in seconds."""

THRESHOLDS = (-3.5, -4.5, -5.5, -6.5)
"""Crossing thresholds of tx1..tx4, in multiples of a channel's root mean square voltage."""


@dataclass(frozen=True)
class Trial:
    """A trial as every reader hands it out, whatever the file it came from.

    Attributes
    ----------
    features : float32 (T, C)
        One row a 20 ms bin. First half of the channels threshold crossings, second half spike-band power.
    phonemes : int64 (L,), or None
        Phoneme ids in torch order (1..39 = AA..ZH, 40 = SIL); None where the split has no labels.
    sentence : str, or None
        The prompt with its case and punctuation; None where the split has no labels.
    session : str
        Name of the recording day, such as ``t15.2023.08.13``.
    block, trial : int
        Block of the day, and number of the trial inside the block. The block is -1 where the file does not tell it.
    split : str
        ``train``, ``val`` or ``test``.
    key : str
        Identifies the trial within its data set: ``session/split/name``.
    corpus : str, or None
        Where the prompt came from, when the block table tells.
    onsets : int64 (L,), or None
        True first bin of every phoneme; known for simulated data only.
    """

    features: np.ndarray
    phonemes: np.ndarray | None
    sentence: str | None
    session: str
    block: int
    trial: int
    split: str
    key: str
    corpus: str | None = None
    onsets: np.ndarray | None = None


@dataclass(frozen=True)
class RawTrial:
    """A trial before normalisation, as an amplifier (or the simulator) delivers it to a writer.

    Attributes
    ----------
    counts : dict of threshold to int (T, N)
        Threshold-crossing counts per bin on N electrodes, one array for each of `THRESHOLDS` that is known. -4.5 is
        what the '25 form stores; -3.5 is what the '24 baselines use (``tx1``).
    power : float32 (T, N)
        Spike-band power, uV^2; (T, 0) where the channels have counts only.
    sentence, phonemes, session, block, trial, split, corpus
        As in `Trial`. ``split`` is where a writer puts the trial.
    onsets : int64 (L,), or None
        True first bin of every phoneme, known for simulated data only.
    """

    counts: dict[float, np.ndarray]
    power: np.ndarray
    sentence: str
    phonemes: np.ndarray
    session: str
    block: int
    trial: int
    split: str
    corpus: str
    onsets: np.ndarray | None = field(default=None)
