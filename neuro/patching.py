"""Joining a window of frames to one input vector, as the official decoders do before their recurrent core."""

from __future__ import annotations

from typing import Literal, TypeVar

import torch

from neuro.errors import DataError

Length = TypeVar("Length", int, torch.Tensor)

LAYOUTS: dict[str, tuple[int, int, int, int]] = {"time": (0, 1, 3, 2), "channel": (0, 1, 2, 3)}
"""Order of axes in a patch: '25 has all channels of the first frame first, '24 all frames of the first channel."""


def patched_length(length: Length, size: int, stride: int) -> Length:
    """Frames that remain of ``length``: floor((length - size) / stride) + 1, and 0 where it is shorter than a patch.

    The '24 PyTorch code forgets the + 1 and so drops the last frame; the TensorFlow original and the '25 code have it.

    Examples
    --------
    >>> patched_length(18, 14, 4), patched_length(17, 14, 4), patched_length(13, 14, 4)
    (2, 1, 0)
    """
    frames = (length - size) // stride + 1
    return frames.clamp(min=0) if isinstance(frames, torch.Tensor) else max(frames, 0)


def patch(
    x: torch.Tensor, lengths: torch.Tensor, size: int, stride: int, layout: Literal["time", "channel"] = "time"
) -> tuple[torch.Tensor, torch.Tensor]:
    """Join ``size`` neighbouring frames to one, every ``stride`` frames, without reaching past the end.

    Parameters
    ----------
    x
        (T, B, N).
    lengths
        Integers (B,).
    size, stride
        Frames in a patch, frames from one patch to the next.
    layout
        ``time``: entry k * N + n of a patch is channel n of its frame k ('25, nejm-brain-to-text). ``channel``: entry
        n * size + k ('24, neural_seq_decoder). Weights trained on one do not fit the other.

    Returns
    -------
    patches : (T', B, size * N)
        T' = floor((T - size) / stride) + 1. Zero after each trial's new end. Made with a single copy of the data.
    lengths : (B,)
        floor((length - size) / stride) + 1.

    Raises
    ------
    ValueError
        If size or stride is below 1 or the layout is unknown.
    DataError
        If a trial is shorter than one patch.
    """
    if size < 1 or stride < 1:
        raise ValueError(f"patch size and stride must be at least 1, got {size} and {stride}")
    if layout not in LAYOUTS:
        raise ValueError(f"unknown patch layout {layout!r}: expected one of {', '.join(LAYOUTS)}")
    T, B, N = x.shape
    if B == 0:
        return x.new_zeros(patched_length(T, size, stride), 0, size * N), lengths
    shortest = int(lengths.min())
    if shortest < size:
        raise DataError("trial shorter than one patch", found=f"{shortest} frames", expected=f"at least {size}")
    windows = x.unfold(0, size, stride)  # (T', B, N, size), a view
    patches = windows.permute(LAYOUTS[layout]).reshape(windows.shape[0], B, size * N)
    new_lengths = patched_length(lengths, size, stride)
    if int(new_lengths.min()) == windows.shape[0]:
        return patches, new_lengths
    padding = torch.arange(windows.shape[0], device=x.device)[:, None] >= new_lengths.to(x.device)
    # With size 1 the patches can be a view of x, which must stay as it is.
    shared = patches.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
    fill = patches.masked_fill if shared else patches.masked_fill_
    return fill(padding[:, :, None], 0), new_lengths
