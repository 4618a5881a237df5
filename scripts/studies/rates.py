"""Which peak learning rate does each decoder of the delay study train best at?"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from neuro import DataError
from scripts.output import only_one
from scripts.studies.delays import BASELINES, SPIKING
from scripts.studies.participant import simulated
from scripts.studies.records import Record, read_record
from scripts.studies.runs import Run, run_all

HELP = """\
Trains each decoder of `ranvier study delays` with each of a few peak learning rates, briefly and on another simulated
participant than the study's, so that nothing is chosen on the sentences it reports. Writes rates.md: the recipes take
the rate of each decoder from there, so that no decoder is compared at a rate that suits only another.

Stop it with Ctrl-C whenever you like: the same command goes on where it stopped.

examples:
  ranvier study rates
  ranvier study rates --decoders gru lstm --rates 1e-3 3e-3 9e-3 27e-3
"""

SPIKING_DELAYS = {"snn-d1": 1, "snn-d16": 16}
"""Spiking decoder -> its longest delay in bins."""

TUNING_PARTICIPANT = 2
"""Seed of the simulated participant; the delay study has 1."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``ranvier study rates``."""
    add = parser.add_argument
    decoders = [*SPIKING_DELAYS, *BASELINES]
    add("--decoders", nargs="+", choices=decoders, default=decoders, help="(default: all)")
    add("--rates", type=float, nargs="+", default=[1e-3, 3e-3, 9e-3], help="peak rates (default: 1e-3 3e-3 9e-3)")
    add("--budget", default="500k", help="core parameters of every decoder (default: 500k)")
    add("--updates", type=int, default=600, help="updates of every run (default: 600)")
    add("--batch-size", type=int, default=16, help="trials an update (default: 16)")
    add("--seed", type=int, default=1, help="seed of weights, delays and batches (default: 1)")
    add("--workers", type=int, default=2, help="runs at a time, one thread each (default: 2)")
    add("--data", type=Path, help="recording to use (default: simulate participant 2)")
    add("--runs", type=Path, default=Path("runs/study-rates"), help="folder of the runs (default: runs/study-rates)")
    add("--only-page", action="store_true", help="train nothing: write the page from the runs that are finished")
    add("--out", type=Path, default=Path("docs/results"), help="folder of the page (default: docs/results)")


def run(args: argparse.Namespace) -> int:
    """Train what is missing, score it, write the page."""
    from rich.console import Console

    console = Console()
    if min(args.rates) <= 0:
        raise DataError("needs to be above 0", field="--rates", found=min(args.rates))
    page = args.out / "rates.md"
    records = page.with_suffix("")
    runs = [run_of(args, decoder, rate) for decoder in args.decoders for rate in args.rates]
    if not args.only_page:
        with only_one(args.runs, "another process is at work on this study"):
            data = args.data or simulated(args.runs / "data", seed=TUNING_PARTICIPANT)
            run_all(
                runs, args.runs, data, records=records, workers=args.workers,
                report=lambda line: console.print(line, highlight=False),
            )  # fmt: skip
    write_page(page, args, {path.stem: read_record(path) for path in sorted(records.glob("*.json"))})
    console.print(f"written: {page}", highlight=False)
    return 0


def run_of(args: argparse.Namespace, decoder: str, rate: float) -> Run:
    """The training of one decoder at one rate; all else is as in the delay study."""
    model: dict[str, Any] = {"budget": args.budget, "lr": rate}
    if decoder in SPIKING_DELAYS:
        model["core_options"] = {"max_delay": SPIKING_DELAYS[decoder]}
    changes = {
        "model": model,
        "trainer": {"max_steps": args.updates, "val_check_interval": max(1, args.updates // 2)},
        "data": {"batch_size": args.batch_size, "sort_by_length": True},
        "checkpoint": {"every_minutes": 3},
    }
    return Run(f"{decoder}@{rate:g}", BASELINES.get(decoder, SPIKING), changes, args.seed)


def write_page(page: Path, args: argparse.Namespace, records: Mapping[str, Record | None]) -> None:
    """Write the table of every record there is, also of rates and decoders that this call did not name."""
    found: dict[str, dict[float, Record]] = {}
    for name, record in records.items():
        decoder, _, rate = name.partition("@")
        if record is not None:
            found.setdefault(decoder, {})[float(rate)] = record
    if not found:
        raise DataError("no run of this study is finished", file=page.with_suffix(""))
    partial = page.with_suffix(".md.partial")
    partial.write_text("\n".join(page_lines(args, found)) + "\n")
    partial.replace(page)


def page_lines(args: argparse.Namespace, found: Mapping[str, Mapping[float, Record]]) -> list[str]:
    """The page as Markdown: a row for each decoder, a column for each rate, the best one in bold."""
    records = [record for of_rate in found.values() for record in of_rate.values()]
    summary, recipe = records[0].summary, records[0].made_from["recipe"]
    rates = sorted({rate for of_rate in found.values() for rate in of_rate})
    minutes = sum(record.training_seconds for record in records) / 60
    lines = [
        "# Learning rates of the delay study's decoders",
        "",
        f"PER in % on the {summary['split']} split ({summary['trials']} sentences) of a second {summary['source']}, of "
        f"{recipe['model']['budget']} core parameters after {recipe['trainer']['max_steps']} updates of "
        f"{recipe['data']['batch_size']} trials, by the peak of the learning rate. One run each; greedy decoding, "
        "last weights. The delay study uses the first participant, so nothing is chosen on the sentences it reports.",
        "",
        f"Command: `{shlex.join(['ranvier', 'study', 'rates', *_given()])}`. "
        f"Scored {min(r.date for r in records)} to {max(r.date for r in records)}; {minutes:.0f} minutes of training.",
        "",
        "| decoder | " + " | ".join(f"{rate:g}" for rate in rates) + " |",
        "| --- |" + " ---: |" * len(rates),
    ]
    order = [*SPIKING_DELAYS, *BASELINES]
    for decoder in sorted(found, key=order.index):
        pers = {rate: record.summary["per"] for rate, record in found[decoder].items()}
        best = min(pers, key=pers.__getitem__)
        lines.append(f"| {decoder} | " + " | ".join(_cell(pers, rate, best) for rate in rates) + " |")
    return lines


def _cell(pers: Mapping[float, float], rate: float, best: float) -> str:
    if rate not in pers:
        return "-"
    text = f"{100 * pers[rate]:.1f}"
    return f"**{text}**" if rate == best else text


def _given() -> Sequence[str]:
    """The study's arguments as the user wrote them, without the one that only writes the page."""
    words = sys.argv[1:]
    own = words[words.index("rates") + 1 :] if "rates" in words else []
    return [word for word in own if word != "--only-page"]
