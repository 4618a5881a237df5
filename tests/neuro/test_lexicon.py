"""Words to phonemes."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from neuro import DataError, Lexicon, UnknownWordError
from neuro.lexicon import CLITICS, cmu_dictionary_path
from neuro.phonemes import PHONEMES, SIL, decode


@pytest.fixture(scope="module")
def lexicon() -> Lexicon:
    return Lexicon()


def own(tmp_path: Path, text: str) -> Lexicon:
    file = tmp_path / "own.dict"
    file.write_text(text)
    return Lexicon(file)


def test_first_pronunciation_of_the_cmu_dictionary(lexicon: Lexicon) -> None:
    assert lexicon.pronounce("hello") == ["HH", "AH", "L", "OW"]
    assert lexicon.pronounce("Tomato") == ["T", "AH", "M", "EY", "T", "OW"]  # not its second, T AH M AA T OW
    assert "tomato" in lexicon and "tomato(2)" not in lexicon and "xyzzyq" not in lexicon
    assert sum(1 for _ in lexicon) > 120_000


def test_every_entry_uses_the_39_phonemes(lexicon: Lexicon) -> None:
    known = set(PHONEMES)
    assert all(set(lexicon.pronounce(word)) <= known for word in lexicon)


def test_silence_ends_every_word_and_starts_none(lexicon: Lexicon) -> None:
    ids = lexicon.phonemes("How do you feel?")
    assert decode(ids) == ["HH", "AW", "SIL", "D", "UW", "SIL", "Y", "UW", "SIL", "F", "IY", "L", "SIL"]
    assert ids[-1] == SIL and ids[0] != SIL


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("tomato-hello", "T AH M EY T OW HH AH L OW"),
        ("one-two-three", "W AH N T UW TH R IY"),
        ("'hello'", "HH AH L OW"),
        ("neurons'", "N UH R AA N Z"),
        ("hiccup-", "HH IH K AH P"),
        ("axon's", "AE K S AA N Z"),
        ("hello-axon's", "HH AH L OW AE K S AA N Z"),
        ("causes's", "K AA Z AH Z IH Z"),
        ("hiccup's", "HH IH K AH P S"),
        ("axon'll", "AE K S AA N AH L"),
        ("tomato'd", "T AH M EY T OW D"),
    ],
)
def test_composed_words(lexicon: Lexicon, word: str, expected: str) -> None:
    assert lexicon.pronounce(word) == expected.split()


def test_composition_is_the_dictionarys_own_habit(lexicon: Lexicon) -> None:
    """Where the dictionary has both a word and its possessive, the rule agrees in at least 95 of 100."""
    agreed = total = 0
    for word in lexicon:
        stem = word.removesuffix("'s")
        if stem != word and stem in lexicon:
            bare = lexicon.pronounce(stem)
            if lexicon.pronounce(word)[: len(bare)] == bare:
                agreed += lexicon.pronounce(word)[len(bare) :] == CLITICS["'s"](bare[-1])
                total += 1
    assert total > 3000 and agreed / total > 0.95


def test_an_entry_goes_before_composition(lexicon: Lexicon) -> None:
    assert lexicon.pronounce("'cause") == ["K", "AH", "Z"]  # an entry; without its apostrophe K AA Z
    assert lexicon.pronounce("cause") == ["K", "AA", "Z"]


@pytest.mark.parametrize("word", ["qwrtx", "qwrtx's", "well-qwrtx", "'s", "-", "x'y'z"])
def test_unknown_words_are_named(lexicon: Lexicon, word: str) -> None:
    with pytest.raises(UnknownWordError, match="no pronunciation") as caught:
        lexicon.pronounce(word)
    assert caught.value.word == word and isinstance(caught.value, DataError)


def test_unknown_word_is_reported_with_its_sentence(lexicon: Lexicon) -> None:
    with pytest.raises(UnknownWordError) as caught:
        lexicon.phonemes("The qwrtx sat down.")
    assert (caught.value.word, caught.value.sentence) == ("qwrtx", "The qwrtx sat down.")
    assert "'qwrtx'" in str(caught.value) and "The qwrtx sat down." in str(caught.value)
    again = pickle.loads(pickle.dumps(caught.value))
    assert (again.word, str(again)) == ("qwrtx", str(caught.value))


@pytest.mark.parametrize("sentence", ["I have 3 dogs", "the caf\u00e9 is open"])
def test_nothing_is_dropped_in_silence(lexicon: Lexicon, sentence: str) -> None:
    with pytest.raises(UnknownWordError):
        lexicon.phonemes(sentence)


@pytest.mark.parametrize("sentence", ["", "...", " - '' "])
def test_sentence_without_a_word(lexicon: Lexicon, sentence: str) -> None:
    with pytest.raises(DataError, match="without a word"):
        lexicon.phonemes(sentence)


def test_all_unknown_words_at_once(lexicon: Lexicon) -> None:
    found = lexicon.unknown(["hello world", "qwrtx and qwrtx 9", "a qwrtx, a vvrp"])
    assert found == {
        "9": ["qwrtx and qwrtx 9"],
        "qwrtx": ["qwrtx and qwrtx 9", "a qwrtx, a vvrp"],
        "vvrp": ["a qwrtx, a vvrp"],
    }


def test_own_entries_add_and_override(tmp_path: Path) -> None:
    lexicon = own(
        tmp_path, ";;; remark\n# another\n\nRANVIER  r aa1 n v y EY2\ntomato T AH0 M AA1 T OW2\nranvier(2) R AE N\n"
    )
    assert lexicon.pronounce("Ranvier") == ["R", "AA", "N", "V", "Y", "EY"]
    assert lexicon.pronounce("ranvier's") == ["R", "AA", "N", "V", "Y", "EY", "Z"]
    assert lexicon.pronounce("tomato") == ["T", "AH", "M", "AA", "T", "OW"]
    assert lexicon.pronounce("hello") == ["HH", "AH", "L", "OW"]
    assert next(iter(lexicon)) == "ranvier" and "ranvier" in lexicon
    assert "ranvier" not in Lexicon()  # one user's words do not leak into the next lexicon
    assert pickle.loads(pickle.dumps(lexicon)).pronounce("ranvier") == lexicon.pronounce("ranvier")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("good  G UH D\nbad\n", r"without phonemes .*own\.dict, field line 2\): expected WORD"),
        ("good  G UH D\n\nbad  B QQ D\n", r"unknown phoneme .*own\.dict, field line 3\): found QQ"),
        ("bad  B AE3 D\n", "found AE3"),
        ("bad  B SIL\n", "found SIL"),
    ],
)
def test_faulty_lines_are_named(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        own(tmp_path, text)


def test_missing_and_unreadable_files(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="not found"):
        Lexicon(tmp_path / "none.dict")
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00\x81")
    with pytest.raises(DataError, match="UTF-8"):
        Lexicon(tmp_path / "binary")


def test_missing_dictionary_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("neuro.lexicon.find_spec", lambda name: None)
    with pytest.raises(DataError, match="pip install pocketsphinx"):
        cmu_dictionary_path()


@pytest.mark.slow  # starts Python anew
def test_pocketsphinx_itself_is_never_imported() -> None:
    code = (
        "import sys; from neuro import Lexicon; Lexicon().phonemes('hello there'); "
        "assert 'pocketsphinx' not in sys.modules"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_every_word_of_the_recorded_prompts_is_known(lexicon: Lexicon, shared_data: Path) -> None:
    """Two public prompt files: nearly all words have a pronunciation, and the rest are misspelt or rare."""
    for name, allowed in (("harvard", 2), ("switchboard", 25)):
        sentences = (shared_data / "prompts" / f"{name}.txt").read_text().splitlines()
        assert len(lexicon.unknown(sentences)) <= allowed
