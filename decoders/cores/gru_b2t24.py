"""The recurrent part of the official Brain-to-Text '24 baseline."""

from __future__ import annotations

from typing import ClassVar, Literal

import torch
from torch import nn

from decoders.cores import recurrent
from decoders.cores.base import Core


class GRUB2T24(Core):
    """Five GRU layers of 1024 units in both directions, from a zero state, over channel-major patches.

    The release reads the zero padding first in its backward direction, so its validation scores depend on what a
    trial was batched with; here each trial ends where it ends.

    Parameters
    ----------
    in_features, width
        Channels in (after patching), and hidden units of each layer and direction.
    depth, dropout, bidirectional
        As in the release; False gives its published unidirectional variant.

    Source: cffan/neural_seq_decoder, src/neural_decoder/model.py.
    """

    patch_layout: ClassVar[Literal["time", "channel"]] = "channel"

    def __init__(
        self, in_features: int, width: int = 1024, *, depth: int = 5, dropout: float = 0.4, bidirectional: bool = True
    ) -> None:
        super().__init__(in_features, width)
        self.causal = not bidirectional
        self.out_features = width * (2 if bidirectional else 1)
        self.gru_decoder = nn.GRU(
            in_features, width, depth, dropout=dropout if depth > 1 else 0.0, bidirectional=bidirectional
        )
        recurrent.initialise(self.gru_decoder)

    def forward(
        self, x: torch.Tensor, lengths: torch.Tensor, state: torch.Tensor | None = None
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """``x (T, B, in_features)`` to ``(T, B, out_features)``; state (layers, B, width)."""
        if state is None:
            layers = self.gru_decoder.num_layers * (2 if self.gru_decoder.bidirectional else 1)
            state = x.new_zeros(layers, x.shape[1], self.width)
        elif self.gru_decoder.bidirectional:
            raise ValueError("a bidirectional GRU needs the whole trial at once: it takes no state")
        y, state = recurrent.run(self.gru_decoder, x, lengths, state)
        assert isinstance(state, torch.Tensor)
        return y, lengths, state
