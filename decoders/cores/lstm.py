"""Long short-term memory at any size."""

from __future__ import annotations

import torch
from torch import nn

from decoders.cores import recurrent
from decoders.cores.base import Core


class LSTM(Core):
    """Stack of long short-term memory layers with a learned first state.

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

    Source: Hochreiter and Schmidhuber 1997; first state and initial weights as in the '25 GRU baseline.
    """

    def __init__(
        self, in_features: int, width: int = 296, *, depth: int = 3, dropout: float = 0.0, bidirectional: bool = False
    ) -> None:
        super().__init__(in_features, width)
        self.causal = not bidirectional
        self.out_features = width * (2 if bidirectional else 1)
        self.lstm = nn.LSTM(
            in_features, width, depth, dropout=dropout if depth > 1 else 0.0, bidirectional=bidirectional
        )
        recurrent.initialise(self.lstm)
        self.h0 = recurrent.learned_state(width)
        self.c0 = recurrent.learned_state(width)

    def forward(
        self, x: torch.Tensor, lengths: torch.Tensor, state: tuple[torch.Tensor, torch.Tensor] | None = None
    ) -> tuple[torch.Tensor, torch.Tensor, tuple[torch.Tensor, torch.Tensor]]:
        """``x (T, B, in_features)`` to ``(T, B, out_features)``; state two tensors (layers, B, width)."""
        if state is None:
            shape = (self.lstm.num_layers * (2 if self.lstm.bidirectional else 1), x.shape[1], self.width)
            state = (self.h0.expand(shape).contiguous(), self.c0.expand(shape).contiguous())
        elif self.lstm.bidirectional:
            raise ValueError("a bidirectional LSTM needs the whole trial at once: it takes no state")
        y, last = recurrent.run(self.lstm, x, lengths, state)
        assert isinstance(last, tuple)
        return y, lengths, last
