"""A small least-recently-used cache that stays inside one process."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

V = TypeVar("V")


class ProcessCache(Generic[V]):
    """At most `size` values, made on demand, never carried over to another process.

    File handles must not cross a fork, and cannot be pickled. So the cache starts empty in every process that it finds
    itself in, and pickles as an empty one.

    Parameters
    ----------
    size
        How many values to keep; at least 1.
    dispose
        Called with each value that is dropped.
    """

    def __init__(self, size: int, dispose: Callable[[V], Any] | None = None) -> None:
        if size < 1:
            raise ValueError(f"a cache holds at least one value, not {size}")
        self.size, self.dispose = size, dispose
        self._start()

    def _start(self) -> None:
        self._pid = os.getpid()
        self._lock = threading.RLock()
        self._values: OrderedDict[Hashable, V] = OrderedDict()

    @contextmanager
    def use(self, key: Hashable, make: Callable[[], V]) -> Iterator[V]:
        """The value for a key, guarded against being dropped by another thread meanwhile."""
        if self._pid != os.getpid():  # forked: leave what belongs to the parent alone
            self._start()
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
            else:
                while len(self._values) >= self.size:
                    self._drop(self._values.popitem(last=False)[1])
                self._values[key] = make()
            yield self._values[key]

    def _drop(self, value: V) -> None:
        if self.dispose is not None:
            self.dispose(value)

    def clear(self) -> None:
        """Drop every value."""
        if self._pid != os.getpid():
            self._start()
        with self._lock:
            while self._values:
                self._drop(self._values.popitem()[1])

    def __len__(self) -> int:
        return len(self._values) if self._pid == os.getpid() else 0

    def __getstate__(self) -> dict:
        return {"size": self.size, "dispose": self.dispose}

    def __setstate__(self, state: dict) -> None:
        self.__dict__.update(state)
        self._start()
