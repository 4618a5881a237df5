"""Dropout whose mask costs sixteen random bits an element."""

from __future__ import annotations

import torch
from torch import Tensor, nn

CHOICES = 1 << 16


class Dropout(nn.Module):
    """`torch.nn.Dropout`, on the CPU in a third of its time.

    There torch draws a random double for each element, and a spiking network drops out spikes before every layer: that
    was an eighth of a training step. Here one draw of 64 bits decides for four elements. It comes from torch's global
    generator, so that seeds and checkpoints work as with torch's own.

    Parameters
    ----------
    p : float
        Share of the elements set to zero in training, in 0..1, in steps of 1/65536; the others are scaled up so that
        the mean stays.

    Raises
    ------
    ValueError
        If `p` lies outside 0..1.

    >>> Dropout(0.5).eval()(torch.ones(2))
    tensor([1., 1.])
    """

    def __init__(self, p: float = 0.5) -> None:
        super().__init__()
        if not 0 <= p <= 1:
            raise ValueError(f"Dropout: p must lie in 0..1; found {p}")
        self.p = p

    def forward(self, x: Tensor) -> Tensor:
        """`x` of any shape, real-valued; as it is in evaluation."""
        dropped = round(self.p * CHOICES)
        if not self.training or not dropped:
            return x
        if dropped == CHOICES or x.device.type != "cpu":
            return nn.functional.dropout(x, self.p, training=True)
        draws = torch.randint(-(2**63), 2**63 - 1, (-(-x.numel() // 4),))
        bits = draws.view(torch.int16)[: x.numel()].view(x.shape)
        keep = (bits >= dropped - CHOICES // 2).to(x.dtype)
        return x * keep.mul_(1 / (1 - dropped / CHOICES))

    def extra_repr(self) -> str:
        """For printing."""
        return f"p={self.p}"
