"""``ranvier bench data``: is reading through the data set as fast as bare h5py, and does memory stay put?

Bare h5py is the strictest rival: it opens every file once, keeps all of them open, checks nothing, and reads only what
training needs (features, labels, and the two attributes with their lengths).
"""

from __future__ import annotations

import argparse
import gc
import json
import multiprocessing
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import asdict, dataclass
from datetime import date, timedelta
from pathlib import Path

import h5py
import numpy as np

from neuro import THRESHOLDS, DataError, RawTrial, Recordings, TrialRef, open_recordings
from neuro.formats import FORMATS

HELP = __doc__.split("\n", 1)[0].split(": ", 1)[1]

LEAST_RATIO = 0.8
"""Reading through the data set must be at least this fast, relative to bare h5py."""

MOST_GROWTH_MIB = 16.0
"""Resident memory may differ by this much between few and all sessions: the noise of a heap, not one trial in it."""

SESSION_COUNTS = (5, 20, 45)


@dataclass(frozen=True)
class Speed:
    """Reading all chosen trials in one order; seconds are medians, the spread is the range of the per-round ratios."""

    order: str
    trials: int
    mib: float
    ours_s: float
    bare_s: float
    ratio: float
    ratio_min: float
    ratio_max: float


@dataclass(frozen=True)
class Memory:
    """Resident memory of a fresh process that has read the trials of the first sessions."""

    sessions: int
    trials: int
    resident_mib: float


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``ranvier bench data``."""
    parser.add_argument("data", nargs="?", type=Path, help="a '25 tree; without it, one is made up and removed again")
    parser.add_argument("--sessions", type=int, default=45, help="sessions of the made-up tree (default %(default)s)")
    parser.add_argument("--trials", type=int, default=6, help="its trials per session (default %(default)s)")
    parser.add_argument("--frames", type=int, default=886, help="its frames per trial (default %(default)s, as in '25)")
    parser.add_argument("--limit", type=int, default=270, help="trials to time at most (default %(default)s)")
    parser.add_argument("--rounds", type=int, default=7, help="timed rounds (default %(default)s)")
    parser.add_argument("--json", action="store_true", help="print machine-readable results")


def run(args: argparse.Namespace) -> int:
    """Verify, time, measure, print; 0 when both promises hold, else 1."""
    for name in ("sessions", "trials", "frames", "limit", "rounds"):
        if getattr(args, name) < 1:
            raise DataError("needs to be at least 1", field=f"--{name}", found=getattr(args, name))
    made: AbstractContextManager[str | None] = nullcontext(None)
    if args.data is None:
        made = tempfile.TemporaryDirectory(prefix="ranvier-bench-")
    with made as folder:
        place = args.data
        if folder is not None:
            place = Path(folder) / "data"
            _say(args, f"writing {args.sessions} sessions of {args.trials} trials ...")
            _write_tree(made_up(args.sessions, args.trials, args.frames), place)
        recordings = open_recordings(place)
        if recordings.form != "b2t25":
            raise DataError("this bench reads the '25 form", file=place, found=recordings.form, expected="b2t25")
        refs = _evenly(recordings.refs, args.limit)
        _say(args, f"comparing {len(refs)} trials with bare h5py, value by value ...")
        verify(recordings, refs)
        speeds = [speed(recordings, refs, order, args.rounds) for order in ORDERS]
        memory = resident(place, [n for n in SESSION_COUNTS if n <= len(recordings.sessions)] or [1])
    source = "made-up" if args.data is None else str(args.data)
    return _report(args, source, recordings, speeds, memory)


def made_up(n_sessions: int, n_trials: int, frames: int, seed: int = 0) -> Iterator[RawTrial]:
    """Random trials in the size of the real set: 256 electrodes, a fifth of the trials for validation."""
    rng = np.random.default_rng(seed)
    for day in range(n_sessions):
        session = f"t15.{date(2023, 8, 11) + timedelta(days=7 * day):%Y.%m.%d}"
        for i in range(n_trials):
            T = max(2, round(frames * rng.uniform(0.6, 1.4)))
            yield RawTrial(
                counts={THRESHOLDS[1]: rng.poisson(0.6, (T, 256)).astype(np.uint8)},
                power=rng.lognormal(4.0, 0.5, (T, 256)).astype(np.float32),
                sentence="How are you?",
                phonemes=np.array([16, 4, 40, 3, 29, 40, 38, 34, 40]),
                session=session,
                block=1 + (i % 5 == 4),
                trial=i,
                split="val" if i % 5 == 4 else "train",
                corpus="Switchboard",
            )


def _write_tree(trials: Iterator[RawTrial], root: Path) -> None:
    write = FORMATS["b2t25"].write
    assert write is not None
    write(trials, root)


def _evenly(refs: Sequence[TrialRef], limit: int) -> list[TrialRef]:
    chosen = np.unique(np.linspace(0, len(refs) - 1, min(limit, len(refs))).astype(int))
    return [refs[i] for i in chosen]


class Bare:
    """Bare h5py over the same trials, every file opened once and kept open."""

    def __init__(self, root: Path) -> None:
        self.root, self.files = root, ExitStack()
        self.open: dict[tuple[str, str], h5py.File] = {}

    def __enter__(self) -> Bare:
        return self

    def __exit__(self, *exception: object) -> None:
        self.files.close()

    def read(self, ref: TrialRef) -> tuple[np.ndarray, np.ndarray | None]:
        """Features and the labels without their padding."""
        key = (ref.session, ref.split)
        if key not in self.open:
            path = self.root / ref.session / f"data_{ref.split}.hdf5"
            self.open[key] = self.files.enter_context(h5py.File(path, "r"))
        group = self.open[key][ref.name]
        features = group["input_features"][: group.attrs["n_time_steps"]]
        labels = group["seq_class_ids"][: group.attrs["seq_len"]] if "seq_class_ids" in group else None
        return features, labels


def verify(recordings: Recordings, refs: Sequence[TrialRef]) -> None:
    """Raise `AssertionError` unless the data set hands out exactly what bare h5py reads."""
    with Bare(recordings.source.root) as bare:  # type: ignore[attr-defined]
        for ref in refs:
            trial, (features, labels) = recordings.source.read(ref), bare.read(ref)
            same = np.array_equal(trial.features, features.astype(np.float32))
            same &= (labels is None) == (trial.phonemes is None)
            if labels is not None and trial.phonemes is not None:
                same &= np.array_equal(trial.phonemes, labels)
            assert same, f"{ref.key} differs from what bare h5py reads"


ORDERS: dict[str, Callable[[list[TrialRef]], list[TrialRef]]] = {
    "as stored": list,
    "shuffled": lambda refs: [refs[i] for i in np.random.default_rng(0).permutation(len(refs))],
}
"""Orders of reading. Shuffled visits the sessions at random, the worst that a sampler can do."""


def speed(recordings: Recordings, refs: list[TrialRef], order: str, rounds: int) -> Speed:
    """Time both readers over the same trials, in turns."""
    refs = ORDERS[order](refs)
    with Bare(recordings.source.root) as bare:  # type: ignore[attr-defined]
        readers: dict[str, Callable[[TrialRef], object]] = {"ours": recordings.source.read, "bare": bare.read}
        times: dict[str, list[float]] = {name: [] for name in readers}
        mib = sum(_nbytes(recordings.source.read(ref)) for ref in refs) / 2**20
        for round_number in range(rounds + 1):
            for name in sorted(readers, reverse=bool(round_number % 2)):
                start = time.perf_counter()
                for ref in refs:
                    readers[name](ref)
                times[name].append(time.perf_counter() - start)
    timed = {name: values[1:] for name, values in times.items()}  # the first round warms up
    ratios = [b / a for a, b in zip(timed["ours"], timed["bare"], strict=True)]
    ours, bare_s = (statistics.median(timed[name]) for name in ("ours", "bare"))
    return Speed(order, len(refs), mib, ours, bare_s, statistics.median(ratios), min(ratios), max(ratios))


def _nbytes(trial) -> int:
    return trial.features.nbytes


def resident(place: Path, counts: Sequence[int]) -> list[Memory]:
    """Resident memory of one fresh process, after it has read the trials of more and more sessions."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        return pool.apply(_read_sessions, (place, list(counts)))


def _read_sessions(place: Path, counts: list[int]) -> list[Memory]:
    recordings = open_recordings(place)
    found, seen = [], 0
    recordings.lengths()
    for refs, n in _by_session(recordings, counts):
        for ref in refs:
            recordings.source.read(ref)
        seen += len(refs)
        gc.collect()
        found.append(Memory(n, seen, _resident_mib()))
    return found


def _by_session(recordings: Recordings, counts: list[int]) -> Iterator[tuple[list[TrialRef], int]]:
    before = 0
    for n in counts:
        sessions = set(recordings.sessions[before:n])
        yield [ref for ref in recordings.refs if ref.session in sessions], n
        before = n


def _resident_mib() -> float:
    statm = Path("/proc/self/statm")
    if statm.exists():
        return int(statm.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20
    import resource  # not on every system

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # elsewhere only the peak is known
    return peak / (2**20 if sys.platform == "darwin" else 2**10)


def _say(args: argparse.Namespace, text: str) -> None:
    if not args.json:
        print(text, file=sys.stderr)


def _report(
    args: argparse.Namespace, source: str, recordings: Recordings, speeds: list[Speed], memory: list[Memory]
) -> int:
    growth = memory[-1].resident_mib - memory[0].resident_mib
    fast, steady = all(row.ratio >= LEAST_RATIO for row in speeds), growth <= MOST_GROWTH_MIB
    if args.json:
        result = {
            "data": source,
            "sessions": len(recordings.sessions),
            "trials": len(recordings),
            "verified": True,
            "speed": [asdict(row) for row in speeds],
            "memory": [asdict(row) for row in memory],
            "growth_mib": growth,
            "least_ratio": LEAST_RATIO,
            "most_growth_mib": MOST_GROWTH_MIB,
            "passed": fast and steady,
        }
        print(json.dumps(result, indent=2))
        return 0 if fast and steady else 1
    from rich.console import Console
    from rich.table import Table

    console = Console()
    table = Table(title=f"{recordings!r}, {source}; values equal those of bare h5py")
    for column in ("order", "trials", "MiB", "ours, s", "bare h5py, s", "ours MiB/s", "speed ratio", "range"):
        table.add_column(column, justify="left" if column == "order" else "right")
    for row in speeds:
        spread = f"{row.ratio_min:.2f}-{row.ratio_max:.2f}"
        cells = (row.trials, f"{row.mib:.0f}", f"{row.ours_s:.3f}", f"{row.bare_s:.3f}", f"{row.mib / row.ours_s:.0f}")
        table.add_row(row.order, *map(str, cells), f"{row.ratio:.2f}", spread)
    console.print(table)
    table = Table(title="resident memory of one process reading on and on")
    for column in ("sessions read", "trials read", "resident, MiB"):
        table.add_column(column, justify="right")
    for m in memory:
        table.add_row(str(m.sessions), str(m.trials), f"{m.resident_mib:.1f}")
    console.print(table)
    verdict = {True: "yes", False: "NO"}
    console.print(f"at least {LEAST_RATIO} times as fast as bare h5py, median of {args.rounds} rounds: {verdict[fast]}")
    console.print(
        f"memory does not grow with sessions ({growth:+.1f} MiB, limit {MOST_GROWTH_MIB:.0f}): {verdict[steady]}"
    )
    return 0 if fast and steady else 1
