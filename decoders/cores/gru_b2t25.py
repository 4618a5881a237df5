"""The recurrent part of the official Brain-to-Text '25 baseline."""

from __future__ import annotations

from decoders.cores.gru import GRU


class GRUB2T25(GRU):
    """Five GRU layers of 768 units, forward only, from one learned state that all layers share.

    Parameters
    ----------
    in_features, width
        Channels in (after time-major patching), and hidden units of each layer.
    depth, dropout
        As in the release.

    Source: Neuroprosthetics-Lab/nejm-brain-to-text, model_training/rnn_model.py.
    """

    def __init__(self, in_features: int, width: int = 768, *, depth: int = 5, dropout: float = 0.4) -> None:
        super().__init__(in_features, width, depth=depth, dropout=dropout)
