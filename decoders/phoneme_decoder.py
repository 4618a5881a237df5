"""From neural features to phoneme logits: front end, core, CTC head."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from decoders.budget import build_core
from decoders.day_layers import DayLayers
from neuro import Batch, DataError
from neuro.patching import patch as patch_frames
from neuro.patching import patched_length
from neuro.smoothing import GaussianSmoothing
from snn import Dropout


def count_parameters(module: nn.Module | None) -> int:
    """Number of parameters in a module; 0 for None."""
    return 0 if module is None else sum(p.numel() for p in module.parameters())


def check_batch(batch: Batch, n_channels: int, patch: tuple[int, int] | None) -> None:
    """Raise DataError where a batch has other channels than a decoder was made for, or a trial too short for it."""
    if batch.features.shape[-1] != n_channels:
        raise DataError(
            "the decoder was made for another number of channels",
            field="features",
            found=batch.features.shape[-1],
            expected=n_channels,
        )
    if patch is not None and len(batch) and int(batch.lengths.min()) < patch[0]:
        shortest = int(batch.lengths.argmin())
        raise DataError(
            "trial shorter than one patch of the decoder",
            trial=batch.keys[shortest],
            found=f"{int(batch.lengths[shortest])} bins",
            expected=f"at least {patch[0]}",
        )


class PhonemeDecoder(nn.Module):
    """Optional smoothing, day layers and patches, then a core, then one linear layer to the CTC symbols.

    Each part is in the model, so that training and evaluation cannot differ in it. Frames past a trial's end are
    zero wherever one part hands them to the next, and never influence its logits.

    Parameters
    ----------
    n_channels
        Channels of the recording.
    core, budget, width, core_options
        The core by name, its parameter budget or its width, and its other options; see `decoders.build_core`.
    n_days
        Sessions that get a day layer; 0 for none.
    day_dropout
        After the day layers, in training.
    smoothing
        "b2t24" or "b2t25" for that recipe's Gaussian; None for raw bins.
    patch
        (size, stride) in bins: the core sees ``size`` bins at once and steps ``stride`` bins. None for every bin.
    input_dropout
        Before the core, in training.
    n_outputs
        CTC symbols, the blank (0) among them.
    """

    def __init__(
        self,
        n_channels: int,
        *,
        core: str = "residual_snn",
        budget: int | str | None = None,
        width: int | None = None,
        core_options: dict[str, Any] | None = None,
        n_days: int = 0,
        day_dropout: float = 0.0,
        smoothing: str | None = None,
        patch: tuple[int, int] | None = None,
        input_dropout: float = 0.0,
        n_outputs: int = 41,
    ) -> None:
        super().__init__()
        self.n_channels, self.n_days = n_channels, n_days
        self.patch = None if patch is None else (int(patch[0]), int(patch[1]))
        if self.patch is not None and min(self.patch) < 1:
            raise DataError("a patch needs a size and a stride of 1 or more", field="patch", found=patch)
        self.smoothing = None if smoothing is None else GaussianSmoothing(smoothing)
        self.day_layers = DayLayers(n_days, n_channels, day_dropout) if n_days else None
        self.input_dropout = Dropout(input_dropout)
        options = dict(core_options or {})
        if misplaced := [name for name in ("width", "budget") if name in options]:
            raise DataError("give this to the decoder, not among core_options", field=", ".join(misplaced))
        in_features = n_channels * (self.patch[0] if self.patch else 1)
        self.core = build_core(core, in_features, budget=budget, width=width, **options)
        self.head = nn.Linear(self.core.out_features, n_outputs)

    def output_lengths(self, lengths: torch.Tensor) -> torch.Tensor:
        """Frames of logits for trials of ``lengths`` bins."""
        if self.patch is not None:
            lengths = patched_length(lengths, *self.patch)
        return self.core.output_lengths(lengths)

    def front_end(self, batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
        """What the core sees: frames (T', B, N) and their number for each trial (B,)."""
        check_batch(batch, self.n_channels, self.patch)
        x, lengths, keep = batch.features, batch.lengths, batch.mask()
        if getattr(self.core, "mask_token", None) is not None:
            # Only frames that arrived as zeros are masked ones; smoothing and day layers must not hide them.
            keep = keep & (x != 0).any(-1)
        if self.smoothing is not None:
            x = self.smoothing(x, lengths)
        if self.day_layers is not None:
            x = self.day_layers(x, batch.days)
        if self.smoothing is not None or self.day_layers is not None:
            x = torch.where(keep[..., None], x, 0.0)
        if self.patch is not None:
            x, lengths = patch_frames(x, lengths, *self.patch, layout=self.core.patch_layout)
        return self.input_dropout(x), lengths

    def forward(self, batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
        """Decode a batch.

        Returns
        -------
        logits : (T', B, n_outputs)
            Before the softmax; symbol 0 is the blank. Rows past a trial's length mean nothing.
        lengths : (B,)
            Frames of logits of each trial.

        Raises
        ------
        DataError
            If the channels differ from ``n_channels``, a trial's day has no layer, or a trial is shorter than a patch.
        """
        x, lengths = self.front_end(batch)
        features, lengths, _ = self.core(x, lengths)
        return self.head(features), lengths

    def parameter_counts(self) -> dict[str, int]:
        """Sizes: core, day, head, total, used (all that can change the logits), and numbers kept in buffers."""
        core, day, head = map(count_parameters, (self.core, self.day_layers, self.head))
        total = count_parameters(self)
        buffers = sum(b.numel() for b in self.buffers())
        return {"core": core, "day": day, "head": head, "total": total, "used": total, "buffers": buffers}
