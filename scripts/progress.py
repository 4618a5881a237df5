"""Progress on the terminal, on stderr, so that results on stdout can be piped."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress_bar(what: str, total: int, *, quiet: bool = False) -> Iterator[Callable[[int], None]]:
    """Bar over ``total`` items; hands out a function that is told how many more are done.

    Where stderr is no terminal, two plain lines (start and end) stand in for the bar.
    """
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    console = Console(stderr=True, quiet=quiet)
    if not sys.stderr.isatty():
        console.print(f"{what}: {total} ...")
        yield lambda done: None
        console.print(f"{what}: done")
        return
    columns = (
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn(),
    )  # fmt: skip
    with Progress(*columns, console=console) as bar:
        task = bar.add_task(what, total=total)
        yield lambda done: bar.advance(task, done)
