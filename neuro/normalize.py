"""Z-scores: over a block, as the official releases have them, and causally, for decoding while someone speaks."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

EPSILON = 1e-8
"""Added to every standard deviation, as the official '24 and '25 pipelines do."""


def zscore_statistics(trials: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation (population form) of each channel over all frames of some trials.

    Parameters
    ----------
    trials
        Arrays (T_i, C) of any numeric dtype; at least one.

    Returns
    -------
    mean, sd : float64 (C,)
    """
    frames = sum(len(trial) for trial in trials)
    # Two passes, one trial at a time: exact enough for powers of 1e4 and no second copy of the block.
    mean = sum(trial.sum(axis=0, dtype=np.float64) for trial in trials) / frames
    variance = sum(np.square(trial - mean, dtype=np.float64).sum(axis=0) for trial in trials) / frames
    return np.asarray(mean), np.sqrt(np.asarray(variance))


def apply_zscore(trial: np.ndarray, mean: np.ndarray, sd: np.ndarray, eps: float = EPSILON) -> np.ndarray:
    """``(trial - mean) / (sd + eps)`` in double precision, as float32 (T, C)."""
    return ((trial - mean) / (sd + eps)).astype(np.float32)


def block_zscore(
    trials: Sequence[np.ndarray], blocks: Sequence[Hashable] | None = None, eps: float = EPSILON
) -> list[np.ndarray]:
    """Z-score every channel over all trials of its block, as both official pipelines do.

    It looks ahead to the end of the block, so it is for data sets; `RunningZScore` is for live use.

    Parameters
    ----------
    trials
        Arrays (T_i, C) of any numeric dtype.
    blocks
        Block of each trial; all one block by default. Trials of a block need not follow one another.
    eps
        Added to the standard deviation; a channel that never changes becomes 0.

    Returns
    -------
    list of float32 (T_i, C)

    References
    ----------
    makeTFRecordsFromSession.py in fwillett/speechBCI; gru_data_formatter.py in snel-repo/brand-speech.
    """
    blocks = [0] * len(trials) if blocks is None else list(blocks)
    if len(blocks) != len(trials):
        raise ValueError(f"{len(trials)} trials but {len(blocks)} block numbers")
    members: dict[Hashable, list[np.ndarray]] = {}
    for trial, block in zip(trials, blocks, strict=True):
        members.setdefault(block, []).append(trial)
    statistics = {block: zscore_statistics(group) for block, group in members.items()}
    return [apply_zscore(trial, *statistics[block], eps) for trial, block in zip(trials, blocks, strict=True)]


@dataclass(frozen=True)
class RunningState:
    """What `RunningZScore` remembers: a value, never changed in place.

    Attributes
    ----------
    frames : int
        Frames seen so far.
    origin : float64 (N,)
        The first frame; sums are taken relative to it, so that a large offset costs no precision.
    window : float64 (W, N)
        The last W frames less the origin, as a ring.
    total, total_square : float64 (N,)
        Sums over the window.
    """

    frames: int
    origin: np.ndarray
    window: np.ndarray
    total: np.ndarray
    total_square: np.ndarray


class RunningZScore:
    """Causal z-score over a sliding window of the immediate past.

    Frame t is normalised by mean and standard deviation of the last W frames, itself included. Frame by frame, in
    chunks of any size, or all at once: the results are bit for bit the same.

    Warm-up: until W frames have been seen, the window holds all frames so far. The first ``warmup_seconds`` come out
    as 0, because statistics of a few frames would blow noise up. To avoid the silence, run a stretch of earlier
    recording through first, and pass the state on.

    Parameters
    ----------
    n_channels
        N.
    window_seconds
        Length of the window, 10 s as in the online pipeline of Neuroprosthetics-Lab/brain-to-voice-2025.
    dt
        Seconds per frame.
    warmup_seconds
        At most `window_seconds`.
    eps
        Added to the standard deviation; a channel that does not change in the window becomes 0.

    Examples
    --------
    >>> import numpy as np
    >>> normalize = RunningZScore(2, window_seconds=1.0, dt=0.02)
    >>> frames = np.random.default_rng(0).poisson(0.6, (100, 2))
    >>> whole, _ = normalize(frames)
    >>> first, state = normalize(frames[:30])
    >>> rest, state = normalize(frames[30:], state)
    >>> bool((np.concatenate([first, rest]) == whole).all())
    True
    """

    def __init__(
        self,
        n_channels: int,
        window_seconds: float = 10.0,
        dt: float = 0.02,
        *,
        warmup_seconds: float = 1.0,
        eps: float = EPSILON,
    ) -> None:
        self.n_channels, self.dt, self.eps = n_channels, dt, eps
        self.window = round(window_seconds / dt)
        self.warmup = min(round(warmup_seconds / dt), self.window)
        if n_channels < 1 or self.window < 2:
            raise ValueError(f"needs a channel and a window of two frames, not {n_channels} and {self.window}")

    def initial_state(self) -> RunningState:
        """The state before the first frame."""
        N = self.n_channels
        return RunningState(0, np.zeros(N), np.zeros((self.window, N)), np.zeros(N), np.zeros(N))

    def __call__(self, x: np.ndarray, state: RunningState | None = None) -> tuple[np.ndarray, RunningState]:
        """Normalise the next frames.

        Parameters
        ----------
        x
            (T, N), or (N,) for a single frame; any numeric dtype.
        state
            What the previous call returned; None at the start.

        Returns
        -------
        y : float32, the shape of `x`
        state : RunningState

        Raises
        ------
        ValueError
            If the shape does not fit.
        """
        x = np.asarray(x, np.float64)
        if x.ndim not in (1, 2) or x.shape[-1] != self.n_channels:
            raise ValueError(f"expected (T, {self.n_channels}) or ({self.n_channels},), found {x.shape}")
        state = self.initial_state() if state is None else state
        frames, origin, ring = state.frames, state.origin, state.window.copy()
        total, square = state.total.copy(), state.total_square.copy()
        y = np.zeros((1, self.n_channels) if x.ndim == 1 else x.shape, np.float32)
        for t, frame in enumerate(np.atleast_2d(x)):
            if frames == 0:
                origin = frame.copy()
            slot = frames % self.window
            new = frame - origin
            old = ring[slot].copy()
            ring[slot] = new
            frames += 1
            if frames % self.window == 0:  # afresh once per turn of the ring, so that rounding never piles up
                total, square = ring.sum(axis=0), np.square(ring).sum(axis=0)
            else:
                total += new - old
                square += new * new - old * old
            if frames > self.warmup:
                n = min(frames, self.window)
                mean = total / n
                sd = np.sqrt(np.maximum(square / n - mean * mean, 0.0))
                y[t] = (new - mean) / (sd + self.eps)
        return y.reshape(x.shape), RunningState(frames, origin, ring, total, square)


class _Normalizable(Protocol):
    @property
    def normalized(self) -> bool: ...


def require_counts(recordings: _Normalizable, transform_name: str) -> bool:
    """Warn when a transform made for spike counts (log, square root, binarising) meets z-scored features.

    Parameters
    ----------
    recordings
        Anything with ``normalized``, such as `neuro.Recordings`.
    transform_name
        What was asked for, for the message.

    Returns
    -------
    bool
        True when the features are counts, as the transform needs them.
    """
    if recordings.normalized:
        warnings.warn(
            f"{transform_name} is made for spike counts, but these recordings are already z-scored"
            " (the '25 files always are; open the '24 form with normalize='none' for counts)",
            stacklevel=2,
        )
    return not recordings.normalized
