"""Dictionaries and n-gram files, good and bad."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from decoders.text import Vocabulary, load_language_model, read_dictionary
from decoders.text.kenlm_file import check_arpa
from decoders.text.vocabulary import check_order
from neuro import DataError
from neuro.phonemes import PhonemeOrder

ARPA = """
\\data\\
ngram 1=5
ngram 2=2

\\1-grams:
-1.0\t<unk>
-99\t<s>\t-0.3
-1.0\t</s>
-0.5\tsee\t-0.2
-0.9\tsea\t-0.2

\\2-grams:
-0.1\t<s> see
-0.2\tsee </s>

\\end\\
"""


def test_homophones_keep_the_likeliest_six() -> None:
    words = [f"w{k}" for k in range(9)]
    prior = {word: -float(k) for k, word in enumerate(words)}
    entries = [(word, ("S", "IY")) for word in reversed(words)] + [("w8", ("K",)), ("lost", ("T",))]
    vocabulary = Vocabulary.build(entries, prior.get)
    assert vocabulary.spellings["S", "IY"] == tuple(words[:6])
    assert vocabulary.dropped == {"w6": (("S", "IY"),), "w7": (("S", "IY"),), "w8": (("S", "IY"),)}
    assert vocabulary.words == ("w0", "w1", "w2", "w3", "w4", "w5", "w8")
    assert "w6, w7, w8" in str(vocabulary)


def test_variants_stress_and_remarks(tmp_path: Path) -> None:
    file = tmp_path / "own.dict"
    file.write_text("# mine\nREAD  R IY1 D\nread(2) r eh1 d\n\n;;; end\n")
    assert list(read_dictionary(file)) == [("read", ("R", "IY", "D")), ("read", ("R", "EH", "D"))]


@pytest.mark.parametrize(
    ("line", "said"), [("word  W XX D", "unknown phoneme.*line 2.*found XX"), ("word", "without phonemes.*line 2")]
)
def test_faulty_dictionaries_are_explained(tmp_path: Path, line: str, said: str) -> None:
    file = tmp_path / "own.dict"
    file.write_text(f"a  AH\n{line}\n")
    with pytest.raises(DataError, match=said):
        list(read_dictionary(file))
    with pytest.raises(DataError, match="cannot be read"):
        list(read_dictionary(tmp_path / "nowhere"))


def test_an_empty_vocabulary_is_refused() -> None:
    with pytest.raises(DataError, match=r"vocabulary is empty.*qqq"):
        Vocabulary.build([("qqq", ("K",))], lambda word: None)


def test_another_order_of_outputs_names_both() -> None:
    ours, theirs = PhonemeOrder.TORCH.symbols, PhonemeOrder.LANGUAGE_MODEL.symbols
    check_order(list(ours), ours)
    check_order(None, ours)
    with pytest.raises(DataError, match=r"found <blank> SIL AA .* expected <blank> AA"):
        check_order(theirs, ours)


@pytest.mark.parametrize("section", ["\\data\\", "\\1-grams:", "\\2-grams:", "\\end\\"])
def test_an_arpa_without_a_section_is_refused(tmp_path: Path, section: str) -> None:
    file = tmp_path / "lm.arpa"
    file.write_text(ARPA)
    check_arpa(file)
    file.write_text(ARPA.replace(section, ""))
    with pytest.raises(DataError, match="missing sections") as error:
        load_language_model(str(file))
    assert section in str(error.value)


def test_a_missing_model_is_explained(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such language model"):
        load_language_model(str(tmp_path / "nowhere.bin"))


def test_kenlm_scores_in_natural_logarithms(tmp_path: Path) -> None:
    pytest.importorskip("kenlm", reason="n-gram files need ranvier[text]")
    file = tmp_path / "lm.arpa"
    file.write_text(ARPA.lstrip())
    model = load_language_model(str(file))
    assert model.sentence(["see"]) == pytest.approx(-0.3 * math.log(10), rel=1e-5)
    assert model.prior("see") == pytest.approx(-0.5 * math.log(10), rel=1e-5)
    assert model.prior("key") is None and "lm.arpa" in model.name
