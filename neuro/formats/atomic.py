"""Folders that appear complete or not at all."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from neuro.errors import DataError

_FULL = {errno.ENOSPC, errno.EDQUOT}


@contextmanager
def new_folder(root: Path, *, overwrite: bool, replaceable: Callable[[Path], bool]) -> Iterator[Path]:
    """Fill a hidden folder beside `root`, which takes its name only when the block ends well.

    On any exception, Ctrl-C included, the hidden folder is removed and `root` is as it was before.

    Parameters
    ----------
    root
        The folder to make; its parents are made as needed.
    overwrite
        Replace an existing `root`. The old one stays until the new one is complete.
    replaceable
        Tells whether an existing folder may be replaced, so that a slip of the pen never deletes something else.

    Raises
    ------
    DataError
        If `root` exists and may not be replaced, or no space is left on the device.
    """
    root = Path(root).absolute()
    _refuse_existing(root, overwrite, replaceable)
    partial = root.with_name(f".{root.name}.partial-{os.getpid()}")
    try:
        partial.mkdir(parents=True)
        yield partial
        _take_name(partial, root, overwrite, replaceable)
    except BaseException as error:
        shutil.rmtree(partial, ignore_errors=True)
        if is_full(error):
            raise DataError("no space left on the device; nothing was written", file=root) from error
        if isinstance(error, PermissionError | NotADirectoryError):
            raise DataError("the folder cannot be made here", file=root, found=error.strerror) from error
        raise


def _refuse_existing(root: Path, overwrite: bool, replaceable: Callable[[Path], bool]) -> None:
    if not os.path.lexists(root):
        return
    if not overwrite:
        raise DataError(
            "the output exists already", file=root, expected="a new folder, or overwrite (--overwrite) to replace it"
        )
    if not root.is_dir() or root.is_symlink() or not (replaceable(root) or not any(root.iterdir())):
        raise DataError("only a folder with recordings is overwritten, and this is something else", file=root)


def _take_name(partial: Path, root: Path, overwrite: bool, replaceable: Callable[[Path], bool]) -> None:
    _refuse_existing(root, overwrite, replaceable)  # it may have appeared while the trials were made
    if not root.exists():
        partial.rename(root)
        return
    old = root.with_name(f".{root.name}.old-{os.getpid()}")
    root.rename(old)
    try:
        partial.rename(root)
    except BaseException:
        old.rename(root)
        raise
    shutil.rmtree(old, ignore_errors=True)


def is_full(error: BaseException) -> bool:
    """Whether an exception means that the disk, or the user's share of it, is full.

    HDF5 reports it in the text of an OSError or RuntimeError and may leave errno unset.
    """
    if isinstance(error, OSError) and error.errno in _FULL:
        return True
    texts = ("No space left on device", "Disk quota exceeded")
    return isinstance(error, OSError | RuntimeError) and any(text in str(error) for text in texts)
