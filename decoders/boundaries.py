"""Boundary-aligned analysis of CTC posteriors: what happens to certainty where one phoneme gives way to the next.

The definition is this project's own, after the question of papers on peaky CTC posteriors (arXiv 2105.14849,
2406.02560): entropy is taken with the blank and without it, because the first falls whenever the blank grows certain.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from decoders.alignment import forced_path
from decoders.ctc import BLANK, needed_frames
from neuro import DataError

NEAR, FAR = 2, 4
"""Offsets in bins of the contrast: at most NEAR from a boundary, against at least FAR."""


@dataclass(frozen=True)
class BoundaryAnalysis:
    """Means around phoneme onsets; entropies in nats, times in bins.

    Attributes
    ----------
    offsets : int (n,)
        Bins from the onset, -10..+10 by default. Bins outside a trial are left out; a bin near two onsets counts for
        both.
    entropy, entropy_nonblank : float (n,)
        Of the frame's posterior over all symbols, and over the phonemes alone (renormalised without the blank).
    probability, probability_nonblank : float (n,)
        Of the phoneme that is spoken in that bin (the first one before its onset), with and without the blank.
    contrast, contrast_nonblank : float
        Mean entropy at offsets of at most 2 bins, minus that at offsets of at least 4; the mean over offsets.
    latency, jitter : float
        Mean and standard deviation, over phonemes, of the bin where the phoneme's posterior peaks between its onset
        and the next, counted from its onset.
    n_boundaries : int
        Onsets that were counted.
    skipped : list of int
        Positions in the batch of trials without a usable alignment (label longer than the frames, or empty).
    source : {"onsets", "forced"}
        Whether onsets were given, or found by forced alignment on the same posteriors.
    """

    offsets: np.ndarray
    entropy: np.ndarray
    entropy_nonblank: np.ndarray
    probability: np.ndarray
    probability_nonblank: np.ndarray
    contrast: float
    contrast_nonblank: float
    latency: float
    jitter: float
    n_boundaries: int
    skipped: list[int]
    source: str


def forced_onsets(log_probs: torch.Tensor, phonemes: torch.Tensor) -> np.ndarray:
    """First frame of each phoneme on the likeliest CTC path that spells a label.

    Parameters
    ----------
    log_probs
        (T', symbols) of one trial's real frames.
    phonemes
        (L,) its label, L at least 1.

    Returns
    -------
    int64 (L,)

    Raises
    ------
    DataError
        If the label is longer than the frames can spell.
    """
    label = phonemes[None].long().cpu()
    needed = int(needed_frames(label, torch.tensor([label.shape[1]])))
    if needed > log_probs.shape[0]:
        raise DataError("label too long to align", found=f"{log_probs.shape[0]} frames", expected=f"{needed} or more")
    path = forced_path(log_probs.double().cpu().contiguous().numpy(), label[0].numpy(), BLANK)
    # A phoneme starts wherever the path takes a symbol that is no blank and that the frame before did not hold.
    starts = (path != BLANK) & np.concatenate([[True], path[1:] != path[:-1]])
    return np.flatnonzero(starts)


def _entropy(log_probs: torch.Tensor) -> np.ndarray:
    return torch.special.entr(log_probs.exp()).sum(-1).numpy()


def analyse_boundaries(
    logits: torch.Tensor,
    lengths: torch.Tensor,
    phonemes: torch.Tensor,
    phoneme_lengths: torch.Tensor,
    *,
    onsets: Sequence[np.ndarray | None] | None = None,
    max_offset: int = 10,
    patch: tuple[int, int] | None = None,
) -> BoundaryAnalysis:
    """Average certainty and correctness around phoneme onsets.

    Parameters
    ----------
    logits, lengths
        (T', B, symbols) and (B,).
    phonemes, phoneme_lengths
        (B, L) zero padded and (B,), as in a batch.
    onsets
        True first bin of each phoneme of each trial (known for simulated data); None to find them by forced
        alignment.
    max_offset
        Bins to look at on either side.
    patch
        (size, stride) of the decoder's patches, so that frames find their bins: frame f stands for the bins nearest
        to the middle of bins f * stride .. f * stride + size - 1. None where a frame is a bin.

    Raises
    ------
    DataError
        If no trial can be used, or onsets and phonemes differ in number.
    """
    size, stride = patch if patch is not None else (1, 1)
    middle = (size - 1) / 2
    offsets = np.arange(-max_offset, max_offset + 1)
    # Rows: entropy, without blank; probability, without blank.
    sums, counts = np.zeros((4, len(offsets))), np.zeros(len(offsets))
    delays: list[float] = []
    skipped: list[int] = []
    n_boundaries = 0
    for b in range(logits.shape[1]):
        T, L = int(lengths[b]), int(phoneme_lengths[b])
        label = phonemes[b, :L].long().cpu()
        with torch.no_grad():
            full = logits[:T, b].detach().double().cpu().log_softmax(-1)
            phones = full[:, BLANK + 1 :].log_softmax(-1)
        if onsets is None:
            fits = L > 0 and int(needed_frames(label[None], torch.tensor([L]))) <= T
            # In bins, the middle of the frame.
            starts = forced_onsets(full, label) * stride + middle if fits else None
        else:
            starts = None if onsets[b] is None else np.asarray(onsets[b], float)
            if starts is not None and len(starts) != L:
                raise DataError("onsets and phonemes of a trial differ in number", found=len(starts), expected=L)
        if starts is None or L == 0 or T == 0:
            skipped.append(b)
            continue
        entropies = np.stack([_entropy(full), _entropy(phones)])
        probabilities = np.stack([full.exp().numpy(), np.pad(phones.exp().numpy(), ((0, 0), (1, 0)))])
        last_bin = (T - 1) * stride + size - 1
        bins = starts[:, None] + offsets
        inside = (bins >= 0) & (bins <= last_bin)
        frames = np.clip(np.rint((bins - middle) / stride), 0, T - 1).astype(int)
        spoken = label.numpy()[np.clip(np.searchsorted(starts, bins, side="right") - 1, 0, L - 1)]
        values = np.concatenate([entropies[:, frames], probabilities[:, frames, spoken]])
        sums += (values * inside).sum(1)
        counts += inside.sum(0)
        n_boundaries += L
        ends = np.append(starts[1:], last_bin + 1)
        for phoneme, start, end in zip(label.tolist(), starts, ends, strict=True):
            first = int(np.clip(np.ceil((start - middle) / stride), 0, T - 1))
            stop = int(np.clip(np.ceil((end - middle) / stride), first + 1, T))
            peak = first + int(full[first:stop, phoneme].argmax())
            delays.append(peak * stride + middle - start)
    if not n_boundaries:
        raise DataError("no trial can be aligned", found=f"{logits.shape[1]} trials")
    with np.errstate(invalid="ignore"):
        means = sums / counts
    near, far = np.abs(offsets) <= NEAR, np.abs(offsets) >= FAR

    def contrast(row: np.ndarray) -> float:
        return float(np.nanmean(row[near]) - np.nanmean(row[far])) if far.any() else float("nan")

    return BoundaryAnalysis(
        offsets=offsets,
        entropy=means[0],
        entropy_nonblank=means[1],
        probability=means[2],
        probability_nonblank=means[3],
        contrast=contrast(means[0]),
        contrast_nonblank=contrast(means[1]),
        latency=float(np.mean(delays)),
        jitter=float(np.std(delays)),
        n_boundaries=n_boundaries,
        skipped=skipped,
        source="forced" if onsets is None else "onsets",
    )
