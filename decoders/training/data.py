"""A recording as batches for training and validation, the same ones in every run with the same seed."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Literal

import numpy as np
import torch
from pytorch_lightning import LightningDataModule
from pytorch_lightning.utilities.rank_zero import rank_zero_warn

from decoders.training.batches import (
    EachTrialOnce,
    NumberedBatch,
    RunLoader,
    SomeTrials,
    TrialBatches,
    available_memory,
)
from decoders.training.limits import DATA, check_limits
from decoders.training.sampler import BatchPlan, FewDays, MixedDays, UpdateNumbers, stream_seed
from neuro import Batch, DataError
from neuro.augment import AUGMENTATIONS, Compose
from neuro.phonemes import SYMBOLS
from neuro.recordings import Recordings, infeasible, open_recordings


def make_augmentation(options: dict[str, dict[str, Any]]) -> Compose:
    """Augmentations by name, applied in the order of `neuro.augment.AUGMENTATIONS`.

    Raises
    ------
    DataError
        If a name is unknown or an option does not fit.
    """
    if unknown := set(options) - set(AUGMENTATIONS):
        raise DataError(
            "unknown augmentation", field="data.augmentations", found=sorted(unknown)[0], expected=list(AUGMENTATIONS)
        )
    try:
        return Compose([AUGMENTATIONS[name](**options[name]) for name in AUGMENTATIONS if name in options])
    except (TypeError, ValueError) as error:
        raise DataError(f"augmentation refused: {error}", field="data.augmentations") from error


class RecordingsData(LightningDataModule):
    """The training and validation splits of a recording.

    Batch k is a function of (seed, k) alone, and the augmentation of (seed, k, process), so a run that was killed
    and resumed sees the very same numbers as one that was not.

    Parameters
    ----------
    path
        Folder or file of the recording, in any form that `neuro.open_recordings` knows.
    batch_size
        Trials an update, over all processes together; each process gets an equal share.
    augmentations
        Names and options from `neuro.augment.AUGMENTATIONS`, for instance ``{white_noise: {sd: 0.8}}``.
    days_per_batch
        Draw each batch from so many random days, trials with replacement (4 in the '25 recipe). When left out, each
        trial comes once a pass and days mix.
    sort_by_length
        Put trials of like length into the same batch, which saves work on padding. Not with ``days_per_batch``.
    updates_per_epoch
        Batches an epoch; one pass over the trials when left out.
    normalize
        Handed to `neuro.open_recordings`.
    infeasible
        What to do with training trials whose label is longer than the decoder's output, which CTC cannot align:
        leave them out with a warning, or stop.
    cache
        Read all trials into memory at the start, if half of the free memory holds them.
    num_workers
        Processes that read ahead. 0 reads in the training process, fastest for data that fit in memory.
    val_batch_size
        Trials a batch in validation, over all processes; ``batch_size`` when left out.
    seed
        Of the order of trials and of the augmentation.
    """

    def __init__(
        self,
        path: str,
        batch_size: int = 64,
        augmentations: dict[str, dict[str, Any]] | None = None,
        days_per_batch: int | None = None,
        sort_by_length: bool = False,
        updates_per_epoch: int | None = None,
        normalize: Literal["auto", "block", "none"] = "auto",
        infeasible: Literal["skip", "stop"] = "skip",
        cache: bool = True,
        num_workers: int = 0,
        val_batch_size: int | None = None,
        seed: int = 1,
    ) -> None:
        super().__init__()
        check_limits("data", DATA, locals())
        if days_per_batch is not None and sort_by_length:
            raise DataError("days_per_batch and sort_by_length exclude each other", field="data.sort_by_length")
        self.path, self.batch_size, self.val_batch_size = str(path), batch_size, val_batch_size or batch_size
        self.augment = make_augmentation(augmentations or {})
        self.most_cut = int((augmentations or {}).get("random_cut", {}).get("max_bins", 0))
        self.days_per_batch, self.sort_by_length, self._per_epoch = days_per_batch, sort_by_length, updates_per_epoch
        self.normalize, self.infeasible = normalize, infeasible
        self.cache, self.num_workers, self.seed = cache, num_workers, seed
        self._lengths: dict[str, np.ndarray] = {}
        self.train_trials: SomeTrials | None = None
        self.val_trials: SomeTrials | None = None

    @cached_property
    def recordings(self) -> Recordings:
        """The recording, opened when first asked for."""
        return open_recordings(self.path, normalize=self.normalize)

    @property
    def n_channels(self) -> int:
        """Channels of a frame."""
        return self.recordings.n_channels

    @property
    def n_days(self) -> int:
        """Number of sessions, over all splits."""
        return len(self.recordings.sessions)

    def describe(self) -> dict[str, Any]:
        """What a checkpoint must remember of the data to be used on other data: plain containers only."""
        return {
            "path": self.path,
            "form": str(self.recordings.form),
            "sessions": list(self.recordings.sessions),
            "n_channels": int(self.recordings.n_channels),
            "normalize": self.normalize,
            "normalized": bool(self.recordings.normalized),
            "phonemes": list(SYMBOLS),
        }

    @property
    def updates_per_epoch(self) -> int:
        """Batches an epoch, after `setup`."""
        assert self.train_trials is not None, "call setup('fit') first"
        return self._per_epoch or -(-len(self.train_trials) // self.batch_size)

    def setup(self, stage: str) -> None:
        """Choose the trials of each split and decide whether to keep them in memory.

        Raises
        ------
        DataError
            If a split is empty or has no labels, or an infeasible trial is found and ``infeasible`` is "stop".
        """
        if self.batch_size % self._world:
            raise DataError(
                f"the batch cannot be shared equally among {self._world} processes",
                field="data.batch_size",
                found=self.batch_size,
                expected=f"a multiple of {self._world}",
            )
        keep = self._fits_in_memory() if self.cache else False
        if stage == "fit" and self.train_trials is None:
            view = self._labelled("train")
            self.train_trials = SomeTrials(view, self._feasible(view), keep)
        if self.val_trials is None and stage in ("fit", "validate"):
            view = self._labelled("val")
            self.val_trials = SomeTrials(view, np.arange(len(view)), keep)
        if keep:
            for trials in (self.train_trials, self.val_trials):
                if trials is not None:
                    trials.fill()

    def train_dataloader(self) -> RunLoader:
        """Batches from the trainer's present place to the end of its epoch."""
        assert self.train_trials is not None
        view, positions = self.train_trials.trials, self.train_trials.positions
        dataset = TrialBatches(
            self.train_trials, self._plan(view, positions), self.recordings.sessions, self._rank, self._world
        )
        return self._loader(dataset, UpdateNumbers(self.updates_per_epoch, self._batches_done))

    def val_dataloader(self) -> RunLoader:
        """The validation split, every trial once, in order of length."""
        assert self.val_trials is not None
        plan = EachTrialOnce(self._frames("val"), self.val_batch_size, self._world)
        dataset = TrialBatches(
            self.val_trials, plan, self.recordings.sessions, self._rank, self._world, counted=plan.counted
        )
        return self._loader(dataset, UpdateNumbers(len(plan), _none_done))

    def on_after_batch_transfer(self, batch: Batch, dataloader_idx: int) -> Batch:
        """Augment a training batch, on the device where it is used."""
        if not (self.augment.steps and isinstance(batch, NumberedBatch) and self.trainer and self.trainer.training):
            return batch
        generator = torch.Generator(device=batch.features.device)
        generator.manual_seed(stream_seed(self.seed, "augment", batch.number, self._rank))
        return self.augment(batch, generator)

    @property
    def _rank(self) -> int:
        return self.trainer.global_rank if self.trainer else 0

    @property
    def _world(self) -> int:
        return self.trainer.world_size if self.trainer else 1

    def _batches_done(self) -> int:
        return self.trainer.fit_loop.epoch_loop.batch_progress.total.processed if self.trainer else 0

    def _loader(self, dataset: TrialBatches, numbers: UpdateNumbers) -> RunLoader:
        return RunLoader(
            dataset,
            sampler=numbers,
            batch_size=None,  # an item is a batch already
            num_workers=self.num_workers,
            persistent_workers=self.num_workers > 0,
            pin_memory=torch.cuda.is_available(),
        )

    def _plan(self, view: Recordings, positions: np.ndarray) -> BatchPlan:
        if self.days_per_batch is not None:
            return FewDays(view.days()[positions], self.batch_size, self.days_per_batch, self.seed)
        frames = self._frames("train")[positions] if self.sort_by_length else None
        return MixedDays(len(positions), self.batch_size, self.seed, frames=frames)

    def _labelled(self, split: str) -> Recordings:
        view = self.recordings.split(split)
        if not view.has_labels:
            raise DataError("the split has no labels to learn from or to score", file=self.path, field=split)
        return view

    def _frames(self, split: str) -> np.ndarray:
        if split not in self._lengths:
            self._lengths[split] = self.recordings.split(split).lengths()
        return self._lengths[split]

    def _feasible(self, view: Recordings) -> np.ndarray:
        """Positions of the trials that CTC can align after the longest random cut."""
        decoder = getattr(getattr(self.trainer, "lightning_module", None), "decoder", None)

        def frames_of(length: int) -> int:
            length -= self.most_cut
            return length if decoder is None else int(decoder.output_lengths(torch.tensor([length])))

        bad = infeasible(view, frames_of)
        if not bad:
            return np.arange(len(view))
        fault = DataError(
            f"{len(bad)} of {len(view)} training trials have labels longer than the decoder's output; the first is",
            trial=bad[0].key,
            found=f"{bad[0].frames} frames",
            expected=f"at least {bad[0].needed} for CTC to align it",
        )
        if self.infeasible == "stop" or len(bad) == len(view):
            raise fault
        rank_zero_warn(f"{fault}. They are left out; data.infeasible: stop makes this an error.")
        keys = {trial.key for trial in bad}
        return np.array([position for position, ref in enumerate(view.refs) if ref.key not in keys])

    def _fits_in_memory(self) -> bool:
        kept = [split for split in ("train", "val") if split in self.recordings.splits]
        size = sum(int(self._frames(split).sum()) for split in kept) * self.n_channels * 4
        copies = max(1, self.trainer.num_devices) if self.trainer else 1
        if size * copies <= available_memory() // 2:
            return True
        rank_zero_warn(
            f"the trials take {size * copies / 2**30:.1f} GiB, more than half of the free memory, and are read anew "
            "each time; data.num_workers reads them ahead"
        )
        return False


def _none_done() -> int:
    return 0
