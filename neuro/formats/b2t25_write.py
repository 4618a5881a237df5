"""Writes the Brain-to-Text '25 form; see `neuro.formats.b2t25` for its layout."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterable
from datetime import date
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from neuro.errors import DataError
from neuro.formats.atomic import new_folder
from neuro.formats.base import SPLITS, check_features, check_labels, check_session_name, day_of
from neuro.formats.guarded import new_hdf5
from neuro.normalize import block_zscore
from neuro.trial import RawTrial, Trial

TREE = "hdf5_data_final"
TABLE = "t15_copyTaskData_description.csv"
LABEL_SIZE = 500
"""Length of the two padded label arrays of a trial."""

_CHUNK_FRAMES = 256


def write(
    trials: Iterable[RawTrial | Trial],
    root: Path | str,
    *,
    overwrite: bool = False,
    threshold: float = -4.5,
    test_labels: bool = False,
    compression: int = 1,
) -> Path:
    """Write recordings in the '25 form, so that it reads like the folder ``data`` of the official release.

    Trials are taken one at a time; one session is in memory at once. The folder appears only when it is complete.

    Parameters
    ----------
    trials
        All trials of a session must follow one another. Features of a `RawTrial` are ``[counts, power]``, z-scored
        over all trials of the session's block; those of a `Trial` are written as they are.
    root
        Folder to make.
    overwrite
        Replace an existing folder of recordings; the old one stays until the new one is complete.
    threshold
        Which crossing counts of a `RawTrial` to store.
    test_labels
        Also write the labels of the split ``test``; the official files do not have them.
    compression
        gzip level, 0..9.

    Returns
    -------
    Path
        `root`.

    Raises
    ------
    DataError
        If `root` exists and may not be replaced; if a trial is faulty or out of order; if the disk is full.
    """
    root = Path(root)
    with new_folder(root, overwrite=overwrite, replaceable=_is_tree) as partial:
        writer = _Writer(partial, threshold, test_labels, compression)
        for trial in trials:
            writer.add(trial)
        writer.finish()
    return root


def _is_tree(folder: Path) -> bool:
    return any(folder.glob(f"{TREE}/*/data_*.hdf5")) or any(folder.glob("*/data_*.hdf5"))


class _Writer:
    """Collects a session, writes it when the next one starts, and remembers the blocks for the table."""

    def __init__(self, root: Path, threshold: float, test_labels: bool, compression: int) -> None:
        self.root, self.threshold, self.test_labels = root, threshold, test_labels
        self.storage: dict[str, Any] = {"compression": "gzip", "compression_opts": compression, "shuffle": True}
        self.session: str | None = None
        self.done: set[str] = set()
        self.pending: list[tuple[RawTrial | Trial, np.ndarray]] = []
        self.n_channels: int | None = None
        # (session, block, corpus, is it training) -> (trials, largest trial number)
        self.blocks: dict[tuple[str, int, str, bool], tuple[int, int]] = {}

    def add(self, trial: RawTrial | Trial) -> None:
        if trial.session != self.session:
            self._write_session()
            if trial.session in self.done:
                raise DataError("trials of a session must follow one another", trial=_name(trial))
            check_session_name(trial.session, self.root)
            self.session = trial.session
        if trial.split not in SPLITS:
            raise DataError("unknown split", trial=_name(trial), found=repr(trial.split), expected=", ".join(SPLITS))
        features = _raw_features(trial, self.threshold) if isinstance(trial, RawTrial) else trial.features
        if self.n_channels is None:
            self.n_channels = features.shape[1]
        where: dict[str, Any] = {"file": self.root.parent, "trial": _name(trial), "field": "features"}
        self.pending.append((trial, check_features(features, self.n_channels, **where)))

    def finish(self) -> None:
        self._write_session()
        if not self.done:
            raise DataError("nothing to write: there is not a single trial")
        with (self.root / TABLE).open("w", encoding="utf-8", newline="") as file:
            _write_table(file, self.blocks)

    def _write_session(self) -> None:
        if self.session is None:
            return
        folder = self.root / TREE / self.session
        folder.mkdir(parents=True)
        features = self._normalized()
        for split in SPLITS:
            chosen = [i for i, (trial, _) in enumerate(self.pending) if trial.split == split]
            if chosen:
                with new_hdf5(folder / f"data_{split}.hdf5") as file:
                    for number, i in enumerate(chosen):
                        self._write_trial(file.create_group(f"trial_{number:04d}"), self.pending[i][0], features[i])
        self.done.add(self.session)
        self.pending.clear()

    def _normalized(self) -> list[np.ndarray]:
        """Features of the session: raw ones z-scored over their block, finished ones untouched."""
        raw = [i for i, (trial, _) in enumerate(self.pending) if isinstance(trial, RawTrial)]
        scored = block_zscore([self.pending[i][1] for i in raw], [self.pending[i][0].block for i in raw])
        features = [features for _, features in self.pending]
        for i, values in zip(raw, scored, strict=True):
            features[i] = values
        return features

    def _write_trial(self, group: h5py.Group, trial: RawTrial | Trial, features: np.ndarray) -> None:
        chunks = (min(len(features), _CHUNK_FRAMES), features.shape[1])
        group.create_dataset("input_features", data=features, chunks=chunks, **self.storage)
        group.attrs["n_time_steps"] = len(features)
        group.attrs["session"] = trial.session
        group.attrs["block_num"] = int(trial.block)
        group.attrs["trial_num"] = int(trial.trial)
        if trial.split != "test" or self.test_labels:
            self._write_labels(group, trial)
        corpus = trial.corpus or ""
        key = (trial.session, int(trial.block), corpus, trial.split == "train")
        count, largest = self.blocks.get(key, (0, -1))
        self.blocks[key] = (count + 1, max(largest, int(trial.trial)))

    def _write_labels(self, group: h5py.Group, trial: RawTrial | Trial) -> None:
        if trial.phonemes is None or trial.sentence is None:
            if trial.split == "test":
                return
            raise DataError("trial without labels in a split that needs them", trial=_name(trial), field="phonemes")
        where: dict[str, Any] = {"file": self.root.parent, "trial": _name(trial)}
        labels = check_labels(trial.phonemes, len(trial.phonemes), **where, field="phonemes")
        for field, size, limit in (("phonemes", len(labels), LABEL_SIZE), ("sentence", len(trial.sentence), 499)):
            if size > limit:
                raise DataError(
                    f"{field} too long for the '25 form", trial=_name(trial), found=size, expected=f"<= {limit}"
                )
        # Code points rather than bytes: the same as ASCII for ASCII, and nothing is lost where a prompt is not.
        codes = np.array([ord(character) for character in trial.sentence], np.int32)
        group.create_dataset("seq_class_ids", data=_padded(labels))
        group.create_dataset("transcription", data=_padded(codes))
        group.attrs["seq_len"] = len(labels)
        group.attrs["sentence_label"] = trial.sentence
        if trial.onsets is not None:
            group.create_dataset("phoneme_onsets", data=np.asarray(trial.onsets, np.int32))


def _raw_features(trial: RawTrial, threshold: float) -> np.ndarray:
    if threshold not in trial.counts:
        raise DataError(
            "no crossing counts at this threshold",
            trial=_name(trial),
            field="counts",
            found=sorted(trial.counts),
            expected=threshold,
        )
    counts = trial.counts[threshold]
    if len(counts) != len(trial.power):
        raise DataError(
            "counts and power differ in length", trial=_name(trial), found=len(trial.power), expected=len(counts)
        )
    return np.concatenate([counts, trial.power], axis=1, dtype=np.float32)


def _name(trial: RawTrial | Trial) -> str:
    return f"{trial.session}/{trial.split}, block {trial.block}, number {trial.trial}"


def _padded(values: np.ndarray) -> np.ndarray:
    padded = np.zeros(LABEL_SIZE, np.int32)
    padded[: len(values)] = values
    return padded


def _write_table(file, blocks: dict[tuple[str, int, str, bool], tuple[int, int]]) -> None:
    """The block table. Like the official one it counts sentences shown, which a gap in the trial numbers reveals.

    The post-implant day of a participant that never had an operation is the number of days since the first session.
    """
    writer = csv.writer(file)
    writer.writerow(["Date", "Post-implant day", "Block number", "Number of sentences", "Corpus", "Split"])
    dates = [day for session, *_ in blocks if (day := _date(session)) is not None]
    shown = Counter({key: max(count, largest + 1) for key, (count, largest) in blocks.items()})
    for session, block, corpus, training in sorted(blocks):
        if block < 0 or not corpus:
            continue
        day = _date(session)
        since = "" if day is None else (day - min(dates)).days
        split = "Train" if training else "Val/Test"
        writer.writerow([day_of(session), since, block, shown[session, block, corpus, training], corpus, split])


def _date(session: str) -> date | None:
    try:
        return date.fromisoformat(day_of(session))
    except ValueError:
        return None
