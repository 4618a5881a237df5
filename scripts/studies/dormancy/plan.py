"""Experiments and their runs: each run once, whatever stopped before, a few at a time."""

from __future__ import annotations

import datetime
import multiprocessing
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scripts.studies.dormancy.record import Record, read_record

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Records = Mapping[str, Record]
"""Record of each finished run, by its name."""


@dataclass(frozen=True)
class Run:
    """One record's worth of work.

    Attributes
    ----------
    name : str
        Of the record.
    seed : int
    settings : mapping
        Everything else that decides the result.
    measure : callable (settings, seed, folder) -> findings
        A function of a module, which other processes can import; `folder` is that of the trained networks.
    stage : int
        Runs of an earlier stage are finished before this one starts, since it measures their networks.
    """

    name: str
    seed: int
    settings: Mapping[str, Any]
    measure: Callable[[Mapping[str, Any], int, Path], dict[str, Any]]
    stage: int = 0


@dataclass(frozen=True)
class Experiment:
    """One question of the study.

    Attributes
    ----------
    title : str
        Heading of its section.
    seeds : tuple of int
        When none are asked for.
    runs : callable (seeds) -> list of Run
    section : callable (records) -> list of str
        Lines of Markdown from the records of its finished runs, which may be some of the planned ones; at least one.
    figures : mapping
        Part of the file's name -> function from the records to a figure, or to None where there is nothing to draw.
    """

    title: str
    seeds: tuple[int, ...]
    runs: Callable[[Sequence[int]], list[Run]]
    section: Callable[[Records], list[str]]
    figures: Mapping[str, Callable[[Records], Figure | None]] = field(default_factory=dict)


def run_all(
    plan: Sequence[tuple[str, Run]], records: Path, folder: Path, *, workers: int, report: Callable[[str], None]
) -> None:
    """Do every run that has no record yet; its record is written when it ends.

    Parameters
    ----------
    plan
        Name of the experiment and run, in the order in which to start.
    records
        Folder of the records, one JSON file a run: all that must be kept.
    folder
        Of the trained networks. Without them, what is not measured yet is trained again.
    workers
        Runs at a time, one thread each; 1 keeps all in this process.
    report
        Called with a line of text whenever a run starts or ends.

    Raises
    ------
    DataError
        If a run fails, or a record was made from other settings: then before anything starts.
    """
    left = [(of, run) for of, run in plan if read_record(records / f"{run.name}.json", run.settings) is None]
    if len(plan) > len(left):
        report(f"{len(plan) - len(left)} of {len(plan)} runs are finished")
    for stage in sorted({run.stage for _, run in left}):
        todo = [(of, run) for of, run in left if run.stage == stage]
        if workers == 1:
            for experiment, run in todo:
                report(f"{run.name}: starts")
                report(_told(work(experiment, run, folder, records)))
        else:
            _in_parallel(todo, records, folder, workers, report)


def work(experiment: str, run: Run, folder: Path, records: Path) -> Record:
    """Do one run and write its record."""
    import torch

    torch.set_num_threads(1)
    start = time.perf_counter()
    findings = run.measure(run.settings, run.seed, folder)
    seconds = round(time.perf_counter() - start, 1)
    today = datetime.date.today().isoformat()
    record = Record(run.name, experiment, run.seed, dict(run.settings), findings, seconds, today)
    record.write(records)
    return record


def _in_parallel(
    todo: Sequence[tuple[str, Run]], records: Path, folder: Path, workers: int, report: Callable[[str], None]
) -> None:
    # Spawned: a forked process inherits the locks of threads that it does not have.
    with ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn")) as pool:
        waiting = {pool.submit(work, experiment, run, folder, records) for experiment, run in todo}
        try:
            while waiting:
                done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                for future in done:
                    report(_told(future.result()))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _told(record: Record) -> str:
    accuracy = record.findings.get("accuracy", {}).get("test")
    share = "" if accuracy is None else f" {100 * accuracy:.2f} % of test,"
    return f"{record.name}:{share} {record.seconds:.0f} s"
