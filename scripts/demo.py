"""``ranvier demo``: the main job on a small simulated participant, end to end, in minutes."""

from __future__ import annotations

import argparse
import shlex
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from scripts.output import MARKER, check_free, write_json

if TYPE_CHECKING:
    from rich.console import Console

    from scripts.evaluation.report import Report

HELP = """\
Simulates a participant, trains a small spiking decoder and a GRU of the same size on it with the same number of
updates, scores both on sentences that neither saw, and prints one table. Takes a few minutes on two cores and needs no
data.

The participant is simulated: the figures show that the pipeline works, not how well anybody's speech can be decoded.

Writes into the output folder: data/ (the participant, in the '25 form), one folder a decoder (checkpoints, logs and its
evaluation with plots), learning_curve.png (both), summary.json.

examples:
  ranvier demo
  ranvier demo --out runs/another --seed 2
  ranvier demo --overwrite                 replace what an earlier demo wrote
"""


class Contestant(NamedTuple):
    """One decoder of the demo: its name in the table, and its recipe in scripts/configs."""

    title: str
    recipe: str


CONTESTANTS: dict[str, Contestant] = {
    "residual_snn": Contestant("spiking, fixed delays", "residual_snn_demo"),
    "gru": Contestant("GRU, same size", "gru_demo"),
}

SESSIONS, TRIALS = 2, 200
SIMULATED = "simulated participant"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``ranvier demo``."""
    parser.add_argument(
        "--out", type=Path, default=Path("runs/demo"), help="folder for everything (default: runs/demo)"
    )
    parser.add_argument("--seed", type=int, default=1, help="seed of the participant and of training (default: 1)")
    parser.add_argument("--overwrite", action="store_true", help="replace the folder of an earlier demo")
    parser.add_argument(
        "--updates", type=int, help="updates of both decoders, instead of their recipes'; fewer learn less"
    )
    parser.add_argument("--json", action="store_true", help="print the summary as JSON instead of a table")


def run(args: argparse.Namespace) -> int:
    """Simulate, train twice, evaluate twice, compare."""
    import shutil

    import torch
    from rich.console import Console

    from scripts.evaluation.report import print_json

    # Networks this small gain nothing from more threads, and lose much where others want the cores too.
    torch.set_num_threads(1)
    start = time.perf_counter()
    console = Console(stderr=args.json)
    check_free(args.out, overwrite=args.overwrite)
    if args.out.exists():
        shutil.rmtree(args.out)
    args.out.mkdir(parents=True)
    (args.out / MARKER).touch()
    console.print("The participant of this demo is simulated: no person's recording is in it.\n", style="bold")
    data = args.out / "data"
    _stage(
        console,
        f"1/{1 + 2 * len(CONTESTANTS)} simulating a participant",
        ["simulate", str(data), "--format", "b2t25", "--setting", "easy", "--sessions", str(SESSIONS),
         "--trials", str(TRIALS), "--seed", str(args.seed)],
    )  # fmt: skip
    reports: dict[str, Report] = {}
    training: dict[str, float] = {}
    for number, (name, contestant) in enumerate(CONTESTANTS.items()):
        folder, last = args.out / name, 1 + 2 * len(CONTESTANTS)
        title = f"{2 + 2 * number}/{last} training: {contestant.title}"
        training[name] = _stage(console, title, train_command(args, name, data, folder))
        title = f"{3 + 2 * number}/{last} evaluating: {contestant.title}"
        reports[name] = _evaluate(console, title, folder, data, args)
    summary = {
        "source": SIMULATED,
        "seed": args.seed,
        "split": "val",
        "decoders": {name: reports[name].summary for name in reports},
        "training_seconds": training,
        "seconds": time.perf_counter() - start,
    }
    _draw(args.out, reports)
    write_json(args.out / "summary.json", summary)
    if args.json:
        print_json(summary)
    else:
        _print(console, args, reports, training, summary["seconds"])
    return 0


def train_command(args: argparse.Namespace, name: str, data: Path, folder: Path) -> list[str]:
    """Command line that trains one contestant into a folder."""
    command = [
        "train", "fit", "--config", CONTESTANTS[name].recipe, "--data.path", str(data), "--run", str(folder),
        "--seed_everything", str(args.seed),
    ]  # fmt: skip
    if args.updates:
        # A run must be validated at least once to have a best checkpoint.
        between = str(max(1, args.updates // 5))
        command += ["--trainer.max_steps", str(args.updates), "--trainer.val_check_interval", between]
    return command


def _stage(console: Console, title: str, command: list[str]) -> float:
    """Run one command of ranvier, shown as a user would type it; hand back its seconds.

    Raises
    ------
    DataError
        If it ends with an error of its own.
    """
    from neuro import DataError
    from scripts.cli import INTERRUPTED, call

    console.rule(title, align="left")
    console.print("$ ranvier " + shlex.join(command), style="dim", highlight=False, soft_wrap=True, markup=False)
    start = time.perf_counter()
    code = call(command[0], command[1:])
    if code == INTERRUPTED:
        console.print("the demo itself does not go on from here: start it again with `ranvier demo --overwrite`")
        raise KeyboardInterrupt
    if code:
        raise DataError(f"`ranvier {command[0]}` ended with exit code {code}, so the demo stops here")
    return time.perf_counter() - start


def _evaluate(console: Console, title: str, folder: Path, data: Path, args: argparse.Namespace) -> Report:
    from scripts import evaluate

    console.rule(title, align="left")
    command = [str(folder), "--data", str(data), "--split", "val", "--source", SIMULATED]
    console.print(
        "$ ranvier evaluate " + shlex.join(command), style="dim", highlight=False, soft_wrap=True, markup=False
    )
    parser = argparse.ArgumentParser()
    evaluate.add_arguments(parser)
    return evaluate.evaluate(parser.parse_args([*command, *(["--json"] if args.json else [])]))


def _draw(out: Path, reports: dict[str, Report]) -> None:
    from scripts.plots import learning_curve
    from scripts.plots.learning_curve import CURVE_FILE, read_curves
    from scripts.plots.style import save

    curves = {
        CONTESTANTS[name].title: read_curves(out / name / CURVE_FILE)
        for name in reports
        if (out / name / CURVE_FILE).is_file()
    }
    chance = next(iter(reports.values())).summary["chance"]["best_constant"]
    save(learning_curve(curves, source=SIMULATED, chance=chance), out / "learning_curve.png")


def _print(
    console: Console, args: argparse.Namespace, reports: dict[str, Report], training: dict[str, float], seconds: float
) -> None:
    from rich.table import Table

    from scripts.evaluation.report import CHANCE_NAMES, interval, percent

    any_report: dict[str, Any] = next(iter(reports.values())).summary
    table = Table(title=f"Phoneme error rate on {any_report['trials']} unseen sentences of a SIMULATED participant")
    # Fits 80 columns: a table that wraps cannot be read.
    table.add_column("decoder", no_wrap=True)
    for column in ("PER % (95 %)", "core", "spikes %", "train s"):
        table.add_column(column, justify="right", no_wrap=True)
    for name, report in reports.items():
        row = report.summary
        rate = "-" if row["spike_rate"] is None else percent(row["spike_rate"])
        table.add_row(
            CONTESTANTS[name].title,
            f"{percent(row['per'])} ({interval(row)})",
            f"{row['parameters']['core']:,}",
            rate,
            f"{training[name]:.0f}",
        )
    table.add_section()
    for name, value in any_report["chance"].items():
        table.add_row(CHANCE_NAMES[name], percent(value), *[""] * 3, style="dim")
    console.rule(align="left")
    console.print(table)
    console.print(
        "PER with its 95 % interval; core: parameters; spikes: spike rate, the share of neurons that fire in a bin;\n"
        "chance: the best constant answer; one seed; greedy decoding, no language model",
        style="dim",
    )
    for note in sorted({note for report in reports.values() for note in report.warnings}):
        console.print(f"note: {note}", style="yellow", markup=False)
    console.print(
        f"everything took {seconds:.0f} s and is in {args.out}; open {args.out / 'learning_curve.png'}", markup=False
    )
