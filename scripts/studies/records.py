"""What lasts of a study's run: small enough to be kept beside the page, and all that the page is written from."""

from __future__ import annotations

import csv
import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from neuro import DataError
from scripts.output import write_json

KEPT = (
    "model", "source", "form", "split", "unit", "interval", "per", "per_low", "per_high", "trials", "phonemes",
    "substitutions", "insertions", "deletions", "chance", "parameters", "spike_rate", "spike_rate_unit",
    "spike_rate_layers", "boundaries",
)  # fmt: skip
"""Fields of an evaluation's summary.json that a record keeps; the others name places of one machine."""


@dataclass(frozen=True)
class Record:
    """One decoder, trained and scored.

    Attributes
    ----------
    made_from : dict
        Everything that decides the result: recipe, seed, data (see `identity`), and whose delays were shuffled.
    summary : dict
        Fields `KEPT` of the evaluation.
    trials : dict
        Trial's key -> (edits, reference phonemes).
    training_seconds : float
        Wall clock, over all the times the run was started; other runs may have shared the machine.
    date : str
        The day it was scored.
    """

    made_from: dict[str, Any]
    summary: dict[str, Any]
    trials: dict[str, tuple[int, int]]
    training_seconds: float
    date: str

    def write(self, path: Path) -> None:
        """Write it as JSON; the file appears whole or not at all."""
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(".json.partial")
        write_json(partial, asdict(self))
        partial.replace(path)


def read_record(path: Path, made_from: Mapping[str, Any] | None = None) -> Record | None:
    """The record in a file, if there is one; what it was made from is compared with `made_from`.

    Raises
    ------
    DataError
        If it is no record, or one of another recipe, seed or recording.
    """
    if not path.is_file():
        return None
    try:
        content = json.loads(path.read_text())
        content["trials"] = {key: (edits, length) for key, (edits, length) in content["trials"].items()}
        record = Record(**content)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise DataError("is not the record of a run; delete it to repeat the run", file=path) from error
    if made_from is not None and record.made_from != made_from:
        raise DataError(
            "the run recorded here was made from something else; delete it to repeat the run, or name another --out",
            file=path, field=", ".join(different(record.made_from, made_from)),
        )  # fmt: skip
    return record


def different(a: Mapping[str, Any], b: Mapping[str, Any], path: str = "") -> list[str]:
    """Dotted names of what differs between two nested mappings.

    >>> different({"model": {"lr": 1, "core": "gru"}}, {"model": {"lr": 2, "core": "gru"}, "seed": 1})
    ['model.lr', 'seed']
    """
    names = []
    for name in sorted({*a, *b}):
        mine, its = a.get(name), b.get(name)
        if isinstance(mine, Mapping) and isinstance(its, Mapping):
            names += different(mine, its, f"{path}{name}.")
        elif mine != its:
            names.append(path + name)
    return names


def record_of(evaluation: Path, made_from: dict[str, Any], training_seconds: float, date: str) -> Record:
    """Make the record of a run from what `ranvier evaluate` wrote about it."""
    summary = json.loads((evaluation / "summary.json").read_text())
    with (evaluation / "trials.csv").open(newline="") as file:
        trials = {row["key"]: (int(row["edits"]), int(row["length"])) for row in csv.DictReader(file)}
    kept = {name: summary[name] for name in KEPT if name in summary}
    return Record(made_from, kept, trials, round(training_seconds, 1), date)


def identity(data: Path) -> dict[str, Any]:
    """What tells one recording from another: its trials' number in every split, and a digest of their keys and labels.

    Raises
    ------
    DataError
        If it cannot be read.
    """
    from neuro import open_recordings

    recordings = open_recordings(str(data))
    digest = hashlib.sha256()
    for split in recordings.splits:
        view = recordings.split(split)
        digest.update(f"{split}\n".encode())
        labels = [label.tolist() for label in view.labels()] if view.has_labels else [[]] * len(view.refs)
        for ref, label in zip(view.refs, labels, strict=True):
            digest.update(f"{ref.key} {label}\n".encode())
    counts = {split: len(recordings.split(split).refs) for split in recordings.splits}
    return {"trials": counts, "channels": recordings.n_channels, "digest": digest.hexdigest()[:16]}
