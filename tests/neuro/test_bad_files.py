"""Every fault a user's files may have gets one sentence that names the place."""

import os
import shutil
from pathlib import Path

import h5py
import numpy as np
import pytest
from scipy.io import loadmat, savemat

from neuro import DataError, open_recordings
from neuro.formats import FORMATS
from neuro.formats.b2t25_write import TREE
from tests.neuro.recorded import raw_trials

DAY = "t15.2023.08.13"
WRITABLE = [name for name, form in FORMATS.items() if form.write is not None]


@pytest.fixture(scope="module")
def trees(tmp_path_factory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("trees")
    return {name: FORMATS[name].write(raw_trials(), folder / name) for name in WRITABLE}


@pytest.fixture
def b2t25(trees, tmp_path) -> Path:
    return shutil.copytree(trees["b2t25"], tmp_path / "b2t25")


@pytest.fixture
def b2t24(trees, tmp_path) -> Path:
    return shutil.copytree(trees["b2t24"], tmp_path / "b2t24")


def drop(name):
    def change(group):
        del group[name]

    return change


def drop_attribute(name):
    return lambda group: group.attrs.__delitem__(name)


def put_attribute(name, value):
    return lambda group: group.attrs.__setitem__(name, value)


def put(name, value):
    def change(group):
        old = group[name][()]
        del group[name]
        group[name] = value(old)

    return change


def changed(array, where, value):
    array = array.copy()
    array[where] = value
    return array


FAULTS = {
    "features missing": (drop("input_features"), "dataset missing", "input_features"),
    "labels missing": (drop("seq_class_ids"), "dataset missing", "seq_class_ids"),
    "frames missing": (drop_attribute("n_time_steps"), "attribute missing", "n_time_steps"),
    "label count missing": (drop_attribute("seq_len"), "attribute missing", "seq_len"),
    "block missing": (drop_attribute("block_num"), "attribute missing", "block_num"),
    "number missing": (drop_attribute("trial_num"), "attribute missing", "trial_num"),
    "block is text": (put_attribute("block_num", "two"), "not a number", "block_num"),
    "frames disagree": (put_attribute("n_time_steps", 7), "n_time_steps disagrees", "n_time_steps"),
    "label 41": (put("seq_class_ids", lambda v: changed(v, 2, 41)), "outside the phoneme set", "seq_class_ids"),
    "label -1": (put("seq_class_ids", lambda v: changed(v, 2, -1)), "outside the phoneme set", "seq_class_ids"),
    "label 0 inside": (put("seq_class_ids", lambda v: changed(v, 2, 0)), "number of labels disagrees", "seq_class_ids"),
    "too few labels": (put_attribute("seq_len", 3), "number of labels disagrees", "seq_class_ids"),
    "too many labels": (put_attribute("seq_len", 501), "number of labels disagrees", "seq_class_ids"),
    "no labels": (put_attribute("seq_len", 0), "number of labels disagrees", "seq_class_ids"),
    "fractional labels": (put("seq_class_ids", lambda v: v + 0.5), "not whole numbers", "seq_class_ids"),
    "NaN": (put("input_features", lambda v: changed(v, (4, 6), np.nan)), "bin 4, channel 6", "input_features"),
    "infinity": (put("input_features", lambda v: changed(v, (4, 6), -np.inf)), "-inf in bin 4", "input_features"),
    "no frames": (put("input_features", lambda v: v[:0]), "without a single frame", "input_features"),
    "channels": (put("input_features", lambda v: v[:, 1:]), "differ in their number of channels", "input_features"),
    "flat": (put("input_features", lambda v: v.reshape(-1)), "not a table of numbers", "input_features"),
    "onsets": (put("phoneme_onsets", lambda v: v[1:]), "number of onsets disagrees", "phoneme_onsets"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faulty_trial_of_the_25_form(b2t25, fault):
    change, message, field = FAULTS[fault]
    file = b2t25 / TREE / DAY / "data_train.hdf5"
    with h5py.File(file, "r+") as handle:
        change(handle["trial_0003"])
    recordings = open_recordings(b2t25)  # the other trials stay usable
    index = [ref.key for ref in recordings.refs].index(f"{DAY}/train/trial_0003")
    assert recordings[index - 1].key.endswith("trial_0002")
    with pytest.raises(DataError, match=message) as caught:
        recordings[index]
    error = caught.value
    assert (Path(str(error.file)), error.trial, error.field) == (file, "trial_0003", field)
    assert str(error).count("\n") == 0


@pytest.mark.parametrize("size", [0, 100, 5000, -200])
def test_truncated_hdf5_is_found_on_opening(b2t25, size):
    file = b2t25 / TREE / DAY / "data_val.hdf5"
    os.truncate(file, size if size >= 0 else file.stat().st_size + size)
    with pytest.raises(DataError, match=r"not a complete HDF5 file.*data_val\.hdf5"):
        open_recordings(b2t25)


def test_a_damaged_chunk_is_named(b2t25):
    file = b2t25 / TREE / DAY / "data_train.hdf5"
    with h5py.File(file, "r") as handle:
        chunk = handle["trial_0002/input_features"].id.get_chunk_info(0)
    with file.open("r+b") as raw:
        raw.seek(chunk.byte_offset)
        raw.write(b"\x00" * 64)
    recordings = open_recordings(b2t25)
    index = [ref.key for ref in recordings.refs].index(f"{DAY}/train/trial_0002")
    with pytest.raises(DataError, match=r"damaged.*trial_0002"):
        recordings[index]


def test_channel_counts_that_differ_between_sessions_are_found_on_opening(b2t25):
    with h5py.File(b2t25 / TREE / DAY / "data_val.hdf5", "r+") as file:
        put("input_features", lambda v: v[:, :128])(file["trial_0000"])
    with pytest.raises(DataError, match=r"differ in their number of channels.*found 128, expected 256 as in"):
        open_recordings(b2t25)


@pytest.mark.parametrize("name", ["session1", "t15", "t15.", ".".join(["t15", "2023 08"])])
def test_session_folder_with_an_unknown_name(b2t25, b2t24, name):
    (b2t25 / TREE / DAY).rename(b2t25 / TREE / name)
    with pytest.raises(DataError, match=r"unknown kind of name.*<participant>\.<day>"):
        open_recordings(b2t25)
    (b2t24 / "train" / f"{DAY}.mat").rename(b2t24 / "train" / f"{name}.mat")
    with pytest.raises(DataError, match=r"unknown kind of name.*<participant>\.<day>"):
        open_recordings(b2t24)


def test_empty_and_unknown_splits(b2t25):
    for file in b2t25.rglob("data_val.hdf5"):
        with h5py.File(file, "r+") as handle:
            handle.clear()
    recordings = open_recordings(b2t25)
    assert recordings.splits == ("train", "test")
    with pytest.raises(DataError, match=r"'val' is empty.*found train, test"):
        recordings.split("val")
    with pytest.raises(DataError, match=r"unknown split.*found 'dev', expected train, val, test"):
        recordings.split("dev")


def test_no_trial_at_all(b2t25):
    for file in b2t25.rglob("*.hdf5"):
        with h5py.File(file, "r+") as handle:
            handle.clear()
    with pytest.raises(DataError, match="without a single trial"):
        open_recordings(b2t25)


def test_places_without_recordings(b2t25, tmp_path):
    with pytest.raises(DataError, match="no such file or folder"):
        open_recordings(tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match=r"no recordings of a known form.*hdf5_data_final.*competitionData.*ptDecoder"):
        open_recordings(tmp_path / "empty")
    with pytest.raises(DataError, match="folder of a single session"):
        open_recordings(b2t25 / TREE / DAY)
    with pytest.raises(DataError, match="no recordings of a known form"):
        open_recordings(b2t25 / TREE / DAY / "data_train.hdf5")
    shutil.copytree(b2t25, tmp_path / "twice/a")
    shutil.copytree(b2t25, tmp_path / "twice/b")
    with pytest.raises(DataError, match="more than one recording"):
        open_recordings(tmp_path / "twice")


@pytest.mark.parametrize("name", WRITABLE)
def test_options_that_do_not_exist(trees, name):
    with pytest.raises(DataError, match="unknown normalisation"):
        open_recordings(trees[name], normalize="zscore")
    with pytest.raises(DataError, match="no such option"):
        open_recordings(trees[name], colour="red")


def edit_mat(root: Path, change) -> Path:
    file = root / "train" / f"{DAY}.mat"
    contents = {name: value for name, value in loadmat(file).items() if not name.startswith("__")}
    change(contents)
    savemat(file, contents)
    return file


@pytest.mark.parametrize("name", ["spikePow", "tx1", "sentenceText", "blockIdx"])
def test_24_file_without_a_variable(b2t24, name):
    edit_mat(b2t24, lambda contents: contents.pop(name))
    with pytest.raises(DataError, match=rf"variable missing \(.*{DAY}\.mat, field {name}\)"):
        open_recordings(b2t24)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c["spikePow"][0, 3].__setitem__((5, 7), np.nan), "bin 5, channel 135"),
        (lambda c: c["spikePow"].__setitem__((0, 3), c["spikePow"][0, 3][1:]), "tx1 and spikePow differ in shape"),
        (lambda c: c.update(blockIdx=c["blockIdx"][1:]), "number of trials"),
        (lambda c: c.update(sentenceText=c["sentenceText"][1:]), "number of trials"),
        (lambda c: c.update(blockIdx=c["blockIdx"] + 0.5), "not whole numbers"),
        (lambda c: c.update(tx1=np.ones((1, 5))), "not a cell array"),
    ],
)
def test_faulty_24_file(b2t24, change, message):
    edit_mat(b2t24, change)
    with pytest.raises(DataError, match=message) as caught:
        for trial in open_recordings(b2t24):
            assert trial is not None
    assert str(caught.value.file).endswith(f"{DAY}.mat")


def test_24_file_with_too_few_columns(b2t24):
    def narrow(contents):
        for name in ("tx1", "spikePow"):
            for i in range(5):
                contents[name][0, i] = contents[name][0, i][:, :100]

    edit_mat(b2t24, narrow)
    for columns, message in ((range(128), "too few channels"), (None, "differ in their number of channels")):
        with pytest.raises(DataError, match=message):
            list(open_recordings(b2t24, columns=columns))


@pytest.mark.parametrize("size", [0, 50, 2000, -300])
def test_truncated_mat(b2t24, size):
    file = b2t24 / "train" / f"{DAY}.mat"
    os.truncate(file, size if size >= 0 else file.stat().st_size + size)
    with pytest.raises(DataError, match=rf"(not a complete MATLAB file|variable missing).*{DAY}"):
        list(open_recordings(b2t24))


def test_mat_of_version_73_is_named(b2t24):
    file = b2t24 / "train" / f"{DAY}.mat"
    with h5py.File(file, "w", userblock_size=512) as handle:
        handle["tx1"] = 1
    with file.open("r+b") as raw:
        raw.write(b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM")
    with pytest.raises(DataError, match=r"MATLAB v7\.3"):
        open_recordings(b2t24)


def test_a_folder_in_the_place_of_a_file(b2t25):
    path = next(b2t25.rglob("data_train.hdf5"))
    path.unlink()
    path.mkdir()
    with pytest.raises(DataError, match=r"a folder where a file should be.*data_train\.hdf5"):
        open_recordings(b2t25)
