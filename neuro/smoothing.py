"""Gaussian smoothing over time, with the exact kernels and edges of the two official recipes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

_SD = 2.0  # bins, in both recipes


def _b2t24() -> np.ndarray:
    # Twenty taps have no middle one: the centre lies between taps 9 and 10, so the output looks half a bin ahead.
    return np.exp(-0.5 * ((np.arange(20) - 9.5) / _SD) ** 2)


def _b2t25() -> np.ndarray:
    # A unit impulse through scipy's gaussian_filter1d, whose window ends at 4 SD; taps of 0.01 or less are cut after.
    taps = np.exp(-0.5 * (np.arange(-8, 9) / _SD) ** 2)
    taps /= taps.sum()
    return taps[taps > 0.01]


KERNELS: dict[str, Callable[[], np.ndarray]] = {"b2t24": _b2t24, "b2t25": _b2t25}
"""Smoothing kernels by the name of the recipe they belong to."""


def gaussian_kernel(kind: str) -> np.ndarray:
    """Taps of a recipe's smoothing kernel, summing to 1.

    Parameters
    ----------
    kind
        ``b2t24``: SD 2 bins, 20 taps, even (cffan/neural_seq_decoder, augmentations.py). ``b2t25``: SD 2 bins, the 9
        taps above 0.01 (Neuroprosthetics-Lab/nejm-brain-to-text, data_augmentations.py).

    Returns
    -------
    float32 (K,)

    Raises
    ------
    ValueError
        If the name is not in `KERNELS`.

    Examples
    --------
    >>> len(gaussian_kernel("b2t24")), len(gaussian_kernel("b2t25"))
    (20, 9)
    """
    if kind not in KERNELS:
        raise ValueError(f"unknown smoothing kernel {kind!r}: expected one of {', '.join(KERNELS)}")
    taps = KERNELS[kind]()
    return (taps / taps.sum()).astype(np.float32)


def smooth(x: torch.Tensor, kernel: np.ndarray | torch.Tensor, lengths: torch.Tensor | None = None) -> torch.Tensor:
    """Filter every channel over time, with zeros outside the trial and as many frames out as in.

    An odd kernel is centred. An even one of K taps sees K/2 - 1 frames back and K/2 ahead, as ``padding="same"`` of a
    torch convolution has it.

    Parameters
    ----------
    x
        Floats (T, B, N).
    kernel
        Taps (K,), applied without flipping.
    lengths
        Integers (B,). When given, whatever stands after a trial's end is taken as zero and comes out as zero, so
        that a trial's result is, bit for bit, what it is without batch mates.

    Returns
    -------
    Floats (T, B, N)
    """
    T = x.shape[0]
    taps = torch.as_tensor(kernel, dtype=torch.float32).tolist()
    padding = None
    if lengths is not None:
        padding = torch.arange(T, device=x.device)[:, None, None] >= lengths.to(x.device)[None, :, None]
        x = x.masked_fill(padding, 0)
    before = (len(taps) - 1) // 2
    padded = F.pad(x, (0, 0, 0, 0, before, len(taps) - 1 - before))
    # A sum of shifted copies beats a depthwise convolution here: time is the outermost axis, so every shift is a view.
    # It also adds in one order whatever the batch, which a convolution library does not promise.
    out = padded[:T] * taps[0]
    for k, tap in enumerate(taps[1:], start=1):
        out = out.add_(padded[k : k + T], alpha=tap)
    return out if padding is None else out.masked_fill(padding, 0)


class GaussianSmoothing(nn.Module):
    """Smoothing of a recipe as a module, without parameters.

    Parameters
    ----------
    kind
        A name in `KERNELS`; see `gaussian_kernel`.

    Raises
    ------
    ValueError
        If the name is not in `KERNELS`.
    """

    taps: torch.Tensor

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind
        # Not part of checkpoints: the name of the recipe says it all.
        self.register_buffer("taps", torch.from_numpy(gaussian_kernel(kind)), persistent=False)

    def extra_repr(self) -> str:
        """The recipe and its number of taps, for ``print(module)``."""
        return f"{self.kind!r}, taps={len(self.taps)}"

    def forward(self, x: torch.Tensor, lengths: torch.Tensor | None = None) -> torch.Tensor:
        """Smooth x (T, B, N); see `smooth`."""
        return smooth(x, self.taps, lengths)
