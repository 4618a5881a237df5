"""How the kernels lay sequences out: channel first, with time and batch flattened to one row."""

from __future__ import annotations

from torch import Tensor


def rows_of(x: Tensor) -> Tensor:
    """(T, B, N) as contiguous (N, T * B) without a graph; no copy where another kernel wrote it so."""
    return x.detach().permute(2, 0, 1).contiguous().view(x.shape[2], -1)


def empty_sequence(like: Tensor, steps: int, batch: int, channels: int) -> Tensor:
    """Memory for a sequence (T, B, N) that lies channel first, of the dtype and device of `like`."""
    return like.new_empty(channels, steps, batch).permute(1, 2, 0)
