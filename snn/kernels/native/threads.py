"""Split work over torch's own threads.

The kernels release the interpreter lock and each part writes results of its own, so the number of threads never changes
a result. Torch's threads keep their cores busy for a while after each of torch's operations, waiting for the next;
other threads would share the cores with them and take up to twice as long.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import torch

_Job = tuple[Callable[[int, int], None], int, int]
_Callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_forked = False


def _note_fork() -> None:
    global _forked
    _forked = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_note_fork)


def in_parts(work: Callable[[int, int], None], total: int, *, least: int = 1) -> None:
    """Call `work(start, stop)` over 0..total, in as many parts as torch has threads, none smaller than `least`."""
    parts = max(1, min(torch.get_num_threads(), total // max(1, least)))
    if parts == 1:
        work(0, total)
        return
    bounds = [total * k // parts for k in range(parts + 1)]
    jobs: list[_Job] = [(work, bounds[k], bounds[k + 1]) for k in range(parts)]
    region = _parallel_region()
    # OpenMP's threads do not survive a fork, and a child that asks for them waits for ever.
    if region is None or _forked:
        _in_pool(jobs)
    else:
        _in_region(region, jobs)


@cache
def _parallel_region() -> Any:
    """`GOMP_parallel` of the OpenMP that torch is linked to; None where it has another one or none."""
    library = Path(torch.__file__).parent / "lib" / "libtorch_cpu.so"
    try:
        region = ctypes.CDLL(str(library)).GOMP_parallel
    except (OSError, AttributeError):
        return None
    region.argtypes = [_Callback, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint]
    region.restype = None
    return region


def _in_region(region: Any, jobs: list[_Job]) -> None:
    waiting, faults = iter(jobs), []

    def take(_: Any) -> None:
        # A loop: OpenMP may give fewer threads than it is asked for. An exception cannot pass through its frames.
        for work, start, stop in waiting:
            try:
                work(start, stop)
            except BaseException as error:
                faults.append(error)

    region(_Callback(take), None, len(jobs), 0)
    if faults:
        raise faults[0]


@lru_cache(maxsize=2)
def _pool(process: int, workers: int) -> ThreadPoolExecutor:
    # The process is part of the key: threads do not survive a fork.
    return ThreadPoolExecutor(workers, thread_name_prefix="ranvier")


def _in_pool(jobs: list[_Job]) -> None:
    (work, start, stop), *others = jobs
    pool = _pool(os.getpid(), len(others))
    waiting = [pool.submit(part, begin, end) for part, begin, end in others]
    try:
        work(start, stop)
    finally:
        for part in waiting:
            part.result()
