"""``ranvier convert``: recorded speech to cochlear spike trains, and any Brain-to-Text form to the '25 form."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.progress import track
from rich.table import Table

HELP = """\
Turn recordings into the Brain-to-Text '25 form, which `train` and `evaluate` read.

  ranvier convert speech DIR --out DIR        a folder of recorded speech, through a model of the ear
  ranvier convert recordings DIR --out DIR    any Brain-to-Text form ('24 .mat, pickled, '25)
"""

SPEECH_HELP = """\
A folder of recorded speech becomes spike trains of the auditory nerve: one session a speaker, phonemes from the words.

DIR holds sound files and a table transcripts.csv with the columns FILE, SPEAKER, TEXT (rows in recording order), or
files named digit_speaker_index.wav as in the Free Spoken Digit Dataset. Training speakers get the splits train and val
(the digits' official test recordings, else each speaker's last tenth); every recording of a held-out speaker goes to
the split test, with labels, so that it can be scored and nothing else.
"""

RECORDINGS_HELP = """\
Read a recording in any known Brain-to-Text form and write it in the '25 form. Features are block z-scored.
"""

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


def add_speech_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``convert speech``."""
    parser.add_argument("folder", type=Path, metavar="DIR", help="folder of recorded speech")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder to make, in the '25 form")
    parser.add_argument("--held-out", nargs="+", default=[], metavar="SPEAKER", help="speakers for the split test only")
    parser.add_argument("--name", help="first part of session names (default: the folder's name)")
    parser.add_argument("--channels", type=int, default=64, help="frequency channels of the ear (default %(default)s)")
    parser.add_argument("--low-hz", type=float, default=80.0, help="lowest centre frequency (default %(default)s)")
    parser.add_argument(
        "--high-hz", type=float, help="highest centre frequency (default: 0.45 of the sample rate, <= 8000)"
    )
    parser.add_argument(
        "--spikes", default="poisson", help="spike generator: poisson or integrate (default %(default)s)"
    )
    parser.add_argument("--dt", type=float, default=0.02, metavar="S", help="length of a bin (default %(default)s s)")
    parser.add_argument(
        "--silence", type=float, default=0.2, metavar="S", help="silence before and after each (default %(default)s s)"
    )
    parser.add_argument("--sample-rate", type=int, metavar="HZ", help="bring all recordings to this rate")
    parser.add_argument(
        "--dictionary", type=Path, metavar="FILE", help="your own pronunciations: lines of WORD  P1 P2 ..."
    )
    parser.add_argument(
        "--val-share", type=float, default=0.1, help="share for val where the data name none (default %(default)s)"
    )
    parser.add_argument(
        "--block-size", type=int, default=50, help="recordings in a z-scored block (default %(default)s)"
    )
    parser.add_argument("--seed", type=int, default=0, help="seed of the spikes (default %(default)s)")
    _add_common(parser)


def run_speech(args: argparse.Namespace) -> int:
    """Convert a folder of recorded speech."""
    from neuro.cochlea import Cochlea
    from neuro.formats import FORMATS
    from neuro.lexicon import Lexicon
    from neuro.speech import SpeechConversion, common_sample_rate, list_recordings

    rate = args.sample_rate or common_sample_rate(list_recordings(args.folder))
    ear = Cochlea(
        n_channels=args.channels,
        low_hz=args.low_hz,
        high_hz=args.high_hz,
        sample_rate=rate,
        dt=args.dt,
        spikes=args.spikes,
    )
    conversion = SpeechConversion(
        folder=args.folder,
        name=args.name,
        held_out=tuple(args.held_out),
        cochlea=ear,
        silence=args.silence,
        sample_rate=rate,
        validation=args.val_share,
        block_size=args.block_size,
        seed=args.seed,
        lexicon=Lexicon(args.dictionary),
    )
    tally, started = Tally(), time.perf_counter()
    trials = _progress(conversion, len(conversion), args)
    write = FORMATS["b2t25"].write
    assert write is not None
    write(tally.watch(trials), args.out, overwrite=args.overwrite, test_labels=True)
    per_bin = tally.spikes / (tally.bins * tally.channels)
    summary = tally.as_dict() | {
        "spikes_per_channel_and_bin": round(per_bin, 4),
        "spikes_per_channel_and_second": round(per_bin / ear.dt, 2),
        "seconds": round(time.perf_counter() - started, 1),
    }
    made_by = {"source": str(args.folder), "silence": args.silence, "seed": args.seed, "cochlea": asdict(ear)}
    (args.out / "conversion.json").write_text(json.dumps(made_by | summary, indent=2) + "\n")
    notes = [
        f"{tally.trials.total()} recordings, {tally.bins} bins of {ear.dt * 1000:g} ms, {2 * tally.channels} features, "
        f"{per_bin:.2f} spikes per channel and bin, {summary['seconds']} s",
        *_feasibility(tally),
    ]
    return _report(args, tally, summary, notes)


def add_recordings_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``convert recordings``."""
    parser.add_argument("folder", type=Path, metavar="PATH", help="recording in any known form")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder to make, in the '25 form")
    _add_common(parser)


def run_recordings(args: argparse.Namespace) -> int:
    """Convert a recording of cortex to the '25 form."""
    from neuro import convert, open_recordings

    recordings = open_recordings(args.folder)
    tally, started = Tally(), time.perf_counter()
    convert(
        recordings,
        args.out,
        overwrite=args.overwrite,
        progress=lambda trials, total: tally.watch(_progress(trials, total, args)),
    )
    summary = tally.as_dict() | {"form": recordings.form, "seconds": round(time.perf_counter() - started, 1)}
    notes = [
        f"{tally.trials.total()} trials in the {recordings.form} form, {summary['seconds']} s",
        *_feasibility(tally),
    ]
    return _report(args, tally, summary, notes)


class SubCommand(NamedTuple):
    """One kind of conversion."""

    summary: str
    help: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]


SUBCOMMANDS: dict[str, SubCommand] = {
    "speech": SubCommand("recorded speech to cochlear spike trains", SPEECH_HELP, add_speech_arguments, run_speech),
    "recordings": SubCommand(
        "any Brain-to-Text form to the '25 form", RECORDINGS_HELP, add_recordings_arguments, run_recordings
    ),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """One sub-parser a kind of conversion."""
    kinds = parser.add_subparsers(dest="kind", required=True, metavar="KIND")
    for name, command in SUBCOMMANDS.items():
        sub = kinds.add_parser(
            name,
            help=command.summary,
            description=command.help,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        command.add_arguments(sub)


def run(args: argparse.Namespace) -> int:
    """Run the conversion that was chosen."""
    return SUBCOMMANDS[args.kind].run(args)


def _add_common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--overwrite", action="store_true", help="replace an existing folder of recordings")
    parser.add_argument("--json", action="store_true", help="print the summary as JSON")


def _progress(trials: Iterable, total: int, args: argparse.Namespace) -> Iterable:
    console = Console(stderr=True)
    return track(trials, "converting", total=total, console=console, disable=args.json or not console.is_terminal)


def _feasibility(tally: Tally) -> list[str]:
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


def _report(args: argparse.Namespace, tally: Tally, summary: dict, notes: list[str]) -> int:
    if args.json:
        sys.stdout.write(json.dumps(summary | {"out": str(args.out)}, indent=2) + "\n")
        return 0
    console = Console()
    console.print(tally.table())
    for note in [*notes, f"written to {args.out}"]:
        console.print(note, highlight=False, markup=False, soft_wrap=True)
    return 0
