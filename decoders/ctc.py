"""Connectionist temporal classification: loss, trials that it cannot align, greedy decoding. The blank is symbol 0."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from neuro import Batch

BLANK = 0


def needed_frames(phonemes: torch.Tensor, phoneme_lengths: torch.Tensor) -> torch.Tensor:
    """Fewest frames that can spell each label: one a phoneme, and a blank between two equal neighbours.

    Parameters
    ----------
    phonemes, phoneme_lengths
        (B, L) zero padded, and (B,).

    Returns
    -------
    int64 (B,)
    """
    inside = torch.arange(1, max(1, phonemes.shape[1]), device=phonemes.device) < phoneme_lengths[:, None]
    repeats = ((phonemes[:, 1:] == phonemes[:, :-1]) & inside).sum(1)
    return phoneme_lengths + repeats


def feasible(lengths: torch.Tensor, batch: Batch) -> torch.Tensor:
    """Boolean (B,): whether ``lengths`` frames of logits are enough for each trial's label."""
    return lengths >= needed_frames(batch.phonemes, batch.phoneme_lengths)


def infeasible_trials(lengths: torch.Tensor, batch: Batch) -> list[str]:
    """Keys of the trials whose labels are longer than CTC can align; they add nothing to `ctc_loss`."""
    return [key for key, fits in zip(batch.keys, feasible(lengths, batch).tolist(), strict=True) if not fits]


def ctc_loss(logits: torch.Tensor, lengths: torch.Tensor, batch: Batch) -> torch.Tensor:
    """Mean over the trials of the CTC loss divided by the label's length, in nats a phoneme.

    A trial that cannot be aligned counts as zero, with zero gradient; `infeasible_trials` names it. Computed in
    float32 whatever the logits are, and never by cuDNN, whose version returns NaN for such trials and is not
    repeatable (pytorch issues 21680, 49046).

    Parameters
    ----------
    logits
        (T', B, symbols), before the softmax.
    lengths
        (B,) frames of logits of each trial.
    batch
        For its phonemes.

    Source: the definition that both official PyTorch recipes train with (``reduction="mean"``).
    """
    if logits.shape[0] == 0 or logits.shape[1] == 0:
        return logits.sum() * 0.0
    # 64-bit targets in a matrix and lengths in tensors are what cuDNN does not take, so PyTorch's own loss runs.
    # A trial without any frame borrows one; like every trial that does not fit it is left out below.
    losses = F.ctc_loss(
        logits.float().log_softmax(-1),
        F.pad(batch.phonemes, (0, 1)).long(),
        lengths.clamp(min=1).long(),
        batch.phoneme_lengths.long(),
        blank=BLANK,
        reduction="none",
        zero_infinity=True,
    )
    losses = torch.where(feasible(lengths, batch), losses, 0.0)
    return (losses / batch.phoneme_lengths.clamp(min=1)).mean()


def greedy(logits: torch.Tensor, lengths: torch.Tensor) -> list[list[int]]:
    """Most likely symbol of each frame, repeats collapsed, blanks dropped, padding left out.

    Parameters
    ----------
    logits, lengths
        (T', B, symbols) and (B,).

    Returns
    -------
    list of B lists of phoneme ids
    """
    best = logits.argmax(-1)
    frames = torch.arange(best.shape[0], device=best.device)
    keep = (best != BLANK) & (frames[:, None] < lengths)
    keep[1:] &= best[1:] != best[:-1]
    best, keep = best.cpu(), keep.cpu()
    return [best[keep[:, b], b].tolist() for b in range(best.shape[1])]
