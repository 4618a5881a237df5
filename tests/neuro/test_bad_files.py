"""Every fault a user's files may have gets one sentence that names the place; nothing half written is left behind."""

import errno
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import h5py
import numpy as np
import pytest
from scipy.io import loadmat, savemat

from neuro import DataError, open_recordings
from neuro.formats import FORMATS
from neuro.formats.atomic import is_full, new_folder
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
    with pytest.raises(DataError, match="'val' is empty.*found train, test"):
        recordings.split("val")
    with pytest.raises(DataError, match="unknown split.*found 'dev', expected train, val, test"):
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


# Writing


@pytest.mark.parametrize("name", WRITABLE)
def test_an_existing_output_is_refused_and_replaced_only_when_the_new_one_is_complete(tmp_path, name):
    write, root = FORMATS[name].write, tmp_path / "out"
    write(raw_trials(seed=1), root)
    before = open_recordings(root)[0].features

    def breaks_off():
        yield from list(raw_trials(seed=2))[:12]
        raise KeyboardInterrupt

    with pytest.raises(DataError, match="exists already"):
        write((pytest.fail("trials were taken") for _ in "x"), root)
    with pytest.raises(KeyboardInterrupt):
        write(breaks_off(), root, overwrite=True)
    np.testing.assert_array_equal(open_recordings(root)[0].features, before)
    write(raw_trials(seed=2), root, overwrite=True)
    assert not np.array_equal(open_recordings(root)[0].features, before)
    assert [entry.name for entry in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize("name", WRITABLE)
@pytest.mark.parametrize("exception", [KeyboardInterrupt, ValueError, SystemExit])
def test_nothing_half_written_is_left(tmp_path, name, exception):
    def breaks_off():
        yield from list(raw_trials())[:12]
        raise exception

    with pytest.raises(exception):
        FORMATS[name].write(breaks_off(), tmp_path / "deep/out")
    assert list(tmp_path.rglob("*")) == [tmp_path / "deep"]


@pytest.mark.parametrize("name", WRITABLE)
def test_other_peoples_folders_are_never_overwritten(tmp_path, name):
    (tmp_path / "home").mkdir()
    (tmp_path / "home/thesis.tex").write_text("precious")
    (tmp_path / "file").write_text("precious")
    (tmp_path / "link").symlink_to(tmp_path / "home")
    for victim in ("home", "file", "link"):
        with pytest.raises(DataError, match="something else"):
            FORMATS[name].write(raw_trials(), tmp_path / victim, overwrite=True)
    assert (tmp_path / "home/thesis.tex").read_text() == "precious"


def test_ctrl_c_while_writing_leaves_nothing(tmp_path):
    """A real signal to a real process."""
    script = (
        "import sys, time; sys.path.insert(0, '.')\n"
        "from tests.neuro.recorded import raw_trials\n"
        "from neuro.formats import FORMATS\n"
        "def slow():\n"
        "    for i, trial in enumerate(raw_trials()):\n"
        "        if i == 9: print('ready', flush=True); time.sleep(60)\n"
        "        yield trial\n"
        f"FORMATS['b2t25'].write(slow(), {str(tmp_path / 'out')!r})\n"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", script],
        cwd=Path(__file__).resolve().parents[2],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert child.stdout is not None and child.stdout.readline() == b"ready\n"
    assert [entry.name for entry in tmp_path.iterdir()] == [f".out.partial-{child.pid}"]
    time.sleep(0.1)
    child.send_signal(signal.SIGINT)
    child.communicate(timeout=30)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, "No space left on device"),
        OSError("Can't write data (file write failed: errno = 28, error message = 'No space left on device')"),
        RuntimeError("Unable to close file (errno = 28, error message = 'No space left on device')"),
        OSError(errno.EDQUOT, "Disk quota exceeded"),
    ],
)
@pytest.mark.parametrize("name", WRITABLE)
def test_a_full_disk_is_one_sentence_and_leaves_nothing(tmp_path, monkeypatch, name, error):
    import scipy.io

    def fails(*args, **kwargs):
        raise error

    monkeypatch.setattr(h5py.Group, "create_dataset", fails)
    monkeypatch.setattr(scipy.io, "savemat", fails)
    with pytest.raises(DataError, match="no space left on the device"):
        FORMATS[name].write(raw_trials(), tmp_path / "out")
    assert list(tmp_path.iterdir()) == []
    assert not is_full(ValueError("No space left on device"))


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 1 MB, where this machine lets us have one."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = shutil.which("mount")
    if mount is None or subprocess.run([mount, "-t", "tmpfs", "-o", "size=1m", "tmpfs", place], capture_output=True).returncode:
        pytest.skip("mounting a small file system needs privileges that this process does not have")
    yield place
    subprocess.run(["umount", str(place)], check=True)


@pytest.mark.parametrize("name", WRITABLE)
def test_a_really_full_disk(small_disk, name):
    with pytest.raises(DataError, match="no space left on the device"):
        FORMATS[name].write(raw_trials(per_split=(60, 3, 2)), small_disk / "out")
    assert list(small_disk.iterdir()) == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"split": "dev"}, "unknown split"),
        ({"session": "monday"}, "unknown kind of name"),
        ({"counts": {-3.5: np.ones((70, 128), int)}}, "no crossing counts"),
        ({"power": np.full((1, 128), 1.0)}, "differ"),
        ({"power": np.full((0, 128), 1.0)}, "differ|without"),
    ],
)
@pytest.mark.parametrize("name", WRITABLE)
def test_faulty_trials_are_not_written(tmp_path, name, change, message):
    trials = list(raw_trials())
    trials[1] = type(trials[1])(**{**trials[1].__dict__, **change})
    with pytest.raises(DataError, match=message):
        FORMATS[name].write(trials, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"phonemes": np.array([3, 41])}, "outside the phoneme set"),
        ({"phonemes": np.array([3, 0, 4])}, "number of labels disagrees"),
        ({"phonemes": np.full(501, 3)}, "phonemes too long"),
        ({"sentence": "a" * 500}, "sentence too long"),
        ({"power": np.full((1, 128), 1.0)}, "differ in length"),
    ],
)
def test_trials_that_the_25_form_cannot_hold(tmp_path, change, message):
    trial = next(iter(raw_trials()))
    with pytest.raises(DataError, match=message):
        FORMATS["b2t25"].write([type(trial)(**{**trial.__dict__, **change})], tmp_path / "out")


def test_trials_that_the_24_form_cannot_hold(trees, tmp_path):
    trial = next(iter(raw_trials()))
    wide = {threshold: counts[:, :100] for threshold, counts in trial.counts.items()}
    negative = {threshold: counts - 1 for threshold, counts in trial.counts.items()}
    for faulty, message in (
        ({"counts": wide}, "number of electrodes"),
        ({"counts": negative}, "not natural numbers"),
        ({"power": np.full_like(trial.power, np.inf)}, "not finite"),
        ({"block": -1}, "below 0"),
    ):
        with pytest.raises(DataError, match=message):
            FORMATS["b2t24"].write([type(trial)(**{**trial.__dict__, **faulty})], tmp_path / "out")
    with pytest.raises(DataError, match="raw counts and power"):
        FORMATS["b2t24"].write(open_recordings(trees["b2t25"]), tmp_path / "out")


@pytest.mark.parametrize("name", WRITABLE)
def test_sessions_must_come_one_after_the_other_and_there_must_be_a_trial(tmp_path, name):
    trials = list(raw_trials())
    with pytest.raises(DataError, match="must follow one another"):
        FORMATS[name].write([trials[0], trials[-1], trials[1]], tmp_path / "out")
    with pytest.raises(DataError, match="not a single trial"):
        FORMATS[name].write([], tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_appears_meanwhile_is_not_touched(tmp_path):
    root = tmp_path / "out"
    with pytest.raises(DataError, match="exists already"), new_folder(root, overwrite=False, replaceable=bool):
        root.mkdir()
        (root / "other").touch()
    assert [entry.name for entry in root.iterdir()] == ["other"] and len(list(tmp_path.iterdir())) == 1


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write everywhere")
def test_a_place_without_permission(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(DataError, match="cannot be made"):
        FORMATS["b2t25"].write(raw_trials(), tmp_path / "out")
