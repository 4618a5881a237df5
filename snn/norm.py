"""Batch normalisation that leaves padding out of its statistics."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from snn import functional


class MaskedBatchNorm(nn.Module):
    """Batch normalisation over the real frames of a padded batch.

    Without `lengths` it equals `nn.BatchNorm1d` over all T * B frames. In evaluation mode it is one multiplication and
    one addition for each channel, which `snn.fold_batch_norm` moves into the layer before it; each output then depends
    on its own input alone, whatever the batch.

    Parameters
    ----------
    num_features : int
        N.
    eps, momentum : float
        As in `nn.BatchNorm1d`.
    initial_scale : float
        Start value of `weight`.

    Attributes
    ----------
    weight, bias : Parameter (N,)
    running_mean, running_var : buffer (N,)
    num_batches_tracked : buffer ()

    Notes
    -----
    Ioffe and Szegedy 2015, arXiv 1502.03167.
    """

    running_mean: Tensor
    running_var: Tensor
    num_batches_tracked: Tensor

    def __init__(
        self, num_features: int, *, eps: float = 1e-5, momentum: float = 0.1, initial_scale: float = 1.0
    ) -> None:
        super().__init__()
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.weight = nn.Parameter(torch.full((num_features,), float(initial_scale)))
        self.bias = nn.Parameter(torch.zeros(num_features))
        self.register_buffer("running_mean", torch.zeros(num_features))
        self.register_buffer("running_var", torch.ones(num_features))
        self.register_buffer("num_batches_tracked", torch.tensor(0, dtype=torch.long))

    def forward(self, x: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Normalise `x` (T, B, N), where trial b has `lengths[b]` real frames; all T when `lengths` is absent.

        Padded frames are transformed like the others, and count for nothing.

        Raises
        ------
        ValueError
            A shape that does not fit, or fewer than two real frames in training mode.
        """
        if x.dim() != 3 or x.shape[2] != self.num_features:
            raise ValueError(f"MaskedBatchNorm: x must be (T, B, {self.num_features}); found {tuple(x.shape)}")
        if not self.training:
            scale, shift = self.affine()
            return (x * scale + shift).to(x.dtype)
        y, mean, var, count = functional.masked_batch_norm(x, self.weight, self.bias, lengths, eps=self.eps)
        self._track(mean, var, count)
        return y

    def affine(self) -> tuple[Tensor, Tensor]:
        """Scale and shift (N,) that the layer applies in evaluation mode."""
        scale = self.weight * torch.rsqrt(self.running_var + self.eps)
        return scale, self.bias - self.running_mean * scale

    @torch.no_grad()
    def _track(self, mean: Tensor, var: Tensor, count: int | Tensor) -> None:
        unbiased = var * (count / (count - 1))
        self.running_mean.lerp_(mean.to(self.running_mean.dtype), self.momentum)
        self.running_var.lerp_(unbiased.to(self.running_var.dtype), self.momentum)
        self.num_batches_tracked += 1

    def extra_repr(self) -> str:
        """Size and constants."""
        return f"{self.num_features}, eps={self.eps}, momentum={self.momentum}"
