"""``ranvier bench train``: one training step of the residual spiking network beside a GRU of equal size."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from decoders import PhonemeDecoder, ctc_loss, parse_budget
from neuro import Batch
from scripts.benches.activity import set_rate
from scripts.benches.timing import Measured, Row, add_common_arguments, finish, prepare, rows_of, side_by_side, watched
from snn import FixedDelayLinear, SpikeRecorder

HELP = """\
Times a training step (forward, CTC loss, backward, AdamW) of the residual spiking network, of the same network without
delays but with plain linear layers in their place, and of a GRU with the same number of core parameters, at one thread
and at more. The spiking networks fire at 10 % and at the rate that they start with.
"""

CHANNELS, STEPS, BATCH, LABELS = 256, 300, 16, 30


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``ranvier bench train``."""
    add_common_arguments(parser, rounds=10)
    parser.add_argument("--budget", default="500k", help="core parameters (default: %(default)s)")


def run(args: argparse.Namespace) -> int:
    """Check, time, print; 0 when every promise held."""
    prepare(args)
    parse_budget(args.budget)
    rows: list[Row] = []
    notes: list[str] = []
    thread_counts = [args.threads] if args.threads else sorted({1, torch.get_num_threads()})
    batch = random_batch().to(args.device)
    for rate in (0.1, None):
        steps: dict[str, Callable[[], Any]] = {}
        for name in ("residual_snn", "linear", "gru"):
            decoder = contestant(name, args.budget).to(args.device)
            if name != "gru":
                notes.append(_activity(name, decoder, batch, rate))
            steps[name] = training_step(decoder, batch)
        results: dict[str, Measured] = {}
        for threads in thread_counts:
            torch.set_num_threads(threads)
            with watched(notes):
                found = side_by_side(steps, args.rounds, device=args.device)
            for name, result in found.items():
                if name not in results or result.median < results[name].median:
                    results[name] = result
            case = f"training step, {args.budget} core, T={STEPS} B={BATCH}, {_rate_name(rate)}, {threads} threads"
            rows += rows_of(case, {TITLES[name]: _named(r, TITLES[name]) for name, r in found.items()}, OURS)
        best = {TITLES[name]: _named(result, TITLES[name]) for name, result in results.items()}
        case = f"training step, {args.budget} core, T={STEPS} B={BATCH}, {_rate_name(rate)}, each at its best threads"
        rows += rows_of(case, best, OURS, {TITLES["gru"]: 1.3} if rate else {})
    return finish(args, "bench train", rows, notes)


OURS = "residual SNN, delays 1..16"
TITLES = {"residual_snn": OURS, "linear": "the same with nn.Linear", "gru": "GRU, 3 layers"}


def _rate_name(rate: float | None) -> str:
    return "the activity it starts with" if rate is None else f"{rate:.0%} spikes"


def _named(result: Measured, name: str) -> Measured:
    return replace(result, name=name)


def contestant(name: str, budget: str) -> PhonemeDecoder:
    """A decoder with the core of that name, one frame a bin."""
    torch.manual_seed(0)
    if name == "gru":
        return PhonemeDecoder(CHANNELS, core="gru", budget=budget, core_options={"depth": 3})
    decoder = PhonemeDecoder(CHANNELS, core="residual_snn", budget=budget, core_options={"depth": 4, "max_delay": 16})
    if name == "linear":
        for module in list(decoder.modules()):
            for child_name, child in list(module.named_children()):
                if isinstance(child, FixedDelayLinear):
                    setattr(module, child_name, PlainLinear(child))
    return decoder


class PlainLinear(nn.Linear):
    """`nn.Linear` with the face of a delayed layer."""

    def __init__(self, layer: FixedDelayLinear) -> None:
        super().__init__(layer.in_features, layer.out_features, bias=layer.bias is not None)
        self.min_delay = self.max_delay = 0
        with torch.no_grad():
            self.weight.copy_(layer.weight)

    def forward(self, x: torch.Tensor, state: Any = None) -> Any:
        """`x` (T, B, I) to (T, B, O), and no state."""
        return super().forward(x), x[:0]


def random_batch() -> Batch:
    """Spikes as features, labels that CTC can align."""
    features = (torch.rand(STEPS, BATCH, CHANNELS) < 0.1).float()
    return Batch(
        features=features,
        lengths=torch.full((BATCH,), STEPS),
        phonemes=torch.randint(1, 41, (BATCH, LABELS)),
        phoneme_lengths=torch.full((BATCH,), LABELS),
        days=torch.zeros(BATCH, dtype=torch.int64),
        keys=[f"bench/train/{b}" for b in range(BATCH)],
        sentences=[None] * BATCH,
    )


def _activity(name: str, decoder: PhonemeDecoder, batch: Batch, rate: float | None) -> str:
    """Set the rate where one is wished; a note that says what it is."""
    net: Any = decoder.core.net
    if rate is not None:
        reached = set_rate(net, batch.features, rate)
    else:
        with torch.no_grad(), SpikeRecorder(net.train()) as recorder:
            net(batch.features)
        reached = float(recorder.mean_rate())
    return f"{TITLES[name]}: {reached:.1%} of its neurons fire in a bin ({_rate_name(rate)})"


def training_step(decoder: PhonemeDecoder, batch: Batch) -> Callable[[], torch.Tensor]:
    """Forward, loss, backward and update; the rate of learning is so small that nothing changes while it is timed."""
    decoder.train()
    optimizer = torch.optim.AdamW(decoder.parameters(), lr=1e-9)

    def step() -> torch.Tensor:
        optimizer.zero_grad()
        logits, lengths = decoder(batch)
        loss = ctc_loss(logits, lengths, batch)
        loss.backward()
        optimizer.step()
        return loss

    return step
