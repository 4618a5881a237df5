"""Train and score a list of decoders, a few at a time; what is finished stays, what was stopped goes on."""

from __future__ import annotations

import csv
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

LAST = Path("checkpoints") / "last.ckpt"
EVALUATION = "evaluation"
CLOCK = "training_seconds.json"
LOG = "log.txt"


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


@dataclass(frozen=True)
class Result:
    """What `ranvier evaluate` found for a run.

    Attributes
    ----------
    summary : dict
        The content of summary.json.
    trials : list of (key, reference, hypothesis)
        Phoneme symbols of every trial.
    training_seconds : float
        Wall clock, over all the times the run was started; other runs may have shared the machine.
    """

    summary: dict[str, Any]
    trials: list[tuple[str, list[str], list[str]]]
    training_seconds: float


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
    runs: Sequence[Run], root: Path, data: Path, *, workers: int, report: Callable[[str], None]
) -> dict[str, Result]:
    """Train and score every run that is not finished yet.

    Parameters
    ----------
    root
        Folder of the runs.
    data
        Recording that all of them use.
    workers
        Runs at a time, one thread each.
    report
        Called with a line of text whenever a run starts or ends.

    Raises
    ------
    DataError
        If a run fails; the others are stopped with a checkpoint.
    """
    for some in ([run for run in runs if not run.shuffles], [run for run in runs if run.shuffles]):
        _run_some(some, root, data, workers, report)
    return {run.name: read_result(root / run.name) for run in runs}


def _run_some(runs: Sequence[Run], root: Path, data: Path, workers: int, report: Callable[[str], None]) -> None:
    children = _Children()
    with ThreadPoolExecutor(workers) as pool:
        futures = [pool.submit(_finish, run, root, data, children, report) for run in runs]
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


def read_result(folder: Path) -> Result:
    """Read a finished run.

    Raises
    ------
    DataError
        If the run has no evaluation yet.
    """
    evaluation = folder / EVALUATION
    if not (evaluation / "summary.json").is_file():
        raise DataError("the run is not finished, so it has no result", file=folder)
    with (evaluation / "trials.csv").open(newline="") as file:
        trials = [(row["key"], row["reference"].split(), row["hypothesis"].split()) for row in csv.DictReader(file)]
    summary = json.loads((evaluation / "summary.json").read_text())
    return Result(summary, trials, _clock(folder))


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


def _write_recipe(run: Run, folder: Path) -> Path:
    """The recipe with the run's changes, beside the run's folder (which must be empty at the start)."""
    from scripts.train import find_recipe

    recipe = yaml.safe_load(find_recipe(run.recipe).read_text()) or {}
    path = folder.with_suffix(".yaml")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"# {run.recipe}, changed for a study\n{yaml.safe_dump(merged(recipe, run.changes))}")
    return path


def _finish(run: Run, root: Path, data: Path, children: _Children, report: Callable[[str], None]) -> None:
    folder = root / run.name
    if (folder / EVALUATION / "summary.json").is_file():
        report(f"{run.name}: finished earlier")
        return
    if run.shuffles:
        shuffle_delays(root / run.shuffles / LAST, folder / LAST, run.seed)
    elif not (folder / "trained").is_file():
        report(f"{run.name}: training" + (", from its last checkpoint" if (folder / LAST).is_file() else ""))
        before, start = _clock(folder), time.perf_counter()
        try:
            children.call(["train", *training_command(run, folder, data)], root / f"{run.name}.{LOG}")
        finally:
            if folder.is_dir():
                (folder / CLOCK).write_text(json.dumps(before + time.perf_counter() - start))
        (folder / "trained").touch()
    # The last weights, not the best ones: nothing is chosen on the split that is reported.
    children.call(
        ["evaluate", str(folder / LAST), "--data", str(data), "--split", "val", "--out", str(folder / EVALUATION)],
        root / f"{run.name}.{LOG}",
    )
    per = read_result(folder).summary["per"]
    report(f"{run.name}: PER {100 * per:.1f} %, trained in {_clock(folder) / 60:.0f} min")


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
