"""``ranvier bench stream``: one bin at a time, event by event, beside the step of a GRU of equal size."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import torch

from decoders import build_core, parse_budget
from neuro import DataError
from scripts.benches.activity import set_rate
from scripts.benches.timing import Limit, Row, add_common_arguments, finish, measured, prepare, watched
from snn import StreamingSNN

HELP = """\
Times one bin (20 ms of signal) of the residual spiking network, which streams event by event, and of a GRU with the
same number of core parameters, batch 1. Streaming is compared with the whole sequence first. The 99th percentile is
what a live decoder is held to.
"""

CHANNELS = 256


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``ranvier bench stream``."""
    add_common_arguments(parser, rounds=1)
    parser.add_argument("--budget", default="5M", help="core parameters (default: %(default)s)")
    parser.add_argument("--bins", type=int, default=1000, help="timed bins (default: %(default)s)")
    parser.add_argument("--rate", type=float, default=0.1, help="spikes a neuron and bin (default: %(default)s)")
    parser.set_defaults(threads=1)


def run(args: argparse.Namespace) -> int:
    """Verify, time, print; 0 when every promise held."""
    prepare(args)
    parse_budget(args.budget)
    if args.device != "cpu":
        raise DataError("streaming runs on the CPU", field="--device", found=args.device, expected="cpu")
    if not 0 < args.rate < 1 or args.bins < 100:
        raise DataError("needs a rate between 0 and 1 and at least 100 bins", field="--rate, --bins")
    rows: list[Row] = []
    notes: list[str | Limit] = []
    calls, notes_of = contestants(args)
    notes += notes_of
    with watched(notes):
        seconds: dict[str, list[float]] = {name: [] for name in calls}
        # Block by block in turn: each keeps its weights in the cache as a live decoder would, and both meet the same
        # machine.
        x = (torch.rand(args.bins, 1, CHANNELS) < args.rate).float()
        for first in range(0, args.bins, 50):
            for name, step in calls.items():
                for frame in x[first : first + 50]:
                    start = time.perf_counter()
                    step(frame)
                    seconds[name].append(time.perf_counter() - start)
    results = {name: measured(name, values[10:]) for name, values in seconds.items()}
    mine, gru = results[OURS], results[GRU]
    case = f"one bin, {args.budget} core, batch 1, {args.rate:.0%} spikes, {torch.get_num_threads()} thread"
    rows.append(Row(case, mine, 1.0, 1.0))
    rows.append(Row(case, gru, gru.median / mine.median, gru.best / mine.best, 2.0))
    for name, values in seconds.items():
        late = sorted(values[10:])
        p99 = 1e3 * late[int(0.99 * len(late))]
        what = f"{name}: slowest {1e3 * late[-1]:.2f} ms, 99th percentile"
        notes.append(Limit(what, p99, 1.5, " ms") if name == OURS else f"{what} {p99:.2f} ms")
    return finish(args, "bench stream", rows, notes)


OURS, GRU = "residual SNN, streaming", "GRU step"


def contestants(args: argparse.Namespace) -> tuple[dict[str, Callable[[torch.Tensor], Any]], list[str]]:
    """One step of each, after streaming was found equal to the whole sequence, and notes on their size and activity."""
    core: Any = build_core("residual_snn", CHANNELS, budget=args.budget, depth=4, max_delay=16)
    x = (torch.rand(200, 2, CHANNELS) < args.rate).float()
    reached = set_rate(core.net, x, args.rate)
    stream = StreamingSNN(core.net)
    state = stream.start()
    with torch.no_grad():
        want, _ = core.net(x[:, :1])
    got = torch.stack([stream.step(frame, state) for frame in x[:, :1]])
    # A membrane may be rounded to the other side of the threshold; what follows that spike may then differ too.
    equal = float((got == want).float().mean())
    if equal < 0.999:
        raise DataError("streaming does not equal the whole sequence", found=f"{equal:.2%} equal spikes")
    gru: Any = build_core("gru", CHANNELS, budget=args.budget, depth=3).eval()
    hidden: list[Any] = [None]

    @torch.no_grad()
    def gru_step(frame: torch.Tensor) -> torch.Tensor:
        y, hidden[0] = gru.gru(frame[None], hidden[0])
        return y

    ways = ", ".join(f"{row['mode']} at {row['activity']:.0%}" for row in stream.activity(state))
    sizes = ", ".join(
        f"{name} {sum(p.numel() for p in module.parameters()):,}" for name, module in (("SNN", core), ("GRU", gru))
    )
    notes = [
        f"core parameters: {sizes}; {reached:.1%} of the neurons fire in a bin; layers run by {ways}",
        f"{equal:.3%} of the streamed spikes equal those of the whole sequence",
    ]
    return {OURS: lambda frame: stream.step(frame, state), GRU: gru_step}, notes
