"""Writing recordings: nothing half written stays behind, nothing of the user's is destroyed, no faulty trial passes."""

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

from neuro import DataError, open_recordings
from neuro.formats import FORMATS
from neuro.formats.atomic import is_full, new_folder
from tests.neuro.recorded import raw_trials

WRITABLE = [name for name, form in FORMATS.items() if form.write is not None]


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


@pytest.mark.slow  # starts Python anew
def test_ctrl_c_while_writing_leaves_nothing(tmp_path):
    """A real signal to a real process."""
    script = (
        "import signal, sys, time; sys.path.insert(0, '.')\n"
        # A shell that starts the tests in the background has it ignored.
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
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
    child.communicate(timeout=600)
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
    if (
        mount is None
        or subprocess.run([mount, "-t", "tmpfs", "-o", "size=1m", "tmpfs", place], capture_output=True).returncode
    ):
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


def test_trials_that_the_24_form_cannot_hold(tmp_path):
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
    finished = FORMATS["b2t25"].write([trial], tmp_path / "finished")
    with pytest.raises(DataError, match="raw counts and power"):
        FORMATS["b2t24"].write(open_recordings(finished), tmp_path / "out")


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
