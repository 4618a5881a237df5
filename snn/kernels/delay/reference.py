"""Fixed-delay linear as a causal convolution whose kernel holds each weight at the tap of its delay.

Its cost grows with the largest delay: every other backend is compared with it, none should be as slow.
The construction is the one of Dilated Convolution with Learnable Spacings at integer positions
(Hammouamri et al. 2023, arXiv 2306.17670), with positions that stay where they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from snn.dispatch import Backend


def run(
    x: Tensor, weight: Tensor, delay: Tensor, bias: Tensor | None, history: Tensor | None, max_delay: int
) -> Tensor:
    """Apply the layer to `x` (T, B, I) that follows `history` (max_delay, B, I), or silence; returns (T, B, O)."""
    if history is None:
        history = x.new_zeros(max_delay, *x.shape[1:])
    padded = torch.cat([history, x]).permute(1, 2, 0)
    kernel = weight.new_zeros(*weight.shape, max_delay + 1)
    # A delay of 0 sees the newest of the max_delay + 1 bins under the kernel, which is its last tap.
    tap = (max_delay - delay.to(torch.int64)).unsqueeze(-1)
    kernel = kernel.scatter(2, tap, weight.unsqueeze(-1))
    return F.conv1d(padded, kernel, bias).permute(2, 0, 1)


def _always(arguments: Mapping[str, Any] | None = None) -> None:
    return None


BACKEND = Backend("reference", 0, "plain torch, a convolution max_delay + 1 long", _always, _always, run)
