"""The pickled form: both spellings, missing days, and pickles that would run code."""

import io
import os
import pickle
import re
from collections import OrderedDict
from pathlib import Path

import numpy as np
import pytest

from neuro import DataError, Lexicon, open_recordings
from neuro.formats.safe_pickle import load

SENTENCES = ["How are you?", "Bring it closer."]


def day(seed: int, *, redacted: bool = False, spelling: str = "official") -> dict:
    rng = np.random.default_rng(seed)
    features = [rng.normal(size=(int(n), 6)) for n in rng.integers(5, 20, 2)]
    labels = [[40]] * 2 if redacted else [Lexicon().phonemes(sentence) for sentence in SENTENCES]
    padded = [np.pad(np.array(ids, np.int32), (0, 500 - len(ids))) for ids in labels]
    official = spelling == "official"
    return {
        "sentenceDat": features,
        "transcriptions" if official else "text": SENTENCES,
        "phonemes": padded,
        "timeSeriesLens" if official else "timeSeriesLen": np.array([len(values) for values in features]),
        "phoneLens" if official else "phoneLen": np.array([len(ids) for ids in labels]),
        "phonePerTime": np.ones(2, np.float32),
    }


def save(contents: object, path: Path, protocol: int = 4) -> Path:
    path.write_bytes(pickle.dumps(contents, protocol=protocol))
    return path


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_official_spelling_in_every_protocol(tmp_path, protocol):
    contents = {
        "train": [day(0), day(1)],
        "test": [day(2), None],
        "competition": [day(3, redacted=True), day(4, redacted=True)],
    }
    recordings = open_recordings(save(contents, tmp_path / "ptDecoder_ctc", protocol))
    assert recordings.form == "ptdecoder" and recordings.normalized and recordings.n_channels == 6
    assert recordings.sessions == ["ptdecoder.day00", "ptdecoder.day01"]
    assert [len(recordings.split(split)) for split in ("train", "val", "test")] == [4, 2, 4]
    val = recordings.split("val")
    assert val.has_labels and not recordings.split("test").has_labels
    for i, trial in enumerate(val):
        source = contents["test"][0]
        np.testing.assert_array_equal(trial.features, source["sentenceDat"][i].astype(np.float32))
        assert trial.features.dtype == np.float32 and trial.phonemes.dtype == np.int64
        assert trial.phonemes.tolist() == Lexicon().phonemes(SENTENCES[i])
        assert (trial.sentence, trial.split, trial.block, trial.trial) == (SENTENCES[i], "val", -1, i)
    assert all(trial.phonemes is None and trial.sentence is None for trial in recordings.split("test"))
    np.testing.assert_array_equal(recordings.lengths(), [len(trial.features) for trial in recordings])


def test_other_spelling_with_missing_days_and_labels(tmp_path):
    unlabelled = {**day(5, spelling="other"), "phonemes": None, "phoneLen": None, "text": None}
    each_none = {**day(6, spelling="other"), "phonemes": [None, None], "phoneLen": None}
    contents = {
        "train": [day(0, spelling="other"), day(1, spelling="other")],
        "val": [None, day(2, spelling="other")],
        "test": [unlabelled, each_none],
    }
    recordings = open_recordings(save(contents, tmp_path / "brain2text.pkl"))
    assert {ref.session for ref in recordings.split("val").refs} == {"ptdecoder.day01"}
    assert recordings.split("val").has_labels and not recordings.split("test").has_labels
    assert [trial.phonemes for trial in recordings.split("test")] == [None] * 4


def test_the_short_competition_list_is_put_on_its_days(tmp_path):
    contents = {
        "train": [day(i) for i in range(24)],
        "test": [None] * 24,
        "competition": [day(i, redacted=True) for i in range(15)],
    }
    file = save(contents, tmp_path / "ptDecoder_ctc")
    days = np.unique(open_recordings(file).split("test").days())
    assert days.tolist() == [4, 5, 6, 7, 8, 9, 10, 12, 13, 14, 15, 16, 18, 19, 20]
    del contents["competition"][3:]
    save(contents, file)
    with pytest.raises(DataError, match="competition_days"):
        open_recordings(file)
    assert np.unique(open_recordings(file, competition_days=[0, 2, 23]).split("test").days()).tolist() == [0, 2, 23]


def test_the_source_travels_without_its_gigabytes(tmp_path):
    recordings = open_recordings(save({"train": [day(0)]}, tmp_path / "ptDecoder_ctc"))
    travelled = pickle.dumps(recordings)
    assert len(travelled) < 2000
    np.testing.assert_array_equal(pickle.loads(travelled)[1].features, recordings[1].features)


class Evil:
    def __init__(self, what, *arguments):
        self.what, self.arguments = what, arguments

    def __reduce__(self):
        return self.what, self.arguments


@pytest.mark.parametrize(
    ("what", "arguments", "name"),
    [
        (os.system, ("touch {}",), r"(posix|nt)\.system"),
        (eval, ("open('{}', 'w')",), r"builtins?(__)?\.eval"),
        (exec, ("open('{}', 'w')",), r"builtins?(__)?\.exec"),
        (getattr, (os, "remove"), r"builtins?(__)?\.getattr"),
        (np.load, ("{}", None, True), r"numpy.*load"),
        (io.open, ("{}", "w"), r"(io|_io)\.open"),
        (Path, ("{}",), r"pathlib"),
    ],
)
@pytest.mark.parametrize("protocol", [0, 2, 4])
def test_a_pickle_that_would_run_code_is_named_and_nothing_runs(tmp_path, what, arguments, name, protocol):
    mark = tmp_path / "executed"
    arguments = tuple(a.format(mark) if isinstance(a, str) else a for a in arguments)
    if what is getattr:  # a module itself cannot be pickled
        arguments = ("text", "upper")
    contents = {"train": [{**day(0), "extra": Evil(what, *arguments)}]}
    file = save(contents, tmp_path / "ptDecoder_ctc", protocol)
    with pytest.raises(DataError, match="would run code") as error:
        open_recordings(file)
    assert not mark.exists()
    assert re.search(name, str(error.value.found))


@pytest.mark.parametrize(
    "program",
    [
        b"cnumpy\nndarray\n(I2\nI3\ntR.",  # subclass trickery is fine as long as only data comes out
        b"cos\nsystem\n(S'true'\ntR.",
        b"c_codecs\nencode\n(S'x'\nS'zip'\ntR.",
        b"cbuiltins\nlist\n}S'__reduce__'\nS'x'\nsb.",
        b"cnumpy.core.multiarray\n_reconstruct\n(cbuiltins\nlist\n(I0\ntS'b'\ntR.",
        b"cnumpy.core.multiarray\nscalar\n(cnumpy\ndtype\n(S'O'\nI0\nI1\ntRS'xxxxxxxx'\ntR.",
        b"\x80\x04\x95",
        b"",
        b"PK\x03\x04 not a pickle",
    ],
)
def test_hand_made_pickles_give_data_or_a_clear_error(tmp_path, program):
    (tmp_path / "a.pkl").write_bytes(program)
    try:
        value = load(tmp_path / "a.pkl")
    except DataError as error:
        assert "a.pkl" in str(error)
    else:
        assert isinstance(value, np.ndarray)


def test_everything_that_is_data_survives(tmp_path):
    data = {
        "arrays": [np.arange(6).astype(t).reshape(2, 3) for t in ("u1", "<i2", ">i4", "f2", "f4", "f8", "c8", "?")],
        "text": np.array(["a", "bc"]),
        "objects": np.array([None, "x", [1, 2]], object),
        "fortran": np.asfortranarray(np.ones((3, 2))),
        "scalars": [np.float32(1.5), np.int64(-3), np.bool_(True)],
        "containers": (1, 2.5, True, b"\x00\xff", {"a"}, frozenset([1]), OrderedDict(a=1), bytearray(b"x")),
    }
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        back = load(save(data, tmp_path / "data.pkl", protocol))
        usual = pickle.loads((tmp_path / "data.pkl").read_bytes())  # NumPy may swap bytes to the machine's order
        for array, expected in zip(back["arrays"], usual["arrays"], strict=True):
            assert array.dtype == expected.dtype
            np.testing.assert_array_equal(array, expected)
        np.testing.assert_array_equal(back["text"], data["text"])
        assert back["objects"].tolist() == data["objects"].tolist()
        np.testing.assert_array_equal(back["fortran"], data["fortran"])
        assert back["scalars"] == data["scalars"] and back["containers"] == data["containers"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.pop("sentenceDat"), "field missing"),
        (lambda d: d.update(timeSeriesLens=np.array([1, 1])), "timeSeriesLens disagrees"),
        (lambda d: d.update(phoneLens=np.array([3, 3])), "number of labels disagrees"),
        (lambda d: d["phonemes"].__setitem__(0, np.full(500, 41)), "outside the phoneme set"),
        (lambda d: d["sentenceDat"][0].__setitem__((2, 3), np.nan), "bin 2, channel 3"),
        (lambda d: d.update(phonemes=d["phonemes"][:1]), "list shorter"),
        (lambda d: d.update(phonemes=None), "without labels"),
    ],
)
def test_faulty_contents(tmp_path, change, message):
    contents = {"train": [day(0)]}
    change(contents["train"][0])
    with pytest.raises(DataError, match=message):
        list(open_recordings(save(contents, tmp_path / "ptDecoder_ctc")))


@pytest.mark.parametrize("contents", [[], {"a": 1}, {"train": []}, {"train": [None]}, {"train": ["day"]}])
def test_other_pickles_are_refused(tmp_path, contents):
    with pytest.raises(DataError):
        open_recordings(save(contents, tmp_path / "x.pkl"))


def test_block_normalisation_is_impossible(tmp_path):
    with pytest.raises(DataError, match="needs block numbers"):
        open_recordings(save({"train": [day(0)]}, tmp_path / "ptDecoder_ctc"), normalize="block")
