"""Which trials make up batch k: pure functions of (seed, k), so a resumed run sees the very same batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

import numpy as np
from torch.utils.data import Sampler

# Streams of random numbers that must not repeat one another, although they share the user's seed.
STREAMS = {"pass": 0, "pool": 1, "days": 2, "augment": 3, "dropout": 4}


def stream_seed(seed: int, stream: str, *position: int) -> int:
    """63-bit seed of one random stream at one position.

    Parameters
    ----------
    seed
        The run's seed, >= 0.
    stream
        A key of `STREAMS`.
    position
        Where in the run: batch number, rank, ...

    Examples
    --------
    >>> stream_seed(1, "augment", 7, 0) == stream_seed(1, "augment", 7, 0)
    True
    >>> stream_seed(1, "augment", 7, 0) == stream_seed(1, "dropout", 7, 0)
    False
    """
    sequence = np.random.SeedSequence([seed, STREAMS[stream], *position])
    return int(sequence.generate_state(1, np.uint64)[0] >> np.uint64(1))


class BatchPlan(Protocol):
    """A pure function from the number of a batch to the positions of its trials."""

    batch_size: int

    def __call__(self, number: int) -> np.ndarray:
        """Positions of the trials of batch ``number``, int64 (batch_size,)."""


class MixedDays:
    """Every trial once a pass, days mixed.

    The passes form one endless stream of trials that is cut every ``batch_size``, so no trial is dropped at the end of
    a pass and every batch is full.

    Parameters
    ----------
    n_trials
        Number of trials, >= 1.
    batch_size
        Trials a batch.
    seed
        Of the order.
    frames : int (n_trials,), or None
        Trial lengths. When given, each run of ``pool`` batches is sorted by length before it is cut into batches
        (which then come in random order), so that trials of a batch are of like length and little is padded.
    pool
        Batches that are sorted together; made smaller when the data hold fewer.
    """

    def __init__(
        self, n_trials: int, batch_size: int, seed: int, *, frames: np.ndarray | None = None, pool: int = 16
    ) -> None:
        if n_trials < 1:
            raise ValueError("no trials to draw batches from")
        self.n_trials, self.batch_size, self.seed = n_trials, batch_size, seed
        self.frames = None if frames is None else np.asarray(frames)
        # A pool longer than a pass would put several copies of a trial side by side into one batch.
        self.pool = max(1, min(pool, n_trials // batch_size))
        self._orders: dict[int, np.ndarray] = {}

    def _pass(self, number: int) -> np.ndarray:
        if number not in self._orders:
            if len(self._orders) > 1:  # a batch touches two passes at most, unless it is larger than a pass
                del self._orders[min(self._orders)]
            rng = np.random.default_rng(stream_seed(self.seed, "pass", number))
            self._orders[number] = rng.permutation(self.n_trials)
        return self._orders[number]

    def _stream(self, start: int, stop: int) -> np.ndarray:
        first, last = start // self.n_trials, (stop - 1) // self.n_trials
        trials = np.concatenate([self._pass(number) for number in range(first, last + 1)])
        return trials[start - first * self.n_trials : stop - first * self.n_trials]

    def __call__(self, number: int) -> np.ndarray:
        """Positions of the trials of batch ``number``, int64 (batch_size,)."""
        if self.frames is None:
            return self._stream(number * self.batch_size, (number + 1) * self.batch_size)
        pool, place = divmod(number, self.pool)
        size = self.pool * self.batch_size
        trials = self._stream(pool * size, (pool + 1) * size)
        trials = trials[np.argsort(self.frames[trials], kind="stable")]
        rng = np.random.default_rng(stream_seed(self.seed, "pool", pool))
        place = rng.permutation(self.pool)[place]
        return trials[place * self.batch_size : (place + 1) * self.batch_size]


class FewDays:
    """Each batch from a few random days, trials drawn with replacement (the '25 recipe: 64 trials from 4 days).

    Source: Neuroprosthetics-Lab/nejm-brain-to-text, model_training/dataset.py.

    Parameters
    ----------
    days : int (n_trials,)
        Day of each trial.
    batch_size
        Trials a batch.
    days_per_batch
        Different days a batch; all of them when the data hold fewer.
    seed
        Of the draws.
    """

    def __init__(self, days: Sequence[int] | np.ndarray, batch_size: int, days_per_batch: int, seed: int) -> None:
        days = np.asarray(days)
        if len(days) < 1:
            raise ValueError("no trials to draw batches from")
        self.trials = [np.flatnonzero(days == day) for day in np.unique(days)]
        self.batch_size, self.seed = batch_size, seed
        self.days_per_batch = min(days_per_batch, len(self.trials))

    def __call__(self, number: int) -> np.ndarray:
        """Positions of the trials of batch ``number``, int64 (batch_size,)."""
        rng = np.random.default_rng(stream_seed(self.seed, "days", number))
        chosen = rng.choice(len(self.trials), self.days_per_batch, replace=False)
        each = -(-self.batch_size // self.days_per_batch)
        drawn = np.concatenate([rng.choice(self.trials[day], each) for day in chosen])
        return drawn[: self.batch_size]


class UpdateNumbers(Sampler[int]):
    """Numbers of one epoch's batches, counted over the whole run.

    Parameters
    ----------
    per_epoch
        Batches an epoch.
    progress
        Tells how many batches the run has finished. It is asked when the first number is wanted, so a run that is
        resumed in the middle of an epoch goes on with the batch that comes next.
    """

    def __init__(self, per_epoch: int, progress: Callable[[], int]) -> None:
        self.per_epoch, self.progress = per_epoch, progress

    def __len__(self) -> int:
        return self.per_epoch

    def __iter__(self) -> Iterator[int]:
        """Numbers from the next batch to the end of its epoch."""
        first = self.progress()
        yield from range(first, (first // self.per_epoch + 1) * self.per_epoch)
