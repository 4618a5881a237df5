"""A file for HDF5 to write into that takes a full disk calmly."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import h5py


class _GuardedFile(io.FileIO):
    """Remembers the first failed write and swallows all later ones.

    When HDF5 meets an error of the operating system, it can neither go on nor close its file, and complains once for
    every object that it still holds. Told that all is well, it closes in peace, and the error is raised after that.
    """

    error: OSError | None = None

    def write(self, data: Any) -> int:
        view = memoryview(data).cast("B")
        size = len(view)
        try:
            while len(view) and self.error is None:
                view = view[super().write(view) :]
        except OSError as error:
            self.error = error
        return size

    def truncate(self, size: int | None = None) -> int:
        try:
            return super().truncate(size) if self.error is None else size or 0
        except OSError as error:
            self.error = error
            return size or 0

    def check(self) -> None:
        """Raise the first error, if there was one."""
        if self.error is not None:
            raise self.error


@contextmanager
def new_hdf5(path: Path) -> Iterator[h5py.File]:
    """A new HDF5 file to write; an error of the disk is raised as the `OSError` that it was.

    Raises
    ------
    OSError
        At the latest when the block ends.
    """
    with _GuardedFile(path, "x+b") as guarded:
        try:
            with h5py.File(guarded, "w") as file:
                yield file
        finally:
            guarded.check()
