"""From the number of a batch to the batch: plans, this process's share, and trials kept in memory."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
from torch.utils.data import DataLoader, Dataset

from neuro import Batch, Recordings, Trial, collate


@dataclass(frozen=True)
class NumberedBatch(Batch):
    """A batch that knows its place in the run.

    Attributes
    ----------
    number : int
        Counted over the whole run; seeds the augmentation.
    counted : int
        How many of its trials, from the first, are scored; the others only fill up a process's share.
    """

    number: int = 0
    counted: int = 0


class TrialBatches(Dataset[NumberedBatch]):
    """Map from the number of a batch to this process's share of it.

    Parameters
    ----------
    trials
        Indexed by position.
    plan
        Positions of the trials of batch k, over all processes.
    sessions
        In day order.
    rank, world
        The share is every ``world``-th trial of the plan's batch, from ``rank`` on.
    counted
        Trials of the plan's batch k that count, from its first; all when None.
    """

    def __init__(
        self,
        trials: Sequence[Trial],
        plan: Callable[[int], np.ndarray],
        sessions: Sequence[str],
        rank: int = 0,
        world: int = 1,
        counted: Callable[[int], int] | None = None,
    ) -> None:
        self.trials, self.plan, self.sessions = trials, plan, list(sessions)
        self.rank, self.world, self.counted = rank, world, counted

    def __getitem__(self, number: int) -> NumberedBatch:
        positions = self.plan(number)
        counted = len(positions) if self.counted is None else self.counted(number)
        batch = collate([self.trials[int(p)] for p in positions[self.rank :: self.world]], self.sessions)
        parts = {field.name: getattr(batch, field.name) for field in fields(batch)}
        return NumberedBatch(**parts, number=number, counted=len(range(self.rank, counted, self.world)))


class EachTrialOnce:
    """Plan of a scored split: every trial once, trials of like length together, little padding.

    Under several processes the last batch is filled up with copies that do not count, because each process must see
    the same number of batches.

    Parameters
    ----------
    frames : int (n,)
        Trial lengths.
    batch_size
        Over all processes; rounded up to a multiple of ``world``.
    world
        Number of processes.
    """

    def __init__(self, frames: np.ndarray, batch_size: int, world: int = 1) -> None:
        self.order = np.argsort(frames, kind="stable")
        self.batch_size, self.world = -(-batch_size // world) * world, world

    def __len__(self) -> int:
        return -(-len(self.order) // self.batch_size)

    def __call__(self, number: int) -> np.ndarray:
        """Positions of the trials of batch ``number``, copies at the end."""
        chosen = self.order[number * self.batch_size : (number + 1) * self.batch_size]
        return np.concatenate([chosen, np.repeat(chosen[:1], -len(chosen) % self.world)])

    def counted(self, number: int) -> int:
        """Trials of batch ``number`` that are no copies."""
        return len(self.order[number * self.batch_size : (number + 1) * self.batch_size])


class SomeTrials(Sequence[Trial]):
    """Chosen trials of a recording, read when asked for, or once and then kept.

    Parameters
    ----------
    trials
        The source.
    positions : int (n,)
        Which of its trials, in which order.
    keep
        Whether to keep what was read.
    """

    def __init__(self, trials: Recordings, positions: np.ndarray, keep: bool) -> None:
        self.trials, self.positions, self.keep = trials, positions, keep
        self._kept: dict[int, Trial] = {}

    def __len__(self) -> int:
        return len(self.positions)

    def __getitem__(self, position):
        trial = self._kept.get(position)
        if trial is None:
            trial = self.trials[int(self.positions[position])]
            if self.keep:
                self._kept[position] = trial
        return trial

    def fill(self) -> None:
        """Read every trial now: in the order of the files, and once for all processes that are forked later."""
        for position in range(len(self)):
            self[position]


class RunLoader(DataLoader):
    """A loader whose place follows from the trainer's progress.

    Having a state, it tells the trainer that it can be resumed in the middle of an epoch.
    """

    def state_dict(self) -> dict[str, int]:
        """Number of the next batch."""
        return {"next_batch": self.sampler.progress()}

    def load_state_dict(self, state: dict[str, int]) -> None:
        """Nothing to set: the trainer's own progress is restored before the first batch is asked for."""


def available_memory() -> int:
    """Bytes that may still be taken without pushing anything out; half the memory where the system does not tell."""
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
