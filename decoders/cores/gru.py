"""Gated recurrent units at any size."""

from __future__ import annotations

import torch
from torch import nn

from decoders.cores import recurrent
from decoders.cores.base import Core


class GRU(Core):
    """Stack of gated recurrent units with a learned first state.

    Parameters
    ----------
    in_features, width
        Channels in, and hidden units of each layer and direction.
    depth
        Layers.
    dropout
        Between layers, in training.
    bidirectional
        Read the trial backwards too; then the core is not causal.

    Source: the '25 baseline's recipe (Neuroprosthetics-Lab/nejm-brain-to-text), at any size.
    """

    def __init__(
        self, in_features: int, width: int = 340, *, depth: int = 3, dropout: float = 0.0, bidirectional: bool = False
    ) -> None:
        super().__init__(in_features, width)
        self.causal = not bidirectional
        self.out_features = width * (2 if bidirectional else 1)
        self.gru = nn.GRU(in_features, width, depth, dropout=dropout if depth > 1 else 0.0, bidirectional=bidirectional)
        recurrent.initialise(self.gru)
        self.h0 = recurrent.learned_state(width)

    def forward(
        self, x: torch.Tensor, lengths: torch.Tensor, state: torch.Tensor | None = None
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """``x (T, B, in_features)`` to ``(T, B, out_features)``; state (layers, B, width)."""
        if state is None:
            layers = self.gru.num_layers * (2 if self.gru.bidirectional else 1)
            state = self.h0.expand(layers, x.shape[1], self.width).contiguous()
        elif self.gru.bidirectional:
            raise ValueError("a bidirectional GRU needs the whole trial at once: it takes no state")
        y, state = recurrent.run(self.gru, x, lengths, state)
        assert isinstance(state, torch.Tensor)
        return y, lengths, state
