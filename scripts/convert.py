"""``ranvier convert KIND``: recorded speech to cochlear spike trains, and any Brain-to-Text form to the '25 form."""

from __future__ import annotations

import argparse
import importlib
from typing import NamedTuple


class SubCommand(NamedTuple):
    """Where a conversion lives: a module with ``HELP``, ``add_arguments(parser)`` and ``run(args) -> exit code``."""

    module: str
    summary: str


SUBCOMMANDS: dict[str, SubCommand] = {
    "speech": SubCommand("scripts.conversions.speech", "recorded speech to cochlear spike trains"),
    "recordings": SubCommand("scripts.conversions.recordings", "any Brain-to-Text form to the '25 form"),
    "shd": SubCommand("scripts.conversions.shd", "recorded speech to labelled cochlear spikes in the form of SHD"),
}
"""Every kind of conversion. A new one is a file in `scripts/conversions` and a line here."""

HELP = """\
Turn recordings into the Brain-to-Text '25 form, which `train` and `evaluate` read, or speech into the form of SHD.

  ranvier convert speech DIR --out DIR        a folder of recorded speech, through a model of the ear
  ranvier convert recordings DIR --out DIR    any Brain-to-Text form ('24 .mat, pickled, '25)
  ranvier convert shd DIR --out FILE          a folder of recorded speech to spikes with labels and speakers
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """One sub-parser a kind of conversion."""
    kinds = parser.add_subparsers(dest="kind", required=True, metavar="KIND")
    for name, command in SUBCOMMANDS.items():
        module = importlib.import_module(command.module)
        module.add_arguments(
            kinds.add_parser(
                name,
                help=command.summary,
                description=module.HELP,
                formatter_class=argparse.RawDescriptionHelpFormatter,
            )
        )


def run(args: argparse.Namespace) -> int:
    """Run the conversion that was chosen; its exit code."""
    return importlib.import_module(SUBCOMMANDS[args.kind].module).run(args)
