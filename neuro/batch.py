"""Padded batches of trials, time first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from neuro.errors import DataError
from neuro.trial import Trial


@dataclass(frozen=True)
class Batch:
    """Trials padded to a common length.

    Attributes
    ----------
    features : float32 (T, B, C)
        Zero after each trial's end.
    lengths : int64 (B,)
        Frames of each trial.
    phonemes : int64 (B, L)
        Labels in torch order, zero padded; empty (B, 0) without labels.
    phoneme_lengths : int64 (B,)
    days : int64 (B,)
        Position of each trial's session in the data set's list of sessions.
    keys, sentences : list
        Of length B; a sentence is None where the split has no labels.
    """

    features: torch.Tensor
    lengths: torch.Tensor
    phonemes: torch.Tensor
    phoneme_lengths: torch.Tensor
    days: torch.Tensor
    keys: list[str]
    sentences: list[str | None]

    def __len__(self) -> int:
        return len(self.keys)

    def to(self, device: torch.device | str, non_blocking: bool = False) -> Batch:
        """Copy of the batch with its tensors on another device."""
        moved = {
            name: getattr(self, name).to(device, non_blocking=non_blocking)
            for name in ("features", "lengths", "phonemes", "phoneme_lengths", "days")
        }
        return replace(self, **moved)

    def pin_memory(self) -> Batch:
        """Copy of the batch in page-locked memory (called by DataLoader)."""
        pinned = {
            name: getattr(self, name).pin_memory()
            for name in ("features", "lengths", "phonemes", "phoneme_lengths", "days")
        }
        return replace(self, **pinned)

    def mask(self) -> torch.Tensor:
        """Boolean (T, B): True on real frames, False on padding."""
        frames = torch.arange(self.features.shape[0], device=self.lengths.device)
        return frames[:, None] < self.lengths[None, :]


def collate(trials: Sequence[Trial], sessions: Sequence[str]) -> Batch:
    """Pad trials to one batch.

    Parameters
    ----------
    trials
        At least one; all with the same number of channels.
    sessions
        The data set's sessions in day order.

    Raises
    ------
    DataError
        If the trials differ in their number of channels, or one comes from an unknown session.
    """
    days = {name: position for position, name in enumerate(sessions)}
    n_channels = trials[0].features.shape[1]
    for trial in trials:
        if trial.features.shape[1] != n_channels:
            raise DataError(
                "trials of one batch differ in their number of channels",
                trial=trial.key,
                found=trial.features.shape[1],
                expected=n_channels,
            )
        if trial.session not in days:
            raise DataError("trial from a session that the data set does not list", trial=trial.key)
    lengths = torch.tensor([trial.features.shape[0] for trial in trials])
    features = torch.zeros(int(lengths.max()), len(trials), n_channels)
    labels = [np.zeros(0, np.int64) if trial.phonemes is None else trial.phonemes for trial in trials]
    phoneme_lengths = torch.tensor([len(label) for label in labels])
    phonemes = torch.zeros(len(trials), int(phoneme_lengths.max()), dtype=torch.int64)
    for b, (trial, label) in enumerate(zip(trials, labels, strict=True)):
        features[: len(trial.features), b] = torch.from_numpy(np.asarray(trial.features, np.float32))
        phonemes[b, : len(label)] = torch.from_numpy(np.asarray(label, np.int64))
    return Batch(
        features=features,
        lengths=lengths,
        phonemes=phonemes,
        phoneme_lengths=phoneme_lengths,
        days=torch.tensor([days[trial.session] for trial in trials]),
        keys=[trial.key for trial in trials],
        sentences=[trial.sentence for trial in trials],
    )
