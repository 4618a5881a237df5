"""Images to classify: scikit-learn's digits, and any set in the idx files of MNIST and Fashion-MNIST.

Sources: the idx form, LeCun, Cortes & Burges, "The MNIST database of handwritten digits"; Xiao, Rasul & Vollgraf 2017
(arXiv:1708.07747) for Fashion-MNIST, which keeps that form and the names of the files; the digits of scikit-learn are
the test part of "Optical Recognition of Handwritten Digits", Alpaydin & Kaynak 1998 (UCI), 8x8 pixels of 0..16.
"""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from neuro.errors import DataError

IDX_TYPES: dict[int, str] = {0x08: "u1", 0x09: "i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
"""Type byte of an idx file to the NumPy type of its values, which are big-endian."""

IDX_FILES: dict[tuple[str, str], str] = {
    ("train", "images"): "train-images-idx3-ubyte",
    ("train", "labels"): "train-labels-idx1-ubyte",
    ("test", "images"): "t10k-images-idx3-ubyte",
    ("test", "labels"): "t10k-labels-idx1-ubyte",
}
"""The four files of a set; each may be gzipped (``.gz``) and may have ``.idx`` in place of ``-idx``."""

SPLITS = ("train", "val", "test")

_GZIP = b"\x1f\x8b"
_DIGITS_SHARE = 0.2  # of the digits go to val, and as many to test
_INSTALL = "Debian's package dataset-fashion-mnist installs the four files of Fashion-MNIST"


@dataclass(frozen=True)
class Images:
    """Labelled images of one size.

    Attributes
    ----------
    name : str
        Of the data set.
    pixels : float32 (n, C, H, W)
        0..1.
    labels : int64 (n,)
        0..classes - 1.
    classes : int
    """

    name: str
    pixels: np.ndarray
    labels: np.ndarray
    classes: int

    def __post_init__(self) -> None:
        for field, rank, dtype in (("pixels", 4, np.float32), ("labels", 1, np.int64)):
            array = getattr(self, field)
            if array.ndim != rank or array.dtype != dtype:
                raise DataError(
                    "images of an unknown kind",
                    field=field,
                    found=f"{array.dtype} {array.shape}",
                    expected=f"{np.dtype(dtype)} of {rank} dimensions",
                )
        if len(self.pixels) != len(self.labels):
            raise DataError(
                "images and labels differ in number", field="labels", found=len(self.labels), expected=len(self.pixels)
            )

    def __len__(self) -> int:
        return len(self.labels)

    def take(self, indices: np.ndarray | Sequence[int]) -> Images:
        """A copy of some of the images, in the order of ``indices``."""
        chosen = np.asarray(indices, np.int64)
        return Images(self.name, self.pixels[chosen], self.labels[chosen], self.classes)


def load_digits(seed: int = 0) -> dict[str, Images]:
    """The 1,797 handwritten digits of scikit-learn, 1x8x8 pixels, as train, val and test.

    Of each class 60, 20 and 20 %. No file is needed. The set names no writers, so one hand may be in all three splits.

    Parameters
    ----------
    seed
        Which images go where.

    Raises
    ------
    DataError
        If scikit-learn is not installed.
    """
    try:
        from sklearn import datasets
    except ModuleNotFoundError:
        raise DataError(
            "the digits are part of scikit-learn, which is not installed; install it with: pip install scikit-learn"
        ) from None
    raw = datasets.load_digits()
    images = Images("digits", (raw.images[:, None] / 16.0).astype(np.float32), raw.target.astype(np.int64), 10)
    held_out = round(len(images) * _DIGITS_SHARE)
    val, test, train = stratified(images.labels, (held_out, held_out), seed)
    return {"train": images.take(train), "val": images.take(val), "test": images.take(test)}


def load_idx(folder: Path | str, validation: int = 5000, seed: int = 0, *, classes: int = 10) -> dict[str, Images]:
    """A set in the four idx files of MNIST, as train, val and test.

    Test is the set's own (``t10k``). Val is taken from the training files, of each class its share.

    Parameters
    ----------
    folder
        Holds the files of `IDX_FILES`.
    validation
        Images in val, at least one.
    seed
        Which images go to val.
    classes
        Labels are 0..classes - 1.

    Raises
    ------
    DataError
        If the folder or files are missing (all are named); a file is no idx file of bytes; images and labels differ in
        number; test images differ in size from training images; a label is out of range; or there are not more
        training images than `validation`.

    Examples
    --------
    >>> sets = load_idx("/usr/share/datasets/fashion-mnist")  # doctest: +SKIP
    >>> {split: len(images) for split, images in sets.items()}  # doctest: +SKIP
    {'train': 55000, 'val': 5000, 'test': 10000}
    """
    folder = Path(folder)
    files = _find_files(folder)
    train, test = (
        _read_pair(folder.resolve().name, files[split, "images"], files[split, "labels"], classes)
        for split in ("train", "test")
    )
    if train.pixels.shape[1:] != test.pixels.shape[1:]:
        raise DataError(
            "test images differ in size from training images",
            file=files["test", "images"],
            found=test.pixels.shape[2:],
            expected=train.pixels.shape[2:],
        )
    if not 1 <= validation < len(train):
        raise DataError(
            "impossible number of images for validation",
            file=files["train", "images"],
            field="validation",
            found=validation,
            expected=f"at least 1 and fewer than the {len(train)} training images",
        )
    val, rest = stratified(train.labels, (validation,), seed)
    return {"train": train.take(rest), "val": train.take(val), "test": test}


def find_fashion_mnist() -> Path | None:
    """Folder with the files of Fashion-MNIST: in ``$RANVIER_DATA``, or where Debian's package puts them; else None.

    The package is ``dataset-fashion-mnist`` (``apt install dataset-fashion-mnist``).
    """
    places = [Path("/usr/share/datasets/fashion-mnist")]
    if own := os.environ.get("RANVIER_DATA"):
        places.insert(0, Path(own) / "fashion-mnist")
    return next((place for place in places if not _missing(place)), None)


def read_idx(path: Path | str) -> np.ndarray:
    """The array in an idx file, gzipped or not, of any type and rank, in the byte order of this machine.

    Raises
    ------
    DataError
        If the file is missing, is not gzipped though named so, is no idx file, or holds fewer or more bytes than its
        header says.
    """
    path = Path(path)
    data = _contents(path)
    if len(data) < 4 or data[0] or data[1] or data[2] not in IDX_TYPES:
        raise DataError(
            "not an idx file",
            file=path,
            field="magic number",
            found=data[:4].hex(" ") or "an empty file",
            expected=f"00 00, a type ({', '.join(f'{code:02x}' for code in IDX_TYPES)}), the number of dimensions",
        )
    rank = data[3]
    start = 4 + 4 * rank
    if len(data) < start:
        raise DataError("idx file cut short", file=path, field="sizes", found=f"{len(data)} bytes", expected=start)
    shape = tuple(int(size) for size in np.frombuffer(data, ">u4", rank, 4))
    dtype = np.dtype(IDX_TYPES[data[2]])
    count = 1
    for size in shape:  # as Python's integers, which do not overflow
        count *= size
    found, expected = len(data) - start, count * dtype.itemsize
    if found != expected:
        raise DataError(
            "idx file cut short" if found < expected else "idx file with bytes after its end",
            file=path,
            field="values",
            found=f"{found} bytes",
            expected=f"{expected}, for {dtype.name} {shape}",
        )
    return np.frombuffer(data, dtype, count, start).reshape(shape).astype(dtype.newbyteorder("="))


def stratified(labels: np.ndarray, sizes: Sequence[int], seed: int) -> list[np.ndarray]:
    """Disjoint random parts in which every class has the share that it has in the whole, to within one.

    Parameters
    ----------
    labels
        Of all items (n,).
    sizes
        Items of each part; together no more than n.
    seed
        Of the draw.

    Returns
    -------
    list of int64 arrays
        Positions of each part, ascending, and last of what is left over. Together they are 0..n - 1.

    Examples
    --------
    >>> part, rest = stratified(np.array([0, 1, 0, 1, 0, 1]), (2,), seed=0)
    >>> len(part), len(rest), len({0, 2, 4} & set(part.tolist()))
    (2, 4, 1)
    """
    rng = np.random.default_rng(seed)
    waiting = [rng.permutation(np.flatnonzero(labels == label)) for label in np.unique(labels)]
    parts = []
    for size in sizes:
        total = sum(map(len, waiting))
        exact = np.array([len(positions) for positions in waiting]) * (size / max(total, 1))
        taken = np.floor(exact).astype(int)
        # Those that lost most by rounding down get the rest; a stable sort keeps ties in the order of the classes.
        taken[np.argsort(taken - exact, kind="stable")[: size - taken.sum()]] += 1
        parts.append(np.sort(np.concatenate([p[:n] for p, n in zip(waiting, taken, strict=True)])))
        waiting = [p[n:] for p, n in zip(waiting, taken, strict=True)]
    return [*parts, np.sort(np.concatenate(waiting))]


def _candidates(name: str) -> list[str]:
    return [spelling + end for spelling in (name, name.replace("-idx", ".idx")) for end in ("", ".gz")]


def _missing(folder: Path) -> list[str]:
    return [name for name in IDX_FILES.values() if not any((folder / c).is_file() for c in _candidates(name))]


def _find_files(folder: Path) -> dict[tuple[str, str], Path]:
    if not folder.is_dir():
        raise DataError("folder of images not found", file=folder, expected=f"a folder with idx files; {_INSTALL}")
    if missing := _missing(folder):
        raise DataError(
            "idx files are missing", file=folder, expected=f"{', '.join(missing)} (each may end in .gz); {_INSTALL}"
        )
    return {
        key: next(path for c in _candidates(name) if (path := folder / c).is_file()) for key, name in IDX_FILES.items()
    }


def _contents(path: Path) -> bytes:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise DataError("file cannot be read", file=path, found=error.strerror) from None
    if not data.startswith(_GZIP):
        if path.suffix == ".gz":
            found = data[:2].hex(" ") or "an empty file"
            raise DataError("not a gzip file, though named so", file=path, found=found, expected="1f 8b")
        return data
    try:
        return gzip.decompress(data)
    except (OSError, EOFError, zlib.error) as error:
        raise DataError("gzip file is broken", file=path, found=str(error)) from None


def _read_pair(name: str, images_file: Path, labels_file: Path, classes: int) -> Images:
    images, labels = read_idx(images_file), read_idx(labels_file)
    for file, array, rank, what in ((images_file, images, 3, "images"), (labels_file, labels, 1, "labels")):
        if array.dtype != np.uint8 or array.ndim != rank or array.size == 0:
            raise DataError(
                f"idx file holds no {what}",
                file=file,
                field=what,
                found=f"{array.dtype} {array.shape}",
                expected=f"uint8 of {rank} dimension{'s' if rank > 1 else ''}, none of them 0",
            )
    if len(images) != len(labels):
        at: dict[str, Any] = {"found": len(labels), "expected": f"{len(images)}, as in {images_file.name}"}
        raise DataError("images and labels differ in number", file=labels_file, field="labels", **at)
    if (outside := np.flatnonzero(labels >= classes)).size:
        raise DataError(
            "label out of range",
            file=labels_file,
            field=f"labels[{outside[0]}]",
            found=labels[outside[0]],
            expected=f"0..{classes - 1}",
        )
    pixels = images[:, None].astype(np.float32) / np.float32(255.0)
    return Images(name, pixels, labels.astype(np.int64), classes)
