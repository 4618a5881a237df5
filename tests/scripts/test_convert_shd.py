"""``ranvier convert shd``: from a folder of recorded speech to a file in the form of SHD."""

from __future__ import annotations

import json
from pathlib import Path

import h5py
import numpy as np
import pytest
import soundfile

from neuro import DataError, open_shd, split_by_speaker
from neuro.cochlea import Cochlea
from neuro.speech_spikes import SpokenSpikes, list_spoken, nerve, spread
from scripts.cli import main

RATE = 8000


def say(path: Path, hz: float = 500.0, seconds: float = 0.1, rate: int = RATE) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    soundfile.write(path, 0.1 * np.sin(2 * np.pi * hz * np.arange(round(seconds * rate)) / rate), rate)


@pytest.fixture
def spoken(tmp_path: Path) -> Path:
    """Tones that stand for words: low, middle and high, of three speakers."""
    folder = tmp_path / "tones" / "recordings"
    for label, hz in enumerate((250, 900, 2800)):
        for speaker in ("ann", "bob", "cid"):
            for index in range(2):
                say(folder / f"{label}_{speaker}_{index}.wav", hz * (1 + 0.02 * index))
    return folder.parent


def convert(folder: Path, out: Path, *options: str) -> int:
    return main(["convert", "shd", str(folder), "--out", str(out), "--channels", "20", *options])


def test_the_file_holds_what_was_said_and_by_whom(spoken: Path, tmp_path: Path, capsys) -> None:
    out = tmp_path / "new" / "tones.h5"
    assert convert(spoken, out, "--json", "--seed", "3") == 0
    summary = json.loads(capsys.readouterr().out)
    trains = open_shd(out)
    assert (len(trains), trains.n_units) == (18, 20) == (summary["recordings"], summary["units"])
    assert trains.keys == ("0", "1", "2") and trains.speaker_names == ("ann", "bob", "cid")
    assert np.bincount(trains.labels).tolist() == [6, 6, 6] and trains.speakers is not None
    assert np.bincount(trains.speakers).tolist() == [6, 6, 6]
    assert summary["spikes"] == sum(len(trains.events(i)[0]) for i in range(18)) > 0
    assert summary["seconds_of_sound"] == 1.8 and summary["bytes"] == out.stat().st_size
    centres = nerve(20, RATE).centres
    for i in range(18):
        times, units = trains.events(i)
        assert (times >= 0).all() and (times < 0.1).all()
        assert abs(np.log2(centres[int(np.median(units))] / (250, 900, 2800)[trains.labels[i]])) < 0.5
    attributes = trains.attributes
    assert attributes["source"] == "tones" and attributes["seed"] == 3
    assert Cochlea(**json.loads(attributes["cochlea"])) == nerve(20, RATE)
    with h5py.File(out) as file:  # what any other reader of the form looks for
        assert file["spikes/times"].shape == file["spikes/units"].shape == file["labels"].shape == (18,)
        assert file["extra/speaker"].shape == (18,) and file["extra/keys"].shape == (3,)
    splits = split_by_speaker(trains)
    assert [len(positions) for positions in splits.values()] == [6, 6, 6]


def test_processes_and_neighbours_change_nothing(spoken: Path, tmp_path: Path) -> None:
    alone, whole = tmp_path / "alone", SpokenSpikes(spoken, cochlea=nerve(8, RATE))
    (alone / "recordings").mkdir(parents=True)
    name = "1_bob_1.wav"
    (alone / "recordings" / name).write_bytes((spoken / "recordings" / name).read_bytes())
    position = [recording.path.name for recording in whole.recordings].index(name)
    expected = whole.hear(position)
    for found in (list(whole)[position], next(iter(SpokenSpikes(alone, cochlea=nerve(8, RATE))))):
        assert all(np.array_equal(a, b) for a, b in zip(expected, found, strict=True))
    other = SpokenSpikes(spoken, cochlea=nerve(8, RATE), seed=1).hear(position)
    assert not np.array_equal(other[0], expected[0])


@pytest.mark.slow  # starts Python anew
def test_workers_make_the_same_file(spoken: Path, tmp_path: Path) -> None:
    one, two = tmp_path / "one.h5", tmp_path / "two.h5"
    assert convert(spoken, one) == convert(spoken, two, "--workers", "2") == 0
    a, b = open_shd(one), open_shd(two)
    for i in range(len(a)):
        assert all(np.array_equal(x, y) for x, y in zip(a.events(i), b.events(i), strict=True))
    (spoken / "recordings" / "1_bob_1.wav").write_bytes(b"RIFF")
    with pytest.raises(DataError, match=r"1_bob_1\.wav"):
        list(SpokenSpikes(spoken, cochlea=nerve(8, RATE), sample_rate=RATE, workers=2))


@pytest.mark.parametrize(
    ("names", "pattern", "expected"),
    [
        (["0_a_1.wav", "10_b_c_2.FLAC"], None, [("0", "a"), ("10", "b_c")]),
        (["yes/0a7c_nohash_0.wav", "no/91bb_nohash_3.wav"], None, [("no", "91bb"), ("yes", "0a7c")]),
        (["yes/ann/x.wav", "no/bob/1_2_3.wav"], None, [("no", "bob"), ("yes", "ann")]),
        (["ann/yes-1.wav", "ann/hum.wav"], r"(?P<speaker>\w+)/(?P<label>\w+)-\d+", [("yes", "ann")]),
        (["wav/0_a_1.wav", "notes/readme.txt", "wav/.hidden.wav"], None, [("0", "a")]),
    ],
)
def test_labels_and_speakers_from_names(tmp_path: Path, names: list[str], pattern: str | None, expected: list) -> None:
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert [(recording.text, recording.speaker) for recording in list_spoken(tmp_path, pattern)] == expected


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--pattern", "("], "pattern is no regular expression"),
        (["--pattern", r"(?P<label>\d)_.*"], "pattern without the group speaker"),
        (["--pattern", r"(?P<label>\d)-(?P<speaker>.)"], "pattern fits no recording"),
        (["--channels", "0"], "n_channels): found 0"),
        (["--dt", "0.00001"], "bins shorter than one sample"),
        (["--workers", "0"], "workers): found 0"),
        (["--sample-rate", "0"], "sample_rate): found 0"),
        (["--seed", "-1"], "seed): found -1"),
        (["--spikes", "regular"], "poisson, integrate"),
    ],
)
def test_impossible_options(spoken: Path, tmp_path: Path, capsys, options: list[str], message: str) -> None:
    assert convert(spoken, tmp_path / "out" / "a.h5", *options) == 2
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1
    assert not list(tmp_path.rglob("*.h5*"))


def test_faulty_folders(spoken: Path, tmp_path: Path, capsys) -> None:
    def complaint(folder: Path, *options: str) -> str:
        assert convert(folder, tmp_path / "a.h5", *options) == 2
        assert not list(tmp_path.glob("*a.h5*"))
        error = capsys.readouterr().err
        assert error.count("\n") == 1
        return error

    assert "not found" in complaint(tmp_path / "none")
    (tmp_path / "empty").mkdir()
    assert "no recorded speech here" in complaint(tmp_path / "empty")
    say(spoken / "recordings" / "hum.wav")
    stranger = complaint(spoken)
    assert "'hum' among 19 recordings" in stranger and "--pattern" in stranger and "LABEL/SPEAKER/FILE" in stranger
    (spoken / "recordings" / "hum.wav").unlink()
    (spoken / "recordings" / "0_ann_9.wav").write_bytes(b"no sound")
    assert "0_ann_9.wav" in complaint(spoken)
    assert "0_ann_9.wav" in complaint(spoken, "--sample-rate", "8000")


def test_mixed_sample_rates(spoken: Path, tmp_path: Path, capsys) -> None:
    say(spoken / "recordings" / "2_dot_0.wav", 900.0, rate=16000)
    assert convert(spoken, tmp_path / "a.h5") == 2
    error = capsys.readouterr().err
    assert "2_dot_0.wav): found 16000 Hz, expected 8000 Hz" in error and error.count("\n") == 1
    assert convert(spoken, tmp_path / "a.h5", "--sample-rate", "8000") == 0
    trains = open_shd(tmp_path / "a.h5")
    assert len(trains) == 19 and json.loads(trains.attributes["cochlea"])["sample_rate"] == 8000


def test_an_existing_file(spoken: Path, tmp_path: Path, capsys) -> None:
    out = tmp_path / "a.h5"
    assert convert(spoken, out) == 0
    before = out.read_bytes()
    assert convert(spoken, out, "--seed", "1") == 2
    assert "exists already" in capsys.readouterr().err and out.read_bytes() == before
    assert convert(spoken, out, "--seed", "1", "--overwrite") == 0
    assert out.read_bytes() != before
    (tmp_path / "thesis.tex").write_text("precious")
    assert convert(spoken, tmp_path / "thesis.tex", "--overwrite") == 2
    assert (tmp_path / "thesis.tex").read_text() == "precious"


def test_the_table_and_the_plot(spoken: Path, tmp_path: Path, capsys) -> None:
    pytest.importorskip("matplotlib", reason="plots need matplotlib, from ranvier[train]")
    assert convert(spoken, tmp_path / "a.h5", "--plot", str(tmp_path / "plots" / "a.png")) == 0
    text = capsys.readouterr().out
    assert "cid" in text and "18 recordings, 1.8 s of sound, 3 labels, 3 speakers" in text
    assert (tmp_path / "plots" / "a.png").read_bytes()[:4] == b"\x89PNG"


@pytest.mark.parametrize("seed", range(3))
def test_spreading_is_undone_by_binning(seed: int) -> None:
    counts = np.random.default_rng(seed).poisson(0.7, (200, 9))
    times, units = spread(counts, 0.001)
    assert (np.diff(times) >= 0).all() and len(times) == counts.sum()
    again = np.zeros_like(counts)
    np.add.at(again, (np.floor(times.astype(np.float32) / 0.001).astype(int), units), 1)
    assert np.array_equal(again, counts)
    assert all(len(part) == 0 for part in spread(np.zeros((5, 2), int), 0.001))


@pytest.mark.slow
def test_recorded_digits_of_one_label_are_alike(shared_data: Path, tmp_path: Path) -> None:
    """The nearest neighbour of a recording of one speaker is mostly the same digit; by chance it is one in ten."""
    folder = tmp_path / "fsdd"
    folder.mkdir()
    for path in (shared_data / "fsdd" / "recordings").glob("*_theo_?.wav"):
        (folder / path.name).symlink_to(path)
    assert main(["convert", "shd", str(folder), "--out", str(tmp_path / "theo.h5")]) == 0
    trains = open_shd(tmp_path / "theo.h5")
    assert len(trains) == 100 and trains.keys == tuple("0123456789")
    shapes = []
    for i in range(100):
        counts = trains.binned(i, 0.001, channels=14)
        shapes.append(np.stack([part.sum(0) for part in np.array_split(counts, 6)]).ravel())
    rows = np.sqrt(np.array(shapes))
    similar = np.corrcoef(rows - rows.mean(0))
    np.fill_diagonal(similar, -1)
    assert (trains.labels[similar.argmax(1)] == trains.labels).mean() > 0.6
