"""Split work over as many threads as torch uses.

The kernels release the interpreter lock and each part writes results of its own, so the number of threads never changes
a result. Threads of Python and not numba's own: those end the process when two of its threads use them at once.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache

import torch


@lru_cache(maxsize=2)
def _pool(process: int, workers: int) -> ThreadPoolExecutor:
    # The process is part of the key: threads do not survive a fork.
    return ThreadPoolExecutor(workers, thread_name_prefix="ranvier")


def in_parts(work: Callable[[int, int], None], total: int, *, least: int = 1) -> None:
    """Call `work(start, stop)` over 0..total, in as many parts as torch has threads, none smaller than `least`."""
    parts = max(1, min(torch.get_num_threads(), total // max(1, least)))
    if parts == 1:
        work(0, total)
        return
    bounds = [total * k // parts for k in range(parts + 1)]
    pool = _pool(os.getpid(), parts - 1)
    waiting = [pool.submit(work, bounds[k], bounds[k + 1]) for k in range(1, parts)]
    try:
        work(bounds[0], bounds[1])
    finally:
        for part in waiting:
            part.result()
