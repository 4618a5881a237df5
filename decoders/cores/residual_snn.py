"""Spiking residual network with fixed delays."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import signature
from typing import Any

import torch

import snn
from decoders.cores.base import Core


class ResidualSNN(Core):
    """`snn.ResidualSNN` without its readout: the spikes of the last layer are the features.

    Parameters
    ----------
    in_features, width
        Channels in, and neurons of each layer.
    depth
        Residual blocks after the input layer.
    pool
        Average the spikes over this many bins, so that the head and CTC run at a lower rate; 1 keeps every bin.
        The last ``T mod pool`` bins of a trial fall away.
    spike_grad
        A surrogate gradient, or the name of one in `snn.SURROGATES`.
    dropout
        On spikes wherever they meet weights, those of the head among them, in training.
    dormancy
        Options of `snn.DormantLIF` beside beta, threshold, spike_grad and reset_mechanism, an empty mapping for its
        defaults: its neurons in place of LIF. A surrogate that is not named is then the Dormant Spiking Neuron's.
    max_delay, min_delay, shortcut, norm, beta, threshold, reset_mechanism, seed, neuron, delay_cap, delay_sharing,
    learn_delays
        As in `snn.ResidualSNN`.
    """

    def __init__(
        self,
        in_features: int,
        width: int = 672,
        *,
        depth: int = 4,
        pool: int = 1,
        max_delay: int = 16,
        min_delay: int = 1,
        shortcut: str = "membrane",
        norm: str | None = "batch",
        beta: float = 0.5,
        threshold: float = 1.0,
        spike_grad: Any = None,
        reset_mechanism: str = "zero",
        dropout: float = 0.0,
        dormancy: Mapping[str, Any] | None = None,
        seed: int = 0,
        neuron: Any = None,
        delay_cap: int = 63,
        delay_sharing: str = "none",
        learn_delays: bool = False,
    ) -> None:
        super().__init__(in_features, width)
        if pool < 1:
            raise ValueError(f"pool is a number of bins, 1 or more: found {pool}")
        if isinstance(spike_grad, str) and spike_grad not in snn.SURROGATES:
            raise ValueError(f"spike_grad is one of {', '.join(snn.SURROGATES)}: found {spike_grad!r}")
        if dormancy is not None and neuron is not None:
            raise ValueError("dormancy and neuron both say which neurons to use: give one of them")
        spike_grad = snn.SURROGATES[spike_grad]() if isinstance(spike_grad, str) else spike_grad
        if dormancy is not None:
            neuron = _dormant(
                dormancy, beta=beta, threshold=threshold, spike_grad=spike_grad, reset_mechanism=reset_mechanism
            )
        self.out_features, self.pool = width, pool
        self.net = snn.ResidualSNN(
            in_features,
            width,
            depth,
            max_delay=max_delay,
            min_delay=min_delay,
            shortcut=shortcut,
            norm=norm,
            beta=beta,
            threshold=threshold,
            spike_grad=spike_grad,
            reset_mechanism=reset_mechanism,
            dropout=dropout,
            readout=None,
            seed=seed,
            neuron=neuron,
            delay_cap=delay_cap,
            delay_sharing=delay_sharing,
            learn_delays=learn_delays,
        )
        self.dropout = snn.Dropout(dropout)

    @classmethod
    def count(cls, in_features: int, width: int, **options: Any) -> int:
        """Parameters that a core of this width would have, from three tiny ones.

        Delays are drawn on the processor, so that the same seed is the same network everywhere, and cannot be made
        without memory. But every matrix has the width once or twice: the count is a parabola, and three points give it.
        """
        with torch.random.fork_rng(devices=[]):
            p1, p2, p3 = (sum(p.numel() for p in cls(in_features, w, **options).parameters()) for w in (1, 2, 3))
        # Newton's forward differences from width 1.
        first, second = p2 - p1, p3 - 2 * p2 + p1
        return p1 + (width - 1) * first + (width - 1) * (width - 2) // 2 * second

    def output_lengths(self, lengths: torch.Tensor) -> torch.Tensor:
        """``floor(lengths / pool)``."""
        return lengths // self.pool

    def forward(
        self, x: torch.Tensor, lengths: torch.Tensor, state: Any = None
    ) -> tuple[torch.Tensor, torch.Tensor, Any]:
        """``x (T, B, in_features)`` to spikes, or their averages, ``(T // pool, B, width)``.

        The state is the network's own, and the bins that have not filled a pool yet.
        """
        inner, waiting = state if state is not None else (None, None)
        spikes, inner = self.net(x, inner, lengths)
        spikes = self.dropout(spikes)
        if self.pool == 1:
            return spikes, lengths, (inner, None)
        if waiting is not None:
            spikes, lengths = torch.cat([waiting, spikes]), lengths + waiting.shape[0]
        frames = spikes.shape[0] // self.pool
        waiting = spikes[frames * self.pool :]
        pooled = spikes[: frames * self.pool].reshape(frames, self.pool, *spikes.shape[1:]).mean(1)
        return pooled, self.output_lengths(lengths), (inner, waiting)


def _dormant(dormancy: Mapping[str, Any], **shared: Any) -> Callable[[], snn.DormantLIF]:
    known = set(signature(snn.DormantLIF).parameters) - set(shared)
    if unknown := sorted(set(dormancy) - known):
        raise ValueError(f"dormancy knows {', '.join(sorted(known))}: found {', '.join(map(repr, unknown))}")
    return lambda: snn.DormantLIF(**dormancy, **shared)
