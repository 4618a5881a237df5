"""What the conversions to the '25 form share: counting trials on the way, and the report at the end."""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from rich.console import Console
from rich.progress import track
from rich.table import Table

OFFICIAL_PATCH = (14, 4)


@dataclass
class Tally:
    """What went through a conversion, counted on the way by `watch`."""

    trials: Counter[tuple[str, str]] = field(default_factory=Counter)
    bins: int = 0
    channels: int = 0
    spikes: float = 0.0
    too_short: int = 0
    too_short_patched: int = 0

    def watch(self, trials: Iterable) -> Iterator:
        """Hand trials on and count them; spikes only where a trial has raw counts."""
        for trial in trials:
            counts = next(iter(trial.counts.values())) if hasattr(trial, "counts") else trial.features
            self.trials[trial.session, trial.split] += 1
            self.bins += len(counts)
            self.channels = counts.shape[1]
            self.spikes += float(counts.sum())
            if trial.phonemes is not None:
                needed = len(trial.phonemes) + int((trial.phonemes[1:] == trial.phonemes[:-1]).sum())
                size, stride = OFFICIAL_PATCH
                self.too_short += len(counts) < needed
                self.too_short_patched += (len(counts) - size) // stride + 1 < needed
            yield trial

    def table(self) -> Table:
        """Trials of every session and split."""
        splits = [split for split in ("train", "val", "test") if any(s == split for _, s in self.trials)]
        table = Table("session", *splits)
        for session in sorted({session for session, _ in self.trials}):
            table.add_row(session, *(str(self.trials[session, split]) for split in splits))
        return table

    def as_dict(self) -> dict:
        """The same as plain values, for ``--json`` and the file beside the data."""
        sessions: dict[str, dict[str, int]] = {}
        for (session, split), n in sorted(self.trials.items()):
            sessions.setdefault(session, {})[split] = n
        return {
            "sessions": sessions,
            "trials": self.trials.total(),
            "bins": self.bins,
            "channels": self.channels,
            "shorter_than_labels": self.too_short,
            "shorter_than_labels_in_official_patches": self.too_short_patched,
        }


def add_common_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of both."""
    parser.add_argument("--overwrite", action="store_true", help="replace an existing folder of recordings")
    parser.add_argument("--json", action="store_true", help="print the summary as JSON")


def progress(trials: Iterable, total: int, args: argparse.Namespace) -> Iterable:
    """Hand on trials under a progress bar, which shows on a terminal only."""
    console = Console(stderr=True)
    return track(trials, "converting", total=total, console=console, disable=args.json or not console.is_terminal)


def feasibility(tally: Tally) -> list[str]:
    """Warnings about trials with fewer frames than labels, which CTC cannot align."""
    size, stride = OFFICIAL_PATCH
    notes = []
    if tally.too_short:
        notes.append(
            f"{tally.too_short} trials have fewer bins than labels, which CTC cannot align: use a smaller --dt"
        )
    if tally.too_short_patched > tally.too_short:
        notes.append(
            f"{tally.too_short_patched} trials are too short for the official patches ({size} bins every {stride}): "
            "train without patches or with a smaller stride"
        )
    return notes


def report(args: argparse.Namespace, tally: Tally, summary: dict, notes: list[str]) -> int:
    """Print the summary as JSON, or the table and the notes; the exit code."""
    if args.json:
        sys.stdout.write(json.dumps(summary | {"out": str(args.out)}, indent=2) + "\n")
        return 0
    console = Console()
    console.print(tally.table())
    for note in [*notes, f"written to {args.out}"]:
        console.print(note, highlight=False, markup=False, soft_wrap=True)
    return 0
