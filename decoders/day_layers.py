"""One affine map a recording day, which brings the days of drifting electrodes to common ground."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from neuro import DataError
from snn import Dropout


def check_days(days: torch.Tensor, n_days: int) -> None:
    """Raise DataError where a trial's day is none of ``n_days``."""
    if days.numel() and not 0 <= int(days.min()) <= int(days.max()) < n_days:
        raise DataError(
            "a trial comes from a day that the decoder has no layer for",
            field="days",
            found=f"day {int(days.min())} to {int(days.max())}",
            expected=f"0 to {n_days - 1}",
        )


def day_affine(x: torch.Tensor, weights: torch.Tensor, biases: torch.Tensor) -> torch.Tensor:
    """``softsign(x[t, b] @ weights[b] + biases[b])`` for ``x (T, B, N)``, ``weights (B, N, N)``, ``biases (B, N)``."""
    return F.softsign(torch.einsum("tbn,bnm->tbm", x, weights) + biases)


class DayLayers(nn.Module):
    """Affine map of the trial's day, softsign, dropout. Every day starts as the identity.

    Parameters
    ----------
    n_days, n_channels
        Sessions of the data set, in its order of sessions, and channels of a frame.
    dropout
        After the softsign, in training; 0.2 in the '25 recipe.

    Source: the day networks of Willett et al. 2023 and Card et al. 2024 (cffan/neural_seq_decoder,
    Neuroprosthetics-Lab/nejm-brain-to-text).
    """

    def __init__(self, n_days: int, n_channels: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.n_days = n_days
        self.weights = nn.Parameter(torch.eye(n_channels).repeat(n_days, 1, 1))
        self.biases = nn.Parameter(torch.zeros(n_days, n_channels))
        self.dropout = Dropout(dropout)

    def forward(self, x: torch.Tensor, days: torch.Tensor) -> torch.Tensor:
        """``x (T, B, N)`` and ``days (B,)`` to (T, B, N).

        Raises
        ------
        DataError
            For a day outside 0..n_days-1.
        """
        check_days(days, self.n_days)
        return self.dropout(day_affine(x, self.weights[days], self.biases[days]))
