"""Masked batch normalisation in plain torch: any device, differentiable twice."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from snn.dispatch import Backend


def run(x: Tensor, weight: Tensor, bias: Tensor, mask: Tensor | None, eps: float) -> tuple[Tensor, Tensor, Tensor]:
    """Normalise `x` (T, B, N); `mask` (T, B) is True at real frames. Returns y, mean and biased variance (N,)."""
    if mask is None:
        var, mean = torch.var_mean(x, (0, 1), correction=0)
        return (x - mean) * (weight * torch.rsqrt(var + eps)) + bias, mean, var
    padding = ~mask.unsqueeze(2)
    count = mask.sum()
    # Fills and not products: padding may hold anything, even NaN.
    mean = x.masked_fill(padding, 0.0).sum((0, 1)) / count
    centred = (x - mean).masked_fill(padding, 0.0)
    var = centred.square().sum((0, 1)) / count
    scale = weight * torch.rsqrt(var + eps)
    # Padding is carried along by the statistics as they are, without a share in their gradient.
    along = (x - mean.detach()) * scale.detach() + bias.detach()
    return torch.where(padding, along, centred * scale + bias), mean, var


def _always(arguments: Mapping[str, Any] | None = None) -> None:
    return None


BACKEND = Backend("reference", 0, "plain torch", _always, _always, run)
