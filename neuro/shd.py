"""Spike trains in the HDF5 form of the Spiking Heidelberg Digits (SHD) and Spiking Speech Commands (SSC).

A trial is a list of spikes, each a time in seconds and a unit of the cochlea. The form, with n trials:

==================  ========================================================================================
``spikes/times``    n rows of varying length, float, seconds (float16 in the published files)
``spikes/units``    n rows of the same lengths, integer, 0..units - 1 (700 units in the published files)
``labels``          integer (n,)
``extra/speaker``   integer (n,)
``extra/keys``      names of the labels, in their order
==================  ========================================================================================

Beside these, `neuro.write_shd` writes what the published files leave unsaid: the number of units as the attribute
``n_units`` of the file, and ``extra/speaker_names``. Readers of the published form do not mind.

Source: Cramer, Stradmann, Schemmel & Zenke 2022, "The Heidelberg Spiking Data Sets for the Systematic Evaluation of
Spiking Neural Networks" (IEEE Transactions on Neural Networks and Learning Systems 33; arXiv:1910.07407).
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import h5py
import numpy as np
import torch

from neuro.errors import DataError
from neuro.formats.b2t25 import open_hdf5
from neuro.formats.cache import ProcessCache

SHD_UNITS = 700
"""Units of the published files, which do not say it themselves."""

LONGEST_SECONDS = 3600.0
"""A later spike is refused: its time is surely not in seconds, and binning it would fill the memory."""

SHORTEST_DT = 1e-6

# Names inside the file.
TIMES, UNITS, LABELS, SPEAKER = "spikes/times", "spikes/units", "labels", "extra/speaker"
KEYS, SPEAKER_NAMES, N_UNITS = "extra/keys", "extra/speaker_names", "n_units"
_KINDS = {"f": "floats", "iu": "integers"}


class SpikeBatch(NamedTuple):
    """Binned trials, padded to a common length with zeros.

    Attributes
    ----------
    spikes : float32 (T, B, N)
    lengths : int64 (B,)
        Bins of each trial.
    labels : int64 (B,)
    """

    spikes: torch.Tensor
    lengths: torch.Tensor
    labels: torch.Tensor


class SpikeTrains:
    """Labelled spike trains in one file; spikes are read, and checked, when a trial is asked for.

    Made by `open_shd`. Picklable, and safe in the workers of a DataLoader.

    Attributes
    ----------
    path : Path
    n_units : int
    labels : int64 (n,)
    keys : tuple of str
        Names of the labels; the numbers themselves where the file has no names.
    speakers : int64 (n,), or None where the file does not say
    speaker_names : tuple of str, or None where the file has none
    attributes : dict
        Attributes of the file, such as how it was made.
    """

    def __init__(self, path: Path | str, n_units: int | None = None) -> None:
        self.path = Path(path)
        if self.path.is_dir():
            raise DataError("this is a folder", file=self.path, expected="an HDF5 file in the form of SHD")
        self._handles: ProcessCache[h5py.File] = ProcessCache(1, h5py.File.close)
        with self._handles.use(self.path, lambda: open_hdf5(self.path)) as file:
            self.labels = self._column(file, LABELS)
            for name, kind in ((TIMES, "f"), (UNITS, "iu")):
                self._check_rows(file, name, kind)
            self.speakers = self._column(file, SPEAKER) if SPEAKER in file else None
            self.keys = self._names(file, KEYS, self.labels, LABELS) or tuple(map(str, range(self.labels.max() + 1)))
            self.speaker_names = (
                None if self.speakers is None else self._names(file, SPEAKER_NAMES, self.speakers, SPEAKER)
            )
            self.attributes = dict(file.attrs)
        self.n_units = int(self.attributes.get(N_UNITS, SHD_UNITS) if n_units is None else n_units)
        if self.n_units < 1:
            raise DataError("impossible number of units", file=self.path, field=N_UNITS, found=self.n_units)

    def __len__(self) -> int:
        return len(self.labels)

    def __repr__(self) -> str:
        return f"SpikeTrains({str(self.path)!r}, {len(self)} trials, {self.n_units} units, {len(self.keys)} labels)"

    def events(self, i: int) -> tuple[np.ndarray, np.ndarray]:
        """Spikes of trial `i` in the order of time: seconds float64 (S,) and units int64 (S,).

        The form does not promise an order. Spikes that lie in another one are sorted; those at the same time keep the
        order of the file.

        Raises
        ------
        DataError
            If times and units differ in number, a time is negative, not finite or beyond an hour, or a unit is out of
            range.
        IndexError
            If there is no trial `i`.
        """
        position = operator.index(i)
        if not -len(self) <= position < len(self):
            raise IndexError(f"trial {i} of {len(self)}")
        position %= len(self)
        with self._handles.use(self.path, lambda: open_hdf5(self.path)) as file:
            try:
                times, units = file[TIMES][position], file[UNITS][position]
            except (OSError, RuntimeError) as error:  # the file is cut short or a block of it is damaged
                raise DataError("spikes cannot be read", file=self.path, trial=str(position), found=error) from error
        return check_events(times, units, self.n_units, self.path, position)

    def binned(
        self, i: int, dt: float, steps: int | None = None, channels: int | None = None, *, binary: bool = False
    ) -> np.ndarray:
        """Spikes of trial `i` counted in bins of `dt` seconds.

        Parameters
        ----------
        dt
            Seconds. Bin k holds the times k dt <= t < (k + 1) dt.
        steps
            Bins T; spikes after the last one are left out. By default as many as reach the last spike, at least one.
        channels
            Neighbouring units are summed to so many channels N, whose numbers of units differ by one at most. By
            default every unit is a channel.
        binary
            1 where there is any spike, in place of their number.

        Returns
        -------
        float32 (T, N)

        Raises
        ------
        DataError
            See `events`; or if `dt`, `steps` or `channels` make no sense.
        """
        channels = self._check_request(dt, steps, channels)
        times, units = self.events(i)
        return self._count(times, units, dt, steps, channels, binary)

    def as_batch(
        self,
        indices: Sequence[int] | np.ndarray,
        dt: float,
        steps: int | None = None,
        channels: int | None = None,
        *,
        binary: bool = False,
    ) -> SpikeBatch:
        """Some trials as one batch, in the order of `indices`; parameters and errors as in `binned`.

        Without `steps`, T is the length of the longest trial.
        """
        channels = self._check_request(dt, steps, channels)
        trials = [self._count(*self.events(i), dt, None, channels, binary)[:steps] for i in indices]
        lengths = [len(trial) for trial in trials]
        T = max(lengths, default=0) if steps is None else steps
        spikes = np.zeros((T, len(trials), channels), np.float32)
        for b, trial in enumerate(trials):
            spikes[: len(trial), b] = trial
        labels = self.labels[np.asarray(indices, np.int64)]
        return SpikeBatch(torch.from_numpy(spikes), torch.tensor(lengths, dtype=torch.int64), torch.from_numpy(labels))

    def _count(
        self, times: np.ndarray, units: np.ndarray, dt: float, steps: int | None, channels: int, binary: bool
    ) -> np.ndarray:
        # A time on the edge of a bin belongs to the bin that begins there, also where float32 put it a hair before.
        bins = np.floor(times / dt * (1 + np.finfo(np.float32).eps)).astype(np.int64)
        if steps is None:
            steps = int(bins[-1]) + 1 if len(bins) else 1
        within = bins < steps
        flat = bins[within] * channels + units[within] * channels // self.n_units
        counts = np.bincount(flat, minlength=steps * channels).reshape(steps, channels)
        return (counts > 0 if binary else counts).astype(np.float32)

    def _check_request(self, dt: float, steps: int | None, channels: int | None) -> int:
        """Number of channels, once everything that was asked for makes sense."""
        if not SHORTEST_DT <= dt <= LONGEST_SECONDS:
            raise DataError("impossible length of a bin", field="dt", found=dt, expected=f"{SHORTEST_DT:g} s or more")
        if steps is not None and steps < 1:
            raise DataError("impossible number of bins", field="steps", found=steps, expected="at least 1")
        if channels is not None and not 1 <= channels <= self.n_units:
            raise DataError(
                "impossible number of channels",
                file=self.path,
                field="channels",
                found=channels,
                expected=f"1..{self.n_units}, the units of the file",
            )
        return self.n_units if channels is None else channels

    def _dataset(self, file: h5py.File, name: str) -> h5py.Dataset:
        dataset = file.get(name)
        if not isinstance(dataset, h5py.Dataset):
            raise DataError(
                "dataset missing", file=self.path, field=name, found=", ".join(file) or "an empty file",
                expected=f"{TIMES}, {UNITS} and {LABELS}, as in SHD",
            )  # fmt: skip
        return dataset

    def _check_rows(self, file: h5py.File, name: str, kind: str) -> None:
        dataset = self._dataset(file, name)
        inner = h5py.check_vlen_dtype(dataset.dtype)
        if dataset.ndim != 1 or inner is None or np.dtype(inner).kind not in kind:
            raise DataError(
                "dataset of an unknown kind",
                file=self.path,
                field=name,
                found=f"{inner or dataset.dtype} {dataset.shape}",
                expected=f"one row of {_KINDS[kind]} a trial, of varying length",
            )
        self._check_number(dataset, name)

    def _check_number(self, column: h5py.Dataset | np.ndarray, name: str) -> None:
        if len(column) != len(self):
            raise DataError(
                "datasets differ in length", file=self.path, field=name, found=len(column),
                expected=f"{len(self)}, as {LABELS}",
            )  # fmt: skip

    def _column(self, file: h5py.File, name: str) -> np.ndarray:
        """Whole numbers, one a trial."""
        dataset = self._dataset(file, name)
        if dataset.ndim != 1 or dataset.dtype.kind not in "iu" or not len(dataset):
            raise DataError(
                "dataset of an unknown kind", file=self.path, field=name, found=f"{dataset.dtype} {dataset.shape}",
                expected="an integer a trial, and at least one trial",
            )  # fmt: skip
        values = dataset[()].astype(np.int64)
        if name != LABELS:
            self._check_number(values, name)
        if (values < 0).any():
            where = int((values < 0).argmax())
            raise DataError(
                "negative number", file=self.path, trial=str(where), field=name, found=values[where],
                expected="0 or more",
            )  # fmt: skip
        return values

    def _names(self, file: h5py.File, name: str, numbers: np.ndarray, of: str) -> tuple[str, ...] | None:
        """Names that a file gives to its numbers, None where it gives none."""
        if name not in file:
            return None
        dataset = self._dataset(file, name)
        if dataset.ndim != 1 or dataset.dtype.kind not in "OS":
            raise DataError(
                "dataset of an unknown kind", file=self.path, field=name, found=f"{dataset.dtype} {dataset.shape}",
                expected="a list of names",
            )  # fmt: skip
        names = tuple(value.decode("utf-8", "replace") for value in dataset[()].tolist())
        if numbers.max() >= len(names):
            where = int((numbers >= len(names)).argmax())
            raise DataError(
                "number without a name", file=self.path, trial=str(where), field=of, found=numbers[where],
                expected=f"0..{len(names) - 1}, as in {name}",
            )  # fmt: skip
        return names


def open_shd(path: Path | str, *, n_units: int | None = None) -> SpikeTrains:
    """Spike trains in a file of the SHD form: SHD, SSC, or what `neuro.write_shd` or ``ranvier convert shd`` made.

    Parameters
    ----------
    path
        The file, unpacked (``shd_train.h5``, not ``shd_train.h5.gz``).
    n_units
        Number of units. By default what the file says, and 700 where it says nothing, as the published ones.

    Raises
    ------
    DataError
        If the file is missing, a folder or no HDF5 file; a dataset is missing, of the wrong kind, or of another length
        than ``labels``; or a label or speaker is negative or beyond its names. Spikes are checked when they are read.

    Examples
    --------
    >>> trains = open_shd("shd_train.h5")  # doctest: +SKIP
    >>> trains.as_batch([0, 1, 2], dt=0.01, channels=140).spikes.shape  # doctest: +SKIP
    torch.Size([96, 3, 140])
    """
    return SpikeTrains(path, n_units)


def split_by_speaker(
    trains: SpikeTrains,
    validation: int | Sequence[int | str] = 1,
    test: int | Sequence[int | str] = 1,
    seed: int = 0,
) -> dict[str, np.ndarray]:
    """Positions of the trials of ``train``, ``val`` and ``test``; no speaker is in two of them.

    The published SHD has no validation split, and choosing an epoch on its test split overstates what was learned.

    Parameters
    ----------
    validation, test
        How many speakers, drawn at random; or which ones, by number or by name. With ``test=0`` test is empty, for
        files that come with a separate one for test.
    seed
        Of the draw.

    Returns
    -------
    dict of int64 arrays
        Ascending; together 0..n - 1.

    Raises
    ------
    DataError
        If the file names no speakers; a speaker is unknown or in both splits; or nobody is left to train on.
    """
    if trains.speakers is None:
        raise DataError("dataset missing, so speakers cannot be told apart", file=trains.path, field=SPEAKER)
    everyone = [int(speaker) for speaker in np.unique(trains.speakers)]
    wishes = {"val": validation, "test": test}
    chosen = {
        split: [] if isinstance(wish, int) else [_speaker(trains, everyone, split, who) for who in wish]
        for split, wish in wishes.items()
    }
    if both := set(chosen["val"]) & set(chosen["test"]):
        raise DataError("speaker in two splits", file=trains.path, field="validation, test", found=sorted(both)[0])
    free = np.random.default_rng(seed).permutation([s for s in everyone if s not in chosen["val"] + chosen["test"]])
    waiting = free.tolist()
    for split, wish in wishes.items():
        if isinstance(wish, int):
            if not 0 <= wish < len(waiting):
                raise DataError(
                    "impossible number of speakers", file=trains.path, field=split, found=wish,
                    expected=f"0..{len(waiting) - 1}, so that one is left to train on",
                )  # fmt: skip
            chosen[split], waiting = waiting[:wish], waiting[wish:]
    if not waiting:
        raise DataError("no speaker is left to train on", file=trains.path, field="validation, test", found=everyone)
    splits = {"train": waiting, **chosen}
    return {split: np.flatnonzero(np.isin(trains.speakers, who)) for split, who in splits.items()}


def _speaker(trains: SpikeTrains, everyone: Sequence[int], split: str, who: int | str) -> int:
    """Number of a speaker given by number or name."""
    names = trains.speaker_names or ()
    number = names.index(who) if who in names else who
    if number not in everyone:
        known = [names[speaker] for speaker in everyone] if names else everyone
        raise DataError(
            "unknown speaker", file=trains.path, field=split, found=who, expected=f"of {', '.join(map(str, known))}"
        )
    return int(number)


def check_events(
    times: np.ndarray, units: np.ndarray, n_units: int, path: Path, trial: int
) -> tuple[np.ndarray, np.ndarray]:
    """Spikes of one trial, sorted by time, as float64 (S,) and int64 (S,); for errors see `SpikeTrains.events`."""
    if times.shape != units.shape or times.ndim != 1:
        raise DataError(
            "times and units differ in number",
            file=path,
            trial=str(trial),
            field=UNITS,
            found=f"{units.size} units",
            expected=f"{times.size}, as {TIMES}",
        )
    times, units = times.astype(np.float64), units.astype(np.int64)
    for field, values, good, expected in (
        (TIMES, times, (times >= 0) & (times <= LONGEST_SECONDS), f"seconds, 0..{LONGEST_SECONDS:g}"),
        (UNITS, units, (units >= 0) & (units < n_units), f"0..{n_units - 1}"),
    ):
        if not good.all():
            raise DataError(
                "impossible spike", file=path, trial=str(trial), field=field, found=values[good.argmin()],
                expected=expected,
            )  # fmt: skip
    if (np.diff(times) < 0).any():
        order = np.argsort(times, kind="stable")
        times, units = times[order], units[order]
    return times, units
