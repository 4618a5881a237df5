"""Fold batch normalisation into the weights before it."""

from __future__ import annotations

import copy

import torch
from torch import nn

from snn.norm import MaskedBatchNorm
from snn.residual import DelayedLayer


@torch.no_grad()
def fold_batch_norm(model: nn.Module) -> nn.Module:
    """Return a copy of `model` in evaluation mode whose batch norms are folded into the delayed layers before them.

    The copy computes what the model computes in evaluation mode, up to rounding. The model itself is not touched.

    Parameters
    ----------
    model : Module
        Any model that holds `DelayedLayer`s, such as `ResidualSNN`.

    Raises
    ------
    ValueError
        A `MaskedBatchNorm` that is not the norm of a `DelayedLayer`, and so cannot be folded.

    >>> from snn.residual import ResidualSNN
    >>> folded = fold_batch_norm(ResidualSNN(4, 8, 1, max_delay=2))
    >>> any(isinstance(module, MaskedBatchNorm) for module in folded.modules())
    False
    """
    folded = copy.deepcopy(model).eval()
    for layer in [module for module in folded.modules() if isinstance(module, DelayedLayer)]:
        if not isinstance(layer.norm, MaskedBatchNorm):
            continue
        scale, shift = layer.norm.affine()
        linear = layer.linear
        bias = shift if linear.bias is None else linear.bias * scale + shift
        linear.weight.mul_(scale.unsqueeze(1))
        linear.bias = nn.Parameter(bias)
        layer.norm = None
    left = [name for name, module in folded.named_modules() if isinstance(module, MaskedBatchNorm)]
    if left:
        raise ValueError(f"fold_batch_norm: no delayed layer directly before {', '.join(left)}")
    return folded
