"""What the speed tables share: side-by-side rounds, peak memory, and whether the machine was busy meanwhile."""

from __future__ import annotations

import ctypes
import gc
import json
import os
import platform
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from scripts.benches.page import LEGEND, cells, page_lines

BUSY_SHARE = 0.1
"""Share of one core that others may use while we time before a table carries a warning."""


@dataclass(frozen=True)
class Measured:
    """One contestant.

    Attributes
    ----------
    name : str
    median, low, high, best : float
        Seconds of a call: median, quartiles, and the fastest.
    peak_mib : float or None
        Growth of resident memory during a call; None where the system does not tell.
    """

    name: str
    median: float
    low: float
    high: float
    best: float
    peak_mib: float | None = None


@dataclass(frozen=True)
class Row:
    """One line of a table: a contestant on one case, and how many times as long as ours it took.

    Attributes
    ----------
    case : str
        Shape and activity.
    ratio, ratio_best : float
        Its median over ours, and its fastest call over our fastest.
    least : float or None
        What the ratio should at least be, where something is promised.
    """

    case: str
    contestant: Measured
    ratio: float
    ratio_best: float
    least: float | None = None


def side_by_side(calls: Mapping[str, Callable[[], Any]], rounds: int, *, device: str = "cpu") -> dict[str, Measured]:
    """Time every call once a round, in turn, so that all meet the same machine; each right after an untimed one.

    Parameters
    ----------
    calls
        By name; each is warmed up twice first.
    rounds
        Timed rounds.
    device
        "cuda" waits for the device around each call.
    """
    wait = _waiter(device)
    for call in calls.values():
        call()
        call()
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            # The call before was another's, whose threads may still be spinning and whose data fill the caches.
            call()
            wait()
            start = time.perf_counter()
            call()
            wait()
            seconds[name].append(time.perf_counter() - start)
    peaks = {name: _median_or_none([peak_mib(call, device) for _ in range(5)]) for name, call in calls.items()}
    return {name: measured(name, seconds[name], peaks[name]) for name in calls}


def _median_or_none(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None


def measured(name: str, seconds: Sequence[float], peak: float | None = None) -> Measured:
    """Median, quartiles and fastest of some calls."""
    low, median, high = statistics.quantiles(seconds, n=4) if len(seconds) > 1 else [seconds[0]] * 3
    return Measured(name, median, low, high, min(seconds), peak)


def rows_of(case: str, results: Mapping[str, Measured], ours: str, promised: Mapping[str, float] = {}) -> list[Row]:
    """One row a contestant, ours first."""
    mine = results[ours]
    order = [mine, *(other for name, other in results.items() if name != ours)]
    return [
        Row(case, other, other.median / mine.median, other.best / mine.best, promised.get(other.name))
        for other in order
    ]


def peak_mib(call: Callable[[], Any], device: str = "cpu") -> float | None:
    """Growth of memory during one call, in MiB; None where the system does not tell."""
    import torch

    if device == "cuda":
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        call()
        return (torch.cuda.max_memory_allocated() - before) / 2**20
    status, clear = Path("/proc/self/status"), Path("/proc/self/clear_refs")
    if not status.exists() or not os.access(clear, os.W_OK):
        return None
    gc.collect()
    try:
        ctypes.CDLL("libc.so.6").malloc_trim(0)  # else freed memory would hide what the call takes
    except (OSError, AttributeError):
        return None
    clear.write_text("5")
    before_kib = _status(status, "VmRSS:")
    call()
    return (_status(status, "VmHWM:") - before_kib) / 2**10


def _status(file: Path, key: str) -> int:
    return next(int(line.split()[1]) for line in file.read_text().splitlines() if line.startswith(key))


def _waiter(device: str) -> Callable[[], None]:
    if device != "cuda":
        return lambda: None
    import torch

    return torch.cuda.synchronize


@contextmanager
def watched(warnings: list[Any]) -> Iterator[None]:
    """Add a warning when others used the machine inside the block."""
    before, mine, start = _machine_seconds(), time.process_time(), time.perf_counter()
    yield
    after = _machine_seconds()
    if before is None or after is None:
        return
    elapsed = time.perf_counter() - start
    others = (after - before - (time.process_time() - mine)) / max(elapsed, 1e-9)
    if others > BUSY_SHARE:
        warnings.append(
            f"other processes used {others:.1f} cores while these were timed; run it again on an idle machine"
        )


def _machine_seconds() -> float | None:
    """Seconds of work of all processors so far, and of time taken by other guests of the host."""
    file = Path("/proc/stat")
    if not file.exists():
        return None
    user, nice, system, _, _, irq, softirq, steal, *_ = map(int, file.read_text().split("\n", 1)[0].split()[1:])
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


def machine() -> dict[str, Any]:
    """Processor, cores, threads and versions: what a table must say to mean anything."""
    import torch

    model = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        model = next((x.split(":")[1].strip() for x in info.read_text().splitlines() if "model name" in x), model)
    return {
        "processor": model,
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "device": torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu",
        "torch": torch.__version__,
        "python": platform.python_version(),
        "date": time.strftime("%Y-%m-%d"),
    }


def print_tables(title: str, rows: Sequence[Row], notes: Sequence[str]) -> None:
    """One table a case."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    console = Console()
    if not console.is_terminal:
        console = Console(width=120)  # a file has room
    facts = machine()
    console.print(f"{title}: {', '.join(f'{key} {value}' for key, value in facts.items())}", highlight=False)
    for case in dict.fromkeys(row.case for row in rows):
        table = Table(title=case, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
        table.add_column("contestant", no_wrap=True)
        for column in ("ms", "quartiles", "x ours", "fastest", "promised", "MiB"):
            table.add_column(column, justify="right", no_wrap=True)
        for row in rows:
            if row.case == case:
                table.add_row(*cells(row))
        console.print(table)
    console.print(LEGEND, style="dim", highlight=False)
    for note in dict.fromkeys(notes):
        console.print(f"note: {note}", style="yellow", highlight=False, markup=False)


@dataclass(frozen=True)
class Limit:
    """A figure that should stay below a limit, among the notes: `what`, then `found` with its `unit`."""

    what: str
    found: float
    most: float
    unit: str = ""

    @property
    def held(self) -> bool:
        """Whether the limit was kept."""
        return self.found <= self.most

    def __str__(self) -> str:
        return f"{self.what} {self.found:.2f}{self.unit} (promised {self.most}: {'yes' if self.held else 'NO'})"


def write_results(file: Path, title: str, rows: Sequence[Row], notes: Sequence[str]) -> None:
    """All figures as JSON, and the tables as a Markdown page beside it."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(_content(rows, notes), indent=2) + "\n")
    plot = file.with_suffix(".png")
    lines = page_lines(title, machine(), rows, notes, plot.name if plot.exists() else None)
    file.with_suffix(".md").write_text("\n".join(lines) + "\n")


def _content(rows: Sequence[Row], notes: Sequence[str]) -> dict[str, Any]:
    return {"machine": machine(), "verified": True, "rows": [asdict(row) for row in rows], "notes": list(notes)}


def finish(args: Any, title: str, rows: Sequence[Row], notes: Sequence[str | Limit]) -> int:
    """Print (or dump) and write the results; 1 when a ratio promised in `rows` or a limit in `notes` was missed."""
    missed = sum(row.least is not None and row.ratio < row.least for row in rows)
    missed += sum(isinstance(note, Limit) and not note.held for note in notes)
    lines = [str(note) for note in notes]
    if missed:
        lines += [f"{missed} of the promised ratios or limits were missed in this run, so the exit code is 1"]
    if args.json:
        print(json.dumps(_content(rows, lines), indent=2))
    else:
        print_tables(title, rows, lines)
    if args.out is not None:
        write_results(args.out, title, rows, lines)
    return 1 if missed else 0


def add_common_arguments(parser: Any, rounds: int) -> None:
    """Options that all speed tables share."""
    parser.add_argument("--rounds", type=int, default=rounds, help="timed rounds (default: %(default)s)")
    parser.add_argument("--threads", type=int, help="threads of torch (default: torch's own choice)")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="(default: %(default)s)")
    parser.add_argument(
        "--out", type=Path, metavar="FILE.json", help="write the figures, a page of the tables and plots beside it"
    )
    parser.add_argument("--json", action="store_true", help="print machine-readable results")


def prepare(args: Any) -> None:
    """Check the shared options and set the threads.

    Raises
    ------
    DataError
        For a number that makes no sense, or a device that is not there.
    """
    import torch

    from neuro import DataError

    for name in ("rounds", "threads"):
        value = getattr(args, name)
        if value is not None and value < 1:
            raise DataError("needs to be at least 1", field=f"--{name}", found=value)
    if args.out is not None:
        # Now, and not after the work.
        args.out.parent.mkdir(parents=True, exist_ok=True)
        args.out.touch()
    if args.device == "cuda" and not torch.cuda.is_available():
        raise DataError("there is no CUDA device", field="--device", found="cuda", expected="cpu")
    if args.threads:
        torch.set_num_threads(args.threads)
    torch.manual_seed(0)
