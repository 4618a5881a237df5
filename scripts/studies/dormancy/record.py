"""What lasts of one run of the study: all that the page is written from, small enough to lie beside it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from neuro import DataError
from scripts.output import plain, write_json
from scripts.studies.records import different


@dataclass(frozen=True)
class Record:
    """One network trained and measured, or one measurement of a trained one.

    Attributes
    ----------
    name : str
        Of the run; the file's name too.
    experiment : str
    seed : int
        Of weights and batches.
    settings : dict
        Everything else that decides the result.
    findings : dict
        What was measured; `scripts.studies.dormancy.measuring` says which fields a measured network has.
    seconds : float
        Wall clock of the run; other processes may have shared the machine.
    date : str
        The day it ended.
    """

    name: str
    experiment: str
    seed: int
    settings: dict[str, Any]
    findings: dict[str, Any]
    seconds: float
    date: str

    def write(self, folder: Path) -> Path:
        """Write NAME.json into a folder; the file appears whole or not at all."""
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{self.name}.json"
        partial = path.with_suffix(".json.partial")
        write_json(partial, asdict(self))
        return partial.replace(path)


def read_record(path: Path, settings: Mapping[str, Any] | None = None) -> Record | None:
    """The record in a file, if there is one; its settings are compared with `settings`.

    Raises
    ------
    DataError
        If it is no record, or one of other settings.
    """
    if not path.is_file():
        return None
    try:
        record = Record(**json.loads(path.read_text()))
        kinds = (
            (record.name, str), (record.experiment, str), (record.seed, int), (record.settings, dict),
            (record.findings, dict), (record.seconds, float), (record.date, str),
        )  # fmt: skip
        if not all(isinstance(value, kind) for value, kind in kinds):
            raise TypeError("a field is of another kind")
    except (ValueError, TypeError) as error:
        raise DataError("is not the record of a run; delete it to repeat the run", file=path) from error
    if settings is not None and record.settings != plain(dict(settings)):
        raise DataError(
            "the run recorded here was made from something else; delete it to repeat the run, or name another --out",
            file=path, field=", ".join(different(record.settings, plain(dict(settings)))),
        )  # fmt: skip
    return record
