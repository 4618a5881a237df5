"""Writes spike trains in the form of the Spiking Heidelberg Digits, which `neuro.shd` describes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import h5py
import numpy as np

from neuro.errors import DataError
from neuro.formats.atomic import new_file
from neuro.formats.guarded import new_hdf5
from neuro.shd import KEYS, LABELS, N_UNITS, SHD_UNITS, SPEAKER, SPEAKER_NAMES, TIMES, UNITS, SpikeTrains, check_events


def write_shd(
    path: Path | str,
    trials: Iterable[tuple[np.ndarray, np.ndarray]],
    *,
    labels: Sequence[int] | np.ndarray,
    speakers: Sequence[int] | np.ndarray,
    keys: Sequence[str],
    n_units: int = SHD_UNITS,
    speaker_names: Sequence[str] | None = None,
    attributes: Mapping[str, str | int | float] | None = None,
    overwrite: bool = False,
) -> None:
    """Write spike trains in the form of SHD; the file appears complete or not at all.

    Times are written as float32: the float16 of the published files is 1 ms coarse after the first second.

    Parameters
    ----------
    path
        File to make.
    trials
        Of each trial its times, seconds (S,), and units (S,), in any order; consumed one by one.
    labels, speakers
        Integers (n,), 0 or more.
    keys, speaker_names
        Names of the labels, and of the speakers.
    n_units
        Units are 0..n_units - 1.
    attributes
        How the data were made; become attributes of the file.
    overwrite
        Replace an existing HDF5 file.

    Raises
    ------
    DataError
        If the file exists, the disk is full, there are more or fewer trials than labels, or anything is at fault that
        `open_shd` or `SpikeTrains.events` would refuse.
    """
    path, n = Path(path), len(labels)
    with new_file(path, overwrite=overwrite, replaceable=h5py.is_hdf5) as partial:
        with new_hdf5(partial) as file:
            file.attrs.update({**(attributes or {}), N_UNITS: n_units})
            file[LABELS] = np.asarray(labels)
            file[SPEAKER] = np.asarray(speakers)
            file[KEYS] = np.array(keys, h5py.string_dtype())
            if speaker_names is not None:
                file[SPEAKER_NAMES] = np.array(speaker_names, h5py.string_dtype())
            all_times = file.create_dataset(TIMES, (n,), h5py.vlen_dtype(np.float32))
            all_units = file.create_dataset(UNITS, (n,), h5py.vlen_dtype(np.uint32))
            count = 0
            for times, units in trials:
                if count < n:
                    times, units = check_events(np.asarray(times), np.asarray(units), n_units, path, count)
                    all_times[count], all_units[count] = times.astype(np.float32), units.astype(np.uint32)
                count += 1
            if count != n:
                raise DataError("trials and labels differ in number", file=path, found=count, expected=n)
        try:
            SpikeTrains(partial)
        except DataError as error:
            raise DataError(
                error.problem, file=path, trial=error.trial, field=error.field, found=error.found,
                expected=error.expected,
            ) from None  # fmt: skip
