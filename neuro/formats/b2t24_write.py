"""Writes the Brain-to-Text '24 form; see `neuro.formats.b2t24` for its layout."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from neuro.errors import DataError
from neuro.formats.atomic import new_folder
from neuro.formats.base import SPLITS, check_session_name
from neuro.trial import THRESHOLDS, RawTrial, Trial

PARTITIONS = {"train": "train", "val": "test", "test": "competitionHoldOut"}
"""Our name of a split -> the folder of the '24 release."""

N_COLUMNS = 256
"""Electrodes in a file: 0..127 area 6v, 128..255 area 44."""


def write(trials: Iterable[RawTrial | Trial], root: Path | str, *, overwrite: bool = False) -> Path:
    """Write raw recordings in the '24 form, so that `root` reads like the official folder ``competitionData``.

    Counts and spike-band power are written raw, in all four thresholds. Sentences of the split ``test`` are written
    blank, as the official hold-out set is redacted. One session is in memory at once; the folder appears only when it
    is complete.

    Parameters
    ----------
    trials
        All trials of a session must follow one another. Each needs counts at the four `neuro.THRESHOLDS`, on 256
        electrodes, or on the 128 of area 6v (the columns of area 44 are then zero).
    root
        Folder to make.
    overwrite
        Replace an existing folder of recordings; the old one stays until the new one is complete.

    Returns
    -------
    Path
        `root`.

    Raises
    ------
    DataError
        If `root` exists and may not be replaced; if a trial is faulty, out of order or already normalised; if the disk
        is full.
    """
    root = Path(root)
    with new_folder(root, overwrite=overwrite, replaceable=_is_tree) as partial:
        session: str | None = None
        done: set[str] = set()
        pending: list[RawTrial] = []
        for trial in trials:
            if trial.session != session:
                if session is not None:
                    _write_session(partial, session, pending)
                    done.add(session)
                session, pending = check_session_name(trial.session, root), []
                if session in done:
                    raise DataError("trials of a session must follow one another", trial=_name(trial))
            pending.append(_checked(trial))
        if session is None:
            raise DataError("nothing to write: there is not a single trial")
        _write_session(partial, session, pending)
    return root


def _is_tree(folder: Path) -> bool:
    return any(any(folder.glob(f"{partition}/*.mat")) for partition in PARTITIONS.values())


def _checked(trial: RawTrial | Trial) -> RawTrial:
    """The trial with 256 columns and compact number types."""
    if not isinstance(trial, RawTrial):
        raise DataError("the '24 form holds raw counts and power, not normalised features", trial=trial.key)
    if trial.split not in SPLITS:
        raise DataError("unknown split", trial=_name(trial), found=repr(trial.split), expected=", ".join(SPLITS))
    missing = [threshold for threshold in THRESHOLDS if threshold not in trial.counts]
    if missing:
        raise DataError("no crossing counts at a threshold", trial=_name(trial), field="counts", found=missing)
    counts = {threshold: _counts(trial, threshold) for threshold in THRESHOLDS}
    power = _columns(trial, np.asarray(trial.power, np.float32), "power")
    if not np.isfinite(power).all():
        raise DataError("features are not finite", trial=_name(trial), field="power")
    if len(power) == 0 or any(array.shape != power.shape for array in counts.values()):
        raise DataError("counts and power differ in shape, or are empty", trial=_name(trial), found=power.shape)
    return RawTrial(**{**trial.__dict__, "counts": counts, "power": power})


def _counts(trial: RawTrial, threshold: float) -> np.ndarray:
    values = np.asarray(trial.counts[threshold])
    if values.dtype.kind not in "bui" or (values.size and values.min() < 0):
        raise DataError(
            "crossing counts are not natural numbers",
            trial=_name(trial),
            field=f"counts[{threshold}]",
            found=values.dtype,
        )
    fits = values.size == 0 or values.max() <= np.iinfo(np.uint8).max
    return _columns(trial, values.astype(np.uint8 if fits else np.int32), f"counts[{threshold}]")


def _columns(trial: RawTrial, values: np.ndarray, field: str) -> np.ndarray:
    if values.ndim != 2 or values.shape[1] not in (N_COLUMNS // 2, N_COLUMNS):
        raise DataError(
            "unexpected number of electrodes",
            trial=_name(trial),
            field=field,
            found=values.shape,
            expected=f"(frames, {N_COLUMNS}), or (frames, {N_COLUMNS // 2}) for area 6v alone",
        )
    return np.pad(values, ((0, 0), (0, N_COLUMNS - values.shape[1])))


def _write_session(root: Path, session: str, trials: list[RawTrial]) -> None:
    from scipy.io import savemat
    from scipy.io.matlab import MatWriteError

    for split, partition in PARTITIONS.items():
        # Blocks follow one another in the official files.
        chosen = sorted((trial for trial in trials if trial.split == split), key=lambda trial: trial.block)
        if not chosen:
            continue
        blocks = np.array([[trial.block] for trial in chosen])
        if blocks.min() < 0:
            raise DataError("block number below 0", trial=_name(chosen[0]), found=blocks.min())
        # An empty text would make a character matrix without columns, which does not survive the round trip.
        texts = [" " if split == "test" else trial.sentence or " " for trial in chosen]
        variables = {
            "sentenceText": np.array(texts),
            "blockIdx": blocks.astype(np.uint8 if blocks.max() <= 255 else np.uint16),
            "spikePow": _cells([trial.power for trial in chosen]),
        }
        for number, threshold in enumerate(THRESHOLDS, start=1):
            variables[f"tx{number}"] = _cells([trial.counts[threshold] for trial in chosen])
        (root / partition).mkdir(exist_ok=True)
        file = root / partition / f"{session}.mat"
        try:
            savemat(str(file), variables, format="5", do_compression=True, oned_as="column")
        except MatWriteError as error:
            raise DataError("session too large for a MATLAB v5 file", file=file.name, found=str(error)) from error


def _cells(arrays: list[np.ndarray]) -> np.ndarray:
    cells = np.empty((1, len(arrays)), object)
    for i, array in enumerate(arrays):
        cells[0, i] = array
    return cells


def _name(trial: RawTrial | Trial) -> str:
    return f"{trial.session}/{trial.split}, block {trial.block}, number {trial.trial}"
