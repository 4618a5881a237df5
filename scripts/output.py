"""Result folders that appear whole or not at all."""

from __future__ import annotations

import csv
import fcntl
import json
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from neuro.errors import DataError

MARKER = ".ranvier"
"""File that marks a folder as written by this project; only such a folder is ever replaced."""


def check_free(folder: Path, *, overwrite: bool) -> None:
    """Refuse a folder that exists, unless it may be replaced; called before any long work starts.

    Raises
    ------
    DataError
        If the folder exists without ``overwrite``, or with it but was not written by ranvier.
    """
    if not folder.exists():
        return
    if not overwrite:
        raise DataError("the output folder exists already; choose another, or replace it with --overwrite", file=folder)
    if not folder.is_dir() or (any(folder.iterdir()) and not (folder / MARKER).is_file()):
        raise DataError("--overwrite replaces only a folder that this command wrote, and this one was not", file=folder)


@contextmanager
def only_one(folder: Path, refusal: str) -> Iterator[None]:
    """Hold a folder, made where it is missing, so that no two processes write into it.

    Raises
    ------
    DataError
        With the sentence `refusal` if another process holds it.
    """
    missing = [place for place in (folder, *folder.parents) if not place.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    lock = folder / ".lock"
    with lock.open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise DataError(f"{refusal}; wait for it or name another folder", file=folder) from error
        try:
            yield
        finally:
            if missing and [entry.name for entry in folder.iterdir()] == [lock.name]:
                lock.unlink()  # nothing came of it: leave no trace
                with suppress(OSError):
                    for place in missing:
                        place.rmdir()


@contextmanager
def new_folder(folder: Path, *, overwrite: bool = False) -> Iterator[Path]:
    """Hand out a temporary folder that takes the wanted name when the block ends well.

    After an error (a full disk, Ctrl-C) the temporary folder is gone and an older result is still what it was.
    """
    check_free(folder, overwrite=overwrite)
    folder.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", suffix=".partial", dir=folder.parent))
    try:
        temporary.chmod(0o755)
        (temporary / MARKER).touch()
        yield temporary
        if folder.exists():
            shutil.rmtree(folder)
        temporary.rename(folder)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def write_json(path: Path, content: Any) -> None:
    """Write indented JSON; numbers that are not finite become null, which JSON has a word for."""
    path.write_text(json.dumps(plain(content), indent=2, allow_nan=False) + "\n")


def write_csv(path: Path, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Write rows under one header line."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(rows)


def plain(content: Any) -> Any:
    """Content as JSON knows it: builtin containers and numbers, strings for paths, None for NaN and infinity."""
    if isinstance(content, dict):
        return {str(key): plain(value) for key, value in content.items()}
    if isinstance(content, (list, tuple)):
        return [plain(value) for value in content]
    if hasattr(content, "item"):
        content = content.item()
    if isinstance(content, float) and content - content != 0:
        return None
    return str(content) if isinstance(content, Path) else content
