"""The Brain-to-Text '25 form: one HDF5 file per session and split, one group per trial.

::

    data/
      t15_copyTaskData_description.csv
      hdf5_data_final/t15.2023.08.13/{data_train,data_val,data_test}.hdf5
          trial_0000/ input_features (T, 512) float32, block z-scored;  seq_class_ids (500,);  transcription (500,)
                      attributes n_time_steps, seq_len, session, block_num, trial_num, sentence_label

Test files have no labels. Layout after the README and loaders of Neuroprosthetics-Lab/nejm-brain-to-text (Card et al.
2024, Dryad 10.5061/dryad.dncjsxm85); the Kaggle archive nests it in ``t15_copyTask_neuralData``. Ours, when present, is
one more dataset per trial, ``phoneme_onsets`` (L,): the true first bin of every phoneme of a simulated trial.
"""

from __future__ import annotations

import csv
import warnings
from functools import partial
from pathlib import Path

import h5py
import numpy as np

from neuro.errors import DataError
from neuro.formats.b2t25_write import TREE, write
from neuro.formats.base import (
    SPLITS,
    Format,
    Source,
    TrialRef,
    check_features,
    check_labels,
    check_normalize,
    check_session_name,
    day_of,
)
from neuro.formats.cache import ProcessCache
from neuro.normalize import apply_zscore, zscore_statistics
from neuro.trial import Trial

OPEN_FILES = 16
"""Files kept open per process. A session has three; samplers draw a batch from a few sessions."""

_FILES = {split: f"data_{split}.hdf5" for split in SPLITS}


def detect(path: Path) -> Path | None:
    """The folder of session folders, looked for in `path` and up to two levels below it."""
    if not path.is_dir():
        return None
    if _is_session(path):
        raise DataError(
            "this is the folder of a single session", file=path, expected=f"the folder that holds it, {path.parent}"
        )
    for candidates in ([path], *(sorted(path.glob(f"{up}{TREE}")) for up in ("", "*/", "*/*/"))):
        found = [folder for folder in candidates if any(_session_folders(folder))]
        if len(found) > 1:
            raise DataError("more than one recording here", file=path, found=", ".join(map(str, found)), expected="one")
        if found:
            return found[0]
    return None


def _is_session(folder: Path) -> bool:
    return folder.is_dir() and any(not file.name.startswith(".") for file in folder.glob("data_*.hdf5"))


def _session_folders(folder: Path) -> list[Path]:
    return [sub for sub in sorted(folder.iterdir()) if not sub.name.startswith(".") and _is_session(sub)]


class B2T25Source(Source):
    """Trials of a '25 tree. Opening lists the names of the trials and reads no features.

    Parameters
    ----------
    root
        The folder of session folders.
    normalize
        ``auto`` and ``none`` hand the features out as stored, which in this form is z-scored. ``block`` z-scores them
        again over all trials of their block, for trees that hold something else.
    open_files
        How many HDF5 files each process keeps open.

    Raises
    ------
    DataError
        For a session with an unknown kind of name, a file that is no complete HDF5 file, sessions that differ in their
        number of channels, or a tree without a trial.
    """

    form = "b2t25"
    normalized = True

    def __init__(self, root: Path, *, normalize: str = "auto", open_files: int = OPEN_FILES) -> None:
        self.root = root
        self.normalize = check_normalize(normalize)
        self._handles: ProcessCache[h5py.File] = ProcessCache(open_files, h5py.File.close)
        self._blocks: ProcessCache[tuple[np.ndarray, np.ndarray]] = ProcessCache(256)
        self._corpora = read_block_table(root)
        self.sessions, self.refs, self._labelled = [], [], dict.fromkeys(SPLITS, True)
        channels: tuple[int, Path] | None = None
        for folder in _session_folders(root):
            self.sessions.append(check_session_name(folder.name, folder))
            _warn_of_strangers(folder)
            for split in SPLITS:
                if (folder / _FILES[split]).exists():
                    channels = self._list(folder.name, split, channels)
        if channels is None:
            raise DataError("recording without a single trial", file=root)
        self.n_channels = channels[0]

    def _list(self, session: str, split: str, channels: tuple[int, Path] | None) -> tuple[int, Path] | None:
        """Add the trials of one file; compare its first trial with the files before."""
        path = self._path(session, split)
        with open_hdf5(path) as file:
            names = sorted(name for name in file if name.startswith("trial_"))
            self.refs += [TrialRef(session, split, f"{session}/{split}/{name}") for name in names]
            if not names:
                return channels
            first = file[names[0]]
            self._labelled[split] &= "seq_class_ids" in first
            stated = _text(first.attrs["session"]) if "session" in first.attrs else session
            if stated != session:
                warnings.warn(f"{path}: its trials say session {stated}; the folder's name is used", stacklevel=2)
            shape = _dataset(first, "input_features", path, names[0]).shape
        if len(shape) == 2 and channels is None:
            return shape[1], path
        if len(shape) == 2 and channels is not None and shape[1] != channels[0]:
            raise DataError(
                "sessions differ in their number of channels",
                file=path,
                trial=names[0],
                field="input_features",
                found=shape[1],
                expected=f"{channels[0]} as in {channels[1]}",
            )
        return channels

    def _path(self, session: str, split: str) -> Path:
        return self.root / session / _FILES[split]

    def labelled(self, split: str) -> bool:
        """Whether the first trial of every file of the split carries labels."""
        return self._labelled[split]

    def _file(self, ref: TrialRef):
        path = self._path(ref.session, ref.split)
        return self._handles.use(path, partial(open_hdf5, path))

    def length(self, ref: TrialRef) -> int:
        """Frames of the trial, from its attribute ``n_time_steps``, which must agree with the data."""
        path = self._path(ref.session, ref.split)
        with self._file(ref) as file:
            group = _group(file, ref, path)
            frames = _dataset(group, "input_features", path, ref.name).shape[:1]
            return _check_stated(group, frames[0] if frames else 0, path, ref.name)

    def labels(self, ref: TrialRef) -> np.ndarray | None:
        """Phoneme ids, without reading features."""
        path = self._path(ref.session, ref.split)
        with self._file(ref) as file:
            return _labels(_group(file, ref, path), ref, path)

    def read(self, ref: TrialRef) -> Trial:
        """The whole trial, checked."""
        path, name = self._path(ref.session, ref.split), ref.name
        with self._file(ref) as file:
            group = _group(file, ref, path)
            features = self._features(group, path, name)
            labels = _labels(group, ref, path)
            sentence = None if labels is None else _sentence(group, path, name)
            block, trial = (_number(group, field, path, name) for field in ("block_num", "trial_num"))
            onsets = _onsets(group, labels, path, name)
        if self.normalize == "block":
            features = apply_zscore(features, *self._block_statistics(ref.session, block))
        return Trial(
            features=features,
            phonemes=labels,
            sentence=sentence,
            session=ref.session,
            block=block,
            trial=trial,
            split=ref.split,
            key=ref.key,
            corpus=self._corpora.get((day_of(ref.session), block)),
            onsets=onsets,
        )

    def _features(self, group: h5py.Group, path: Path, name: str) -> np.ndarray:
        values = _values(_dataset(group, "input_features", path, name), path, name)
        features = check_features(values, self.n_channels, file=path, trial=name, field="input_features")
        _check_stated(group, len(features), path, name)
        return features

    def _block_statistics(self, session: str, block: int) -> tuple[np.ndarray, np.ndarray]:
        def measure() -> tuple[np.ndarray, np.ndarray]:
            trials = []
            for ref in (ref for ref in self.refs if ref.session == session):
                path = self._path(session, ref.split)
                with self._file(ref) as file:
                    group = _group(file, ref, path)
                    if _number(group, "block_num", path, ref.name) == block:
                        trials.append(self._features(group, path, ref.name))
            return zscore_statistics(trials)

        with self._blocks.use((session, block), measure) as statistics:
            return statistics


def open_hdf5(path: Path) -> h5py.File:
    """Open an HDF5 file for reading, without a lock where the file system (often a shared one) has none.

    Raises
    ------
    DataError
        If the file is missing, may not be read, or is not a complete HDF5 file.
    """
    try:
        return _open(path)
    except FileNotFoundError:
        raise DataError("file not found", file=path) from None
    except PermissionError:
        raise DataError("no permission to read the file", file=path) from None
    except IsADirectoryError:
        raise DataError("a folder where a file should be", file=path, expected="an HDF5 file") from None
    except OSError as error:
        raise DataError(
            "not a complete HDF5 file; fetch it again", file=path, found=str(error), expected="a readable HDF5 file"
        ) from error


def _open(path: Path) -> h5py.File:
    # HDF5 opens a file twice in a process only with the same idea of locks both times, whatever the other opener had.
    *wishes, last = (None, False, True, "best-effort")
    for locking in wishes:
        try:
            return _read(path, locking)
        except OSError as error:
            if "lock" not in str(error):
                raise
    return _read(path, last)


def _read(path: Path, locking: bool | str | None) -> h5py.File:
    # Trials are read whole, so a chunk cache would only hold memory.
    return h5py.File(path, "r", rdcc_nbytes=0, locking=locking)


def read_block_table(root: Path) -> dict[tuple[str, int], str]:
    """Corpus of every (date, block) from the ``*copyTaskData_description.csv`` near a tree; empty without one.

    A block that the table gives more than one corpus has none, because the table does not say which trial is which.
    """
    near = [root, root.parent] + ([root.parent.parent] if root.parent.name == "t15_copyTask_neuralData" else [])
    tables = [table for folder in near for table in sorted(folder.glob("*copyTaskData_description.csv"))]
    tables = [table for table in tables if not table.name.startswith(".")]
    if not tables:
        return {}
    corpora: dict[tuple[str, int], set[str]] = {}
    with tables[0].open(encoding="utf-8-sig", newline="", errors="replace") as lines:
        for row in csv.DictReader(lines):
            try:
                key = (row["Date"].strip(), int(float(row["Block number"])))
                corpora.setdefault(key, set()).add(row["Corpus"].strip())
            except (KeyError, TypeError, ValueError, AttributeError):
                continue  # the table only adds a remark to a trial; a faulty row of it is no reason to stop
    return {key: names.pop() for key, names in corpora.items() if len(names) == 1}


def _warn_of_strangers(folder: Path) -> None:
    strangers = {file.name for file in folder.glob("data_*.hdf5")} - set(_FILES.values())
    if strangers:
        warnings.warn(f"{folder}: left out {', '.join(sorted(strangers))}, which is no known split", stacklevel=2)


def _group(file: h5py.File, ref: TrialRef, path: Path) -> h5py.Group:
    try:
        return file[ref.name]
    except (KeyError, OSError, RuntimeError) as error:
        raise DataError("trial cannot be read", file=path, trial=ref.name, found=str(error)) from error


def _check_stated(group: h5py.Group, frames: int, path: Path, name: str) -> int:
    """Number of frames, which must be what the trial says."""
    stated = _number(group, "n_time_steps", path, name)
    if stated != frames:
        raise DataError(
            "n_time_steps disagrees with the data",
            file=path,
            trial=name,
            field="n_time_steps",
            found=stated,
            expected=f"{frames}, the frames of input_features",
        )
    return stated


def _dataset(group: h5py.Group, field: str, path: Path, name: str) -> h5py.Dataset:
    item = group.get(field)
    if not isinstance(item, h5py.Dataset):
        raise DataError("dataset missing", file=path, trial=name, field=field)
    return item


def _values(dataset: h5py.Dataset, path: Path, name: str) -> np.ndarray:
    try:
        return np.asarray(dataset[()])
    except (OSError, RuntimeError) as error:  # a damaged chunk
        raise DataError(
            "dataset is damaged", file=path, trial=name, field=dataset.name.rsplit("/", 1)[1], found=str(error)
        ) from error


def _number(group: h5py.Group, field: str, path: Path, name: str) -> int:
    """A whole-number attribute; numpy scalars, one-element arrays and digits in text all pass."""
    if field not in group.attrs:
        raise DataError("attribute missing", file=path, trial=name, field=field)
    value = group.attrs[field]
    try:
        number = int(np.asarray(value).reshape(()) if np.size(value) == 1 else value)
    except (TypeError, ValueError):
        raise DataError(
            "attribute is not a number", file=path, trial=name, field=field, found=repr(value), expected="an integer"
        ) from None
    return number


def _labels(group: h5py.Group, ref: TrialRef, path: Path) -> np.ndarray | None:
    if ref.split == "test" and "seq_class_ids" not in group:
        return None
    ids = _values(_dataset(group, "seq_class_ids", path, ref.name), path, ref.name)
    n_labels = _number(group, "seq_len", path, ref.name)
    return check_labels(ids, n_labels, file=path, trial=ref.name, field="seq_class_ids")


def _sentence(group: h5py.Group, path: Path, name: str) -> str:
    """The prompt from ``sentence_label``, or from the character codes where a re-export dropped that attribute."""
    if "sentence_label" in group.attrs:
        return _text(group.attrs["sentence_label"])
    if "transcription" not in group:
        raise DataError("attribute missing", file=path, trial=name, field="sentence_label")
    codes = _values(_dataset(group, "transcription", path, name), path, name).reshape(-1).astype(np.int64)
    zeros = np.flatnonzero(codes == 0)
    codes = codes[: zeros[0]] if len(zeros) else codes
    if ((codes < 0) | (codes > 0x10FFFF)).any():
        raise DataError(
            "character code outside the alphabet", file=path, trial=name, field="transcription", found=codes.min()
        )
    return "".join(map(chr, codes)).strip()


def _onsets(group: h5py.Group, labels: np.ndarray | None, path: Path, name: str) -> np.ndarray | None:
    if labels is None or "phoneme_onsets" not in group:
        return None
    onsets = _values(_dataset(group, "phoneme_onsets", path, name), path, name).astype(np.int64)
    if onsets.shape != labels.shape:
        raise DataError(
            "number of onsets disagrees with the labels",
            file=path,
            trial=name,
            field="phoneme_onsets",
            found=onsets.shape,
            expected=labels.shape,
        )
    return onsets


def _text(value: object) -> str:
    """Text of an attribute that may be str, bytes, or an array of one of them."""
    if isinstance(value, np.ndarray):
        value = value.reshape(-1)[0] if value.size else ""
    if isinstance(value, bytes):
        return value.decode("utf-8", errors="replace").strip()
    return "" if isinstance(value, h5py.Empty) else str(value).strip()


FORMAT = Format(
    looks_like="a folder with hdf5_data_final/<session>/data_train.hdf5 ('25 form)",
    detect=detect,
    open=B2T25Source,
    write=write,
)
