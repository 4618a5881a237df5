"""What every file format must provide, and the checks they share.

A format is one file that defines a `Source` and a `Format`, and one line in `neuro.formats.FORMATS`.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from neuro.errors import DataError
from neuro.trial import Trial

SPLITS = ("train", "val", "test")
"""Names of the splits, in the order in which their trials are listed."""

LAST_PHONEME = 40
"""Largest phoneme id (SIL); 0 is the CTC blank and the padding of label arrays."""

_SESSION_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*\.[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True, slots=True)
class TrialRef:
    """Where a trial is, without its contents.

    Attributes
    ----------
    session, split : str
    key : str
        ``session/split/name``, as in `neuro.Trial`.
    """

    session: str
    split: str
    key: str

    @property
    def name(self) -> str:
        """Name of the trial inside its file."""
        return self.key.rsplit("/", 1)[1]


class Source(ABC):
    """Trials of one data set on disk, read one at a time.

    Must be picklable, and safe to use in a process forked from, or spawned by, the one that made it.

    Attributes
    ----------
    form : str
        The key in `neuro.formats.FORMATS`.
    sessions : list of str
        Sorted; the position is the day index.
    refs : list of TrialRef
        Sorted by session, then split, then name.
    n_channels : int
    normalized : bool
        True when the features handed out are z-scored.
    """

    form: ClassVar[str]
    sessions: list[str]
    refs: list[TrialRef]
    n_channels: int
    normalized: bool

    @abstractmethod
    def read(self, ref: TrialRef) -> Trial:
        """The whole trial, checked."""

    @abstractmethod
    def length(self, ref: TrialRef) -> int:
        """Frames of the trial, without reading features where the form allows it."""

    @abstractmethod
    def labels(self, ref: TrialRef) -> np.ndarray | None:
        """Phoneme ids int64 (L,), without reading features where the form allows it; None without labels."""

    @abstractmethod
    def labelled(self, split: str) -> bool:
        """Whether the trials of a split carry labels."""


@dataclass(frozen=True)
class Format:
    """One way in which Brain-to-Text recordings lie on disk.

    Attributes
    ----------
    looks_like : str
        What a user finds on disk, for error messages.
    detect : callable
        ``detect(path)`` gives the place to open, or None when the path is not of this form.
    open : callable
        ``open(place, normalize=..., **options)`` gives a `Source`.
    write : callable, or None
        ``write(trials, root, *, overwrite=False, ...)``; None where the form is only read.
    """

    looks_like: str
    detect: Callable[[Path], Path | None]
    open: Callable[..., Source]
    write: Callable[..., Path] | None = None


def is_session_name(name: str) -> bool:
    """Whether a name reads ``<participant>.<day>``, such as ``t15.2023.08.13`` or ``fsdd.george``."""
    return _SESSION_NAME.fullmatch(name) is not None


def check_session_name(name: str, where: Path) -> str:
    """Hand a session name back, or say what is wrong with it.

    Raises
    ------
    DataError
        If the name does not read ``<participant>.<day>``.
    """
    if not is_session_name(name):
        raise DataError(
            "session with an unknown kind of name",
            file=where,
            found=repr(name),
            expected="<participant>.<day>, such as t15.2023.08.13",
        )
    return name


def day_of(session: str) -> str:
    """The day part of a session name as block tables write it: ``t15.2023.08.13`` -> ``2023-08-13``."""
    return session.split(".", 1)[1].replace(".", "-")


def check_normalize(normalize: str) -> str:
    """Hand the value back, or raise `DataError` if it is not one of auto, block, none."""
    if normalize not in ("auto", "block", "none"):
        raise DataError(
            "unknown normalisation", field="normalize", found=repr(normalize), expected="auto, block or none"
        )
    return normalize


def check_features(features: np.ndarray, n_channels: int, *, file: Path, trial: str, field: str) -> np.ndarray:
    """Features as float32 (T, C), or the reason why they cannot be used.

    Raises
    ------
    DataError
        If the array is not numeric and two-dimensional, has no frames, another number of channels, or holds NaN or
        infinite values (the first bad bin and channel are named).
    """
    at: dict[str, Any] = {"file": file, "trial": trial, "field": field}
    if features.ndim != 2 or features.dtype.kind not in "buif":
        raise DataError(
            "features are not a table of numbers",
            **at,
            found=f"{features.dtype} {features.shape}",
            expected="numbers (frames, channels)",
        )
    if features.shape[0] == 0:
        raise DataError("trial without a single frame", **at, found=features.shape, expected="at least one frame")
    if features.shape[1] != n_channels:
        raise DataError(
            "sessions differ in their number of channels", **at, found=features.shape[1], expected=n_channels
        )
    features = np.ascontiguousarray(features, np.float32)
    # Any NaN or infinity makes the sum so; only then is it worth looking for the place.
    with np.errstate(over="ignore", invalid="ignore"):
        suspicious = not np.isfinite(features.sum())
    if suspicious and not (finite := np.isfinite(features)).all():
        frame, channel = np.argwhere(~finite)[0]
        raise DataError(
            "features are not finite",
            **at,
            found=f"{features[frame, channel]} in bin {frame}, channel {channel} ({(~finite).sum()} values in all)",
            expected="finite numbers",
        )
    return features


def check_labels(ids: np.ndarray, n_labels: int, *, file: Path, trial: str, field: str) -> np.ndarray:
    """The first `n_labels` of a zero-padded label array, as int64.

    Any integer dtype is accepted, and floats that hold whole numbers.

    Raises
    ------
    DataError
        If a label is outside 0..40, if 0 stands among the labels, or if the padding does not start after `n_labels`.
    """
    at: dict[str, Any] = {"file": file, "trial": trial, "field": field}
    ids = np.asarray(ids).reshape(-1)
    if ids.dtype.kind not in "buif" or (ids.dtype.kind == "f" and not np.array_equal(ids, np.trunc(ids))):
        raise DataError("labels are not whole numbers", **at, found=ids.dtype, expected="integers")
    ids = ids.astype(np.int64)
    outside = (ids < 0) | (ids > LAST_PHONEME)
    if outside.any():
        raise DataError("label outside the phoneme set", **at, found=ids[outside][0], expected=f"0..{LAST_PHONEME}")
    zeros = np.flatnonzero(ids == 0)
    first_zero = int(zeros[0]) if len(zeros) else len(ids)
    if not 0 < n_labels <= len(ids) or first_zero != n_labels or ids[first_zero:].any():
        after = ids[first_zero:].any()
        raise DataError(
            "number of labels disagrees with the zero-padded labels",
            **at,
            found=f"{first_zero} labels before the first zero" + (", and more after it" if after else ""),
            expected=f"{n_labels}" if n_labels > 0 else f"a positive number, not {n_labels}",
        )
    return ids[:n_labels]
