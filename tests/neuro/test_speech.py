"""Recorded speech to the '25 form, from the folder to the command line."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import soundfile

from neuro import DataError, open_recordings
from neuro.cochlea import Cochlea
from neuro.phonemes import decode
from neuro.speech import BLOCK_SIZE, LAYOUTS, Recording, SpeechConversion, list_recordings, read_sound, split_of
from scripts.cli import main

RATE = 8000
EAR = Cochlea(n_channels=4, sample_rate=RATE)


def say(path: Path, seconds: float = 0.3, rate: int = RATE, channels: int = 1) -> None:
    rng = np.random.default_rng(len(path.name))
    samples = rng.normal(size=(round(seconds * rate), channels)) * 0.1
    soundfile.write(path, samples, rate, format="WAV")


@pytest.fixture
def digits(tmp_path: Path) -> Path:
    folder = tmp_path / "fsdd" / "recordings"
    folder.mkdir(parents=True)
    for speaker in ("ann", "bob", "cid"):
        for digit in range(3):
            for index in (0, 4, 5, 6, 10):
                say(folder / f"{digit}_{speaker}_{index}.wav")
    return folder


@pytest.fixture
def sentences(tmp_path: Path) -> Path:
    folder = tmp_path / "talks"
    (folder / "sub").mkdir(parents=True)
    rows = ["FILE,SPEAKER,TEXT"]
    for i in range(12):
        say(folder / "sub" / f"{i}.wav", 0.5 + i / 100)
        rows.append(f'sub/{i}.wav,{"ann" if i % 3 else "bob"},"Well, hello number {["one", "two"][i % 2]}!"')
    (folder / "transcripts.csv").write_text("\n".join(rows) + "\n")
    return folder


def convert(folder: Path, out: Path, *options: str) -> int:
    return main(["convert", "speech", str(folder), "--out", str(out), "--channels", "4", *options])


def test_digit_names(digits: Path) -> None:
    found = list_recordings(digits)
    assert len(found) == 45
    assert [r.path.name for r in found[:4]] == ["0_ann_0.wav", "1_ann_0.wav", "2_ann_0.wav", "0_ann_4.wav"]
    assert (found[1].speaker, found[1].text, found[1].validation) == ("ann", "one", True)
    assert [r.path.name for r in found if r.speaker == "bob"][-1] == "2_bob_10.wav"  # 10 after 6, as numbers
    assert sum(bool(r.validation) for r in found) == 18


def test_the_data_set_is_found_from_its_root(digits: Path) -> None:
    assert list_recordings(digits.parent) == list_recordings(digits)


def test_files_with_other_names_are_told(digits: Path) -> None:
    say(digits / "noise.wav")
    with pytest.warns(UserWarning, match=r"left out 1 files .*noise\.wav"):
        assert len(list_recordings(digits)) == 45


def test_table(sentences: Path) -> None:
    found = list_recordings(sentences)
    assert len(found) == 12
    assert found[0] == Recording(sentences / "sub" / "0.wav", "bob", "Well, hello number one!")


@pytest.mark.parametrize("separator", ["\t", ";", ","])
def test_table_separators(tmp_path: Path, separator: str) -> None:
    say(tmp_path / "a.wav")
    table = separator.join(["Text", "file", "Speaker", "note"]) + "\n" + separator.join(["hi there", "a.wav", "x", ""])
    (tmp_path / "transcripts.tsv").write_text("\ufeff" + table)
    assert list_recordings(tmp_path) == [Recording(tmp_path / "a.wav", "x", "hi there")]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("FILE,SPEAKER\na.wav,x\n", "without the column TEXT"),
        ("FILE,SPEAKER,TEXT\na.wav,x\n", "line 2"),
        ("FILE,SPEAKER,TEXT\na.wav,x,hi\n\na.wav,,hi\n", "line 4"),
        ("FILE,SPEAKER,TEXT\nb.wav,x,hi\n", r"recording not found .*b\.wav.*line 2"),
        ("FILE,SPEAKER,TEXT\n", "without a single recording"),
        ("", "without the column"),
    ],
)
def test_faulty_tables(tmp_path: Path, table: str, message: str) -> None:
    say(tmp_path / "a.wav")
    (tmp_path / "transcripts.csv").write_text(table)
    with pytest.raises(DataError, match=message):
        list_recordings(tmp_path)


def test_nothing_here(tmp_path: Path) -> None:
    assert set(LAYOUTS) == {"transcripts", "digits"}
    with pytest.raises(DataError, match=r"no recorded speech here .*transcripts\.csv"):
        list_recordings(tmp_path)
    with pytest.raises(DataError, match="not found"):
        list_recordings(tmp_path / "none")


def test_trials(digits: Path) -> None:
    conversion = SpeechConversion(digits, held_out=["cid"], cochlea=EAR)
    trials = list(conversion)
    assert len(trials) == len(conversion) == 45
    assert [t.session for t in trials] == ["fsdd.ann"] * 15 + ["fsdd.bob"] * 15 + ["fsdd.cid"] * 15
    assert {t.session: {u.split for u in trials if u.session == t.session} for t in trials} == {
        "fsdd.ann": {"train", "val"},
        "fsdd.bob": {"train", "val"},
        "fsdd.cid": {"test"},
    }
    first = trials[1]
    assert first.sentence == "one" and decode(first.phonemes) == ["W", "AH", "N", "SIL"]
    (counts,) = first.counts.values()
    assert counts.shape == first.power.shape == (15 + 20, 4)  # 0.3 s of sound, 0.2 s of silence on each side
    assert first.power[:10].max() < 1e-6 < first.power[10:25].min()


def test_blocks_follow_the_order_and_never_mix_splits(digits: Path) -> None:
    trials = [t for t in SpeechConversion(digits, cochlea=EAR, block_size=4) if t.session == "fsdd.ann"]
    assert [(t.split, t.block, t.trial) for t in trials] == [
        *(("val", 0, i) for i in range(4)),
        *(("val", 1, i) for i in range(2)),
        *(("train", 2, i) for i in range(4)),
        *(("train", 3, i) for i in range(4)),
        ("train", 4, 0),
    ]


def test_last_recordings_validate_where_the_data_say_nothing(sentences: Path) -> None:
    splits = [t.split for t in SpeechConversion(sentences, cochlea=EAR, validation=0.25) if t.session == "talks.ann"]
    assert splits == ["train"] * 6 + ["val"] * 2
    assert all(t.split == "train" for t in SpeechConversion(sentences, cochlea=EAR, validation=0.0))
    only = Recording(Path("a.wav"), "x", "hi")
    assert split_of(only, 0, 1, [], 0.5) == "train" and split_of(only, 0, 1, ["x"], 0.5) == "test"


def test_spikes_of_a_recording_do_not_depend_on_the_rest(digits: Path) -> None:
    def counts() -> dict[str, np.ndarray]:
        return {
            f"{t.session} {t.sentence} {t.block} {t.trial}": next(iter(t.counts.values()))
            for t in SpeechConversion(digits, cochlea=EAR)
        }

    before = counts()
    for path in digits.glob("*_bob_*.wav"):
        path.unlink()
    after = counts()
    assert set(after) < set(before)
    assert all(np.array_equal(after[key], before[key]) for key in after)
    reseeded = next(iter(SpeechConversion(digits, cochlea=EAR, seed=1)))
    assert not np.array_equal(next(iter(reseeded.counts.values())), next(iter(after.values())))


def test_stereo_is_mixed(tmp_path: Path) -> None:
    say(tmp_path / "a.wav", channels=2)
    samples, rate = read_sound(tmp_path / "a.wav")
    both, _ = soundfile.read(tmp_path / "a.wav")
    assert rate == RATE and samples.ndim == 1
    np.testing.assert_allclose(samples, both.mean(1), atol=1e-6)


def test_bad_sound_files(tmp_path: Path) -> None:
    (tmp_path / "text.wav").write_text("this is no sound")
    soundfile.write(tmp_path / "empty.wav", np.zeros(0), RATE)
    soundfile.write(tmp_path / "nan.wav", np.array([0.0, np.nan]), RATE, subtype="FLOAT")
    for name, message in (
        ("text.wav", "not a sound file"),
        ("empty.wav", "without a single sample"),
        ("nan.wav", "not finite"),
        ("none.wav", "not found"),
    ):
        with pytest.raises(DataError, match=message) as caught:
            read_sound(tmp_path / name)
        assert name in str(caught.value)


def test_mixed_sample_rates_need_a_decision(digits: Path) -> None:
    say(digits / "3_ann_7.wav", rate=16_000)
    with pytest.raises(DataError, match=r"3_ann_7\.wav.*found 16000 Hz, expected 8000 Hz"):
        SpeechConversion(digits)
    assert len(list(SpeechConversion(digits, cochlea=EAR, sample_rate=RATE))) == 46


def test_unknown_words_are_told_before_anything_is_made(sentences: Path) -> None:
    table = sentences / "transcripts.csv"
    table.write_text(table.read_text() + "sub/1.wav,ann,hello qwrtx\nsub/2.wav,ann,vvrp 7\n")
    with pytest.raises(DataError, match=r"no pronunciation for 'qwrtx' in 'hello qwrtx', nor for 7, vvrp; .*1\.wav"):
        SpeechConversion(sentences)


def test_held_out_speakers_must_exist_and_leave_some(digits: Path) -> None:
    with pytest.raises(DataError, match="found dave, expected some of ann, bob, cid"):
        SpeechConversion(digits, held_out=["dave"])
    with pytest.raises(DataError, match="every speaker is held out"):
        SpeechConversion(digits, held_out=["ann", "bob", "cid"])


def test_speakers_that_collide(tmp_path: Path) -> None:
    say(tmp_path / "a.wav")
    (tmp_path / "transcripts.csv").write_text("FILE,SPEAKER,TEXT\na.wav,Jo Ann,hi\na.wav,Jo-Ann,hi\n")
    with pytest.raises(DataError, match="two speakers get the same session name"):
        SpeechConversion(tmp_path)


@pytest.mark.parametrize(("field", "value"), [("silence", -1.0), ("validation", 1.0), ("block_size", 0)])
def test_bad_options(digits: Path, field: str, value: float) -> None:
    with pytest.raises(DataError, match=field):
        SpeechConversion(digits, **{field: value})


def test_command_line_round_trip(digits: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    assert convert(digits, out, "--held-out", "cid", "--json") == 0
    summary = json.loads(capsys.readouterr().out)
    assert summary["sessions"]["fsdd.cid"] == {"test": 15}
    assert summary["sessions"]["fsdd.ann"] == {"train": 9, "val": 6}
    assert summary["spikes_per_channel_and_bin"] > 0
    assert json.loads((out / "conversion.json").read_text())["cochlea"]["n_channels"] == 4

    recordings = open_recordings(out)
    assert recordings.form == "b2t25" and recordings.n_channels == 8 and recordings.normalized
    assert recordings.sessions == ["fsdd.ann", "fsdd.bob", "fsdd.cid"]
    assert {split: len(recordings.split(split)) for split in recordings.splits} == {"train": 18, "val": 12, "test": 15}
    held_out = recordings.split("test")
    assert held_out.has_labels and {held_out[i].session for i in range(15)} == {"fsdd.cid"}
    trial = recordings.split("val")[1]
    assert trial.sentence == "one" and decode(trial.phonemes) == ["W", "AH", "N", "SIL"]
    # The writer z-scores over blocks: each split of a session is its own block here.
    together = np.concatenate([held_out[i].features for i in range(15)])
    np.testing.assert_allclose(together.mean(0), 0, atol=1e-3)
    np.testing.assert_allclose(together.std(0), 1, atol=1e-3)
    assert BLOCK_SIZE > 15


def test_table_of_the_command(sentences: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert convert(sentences, tmp_path / "out", "--name", "Ra Dio", "--dt", "0.01", "--silence", "0") == 0
    text = capsys.readouterr().out
    assert "Ra-Dio.ann" in text and "12 recordings" in text and "10 ms" in text
    trial = open_recordings(tmp_path / "out").split("train")[0]
    assert len(trial.features) == 51 and trial.sentence == "Well, hello number two!"


def test_infeasible_trials_are_counted(digits: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # Three bins each: enough for "two" (T UW SIL), not for "zero" and "one".
    assert convert(digits, tmp_path / "out", "--dt", "0.1", "--silence", "0") == 0
    assert "30 trials have fewer bins than labels" in capsys.readouterr().out
    assert convert(digits, tmp_path / "out", "--silence", "0", "--overwrite") == 0
    assert "too short for the official patches" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--held-out", "dave"], "dave"),
        (["--spikes", "gaussian"], "poisson, integrate"),
        (["--high-hz", "9000"], "half the sample rate"),
        (["--dictionary", "missing.dict"], "not found"),
    ],
)
def test_mistakes_on_the_command_line(
    digits: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str], message: str
) -> None:
    assert convert(digits, tmp_path / "out", *options) == 2
    error = capsys.readouterr().err
    assert message in error and "Traceback" not in error
    assert not (tmp_path / "out").exists()


def test_broken_file_leaves_nothing_behind(digits: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    soundfile.write(digits / "2_cid_10.wav", np.zeros(0), RATE)
    before = sorted(tmp_path.iterdir())
    assert convert(digits, tmp_path / "out") == 2
    assert "2_cid_10.wav" in capsys.readouterr().err
    assert sorted(tmp_path.iterdir()) == before


def test_existing_output_is_refused(digits: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "precious").touch()
    assert convert(digits, tmp_path / "out") == 2
    assert convert(digits, tmp_path / "out", "--overwrite") == 2
    assert (tmp_path / "out" / "precious").exists()
    assert "exists already" in capsys.readouterr().err


def test_recordings_of_another_form(digits: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The second kind of conversion: what it writes reads the same as what it read."""
    assert convert(digits, tmp_path / "first", "--held-out", "cid") == 0
    assert main(["convert", "recordings", str(tmp_path / "first"), "--out", str(tmp_path / "second"), "--json"]) == 0
    first, second = open_recordings(tmp_path / "first"), open_recordings(tmp_path / "second")
    assert [ref.key for ref in first.refs] == [ref.key for ref in second.refs]
    for i in range(len(first)):
        a, b = first[i], second[i]
        assert np.array_equal(a.features, b.features) and np.array_equal(a.phonemes, b.phonemes)
        assert (a.sentence, a.block, a.trial) == (b.sentence, b.block, b.trial)


@pytest.mark.slow
def test_a_part_of_the_spoken_digits(shared_data: Path, tmp_path: Path) -> None:
    """Digits of the same kind sound more alike through the ear than different ones, on recorded speech."""
    folder = tmp_path / "fsdd"
    folder.mkdir()
    for path in (shared_data / "fsdd" / "recordings").glob("*_theo_?.wav"):
        (folder / path.name).symlink_to(path)
    trials = list(SpeechConversion(folder, silence=0.0))
    shapes = np.stack([np.stack([part.mean(0) for part in np.array_split(t.power, 6)]).ravel() for t in trials])
    shapes -= shapes.mean(0)
    similar = np.corrcoef(shapes)
    np.fill_diagonal(similar, -1)
    nearest = [trials[i].sentence for i in similar.argmax(1)]
    assert np.mean([t.sentence == other for t, other in zip(trials, nearest, strict=True)]) > 0.8
