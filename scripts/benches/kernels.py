"""``ranvier bench kernels``: the delayed layer and the neuron beside what does the same work elsewhere."""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from scripts.benches import peers
from scripts.benches.timing import (
    Limit,
    Row,
    add_common_arguments,
    finish,
    machine,
    peak_mib,
    prepare,
    rows_of,
    side_by_side,
    watched,
)
from snn.functional import fixed_delay_linear, lif

HELP = """\
Times the delayed layer beside the convolution with the same delays and `nn.Linear` without any, and the neuron beside
snnTorch, SpikingJelly, norse and sinabs where they are installed. Results are compared before anything is timed. Ratios
are medians over medians of the same run; the fastest calls are printed too, which a busy machine disturbs least.
"""

STEPS, BATCH, NEURONS, DELAY = 100, 16, 512, 32
LONG = 1000
ACTIVITIES = (0.02, 0.05, 0.1, 0.2, 0.5)
DELAYS = (8, 16, 32, 62)
LIF_SHAPE = (256, 32, 512)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``ranvier bench kernels``."""
    add_common_arguments(parser, rounds=15)
    parser.add_argument("--only", choices=sorted(SECTIONS), nargs="+", default=sorted(SECTIONS), help="(default: all)")


def run(args: argparse.Namespace) -> int:
    """Verify, time, print; 0 when every promise held."""
    prepare(args)
    rows: list[Row] = []
    notes: list[str | Limit] = []
    for name in args.only:
        with watched(notes):
            rows += SECTIONS[name](args, notes)
    if args.out is not None and any("forward," in row.case for row in rows):
        draw(rows, args.out.with_suffix(".png"))
    return finish(args, "bench kernels", rows, notes)


def spikes(activity: float, device: str, steps: int = STEPS) -> Tensor:
    """Binary input (T, B, N) as the neurons' kernels leave it in memory."""
    return (torch.rand(NEURONS, steps, BATCH, device=device) < activity).float().permute(1, 2, 0)


def layer(delay: int, device: str) -> tuple[Tensor, Tensor]:
    """Weights and delays (N, N)."""
    weight = torch.randn(NEURONS, NEURONS, device=device) / NEURONS**0.5
    return weight, torch.randint(1, delay + 1, (NEURONS, NEURONS), dtype=torch.uint8).to(device)


def _delayed(x: Tensor, weight: Tensor, delay: Tensor, longest: int, backend: str | None = None) -> Tensor:
    return fixed_delay_linear(x, weight, delay, max_delay=longest, backend=backend)[0]


class Convolution:
    """The same layer as a convolution `delay + 1` long, its kernel made once: the way others do it (DCLS)."""

    def __init__(self, weight: Tensor, delay: Tensor, longest: int) -> None:
        self.longest = longest
        tap = (longest - delay.long()).unsqueeze(-1)
        kernel = weight.new_zeros(*weight.shape, longest + 1).scatter_(2, tap, weight.unsqueeze(-1))
        self.kernel = nn.Parameter(kernel)

    def __call__(self, x: Tensor) -> Tensor:
        """`x` (T, B, N) to (T, B, N)."""
        return F.conv1d(F.pad(x.permute(1, 2, 0), (self.longest, 0)), self.kernel).permute(2, 0, 1)


def forward(args: argparse.Namespace, notes: list[str | Limit]) -> list[Row]:
    """Forward passes over activity."""
    rows = []
    weight, delay = layer(DELAY, args.device)
    convolution, linear = Convolution(weight, delay, DELAY), nn.Linear(NEURONS, NEURONS, bias=False).to(args.device)
    for activity in ACTIVITIES:
        x = spikes(activity, args.device)
        delayed = partial(_delayed, x, weight, delay, DELAY)
        calls: dict[str, Callable[[], Tensor]] = {
            "ours": delayed,
            **{f"ours, {name}": partial(delayed, backend=name) for name in _ways(args.device)},
            "convolution": partial(convolution, x),
            "nn.Linear, no delays": partial(linear, x),
        }
        promised = {0.1: {"convolution": 8.0}, 0.02: {"convolution": 25.0, "nn.Linear, no delays": 1 / 1.15}}
        with torch.no_grad():
            want = calls["convolution"]()
            for name in list(calls)[:-2]:
                torch.testing.assert_close(calls[name](), want, rtol=0, atol=1e-4)
            results = side_by_side(calls, args.rounds, device=args.device)
        case = f"delayed layer, forward, T={STEPS} B={BATCH} N={NEURONS} D={DELAY}, {activity:.0%} spikes"
        rows += rows_of(case, results, "ours", promised.get(activity, {}))
    return rows


def _ways(device: str) -> tuple[str, ...]:
    return ("numba_shifted", "numba_events") if device == "cpu" else ()


def training(args: argparse.Namespace, notes: list[str | Limit]) -> list[Row]:
    """Forward and backward at two activities."""
    rows = []
    weight, delay = layer(DELAY, args.device)
    convolution, linear = Convolution(weight, delay, DELAY), nn.Linear(NEURONS, NEURONS, bias=False).to(args.device)
    weight.requires_grad_()
    upstream = torch.randn(NEURONS, STEPS, BATCH, device=args.device).permute(1, 2, 0)
    for activity in (0.02, 0.1):
        x = spikes(activity, args.device).requires_grad_()

        def both(forward: Callable[[], Tensor], *leaves: Tensor) -> tuple[Tensor, ...]:
            return torch.autograd.grad(forward(), leaves, upstream)

        contestants: dict[str, tuple[Callable[[], Tensor], Tensor]] = {
            "ours": (partial(_delayed, x, weight, delay, DELAY), weight),
            "convolution": (partial(convolution, x), convolution.kernel),
            "nn.Linear, no delays": (partial(linear, x), linear.weight),
        }
        calls = {name: partial(both, forward, x, leaf) for name, (forward, leaf) in contestants.items()}
        mine, theirs = calls["ours"](), calls["convolution"]()
        torch.testing.assert_close(mine[0], theirs[0], rtol=0, atol=1e-3)
        taken = theirs[1].gather(2, (DELAY - delay.long()).unsqueeze(-1))[..., 0]
        torch.testing.assert_close(mine[1], taken, rtol=0, atol=1e-2)
        results = side_by_side(calls, args.rounds, device=args.device)
        case = f"delayed layer, forward and backward, T={STEPS} B={BATCH} N={NEURONS} D={DELAY}, {activity:.0%} spikes"
        rows += rows_of(case, results, "ours", {"convolution": 8.0} if activity == 0.1 else {})
    return rows


def delays(args: argparse.Namespace, notes: list[str | Limit]) -> list[Row]:
    """Time and memory over the longest delay; a row's ratio is its cost over the one of the shortest."""
    x = spikes(0.1, args.device)
    calls: dict[str, Callable[[], Tensor]] = {}
    for longest in DELAYS:
        weight, delay = layer(longest, args.device)
        calls[f"D={longest}"] = partial(_delayed, x, weight, delay, longest)
        with torch.no_grad():
            want = Convolution(weight, delay, longest)(x)
            torch.testing.assert_close(calls[f"D={longest}"](), want, rtol=0, atol=1e-4)
    with torch.no_grad():
        results = side_by_side(calls, args.rounds, device=args.device)
    case = f"delayed layer, forward, over the longest delay, T={STEPS} B={BATCH} N={NEURONS}, 10% spikes (x: over D=8)"
    rows = rows_of(case, results, "D=8")
    first, last = results["D=8"], results[f"D={DELAYS[-1]}"]
    over = f"D={DELAYS[-1]} over D=8"
    notes.append(Limit(f"{over}: time", last.median / first.median, 1.25))
    memory = [mib for mib in (_peak_of_long(longest, args.device) for longest in (8, DELAYS[-1])) if mib]
    if len(memory) == 2:
        notes.append(Limit(f"{over}: peak memory at T={LONG}", memory[1] / memory[0], 1.1))
    return rows


def _peak_of_long(longest: int, device: str) -> float | None:
    """Peak memory of a call on many steps: the system hands out memory in pieces of megabytes, which a short one takes
    two or three of."""
    weight, delay = layer(longest, device)
    x = spikes(0.1, device, LONG)
    with torch.no_grad():
        call = partial(_delayed, x, weight, delay, longest)
        call()
        found = [mib for mib in (peak_mib(call, device) for _ in range(5)) if mib]
    return statistics.median(found) if found else None


def neuron(args: argparse.Namespace, notes: list[str | Limit]) -> list[Row]:
    """Forward and backward of the neuron beside the peers."""
    current = (1.2 * torch.randn(LIF_SHAPE, device=args.device)).requires_grad_()
    found, missing = peers.installed()
    notes += missing

    def ours(x: Tensor) -> Tensor:
        return lif(x, beta=peers.BETA, threshold=peers.THRESHOLD)[0]

    def reference(x: Tensor) -> Tensor:
        return lif(x, beta=peers.BETA, threshold=peers.THRESHOLD, backend="reference")[0]

    contestants: dict[str, Callable[[Tensor], Tensor]] = {"ours": ours, "plain torch loop": reference}
    with torch.no_grad():
        want = reference(current)
        assert torch.equal(ours(current), want)
    for name, run_peer in found.items():
        try:
            different = float((run_peer(current).detach() != want).float().mean())
        except Exception as error:  # another library's fault must not end the bench
            notes.append(f"{name} is left out: {type(error).__name__}: {error}")
            continue
        # Another order of operations may round a membrane to the other side of the threshold.
        if different > 1e-4:
            notes.append(f"{name} is left out: {different:.2%} of its spikes are not those of the same neuron")
            continue
        contestants[name] = run_peer
    upstream = torch.randn(LIF_SHAPE, device=args.device)

    def both(call: Callable[[Tensor], Tensor]) -> tuple[Tensor, ...]:
        return torch.autograd.grad(call(current), current, upstream)

    calls = {name: partial(both, call) for name, call in contestants.items()}
    results = side_by_side(calls, args.rounds, device=args.device)
    steps, batch, width = LIF_SHAPE
    promised = {"snnTorch loop": 15.0, "SpikingJelly multi-step": 3.0}
    case = f"LIF, forward and backward, T={steps} B={batch} N={width}"
    return rows_of(case, results, "ours", promised)


SECTIONS: dict[str, Callable[[argparse.Namespace, list[str | Limit]], list[Row]]] = {
    "forward": forward,
    "training": training,
    "delays": delays,
    "lif": neuron,
}


def draw(rows: list[Row], file: Path) -> None:
    """Cost against activity and against the longest delay."""
    from scripts.plots.style import COLOURS, new_figure, save, tidy

    figure = new_figure(9, 3.6, "Cost of the delayed layer, forward", f"median of a call, {machine()['processor']}")
    left, right = figure.subplots(1, 2)
    by_name: dict[str, list[tuple[float, float]]] = {}
    for row in (r for r in rows if "D=32," in r.case and "forward," in r.case):
        activity = float(row.case.rsplit(", ", 1)[1].split("%")[0])
        by_name.setdefault(row.contestant.name, []).append((activity, 1e3 * row.contestant.median))
    for colour, (name, points) in zip(COLOURS, by_name.items(), strict=False):
        left.plot(*zip(*sorted(points), strict=True), "o-", color=colour, markersize=3, label=name)
    left.set_xscale("log")
    left.set_yscale("log")
    shown = sorted({activity for points in by_name.values() for activity, _ in points})
    left.set_xticks(shown, [f"{activity:g}" for activity in shown])
    left.set_xticks([], minor=True)
    tidy(left, x="non-zero inputs (%)", y="milliseconds", title="against activity")
    left.legend(frameon=False, fontsize=7)
    points = [(int(r.contestant.name[2:]), 1e3 * r.contestant.median) for r in rows if "longest delay" in r.case]
    if points:
        right.plot(*zip(*sorted(points), strict=True), "o-", color=COLOURS[0], markersize=3)
    right.set_ylim(bottom=0)
    tidy(right, x="longest delay (bins)", y="milliseconds", title="against the longest delay")
    save(figure, file)
