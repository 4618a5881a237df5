"""What the gated recurrent cores share: initial values, a learned first state, sequences that end where they end."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence


def initialise(rnn: nn.RNNBase) -> None:
    """Orthogonal recurrent and Xavier-uniform input weights, as both official recipes have them.

    Source: cffan/neural_seq_decoder, Neuroprosthetics-Lab/nejm-brain-to-text.
    """
    for name, parameter in rnn.named_parameters():
        if "weight_hh" in name:
            nn.init.orthogonal_(parameter)
        elif "weight_ih" in name:
            nn.init.xavier_uniform_(parameter)


def learned_state(width: int) -> nn.Parameter:
    """One first hidden state (1, 1, width) for every layer and trial, as the '25 recipe learns it."""
    return nn.Parameter(nn.init.xavier_uniform_(torch.zeros(1, 1, width)))


def run(
    rnn: nn.RNNBase, x: torch.Tensor, lengths: torch.Tensor, state: torch.Tensor | tuple[torch.Tensor, torch.Tensor]
) -> tuple[torch.Tensor, torch.Tensor | tuple[torch.Tensor, torch.Tensor]]:
    """Run a time-first ``rnn`` over ``x (T, B, N)`` so that padding never matters.

    A forward-only network meets the padding last, so it runs over it untouched. A bidirectional one would read it
    first, backwards; there each trial is packed to its own length.

    Returns
    -------
    y : (T, B, H) or (T, B, 2 H)
    state
        After frame T of a forward-only network (past the end of shorter trials); after each trial's own last frame
        of a bidirectional one.
    """
    if x.shape[0] == 0 or x.shape[1] == 0:
        directions = 2 if rnn.bidirectional else 1
        return x.new_zeros(x.shape[0], x.shape[1], directions * rnn.hidden_size), state
    if not rnn.bidirectional:
        return rnn(x, state)
    packed = pack_padded_sequence(x, lengths.clamp(min=1).cpu(), enforce_sorted=False)
    y, state = rnn(packed, state)
    return pad_packed_sequence(y, total_length=x.shape[0])[0], state
