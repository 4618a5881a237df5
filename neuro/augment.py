"""Random changes to a batch in training. Each is a small picklable callable: ``batch = step(batch, generator)``.

All randomness comes from the generator that the caller passes, drawn on the generator's own device. Frames after a
trial's end stay exactly zero; the official code adds noise to them too, which lets batch mates leak into each other.

Sources: cffan/neural_seq_decoder (neural_decoder_trainer.py); Neuroprosthetics-Lab/nejm-brain-to-text
(rnn_trainer.py, transform_data); time masking: SpecAugment (Park et al. 2019).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal

import torch

from neuro.batch import Batch

Augmentation = Callable[[Batch, torch.Generator], Batch]
"""Takes a batch and a generator, returns a new batch; the given one is left as it is."""


def _normal(shape: Sequence[int], like: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    return torch.randn(shape, generator=generator, device=generator.device).to(like.device, like.dtype)


def _with_features(batch: Batch, features: torch.Tensor) -> Batch:
    return replace(batch, features=features.masked_fill(~batch.mask()[:, :, None], 0))


def _not_negative(name: str, value: float) -> None:
    if not value >= 0:
        raise ValueError(f"{name} must be 0 (off) or more, got {value}")


@dataclass(frozen=True)
class WhiteNoise:
    """Adds independent Gaussian noise to every frame and channel.

    Parameters
    ----------
    sd
        Standard deviation, in units of the (z-scored) features; 0 is off.
    """

    sd: float

    def __post_init__(self) -> None:
        _not_negative("sd", self.sd)

    def __call__(self, batch: Batch, generator: torch.Generator) -> Batch:
        """Noisy copy of the batch."""
        if self.sd == 0:
            return batch
        return _with_features(
            batch, batch.features + self.sd * _normal(batch.features.shape, batch.features, generator)
        )


@dataclass(frozen=True)
class ConstantOffset:
    """Adds one Gaussian offset a trial and channel, constant over the trial.

    Parameters
    ----------
    sd
        Standard deviation, in units of the features; 0 is off.
    """

    sd: float

    def __post_init__(self) -> None:
        _not_negative("sd", self.sd)

    def __call__(self, batch: Batch, generator: torch.Generator) -> Batch:
        """Copy of the batch with each trial and channel shifted."""
        if self.sd == 0:
            return batch
        _, B, N = batch.features.shape
        return _with_features(batch, batch.features + self.sd * _normal((1, B, N), batch.features, generator))


@dataclass(frozen=True)
class RandomWalk:
    """Adds the running sum of Gaussian steps: slow drift.

    Parameters
    ----------
    sd
        Standard deviation of one step, in units of the features; 0 is off, as in both official recipes.
    axis
        ``time`` drifts each channel over the trial. ``channel`` sums over the channels of a frame, which is what
        the '25 configuration file names (``random_walk_axis: -1``).
    """

    sd: float
    axis: Literal["time", "channel"] = "time"
    _AXES: ClassVar[dict[str, int]] = {"time": 0, "channel": 2}

    def __post_init__(self) -> None:
        _not_negative("sd", self.sd)
        if self.axis not in self._AXES:
            raise ValueError(f"axis must be one of {', '.join(self._AXES)}, got {self.axis!r}")

    def __call__(self, batch: Batch, generator: torch.Generator) -> Batch:
        """Copy of the batch with drift added."""
        if self.sd == 0:
            return batch
        steps = self.sd * _normal(batch.features.shape, batch.features, generator)
        return _with_features(batch, batch.features + steps.cumsum(self._AXES[self.axis]))


@dataclass(frozen=True)
class StaticGain:
    """Mixes the channels of each trial by a random matrix near the identity.

    Parameters
    ----------
    sd
        Standard deviation of the matrix's entries about the identity; 0 is off, as in both official recipes.
    """

    sd: float

    def __post_init__(self) -> None:
        _not_negative("sd", self.sd)

    def __call__(self, batch: Batch, generator: torch.Generator) -> Batch:
        """Copy of the batch with mixed channels."""
        if self.sd == 0:
            return batch
        _, B, N = batch.features.shape
        mixing = torch.eye(N, device=batch.features.device) + self.sd * _normal((B, N, N), batch.features, generator)
        return _with_features(batch, torch.einsum("tbi,bij->tbj", batch.features, mixing))


@dataclass(frozen=True)
class RandomCut:
    """Drops the same random number of leading frames from every trial of the batch.

    At least one frame of the shortest trial is left.

    Parameters
    ----------
    max_bins
        Largest number of frames to drop; the number is uniform on 0..max_bins. The official ``random_cut: 3`` is
        ``max_bins=2``, since its upper end is exclusive. 0 is off.
    """

    max_bins: int

    def __post_init__(self) -> None:
        _not_negative("max_bins", self.max_bins)

    def __call__(self, batch: Batch, generator: torch.Generator) -> Batch:
        """The batch without its first frames."""
        if self.max_bins == 0 or len(batch) == 0:
            return batch
        drawn = torch.randint(self.max_bins + 1, (), generator=generator, device=generator.device)
        cut = min(int(drawn), int(batch.lengths.min()) - 1)
        return replace(batch, features=batch.features[cut:], lengths=batch.lengths - cut)


@dataclass(frozen=True)
class TimeMask:
    """Sets random stretches of every trial to zero, on all channels at once.

    Parameters
    ----------
    n_masks
        Stretches a trial; they may overlap. 0 is off.
    max_fraction
        A stretch's length is uniform on 0..max_fraction of its trial, its place uniform within the trial.
    """

    n_masks: int
    max_fraction: float

    def __post_init__(self) -> None:
        _not_negative("n_masks", self.n_masks)
        if not 0 <= self.max_fraction <= 1:
            raise ValueError(f"max_fraction must lie in 0..1, got {self.max_fraction}")

    def __call__(self, batch: Batch, generator: torch.Generator) -> Batch:
        """Copy of the batch with stretches of zeros."""
        if self.n_masks == 0 or self.max_fraction == 0:
            return batch
        T, B, _ = batch.features.shape
        device = batch.features.device
        draws = torch.rand((2, self.n_masks, B), generator=generator, device=generator.device).to(device)
        lengths = batch.lengths.to(device)
        longest = (lengths * self.max_fraction).floor()
        width = (draws[0] * (longest + 1)).floor().clamp(max=longest)
        start = (draws[1] * (lengths - width + 1)).floor().clamp(max=lengths - width)
        frame = torch.arange(T, device=device)[:, None, None]
        masked = ((frame >= start) & (frame < start + width)).any(1)
        return replace(batch, features=batch.features.masked_fill(masked[:, :, None], 0))


@dataclass(frozen=True)
class Compose:
    """Applies augmentations one after the other.

    Parameters
    ----------
    steps
        In order; an empty list changes nothing.
    """

    steps: Sequence[Augmentation] = field(default_factory=list)

    def __call__(self, batch: Batch, generator: torch.Generator) -> Batch:
        """The batch after all steps."""
        for step in self.steps:
            batch = step(batch, generator)
        return batch


AUGMENTATIONS: dict[str, type] = {
    "static_gain": StaticGain,
    "white_noise": WhiteNoise,
    "constant_offset": ConstantOffset,
    "random_walk": RandomWalk,
    "random_cut": RandomCut,
    "time_mask": TimeMask,
}
"""Every augmentation by name, in the order in which the '25 code applies them (time masking last)."""

OFFICIAL: dict[str, dict[str, dict[str, float]]] = {
    "b2t24": {"white_noise": {"sd": 0.8}, "constant_offset": {"sd": 0.2}},
    "b2t25": {"white_noise": {"sd": 1.0}, "constant_offset": {"sd": 0.2}, "random_cut": {"max_bins": 2}},
}
"""Augmentations of the official PyTorch recipes that are not off."""


def official(kind: str, *, without: Sequence[str] = ()) -> Compose:
    """Augmentation of an official recipe; smoothing comes after it.

    Parameters
    ----------
    kind
        ``b2t24`` or ``b2t25``.
    without
        Names of steps to leave out.

    Raises
    ------
    ValueError
        If the recipe is unknown or a name in ``without`` is not a step of it.

    Examples
    --------
    >>> official("b2t25", without=["random_cut"]).steps
    [WhiteNoise(sd=1.0), ConstantOffset(sd=0.2)]
    """
    if kind not in OFFICIAL:
        raise ValueError(f"unknown recipe {kind!r}: expected one of {', '.join(OFFICIAL)}")
    steps = OFFICIAL[kind]
    if foreign := set(without) - set(steps):
        raise ValueError(f"{sorted(foreign)} not in the recipe {kind}, which has {list(steps)}")
    return Compose([AUGMENTATIONS[name](**options) for name, options in steps.items() if name not in without])
