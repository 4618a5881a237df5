"""Feed-forward network over a window of frames."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from decoders.cores.base import Core, with_history
from snn import Dropout


class MLP(Core):
    """Feed-forward residual layers over the present frame and the ``context - 1`` before it.

    Its memory is the window alone; the decoder's patch widens it further.

    Parameters
    ----------
    in_features, width
        Channels in, and units of each hidden layer.
    depth
        Hidden layers; all but the first are residual, with layer normalisation.
    context
        Frames of the window; 1 for the present frame only.
    dropout
        After each hidden layer, in training.
    """

    def __init__(
        self, in_features: int, width: int = 560, *, depth: int = 3, context: int = 8, dropout: float = 0.0
    ) -> None:
        super().__init__(in_features, width)
        if context < 1 or depth < 1:
            raise ValueError(f"an MLP needs context and depth of 1 or more: found {context} and {depth}")
        self.out_features, self.context = width, context
        self.embed = nn.Linear(context * in_features, width)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(depth - 1))
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(depth - 1))
        self.dropout = Dropout(dropout)

    def forward(
        self, x: torch.Tensor, lengths: torch.Tensor, state: torch.Tensor | None = None
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """``x (T, B, in_features)`` to ``(T, B, width)``; state the last ``context - 1`` input frames."""
        extended, past = with_history(x, state, self.context - 1)
        windows = torch.cat([extended[k : k + x.shape[0]] for k in range(self.context)], dim=-1)
        y = self.dropout(F.gelu(self.embed(windows)))
        for norm, layer in zip(self.norms, self.layers, strict=True):
            y = y + self.dropout(F.gelu(layer(norm(y))))
        return y, lengths, past
