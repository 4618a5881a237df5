"""The Brain-to-Text '24 form: one MATLAB file per session and partition.

::

    competitionData/{train,test,competitionHoldOut}/t12.2022.04.28.mat
        sentenceText (N rows of text), blockIdx (N, 1), tx1..tx4 and spikePow: (1, N) cells, each (T, 256)

``test`` is our split ``val``, ``competitionHoldOut`` our ``test``; its sentences are redacted. Features are
``[tx1, spikePow]`` of columns 0..127 (area 6v), z-scored over each block as both official loaders do
(fwillett/speechBCI, cffan/neural_seq_decoder; Willett et al. 2023, Dryad 10.5061/dryad.x69p8czpq). Phonemes come from
the sentence.

MATLAB files cannot be read trial by trial: the first trial of a session loads all of it, and a few sessions are kept.
Reading in random order over all sessions is therefore slow. Converting once to the '25 form (`neuro.convert`, or
``ranvier convert``) is the fast road.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np

from neuro.errors import DataError
from neuro.formats.b2t24_write import PARTITIONS, write
from neuro.formats.base import (
    SPLITS,
    Format,
    Source,
    TrialRef,
    check_features,
    check_labels,
    check_normalize,
    check_session_name,
)
from neuro.formats.cache import ProcessCache
from neuro.lexicon import Lexicon
from neuro.normalize import apply_zscore, zscore_statistics
from neuro.trial import Trial

AREA_6V = range(128)
"""Columns of the two arrays in area 6v, which the official baselines use; 128..255 are in area 44."""

OPEN_SESSIONS = 3
"""Session files kept in memory per process (about 150 MB each in the official set)."""


def detect(path: Path) -> Path | None:
    """The folder of partitions: `path`, or a ``competitionData`` in it or one level below."""
    if not path.is_dir():
        return None
    for candidates in ([path], sorted(path.glob("competitionData")), sorted(path.glob("*/competitionData"))):
        for folder in candidates:
            if any(_mat_files(folder / partition) for partition in PARTITIONS.values()):
                return folder
    return None


def _mat_files(folder: Path) -> list[Path]:
    # Archives made on a Mac carry a hidden ._ twin of every file.
    return [file for file in sorted(folder.glob("*.mat")) if not file.name.startswith(".")]


@dataclass
class _Session:
    """One file in memory, in its own number types, with the statistics of its blocks as far as they were needed."""

    counts: list[np.ndarray]
    power: list[np.ndarray]
    sentences: list[str]
    blocks: np.ndarray
    numbers: np.ndarray
    statistics: dict[int, tuple[np.ndarray, np.ndarray]] = field(default_factory=dict)

    def raw(self, i: int, columns: Sequence[int] | slice) -> np.ndarray:
        return np.concatenate([self.counts[i][:, columns], self.power[i][:, columns]], axis=1, dtype=np.float32)


class B2T24Source(Source):
    """Trials of a '24 tree. Opening reads the headers of the files only.

    Parameters
    ----------
    root
        The folder of partitions.
    normalize
        ``auto`` and ``block`` z-score over all trials of a block; ``none`` hands out counts and uV^2.
    tx
        Which crossing counts to use: ``tx1`` (-3.5 x RMS, as the baselines) .. ``tx4`` (-6.5 x RMS).
    columns
        Electrodes to use, by column; None for all.
    lexicon
        Where pronunciations come from; the CMU dictionary by default.
    open_sessions
        How many files each process keeps in memory.

    Raises
    ------
    DataError
        For a session with an unknown kind of name, a file that MATLAB v5 readers cannot open, a missing variable, or
        variables that disagree in their number of trials.
    """

    form = "b2t24"

    def __init__(
        self,
        root: Path,
        *,
        normalize: str = "auto",
        tx: str = "tx1",
        columns: Sequence[int] | None = AREA_6V,
        lexicon: Lexicon | None = None,
        open_sessions: int = OPEN_SESSIONS,
    ) -> None:
        if tx not in ("tx1", "tx2", "tx3", "tx4"):
            raise DataError("unknown crossing counts", field="tx", found=repr(tx), expected="tx1, tx2, tx3 or tx4")
        self.root, self.tx, self.lexicon = root, tx, lexicon
        self.normalized = check_normalize(normalize) != "none"
        self.columns: Sequence[int] | slice = slice(None) if columns is None else list(columns)
        self._loaded: ProcessCache[_Session] = ProcessCache(open_sessions)
        self._loads = 0
        files = [(file, split) for split in SPLITS for file in _mat_files(root / PARTITIONS[split])]
        counts = {(check_session_name(file.stem, file), split): self._count(file) for file, split in files}
        self.sessions = sorted({session for session, _ in counts})
        self.refs = [
            TrialRef(session, split, f"{session}/{split}/trial_{i:04d}")
            for session in self.sessions
            for split in SPLITS
            for i in range(counts.get((session, split), 0))
        ]
        if not self.refs:
            raise DataError("recording without a single trial", file=root)
        self._width = None if columns is None else len(self.columns)  # type: ignore[arg-type]

    @property
    def n_channels(self) -> int:  # type: ignore[override]
        """Channels handed out. With ``columns=None`` this loads the first file, since its header does not tell."""
        if self._width is None:
            with self._session(self.refs[0]) as session:
                self._width = session.counts[0].shape[1]
        return 2 * self._width

    def _count(self, file: Path) -> int:
        """Trials of a file, from the headers of its variables."""
        from scipy.io import whosmat

        _check_complete(file)
        shapes = {name: shape for name, shape, _ in _read_mat(file, whosmat)}
        for name in (self.tx, "spikePow", "sentenceText", "blockIdx"):
            if name not in shapes:
                raise DataError(
                    "variable missing", file=file, field=name, found=", ".join(sorted(shapes)), expected=name
                )
        n_trials = int(np.prod(shapes[self.tx]))
        for name in ("spikePow", "blockIdx"):
            if int(np.prod(shapes[name])) != n_trials:
                raise DataError(
                    "variables disagree in their number of trials",
                    file=file,
                    field=name,
                    found=int(np.prod(shapes[name])),
                    expected=f"{n_trials} as in {self.tx}",
                )
        return n_trials

    def _path(self, ref: TrialRef) -> Path:
        return self.root / PARTITIONS[ref.split] / f"{ref.session}.mat"

    def _session(self, ref: TrialRef):
        path = self._path(ref)
        return self._loaded.use(path, partial(self._load, path))

    def _load(self, path: Path) -> _Session:
        from scipy.io import loadmat

        self._loads += 1
        if self._loads == 4 * len(self.sessions) + self._loaded.size:
            warnings.warn(
                "most of the time goes into loading whole '24 sessions again; convert them once with `ranvier convert`",
                stacklevel=2,
            )
        wanted = [self.tx, "spikePow", "sentenceText", "blockIdx"]
        values = _read_mat(path, partial(loadmat, variable_names=wanted))
        counts, power = (_cells(values[name], path, name) for name in (self.tx, "spikePow"))
        sentences = _sentences(values["sentenceText"])
        blocks = _blocks(values["blockIdx"], path)
        for name, found in (("spikePow", power), ("sentenceText", sentences), ("blockIdx", blocks)):
            if len(found) != len(counts):
                raise DataError(
                    "variables disagree in their number of trials",
                    file=path,
                    field=name,
                    found=len(found),
                    expected=f"{len(counts)} as in {self.tx}",
                )
        for i, (a, b) in enumerate(zip(counts, power, strict=True)):
            self._check_pair(a, b, path, f"trial_{i:04d}")
        numbers = np.zeros(len(blocks), np.int64)
        for block in np.unique(blocks):
            numbers[blocks == block] = np.arange((blocks == block).sum())
        return _Session(counts, power, sentences, blocks, numbers)

    def _check_pair(self, counts: np.ndarray, power: np.ndarray, path: Path, trial: str) -> None:
        at: dict[str, Any] = {"file": path, "trial": trial, "field": "spikePow"}
        if counts.shape != power.shape or counts.ndim != 2:
            raise DataError(f"{self.tx} and spikePow differ in shape", **at, found=power.shape, expected=counts.shape)
        needed = 1 + max(self.columns, default=0) if isinstance(self.columns, list) else 1
        if counts.shape[1] < needed:
            raise DataError("too few channels", **at, found=counts.shape[1], expected=f"at least {needed}")

    def labelled(self, split: str) -> bool:
        """Everything but the redacted ``competitionHoldOut`` carries labels."""
        return split != "test"

    def length(self, ref: TrialRef) -> int:
        """Frames of the trial; loads its session."""
        with self._session(ref) as session:
            return len(session.power[_index(ref)])

    def labels(self, ref: TrialRef) -> np.ndarray | None:
        """Phoneme ids of the sentence; loads its session."""
        if not self.labelled(ref.split):
            return None
        with self._session(ref) as session:
            return self._phonemes(session.sentences[_index(ref)], ref)

    def _phonemes(self, sentence: str, ref: TrialRef) -> np.ndarray:
        if self.lexicon is None:
            self.lexicon = Lexicon()
        path = self._path(ref)
        try:
            ids = np.array(self.lexicon.phonemes(sentence), np.int64)
        except DataError as error:  # says word and sentence; we know where
            raise DataError(error.problem, file=path, trial=ref.name, field="sentenceText") from error
        return check_labels(ids, len(ids), file=path, trial=ref.name, field="sentenceText")

    def read(self, ref: TrialRef) -> Trial:
        """The whole trial, checked; loads its session."""
        i, path = _index(ref), self._path(ref)
        with self._session(ref) as session:
            block = int(session.blocks[i])
            features = self._checked(session, i, path)
            if self.normalized:
                features = apply_zscore(features, *self._statistics(session, block, path))
            sentence = session.sentences[i] if self.labelled(ref.split) else None
            number = int(session.numbers[i])
        return Trial(
            features=features,
            phonemes=None if sentence is None else self._phonemes(sentence, ref),
            sentence=sentence,
            session=ref.session,
            block=block,
            trial=number,
            split=ref.split,
            key=ref.key,
        )

    def _checked(self, session: _Session, i: int, path: Path) -> np.ndarray:
        features = session.raw(i, self.columns)
        field = f"{self.tx}, spikePow"
        return check_features(features, self.n_channels, file=path, trial=f"trial_{i:04d}", field=field)

    def _statistics(self, session: _Session, block: int, path: Path) -> tuple[np.ndarray, np.ndarray]:
        if block not in session.statistics:
            trials = [self._checked(session, int(i), path) for i in np.flatnonzero(session.blocks == block)]
            session.statistics[block] = zscore_statistics(trials)
        return session.statistics[block]

    def sentences(self) -> dict[str, str]:
        """Sentence of every labelled trial by its key, without reading features."""
        from scipy.io import loadmat

        found: dict[str, str] = {}
        for path, session, split in dict.fromkeys((self._path(ref), ref.session, ref.split) for ref in self.refs):
            if self.labelled(split):
                texts = _sentences(_read_mat(path, partial(loadmat, variable_names=["sentenceText"]))["sentenceText"])
                found |= {f"{session}/{split}/trial_{i:04d}": text for i, text in enumerate(texts)}
        return found

    def __getstate__(self) -> dict:
        return {**self.__dict__, "_loads": 0}


def _index(ref: TrialRef) -> int:
    return int(ref.name.rsplit("_", 1)[1])


def _check_complete(file: Path) -> None:
    """Follow the sizes of a v5 file's variables to its end; scipy only notices a cut in a variable that it reads."""
    size = file.stat().st_size
    with file.open("rb") as raw:
        header = raw.read(128)
        order: Literal["little", "big"] = "little" if header[126:128] == b"IM" else "big"
        if header[124:126] != (b"\x00\x01" if order == "little" else b"\x01\x00"):
            return  # not v5: scipy has the words for it
        at = len(header)
        while at < size:
            raw.seek(at + 4)
            at += 8 + int.from_bytes(raw.read(4), order)
    if at != size:
        raise DataError(
            "not a complete MATLAB file; fetch it again", file=file, found=f"{size} bytes", expected=f"at least {at}"
        )


def _read_mat(file: Path, reader) -> Any:
    """Call one of scipy's readers, which fail in a dozen ways on a damaged file."""
    try:
        return reader(str(file))
    except MemoryError:
        raise
    except NotImplementedError as error:
        raise DataError("MATLAB v7.3 file", file=file, expected="MATLAB v5, as the official '24 files are") from error
    except Exception as error:
        raise DataError(
            "not a complete MATLAB file; fetch it again", file=file, found=f"{type(error).__name__}: {error}"
        ) from error


def _cells(value: np.ndarray, path: Path, name: str) -> list[np.ndarray]:
    """A (1, N) cell array as N arrays."""
    if value.dtype != object:
        raise DataError(
            "variable is not a cell array",
            file=path,
            field=name,
            found=f"{value.dtype} {value.shape}",
            expected="cells",
        )
    return list(value.reshape(-1))


def _sentences(value: np.ndarray) -> list[str]:
    """Rows of a character matrix, or a cell array of texts, without the blanks that pad them."""
    rows = np.asarray(value).reshape(-1)
    return [
        str(row if isinstance(row, str) else "".join(map(str, np.asarray(row).reshape(-1)))).strip() for row in rows
    ]


def _blocks(value: np.ndarray, path: Path) -> np.ndarray:
    value = np.asarray(value)
    if value.dtype.kind not in "buif" or not np.array_equal(value, np.trunc(value)):
        raise DataError("block numbers are not whole numbers", file=path, field="blockIdx", found=value.dtype)
    return value.reshape(-1).astype(np.int64)


FORMAT = Format(
    looks_like="a folder with competitionData/{train,test,competitionHoldOut}/<session>.mat ('24 form)",
    detect=detect,
    open=B2T24Source,
    write=write,
)
