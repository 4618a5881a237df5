"""Do fixed delays lower the phoneme error rate at equal core parameters?"""

from __future__ import annotations

import argparse
import datetime
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neuro import DataError
from neuro.phonemes import SYMBOLS
from scripts.studies.runs import Result, Run, only_one, run_all

if TYPE_CHECKING:
    from matplotlib.figure import Figure

HELP = """\
Trains residual spiking networks that differ in their longest delay only, and a GRU, all with the same number of core
parameters, updates and batches, on a simulated participant (or on --data); scores the last weights of each on the
validation sentences; writes delays.md with table and plot, whatever comes out.

Stop it with Ctrl-C whenever you like: the same command goes on where it stopped.

examples:
  ranvier study delays
  ranvier study delays --max-delays 1 2 4 8 16 32 --seeds 1 2 3 --updates 10000
  ranvier study delays --data data/t12 --budget 2M
"""

SESSIONS, TRIALS = 8, 250
BASELINES = {
    "gru": "gru_500k",
    "lstm": "lstm_500k",
    "tcn": "tcn_500k",
    "mlp": "mlp_500k",
    "transformer": "transformer_500k",
}
"""Baseline -> the recipe that it starts from."""


@dataclass(frozen=True)
class Arm:
    """One decoder of the comparison, over all seeds.

    Attributes
    ----------
    name, title : str
        Part of the runs' folders, and the row's name.
    max_delay : int or None
        Longest delay in bins; None for a baseline.
    recipe : str
    changes : mapping
    """

    name: str
    title: str
    max_delay: int | None
    recipe: str
    changes: Mapping[str, Any]

    def runs(self, seeds: Sequence[int]) -> list[Run]:
        """The runs of this arm."""
        return [Run(f"{self.name}-seed{seed}", self.recipe, self.changes, seed) for seed in seeds]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``ranvier study delays``."""
    add = parser.add_argument
    add("--data", type=Path, help="recording to use (default: simulate a participant, form '24, seed 1)")
    add("--budget", default="500k", help="core parameters of every decoder (default: 500k)")
    add("--max-delays", type=int, nargs="+", default=[1, 16], help="longest delays in bins; 1 is none (default: 1 16)")
    add("--baselines", nargs="*", choices=sorted(BASELINES), default=["gru"], help="(default: gru)")
    add("--seeds", type=int, nargs="+", default=[1, 2], help="seeds of weights, delays and batches (default: 1 2)")
    add("--updates", type=int, default=2500, help="updates of every decoder (default: 2500)")
    add("--batch-size", type=int, default=16, help="trials an update (default: 16)")
    add("--workers", type=int, default=2, help="runs at a time, one thread each (default: 2)")
    add("--runs", type=Path, default=Path("runs/study-delays"), help="folder of the runs (default: runs/study-delays)")
    add("--out", type=Path, default=Path("docs/results"), help="folder of the page (default: docs/results)")


def run(args: argparse.Namespace) -> int:
    """Train what is missing, score it, write the page."""
    from rich.console import Console

    console = Console()
    for name in ("updates", "batch_size", "workers"):
        if getattr(args, name) < 1:
            raise DataError("needs to be at least 1", field="--" + name.replace("_", "-"), found=getattr(args, name))
    with only_one(args.runs):
        data = args.data or simulated(args.runs / "data")
        arms = arms_of(args)
        runs = [run for seed in args.seeds for arm in arms for run in arm.runs([seed])]
        results = run_all(
            runs, args.runs, data, workers=args.workers, report=lambda line: console.print(line, highlight=False)
        )
    page = write_page(args, arms, results)
    console.print(f"written: {page}", highlight=False)
    return 0


def arms_of(args: argparse.Namespace) -> list[Arm]:
    """The decoders to compare, with what each changes in its recipe."""
    # A run is validated on the way for its learning curve only: its last weights are scored.
    common = {
        "trainer": {"max_steps": args.updates, "val_check_interval": max(1, args.updates // 5)},
        "data": {"batch_size": args.batch_size, "sort_by_length": True},
        "checkpoint": {"every_minutes": 3},
    }
    arms = [
        Arm(
            f"snn-{args.budget}-d{delay}",
            f"spiking, delays 1..{delay}" if delay > 1 else "spiking, no delays",
            delay,
            "residual_snn_500k",
            {**common, "model": {"budget": args.budget, "core_options": {"max_delay": delay}}},
        )
        for delay in args.max_delays
    ]
    return arms + [
        Arm(f"{name}-{args.budget}", name.upper(), None, BASELINES[name], {**common, "model": {"budget": args.budget}})
        for name in args.baselines
    ]


def simulated(folder: Path) -> Path:
    """The simulated participant of this study, made at the first call.

    Raises
    ------
    DataError
        If it cannot be made.
    """
    from scripts.cli import call

    if not folder.exists():
        arguments = [
            str(folder),
            "--format",
            "b2t24",
            "--sessions",
            str(SESSIONS),
            "--trials",
            str(TRIALS),
            "--seed",
            "1",
        ]
        if code := call("simulate", arguments):
            raise DataError(f"`ranvier simulate` ended with exit code {code}, so the study stops here")
    return folder


def write_page(args: argparse.Namespace, arms: Sequence[Arm], results: Mapping[str, Result]) -> Path:
    """Write delays.md and its plot; the page replaces an older one whole."""
    from scripts.plots.style import save

    args.out.mkdir(parents=True, exist_ok=True)
    first = next(iter(results.values())).summary
    save(draw(args, arms, results, first["source"]), args.out / "delays.png")
    page = args.out / "delays.md"
    partial = page.with_suffix(".md.partial")
    partial.write_text("\n".join(page_lines(args, arms, results)) + "\n")
    partial.replace(page)
    return page


def page_lines(args: argparse.Namespace, arms: Sequence[Arm], results: Mapping[str, Result]) -> list[str]:
    """The page as Markdown."""
    any_summary = next(iter(results.values())).summary
    minutes = sum(result.training_seconds for result in results.values()) / 60
    chance = any_summary["chance"] or {}
    lines = [
        "# Fixed delays at equal core parameters",
        "",
        f"Data: {any_summary['source']}, {any_summary['form']} form, {any_summary['split']} split "
        f"({any_summary['trials']} sentences, {any_summary['phonemes']} phonemes). "
        f"PER: greedy CTC decoding, no language model, last weights (nothing is chosen on this split).",
        "",
        f"Command: `ranvier study delays {shlex.join(_given())}`".rstrip(" `") + "`. "
        f"{datetime.date.today().isoformat()}; seeds {', '.join(map(str, args.seeds))}; {args.updates} updates of "
        f"{args.batch_size} trials; one thread a run, {args.workers} at a time; {minutes:.0f} minutes of training.",
        "",
        "| decoder | core parameters | PER % (95 % interval), each seed | mean | spikes a neuron, bin | train, min |",
        "| --- | ---: | --- | ---: | ---: | ---: |",
    ]
    for arm in arms:
        of_arm = [results[run.name] for run in arm.runs(args.seeds)]
        pers = [result.summary["per"] for result in of_arm]
        each = "; ".join(
            f"{100 * r['per']:.1f} ({100 * r['per_low']:.1f} to {100 * r['per_high']:.1f})"
            for r in (result.summary for result in of_arm)
        )
        rates = [result.summary["spike_rate"] for result in of_arm]
        rate = "-" if rates[0] is None else f"{sum(rates) / len(rates):.3f}"
        mean_minutes = sum(result.training_seconds for result in of_arm) / len(of_arm) / 60
        core = of_arm[0].summary["parameters"]["core"]
        lines.append(
            f"| {arm.title} | {core:,} | {each} | {100 * sum(pers) / len(pers):.1f} | {rate} | {mean_minutes:.0f} |"
        )
    lines += [f"| {name.replace('_', ' ')} | | {100 * value:.1f} | | | |" for name, value in chance.items()]
    lines += ["", *difference_lines(args, arms, results), "", "![PER of each decoder](delays.png)"]
    return lines


def difference_lines(args: argparse.Namespace, arms: Sequence[Arm], results: Mapping[str, Result]) -> list[str]:
    """Paired differences of the longest delays from every other arm, one line each."""
    from decoders.metrics import bootstrap_difference

    spiking = [arm for arm in arms if arm.max_delay is not None]
    longest = max(spiking, key=lambda arm: arm.max_delay or 0)
    lines = [f'PER of "{longest.title}" minus that of the others, in points, paired over sentences:', ""]
    for other in arms:
        if other is longest:
            continue
        parts = []
        for mine, its in zip(longest.runs(args.seeds), other.runs(args.seeds), strict=True):
            refs, a, b = paired(results[mine.name], results[its.name])
            interval = bootstrap_difference(refs, a, b)
            parts.append(f"{100 * interval.value:+.1f} ({100 * interval.low:+.1f} to {100 * interval.high:+.1f})")
        lines.append(f"- {other.title}: {'; '.join(parts)}")
    return lines


def paired(a: Result, b: Result) -> tuple[list[list[int]], list[list[int]], list[list[int]]]:
    """References and both hypotheses as phoneme ids, of the trials in the same order.

    Raises
    ------
    DataError
        If the two were not scored on the same trials.
    """
    ids = {symbol: number for number, symbol in enumerate(SYMBOLS)}
    others = {key: hypothesis for key, _, hypothesis in b.trials}
    if {key for key, _, _ in a.trials} != set(others):
        raise DataError("two runs of the study were scored on different trials, so they cannot be compared")
    refs = [[ids[s] for s in reference] for _, reference, _ in a.trials]
    mine = [[ids[s] for s in hypothesis] for _, _, hypothesis in a.trials]
    return refs, mine, [[ids[s] for s in others[key]] for key, _, _ in a.trials]


def draw(args: argparse.Namespace, arms: Sequence[Arm], results: Mapping[str, Result], source: str) -> Figure:
    """PER of each seed and the arm's mean, spiking networks against their longest delay, baselines as lines."""
    from scripts.plots.style import COLOURS, new_figure, tidy

    figure = new_figure(6, 3.8, f"Phoneme error rate at {args.budget} core parameters", source)
    axes = figure.subplots()
    rates = {arm.name: [100 * results[run.name].summary["per"] for run in arm.runs(args.seeds)] for arm in arms}
    spiking = [(arm.max_delay, rates[arm.name]) for arm in arms if arm.max_delay is not None]
    delays = [delay for delay, _ in spiking]
    for delay, of_seeds in spiking:
        axes.plot([delay] * len(args.seeds), of_seeds, "o", color=COLOURS[0], markersize=4, alpha=0.6)
    means = [sum(of_seeds) / len(args.seeds) for _, of_seeds in spiking]
    axes.plot(delays, means, color=COLOURS[0], label="spiking (mean over seeds; dots: each seed)")
    for colour, arm in zip(COLOURS[1:], (arm for arm in arms if arm.max_delay is None), strict=False):
        mean = sum(rates[arm.name]) / len(args.seeds)
        axes.axhline(mean, color=colour, linestyle="--", linewidth=1.2, label=f"{arm.title} (mean over seeds)")
    axes.set_xscale("log", base=2)
    axes.set_xticks(delays, [str(delay) for delay in delays])
    axes.set_ylim(bottom=0)
    tidy(axes, x="longest delay (bins of 20 ms)", y="phoneme error rate (%)")
    axes.legend(frameon=False, fontsize=8)
    return figure


def _given() -> list[str]:
    """The study's arguments as the user wrote them."""
    words = sys.argv[1:]
    return words[words.index("delays") + 1 :] if "delays" in words else []
