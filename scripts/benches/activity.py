"""Spiking networks that fire at a wished rate, so that a speed is stated at a known activity."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from snn import MaskedBatchNorm, SpikeRecorder


@torch.no_grad()
def set_rate(net: nn.Module, x: Tensor, rate: float, *, tolerance: float = 0.005) -> float:
    """Move the bias of every batch norm until the neurons fire at `rate` on `x`; the rate that was reached.

    The running statistics are first those of `x`.

    Parameters
    ----------
    net : Module
        Takes x (T, B, N); its norms are `MaskedBatchNorm`.
    rate, tolerance : float
        Spikes a neuron and bin.
    """
    norms = [module for module in net.modules() if isinstance(module, MaskedBatchNorm)]

    def measured(bias: float) -> float:
        for norm in norms:
            norm.bias.fill_(bias)
        net.train()
        for _ in range(12):  # running statistics follow in steps
            net(x)
        net.eval()
        with SpikeRecorder(net) as recorder:
            net(x)
        return float(recorder.mean_rate())

    low, high = -3.0, 3.0
    found = 0.0
    for _ in range(12):
        middle = (low + high) / 2
        found = measured(middle)
        if abs(found - rate) <= tolerance:
            break
        low, high = (middle, high) if found < rate else (low, middle)
    return found
