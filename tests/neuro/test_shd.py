"""Spike trains in the form of SHD: what is read, how it is binned and split, and every way a file can be at fault."""

from __future__ import annotations

import multiprocessing
import pickle
from fractions import Fraction
from pathlib import Path

import h5py
import numpy as np
import pytest
import torch

from neuro import DataError, open_shd, split_by_speaker, write_shd
from neuro.shd import SHD_UNITS
from tests.oracles.spike_binning import spike_binning

TRIALS = [([0.0, 0.25, 0.25, 1.0], [3, 0, 699, 350]), ([], []), ([0.5], [7])]


def published(path: Path, trials=TRIALS, times_type="f2", units_type="u2", **replace) -> Path:
    """A file laid out as the published ones, written without the code under test."""
    n = len(trials)
    with h5py.File(path, "w") as file:
        for name, row, inner in (("times", 0, times_type), ("units", 1, units_type)):
            dataset = file.create_dataset(f"spikes/{name}", (n,), h5py.vlen_dtype(np.dtype(inner)))
            for i, trial in enumerate(trials):
                dataset[i] = np.array(trial[row], inner)
        file["labels"] = np.array([2, 0, 1][:n], "u2")
        file["extra/speaker"] = np.array([4, 9, 4][:n], "u2")
        file["extra/keys"] = np.array([b"null", b"eins", "zwei für".encode()])
        for name, value in replace.items():
            name = name.replace("__", "/")
            if name in file:
                del file[name]
            if value is not None:
                file[name] = value
    return path


def test_a_published_file(tmp_path: Path) -> None:
    trains = open_shd(published(tmp_path / "shd.h5"))
    assert len(trains) == 3 and trains.n_units == SHD_UNITS == 700
    assert trains.labels.tolist() == [2, 0, 1] and trains.labels.dtype == np.int64
    assert trains.speakers is not None and trains.speakers.tolist() == [4, 9, 4] and trains.speaker_names is None
    assert trains.keys == ("null", "eins", "zwei für")
    for i, (times, units) in enumerate(TRIALS):
        found = trains.events(i)
        assert found[0].tolist() == times and found[1].tolist() == units
        assert (found[0].dtype, found[1].dtype) == (np.float64, np.int64)
    assert trains.events(-1)[1].tolist() == [7]
    for beyond in (3, -4):
        with pytest.raises(IndexError, match=f"trial {beyond} of 3"):
            trains.events(beyond)
    assert "3 trials, 700 units, 3 labels" in repr(trains)


def test_what_the_file_may_leave_out(tmp_path: Path) -> None:
    trains = open_shd(published(tmp_path / "shd.h5", extra=None))
    assert trains.speakers is None and trains.keys == ("0", "1", "2")
    with pytest.raises(DataError, match=r"shd.h5, field extra/speaker"):
        split_by_speaker(trains)


def test_spikes_in_another_order_are_sorted_and_ties_keep_theirs(tmp_path: Path) -> None:
    path = published(tmp_path / "shd.h5", [([0.5, 0.25, 0.5, 0.25], [1, 2, 3, 4])])
    times, units = open_shd(path).events(0)
    assert times.tolist() == [0.25, 0.25, 0.5, 0.5] and units.tolist() == [2, 4, 1, 3]


@pytest.mark.parametrize("channels", [None, 1, 2, 3, 7])
@pytest.mark.parametrize("steps", [None, 1, 5, 40])
@pytest.mark.parametrize("dt", [Fraction(1, 8), Fraction(1, 100), Fraction(3, 10)])
def test_bins_agree_with_the_oracle(tmp_path: Path, channels: int | None, steps: int | None, dt: Fraction) -> None:
    rng = np.random.default_rng(5)
    grid = rng.integers(0, 30, 25)  # every time lies exactly on an edge of a bin of 10 ms, up to float32
    units = rng.integers(0, 7, 25)
    path = tmp_path / "spikes.h5"
    write_shd(path, [(grid / 100, units)], labels=[0], speakers=[0], keys=["a"], n_units=7)
    trains = open_shd(path)
    exact = [Fraction(int(g), 100) for g in grid]
    expected = spike_binning(exact, units.tolist(), dt, steps or int(max(exact) / dt) + 1, 7, channels or 7)
    found = trains.binned(0, float(dt), steps, channels)
    assert found.dtype == np.float32 and found.tolist() == expected
    binary = trains.binned(0, float(dt), steps, channels, binary=True)
    assert np.array_equal(binary, np.minimum(found, 1))


def test_batches_are_padded_trials(tmp_path: Path) -> None:
    trains = open_shd(published(tmp_path / "shd.h5"))
    batch = trains.as_batch([2, 0, 1, 0], dt=0.1, channels=70)
    assert batch.spikes.shape == (11, 4, 70) and batch.spikes.dtype == torch.float32
    assert batch.lengths.tolist() == [6, 11, 1, 11] and batch.labels.tolist() == [1, 2, 0, 2]
    for b, i in enumerate([2, 0, 1, 0]):
        alone = trains.binned(i, 0.1, channels=70)
        assert np.array_equal(batch.spikes[: len(alone), b].numpy(), alone)
        assert not batch.spikes[len(alone) :, b].any()
    cut = trains.as_batch(np.array([0, 2]), 0.1, steps=4)
    assert cut.spikes.shape == (4, 2, 700) and cut.lengths.tolist() == [4, 4] and cut.spikes.sum() == 3
    long = trains.as_batch([0], 0.1, steps=20)
    assert len(long.spikes) == 20 and long.lengths.tolist() == [11]
    assert trains.as_batch([], 0.1, steps=4).spikes.shape == (4, 0, 700)
    assert trains.as_batch([], 0.1).spikes.shape == (0, 0, 700)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dt": 0}, "dt.*found 0, expected 1e-06 s or more"),
        ({"dt": float("nan")}, "dt.*found nan"),
        ({"dt": 0.1, "steps": 0}, "steps.*found 0"),
        ({"dt": 0.1, "channels": 701}, r"shd.h5, field channels.*found 701, expected 1\.\.700"),
        ({"dt": 0.1, "channels": 0}, "channels.*found 0"),
    ],
)
def test_impossible_bins(tmp_path: Path, options: dict, message: str) -> None:
    trains = open_shd(published(tmp_path / "shd.h5"))
    with pytest.raises(DataError, match=message):
        trains.binned(0, **options)
    with pytest.raises(DataError, match=message):
        trains.as_batch([0], **options)


@pytest.mark.parametrize(
    ("trial", "message"),
    [
        (([0.1, 0.2], [1]), r"differ in number .*shd.h5, trial 0, field spikes/units\): found 1 units, expected 2"),
        (([0.1, -0.5], [1, 2]), r"trial 0, field spikes/times\): found -0.5, expected seconds, 0\.\.3600"),
        (([np.nan], [1]), r"trial 0, field spikes/times\): found nan"),
        (([np.inf], [1]), r"trial 0, field spikes/times\): found inf"),
        (([60000.0], [1]), r"trial 0, field spikes/times\): found 60000.0"),
        (([0.1, 0.2], [699, 700]), r"trial 0, field spikes/units\): found 700, expected 0\.\.699"),
        (([0.1], [-1]), r"trial 0, field spikes/units\): found -1"),
    ],
)
def test_faulty_spikes(tmp_path: Path, trial: tuple, message: str) -> None:
    trains = open_shd(published(tmp_path / "shd.h5", [trial], times_type="f4", units_type="i4"))
    with pytest.raises(DataError, match=message):
        trains.events(0)
    with pytest.raises(DataError, match=message):
        write_shd(tmp_path / "shd.h5", [trial], labels=[0], speakers=[0], keys=["a"], overwrite=True)
    with pytest.raises(DataError):
        open_shd(tmp_path / "shd.h5").events(0)  # what was there is there still


def test_a_number_of_units_of_ones_own(tmp_path: Path) -> None:
    path = published(tmp_path / "shd.h5", [([0.1], [900])])
    assert open_shd(path, n_units=1000).binned(0, 0.1).shape == (1, 1000)
    with pytest.raises(DataError, match="found 900"):
        open_shd(path).events(0)
    with pytest.raises(DataError, match=r"n_units.*found 0"):
        open_shd(path, n_units=0)


@pytest.mark.parametrize(
    ("replace", "message"),
    [
        ({"labels": None}, r"dataset missing .*shd.h5, field labels\): found extra, spikes, expected spikes/times"),
        ({"spikes__times": None}, r"dataset missing .*field spikes/times"),
        ({"spikes": None}, r"dataset missing .*field spikes/times"),
        ({"labels": np.array([1, 2])}, r"differ in length .*spikes/times\): found 3, expected 2, as labels"),
        ({"labels": np.array([0, -1, 1])}, r"negative .*trial 1, field labels\): found -1"),
        ({"labels": np.array([0, 1, 3])}, r"trial 2, field labels\): found 3, expected 0\.\.2, as in extra/keys"),
        ({"labels": np.array([0.0, 1, 2])}, r"field labels\): found float64 \(3,\), expected an integer a trial"),
        ({"labels": np.array([], int)}, r"field labels\): found int64 \(0,\), expected .* at least one trial"),
        ({"spikes__times": np.zeros((3, 4))}, r"spikes/times\): found float64 \(3, 4\), expected one row of floats"),
        ({"extra__speaker": np.array([1, 2])}, r"extra/speaker\): found 2, expected 3"),
        ({"extra__keys": np.array([1, 2, 3])}, r"extra/keys\): found int64 \(3,\), expected a list of names"),
    ],
)
def test_faulty_files(tmp_path: Path, replace: dict, message: str) -> None:
    with pytest.raises(DataError, match=message):
        open_shd(published(tmp_path / "shd.h5", **replace))


def test_times_that_are_no_seconds(tmp_path: Path) -> None:
    path = published(tmp_path / "shd.h5", times_type="i4")
    with pytest.raises(DataError, match=r"spikes/times\): found int32 \(3,\), expected one row of floats"):
        open_shd(path)


def test_no_such_file(tmp_path: Path) -> None:
    (tmp_path / "text.h5").write_text("spikes")
    whole = published(tmp_path / "whole.h5").read_bytes()
    (tmp_path / "cut.h5").write_bytes(whole[: len(whole) // 2])
    for name, message in {
        "none.h5": "file not found .*none.h5",
        ".": "this is a folder .*expected an HDF5 file",
        "text.h5": "not a complete HDF5 file.*text.h5",
        "cut.h5": "not a complete HDF5 file.*cut.h5",
    }.items():
        with pytest.raises(DataError, match=message):
            open_shd(tmp_path / name)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "spikes.h5"
    names = {"keys": ["a", "b"], "speaker_names": ["ann", "bob"]}
    options = {"labels": [1, 0, 1], "speakers": [0, 1, 0], **names}
    write_shd(path, iter(TRIALS), **options, attributes={"source": "test", "dt": 0.001})
    trains = open_shd(path)
    for i, (times, units) in enumerate(TRIALS):
        assert trains.events(i)[0].tolist() == times and trains.events(i)[1].tolist() == units
    assert trains.keys == ("a", "b") and trains.speaker_names == ("ann", "bob")
    assert trains.attributes["source"] == "test" and trains.attributes["dt"] == 0.001
    before = path.read_bytes()
    with pytest.raises(DataError, match=r"exists already .*spikes.h5.*--overwrite"):
        write_shd(path, TRIALS, **options)
    for trials in (TRIALS[:2], [*TRIALS, TRIALS[0]]):
        with pytest.raises(DataError, match=f"spikes.h5.*found {len(trials)}, expected 3"):
            write_shd(path, trials, **options, overwrite=True)
    with pytest.raises(DataError, match=r"deep/spikes.h5, trial 1, field labels\): found 2"):
        write_shd(path, TRIALS, **options | {"labels": [0, 2, 0]}, overwrite=True)
    assert path.read_bytes() == before and [p.name for p in path.parent.iterdir()] == ["spikes.h5"]
    write_shd(path, TRIALS[:1], **options | {"labels": [0], "speakers": [1]}, overwrite=True)
    assert len(open_shd(path)) == 1


def test_only_a_file_of_spikes_is_replaced(tmp_path: Path) -> None:
    options = {"labels": [0, 0, 0], "speakers": [0, 0, 0], "keys": ["a"], "overwrite": True}
    (tmp_path / "thesis.tex").write_text("precious")
    with pytest.raises(DataError, match="something else"):
        write_shd(tmp_path / "thesis.tex", TRIALS, **options)
    with pytest.raises(DataError, match="the output is a folder"):
        write_shd(tmp_path, TRIALS, **options)
    with pytest.raises(DataError, match="cannot be made here"):
        write_shd(tmp_path / "thesis.tex" / "spikes.h5", TRIALS, **options)
    assert (tmp_path / "thesis.tex").read_text() == "precious"


def test_an_interrupted_writer_leaves_nothing(tmp_path: Path) -> None:
    def interrupted():
        yield TRIALS[0]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_shd(tmp_path / "a.h5", interrupted(), labels=[0, 0], speakers=[0, 0], keys=["a"])
    assert not list(tmp_path.iterdir())


@pytest.fixture
def six_speakers(tmp_path: Path) -> Path:
    path = tmp_path / "six.h5"
    speakers = np.tile([0, 1, 2, 3, 4, 7], 5)
    names = ["ann", "bob", "cid", "dot", "eve", "x", "y", "guy"]
    write_shd(path, [([0.1], [1])] * 30, labels=[0] * 30, speakers=speakers, keys=["a"], speaker_names=names)
    return path


@pytest.mark.parametrize("wish", [(1, 1), (2, 3), (0, 0), (["bob"], 2), (1, [7, "ann"]), (["eve"], ["dot", 0])])
@pytest.mark.parametrize("seed", [0, 1])
def test_no_speaker_is_in_two_splits(six_speakers: Path, wish: tuple, seed: int) -> None:
    trains = open_shd(six_speakers)
    splits = split_by_speaker(trains, *wish, seed=seed)
    assert list(splits) == ["train", "val", "test"]
    assert sorted(np.concatenate(list(splits.values())).tolist()) == list(range(30))
    assert trains.speakers is not None
    who = {split: set(trains.speakers[positions].tolist()) for split, positions in splits.items()}
    assert sum(map(len, who.values())) == 6 and who["train"]
    for split, asked in zip(("val", "test"), wish, strict=True):
        assert len(who[split]) == (asked if isinstance(asked, int) else len(asked))
    again = split_by_speaker(trains, *wish, seed=seed)
    assert all(np.array_equal(splits[split], again[split]) for split in splits)


def test_the_seed_draws_the_speakers(six_speakers: Path) -> None:
    trains = open_shd(six_speakers)
    assert len({tuple(split_by_speaker(trains, seed=seed)["test"].tolist()) for seed in range(20)}) > 3
    assert split_by_speaker(trains, validation=["guy"])["val"].tolist() == [5, 11, 17, 23, 29]


@pytest.mark.parametrize(
    ("wish", "message"),
    [
        ((6, 0), r"six.h5, field val\): found 6, expected 0\.\.5"),
        ((3, 3), r"field test\): found 3, expected 0\.\.2"),
        ((-1, 1), "found -1"),
        ((["zoe"], 1), r"unknown speaker .*field val\): found zoe, expected of ann, bob, cid, dot, eve, guy"),
        ((1, [5]), "unknown speaker.*found 5"),
        ((["ann"], [0]), r"in two splits .*found 0"),
        (([0, 1, 2], [3, 4, 7]), "no speaker is left to train on"),
    ],
)
def test_impossible_splits(six_speakers: Path, wish: tuple, message: str) -> None:
    with pytest.raises(DataError, match=message):
        split_by_speaker(open_shd(six_speakers), *wish)


def _units(trains, i: int) -> list[int]:
    return trains.events(i)[1].tolist()


def test_trains_travel_to_other_processes(tmp_path: Path) -> None:
    trains = open_shd(published(tmp_path / "shd.h5"))
    trains.events(0)
    assert _units(pickle.loads(pickle.dumps(trains)), 0) == TRIALS[0][1]
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert pool.starmap(_units, [(trains, 0), (trains, 2), (trains, 0)]) == [TRIALS[i][1] for i in (0, 2, 0)]
