"""The page of `ranvier study delays`: table, differences, plot."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from neuro import DataError
from scripts.studies.delays import Arm, arms_of
from scripts.studies.records import Record

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Rows = Sequence[tuple[Arm, dict[int, Record]]]
"""Each decoder with its records by seed; only those that have one."""


def page_path(args: argparse.Namespace) -> Path:
    """Where the page goes: delays.md, or delays-BUDGET.md at other budgets than 500k."""
    return args.out / ("delays.md" if args.budget == "500k" else f"delays-{args.budget}.md")


def write_page(args: argparse.Namespace, records: Mapping[str, Record]) -> Path:
    """Write the page and its plot from the records of the runs that are finished; an older page is replaced whole.

    Raises
    ------
    DataError
        If no run is finished, or they were not all scored on the same recording.
    """
    from scripts.plots.style import save

    page = page_path(args)
    if not records:
        raise DataError("no run of this study is finished", file=page.with_suffix(""))
    if len({str(record.made_from["data"]) for record in records.values()}) > 1:
        raise DataError("the runs were not all scored on the same recording", file=page.with_suffix(""))
    args.out.mkdir(parents=True, exist_ok=True)
    rows = [(arm, found) for arm in arms_of(args) if (found := of_seeds(arm, args.seeds, records))]
    save(draw(args, rows), page.with_suffix(".png"))
    partial = page.with_suffix(".md.partial")
    partial.write_text("\n".join(page_lines(args, rows, page.with_suffix(".png").name)) + "\n")
    partial.replace(page)
    return page


def of_seeds(arm: Arm, seeds: Sequence[int], records: Mapping[str, Record]) -> dict[int, Record]:
    """The arm's records by seed, of those that are finished."""
    names = ((seed, run.name) for seed in seeds for run in arm.runs([seed]))
    return {seed: records[name] for seed, name in names if name in records}


def page_lines(args: argparse.Namespace, rows: Rows, plot: str) -> list[str]:
    """The page as Markdown."""
    records = [record for _, found in rows for record in found.values()]
    summary, recipe = records[0].summary, records[0].made_from["recipe"]
    minutes = sum(record.training_seconds for record in records) / 60
    wanted = len(arms_of(args)) * len(args.seeds)
    chance = summary["chance"] or {}
    lines = [
        "# Fixed delays at equal core parameters",
        "",
        f"Data: {summary['source']}, {summary['form']} form, {summary['split']} split "
        f"({summary['trials']} sentences, {summary['phonemes']} phonemes). "
        f"PER: greedy CTC decoding, no language model, last weights (nothing is chosen on this split).",
        "",
        f"Command: `{shlex.join(['ranvier', 'study', 'delays', *_given()])}`. "
        f"Scored {min(r.date for r in records)} to {max(r.date for r in records)}; "
        f"seeds {', '.join(map(str, args.seeds))}; {recipe['trainer']['max_steps']} updates of "
        f"{recipe['data']['batch_size']} trials; one thread a run; {minutes:.0f} minutes of training.",
        "",
    ]
    if len(records) < wanted:
        lines += [f"Not finished yet: {len(records)} of {wanted} runs. The same command goes on.", ""]
    lines += [
        "| decoder | core parameters | PER % (95 % interval), each seed | mean | spikes a neuron, bin "
        "| entropy at boundaries, nats | without blank | train, min |",
        "| --- | ---: | --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for arm, found in rows:
        of_arm = list(found.values())
        pers = [record.summary["per"] for record in of_arm]
        each = "; ".join(
            f"{100 * r['per']:.1f} ({100 * r['per_low']:.1f} to {100 * r['per_high']:.1f})"
            for r in (record.summary for record in of_arm)
        )
        rates = [record.summary["spike_rate"] for record in of_arm]
        rate = "-" if rates[0] is None else f"{sum(rates) / len(rates):.3f}"
        mean_minutes = sum(record.training_seconds for record in of_arm) / len(of_arm) / 60
        core = of_arm[0].summary["parameters"]["core"]
        lines.append(
            f"| {arm.title} | {core:,} | {each} | {100 * sum(pers) / len(pers):.1f} | {rate} "
            f"| {_mean(of_arm, 'entropy_contrast_nats')} | {_mean(of_arm, 'entropy_contrast_without_blank_nats')} "
            f"| {mean_minutes:.0f} |"
        )
    lines += [f"| {name.replace('_', ' ')} | | {100 * value:.1f} | | | | | |" for name, value in chance.items()]
    lines += ["", *difference_lines(rows), ""]
    lines += [
        "Entropy at boundaries: mean over the frames within 2 bins of an aligned phoneme boundary, minus that of the "
        "frames 4 to 10 bins away; of the whole softmax, and of the phonemes alone.",
        "",
        f"![PER of each decoder]({plot})",
    ]
    return lines


def _mean(records: Sequence[Record], name: str) -> str:
    """Mean of a figure of the boundary analysis, signed; a dash where it could not be made."""
    values = [(record.summary.get("boundaries") or {}).get(name) for record in records]
    known = [value for value in values if value is not None]
    return f"{sum(known) / len(known):+.3f}" if known else "-"


def difference_lines(rows: Rows) -> list[str]:
    """Paired differences of the longest delays from every other arm, one line each."""
    from decoders.metrics import bootstrap_difference

    spiking = [(arm, found) for arm, found in rows if arm.kind == "delays"]
    if not spiking:
        return []
    longest, its_records = max(spiking, key=lambda row: row[0].max_delay or 0)
    lines = [f'PER of "{longest.title}" minus that of the others, in points, paired over sentences:', ""]
    for other, found in rows:
        parts = []
        for seed in sorted({*its_records} & {*found}):
            interval = bootstrap_difference(*paired(its_records[seed], found[seed]))
            parts.append(f"{100 * interval.value:+.1f} ({100 * interval.low:+.1f} to {100 * interval.high:+.1f})")
        if parts and other is not longest:
            lines.append(f"- {other.title}: {'; '.join(parts)}")
    return lines


def paired(a: Record, b: Record) -> tuple[list[int], list[int], list[int]]:
    """Edits of both and reference lengths, of the trials in the same order.

    Raises
    ------
    DataError
        If the two were not scored on the same trials.
    """
    if {key: length for key, (_, length) in a.trials.items()} != {key: length for key, (_, length) in b.trials.items()}:
        raise DataError("two runs of the study were scored on different trials, so they cannot be compared")
    keys = sorted(a.trials)
    return [a.trials[key][0] for key in keys], [b.trials[key][0] for key in keys], [a.trials[key][1] for key in keys]


def draw(args: argparse.Namespace, rows: Rows) -> Figure:
    """PER of each seed and the arm's mean, spiking networks against their longest delay, baselines as lines."""
    from scripts.plots.style import COLOURS, GREY, new_figure, tidy

    source = next(iter(rows[0][1].values())).summary["source"]
    figure = new_figure(7.5, 4.2, f"Phoneme error rate at {args.budget} core parameters", source)
    axes = figure.subplots()
    rates = {arm.name: [100 * record.summary["per"] for record in found.values()] for arm, found in rows}
    mean = {name: sum(of_seeds) / len(of_seeds) for name, of_seeds in rates.items()}
    arms = [arm for arm, _ in rows]
    spiking = sorted((arm.max_delay or 0, arm.name) for arm in arms if arm.kind == "delays")
    delays = [delay for delay, _ in spiking]
    for delay, name in spiking:
        axes.plot([delay] * len(rates[name]), rates[name], "o", color=COLOURS[0], markersize=4, alpha=0.6)
    means = [mean[name] for _, name in spiking]
    axes.plot(delays, means, color=COLOURS[0], label="spiking (mean over seeds; dots: each seed)")
    markers = iter("svD^")
    for arm in (arm for arm in arms if arm.kind == "control"):
        label = arm.title.split(", ", 1)[1]
        axes.plot(arm.max_delay or 0, mean[arm.name], next(markers), color=GREY, markersize=5, label=label)
    for colour, arm in zip(COLOURS[1:], (arm for arm in arms if arm.kind == "baseline"), strict=False):
        axes.axhline(
            mean[arm.name], color=colour, linestyle="--", linewidth=1.2, label=f"{arm.title} (mean over seeds)"
        )
    for arm in (arm for arm in arms if arm.kind == "longer"):
        axes.axhline(mean[arm.name], color=GREY, linestyle=":", linewidth=1.2, label=arm.title)
    axes.set_xscale("log", base=2)
    axes.set_xticks(delays, [str(delay) for delay in delays])
    axes.set_ylim(bottom=0)
    tidy(axes, x="longest delay (bins of 20 ms)", y="phoneme error rate (%)")
    axes.legend(frameon=False, fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


def _given() -> list[str]:
    """The study's arguments as the user wrote them, without the one that only writes the page."""
    words = sys.argv[1:]
    own = words[words.index("delays") + 1 :] if "delays" in words else []
    return [word for word in own if word != "--only-page"]
