"""``ranvier study``: rerun a published claim and write its page."""

from __future__ import annotations

import argparse
import importlib
from typing import NamedTuple

HELP = """\
Reruns an experiment and writes its page into docs/results, with the command, seeds, times and whatever came out.

A study that was interrupted goes on where it stopped: finished runs are kept and not repeated.

examples:
  ranvier study --list
  ranvier study delays --help
"""


class Study(NamedTuple):
    """Where a study lives and what it asks. The module has ``HELP``, ``add_arguments(parser)`` and ``run(args)``."""

    module: str
    summary: str


STUDIES: dict[str, Study] = {
    "delays": Study("scripts.studies.delays", "do fixed delays lower the phoneme error rate at equal parameters?"),
    "dormancy": Study("scripts.studies.dormancy.command", "do neurons that fall asleep save energy at equal accuracy?"),
    "rates": Study("scripts.studies.rates", "which learning rate does each decoder of the delay study train best at?"),
}
"""Every study. A new one is a file in scripts/studies and a line here."""


def run_argv(argv: list[str]) -> int:
    """Run one study; the arguments after its name are the study's own."""
    parser = argparse.ArgumentParser(
        prog="ranvier study", description=HELP, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--list", action="store_true", help="list the studies and stop")
    parser.add_argument("study", nargs="?", choices=sorted(STUDIES), help="which study to run")
    # Only what stands before the study's name is ours; `--help` after it must reach the study.
    names = [position for position, argument in enumerate(argv) if argument in STUDIES]
    split = names[0] + 1 if names else len(argv)
    args = parser.parse_args(argv[:split])
    if args.list or args.study is None:
        for name, study in STUDIES.items():
            print(f"{name:<12}{study.summary}")
        return 0
    module = importlib.import_module(STUDIES[args.study].module)
    own = argparse.ArgumentParser(
        prog=f"ranvier study {args.study}",
        description=module.HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    module.add_arguments(own)
    return module.run(own.parse_args(argv[split:]))
