"""The page of `ranvier study delays`: table, differences, plot."""

from __future__ import annotations

import argparse
import datetime
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from neuro import DataError
from neuro.phonemes import SYMBOLS
from scripts.studies.delays import Arm
from scripts.studies.runs import Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def write_page(args: argparse.Namespace, arms: Sequence[Arm], results: Mapping[str, Result]) -> Path:
    """Write delays.md (delays-BUDGET.md at other budgets than 500k) and its plot; an older page is replaced whole."""
    from scripts.plots.style import save

    args.out.mkdir(parents=True, exist_ok=True)
    first = next(iter(results.values())).summary
    page = args.out / ("delays.md" if args.budget == "500k" else f"delays-{args.budget}.md")
    save(draw(args, arms, results, first["source"]), page.with_suffix(".png"))
    partial = page.with_suffix(".md.partial")
    partial.write_text("\n".join(page_lines(args, arms, results, page.with_suffix(".png").name)) + "\n")
    partial.replace(page)
    return page


def page_lines(args: argparse.Namespace, arms: Sequence[Arm], results: Mapping[str, Result], plot: str) -> list[str]:
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
        "| decoder | core parameters | PER % (95 % interval), each seed | mean | spikes a neuron, bin "
        "| entropy at boundaries, nats | without blank | train, min |",
        "| --- | ---: | --- | ---: | ---: | ---: | ---: | ---: |",
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
            f"| {arm.title} | {core:,} | {each} | {100 * sum(pers) / len(pers):.1f} | {rate} "
            f"| {_mean(of_arm, 'entropy_contrast_nats')} | {_mean(of_arm, 'entropy_contrast_without_blank_nats')} "
            f"| {mean_minutes:.0f} |"
        )
    lines += [f"| {name.replace('_', ' ')} | | {100 * value:.1f} | | | | | |" for name, value in chance.items()]
    lines += ["", *difference_lines(args, arms, results), ""]
    lines += [
        "Entropy at boundaries: mean over the frames within 2 bins of an aligned phoneme boundary, minus that of the "
        "frames 4 to 10 bins away; of the whole softmax, and of the phonemes alone.",
        "",
        f"![PER of each decoder]({plot})",
    ]
    return lines


def _mean(results: Sequence[Result], name: str) -> str:
    """Mean of a figure of the boundary analysis, signed; a dash where it could not be made."""
    values = [(result.summary.get("boundaries") or {}).get(name) for result in results]
    known = [value for value in values if value is not None]
    return f"{sum(known) / len(known):+.3f}" if known else "-"


def difference_lines(args: argparse.Namespace, arms: Sequence[Arm], results: Mapping[str, Result]) -> list[str]:
    """Paired differences of the longest delays from every other arm, one line each."""
    from decoders.metrics import bootstrap_difference

    spiking = [arm for arm in arms if arm.kind == "delays"]
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
    from scripts.plots.style import COLOURS, GREY, new_figure, tidy

    figure = new_figure(7.5, 4.2, f"Phoneme error rate at {args.budget} core parameters", source)
    axes = figure.subplots()
    rates = {arm.name: [100 * results[run.name].summary["per"] for run in arm.runs(args.seeds)] for arm in arms}
    spiking = [(arm.max_delay or 0, rates[arm.name]) for arm in arms if arm.kind == "delays"]
    delays = [delay for delay, _ in spiking]
    for delay, of_seeds in spiking:
        axes.plot([delay] * len(args.seeds), of_seeds, "o", color=COLOURS[0], markersize=4, alpha=0.6)
    means = [sum(of_seeds) / len(args.seeds) for _, of_seeds in spiking]
    axes.plot(delays, means, color=COLOURS[0], label="spiking (mean over seeds; dots: each seed)")
    markers = iter("svD^")
    for arm in (arm for arm in arms if arm.kind == "control"):
        mean = sum(rates[arm.name]) / len(args.seeds)
        axes.plot(arm.max_delay or 0, mean, next(markers), color=GREY, markersize=5, label=arm.title.split(", ", 1)[1])
    for colour, arm in zip(COLOURS[1:], (arm for arm in arms if arm.kind == "baseline"), strict=False):
        mean = sum(rates[arm.name]) / len(args.seeds)
        axes.axhline(mean, color=colour, linestyle="--", linewidth=1.2, label=f"{arm.title} (mean over seeds)")
    axes.set_xscale("log", base=2)
    axes.set_xticks(delays, [str(delay) for delay in delays])
    axes.set_ylim(bottom=0)
    tidy(axes, x="longest delay (bins of 20 ms)", y="phoneme error rate (%)")
    axes.legend(frameon=False, fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


def _given() -> list[str]:
    """The study's arguments as the user wrote them."""
    words = sys.argv[1:]
    return words[words.index("delays") + 1 :] if "delays" in words else []
