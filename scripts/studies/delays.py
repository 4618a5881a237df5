"""Do fixed delays lower the phoneme error rate at equal core parameters?"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from neuro import DataError
from scripts.output import only_one
from scripts.studies.participant import simulated
from scripts.studies.records import read_record
from scripts.studies.runs import Run, run_all

HELP = """\
Trains residual spiking networks that differ in their longest delay only, and other networks, all with the same number
of core parameters, updates and batches, on a simulated participant (or on --data); scores the last weights of each on
the validation sentences; writes delays.md with table and plot, whatever comes out.

The peak learning rate of each recipe comes from `ranvier study rates`. Recurrent networks leave the blank late:
--longer adds rows of them with three times the updates.

Controls, at the longest delay but one: "layer" (one delay for all connections of a layer), "axon" (one for all of a
neuron's connections), "shuffled" (the trained network with its delays dealt out anew), "learned" (delays trained as in
DCLS, a ceiling: as wide as the spiking network, so with more parameters, and many times as slow).

Stop it with Ctrl-C whenever you like: the same command goes on where it stopped. Each finished run leaves a record
beside the page (docs/results/delays/RUN.json); what has one is not trained again, even where the runs are gone.

examples:
  ranvier study delays                                                   the whole sweep
  ranvier study delays --max-delays 1 16 --baselines gru --controls --longer     delays or none, and a GRU
  ranvier study delays --budget 2M --max-delays 1 16 --baselines gru --controls --longer gru --runs runs/delays-2M
  ranvier study delays --data data/t12 --seeds 1 2 3 --updates 10000
"""

BASELINES = {
    "gru": "gru_500k",
    "lstm": "lstm_500k",
    "tcn": "tcn_500k",
    "mlp": "mlp_500k",
    "transformer": "transformer_500k",
}
"""Baseline -> the recipe that it starts from."""

LONGER = 3
"""Times the updates of the rows of --longer."""

CONTROLS: dict[str, tuple[str, dict[str, Any]]] = {
    "layer": ("one delay a layer", {"delay_sharing": "layer"}),
    "axon": ("one delay a neuron", {"delay_sharing": "axon"}),
    "learned": ("delays trained (ceiling)", {"learn_delays": True}),
    "shuffled": ("delays shuffled after training", {}),
}
"""Control -> what its title says, and the core's options that make it."""

SPIKING = "residual_snn_500k"


@dataclass(frozen=True)
class Arm:
    """One decoder of the comparison, over all seeds.

    Attributes
    ----------
    name, title : str
        Part of the runs' folders, and the row's name.
    kind : str
        "delays", "control", "baseline" or "longer".
    max_delay : int or None
        Longest delay in bins; None for a baseline.
    recipe : str
    changes : mapping
    shuffles : str or None
        Name of the arm whose trained networks this one takes, with their delays shuffled.
    """

    name: str
    title: str
    kind: str
    max_delay: int | None
    recipe: str
    changes: Mapping[str, Any]
    shuffles: str | None = None

    def runs(self, seeds: Sequence[int]) -> list[Run]:
        """The runs of this arm."""
        return [
            Run(
                f"{self.name}-seed{seed}", self.recipe, self.changes, seed,
                shuffles=f"{self.shuffles}-seed{seed}" if self.shuffles else None,
            )
            for seed in seeds
        ]  # fmt: skip


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``ranvier study delays``."""
    add = parser.add_argument
    add("--data", type=Path, help="recording to use (default: simulate a participant, seed 1)")
    add("--budget", default="500k", help="core parameters of every decoder (default: 500k)")
    add(
        "--max-delays", type=int, nargs="+", default=[1, 2, 4, 8, 16, 32],
        help="longest delays in bins; 1 is none (default: 1 2 4 8 16 32)",
    )  # fmt: skip
    add("--baselines", nargs="*", choices=sorted(BASELINES), default=list(BASELINES), help="(default: all)")
    add(
        "--longer", nargs="*", choices=sorted(BASELINES), default=["gru", "lstm"],
        help=f"baselines to train again with {LONGER} times the updates (default: gru lstm, which start slowly)",
    )  # fmt: skip
    add("--controls", nargs="*", choices=sorted(CONTROLS), default=list(CONTROLS), help="(default: all)")
    add("--control-delay", type=int, default=16, help="longest delay of the controls (default: 16)")
    add("--seeds", type=int, nargs="+", default=[1, 2], help="seeds of weights, delays and batches (default: 1 2)")
    add("--updates", type=int, default=2000, help="updates of every decoder (default: 2000)")
    add("--batch-size", type=int, default=16, help="trials an update (default: 16)")
    add("--workers", type=int, default=2, help="runs at a time, one thread each (default: 2)")
    add("--runs", type=Path, default=Path("runs/study-delays"), help="folder of the runs (default: runs/study-delays)")
    add("--only-page", action="store_true", help="train nothing: write the page from the runs that are finished")
    add("--out", type=Path, default=Path("docs/results"), help="folder of the page (default: docs/results)")


def run(args: argparse.Namespace) -> int:
    """Train what is missing, score it, write the page."""
    from rich.console import Console

    from scripts.studies.delays_page import page_path, write_page

    console = Console()
    for name in ("updates", "batch_size", "workers", "control_delay"):
        if getattr(args, name) < 1:
            raise DataError("needs to be at least 1", field="--" + name.replace("_", "-"), found=getattr(args, name))
    if "shuffled" in args.controls and args.control_delay not in args.max_delays:
        raise DataError(
            "the control 'shuffled' takes the networks of the control delay, which must be among --max-delays",
            field="--control-delay", found=args.control_delay, expected=" ".join(map(str, args.max_delays)),
        )  # fmt: skip
    page = page_path(args)
    records = page.with_suffix("")
    if args.only_page:
        runs = [run for arm in arms_of(args) for run in arm.runs(args.seeds)]
        read = {run.name: read_record(records / f"{run.name}.json") for run in runs}
        write_page(args, {name: record for name, record in read.items() if record is not None})
    else:
        with only_one(args.runs, "another process is at work on this study"):
            data = args.data or simulated(args.runs / "data")
            arms = arms_of(args, data)
            runs = [run for seed in args.seeds for arm in arms for run in arm.runs([seed])]
            done = run_all(
                runs, args.runs, data, records=records, workers=args.workers,
                report=lambda line: console.print(line, highlight=False),
            )  # fmt: skip
        write_page(args, done)
    console.print(f"written: {page}", highlight=False)
    return 0


def arms_of(args: argparse.Namespace, data: Path | None = None) -> list[Arm]:
    """The decoders to compare, with what each changes in its recipe."""
    # A run is validated on the way for its learning curve only: its last weights are scored.
    common = {
        "trainer": {"max_steps": args.updates, "val_check_interval": max(1, args.updates // 5)},
        "data": {"batch_size": args.batch_size, "sort_by_length": True},
        "checkpoint": {"every_minutes": 3},
    }

    def spiking(name: str, title: str, kind: str, delay: int, size: dict[str, Any], **options: Any) -> Arm:
        model = {**size, "core_options": {"max_delay": delay, **options}}
        return Arm(f"snn-{args.budget}-{name}", title, kind, delay, SPIKING, {**common, "model": model})

    size: dict[str, Any] = {"budget": args.budget}
    arms = [
        spiking(f"d{d}", f"spiking, delays 1..{d}" if d > 1 else "spiking, no delays", "delays", d, size)
        for d in args.max_delays
    ]
    longest = args.control_delay
    for name in args.controls:
        title, options = CONTROLS[name]
        title = f"spiking 1..{longest}, {title}"
        if name == "shuffled":
            source = f"snn-{args.budget}-d{longest}"
            arms.append(Arm(f"{source}-shuffled", title, "control", longest, SPIKING, {}, shuffles=source))
            continue
        # The ceiling has the width of the network that it is the ceiling of.
        its_size = {"budget": None, "width": matched_width(args.budget, longest, data)} if name == "learned" else size
        arms.append(spiking(f"d{longest}-{name}", title, "control", longest, its_size, **options))
    arms += [
        Arm(f"{name}-{args.budget}", name.upper(), "baseline", None, BASELINES[name], {**common, "model": size})
        for name in args.baselines
    ]
    steps = LONGER * args.updates
    longer = {**common, "trainer": {"max_steps": steps, "val_check_interval": max(1, steps // 5)}}
    return arms + [
        Arm(
            f"{name}-{args.budget}-longer", f"{name.upper()}, {LONGER} times the updates", "longer", None,
            BASELINES[name], {**longer, "model": size},
        )
        for name in args.longer
    ]  # fmt: skip


def matched_width(budget: str, delay: int, data: Path | None) -> int:
    """Width of the spiking recipe's network at a budget on the channels of `data`."""
    import yaml

    from decoders import parse_budget, solve_width
    from neuro import open_recordings
    from scripts.train import find_recipe

    options = yaml.safe_load(find_recipe(SPIKING).read_text())["model"]["core_options"]
    channels = 256 if data is None else open_recordings(str(data)).n_channels
    return solve_width("residual_snn", channels, parse_budget(budget), **{**options, "max_delay": delay})
