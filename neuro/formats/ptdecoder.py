"""The pickled ``ptDecoder_ctc`` form of the '24 competition, read without running anything that is in the pickle.

A dictionary of splits; each a list with one entry per day, itself a dictionary of lists with one entry per trial, or
None where a day has no such split. Two spellings are in use: ``train, test, competition`` with ``transcriptions``
(cffan/neural_seq_decoder) and ``train, val, test`` with ``text`` (ebrahimfeghhi/brainaudio). The features are z-scored
already.

The pickle knows sessions only by their position, so they are called ``ptdecoder.day00``, ``ptdecoder.day01``, ... in
the order of the training list. A pickle is read whole, and every process that is not forked reads it again: convert it
once to the '25 form (`neuro.convert`).
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from neuro.errors import DataError
from neuro.formats.base import SPLITS, Format, Source, TrialRef, check_features, check_labels, check_normalize
from neuro.formats.safe_pickle import load
from neuro.trial import Trial

COMPETITION_DAYS = (4, 5, 6, 7, 8, 9, 10, 12, 13, 14, 15, 16, 18, 19, 20)
"""Days of the 24 that the 15 entries of the official competition list stand for (printed in its notebook)."""

_ALIASES = {
    "features": ("sentenceDat", "features", "neural"),
    "sentence": ("transcriptions", "transcription", "text", "sentences"),
    "phonemes": ("phonemes", "phoneme"),
    "frames": ("timeSeriesLens", "timeSeriesLen"),
    "n_labels": ("phoneLens", "phoneLen", "phonemeLens"),
}
"""Our name of a field -> its spellings in the wild."""

_SUFFIXES = (".pkl", ".pickle")


def detect(path: Path) -> Path | None:
    """`path`, when it is a file that starts like a pickle or is called like one."""
    if not path.is_file():
        return None
    with path.open("rb") as file:
        start = file.read(2)
    looks_binary = len(start) == 2 and start[0] == 0x80 and start[1] <= pickle.HIGHEST_PROTOCOL
    return path if looks_binary or path.suffix.lower() in _SUFFIXES or "ptdecoder" in path.name.lower() else None


class PtDecoderSource(Source):
    """Trials of a ``ptDecoder_ctc`` pickle, held in memory.

    Parameters
    ----------
    path
        The pickle.
    normalize
        ``auto`` and ``none`` hand the features out as stored; ``block`` is impossible, for want of block numbers.
    competition_days
        Day index of every entry of a competition list that is shorter than the training list. By default the official
        table, for 15 entries out of 24 days.

    Raises
    ------
    DataError
        If the pickle would run code, is damaged, or does not have the expected layout.
    """

    form = "ptdecoder"
    normalized = True

    def __init__(self, path: Path, *, normalize: str = "auto", competition_days: Sequence[int] | None = None) -> None:
        if check_normalize(normalize) == "block":
            raise DataError(
                "block z-score needs block numbers, and the ptDecoder form has none",
                file=path,
                field="normalize",
                found="block",
                expected="auto or none (its features are z-scored already)",
            )
        self.path, self.competition_days = path, competition_days
        self._days: dict[str, dict[int, dict]] | None = None
        self.refs = []
        days = self._contents()
        n_days = 1 + max(day for split in days.values() for day in split)
        width = max(2, len(str(n_days - 1)))
        self.sessions = [f"ptdecoder.day{day:0{width}d}" for day in range(n_days)]
        for day, session in enumerate(self.sessions):
            for split in SPLITS:
                for i in range(len(self._column(split, day, "features") or ()) if day in days[split] else 0):
                    self.refs.append(TrialRef(session, split, f"{session}/{split}/trial_{i:04d}"))
        if not self.refs:
            raise DataError("recording without a single trial", file=path)
        self.n_channels = self._features(self.refs[0]).shape[-1]
        self._labelled = {
            split: all(self.labels(ref) is not None for ref in self.refs if ref.split == split)
            if split == "test"
            else True
            for split in SPLITS
        }

    def __getstate__(self) -> dict:
        return {**self.__dict__, "_days": None}  # gigabytes; the other process reads the file itself

    def _contents(self) -> dict[str, dict[int, dict]]:
        if self._days is None:
            self._days = _by_day(load(self.path), self.path, self.competition_days)
        return self._days

    def _column(self, split: str, day: int, name: str) -> Any:
        """The list of a field over a day's trials; None where the pickle does not have it."""
        entry = self._contents()[split][day]
        spelling = next((key for key in _ALIASES[name] if key in entry), None)
        if spelling is None and name in ("features", "frames"):
            raise DataError(
                "field missing",
                file=self.path,
                trial=f"{split}, day {day}",
                field=_ALIASES[name][0],
                found=", ".join(map(str, entry)),
            )
        return None if spelling is None else entry[spelling]

    def _value(self, ref: TrialRef, name: str) -> Any:
        column = self._column(ref.split, self.sessions.index(ref.session), name)
        i = int(ref.name.rsplit("_", 1)[1])
        if column is None:
            return None
        if not hasattr(column, "__len__") or i >= len(column):
            raise DataError("list shorter than the number of trials", file=self.path, trial=ref.key, field=name)
        return column[i]

    def _features(self, ref: TrialRef) -> np.ndarray:
        features = np.asarray(self._value(ref, "features"))
        if features.ndim != 2 or features.dtype.kind not in "buif":
            return check_features(features, -1, file=self.path, trial=ref.key, field="sentenceDat")  # raises
        return features

    def _whole(self, ref: TrialRef, name: str) -> int:
        value = self._value(ref, name)
        try:
            return int(np.asarray(value).reshape(()))
        except (TypeError, ValueError):
            raise DataError(
                "not a number", file=self.path, trial=ref.key, field=_ALIASES[name][0], found=repr(value)
            ) from None

    def labelled(self, split: str) -> bool:
        """Whether the trials of the split carry labels."""
        return self._labelled[split]

    def length(self, ref: TrialRef) -> int:
        """Frames of the trial."""
        return len(self._features(ref))

    def labels(self, ref: TrialRef) -> np.ndarray | None:
        """Phoneme ids; None for test trials without labels, or with the lone SIL that a redacted sentence gives."""
        ids = self._value(ref, "phonemes")
        values = None if ids is None else np.asarray(ids).reshape(-1)
        if ref.split == "test" and (values is None or np.count_nonzero(values) <= 1):
            return None
        if values is None:
            raise DataError("trial without labels in a split that needs them", file=self.path, trial=ref.key)
        zeros = np.flatnonzero(values == 0)
        first_zero = int(zeros[0]) if len(zeros) else len(values)
        n_labels = first_zero if self._value(ref, "n_labels") is None else self._whole(ref, "n_labels")
        return check_labels(values, n_labels, file=self.path, trial=ref.key, field="phonemes")

    def read(self, ref: TrialRef) -> Trial:
        """The whole trial, checked. Its block is -1; its number is the position in the day's list."""
        features = self._features(ref)
        features = check_features(features, self.n_channels, file=self.path, trial=ref.key, field="sentenceDat")
        if (stated := self._whole(ref, "frames")) != len(features):
            raise DataError(
                "timeSeriesLens disagrees with the data",
                file=self.path,
                trial=ref.key,
                field="timeSeriesLens",
                found=stated,
                expected=len(features),
            )
        labels = self.labels(ref)
        return Trial(
            features=features,
            phonemes=labels,
            sentence=None if labels is None else _sentence(self._value(ref, "sentence")),
            session=ref.session,
            block=-1,
            trial=int(ref.name.rsplit("_", 1)[1]),
            split=ref.split,
            key=ref.key,
        )


def _by_day(contents: Any, path: Path, competition_days: Sequence[int] | None) -> dict[str, dict[int, dict]]:
    """split -> day -> the day's dictionary, whichever spelling the pickle uses."""
    if not isinstance(contents, dict) or "train" not in contents:
        found = ", ".join(map(str, contents)) if isinstance(contents, dict) else type(contents).__name__
        raise DataError("not a ptDecoder pickle", file=path, found=found, expected="a dictionary with train, test, ...")
    names = {"train": "train"}
    if "val" in contents:
        names |= {"val": "val", "test": "competition" if "competition" in contents else "test"}
    else:  # the official spelling, in which "test" is the validation split
        names |= {"val": "test", "test": "competition"}
    lists = {split: contents.get(name) or [] for split, name in names.items()}
    n_days = len(lists["train"])
    if n_days == 0:
        raise DataError("pickle without a training day", file=path)
    days: dict[str, dict[int, dict]] = {}
    for split, entries in lists.items():
        positions = _positions(len(entries), n_days, path, names[split], competition_days)
        days[split] = {day: entry for day, entry in zip(positions, entries, strict=True) if entry is not None}
        for day, entry in days[split].items():
            if not isinstance(entry, dict):
                raise DataError(
                    "day is not a dictionary", file=path, trial=f"{names[split]}, day {day}", found=type(entry).__name__
                )
    if not any(days.values()):
        raise DataError("recording without a single trial", file=path)
    return days


def _positions(
    n_entries: int, n_days: int, path: Path, name: str, competition_days: Sequence[int] | None
) -> Sequence[int]:
    """Day index of every entry of a list."""
    if n_entries in (0, n_days):
        return range(n_entries)
    known = competition_days
    if known is None and (n_entries, n_days) == (len(COMPETITION_DAYS), 24):
        known = COMPETITION_DAYS
    if known is None or len(known) != n_entries or not all(0 <= day < n_days for day in known):
        raise DataError(
            "cannot tell which days a list of the pickle stands for; pass competition_days",
            file=path,
            field=name,
            found=f"{n_entries} entries",
            expected=f"{n_days}, one for each training day (None where a day has none)",
        )
    return known


def _sentence(value: Any) -> str | None:
    """Text that may be str, bytes, or an array of character codes padded with zeros."""
    if value is None:
        return None
    if isinstance(value, bytes):
        return value.decode("utf-8", errors="replace").strip()
    if isinstance(value, np.ndarray) and value.dtype.kind in "ui":
        codes = value.reshape(-1).tolist()
        return "".join(map(chr, codes[: codes.index(0)] if 0 in codes else codes)).strip()
    return str(value).strip()


FORMAT = Format(
    looks_like="a ptDecoder_ctc pickle (a file)",
    detect=detect,
    open=PtDecoderSource,
)
