"""Batch normalisation over the real frames of a padded batch."""

from __future__ import annotations

import torch
from torch import Tensor

from snn import dispatch


def frame_mask(lengths: Tensor, steps: int) -> Tensor:
    """True at real frames: (T, B) from `lengths` (B,) and the number of steps T.

    >>> frame_mask(torch.tensor([2, 1]), 3).int().tolist()
    [[1, 1], [1, 0], [0, 0]]
    """
    return torch.arange(steps, device=lengths.device).unsqueeze(1) < lengths.unsqueeze(0)


def masked_batch_norm(
    x: Tensor,
    weight: Tensor,
    bias: Tensor,
    lengths: Tensor | None = None,
    *,
    eps: float = 1e-5,
    backend: str | None = None,
) -> tuple[Tensor, Tensor, Tensor, int | Tensor]:
    """Normalise each channel by its mean and variance over all real frames of the batch, as in training.

    Padded frames are transformed like the others and count for nothing: not in the statistics, and not in any
    gradient but their own.

    Parameters
    ----------
    x : Tensor (T, B, N)
    weight, bias : Tensor (N,)
    lengths : Tensor (B,), optional
        Real frames of each trial; all T when absent.
    eps : float
        Added to the variance.
    backend : str, optional
        Forces a backend, see `snn.dispatch`.

    Returns
    -------
    y : Tensor (T, B, N)
        In the dtype of `x`.
    mean, var : Tensor (N,)
        Without gradient; the variance is the biased one. At least float32.
    count : int or Tensor ()
        Real frames.

    Raises
    ------
    ValueError
        A shape that does not fit, or fewer than two real frames (checked on the CPU).

    Notes
    -----
    Ioffe and Szegedy 2015, arXiv 1502.03167.
    """
    steps, batch, _ = x.shape
    mask = None
    count: int | Tensor = steps * batch
    if lengths is not None:
        if lengths.shape != (batch,):
            raise ValueError(f"masked_batch_norm: lengths must be ({batch},); found {tuple(lengths.shape)}")
        mask = frame_mask(lengths.to(x.device), steps)
        # Known as a number only where that costs no wait for a device and no break in a compiled graph.
        known = x.device.type == "cpu" and not torch.compiler.is_compiling()
        count = int(mask.sum()) if known else mask.sum()
        if isinstance(count, int) and count == steps * batch:
            mask = None
    if isinstance(count, int) and count < 2:
        raise ValueError(f"masked_batch_norm: training needs at least 2 real frames; found {count}")
    working = torch.promote_types(x.dtype, weight.dtype)
    arguments = {
        "x": x.to(working),
        "weight": weight.to(working),
        "bias": bias.to(working),
        "mask": mask,
        "eps": eps,
    }
    y, mean, var = dispatch.choose("masked_batch_norm", arguments, backend).run(**arguments)
    return y.to(x.dtype), mean.detach(), var.detach(), count
