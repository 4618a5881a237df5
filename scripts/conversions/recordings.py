"""``ranvier convert recordings``: any Brain-to-Text form to the '25 form."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from scripts.conversions.tally import Tally, add_common_arguments, feasibility, progress, report

HELP = """\
Read a recording in any known Brain-to-Text form and write it in the '25 form. Features are block z-scored.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``convert recordings``."""
    parser.add_argument("folder", type=Path, metavar="PATH", help="recording in any known form")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder to make, in the '25 form")
    add_common_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Convert a recording of cortex to the '25 form."""
    from neuro import convert, open_recordings

    recordings = open_recordings(args.folder)
    tally, started = Tally(), time.perf_counter()
    convert(
        recordings,
        args.out,
        overwrite=args.overwrite,
        progress=lambda trials, total: tally.watch(progress(trials, total, args)),
    )
    summary = tally.as_dict() | {"form": recordings.form, "seconds": round(time.perf_counter() - started, 1)}
    notes = [
        f"{tally.trials.total()} trials in the {recordings.form} form, {summary['seconds']} s",
        *feasibility(tally),
    ]
    return report(args, tally, summary, notes)
