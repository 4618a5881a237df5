"""Error rates of sentences against jiwer, and the official rule on its corner cases."""

from __future__ import annotations

import random

import pytest

from decoders.text import score_sentences, word_errors
from neuro import DataError


def random_pairs(n: int) -> tuple[list[str], list[str]]:
    draw = random.Random(0)
    vocabulary = ["a", "see", "sea", "it's", "well-known", "the", "key", "i"]

    def sentence(least: int) -> str:
        return " ".join(draw.choices(vocabulary, k=draw.randint(least, 9)))

    return [sentence(1) for _ in range(n)], [sentence(0) for _ in range(n)]


def test_equals_jiwer_on_a_thousand_pairs() -> None:
    jiwer = pytest.importorskip("jiwer", reason="the independent check needs ranvier[dev]")
    references, hypotheses = random_pairs(1000)
    for reference, hypothesis in zip(references, hypotheses, strict=True):
        ours, theirs = word_errors(reference, hypothesis), jiwer.process_words(reference, hypothesis)
        assert ours.rate == pytest.approx(theirs.wer)
    scores = score_sentences(references, hypotheses, language_model="none", n_resamples=10)
    assert scores.wer.value == pytest.approx(jiwer.wer(references, hypotheses))
    assert scores.cer.value == pytest.approx(jiwer.cer(references, hypotheses))


@pytest.mark.parametrize(
    ("reference", "hypothesis", "edits"),
    [
        ("It's COLD, isn't it?", "it's cold isn't it", 0),
        ("A well-known dog", "a well known dog", 2),
        ("I th- think so", "i th think so", 0),
        ("so 'cause I'm", "so'cause i'm", 0),
        ("Well -- yes.", "well yes", 1),
        ("see you", "", 2),
    ],
)
def test_the_official_rule_on_corner_cases(reference: str, hypothesis: str, edits: int) -> None:
    assert word_errors(reference, hypothesis).edits == edits


def test_intervals_hold_the_value_and_shrink_with_sentences() -> None:
    few = score_sentences(*random_pairs(20), language_model="none")
    many = score_sentences(*random_pairs(500), language_model="none")
    for scores in (few, many):
        for rate in (scores.wer, scores.cer, scores.exact):
            assert rate.low <= rate.value <= rate.high
    assert many.wer.high - many.wer.low < few.wer.high - few.wer.low


def test_the_language_model_is_always_named() -> None:
    scores = score_sentences(["a b", "c"], ["a", "c"], language_model="trigram of the wheel", n_resamples=50)
    assert "language model: trigram of the wheel" in str(scores) and "WER 33.3 %" in str(scores)
    assert scores.exact.value == 0.5
    with pytest.raises(DataError, match="language model"):
        score_sentences(["a"], ["a"], language_model="")


@pytest.mark.parametrize(
    ("references", "hypotheses", "said"),
    [(["a"], [], "differ in number"), ([], [], "no sentences"), (["a", "..."], ["a", "b"], "sentence 1")],
)
def test_faulty_requests_are_explained(references: list[str], hypotheses: list[str], said: str) -> None:
    with pytest.raises(DataError, match=said):
        score_sentences(references, hypotheses, language_model="none")
