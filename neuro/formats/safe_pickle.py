"""Reads pickles of NumPy arrays and builtin containers, and refuses everything else before it could run."""

from __future__ import annotations

import pickle
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np

from neuro.errors import DataError


class _Latin1:
    """``_codecs.encode`` for the one purpose that old pickles of bytes have for it."""

    __slots__ = ()

    def __call__(self, text: str, encoding: str) -> bytes:
        if encoding != "latin1":
            raise pickle.UnpicklingError(f"encoding {encoding!r}")
        return text.encode("latin1")


class _Scalar:
    """NumPy's scalar builder, for plain numbers and text only."""

    __slots__ = ()

    def __call__(self, dtype: np.dtype, data: bytes = b"") -> Any:
        if dtype.hasobject:
            raise pickle.UnpicklingError("scalar of objects")
        return np.frombuffer(data, dtype, count=1)[0]


class _Reconstruct:
    """NumPy's array builder, for its own array class only."""

    __slots__ = ()

    def __call__(self, cls: type, shape: tuple, code: Any) -> np.ndarray:
        if cls is not np.ndarray:
            raise pickle.UnpicklingError(f"array of class {cls!r}")
        return np.ndarray.__new__(cls, shape, code)


class _FromBuffer:
    """What arrays become in protocol 5."""

    __slots__ = ()

    def __call__(self, buffer: Any, dtype: np.dtype, shape: tuple, order: Any) -> np.ndarray:
        if dtype.hasobject:
            raise pickle.UnpicklingError("buffer of objects")
        return np.frombuffer(buffer, dtype).reshape(shape, order=order)


# Calling any of these with any arguments makes data and does nothing else. NumPy 2 renamed its core package.
_NUMPY = {"_reconstruct": _Reconstruct(), "scalar": _Scalar(), "_frombuffer": _FromBuffer()}
_ALLOWED: dict[tuple[str, str], Any] = {
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): np.dtype,
    ("_codecs", "encode"): _Latin1(),
    ("collections", "OrderedDict"): OrderedDict,
    **{
        (f"numpy.{core}.{module}", name): builder
        for core in ("core", "_core")
        for module, name in (("multiarray", "_reconstruct"), ("multiarray", "scalar"), ("numeric", "_frombuffer"))
        for builder in (_NUMPY[name],)
    },
    **{
        (module, name): kind
        for module in ("builtins", "__builtin__")
        for name, kind in (("set", set), ("frozenset", frozenset), ("list", list), ("bytearray", bytearray))
    },
}


class _RefusedError(Exception):
    """The pickle asks for something that is not data; carries its name."""


class _SafeUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        try:
            return _ALLOWED[module, name]
        except KeyError:
            raise _RefusedError(f"{module}.{name}") from None


def load(path: Path | str) -> Any:
    """Read a pickle of dictionaries, lists, tuples, sets, text, numbers and NumPy arrays.

    Nothing else is even looked up, so a pickle that would run code is refused with the name of what it asks for.

    Parameters
    ----------
    path
        Pickle of any protocol.

    Returns
    -------
    object

    Raises
    ------
    DataError
        If the pickle would run code, is damaged, or cannot be read.
    """
    try:
        with Path(path).open("rb") as file:
            return _SafeUnpickler(file, encoding="latin1").load()
    except _RefusedError as error:
        raise DataError(
            "the pickle would run code, and was not read",
            file=path,
            found=str(error),
            expected="NumPy arrays, text, numbers and builtin containers only",
        ) from None
    except MemoryError:
        raise
    except OSError as error:
        raise DataError("file cannot be read", file=path, found=error.strerror or str(error)) from error
    except Exception as error:  # a damaged pickle fails in whichever opcode it likes
        raise DataError("not a complete pickle", file=path, found=f"{type(error).__name__}: {error}") from error
