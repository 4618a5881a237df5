"""Brain-to-Text recordings of any form as one lazily read torch data set."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from torch.utils.data import Dataset

from neuro.errors import DataError
from neuro.formats import FORMATS, SPLITS, Source, TrialRef
from neuro.trial import Trial

T = TypeVar("T")


@contextmanager
def _faults_named(file: Path | None, trial: str | None = None) -> Iterator[None]:
    """Turn what a reader stumbles over in a file that is not as its form says into one sentence."""
    try:
        yield
    except DataError:
        raise
    except (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError) as error:
        raise DataError(
            "the recording is not as its form says", file=file, trial=trial, found=f"{type(error).__name__}: {error}"
        ) from error


class Recordings(Dataset[Trial]):
    """Trials of a recording, or of a part of it; each is read from disk, and checked, when it is asked for.

    Picklable, and safe in DataLoader workers however they are started: every process opens its own files, and keeps a
    bounded number of them open. Memory does not grow with the number of sessions.

    Attributes
    ----------
    sessions : list of str
        All sessions of the recording, sorted; the position is the day index. The same list for every view.
    refs : tuple of TrialRef
        What this view holds, sorted by session, split and name.
    splits : tuple of str
        The splits that this view has trials of, out of ``train, val, test``.
    n_channels : int
    has_labels : bool
        Whether every trial of this view carries phonemes. False for the '25 test split and the '24 hold-out.
    form : str
        ``b2t25``, ``b2t24`` or ``ptdecoder``.
    normalized : bool
        Whether the features are z-scored.

    Examples
    --------
    >>> recordings = open_recordings("data")                         # doctest: +SKIP
    >>> recordings.split("val")[0].features.shape                    # doctest: +SKIP
    (486, 512)
    """

    def __init__(self, source: Source, refs: Iterable[TrialRef] | None = None) -> None:
        self.source = source
        self.refs: tuple[TrialRef, ...] = tuple(source.refs if refs is None else refs)
        present = {ref.split for ref in self.refs}
        self.splits: tuple[str, ...] = tuple(split for split in SPLITS if split in present)

    @property
    def sessions(self) -> list[str]:
        """All sessions of the recording; the position is the day index."""
        return self.source.sessions

    @property
    def n_channels(self) -> int:
        """Columns of the features."""
        return self.source.n_channels

    @property
    def form(self) -> str:
        """Key in `neuro.formats.FORMATS`."""
        return self.source.form

    @property
    def normalized(self) -> bool:
        """Whether the features are z-scored."""
        return self.source.normalized

    @property
    def has_labels(self) -> bool:
        """Whether every trial of this view carries phonemes."""
        return all(self.source.labelled(split) for split in self.splits)

    def __len__(self) -> int:
        return len(self.refs)

    def __getitem__(self, index: int) -> Trial:
        return self._read(self.refs[index])

    def __iter__(self) -> Iterator[Trial]:
        return map(self._read, self.refs)

    def __repr__(self) -> str:
        counts = Counter(ref.split for ref in self.refs)
        parts = ", ".join(f"{counts[split]} {split}" for split in self.splits)
        return f"Recordings({self.form}: {len(self.sessions)} sessions, {self.n_channels} channels, {parts})"

    def split(self, name: str) -> Recordings:
        """The trials of one split. For the '24 form, ``test`` is the hold-out and ``val`` its folder ``test``.

        Raises
        ------
        DataError
            If there is no such split, or it is empty.
        """
        if name not in SPLITS:
            raise DataError("unknown split", field="split", found=repr(name), expected=", ".join(SPLITS))
        refs = [ref for ref in self.refs if ref.split == name]
        if not refs:
            raise DataError(
                f"the split {name!r} is empty",
                file=getattr(self.source, "root", getattr(self.source, "path", None)),
                found=", ".join(self.splits) or "no trials",
                expected=f"trials of {name!r}",
            )
        return Recordings(self.source, refs)

    def select(self, indices: Iterable[int]) -> Recordings:
        """The trials at some positions of this view, in that order."""
        return Recordings(self.source, [self.refs[int(i)] for i in indices])

    def days(self) -> np.ndarray:
        """Day index of every trial, int64 (len,)."""
        day = {session: position for position, session in enumerate(self.sessions)}
        return np.array([day[ref.session] for ref in self.refs], np.int64)

    def lengths(self) -> np.ndarray:
        """Frames of every trial, int64 (len,). In the '25 form from attributes; no features are read.

        Raises
        ------
        DataError
            If a file is damaged, or an attribute is missing.
        """
        return np.array([self._guarded(self.source.length, ref) for ref in self.refs], np.int64)

    def labels(self) -> list[np.ndarray]:
        """Phoneme ids of every trial; in the '25 form no features are read.

        Raises
        ------
        DataError
            If a trial has no labels, or faulty ones.
        """
        found = []
        for ref in self.refs:
            ids = self._guarded(self.source.labels, ref)
            if ids is None:
                raise DataError("this split has no labels", trial=ref.key, field="phonemes")
            found.append(ids)
        return found

    def _read(self, ref: TrialRef) -> Trial:
        return self._guarded(self.source.read, ref)

    def _guarded(self, what: Callable[[TrialRef], T], ref: TrialRef) -> T:
        with _faults_named(getattr(self.source, "root", getattr(self.source, "path", None)), ref.key):
            return what(ref)


def open_recordings(path: str | Path, *, normalize: str = "auto", **options: Any) -> Recordings:
    """Open Brain-to-Text recordings of any known form, without reading features.

    Parameters
    ----------
    path
        The '25 tree (the folder ``data`` or ``hdf5_data_final``, or what Kaggle's archive unpacks to), the '24 tree
        (``competitionData`` or the folder around it), or a ``ptDecoder_ctc`` pickle.
    normalize
        ``auto``: features z-scored over blocks, as the official recipes have them ('25 files and pickles hold them so,
        '24 files are z-scored on reading). ``block``: z-score over blocks, whatever the file holds. ``none``: as
        stored; counts and uV^2 from '24 files.
    options
        Passed on to the form: for '24 ``tx="tx1"``, ``columns=range(128)`` (None for all 256), ``lexicon``,
        ``open_sessions``; for '25 ``open_files``; for pickles ``competition_days``.

    Returns
    -------
    Recordings

    Raises
    ------
    DataError
        If the path does not exist, holds no known form, or is at fault; the message names the place.
    """
    path = Path(path).expanduser()
    if not path.exists():
        raise DataError("no such file or folder", file=path)
    for name, form in FORMATS.items():
        place = form.detect(path)
        if place is not None:
            with _faults_named(path):
                try:
                    return Recordings(form.open(place, normalize=normalize, **options))
                except TypeError as error:
                    if options and "unexpected keyword" in str(error):
                        raise DataError(
                            f"the form {name} has no such option", file=path, found=", ".join(options)
                        ) from None
                    raise
    forms = "; or ".join(form.looks_like for form in FORMATS.values())
    raise DataError("no recordings of a known form here", file=path, expected=forms)


@dataclass(frozen=True)
class Infeasible:
    """A trial that CTC cannot align.

    Attributes
    ----------
    key : str
    frames : int
        Output frames of the decoder.
    needed : int
        Labels, plus one blank between every two equal neighbours.
    """

    key: str
    frames: int
    needed: int


def infeasible(recordings: Recordings, frames_of: Callable[[int], int]) -> list[Infeasible]:
    """Trials whose labels do not fit into the decoder's output frames.

    Parameters
    ----------
    recordings
        With labels.
    frames_of
        Gives the output frames for a trial's input frames, such as ``lambda T: (T - 14) // 4 + 1``.

    Raises
    ------
    DataError
        If a trial has no labels.
    """
    found = []
    for ref, length, ids in zip(recordings.refs, recordings.lengths(), recordings.labels(), strict=True):
        frames, needed = int(frames_of(int(length))), len(ids) + int((ids[1:] == ids[:-1]).sum())
        if frames < needed:
            found.append(Infeasible(ref.key, frames, needed))
    return found


def convert(
    recordings: Recordings,
    out: str | Path,
    *,
    overwrite: bool = False,
    progress: Callable[[Iterable[Trial], int], Iterable[Trial]] | None = None,
) -> Path:
    """Write recordings of any form in the '25 form, values exact to float32.

    Parameters
    ----------
    recordings
        With z-scored features, since that is what the '25 form holds.
    out
        Folder to make; it appears only when it is complete.
    overwrite
        Replace an existing folder of recordings.
    progress
        Wraps the trials to show a progress bar; called with the trials and their number.

    Returns
    -------
    Path
        `out`.

    Raises
    ------
    DataError
        If the features are not z-scored, a sentence has words without a pronunciation (all are named at once), a trial
        is faulty, `out` exists, or the disk is full.
    """
    if not recordings.normalized:
        raise DataError(
            "the '25 form holds z-scored features, and these are raw; open the recordings with normalize='auto'",
            field="normalize",
        )
    _check_pronunciations(recordings)
    ordered = _in_session_order(recordings)
    trials: Iterable[Trial] = ordered if progress is None else progress(ordered, len(ordered))
    write = FORMATS["b2t25"].write
    assert write is not None
    return write(trials, Path(out), overwrite=overwrite, test_labels=True)


def _in_session_order(recordings: Recordings) -> Recordings:
    key = {split: position for position, split in enumerate(SPLITS)}
    return Recordings(
        recordings.source, sorted(recordings.refs, key=lambda ref: (ref.session, key[ref.split], ref.name))
    )


def _check_pronunciations(recordings: Recordings) -> None:
    """Name every unknown word before hours of work, not one at a time."""
    sentences_of = getattr(recordings.source, "sentences", None)
    if sentences_of is None:
        return
    from neuro.lexicon import Lexicon

    wanted = {ref.key for ref in recordings.refs}
    sentences: Sequence[str] = [text for key, text in sentences_of().items() if key in wanted]
    unknown = (getattr(recordings.source, "lexicon", None) or Lexicon()).unknown(sentences)
    if unknown:
        shown = "; ".join(f"{word!r} in {places[0]!r}" for word, places in list(unknown.items())[:10])
        raise DataError(
            f"{len(unknown)} words have no pronunciation; add them to your own dictionary file",
            field="sentenceText",
            found=shown + (" ..." if len(unknown) > 10 else ""),
        )
