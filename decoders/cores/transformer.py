"""Compact transformer for trials whose frames were masked in time."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import nn

from decoders.cores.base import Core
from snn import Dropout

# Sources of positions: rotary (arXiv 2104.09864), learned bias of the distance in buckets (T5, arXiv 1910.10683).
POSITIONS = ("rotary", "relative")


def rotate(x: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
    """Turn pairs of channels of ``x (B, heads, T, D)`` by angles proportional to their ``positions (T,)``."""
    half = x.shape[-1] // 2
    rates = 10_000.0 ** (-torch.arange(half, device=x.device, dtype=torch.float32) / half)
    angles = positions[:, None].float() * rates
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    first, second = x[..., :half], x[..., half:]
    return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)


class DistanceBias(nn.Module):
    """Learned bias of each head for each distance; exact for near frames, in logarithmic buckets for far ones."""

    def __init__(self, heads: int, causal: bool, buckets: int = 32, furthest: int = 256) -> None:
        super().__init__()
        self.causal, self.buckets, self.furthest = causal, buckets, furthest
        self.bias = nn.Embedding(buckets, heads)
        nn.init.normal_(self.bias.weight, std=0.02)

    def forward(self, distance: torch.Tensor) -> torch.Tensor:
        """Query position minus key position (T, S) to a bias (heads, T, S)."""
        side = self.buckets if self.causal else self.buckets // 2
        near = side // 2
        size = distance.clamp(min=0) if self.causal else distance.abs()
        scale = (side - 1 - near) / math.log(self.furthest / near)
        far = near + (torch.log(size.clamp(min=near) / near) * scale).long()
        bucket = torch.where(size < near, size, far.clamp(max=side - 1))
        if not self.causal:
            bucket = bucket + side * (distance < 0)
        return self.bias(bucket).permute(2, 0, 1)


class Block(nn.Module):
    """Pre-normalised self-attention and feed-forward layer."""

    def __init__(self, dim: int, hidden: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads = heads
        self.norm_attention, self.norm_hidden = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv, self.out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.up, self.down = nn.Linear(dim, hidden), nn.Linear(hidden, dim)
        self.dropout = Dropout(dropout)

    def forward(
        self,
        x: torch.Tensor,
        mask: torch.Tensor,
        positions: torch.Tensor | None,
        past: tuple[torch.Tensor, torch.Tensor] | None,
    ) -> tuple[torch.Tensor, tuple[torch.Tensor, torch.Tensor]]:
        """``x (B, T, dim)``; ``mask`` boolean or additive, broadcast to (B, heads, T, S); past keys and values."""
        B, T, dim = x.shape
        q, k, v = self.qkv(self.norm_attention(x)).view(B, T, 3, self.heads, dim // self.heads).permute(2, 0, 3, 1, 4)
        if positions is not None:
            q, k = rotate(q, positions), rotate(k, positions)
        if past is not None:
            k, v = torch.cat([past[0], k], dim=2), torch.cat([past[1], v], dim=2)
        attended = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        x = x + self.dropout(self.out(attended.transpose(1, 2).reshape(B, T, dim)))
        hidden = self.dropout(F.gelu(self.up(self.norm_hidden(x))))
        return x + self.dropout(self.down(hidden)), (k, v)


class Transformer(Core):
    """Transformer encoder, causal by default, with rotary or relative positions.

    Time masking is an augmentation and happens before the model. With ``mask_token`` a frame that arrives as zeros in
    every channel counts as masked and is replaced by one learned vector; without it the zeros stand.

    Parameters
    ----------
    in_features, width
        Channels in, and nominal model width. The model dimension is the width rounded down to a multiple of
        ``2 * heads``; the feed-forward layer (four times as wide where nothing was rounded) takes the parameters
        that the rounding left over, so that every width is a different size and any budget can be met.
    depth, heads
        Layers, and attention heads of each.
    causal
        Whether a frame attends to itself and the past alone.
    context
        Number of frames that a frame can see, itself among them (on either side when not causal); None for all.
    positions
        "rotary" or "relative" (a learned bias of the distance).
    mask_token
        Learn a vector for masked frames.
    dropout
        Of attention outputs, hidden units and layer outputs, in training.

    Source: Feghhi et al. 2025, arXiv 2507.02800 (five layers, width 384, six heads, patches of five frames,
    20 masks of up to 7.5 % of the trial).
    """

    def __init__(
        self,
        in_features: int,
        width: int = 176,
        *,
        depth: int = 5,
        heads: int = 4,
        causal: bool = True,
        context: int | None = None,
        positions: str = "rotary",
        mask_token: bool = False,
        dropout: float = 0.0,
    ) -> None:
        super().__init__(in_features, width)
        if positions not in POSITIONS:
            raise ValueError(f"positions is one of {', '.join(POSITIONS)}: found {positions!r}")
        if context is not None and context < 1:
            raise ValueError(f"context is a number of frames, 1 or more, or None: found {context}")
        dim = width // (2 * heads) * (2 * heads)
        if dim == 0:
            raise ValueError(f"a transformer of {heads} heads needs a width of {2 * heads} or more: found {width}")
        # 12 width^2 parameters a layer, of which attention takes 4 dim^2 and the feed-forward layer 2 dim hidden.
        hidden = round((6 * width**2 - 2 * dim**2) / dim)
        self.out_features, self.causal, self.context = dim, causal, context
        self.embed = nn.Linear(in_features, dim)
        self.blocks = nn.ModuleList(Block(dim, hidden, heads, dropout) for _ in range(depth))
        self.norm = nn.LayerNorm(dim)
        self.distance_bias = DistanceBias(heads, causal) if positions == "relative" else None
        self.mask_token = nn.Parameter(torch.randn(dim) * 0.02) if mask_token else None

    def _mask(self, lengths: torch.Tensor, T: int, before: int) -> torch.Tensor:
        """What each of T frames may attend to, ``before`` cached frames among it; see `Block.forward`."""
        device = lengths.device
        distance = torch.arange(before, before + T, device=device)[:, None] - torch.arange(before + T, device=device)
        seen = torch.ones_like(distance, dtype=torch.bool)
        if self.causal:
            seen = distance >= 0
        if self.context is not None:
            seen = seen & (distance.abs() < self.context)
        seen = seen[None, None]
        if not self.causal:
            # A padded frame may see itself, or its row would have nothing to average and be NaN.
            real = torch.arange(T, device=device) < lengths[:, None]
            seen = (seen & real[:, None, None]) | (distance == 0)
        if self.distance_bias is None:
            return seen
        return self.distance_bias(distance).masked_fill(~seen, -torch.inf)

    def forward(
        self,
        x: torch.Tensor,
        lengths: torch.Tensor,
        state: tuple[int, list[tuple[torch.Tensor, torch.Tensor]]] | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor, tuple[int, list[tuple[torch.Tensor, torch.Tensor]]]]:
        """``x (T, B, in_features)`` to ``(T, B, out_features)``.

        The state is the number of frames seen so far, and the keys and values of each layer, at most
        ``context - 1`` frames of them.
        """
        if state is not None and not self.causal:
            raise ValueError("a transformer that sees the future needs the whole trial at once: it takes no state")
        T, B, _ = x.shape
        seen, past = state if state is not None else (0, [None] * len(self.blocks))
        y = self.embed(x)
        if self.mask_token is not None:
            y = torch.where((x == 0).all(-1, keepdim=True), self.mask_token.to(y.dtype), y)
        if T == 0 or B == 0:
            return y, lengths, (seen, [p for p in past if p is not None])
        y = y.transpose(0, 1)
        before = past[0][0].shape[2] if past and past[0] is not None else 0
        mask = self._mask(lengths, T, before)
        mask = mask if mask.dtype == torch.bool else mask.to(y.dtype)
        positions = torch.arange(seen, seen + T, device=x.device) if self.distance_bias is None else None
        latest = []
        for block, cached in zip(self.blocks, past, strict=True):
            y, (k, v) = block(y, mask, positions, cached)
            start = max(0, k.shape[2] - (self.context - 1)) if self.context is not None else 0
            latest.append((k[:, :, start:], v[:, :, start:]))
        return self.norm(y).transpose(0, 1), lengths, (seen + T, latest)
