"""What every core has in common: features of each frame in, a richer description of each frame out."""

from __future__ import annotations

import inspect
from typing import Any, ClassVar, Literal

import torch
from torch import nn


class Core(nn.Module):
    """Base class of the cores between the front end and the CTC head.

    A subclass is called as ``core(x, lengths, state=None) -> (features, lengths', state)`` with ``x (T, B, N)``,
    ``lengths (B,)`` real frames of each trial, and ``features (T', B, out_features)``. Frames past a trial's length
    must never influence its real frames. A causal core that is fed a sequence in chunks, each with the state that the
    chunk before returned (``None`` first), gives what it gives on the whole sequence; others raise ValueError when
    they are handed a state.

    Parameters
    ----------
    in_features
        Channels of one input frame.
    width
        The one size that the budget solver varies.

    Attributes
    ----------
    out_features : int
        Channels of one output frame.
    causal : bool
        Whether a frame depends on the past and present alone.
    patch_layout : {"time", "channel"}
        Order in which a patch of frames is flattened for this core: the first index that varies slowest.
    """

    patch_layout: ClassVar[Literal["time", "channel"]] = "time"
    out_features: int
    causal: bool = True

    def __init__(self, in_features: int, width: int) -> None:
        super().__init__()
        if in_features < 1 or width < 1:
            raise ValueError(f"a core needs in_features and width of 1 or more: found {in_features} and {width}")
        self.in_features, self.width = in_features, width

    @classmethod
    def defaults(cls) -> dict[str, Any]:
        """Options of the core and their default values, ``width`` among them."""
        parameters = inspect.signature(cls.__init__).parameters.values()
        return {p.name: p.default for p in parameters if p.default is not inspect.Parameter.empty}

    @classmethod
    def count(cls, in_features: int, width: int, **options: Any) -> int:
        """Parameters that a core of this width would have; builds it without memory."""
        with torch.random.fork_rng(devices=[]), torch.device("meta"):
            return sum(p.numel() for p in cls(in_features, width, **options).parameters())

    def output_lengths(self, lengths: torch.Tensor) -> torch.Tensor:
        """Frames that come out for trials of ``lengths`` frames; the same number unless the core pools."""
        return lengths

    def forward(
        self, x: torch.Tensor, lengths: torch.Tensor, state: Any = None
    ) -> tuple[torch.Tensor, torch.Tensor, Any]:
        """Describe each frame; see the class."""
        raise NotImplementedError


def with_history(x: torch.Tensor, history: torch.Tensor | None, n_frames: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Put the ``n_frames`` frames before ``x (T, B, N)`` in front of it; zeros before the start.

    Returns
    -------
    extended : (n_frames + T, B, N)
    history : (n_frames, B, N)
        To hand in with the next chunk.
    """
    if history is None:
        history = x.new_zeros(n_frames, *x.shape[1:])
    extended = torch.cat([history, x])
    return extended, extended[extended.shape[0] - n_frames :]
