"""Compile functions with numba, once for each machine where a folder for the result can be written."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from functools import cache
from typing import Any


@cache  # asked at every call of every operator
def numba_is_missing() -> str | None:
    """Why the compiled kernels cannot run; None when numba is installed."""
    if importlib.util.find_spec("numba") is None:
        return "numba is not installed"
    return None


def compiled(function: Callable[..., Any], **options: Any) -> Any:
    """`numba.njit` without the interpreter lock, cached on disk where numba finds a folder that it may write."""
    import numba

    # Division as in NumPy: a check for zero in every loop would keep them from running in vectors.
    options = {"nogil": True, "error_model": "numpy", **options}
    try:
        return numba.njit(cache=True, **options)(function)
    except RuntimeError:
        # Neither the package's folder nor the user's cache can be written: compile again in each process.
        return numba.njit(**options)(function)
