"""Images from idx files and from scikit-learn: contents, splits, and every way in which a file can be at fault."""

from __future__ import annotations

import builtins
import gzip
import struct
from pathlib import Path

import numpy as np
import pytest

from neuro import DataError
from neuro.images import IDX_FILES, Images, find_fashion_mnist, load_digits, load_idx, read_idx, stratified

CODES = {"u1": 0x08, "i1": 0x09, "i2": 0x0B, "i4": 0x0C, "f4": 0x0D, "f8": 0x0E}


def idx(array: np.ndarray) -> bytes:
    """What an idx file of an array must hold, value by value."""
    code = array.dtype.str[1:]
    letter = {"u1": "B", "i1": "b", "i2": "h", "i4": "i", "f4": "f", "f8": "d"}[code]
    out = bytes([0, 0, CODES[code], array.ndim])
    for size in array.shape:
        out += struct.pack(">I", size)
    for value in array.reshape(-1).tolist():
        out += struct.pack(">" + letter, value)
    return out


def write_set(folder: Path, n_train: int = 60, n_test: int = 20, end: str = "", name=lambda n: n) -> Path:
    folder.mkdir()
    rng = np.random.default_rng(0)
    for (split, what), file in IDX_FILES.items():
        n = n_train if split == "train" else n_test
        shape = (n, 5, 4) if what == "images" else (n,)
        values = rng.integers(0, 256, shape) if what == "images" else np.arange(n) % 10
        data = idx(values.astype(np.uint8))
        (folder / (name(file) + end)).write_bytes(gzip.compress(data) if end else data)
    return folder


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("shape", [(), (0,), (1,), (7,), (3, 2), (2, 3, 1, 4)])
@pytest.mark.parametrize("packed", [False, True])
def test_any_type_and_rank_is_read(tmp_path: Path, code: str, shape: tuple[int, ...], packed: bool) -> None:
    array = np.random.default_rng(0).normal(0, 40, shape).astype(code if code[0] != "u" else "i1")
    array = np.asarray(array).astype(code)
    path = tmp_path / "array.gz" if packed else tmp_path / "array"
    path.write_bytes(gzip.compress(idx(array)) if packed else idx(array))
    read = read_idx(path)
    assert read.dtype == array.dtype and read.dtype.isnative and read.shape == shape
    np.testing.assert_array_equal(read, array)
    if read.size:
        read[...] = 0  # the caller's own array


def test_a_gzipped_file_needs_no_name_for_it(tmp_path: Path) -> None:
    (tmp_path / "plain").write_bytes(gzip.compress(idx(np.arange(5, dtype="u1"))))
    assert read_idx(tmp_path / "plain").tolist() == [0, 1, 2, 3, 4]


GOOD = idx(np.arange(6, dtype="i4").reshape(2, 3))


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("a", b"", "not an idx file.*an empty file"),
        ("a", b"\0\0\x08", "not an idx file.*00 00 08,"),
        ("a", b"\0\0\x0a\x01" + GOOD[4:], "magic number.*found 00 00 0a 01, expected 00 00, a type"),
        ("a", b"\x89PNG and so on", "not an idx file"),
        ("a", GOOD[:7], "cut short .*a, field sizes.*found 7 bytes, expected 12"),
        ("a", GOOD[:-1], r"cut short .*values.*found 23 bytes, expected 24, for int32 \(2, 3\)"),
        ("a", GOOD + b"\0", "bytes after its end.*found 25 bytes, expected 24"),
        ("a", b"\0\0\x08\x04" + b"\xff" * 16, "cut short.*found 0 bytes, expected 340282366"),
        ("a.gz", GOOD, "not a gzip file, though named so .*a.gz.*found 00 00, expected 1f 8b"),
        ("a.gz", b"", "not a gzip file.*an empty file"),
        ("a.gz", gzip.compress(GOOD)[:-9], "gzip file is broken .*a.gz"),
        ("a.gz", gzip.compress(GOOD)[:20] + b"\xff" * 30, "gzip file is broken .*a.gz"),
    ],
)
def test_faulty_files(tmp_path: Path, name: str, data: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(DataError, match=message):
        read_idx(tmp_path / name)


def test_absent_file(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"cannot be read .*none\): found No such file"):
        read_idx(tmp_path / "none")


@pytest.mark.parametrize("end", ["", ".gz"])
@pytest.mark.parametrize("name", [lambda n: n, lambda n: n.replace("-idx", ".idx")], ids=["-idx", ".idx"])
def test_a_set_in_four_files(tmp_path: Path, end: str, name) -> None:
    folder = write_set(tmp_path / "mine", end=end, name=name)
    sets = load_idx(folder, validation=20)
    assert {split: len(images) for split, images in sets.items()} == {"train": 40, "val": 20, "test": 20}
    for split, images in sets.items():
        assert images.name == "mine" and images.classes == 10
        assert images.pixels.shape == (len(images), 1, 5, 4) and images.pixels.dtype == np.float32
        assert np.bincount(images.labels, minlength=10).tolist() == [len(images) // 10] * 10, split
    raw = read_idx(folder / (name(IDX_FILES["test", "images"]) + end))
    np.testing.assert_array_equal(sets["test"].pixels[:, 0], raw.astype(np.float32) / np.float32(255))
    assert sets["test"].pixels.max() <= 1 and sets["test"].labels.tolist() == [*range(10)] * 2


def rows(images: Images) -> set[bytes]:
    return {image.tobytes() + label.tobytes() for image, label in zip(images.pixels, images.labels, strict=True)}


def test_val_is_taken_from_train_and_from_nothing_else(tmp_path: Path) -> None:
    folder = write_set(tmp_path / "mine")
    first, again, other = (load_idx(folder, validation=25, seed=seed) for seed in (1, 1, 2))
    assert rows(first["train"]).isdisjoint(rows(first["val"]))
    assert rows(first["val"]).isdisjoint(rows(first["test"]))
    assert rows(first["train"]) | rows(first["val"]) == rows(other["train"]) | rows(other["val"])
    assert len(rows(first["train"]) | rows(first["val"])) == 60
    assert all(np.array_equal(first[split].pixels, again[split].pixels) for split in first)
    assert rows(first["val"]) != rows(other["val"])
    assert np.ptp(np.bincount(first["val"].labels, minlength=10)) == 1  # 25 of 10 equal classes: 2 or 3 each


def test_a_folder_named_by_a_dot_still_has_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(write_set(tmp_path / "mine"))
    assert load_idx(".", validation=5)["val"].name == "mine"


def damage_labels(folder: Path, values: list[int]) -> None:
    (folder / IDX_FILES["train", "labels"]).write_bytes(idx(np.array(values, np.uint8)))


def test_faulty_sets(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"folder of images not found .*none.*dataset-fashion-mnist"):
        load_idx(tmp_path / "none")
    folder = write_set(tmp_path / "mine")
    for validation in (0, -1, 60, 5000):
        with pytest.raises(DataError, match=f"validation.*found {validation}, .*fewer than the 60 training images"):
            load_idx(folder, validation=validation)
    damage_labels(folder, [1] * 59)
    with pytest.raises(DataError, match=r"differ in number .*train-labels.*found 59, expected 60, as in train-images"):
        load_idx(folder, validation=5)
    damage_labels(folder, [*[9] * 58, 10, 11])
    with pytest.raises(DataError, match=r"out of range .*train-labels.*labels\[58\]\): found 10, expected 0\.\.9"):
        load_idx(folder, validation=5)
    assert load_idx(folder, validation=5, classes=12)["train"].classes == 12
    (folder / IDX_FILES["train", "labels"]).write_bytes(idx(np.zeros(60, np.int32)))
    with pytest.raises(DataError, match=r"holds no labels .*found int32 \(60,\), expected uint8 of 1 dimension,"):
        load_idx(folder, validation=5)
    damage_labels(folder, [1] * 60)
    (folder / IDX_FILES["test", "images"]).write_bytes(idx(np.zeros((20, 4, 5), np.uint8)))
    with pytest.raises(DataError, match=r"differ in size .*t10k-images.*found \(4, 5\), expected \(5, 4\)"):
        load_idx(folder, validation=5)
    (folder / IDX_FILES["test", "images"]).write_bytes(idx(np.zeros((0, 5, 4), np.uint8)))
    with pytest.raises(DataError, match=r"holds no images .*t10k-images.*\(0, 5, 4\)"):
        load_idx(folder, validation=5)
    for name in (IDX_FILES["test", "images"], IDX_FILES["train", "labels"]):
        (folder / name).unlink()
    with pytest.raises(DataError, match=r"missing .*mine.*train-labels-idx1-ubyte, t10k-images-idx3-ubyte \("):
        load_idx(folder, validation=5)


def test_parts_keep_the_shares_of_the_classes() -> None:
    labels = np.random.default_rng(0).choice(4, 1003, p=[0.5, 0.3, 0.15, 0.05])
    parts = stratified(labels, (100, 37, 0), seed=3)
    assert [len(part) for part in parts] == [100, 37, 0, 866]
    assert np.sort(np.concatenate(parts)).tolist() == list(range(1003))
    share = np.bincount(labels) / len(labels)
    for part in parts:
        assert (np.diff(part) > 0).all()
        assert (abs(np.bincount(labels[part], minlength=4) - share * len(part)) <= 2).all()
    assert [len(part) for part in stratified(np.zeros(3, int), (3,), seed=0)] == [3, 0]


def test_images_are_checked_and_taken_in_order() -> None:
    images = Images("x", np.arange(6, dtype=np.float32).reshape(3, 1, 2, 1), np.array([2, 0, 1]), 3)
    some = images.take([2, 0])
    assert len(images) == 3 and some.labels.tolist() == [1, 2] and some.pixels.ravel().tolist() == [4, 5, 0, 1]
    assert len(images.take([])) == 0
    with pytest.raises(DataError, match="pixels"):
        Images("x", np.zeros((3, 1, 2, 1)), np.array([2, 0, 1]), 3)
    with pytest.raises(DataError, match="labels"):
        Images("x", np.zeros((3, 1, 2, 1), np.float32), np.array([2.0, 0, 1]), 3)
    with pytest.raises(DataError, match="found 2, expected 3"):
        Images("x", np.zeros((3, 1, 2, 1), np.float32), np.array([2, 0]), 3)


def test_digits() -> None:
    datasets = pytest.importorskip("sklearn.datasets", reason="the digits need scikit-learn")
    sets = load_digits()
    assert {split: len(images) for split, images in sets.items()} == {"train": 1079, "val": 359, "test": 359}
    assert sets["train"].pixels.shape == (1079, 1, 8, 8) and sets["train"].pixels.dtype == np.float32
    assert sets["val"].pixels.min() == 0 and sets["val"].pixels.max() == 1
    raw = datasets.load_digits()
    everything = Images("digits", (raw.images[:, None] / 16).astype(np.float32), raw.target.astype(np.int64), 10)
    together = [rows(images) for images in sets.values()]
    assert set.union(*together) == rows(everything)
    assert sum(map(len, together)) == len(rows(everything))  # no image is in two splits
    whole = np.bincount(raw.target) / 1797
    for images in sets.values():
        assert (abs(np.bincount(images.labels) - whole * len(images)) <= 2).all()
    other = load_digits(seed=1)
    assert not np.array_equal(other["test"].pixels, sets["test"].pixels)
    assert np.array_equal(load_digits(seed=0)["test"].pixels, sets["test"].pixels)


def test_digits_without_scikit_learn(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def absent(name, *args, **kwargs):
        if name.split(".")[0] == "sklearn":
            raise ModuleNotFoundError(name, name=name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", absent)
    with pytest.raises(DataError, match="pip install scikit-learn"):
        load_digits()


def test_the_users_own_folder_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_set(tmp_path / "fashion-mnist", end=".gz")
    monkeypatch.setenv("RANVIER_DATA", str(tmp_path))
    assert find_fashion_mnist() == tmp_path / "fashion-mnist"
    (tmp_path / "fashion-mnist" / (IDX_FILES["test", "labels"] + ".gz")).unlink()
    assert find_fashion_mnist() != tmp_path / "fashion-mnist"


def test_fashion_mnist_itself() -> None:
    folder = find_fashion_mnist()
    if folder is None:
        pytest.skip("Fashion-MNIST not found; Debian's package dataset-fashion-mnist installs it")
    sets = load_idx(folder)
    assert {split: len(images) for split, images in sets.items()} == {"train": 55000, "val": 5000, "test": 10000}
    assert sets["train"].pixels.shape[1:] == (1, 28, 28)
    assert [np.bincount(images.labels).tolist() for images in sets.values()] == [[5500] * 10, [500] * 10, [1000] * 10]
    assert 0.28 < sets["train"].pixels.mean() < 0.30  # published mean 0.2860
