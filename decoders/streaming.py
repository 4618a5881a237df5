"""A phoneme decoder one bin at a time, as a live system would run it."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from decoders.cores.residual_snn import ResidualSNN
from decoders.day_layers import check_days, day_affine
from decoders.phoneme_decoder import PhonemeDecoder
from neuro import DataError
from neuro.patching import LAYOUTS
from snn import StreamingSNN


@dataclass
class DecoderState:
    """State of a `StreamingDecoder` between bins. A step writes into it.

    Attributes
    ----------
    window : list of Tensor (B, C)
        Raw bins that the smoothing still needs, oldest first.
    frames : list of Tensor (B, C)
        Frames that have not filled a patch yet.
    skip : int
        Frames to drop before the next patch, where the stride is longer than the patch.
    core
        Of the core.
    pool : Tensor (B, H) or None, pooled : int
        Sum of the spikes that have not filled a pool yet, and their number of bins.
    days : Tensor (B,)
        The day of each trial.
    weights, biases : Tensor or None
        The day layers of those days.
    bins : int
        Bins taken so far.
    """

    window: list[Tensor]
    days: Tensor
    core: Any
    frames: list[Tensor] = field(default_factory=list)
    skip: int = 0
    pool: Tensor | None = None
    pooled: int = 0
    weights: Tensor | None = None
    biases: Tensor | None = None
    bins: int = 0


class StreamingDecoder:
    """Runs a `PhonemeDecoder` one bin at a time with explicit state.

    The logits that come out are those of the whole trial. Smoothing looks ahead, so they come `lookahead` bins late;
    `finish` hands out what the end of the trial still owes.

    Parameters
    ----------
    decoder : PhonemeDecoder
        On the CPU; copied in evaluation mode. A spiking core runs event by event.
    mode : str
        How delayed layers run, see `snn.StreamingLayer`.

    Attributes
    ----------
    lookahead : int
        Bins that must have been seen before a bin can be decoded.

    Raises
    ------
    DataError
        For a core that sees the future, and so cannot be streamed.

    Examples
    --------
    >>> decoder = PhonemeDecoder(4, core="residual_snn", width=8, core_options={"depth": 1, "pool": 2}).eval()
    >>> stream = StreamingDecoder(decoder)
    >>> state = stream.start(batch=1)
    >>> [len(stream.step(torch.randn(1, 4), state)) for _ in range(4)]
    [0, 1, 0, 1]
    """

    def __init__(self, decoder: PhonemeDecoder, mode: str = "auto") -> None:
        core = decoder.core
        if not core.causal:
            raise DataError("a core that sees the future cannot go bin by bin", field="core", found=type(core).__name__)
        # A copy: the caller's decoder may go on training.
        self.decoder = copy.deepcopy(decoder).eval()
        core = self.core = self.decoder.core
        self.spiking = StreamingSNN(core.net, mode) if isinstance(core, ResidualSNN) else None
        self.masks = getattr(core, "mask_token", None) is not None
        taps = () if decoder.smoothing is None else decoder.smoothing.taps.tolist()
        self.taps = taps
        self.before = (len(taps) - 1) // 2 if taps else 0
        self.lookahead = len(taps) - 1 - self.before if taps else 0

    def start(self, batch: int = 1, days: Tensor | None = None) -> DecoderState:
        """The state before the first bin of a trial.

        Parameters
        ----------
        batch : int
            Trials side by side.
        days : int64 Tensor (B,), optional
            The day of each; day 0 when absent.

        Raises
        ------
        DataError
            For a day that the decoder has no layer for.
        """
        decoder = self.decoder
        days = torch.zeros(batch, dtype=torch.int64) if days is None else days
        if batch < 1 or days.shape != (batch,) or days.is_floating_point():
            found = f"{days.dtype} {tuple(days.shape)}"
            raise DataError("days need one whole number a trial", field="days", found=found, expected=f"({batch},)")
        zero = decoder.head.weight.new_zeros(batch, decoder.n_channels)
        core = None if self.spiking is None else self.spiking.start(batch)
        state = DecoderState([zero] * self.before, days, core)
        if decoder.day_layers is not None:
            check_days(days, decoder.day_layers.n_days)
            state.weights = decoder.day_layers.weights.detach()[days]
            state.biases = decoder.day_layers.biases.detach()[days]
        return state

    @torch.no_grad()
    def step(self, x: Tensor, state: DecoderState) -> Tensor:
        """Take one bin.

        Parameters
        ----------
        x : Tensor (B, C)
        state : DecoderState
            From `start`; written to.

        Returns
        -------
        logits : Tensor (K, B, n_outputs)
            Frames that became known with this bin: none or one.

        Raises
        ------
        DataError
            If the channels differ from the decoder's.
        """
        shape = (len(state.days), self.decoder.n_channels)
        if x.shape != shape:
            raise DataError(
                "a bin does not fit the decoder, which was made for another number of channels or trials",
                field="features", found=tuple(x.shape), expected=shape,
            )  # fmt: skip
        state.bins += 1
        return self._smoothed(x, state)

    @torch.no_grad()
    def finish(self, state: DecoderState) -> Tensor:
        """What is owed at the end of the trial: logits (K, B, n_outputs). The state cannot be stepped on."""
        owed = self.lookahead if state.bins else 0
        zero = self.decoder.head.weight.new_zeros(len(state.days), self.decoder.n_channels)
        missing = [self._smoothed(zero, state) for _ in range(owed)]
        return torch.cat(missing) if missing else self._none(state)

    def _none(self, state: DecoderState) -> Tensor:
        return self.decoder.head.weight.new_zeros(0, len(state.days), self.decoder.head.out_features)

    def _smoothed(self, x: Tensor, state: DecoderState) -> Tensor:
        if not self.taps:
            return self._day(x, x, state)
        state.window.append(x)
        if len(state.window) < len(self.taps):
            return self._none(state)
        # The order of additions is the one of `neuro.smoothing.smooth`.
        out = state.window[0] * self.taps[0]
        for tap, frame in zip(self.taps[1:], state.window[1:], strict=True):
            out = out.add_(frame, alpha=tap)
        raw = state.window[self.before]
        del state.window[0]
        return self._day(out, raw, state)

    def _day(self, x: Tensor, raw: Tensor, state: DecoderState) -> Tensor:
        if state.weights is not None and state.biases is not None:
            x = day_affine(x.unsqueeze(0), state.weights, state.biases)[0]
        if self.masks:
            # Frames that arrive as zeros are masked ones; smoothing and day layers must not hide them.
            x = torch.where((raw != 0).any(-1, keepdim=True), x, 0.0)
        patch = self.decoder.patch
        if patch is None:
            return self._core(x, state)
        if state.skip:
            state.skip -= 1
            return self._none(state)
        size, stride = patch
        state.frames.append(x)
        if len(state.frames) < size:
            return self._none(state)
        window = torch.stack(state.frames, -1).unsqueeze(0)  # (1, B, C, size)
        joined = window.permute(LAYOUTS[self.core.patch_layout]).reshape(x.shape[0], -1)
        state.skip = max(0, stride - size)
        del state.frames[: min(stride, size)]
        return self._core(joined, state)

    def _core(self, x: Tensor, state: DecoderState) -> Tensor:
        if self.spiking is None:
            lengths = torch.ones(x.shape[0], dtype=torch.int64)
            features, _, state.core = self.core(x.unsqueeze(0), lengths, state.core)
            return self.decoder.head(features)
        spikes = self.spiking.step(x, state.core)
        if self.core.pool > 1:
            state.pool = spikes if state.pool is None else state.pool + spikes
            state.pooled += 1
            if state.pooled < self.core.pool:
                return self._none(state)
            spikes = state.pool / self.core.pool
            state.pool, state.pooled = None, 0
        return self.decoder.head(spikes).unsqueeze(0)
