"""Do neurons that fall asleep save energy at equal accuracy?"""

from __future__ import annotations

import argparse
from pathlib import Path

from neuro import DataError
from scripts.output import only_one

HELP = """\
Trains spiking networks of plain and of dormant neurons from the same weights, on the same batches, for the same number
of updates; measures accuracy and synaptic energy of both under every accounting; writes dormancy.md with tables and
plots, whatever comes out. Trained on train, scored on test with the last weights; nothing is chosen on test.

Stop it with Ctrl-C whenever you like: the same command goes on where it stopped. Each finished run leaves a record
beside the page (docs/results/dormancy/RUN.json); what has one is not run again, even where the networks are gone.

examples:
  ranvier study dormancy --experiments digits                  the main claim, minutes
  ranvier study dormancy --experiments fashion --workers 1     an hour or more on one core
  ranvier study dormancy                                       everything
  ranvier study dormancy --only-page
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``ranvier study dormancy``."""
    from scripts.studies.dormancy.experiments import EXPERIMENTS

    add = parser.add_argument
    names = list(EXPERIMENTS)
    add("--experiments", nargs="+", choices=names, default=names, metavar="NAME", help=f"(default: {' '.join(names)})")
    add("--seeds", type=int, nargs="+", help="seeds of weights and batches (default: those of each experiment)")
    add("--workers", type=int, default=1, help="runs at a time, one thread each (default: 1)")
    add(
        "--runs", type=Path, default=Path("runs/study-dormancy"),
        help="folder of the trained networks (default: runs/study-dormancy)",
    )  # fmt: skip
    add("--only-page", action="store_true", help="run nothing: write the page from the records that are there")
    add("--out", type=Path, default=Path("docs/results"), help="folder of the page (default: docs/results)")


def run(args: argparse.Namespace) -> int:
    """Do what is missing, write the page."""
    from rich.console import Console

    from scripts.studies.dormancy.experiments import EXPERIMENTS
    from scripts.studies.dormancy.page import PAGE, write_page
    from scripts.studies.dormancy.plan import run_all

    console = Console()
    if args.workers < 1:
        raise DataError("needs to be at least 1", field="--workers", found=args.workers)
    if not args.only_page:
        plan = [
            (name, one)
            for name in args.experiments
            for one in EXPERIMENTS[name].runs(tuple(args.seeds or EXPERIMENTS[name].seeds))
        ]
        with only_one(args.runs, "another process is at work on this study"):
            run_all(
                plan, args.out / PAGE, args.runs, workers=args.workers,
                report=lambda line: console.print(line, highlight=False),
            )  # fmt: skip
    console.print(f"written: {write_page(args.out)}", highlight=False)
    return 0
