"""The '25 form: our writer against the official loader's logic, our reader against both."""

import csv
import shutil
from pathlib import Path

import h5py
import numpy as np
import pytest

from neuro import Trial, block_zscore, open_recordings
from neuro.formats.b2t25_write import TABLE, TREE, write
from tests.neuro.recorded import raw_trials
from tests.oracles.official_loaders import corpus_of, read_b2t25_file

SPLITS = ("train", "val", "test")


@pytest.fixture(scope="module")
def written(tmp_path_factory) -> tuple[Path, list]:
    trials = list(raw_trials(n_electrodes=256))
    return write(iter(trials), tmp_path_factory.mktemp("tree") / "data"), trials


def test_the_official_loader_reads_what_we_write_trial_for_trial(written):
    root, raw = written
    recordings = open_recordings(root)
    assert recordings.form == "b2t25" and recordings.normalized and recordings.n_channels == 512
    ours = iter(recordings)
    count = 0
    for session in recordings.sessions:
        for split in SPLITS:
            file = root / TREE / session / f"data_{split}.hdf5"
            if not file.exists():
                continue
            sent = [trial for trial in raw if trial.session == session and trial.split == split]
            for official, mine, source in zip(read_b2t25_file(file), ours, sent, strict=False):
                count += 1
                np.testing.assert_array_equal(mine.features, official["features"])
                assert official["features"].dtype == np.float32 and mine.features.dtype == np.float32
                assert official["n_time_steps"] == len(mine.features) == len(source.power)
                assert official["session"] == official["path_session"] == mine.session == session
                assert (official["block_num"], official["trial_num"]) == (mine.block, mine.trial)
                assert (mine.block, mine.trial) == (source.block, source.trial)
                assert corpus_of(root / TABLE, session, mine.block) == mine.corpus == source.corpus
                if split == "test":
                    assert mine.phonemes is None and mine.sentence is None
                    assert all(official[field] is None for field in ("seq_class_ids", "seq_len", "sentence_label"))
                    continue
                assert official["seq_class_ids"].shape == official["transcription"].shape == (500,)
                assert official["seq_class_ids"].dtype == official["transcription"].dtype == np.int32
                labels = official["seq_class_ids"][: official["seq_len"]]
                np.testing.assert_array_equal(labels, mine.phonemes)
                np.testing.assert_array_equal(source.phonemes, mine.phonemes)
                assert not official["seq_class_ids"][official["seq_len"] :].any()
                assert official["sentence_label"] == official["transcription_text"] == mine.sentence == source.sentence
                np.testing.assert_array_equal(source.onsets, mine.onsets)
    assert count == len(recordings) == len(raw) == 15


def test_features_are_zscored_over_the_block_across_splits(written):
    root, raw = written
    day = [trial for trial in raw if trial.session == "t15.2023.08.13"]
    values = [np.concatenate([trial.counts[-4.5], trial.power], axis=1) for trial in day]
    expected = block_zscore(values, [trial.block for trial in day])
    ours = [trial.features for trial in open_recordings(root) if trial.session == "t15.2023.08.13"]
    for ours_trial, expected_trial in zip(ours, expected, strict=True):
        np.testing.assert_allclose(ours_trial, expected_trial, atol=1e-5)
    together = np.concatenate(ours[5:])
    np.testing.assert_allclose(together.mean(axis=0), 0, atol=1e-5)
    np.testing.assert_allclose(together.std(axis=0), 1, atol=1e-4)


def test_numbers_skip_inside_a_block_and_the_table_counts_what_was_shown(written):
    root, raw = written
    kept: dict[tuple[str, int], list[int]] = {}
    for trial in raw:
        kept.setdefault((trial.session.split(".", 1)[1].replace(".", "-"), trial.block), []).append(trial.trial)
    rows = list(csv.DictReader((root / TABLE).open()))
    assert list(rows[0]) == ["Date", "Post-implant day", "Block number", "Number of sentences", "Corpus", "Split"]
    assert {row["Split"] for row in rows} == {"Train", "Val/Test"}
    shown = {(row["Date"], int(row["Block number"])): int(row["Number of sentences"]) for row in rows}
    assert shown.keys() == kept.keys()
    assert all(shown[key] >= len(kept[key]) for key in kept)
    assert sum(shown.values()) > len(raw)


def test_views(written):
    root, _ = written
    recordings = open_recordings(root)
    assert recordings.sessions == ["t15.2023.08.11", "t15.2023.08.13"]
    assert recordings.splits == SPLITS and len(recordings) == 15 and not recordings.has_labels
    train, test = recordings.split("train"), recordings.split("test")
    assert len(train) == 10 and train.has_labels and train.splits == ("train",) and not test.has_labels
    assert test.sessions == recordings.sessions  # the day index does not depend on the view
    assert {trial.split for trial in test} == {"test"}
    assert (
        train[0].key == "t15.2023.08.11/train/trial_0000" == train.refs[0].key and train[-1].key == train.refs[-1].key
    )
    np.testing.assert_array_equal(recordings.lengths(), [len(trial.features) for trial in recordings])
    np.testing.assert_array_equal(train.days(), [0] * 5 + [1] * 5)
    assert train.select([3, 1]).refs == (train.refs[3], train.refs[1])
    with pytest.raises(IndexError):
        train[10]


@pytest.mark.parametrize(
    "given", ["data", "data/hdf5_data_final", "kaggle", "kaggle/t15_copyTask_neuralData", "above", "above/more"]
)
def test_every_usual_place_is_found(written, tmp_path, given):
    root, _ = written
    shutil.copytree(root, tmp_path / "data")
    shutil.copytree(root / TREE, tmp_path / "kaggle/t15_copyTask_neuralData" / TREE)
    shutil.copy(root / TABLE, tmp_path / "kaggle" / TABLE)
    shutil.copytree(root, tmp_path / "above/more/data")
    recordings = open_recordings(tmp_path / given)
    assert len(recordings) == 15
    assert recordings[0].corpus == "Switchboard"


def test_corpus_is_none_without_table_or_row_and_a_byte_order_mark_is_tolerated(written, tmp_path):
    root = shutil.copytree(written[0], tmp_path / "data")
    table = (root / TABLE).read_text()
    (root / TABLE).write_text("\ufeff" + table.replace("Harvard", "50-Word"), encoding="utf-8")
    recordings = open_recordings(root)
    assert [recordings[0].corpus, recordings[-1].corpus] == ["Switchboard", "50-Word"]
    (root / TABLE).write_text(table.splitlines()[0] + "\n2023-08-13,27,not a number,4,Nothing,Train\n\n")
    assert open_recordings(root)[0].corpus is None
    (root / TABLE).unlink()
    assert open_recordings(root)[0].corpus is None


@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", ">i4", "i8", "f4"])
def test_any_number_type_and_bytes_or_text_attributes_are_accepted(written, tmp_path, dtype):
    root = shutil.copytree(written[0], tmp_path / "data")
    before = open_recordings(root)[1]
    with h5py.File(root / TREE / before.session / "data_train.hdf5", "r+") as file:
        group = file["trial_0001"]
        ids, features = group["seq_class_ids"][:], group["input_features"][:]
        del group["seq_class_ids"], group["input_features"], group["transcription"]
        group["seq_class_ids"] = ids.astype(dtype)
        group["input_features"] = features.astype("f8")
        for name in ("sentence_label", "session"):
            group.attrs[name] = np.bytes_(group.attrs[name].encode())
        group.attrs["n_time_steps"] = np.array([len(features)])
        group.attrs["block_num"] = np.uint8(group.attrs["block_num"])
    after = open_recordings(root)[1]
    assert after.phonemes.dtype == np.int64 and after.features.dtype == np.float32
    np.testing.assert_array_equal(after.phonemes, before.phonemes)
    np.testing.assert_array_equal(after.features, before.features)
    assert (after.sentence, after.block) == (before.sentence, before.block)


def test_the_sentence_comes_from_the_character_codes_when_its_attribute_was_dropped(written, tmp_path):
    root = shutil.copytree(written[0], tmp_path / "data")
    before = open_recordings(root)[0]
    with h5py.File(root / TREE / before.session / "data_train.hdf5", "r+") as file:
        del file["trial_0000"].attrs["sentence_label"]
        codes = file["trial_0000/transcription"][:]
        del file["trial_0000/transcription"]
        file["trial_0000/transcription"] = codes.astype(np.uint8)
    assert open_recordings(root)[0].sentence == before.sentence


def test_trials_are_listed_by_name_whether_or_not_the_numbers_are_contiguous(written, tmp_path):
    root = shutil.copytree(written[0], tmp_path / "data")
    with h5py.File(root / TREE / "t15.2023.08.11/data_train.hdf5", "r+") as file:
        del file["trial_0002"]
        file.create_group("notes")
    refs = [ref for ref in open_recordings(root).refs if ref.session == "t15.2023.08.11"]
    assert [ref.name for ref in refs] == ["trial_0000", "trial_0001", "trial_0003", "trial_0004"]


def test_clutter_of_downloads_is_ignored(written, tmp_path):
    root = shutil.copytree(written[0], tmp_path / "data")
    (root / TREE / "._t15.2023.08.11").write_text("mac")
    (root / TREE / "t15.2023.08.11/._data_train.hdf5").write_text("mac")
    (root / TREE / ".ipynb_checkpoints").mkdir()
    (root / TREE / "t15_pretrained_rnn_baseline").mkdir()
    (root / f"._{TABLE}").write_text("mac")
    assert len(open_recordings(root)) == 15
    (root / TREE / "t15.2023.08.11/data_old.hdf5").touch()
    with pytest.warns(UserWarning, match=r"data_old\.hdf5"):
        assert len(open_recordings(root)) == 15


def test_a_file_in_the_wrong_folder_is_remarked_upon(written, tmp_path):
    root = shutil.copytree(written[0], tmp_path / "data")
    (root / TREE / "t15.2023.08.13").rename(root / TREE / "t15.2023.08.14")
    with pytest.warns(UserWarning, match=r"say session t15\.2023\.08\.13"):
        open_recordings(root)


def test_block_normalisation_again_over_what_is_stored(written, tmp_path):
    stored = list(open_recordings(written[0]).split("train"))
    shifted = [Trial(**{**trial.__dict__, "features": trial.features * 3 + 5}) for trial in stored]
    root = write(shifted, tmp_path / "shifted")
    np.testing.assert_array_equal(open_recordings(root, normalize="none")[0].features, shifted[0].features)
    for ours, trial in zip(open_recordings(root, normalize="block"), stored, strict=True):
        np.testing.assert_allclose(ours.features, trial.features, atol=2e-4)


def test_finished_trials_are_written_as_they_are_and_need_no_power(tmp_path):
    first = next(iter(raw_trials()))
    counts_only = type(first)(**{**first.__dict__, "power": first.power[:, :0], "session": "fsdd.george"})
    trial = open_recordings(write([counts_only], tmp_path / "speech"))[0]
    assert trial.features.shape == (len(first.power), 128)
    assert (trial.session, trial.corpus) == ("fsdd.george", "Switchboard")
    again = open_recordings(write([trial], tmp_path / "again"))[0]
    np.testing.assert_array_equal(again.features, trial.features)


def test_text_outside_ascii_survives(tmp_path):
    trial = next(iter(raw_trials()))
    trial = type(trial)(**{**trial.__dict__, "sentence": "A café, naïvely."})
    root = write([trial], tmp_path / "data")
    assert open_recordings(root)[0].sentence == trial.sentence
    official = read_b2t25_file(root / TREE / trial.session / "data_train.hdf5")[0]
    assert official["transcription_text"] == trial.sentence


def test_test_labels_on_request(tmp_path):
    root = write(raw_trials(), tmp_path / "data", test_labels=True)
    test = open_recordings(root).split("test")
    assert test.has_labels and all(trial.phonemes is not None for trial in test)
