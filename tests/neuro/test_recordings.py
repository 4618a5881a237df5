"""What all forms have in common: the data set, its workers, conversion, infeasible trials."""

import multiprocessing
import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest
from torch.utils.data import DataLoader

from neuro import DataError, collate, convert, infeasible, open_recordings
from neuro.formats import FORMATS, SPLITS
from neuro.formats.cache import ProcessCache
from tests.neuro.recorded import raw_trials

SESSIONS = ("t12.2022.04.28", "t12.2022.05.05")


def pickled(trials, file: Path) -> Path:
    """A ptDecoder pickle of finished trials."""
    days = {}
    for trial in trials:
        split = days.setdefault(trial.split, {}).setdefault(trial.session, [])
        split.append(trial)
    contents = {
        name: [
            None
            if session not in days[split]
            else {
                "sentenceDat": [trial.features for trial in days[split][session]],
                "transcriptions": [trial.sentence for trial in days[split][session]],
                "phonemes": [
                    np.zeros(500, np.int32) if t.phonemes is None else np.pad(t.phonemes, (0, 500 - len(t.phonemes)))
                    for t in days[split][session]
                ],
                "timeSeriesLens": np.array([len(trial.features) for trial in days[split][session]]),
            }
            for session in SESSIONS
        ]
        for name, split in (("train", "train"), ("test", "val"), ("competition", "test"))
    }
    file.write_bytes(pickle.dumps(contents))
    return file


@pytest.fixture(scope="module")
def everything(tmp_path_factory) -> dict[str, Path]:
    """The same trials in every form."""
    folder = tmp_path_factory.mktemp("forms")
    places = {name: folder / name for name in FORMATS}
    for name, form in FORMATS.items():
        if form.write is not None:
            form.write(raw_trials(SESSIONS), places[name])
    pickled(list(open_recordings(places["b2t24"])), places["ptdecoder"])
    return places


@pytest.mark.parametrize("name", FORMATS)
def test_every_form_is_detected_and_read(everything, name):
    place = everything[name]
    assert [other for other, form in FORMATS.items() if form.detect(place) is not None] == [name]
    recordings = open_recordings(place)
    assert recordings.form == name and recordings.splits == SPLITS and len(recordings) == 15
    assert recordings.sessions == sorted(recordings.sessions) and len(recordings.sessions) == 2
    assert len({ref.key for ref in recordings.refs}) == 15
    assert f"{name}: 2 sessions" in repr(recordings)
    trials = list(recordings)
    for trial, ref, length in zip(trials, recordings.refs, recordings.lengths(), strict=True):
        assert (trial.key, trial.session, trial.split) == (ref.key, ref.session, ref.split)
        assert trial.key == f"{trial.session}/{trial.split}/{ref.name}"
        assert trial.features.shape == (length, recordings.n_channels) and trial.features.dtype == np.float32
        assert (trial.phonemes is None) == (trial.split == "test") == (trial.sentence is None)
        assert trial.phonemes is None or (trial.phonemes.dtype == np.int64 and trial.phonemes[-1] == 40)
    batch = collate(trials, recordings.sessions)
    assert batch.days.tolist() == recordings.days().tolist()


# A spawned process imports everything afresh, which takes seconds; that the other forms travel is tested below.
AFRESH = pytest.param("b2t25", "spawn", marks=pytest.mark.slow)


@pytest.mark.parametrize(("name", "method"), [*((name, "fork") for name in FORMATS), AFRESH])
def test_workers_hand_out_the_same_trials(everything, name, method):
    recordings = open_recordings(everything[name]).split("train")
    expected = [trial.features for trial in recordings]  # the parent's files are open when the workers start
    loader = DataLoader(recordings, batch_size=None, num_workers=2, multiprocessing_context=method, collate_fn=_same)
    for got, features in zip(loader, expected, strict=True):
        np.testing.assert_array_equal(got.features, features)


@pytest.mark.parametrize("name", FORMATS)
def test_every_form_travels_to_another_process(everything, name):
    recordings = open_recordings(everything[name])
    expected = recordings[3]
    travelled = pickle.loads(pickle.dumps(recordings))
    assert travelled.refs == recordings.refs and travelled.sessions == recordings.sessions
    np.testing.assert_array_equal(travelled[3].features, expected.features)


def _same(trial):
    return trial


def test_an_error_in_a_worker_keeps_its_sentence(everything, tmp_path):
    root = shutil.copytree(everything["b2t25"], tmp_path / "data")
    with h5py.File(next(root.rglob("data_train.hdf5")), "r+") as file:
        file["trial_0001/input_features"][3, 5] = np.nan
    loader = DataLoader(open_recordings(root), batch_size=None, num_workers=1, collate_fn=_same)
    with pytest.raises(DataError, match=r"trial_0001.*bin 3, channel 5"):
        list(loader)


def test_opening_a_tree_reads_no_features(everything, monkeypatch):
    monkeypatch.setattr(h5py.Dataset, "__getitem__", lambda *_: pytest.fail("a dataset was read"))
    recordings = open_recordings(everything["b2t25"])
    assert recordings.lengths().min() > 0


def test_open_files_are_bounded_and_pickling_leaves_them_behind(everything):
    recordings = open_recordings(everything["b2t25"], open_files=2)
    trials = [recordings[i] for i in (0, 5, 9, 14, 0, 7)]
    cache = recordings.source._handles
    assert len(cache) == 2
    handles = list(cache._values.values())
    copy = pickle.loads(pickle.dumps(recordings))
    assert len(copy.source._handles) == 0
    np.testing.assert_array_equal(copy[5].features, trials[1].features)
    cache.clear()
    assert not any(handles), "a dropped file must be closed"


def test_a_file_that_is_open_elsewhere_in_the_process_is_no_obstacle(everything):
    recordings = open_recordings(everything["b2t25"])
    path = recordings.source._path(recordings.refs[0].session, recordings.refs[0].split)
    for locking in (True, False):
        with h5py.File(path, "r", locking=locking):
            assert len(open_recordings(everything["b2t25"])[0].features) > 0
    assert recordings[0] is not None
    with h5py.File(path, "r") as bare:
        assert "trial_0000" in bare


def _length_in_child(cache, queue):
    before = len(cache)
    with cache.use("a", lambda: "child's own") as value:
        queue.put((before, value))


def test_a_cache_is_empty_after_a_fork():
    cache = ProcessCache(2, lambda value: None)
    with cache.use("a", lambda: "parent's") as value:  # the lock is held while the child starts
        context = multiprocessing.get_context("fork")
        queue = context.Queue()
        child = context.Process(target=_length_in_child, args=(cache, queue))
        child.start()
        assert queue.get(timeout=600) == (0, "child's own")
        child.join(600)
    with cache.use("a", lambda: "new") as again:
        assert again == value == "parent's"
    with pytest.raises(ValueError, match="at least one"):
        ProcessCache(0)


def test_the_cache_keeps_what_was_used_last():
    dropped: list[str] = []
    cache = ProcessCache(2, dropped.append)
    for key in ("a", "b", "a", "c", "a", "d"):
        with cache.use(key, lambda key=key: key):
            pass
    assert dropped == ["b", "c"]


@pytest.mark.parametrize("name", FORMATS)
def test_any_form_converts_to_the_same_float32_values(everything, tmp_path, name):
    before = open_recordings(everything[name])
    seen = []

    def progress(trials, total):
        seen.append(total)
        return trials

    after = open_recordings(convert(before, tmp_path / "out", progress=progress))
    assert after.form == "b2t25" and seen == [15] and after.sessions == before.sessions
    for ours, theirs in zip(after, before, strict=True):
        np.testing.assert_array_equal(ours.features, theirs.features)
        assert ours.phonemes is None if theirs.phonemes is None else (ours.phonemes == theirs.phonemes).all()
        for field in ("sentence", "session", "block", "trial", "split", "key", "corpus"):
            assert getattr(ours, field) == getattr(theirs, field), field


def test_converting_a_view_in_any_order(everything, tmp_path):
    val = open_recordings(everything["b2t24"]).split("val").select([2, 0])
    keys = [trial.key for trial in open_recordings(convert(val, tmp_path / "out"))]
    assert keys == [f"{SESSIONS[1]}/val/trial_{i:04d}" for i in range(2)]


def test_raw_features_are_not_converted(everything, tmp_path):
    with pytest.raises(DataError, match="holds z-scored features"):
        convert(open_recordings(everything["b2t24"], normalize="none"), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_unknown_words_are_named_before_the_work_starts(tmp_path):
    trials = list(raw_trials(SESSIONS[:1]))
    for i, sentence in enumerate(("A blorptang.", "Is it a florbix?")):
        trials[i] = type(trials[i])(**{**trials[i].__dict__, "sentence": sentence})
    root = FORMATS["b2t24"].write(trials, tmp_path / "competitionData")
    with pytest.raises(DataError, match=r"2 words.*'blorptang' in 'A blorptang\.'.*'florbix'"):
        convert(open_recordings(root), tmp_path / "out", progress=lambda *_: pytest.fail("work was started"))


@pytest.mark.parametrize("name", FORMATS)
def test_infeasible_trials_are_named(everything, name):
    train = open_recordings(everything[name]).split("train")
    assert infeasible(train, lambda frames: frames) == []
    shortest = infeasible(train, lambda frames: 18)
    expected = [
        (t.key, 18, len(t.phonemes) + int((np.diff(t.phonemes) == 0).sum()))
        for t in train
        if len(t.phonemes) + (np.diff(t.phonemes) == 0).sum() > 18
    ]
    assert 0 < len(expected) < len(train)
    assert [(trial.key, trial.frames, trial.needed) for trial in shortest] == expected
    with pytest.raises(DataError, match="no labels"):
        infeasible(open_recordings(everything[name]).split("test"), lambda frames: frames)


def test_a_repeated_label_needs_a_frame_more(tmp_path):
    trial = next(iter(raw_trials()))
    trial = type(trial)(**{**trial.__dict__, "phonemes": np.array([3, 3, 3, 40]), "onsets": None})
    recordings = open_recordings(FORMATS["b2t25"].write([trial], tmp_path / "data"))
    assert infeasible(recordings, lambda frames: 6) == []
    assert [found.needed for found in infeasible(recordings, lambda frames: 5)] == [6]


@pytest.mark.slow  # starts Python anew
def test_import_is_light():
    """Opening recordings must not pull in what only training or writing needs."""
    heavy = ("scipy.io", "matplotlib", "pytorch_lightning", "torchaudio")
    code = f"import sys, neuro; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ)
    assert done.stdout.strip() == "[]"
