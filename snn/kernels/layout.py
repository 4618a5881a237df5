"""How the kernels lay sequences out: channel first, with time and batch flattened to one row."""

from __future__ import annotations

import torch
from torch import Tensor


def rows_of(x: Tensor) -> Tensor:
    """(T, B, N) as contiguous (N, T * B) without a graph; no copy where another kernel wrote it so."""
    return x.detach().permute(2, 0, 1).contiguous().view(x.shape[2], -1)


def empty_sequence(like: Tensor, steps: int, batch: int, channels: int) -> Tensor:
    """Memory for a sequence (T, B, N) that lies channel first, of the dtype and device of `like`."""
    return like.new_empty(channels, steps, batch).permute(1, 2, 0)


def channels_first(x: Tensor) -> bool:
    """Whether the memory of (T, B, N) lies as the delayed layer's kernels leave it, (N, T, B)."""
    return x.dim() == 3 and x.permute(2, 0, 1).is_contiguous()


def planes(x: Tensor, first: bool) -> Tensor:
    """(T, B, ...) as (P, T, Q), copied only where its memory lies otherwise."""
    if first:
        return x.permute(2, 0, 1).contiguous()
    return x.contiguous().view(1, x.shape[0], -1)


def plane(state: Tensor, first: bool) -> Tensor:
    """A state (B, ...) as (P, Q)."""
    return state.t().contiguous() if first else state.contiguous().view(1, -1)


def sequence(x: Tensor, shape: torch.Size, first: bool) -> Tensor:
    """Inverse of `planes`."""
    return x.permute(1, 2, 0) if first else x.view(shape)


def state_of(x: Tensor, shape: torch.Size, first: bool) -> Tensor:
    """Inverse of `plane`."""
    return x.t() if first else x.view(shape)


def sequence_like(x: Tensor, first: bool) -> Tensor:
    """Empty memory for a sequence that lies as the kernels leave it."""
    return empty_sequence(x, *x.shape) if first else x.new_empty(x.shape)


def state_like(state: Tensor, first: bool) -> Tensor:
    """Empty memory for a state that lies as the kernels leave it."""
    return state.new_empty(state.shape[1], state.shape[0]).t() if first else state.new_empty(state.shape)
