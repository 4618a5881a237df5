"""The '24 form: our writer against the official loaders' logic, our reader against both."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from scipy.io import loadmat, savemat

from neuro import DataError, Lexicon, open_recordings
from neuro.formats.b2t24_write import PARTITIONS, write
from tests.neuro.recorded import raw_trials
from tests.oracles.official_loaders import read_b2t24_file

SESSIONS = ("t12.2022.04.28", "t12.2022.05.05", "t12.2022.05.17")


@pytest.fixture(scope="module")
def written(tmp_path_factory) -> tuple[Path, list]:
    trials = list(raw_trials(SESSIONS, n_electrodes=256))
    return write(iter(trials), tmp_path_factory.mktemp("tree") / "competitionData"), trials


def test_the_official_loaders_read_what_we_write_trial_for_trial(written):
    root, raw = written
    recordings, lexicon = open_recordings(root), Lexicon()
    assert recordings.form == "b2t24" and recordings.normalized and recordings.n_channels == 256
    ours = iter(recordings)
    count = 0
    for session in recordings.sessions:
        for split, partition in PARTITIONS.items():
            file = root / partition / f"{session}.mat"
            if not file.exists():
                continue
            sent = [trial for trial in raw if trial.session == session and trial.split == split]
            for official, mine, source in zip(read_b2t24_file(file), ours, sent, strict=False):
                count += 1
                assert mine.features.dtype == np.float32 and mine.split == split
                np.testing.assert_allclose(mine.features, official["features"], atol=1e-5)
                assert official["block"] == mine.block == source.block
                assert official["session"] == mine.session == session
                if split == "test":
                    assert mine.phonemes is None and mine.sentence is None and official["sentence"] == ""
                    continue
                assert official["sentence"] == mine.sentence == source.sentence
                assert mine.phonemes.tolist() == lexicon.phonemes(source.sentence)
    assert count == len(recordings) == len(raw) == 25


def test_the_file_is_laid_out_as_the_official_one(written):
    root, raw = written
    contents = loadmat(root / "train" / f"{SESSIONS[0]}.mat")
    names = {name for name in contents if not name.startswith("__")}
    assert names == {"sentenceText", "blockIdx", "spikePow", "tx1", "tx2", "tx3", "tx4"}
    assert contents["blockIdx"].shape == (5, 1) and contents["blockIdx"].dtype == np.uint8
    assert contents["sentenceText"].shape == (5,) and contents["sentenceText"].dtype.kind == "U"
    for level, threshold in enumerate((-3.5, -4.5, -5.5, -6.5), start=1):
        cells = contents[f"tx{level}"]
        assert cells.shape == (1, 5) and cells.dtype == object
        np.testing.assert_array_equal(cells[0, 2], raw[2].counts[threshold])
    np.testing.assert_array_equal(contents["spikePow"][0, 2], raw[2].power)
    assert contents["spikePow"][0, 2].shape[1] == 256
    assert not (root / "competitionHoldOut" / f"{SESSIONS[0]}.mat").exists()  # no such trials on that day


def test_raw_values_other_thresholds_and_all_columns(written):
    root, raw = written
    trial = open_recordings(root, normalize="none", tx="tx2", columns=None)[2]
    assert trial.features.shape[1] == 512
    np.testing.assert_array_equal(trial.features[:, :256], raw[2].counts[-4.5])
    np.testing.assert_array_equal(trial.features[:, 256:], raw[2].power)
    some = open_recordings(root, normalize="none", columns=[130, 4])
    assert some.n_channels == 4 and not some.normalized
    np.testing.assert_array_equal(some[2].features[:, :2], raw[2].counts[-3.5][:, [130, 4]])
    assert open_recordings(root, columns=None).n_channels == 512


def test_trial_numbers_count_inside_a_block_and_views_are_right(written):
    root, _ = written
    recordings = open_recordings(root.parent)  # the folder around competitionData
    assert recordings.sessions == list(SESSIONS) and recordings.splits == ("train", "val", "test")
    assert [trial.trial for trial in recordings.split("val")] == [0, 1, 2, 0, 1, 2]
    assert recordings.split("val").has_labels and not recordings.split("test").has_labels
    np.testing.assert_array_equal(recordings.lengths(), [len(trial.features) for trial in recordings])


def test_opening_reads_headers_only(written, monkeypatch):
    import scipy.io

    monkeypatch.setattr(scipy.io, "loadmat", lambda *_, **__: pytest.fail("features were read"))
    assert len(open_recordings(written[0])) == 25


def test_few_sessions_are_in_memory_at_once_and_thrashing_is_remarked_upon(written):
    recordings = open_recordings(written[0], open_sessions=1)
    order = [0, len(recordings) - 1] * 10
    with pytest.warns(UserWarning, match="ranvier convert"):
        for i in order:
            recordings[i]
    assert len(recordings.source._loaded) == 1


@pytest.mark.parametrize("dtype", ["u1", "i2", "u2", "i4", "f4", "f8"])
def test_any_number_type_and_cells_of_text_are_accepted(written, tmp_path, dtype):
    root = shutil.copytree(written[0], tmp_path / "competitionData")
    before = open_recordings(root)[1]
    file = root / "train" / f"{SESSIONS[0]}.mat"
    contents = {name: value for name, value in loadmat(file).items() if not name.startswith("__")}
    cells = contents["tx1"]
    for i in range(cells.shape[1]):
        cells[0, i] = cells[0, i].astype(dtype)
        contents["spikePow"][0, i] = contents["spikePow"][0, i].astype("f8")
    contents["blockIdx"] = contents["blockIdx"].astype("f8").T
    contents["sentenceText"] = contents["sentenceText"].astype(object)[:, None]
    savemat(file, contents)
    after = open_recordings(root)[1]
    np.testing.assert_array_equal(after.features, before.features)
    np.testing.assert_array_equal(after.phonemes, before.phonemes)
    assert (after.sentence, after.block) == (before.sentence, before.block)


def test_clutter_is_ignored(written, tmp_path):
    root = shutil.copytree(written[0], tmp_path / "competitionData")
    (root / "train" / f"._{SESSIONS[0]}.mat").write_text("mac")
    (root / "README.txt").write_text("about")
    assert len(open_recordings(root)) == 25


def test_area_6v_alone_is_filled_up_to_256_columns(tmp_path):
    root = write(raw_trials(SESSIONS[:1], n_electrodes=128), tmp_path / "competitionData")
    trial = open_recordings(root)[0]
    assert trial.features.shape[1] == 256 and trial.features.std() > 0.5
    assert (open_recordings(root, columns=range(128, 256))[0].features == 0).all()


def test_an_unknown_word_is_reported_with_its_sentence_and_place(tmp_path):
    trial = next(iter(raw_trials(SESSIONS[:1])))
    trial = type(trial)(**{**trial.__dict__, "sentence": "The blorptang is here."})
    root = write([trial], tmp_path / "competitionData")
    with pytest.raises(DataError, match=r"'blorptang' in the sentence 'The blorptang is here\.'.*trial_0000"):
        open_recordings(root)[0]
    (tmp_path / "own.dict").write_text("blorptang  B L AO R P T AE NG\n")
    assert len(open_recordings(root, lexicon=Lexicon(tmp_path / "own.dict"))[0].phonemes) == 19
