"""``ranvier simulate``: write a simulated participant in the '25 or the '24 form."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scripts.output import check_free
from scripts.progress import progress_bar

if TYPE_CHECKING:
    from neuro.lexicon import Lexicon
    from neuro.simulate import Participant, Setting
    from neuro.trial import RawTrial

HELP = """\
Write a simulated participant who attempts to speak: sentences become phonemes, movements of the vocal tract, firing of
cortex, and threshold crossings and spike-band power on 256 electrodes, in files of the Brain-to-Text '25 or '24 form.

The data are simulated; no recording of any person is in them. Their statistics follow those of published recordings.
Everything follows from the seed.

examples:
  ranvier simulate data/sim --format b2t25 --sessions 4 --trials 200 --seed 1
  ranvier simulate data/sim24 --format b2t24 --sessions 8 --trials 250
  ranvier simulate data/easy --setting easy --sessions 2 --trials 200
  ranvier simulate data/own --text sentences.txt --lexicon names.dict --unknown skip
"""

INFO_FILE, README_FILE = "simulation.json", "README.md"
README = """\
# Simulated recordings

Everything in this folder is simulated. It was written by `ranvier simulate` and holds no recording of any person.
All settings and the seed are in `{info}`; the same command with the same version writes the same data.

    ranvier simulate DIR {arguments}
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``ranvier simulate``."""
    from neuro.simulate import FORMS, PACES, SETTINGS

    add = parser.add_argument
    add("folder", type=Path, metavar="DIR", help="folder to make")
    add("--format", choices=sorted(FORMS), default="b2t25", help="file form (default: %(default)s)")
    add("--sessions", type=int, default=4, help="recording days (default: %(default)s)")
    add("--trials", type=int, default=200, help="trials of each session, over all splits (default: %(default)s)")
    add("--seed", type=int, default=1, help="everything follows from it (default: %(default)s)")
    add(
        "--setting",
        choices=sorted(SETTINGS),
        default="default",
        help="how well the electrodes hear: default, or easy with short sentences (default: %(default)s)",
    )
    add(
        "--tuning-gain",
        type=float,
        metavar="GAIN",
        help="the difficulty, instead of the setting's: spread of the speech-driven log firing rate; less is harder",
    )
    add(
        "--pace",
        choices=sorted(PACES),
        help="speaking rate (default: the setting's, or that of the form's participant)",
    )
    add("--text", type=Path, metavar="FILE", help="your own sentences, one a line, instead of the built-in grammar's")
    add("--lexicon", type=Path, metavar="FILE", help="your own pronunciations, lines of WORD  P1 P2 ...")
    add(
        "--unknown",
        choices=("stop", "skip"),
        default="stop",
        help="what to do with sentences of FILE that have a word without a pronunciation (default: %(default)s)",
    )
    add("--overwrite", action="store_true", help="replace an existing folder of recordings")
    add("--json", action="store_true", help="print the summary as JSON")


def run(args: argparse.Namespace) -> int:
    """Simulate and write."""
    from neuro import DataError
    from neuro.formats import FORMATS
    from neuro.lexicon import Lexicon
    from neuro.simulate import SETTINGS, Participant

    start = time.perf_counter()
    if not args.overwrite:  # what may be replaced, the file format knows
        check_free(args.folder, overwrite=False)
    lexicon = Lexicon(args.lexicon)
    sentences: list[str] | None = None
    left_out = 0
    if args.text is not None:
        lines = _read_sentences(args.text)
        sentences = _pronounceable(lines, lexicon, args.unknown)
        if sentences is None:
            return 2
        left_out = len(lines) - len(sentences)
    setting: str | Setting = args.setting
    if args.tuning_gain is not None:
        # A gain of 1 is a neuron that fires e times as often one spread from the mean.
        if not 0 <= args.tuning_gain <= 5:
            raise DataError("needs to be a number from 0 to 5", field="--tuning-gain", found=args.tuning_gain)
        setting = replace(SETTINGS[args.setting], tuning_gain=args.tuning_gain)
    participant = Participant(
        args.format,
        sessions=args.sessions,
        trials=args.trials,
        seed=args.seed,
        setting=setting,
        pace=args.pace,
        sentences=sentences,
        lexicon=lexicon,
    )
    write = FORMATS[args.format].write
    assert write is not None
    tally = _Tally()
    with progress_bar("simulating", len(participant), quiet=args.json) as advance:
        write(_watch(participant, tally, advance), args.folder, overwrite=args.overwrite)
    summary = participant.describe() | {
        "text": None if args.text is None else args.text.name,
        "sentences_left_out": left_out,
        "lexicon": None if args.lexicon is None else args.lexicon.name,
        "summary": tally.summary(),
    }
    (args.folder / INFO_FILE).write_text(json.dumps(summary, indent=2) + "\n")
    (args.folder / README_FILE).write_text(README.format(info=INFO_FILE, arguments=_arguments(args)))
    _report(args, participant, tally, summary, time.perf_counter() - start)
    return 0


class _Tally:
    """What was written, counted on the way."""

    def __init__(self) -> None:
        self.trials: dict[str, Counter[str]] = defaultdict(Counter)
        self.bins: Counter[str] = Counter()
        self.phonemes: Counter[str] = Counter()
        self.words = 0
        self.crossings = 0.0
        self.corpora: Counter[str] = Counter()

    def add(self, trial: RawTrial, threshold: float) -> None:
        self.trials[trial.session][trial.split] += 1
        self.bins[trial.session] += len(trial.power)
        self.phonemes[trial.session] += len(trial.phonemes)
        self.words += len(trial.sentence.split())
        self.crossings += float(trial.counts[threshold].mean()) * len(trial.power)
        self.corpora[trial.corpus] += 1

    def summary(self) -> dict[str, Any]:
        from neuro.trial import BIN_SECONDS

        n, bins, phonemes = (sum(self.trials[s].total() for s in self.trials), self.bins.total(), self.phonemes.total())
        return {
            "trials": n,
            "splits": dict(sum((self.trials[s] for s in self.trials), Counter())),
            "corpora": dict(self.corpora),
            "words_per_sentence": round(self.words / n, 2),
            "phonemes_per_sentence": round(phonemes / n, 2),
            "bins_per_trial": round(bins / n, 1),
            "phonemes_per_second": round(phonemes / (bins * BIN_SECONDS), 2),
            "crossings_per_bin": round(self.crossings / bins, 3),
        }


def _watch(participant: Participant, tally: _Tally, advance) -> Iterator[RawTrial]:
    for trial in participant:
        tally.add(trial, participant.form.threshold)
        yield trial
        advance(1)


def _read_sentences(file: Path) -> list[str]:
    from neuro import DataError

    try:
        lines = [line.strip() for line in file.read_text(encoding="utf-8").splitlines()]
    except UnicodeDecodeError:
        raise DataError("the text file is not UTF-8", file=file) from None
    sentences = [line for line in lines if line]
    if not sentences:
        raise DataError("no sentence in the text file", file=file, expected="one sentence a line")
    return sentences


def _pronounceable(sentences: list[str], lexicon: Lexicon, unknown: str) -> list[str] | None:
    """The sentences without unknown words; None, after a report of every one, when there are some and we must stop."""
    from neuro import DataError
    from neuro.text import words

    missing = lexicon.unknown(sentences)
    faulty = {sentence for where in missing.values() for sentence in where}
    faulty |= {sentence for sentence in sentences if not words(sentence)}
    if not faulty:
        return sentences
    for word, where in missing.items():
        for sentence in where:
            sys.stderr.write(f"no pronunciation for {word!r} in: {sentence}\n")
    for sentence in sentences:
        if sentence in faulty and not words(sentence):
            sys.stderr.write(f"no word in: {sentence}\n")
    if unknown == "stop":
        sys.stderr.write(
            f"ranvier simulate: {len(faulty)} of {len(sentences)} sentences cannot be pronounced; add the words with "
            "--lexicon FILE, or leave these sentences out with --unknown skip\n"
        )
        return None
    kept = [sentence for sentence in sentences if sentence not in faulty]
    sys.stderr.write(f"left out the sentences above: {len(sentences) - len(kept)} of {len(sentences)}\n")
    if not kept:
        raise DataError("no sentence is left", expected="sentences of known words")
    return kept


def _arguments(args: argparse.Namespace) -> str:
    parts = [f"--format {args.format}", f"--sessions {args.sessions}", f"--trials {args.trials}", f"--seed {args.seed}"]
    parts.append(f"--setting {args.setting}")
    parts += [] if args.tuning_gain is None else [f"--tuning-gain {args.tuning_gain}"]
    parts += [f"--pace {args.pace}"] if args.pace else []
    parts += [f"--text {args.text.name}"] if args.text else []
    parts += [f"--lexicon {args.lexicon.name}"] if args.lexicon else []
    parts += [f"--unknown {args.unknown}"] if args.text else []
    return " ".join(parts)


def _report(
    args: argparse.Namespace, participant: Participant, tally: _Tally, summary: dict[str, Any], seconds: float
) -> None:
    if args.json:
        sys.stdout.write(
            json.dumps(summary | {"folder": str(args.folder), "seconds": round(seconds, 1)}, indent=2) + "\n"
        )
        return
    from rich.console import Console
    from rich.table import Table

    name = participant.setting_name
    table = Table(title=f"SIMULATED participant, {args.format} form, setting {name}, seed {args.seed}")
    splits = [split for split in ("train", "val", "test") if any(tally.trials[s][split] for s in tally.trials)]
    table.add_column("session")
    for column in (*splits, "bins a trial", "phonemes a trial"):
        table.add_column(column, justify="right")
    for session, counted in tally.trials.items():
        n = counted.total()
        cells = [str(counted[split]) for split in splits]
        table.add_row(session, *cells, f"{tally.bins[session] / n:.0f}", f"{tally.phonemes[session] / n:.1f}")
    overall = summary["summary"]
    console = Console()
    console.print(table)
    console.print(
        f"{overall['trials']} trials, {overall['phonemes_per_second']} phonemes per second, "
        f"{overall['crossings_per_bin']} crossings per bin at {participant.form.threshold} x RMS, {seconds:.0f} s",
        highlight=False,
        markup=False,
        soft_wrap=True,
    )
    console.print(
        "The data are simulated; no recording of any person is in them. "
        f"Written to {args.folder}, settings in {INFO_FILE}.",
        highlight=False,
        markup=False,
        soft_wrap=True,
    )
