"""Memory for the inner loops that begins at a line of the cache: a vector across two lines takes twice the time."""

from __future__ import annotations

import numpy as np

from snn.kernels.native.compile import compiled

LINE = 64
"""Bytes in a line of the cache."""


@compiled
def scratch(size, like):
    """`size` numbers of the dtype of the array `like`, not initialised."""
    itemsize = like.itemsize
    memory = np.empty(size + LINE // itemsize, like.dtype)
    first = (LINE - memory.ctypes.data % LINE) % LINE // itemsize
    return memory[first : first + size]
