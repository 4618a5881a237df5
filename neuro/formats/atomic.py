"""Folders and files that appear complete or not at all."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
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
        _explain(error, root, "folder")
        raise


@contextmanager
def new_file(path: Path, *, overwrite: bool, replaceable: Callable[[Path], bool]) -> Iterator[Path]:
    """Name of a hidden file beside `path`, to be written in the block; it takes its name only when the block ends well.

    On any exception, Ctrl-C included, the hidden file is removed and `path` is as it was before.

    Parameters
    ----------
    path
        The file to make; its parents are made as needed.
    overwrite
        Replace an existing `path`. The old one stays until the new one is complete.
    replaceable
        Tells whether an existing file may be replaced, so that a slip of the pen never deletes something else.

    Raises
    ------
    DataError
        If `path` exists and may not be replaced, or no space is left on the device.
    """
    path = Path(path).absolute()
    _refuse_existing_file(path, overwrite, replaceable)
    partial = path.with_name(f".{path.name}.partial-{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield partial
        _refuse_existing_file(path, overwrite, replaceable)  # it may have appeared meanwhile
        partial.replace(path)
    except BaseException as error:
        with suppress(OSError):
            partial.unlink()
        _explain(error, path, "file")
        raise


def _explain(error: BaseException, path: Path, what: str) -> None:
    """Raise a sentence in place of an error of the file system, where there is one."""
    if is_full(error):
        raise DataError("no space left on the device; nothing was written", file=path) from error
    if isinstance(error, PermissionError | NotADirectoryError | FileExistsError):
        raise DataError(f"the {what} cannot be made here", file=path, found=error.strerror) from error


def _refuse_existing_file(path: Path, overwrite: bool, replaceable: Callable[[Path], bool]) -> None:
    if not os.path.lexists(path):
        return
    if path.is_dir():
        raise DataError("the output is a folder", file=path, expected="the name of a file")
    if not overwrite:
        raise DataError(
            "the output exists already", file=path, expected="a new name, or overwrite (--overwrite) to replace it"
        )
    if path.is_symlink() or not replaceable(path):
        raise DataError("only a file of the same kind is overwritten, and this is something else", file=path)


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
