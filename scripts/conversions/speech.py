"""``ranvier convert speech``: recorded speech to cochlear spike counts in the '25 form."""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import asdict
from pathlib import Path

from scripts.conversions.tally import Tally, add_common_arguments, feasibility, progress, report

HELP = """\
A folder of recorded speech becomes spike trains of the auditory nerve: one session a speaker, phonemes from the words.

DIR holds sound files and a table transcripts.csv with the columns FILE, SPEAKER, TEXT (rows in recording order), or
files named digit_speaker_index.wav as in the Free Spoken Digit Dataset. Training speakers get the splits train and val
(the digits' official test recordings, else each speaker's last tenth); every recording of a held-out speaker goes to
the split test, with labels, so that it can be scored and nothing else.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
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
    add_common_arguments(parser)


def run(args: argparse.Namespace) -> int:
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
    trials = progress(conversion, len(conversion), args)
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
        *feasibility(tally),
    ]
    return report(args, tally, summary, notes)
