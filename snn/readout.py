"""Readouts: from the last spikes to the outputs of a network."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn


class LinearReadout(nn.Module):
    """A linear layer on the spikes of each bin; it keeps no state.

    Parameters
    ----------
    in_features, out_features : int
    """

    def __init__(self, in_features: int, out_features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)

    def forward(self, spikes: Tensor, state: Tensor | None = None) -> tuple[Tensor, None]:
        """Map `spikes` (T, B, N) to (T, B, out_features)."""
        return self.linear(spikes), None


class LeakyReadout(nn.Module):
    """A linear layer into membranes that leak and never fire: `m = beta m + (1 - beta) (W s + b)`.

    Parameters
    ----------
    in_features, out_features : int
    beta : float
        Decay of one step, exp(-dt/tau), in 0..1.
    """

    def __init__(self, in_features: int, out_features: int, *, beta: float = 0.5) -> None:
        super().__init__()
        if not 0.0 <= beta < 1.0:
            raise ValueError(f"LeakyReadout: beta must lie in 0..1 (1 left out); found {beta}")
        self.linear = nn.Linear(in_features, out_features)
        self.beta = beta

    def forward(self, spikes: Tensor, state: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Map `spikes` (T, B, N) to membranes (T, B, out_features); the state is the last of them (B, out_features)."""
        drive = (1 - self.beta) * self.linear(spikes)
        membrane = drive.new_zeros(drive.shape[1:]) if state is None else state
        steps = []
        for step in drive.unbind(0):
            membrane = self.beta * membrane + step
            steps.append(membrane)
        return (torch.stack(steps) if steps else drive), membrane

    def extra_repr(self) -> str:
        """Constant of the membrane."""
        return f"beta={self.beta}"


READOUTS: dict[str, Callable[[int, int], nn.Module]] = {"linear": LinearReadout, "leaky": LeakyReadout}
"""Name -> readout built from (in_features, out_features)."""
