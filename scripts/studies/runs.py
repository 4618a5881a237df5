"""Train and score a list of decoders, a few at a time; what is finished stays, what was stopped goes on."""

from __future__ import annotations

import datetime
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any

import yaml

from neuro import DataError
from scripts.output import plain
from scripts.studies.records import Record, identity, read_record, record_of

LAST = Path("checkpoints") / "last.ckpt"
EVALUATION = "evaluation"
CLOCK = "training_seconds.json"
LOG = "log.txt"
TRAINED = "trained"


@dataclass(frozen=True)
class Run:
    """One training, by its recipe and what differs from it.

    Attributes
    ----------
    name : str
        Folder of the run.
    recipe : str
        A packaged recipe.
    changes : mapping
        Values that replace the recipe's, nested as in its YAML; mappings are merged.
    seed : int
    shuffles : str or None
        Not trained: the last weights of this run with their delays dealt out anew, seeded by `seed`.
    """

    name: str
    recipe: str
    changes: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 1
    shuffles: str | None = None


def merged(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """``base`` with ``changes`` laid over it, mapping by mapping.

    Examples
    --------
    >>> merged({"model": {"lr": 1, "core": "gru"}}, {"model": {"lr": 2}})
    {'model': {'lr': 2, 'core': 'gru'}}
    """
    result = dict(base)
    for name, value in changes.items():
        both = isinstance(value, Mapping) and isinstance(result.get(name), Mapping)
        result[name] = merged(result[name], value) if both else value
    return result


def run_all(
    runs: Sequence[Run], root: Path, data: Path, *, records: Path, workers: int, report: Callable[[str], None]
) -> dict[str, Record]:
    """Train and score every run that has no record yet.

    Parameters
    ----------
    root
        Folder of the runs: checkpoints, logs, evaluations.
    data
        Recording that all of them use.
    records
        Folder of the records, one JSON file a run. It is all that must be kept: a run with a record is finished, even
        where `root` is empty.
    workers
        Runs at a time, one thread each.
    report
        Called with a line of text whenever a run starts or ends.

    Returns
    -------
    dict
        Record of each run, by its name.

    Raises
    ------
    DataError
        If a run fails; the others are stopped with a checkpoint. Before anything starts, if a record was made from
        another recipe, seed or recording.
    """
    by_name = {run.name: run for run in runs}
    which = identity(data)
    made_from = {run.name: _made_from(run, by_name, which) for run in runs}
    found = {run.name: read_record(records / f"{run.name}.json", made_from[run.name]) for run in runs}
    children = _Children()

    def finish(chain: Sequence[Run]) -> None:
        for run in chain:
            record = _finish(run, root, data, children, made_from[run.name], report)
            record.write(records / f"{run.name}.json")
            found[run.name] = record

    with ThreadPoolExecutor(workers) as pool:
        futures = [pool.submit(finish, chain) for chain in _chains(runs, found, root, report)]
        try:
            waiting = set(futures)
            while waiting:
                done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                for future in done:
                    future.result()
        except BaseException:
            for future in futures:
                future.cancel()
            children.stop()
            raise
    return {name: record for name, record in found.items() if record is not None}


def _chains(
    runs: Sequence[Run], found: Mapping[str, Record | None], root: Path, report: Callable[[str], None]
) -> list[list[Run]]:
    """What is left to do, as runs that must follow each other: a network, then those that take its weights."""
    chains = []
    for run in runs:
        if run.shuffles:
            continue
        takers = [other for other in runs if other.shuffles == run.name and found[other.name] is None]
        if found[run.name] is None or (takers and not (root / run.name / TRAINED).is_file()):
            chains.append([run, *takers])
        elif takers:
            chains.append(takers)
        else:
            report(f"{run.name}: finished earlier")
    return chains


def _made_from(run: Run, by_name: Mapping[str, Run], data: dict[str, Any]) -> dict[str, Any]:
    source = by_name[run.shuffles] if run.shuffles else run
    recipe = merged(_recipe(source.recipe), source.changes)
    return plain({"recipe": recipe, "seed": run.seed, "shuffled": bool(run.shuffles), "data": data})


def training_command(run: Run, folder: Path, data: Path) -> list[str]:
    """Arguments of ``ranvier train`` for a run: from the start, or from its last checkpoint."""
    # Data and folder are part of the saved recipe only as far as they are named here.
    place = ["--run", str(folder), "--data.path", str(data), "--seed_everything", str(run.seed)]
    if (folder / LAST).is_file():
        return ["fit", "--resume", *place]
    return ["fit", "--config", str(_write_recipe(run, folder)), *place]


def shuffle_delays(source: Path, target: Path, seed: int) -> None:
    """Copy a checkpoint with the delays of each layer dealt out anew among its connections."""
    import torch

    from decoders.training.checkpoints import AtomicCheckpointIO

    checkpoint = torch.load(source, weights_only=True, map_location="cpu")
    generator = torch.Generator().manual_seed(seed)
    for name, value in checkpoint["state_dict"].items():
        if name.endswith(".delay"):
            order = torch.randperm(value.numel(), generator=generator)
            checkpoint["state_dict"][name] = value.flatten()[order].view(value.shape).clone()
    AtomicCheckpointIO().save_checkpoint(checkpoint, target)


def _recipe(name: str) -> dict[str, Any]:
    from scripts.train import find_recipe

    return yaml.safe_load(find_recipe(name).read_text()) or {}


def _write_recipe(run: Run, folder: Path) -> Path:
    """The recipe with the run's changes, beside the run's folder (which must be empty at the start)."""
    path = folder.with_suffix(".yaml")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"# {run.recipe}, changed for a study\n{yaml.safe_dump(merged(_recipe(run.recipe), run.changes))}")
    return path


def _finish(
    run: Run, root: Path, data: Path, children: _Children, made_from: dict[str, Any], report: Callable[[str], None]
) -> Record:
    folder = root / run.name
    if not (folder / EVALUATION / "summary.json").is_file():
        if run.shuffles:
            shuffle_delays(root / run.shuffles / LAST, folder / LAST, run.seed)
        elif not (folder / TRAINED).is_file():
            _train(run, root, data, children, report)
        # The last weights, not the best ones: nothing is chosen on the split that is reported.
        children.call(
            ["evaluate", str(folder / LAST), "--data", str(data), "--split", "val", "--out", str(folder / EVALUATION)],
            root / f"{run.name}.{LOG}",
        )
    record = record_of(folder / EVALUATION, made_from, _clock(folder), datetime.date.today().isoformat())
    report(f"{run.name}: PER {100 * record.summary['per']:.1f} %, trained in {record.training_seconds / 60:.0f} min")
    return record


def _train(run: Run, root: Path, data: Path, children: _Children, report: Callable[[str], None]) -> None:
    folder = root / run.name
    report(f"{run.name}: training" + (", from its last checkpoint" if (folder / LAST).is_file() else ""))
    before, start = _clock(folder), time.perf_counter()
    try:
        children.call(["train", *training_command(run, folder, data)], root / f"{run.name}.{LOG}")
    finally:
        if folder.is_dir():
            (folder / CLOCK).write_text(json.dumps(before + time.perf_counter() - start))
    (folder / TRAINED).touch()


def _clock(folder: Path) -> float:
    file = folder / CLOCK
    return float(json.loads(file.read_text())) if file.is_file() else 0.0


class _Children:
    """Child processes of this study, so that all of them can be stopped."""

    def __init__(self) -> None:
        self.running: set[subprocess.Popen] = set()
        self.lock = Lock()
        self.stopped = False

    def call(self, arguments: list[str], log: Path) -> None:
        """Run one command of ranvier with one thread; its output goes to the end of ``log``."""
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
        with log.open("a") as output:
            with self.lock:
                if self.stopped:
                    raise KeyboardInterrupt
                # A group of its own: Ctrl-C in the terminal reaches it through us, once.
                child = subprocess.Popen(
                    [sys.executable, "-m", "scripts.cli", *arguments],
                    stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                    env=environment, start_new_session=True,
                )  # fmt: skip
                self.running.add(child)
            code = child.wait()
        with self.lock:
            self.running.discard(child)
        if code and not self.stopped:
            tail = log.read_text(errors="replace").strip().splitlines()[-1:]
            raise DataError(
                f"`ranvier {arguments[0]}` ended with exit code {code}",
                file=log,
                found=tail[0] if tail else "no output",
            )
        if code:
            raise KeyboardInterrupt

    def stop(self) -> None:
        """Stop every child, which makes a training write a checkpoint, and wait for them."""
        with self.lock:
            self.stopped = True
            running = list(self.running)
        for child in running:
            # Not SIGINT, which children of a background job ignore.
            child.send_signal(signal.SIGTERM)
        for child in running:
            child.wait()
