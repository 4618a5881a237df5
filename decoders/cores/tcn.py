"""Causal dilated temporal convolution."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import nn

from decoders.cores.base import Core, with_history
from snn import Dropout


class CausalConv(nn.Conv1d):
    """Convolution over time that sees the past alone, on time-first tensors, with its past as explicit state."""

    def __init__(self, in_features: int, out_features: int, kernel_size: int, dilation: int) -> None:
        super().__init__(in_features, out_features, kernel_size, dilation=dilation)
        self.reach = (kernel_size - 1) * dilation

    def step(self, x: torch.Tensor, past: torch.Tensor | None) -> tuple[torch.Tensor, torch.Tensor]:
        """``x (T, B, I)`` and the ``reach`` frames before it to ``(T, B, O)`` and the frames for the next chunk."""
        extended, past = with_history(x, past, self.reach)
        if x.shape[0] == 0:
            return x.new_zeros(0, x.shape[1], self.out_channels), past
        return self(extended.permute(1, 2, 0)).permute(2, 0, 1), past


class ResidualBlock(nn.Module):
    """Twice: normalise a frame, ReLU, causal convolution; then add the input."""

    def __init__(self, width: int, kernel_size: int, dilation: int, dropout: float) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.convs = nn.ModuleList(CausalConv(width, width, kernel_size, dilation) for _ in range(2))
        self.dropout = Dropout(dropout)

    def forward(self, x: torch.Tensor, past: Sequence[torch.Tensor | None]) -> tuple[torch.Tensor, list[torch.Tensor]]:
        """``x (T, B, width)`` and the past of both convolutions to the same, one chunk later."""
        y, latest = x, []
        for norm, conv, before in zip(self.norms, self.convs, past, strict=True):
            y, now = conv.step(self.dropout(F.relu(norm(y))), before)
            latest.append(now)
        return x + y, latest


class TCN(Core):
    """Residual blocks of dilated causal convolutions; the dilation doubles from block to block.

    Frames are normalised one by one (layer normalisation over channels), so neither padding nor the cut into chunks
    can reach a real frame. A frame sees ``receptive_field`` frames: 61 with the defaults, 1.2 s.

    Parameters
    ----------
    in_features, width
        Channels in, and channels of every block.
    depth
        Blocks, of two convolutions each.
    kernel_size
        Taps of each convolution.
    dropout
        Before each convolution, in training.

    Source: Bai, Kolter and Koltun 2018 (arXiv 1803.01271), with layer instead of weight normalisation.
    """

    def __init__(
        self, in_features: int, width: int = 280, *, depth: int = 4, kernel_size: int = 3, dropout: float = 0.0
    ) -> None:
        super().__init__(in_features, width)
        self.out_features = width
        self.embed = nn.Linear(in_features, width)
        self.blocks = nn.ModuleList(ResidualBlock(width, kernel_size, 2**i, dropout) for i in range(depth))
        self.norm = nn.LayerNorm(width)
        self.receptive_field = 1 + 2 * (kernel_size - 1) * (2**depth - 1)

    def forward(
        self, x: torch.Tensor, lengths: torch.Tensor, state: list[list[torch.Tensor]] | None = None
    ) -> tuple[torch.Tensor, torch.Tensor, list[list[torch.Tensor]]]:
        """``x (T, B, in_features)`` to ``(T, B, width)``; state the past frames of each convolution of each block."""
        past = state if state is not None else [[None, None]] * len(self.blocks)
        y, latest = self.embed(x), []
        for block, before in zip(self.blocks, past, strict=True):
            y, now = block(y, before)
            latest.append(now)
        return F.relu(self.norm(y)), lengths, latest
