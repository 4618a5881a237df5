"""``ranvier convert shd``: recorded speech to labelled cochlear spike trains in the form of SHD."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from scripts.conversions.tally import progress

if TYPE_CHECKING:
    from neuro.shd import SpikeTrains

HELP = """\
A folder of recorded speech becomes labelled spike trains of the auditory nerve, in the HDF5 form of the Spiking
Heidelberg Digits (spikes/times, spikes/units, labels, extra/speaker, extra/keys), which `neuro.open_shd` reads.

Label and speaker are told from the names of the files, by the first of these that fits all of them:
  LABEL_SPEAKER_INDEX.wav         as in the Free Spoken Digit Dataset
  LABEL/SPEAKER_nohash_INDEX.wav  as in Speech Commands
  LABEL/SPEAKER/FILE.wav          sub-folders
Other names are described by --pattern, a regular expression for the path inside DIR without the end of its name, with
groups called label and speaker, such as '(?P<speaker>\\w+)/(?P<label>\\w+)-\\d+'; what it does not fit is left out.
"""

PLOTTED = 4


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``convert shd``."""
    parser.add_argument("folder", type=Path, metavar="DIR", help="folder of recorded speech")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="HDF5 file to make")
    parser.add_argument("--pattern", metavar="REGEX", help="how label and speaker are told from a file's name")
    parser.add_argument(
        "--channels", type=int, default=70, help="frequency channels, the units (default %(default)s; SHD has 700)"
    )
    parser.add_argument("--dt", type=float, default=0.001, metavar="S", help="resolution (default %(default)s s)")
    parser.add_argument("--low-hz", type=float, default=80.0, help="lowest centre frequency (default %(default)s)")
    parser.add_argument(
        "--high-hz", type=float, help="highest centre frequency (default: 0.45 of the sample rate, <= 8000)"
    )
    parser.add_argument(
        "--threshold",
        type=float,
        default=0.005,
        help="amplitude in a channel that is not heard yet, where the whole recording has 0.05 (default %(default)s)",
    )
    parser.add_argument(
        "--gain-hz", type=float, default=400.0, help="spikes per second at full drive (default %(default)s)"
    )
    parser.add_argument(
        "--spontaneous-hz", type=float, default=0.0, help="spikes per second in silence (default %(default)s)"
    )
    parser.add_argument(
        "--spikes", default="poisson", help="spike generator: poisson or integrate (default %(default)s)"
    )
    parser.add_argument("--sample-rate", type=int, metavar="HZ", help="bring all recordings to this rate")
    parser.add_argument("--seed", type=int, default=0, help="seed of the spikes (default %(default)s)")
    parser.add_argument(
        "--workers", type=int, default=1, help="processes; the result is the same (default %(default)s)"
    )
    parser.add_argument("--plot", type=Path, metavar="PNG", help="also draw the spikes of a few recordings")
    parser.add_argument("--overwrite", action="store_true", help="replace an existing HDF5 file")
    parser.add_argument("--json", action="store_true", help="print the summary as JSON")


def run(args: argparse.Namespace) -> int:
    """Convert a folder of recorded speech and say what came out."""
    from neuro import open_shd, write_shd
    from neuro.speech import common_sample_rate
    from neuro.speech_spikes import SpokenSpikes, list_spoken, nerve

    rate = args.sample_rate
    if rate is None:
        rate = common_sample_rate(list_spoken(args.folder, args.pattern))
    ear = nerve(
        args.channels,
        rate,
        dt=args.dt,
        low_hz=args.low_hz,
        high_hz=args.high_hz,
        threshold=args.threshold,
        gain_hz=args.gain_hz,
        spontaneous_hz=args.spontaneous_hz,
        spikes=args.spikes,
    )
    spoken = SpokenSpikes(
        args.folder, args.pattern, cochlea=ear, sample_rate=rate, seed=args.seed, workers=args.workers
    )
    made_by = {"source": spoken.source, "data": "recorded speech, simulated cochlea", "seed": args.seed}
    started = time.perf_counter()
    write_shd(
        args.out,
        progress(spoken, len(spoken), args),
        labels=spoken.labels,
        speakers=spoken.speakers,
        keys=spoken.keys,
        speaker_names=spoken.speaker_names,
        n_units=ear.n_channels,
        attributes=made_by | {"cochlea": json.dumps(asdict(ear))},
        overwrite=args.overwrite,
    )
    elapsed = time.perf_counter() - started
    trains = open_shd(args.out)
    if args.plot:
        _plot(trains, args.plot, f"{spoken.source}, recorded speech through a model of the ear")
    spikes = sum(len(trains.events(i)[0]) for i in range(len(trains)))
    sound = spoken.seconds()
    summary = made_by | {
        "recordings": len(trains),
        "labels": len(trains.keys),
        "speakers": len(spoken.speaker_names),
        "units": trains.n_units,
        "seconds_of_sound": round(sound, 1),
        "spikes": spikes,
        "spikes_per_second": round(spikes / sound, 1),
        "spikes_per_unit_and_second": round(spikes / sound / trains.n_units, 2),
        "bytes": args.out.stat().st_size,
        "seconds": round(elapsed, 1),
    }
    return _report(args, trains, summary)


def _plot(trains: SpikeTrains, path: Path, source: str) -> None:
    from scripts.plots import spike_trains
    from scripts.plots.style import save

    shown = [int(i) for i in _spaced(len(trains))]
    titles = [f"{trains.keys[trains.labels[i]]}, {_speaker(trains, i)}" for i in shown]
    figure = spike_trains([trains.events(i) for i in shown], titles, n_units=trains.n_units, source=source)
    path.parent.mkdir(parents=True, exist_ok=True)
    save(figure, path)


def _spaced(total: int) -> Iterator[int]:
    """A few positions from all over the file, so that several labels are seen."""
    few = min(PLOTTED, total)
    return (k * total // few for k in range(few))


def _speaker(trains: SpikeTrains, i: int) -> str:
    assert trains.speakers is not None and trains.speaker_names is not None  # this command wrote both
    return trains.speaker_names[trains.speakers[i]]


def _report(args: argparse.Namespace, trains: SpikeTrains, summary: dict) -> int:
    if args.json:
        sys.stdout.write(json.dumps(summary | {"out": str(args.out)}, indent=2) + "\n")
        return 0
    assert trains.speakers is not None and trains.speaker_names is not None
    table = Table("speaker", *trains.keys)
    for number, name in enumerate(trains.speaker_names):
        labels = trains.labels[trains.speakers == number]
        table.add_row(name, *(str((labels == label).sum()) for label in range(len(trains.keys))))
    console = Console()
    if len(trains.keys) <= 20:
        console.print(table)
    for note in (
        f"{summary['recordings']} recordings, {summary['seconds_of_sound']} s of sound, {summary['labels']} labels, "
        f"{summary['speakers']} speakers, {summary['seconds']} s",
        f"{summary['spikes']} spikes in {summary['units']} units, {summary['spikes_per_second']} a second of sound, "
        f"{summary['spikes_per_unit_and_second']} a unit and second",
        f"written to {args.out}, {summary['bytes'] / 1e6:.1f} MB",
    ):
        console.print(note, highlight=False, markup=False, soft_wrap=True)
    return 0
