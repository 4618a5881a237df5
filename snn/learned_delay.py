"""`LearnedDelayLinear`: delays that are trained, as a ceiling for those that are not."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from snn.delay import FixedDelayLinear

LAST_WIDTH = 0.23
"""Standard deviation in bins of the bell around a delay at the end of training."""

ANNEALED = 0.75
"""Share of the training after which the bells are as narrow as they get."""


class LearnedDelayLinear(FixedDelayLinear):
    """Delayed linear layer whose delays are trained with its weights.

    In training each connection spreads its weight over neighbouring delays, in a bell around its position that grows
    narrow as `anneal` is told how far the training is; so the position has a gradient. In evaluation the positions are
    rounded and the layer is a `FixedDelayLinear`. A convolution `max_delay + 1` long, it costs as many times a plain
    layer, and has twice its parameters: a ceiling to compare with, not a layer for hardware.

    Parameters and attributes are those of `FixedDelayLinear`, and:

    Attributes
    ----------
    position : Parameter (O, I)
        Delays as a share of the range min_delay..max_delay; they start at the drawn delays.
    width : buffer ()
        Standard deviation of the bells in bins.

    Notes
    -----
    Hammouamri et al. 2023, arXiv 2306.17670 (dilated convolution with learnable spacings; the width falls from half
    the range to 0.23 there too).

    >>> layer = LearnedDelayLinear(3, 2, max_delay=16)
    >>> y, state = layer(torch.zeros(5, 4, 3))
    >>> y.shape, state.shape
    (torch.Size([5, 4, 2]), torch.Size([16, 4, 3]))
    """

    width: Tensor

    def __init__(self, in_features: int, out_features: int, *, max_delay: int, **options: Any) -> None:
        super().__init__(in_features, out_features, max_delay=max_delay, **options)
        span = max(1, self.max_delay - self.min_delay)
        self.position = nn.Parameter((self.delay.to(self.weight.dtype) - self.min_delay) / span)
        self.register_buffer("width", torch.tensor(0.0))
        self.anneal(0.0)

    @torch.no_grad()
    def anneal(self, progress: float) -> None:
        """Before an update: set the width of the bells for a share `progress` (0..1) of the training."""
        first = max(LAST_WIDTH, (self.max_delay - self.min_delay) / 2)
        done = min(1.0, progress / ANNEALED)
        self.width.fill_(first * math.exp(done * math.log(LAST_WIDTH / first)))
        # A position that an update has carried out of the range would have no gradient that leads it back.
        self.position.clamp_(0, 1)

    def delays(self) -> Tensor:
        """Delays in bins (O, I), not rounded."""
        return self.min_delay + self.position.clamp(0, 1) * (self.max_delay - self.min_delay)

    def kernel(self) -> Tensor:
        """Weight of each connection at each delay (O, I, max_delay + 1)."""
        taps = torch.arange(self.max_delay + 1, dtype=self.weight.dtype, device=self.weight.device)
        bells = torch.exp(-0.5 * ((taps - self.delays().unsqueeze(-1)) / self.width).square())
        bells = bells * (taps >= self.min_delay)
        return self.weight.unsqueeze(-1) * bells / bells.sum(-1, keepdim=True)

    def forward(self, x: Tensor, state: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Apply the layer to `x` (T, B, I); see `FixedDelayLinear.forward`."""
        if not self.training:
            self._round()
            return super().forward(x, state)
        before = x.new_zeros(self.max_delay, *x.shape[1:]) if state is None else state.to(x.dtype)
        past = torch.cat([before, x])
        if x.shape[0] == 0:
            return x.new_zeros(0, x.shape[1], self.out_features), past.clone()
        y = F.conv1d(past.permute(1, 2, 0), self.kernel().flip(-1), self.bias)
        return y.permute(2, 0, 1), past[x.shape[0] :].clone()

    @torch.no_grad()
    def _round(self) -> None:
        rounded = self.delays().round().to(self.delay.dtype)
        if not torch.equal(rounded, self.delay):
            self.delay.copy_(rounded)
