"""A folder of recorded speech as trials: every recording goes through the cochlea, one session a speaker.

The counts of auditory nerve spikes stand where threshold crossings stand in a recording from cortex, the channels'
envelopes where spike-band power stands. So whatever trains on the Brain-to-Text form trains on recorded speech.
"""

from __future__ import annotations

import csv
import re
import warnings
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

import numpy as np
import soundfile

from neuro.cochlea import Cochlea
from neuro.errors import DataError
from neuro.lexicon import Lexicon
from neuro.text import words
from neuro.trial import THRESHOLDS, RawTrial

COUNTS_KEY = THRESHOLDS[1]
"""Where the spike counts go in `neuro.RawTrial.counts`: what the '25 form stores."""

TRANSCRIPTS = ("transcripts.csv", "transcripts.tsv", "transcripts.txt")
DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
BLOCK_SIZE = 50
_DIGIT_NAME = re.compile(r"(\d)_([^_]+)_(\d+)\.wav", re.IGNORECASE)
_OFFICIAL_TEST = 5  # recordings 0-4 of every digit and speaker are the official test set of the spoken digits
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]+")
FOLDERS_WITHOUT_A_NAME = {"recordings", "wav", "wavs", "audio", "clips", "data"}


@dataclass(frozen=True)
class Recording:
    """One sound file of a folder.

    Attributes
    ----------
    path : Path
    speaker, text : str
    validation : bool or None
        Whether the data set itself says that it is for validation; None where it does not say.
    """

    path: Path
    speaker: str
    text: str
    validation: bool | None = None


def list_recordings(folder: Path | str) -> list[Recording]:
    """Recordings of a folder, in the order in which they were made.

    Two layouts are known: a table ``transcripts.csv`` (or .tsv, .txt; commas, semicolons or tabs) with the columns
    FILE, SPEAKER, TEXT beside the sound files, its rows in recording order; and names ``digit_speaker_index.wav``, as
    in the Free Spoken Digit Dataset (whose folder may be named, or its folder ``recordings``), where recordings 0-4
    are the official test set.

    Raises
    ------
    DataError
        If the folder is missing or holds neither layout, or the table is faulty (names the line).
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise DataError("folder of recorded speech not found", file=folder)
    for reader in LAYOUTS.values():
        if found := reader(folder):
            return found
    raise DataError(
        "no recorded speech here",
        file=folder,
        expected=f"{TRANSCRIPTS[0]} with the columns FILE, SPEAKER, TEXT, or files named digit_speaker_index.wav",
    )


def _from_table(folder: Path) -> list[Recording]:
    table = next((folder / name for name in TRANSCRIPTS if (folder / name).is_file()), None)
    if table is None:
        return []
    try:
        lines = table.read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise DataError("table is not UTF-8 text", file=table, found=str(error)) from None
    header = lines[0] if lines else ""
    separator = max("\t,;", key=header.count)
    columns = [name.strip().lower() for name in header.split(separator)]
    missing = [name for name in ("file", "speaker", "text") if name not in columns]
    if missing:
        raise DataError(
            f"table without the column {', '.join(missing).upper()}",
            file=table,
            found=repr(header),
            expected="FILE, SPEAKER, TEXT",
        )
    found = []
    for number, row in enumerate(csv.reader(lines[1:], delimiter=separator), start=2):
        if not any(cell.strip() for cell in row):
            continue
        cells = {name: cell.strip() for name, cell in zip(columns, row, strict=False)}
        name, speaker, text = (cells.get(column, "") for column in ("file", "speaker", "text"))
        where = f"line {number}"
        if len(row) != len(columns) or not (name and speaker and text):
            raise DataError(
                "table row without file, speaker and text", file=table, field=where, found=repr(separator.join(row))
            )
        if not (folder / name).is_file():
            raise DataError("recording not found", file=folder / name, field=f"{where} of {table.name}")
        found.append(Recording(folder / name, speaker, text))
    if not found:
        raise DataError("table without a single recording", file=table)
    return found


def _from_digits(folder: Path) -> list[Recording]:
    if (folder / "recordings").is_dir():  # a clone of the repository
        folder = folder / "recordings"
    matches = [(match, path) for path in folder.iterdir() if (match := _DIGIT_NAME.fullmatch(path.name))]
    if not matches:
        return []
    strangers = sorted({path.name for path in folder.glob("*.wav")} - {path.name for _, path in matches})
    if strangers:
        warnings.warn(
            f"{folder}: left out {len(strangers)} files not named digit_speaker_index.wav, such as {strangers[0]}",
            stacklevel=3,
        )
    # One round over the ten digits after the other, as the speakers read them.
    matches.sort(key=lambda pair: (pair[0][2], int(pair[0][3]), int(pair[0][1])))
    return [
        Recording(path, match[2], DIGITS[int(match[1])], validation=int(match[3]) < _OFFICIAL_TEST)
        for match, path in matches
    ]


LAYOUTS: dict[str, Callable[[Path], list[Recording]]] = {"transcripts": _from_table, "digits": _from_digits}
"""Ways in which recordings and their words lie in a folder; the first that finds something is taken."""


def read_sound(path: Path | str) -> tuple[np.ndarray, int]:
    """Samples float32 (S,) in -1..1 and the sample rate in Hz; several channels are averaged.

    Raises
    ------
    DataError
        If the file is missing, is no sound file, is empty, or holds samples that are not finite.
    """
    path = Path(path)
    if not path.is_file():
        raise DataError("recording not found", file=path)
    try:
        samples, rate = soundfile.read(path, dtype="float32", always_2d=True)
    except (soundfile.SoundFileError, OSError) as error:
        raise DataError("not a sound file that can be read", file=path, found=str(error)) from None
    if len(samples) == 0:
        raise DataError("recording without a single sample", file=path)
    if not np.isfinite(samples).all():
        raise DataError("recording with samples that are not finite", file=path)
    return samples.mean(axis=1), rate


@dataclass(frozen=True)
class SpeechConversion:
    """How a folder of recorded speech becomes trials.

    Parameters
    ----------
    folder
        See `list_recordings`.
    name
        First part of the session names, ``fsdd`` in ``fsdd.george``; by default the name of the folder, or of its
        parent where the folder is called ``recordings`` or the like.
    held_out
        Speakers all of whose recordings go to the split ``test``; none of them is in ``train`` or ``val``.
    cochlea
        The ear; by default 64 channels at the recordings' own sample rate.
    silence
        Seconds of digital silence before and after every recording.
    sample_rate
        Hz to which all recordings are brought. Without it, recordings that differ in sample rate are refused, because
        they differ in bandwidth.
    validation
        Share of each training speaker's recordings, the last ones, that goes to ``val`` where the data set itself does
        not name any.
    block_size
        Recordings in a block; the '25 form z-scores over blocks. A block never mixes splits.
    seed
        Of the spikes. Each recording has its own stream, so its spikes do not depend on what else is in the folder.
    lexicon
        Pronunciations; by default the CMU dictionary alone.

    Raises
    ------
    DataError
        On construction, if the folder is at fault, a held-out speaker is not in it or all are held out, a word is in
        no dictionary, or sample rates differ.
    """

    folder: Path
    name: str | None = None
    held_out: Sequence[str] = ()
    cochlea: Cochlea | None = None
    silence: float = 0.2
    sample_rate: int | None = None
    validation: float = 0.1
    block_size: int = BLOCK_SIZE
    seed: int = 0
    lexicon: Lexicon | None = None
    recordings: list[Recording] = field(init=False, repr=False)
    ear: Cochlea = field(init=False)

    def __post_init__(self) -> None:
        if not 0 <= self.silence <= 60:
            raise DataError("impossible silence", field="silence", found=self.silence, expected="0..60 seconds")
        if not 0 <= self.validation < 1:
            raise DataError("impossible share", field="validation", found=self.validation, expected="0 <= share < 1")
        if self.block_size < 1:
            raise DataError("impossible block", field="block_size", found=self.block_size, expected="at least 1")
        recordings = list_recordings(self.folder)
        _check_speakers(recordings, self.held_out, self.folder)
        rate = common_sample_rate(recordings) if self.sample_rate is None else self.sample_rate
        _check_words(recordings, self.lexicon or Lexicon())
        object.__setattr__(self, "recordings", recordings)
        object.__setattr__(self, "ear", self.cochlea or Cochlea(sample_rate=rate))

    @property
    def corpus(self) -> str:
        """First part of every session name."""
        if self.name is not None:
            return _safe(self.name)
        folder = Path(self.folder).resolve()
        return _safe(folder.parent.name if folder.name.lower() in FOLDERS_WITHOUT_A_NAME else folder.name)

    def __len__(self) -> int:
        return len(self.recordings)

    def __iter__(self) -> Iterator[RawTrial]:
        """Trials, session after session, each made when asked for.

        ``counts`` has one entry, under the threshold whose counts the '25 form stores.
        """
        lexicon = self.lexicon or Lexicon()
        by_speaker = sorted(self.recordings, key=lambda recording: recording.speaker)  # stable: keeps recording order
        for speaker, group in groupby(by_speaker, key=lambda recording: recording.speaker):
            recordings = list(group)
            splits = [split_of(r, i, len(recordings), self.held_out, self.validation) for i, r in enumerate(recordings)]
            for (recording, split), (block, number) in zip(
                zip(recordings, splits, strict=True), _blocks(splits, self.block_size), strict=True
            ):
                yield self._trial(recording, f"{self.corpus}.{_safe(speaker)}", split, block, number, lexicon)

    def _trial(
        self, recording: Recording, session: str, split: str, block: int, number: int, lexicon: Lexicon
    ) -> RawTrial:
        samples, rate = read_sound(recording.path)
        name = recording.path.relative_to(self.folder).as_posix()
        stream = np.random.SeedSequence([self.seed, zlib.crc32(name.encode())])
        counts, envelope = self.ear.encode(samples, rate, stream, silence=self.silence)
        return RawTrial(
            counts={COUNTS_KEY: counts},
            power=envelope,
            sentence=recording.text,
            phonemes=np.array(lexicon.phonemes(recording.text), dtype=np.int64),
            session=session,
            block=block,
            trial=number,
            split=split,
            corpus=self.corpus,
        )


def split_of(recording: Recording, position: int, total: int, held_out: Sequence[str], share: float) -> str:
    """Split of a speaker's recording number ``position`` of ``total``; see `SpeechConversion`."""
    if recording.speaker in held_out:
        return "test"
    last = max(1, round(total * share)) if share > 0 and total > 1 else 0
    in_validation = position >= total - last if recording.validation is None else recording.validation
    return "val" if in_validation else "train"


def _blocks(splits: Sequence[str], size: int) -> Iterator[tuple[int, int]]:
    """Block and number inside it for every trial of a session: runs of one split, cut to ``size``."""
    block = number = -1
    for position, split in enumerate(splits):
        if position == 0 or split != splits[position - 1] or number + 1 == size:
            block, number = block + 1, -1
        number += 1
        yield block, number


def _safe(name: str) -> str:
    return _NOT_IN_NAMES.sub("-", name.strip()).strip("-_") or "speech"


def _check_speakers(recordings: Sequence[Recording], held_out: Sequence[str], folder: Path) -> None:
    speakers = sorted({recording.speaker for recording in recordings})
    if unknown := sorted(set(held_out) - set(speakers)):
        raise DataError(
            "held-out speaker is not in the recordings",
            file=folder,
            found=", ".join(unknown),
            expected=f"some of {', '.join(speakers)}",
        )
    if len(set(held_out)) == len(speakers):
        raise DataError("every speaker is held out, so there is nothing to train on", file=folder)
    taken: dict[str, str] = {}
    for speaker in speakers:
        other = taken.setdefault(_safe(speaker), speaker)
        if other != speaker:
            raise DataError("two speakers get the same session name", file=folder, found=f"{other!r} and {speaker!r}")


def common_sample_rate(recordings: Iterable[Recording]) -> int:
    """The sample rate of all recordings, from their headers."""
    first: tuple[int, Path] | None = None
    for recording in recordings:
        try:
            rate = soundfile.info(recording.path).samplerate
        except (soundfile.SoundFileError, OSError) as error:
            raise DataError("not a sound file that can be read", file=recording.path, found=str(error)) from None
        if first is None:
            first = rate, recording.path
        elif rate != first[0]:
            raise DataError(
                "recordings differ in sample rate; name one to bring them all to it",
                file=recording.path,
                found=f"{rate} Hz",
                expected=f"{first[0]} Hz, as in {first[1].name}",
            )
    assert first is not None  # an empty folder was refused before
    return first[0]


def _check_words(recordings: Iterable[Recording], lexicon: Lexicon) -> None:
    texts = {recording.text: recording for recording in recordings}
    missing = lexicon.unknown(texts)
    if missing:
        word, sentences = next(iter(missing.items()))
        others = sorted(set(missing) - {word})
        raise DataError(
            f"no pronunciation for {word!r} in {sentences[0]!r}"
            + (f", nor for {', '.join(others[:10])}" if others else "")
            + (f" and {len(others) - 10} more" if len(others) > 10 else "")
            + "; add each to your own dictionary file as a line such as 'WORD  W ER D'",
            file=texts[sentences[0]].path,
        )
    for text, recording in texts.items():
        if not words(text):
            raise DataError("recording without a word", file=recording.path, found=repr(text))
