"""``ranvier bench WHAT``: speed tables. Each bench verifies that the results agree before it times anything."""

from __future__ import annotations

import argparse
import importlib
from typing import NamedTuple


class Bench(NamedTuple):
    """Where a bench lives: a module with ``HELP``, ``add_arguments(parser)`` and ``run(args) -> exit code``."""

    module: str
    summary: str


BENCHES: dict[str, Bench] = {
    "data": Bench("scripts.benches.data", "reading trials, ours beside bare h5py; memory by number of sessions"),
    "kernels": Bench("scripts.benches.kernels", "the delayed layer and the neuron beside what does the same elsewhere"),
    "train": Bench("scripts.benches.train", "a training step beside a GRU of equal size"),
    "stream": Bench("scripts.benches.stream", "one bin at a time beside a GRU step of equal size"),
}
"""Every bench. A new one is a file in `scripts/benches` and a line here."""

HELP = "Side-by-side speed tables. Each bench checks that the results are the same before it times anything."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add one sub-command per bench."""
    benches = parser.add_subparsers(dest="bench", required=True, metavar="WHAT")
    for name, bench in BENCHES.items():
        module = importlib.import_module(bench.module)
        module.add_arguments(benches.add_parser(name, help=bench.summary, description=module.HELP))


def run(args: argparse.Namespace) -> int:
    """Run the chosen bench; its exit code."""
    return importlib.import_module(BENCHES[args.bench].module).run(args)
