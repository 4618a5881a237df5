"""The two official text rules, compared with themselves written as the sources write them, and corner cases by hand."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neuro.text import clean_text, lost_words, wer_text, words

plain = st.text(alphabet="abcXYZ '-.,!?;\"", max_size=40)


def official_label_text(sentence: str) -> str:
    kept = re.sub(r"[^a-zA-Z\- \']", "", sentence).replace("--", "").lower()
    return " ".join(kept.split())


def official_wer_text(sentence: str) -> str:
    kept = re.sub(r"[^a-zA-Z\- \']", "", sentence)
    for old, new in (("- ", " "), ("--", ""), (" '", "'")):
        kept = kept.replace(old, new).lower()
    return " ".join(word for word in kept.strip().split() if word != "")


@settings(deadline=None)  # a busy machine is no fault of the rule
@given(plain)
def test_clean_text_is_the_label_rule(sentence: str) -> None:
    assert clean_text(sentence) == official_label_text(sentence)


@settings(deadline=None)  # a busy machine is no fault of the rule
@given(st.text(max_size=40))
def test_wer_text_is_the_scoring_rule(sentence: str) -> None:
    assert wer_text(sentence) == official_wer_text(sentence)


@pytest.mark.parametrize(
    ("sentence", "labels", "scored"),
    [
        ("Aluminum foil has a shiny side.", "aluminum foil has a shiny side", "aluminum foil has a shiny side"),
        ("It's the boys' well-known dog.", "it's the boys' well-known dog", "it's the boys' well-known dog"),
        ("Well -- yes.", "well yes", "well - yes"),
        ("Well--yes.", "wellyes", "wellyes"),
        ("I th- think so", "i th- think so", "i th think so"),
        ("so 'cause I'm", "so 'cause i'm", "so'cause i'm"),
        ("'Cause", "'cause", "'cause"),
        ("  two   blanks ", "two blanks", "two blanks"),
        ("a---b", "a-b", "a-b"),
        ("", "", ""),
        ("...", "", ""),
    ],
)
def test_corner_cases(sentence: str, labels: str, scored: str) -> None:
    assert clean_text(sentence) == labels
    assert wer_text(sentence) == scored


def test_typographic_signs_count_as_plain_ones_for_labels() -> None:
    assert clean_text("I don\u2019t \u2014 I can\u2019t\u2014no") == "i don't i can't no"


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [("You - and me", ["you", "and", "me"]), ("' - '' --", []), ("ROCK 'N' roll", ["rock", "'n'", "roll"])],
)
def test_bits_of_punctuation_are_no_words(sentence: str, expected: list[str]) -> None:
    assert words(sentence) == expected


def test_words_that_the_rule_would_damage_are_named() -> None:
    assert lost_words("The caf\u00e9 opens at 9:30, (24h) ok?") == ["caf\u00e9", "9:30", "24h"]
    assert lost_words("plain, old-fashioned words aren\u2019t lost!") == []
