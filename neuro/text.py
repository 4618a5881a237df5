"""The two text rules of the Brain-to-Text releases, and the words of a sentence.

`clean_text` is the rule by which the phoneme labels were made (cffan/neural_seq_decoder,
notebooks/formatCompetitionData.ipynb). `wer_text` is the one applied to truth and prediction before words are compared
(Neuroprosthetics-Lab/nejm-brain-to-text, model_training/evaluate_model_helpers.py). They differ in dangling hyphens
and in an apostrophe after a blank.
"""

from __future__ import annotations

import re

_DROPPED = re.compile(r"[^A-Za-z' -]")
_TYPOGRAPHIC = str.maketrans(
    {"\u2018": "'", "\u2019": "'", "\u2010": "-", "\u2011": "-", "\u2013": " -- ", "\u2014": " -- "}
)


def clean_text(sentence: str) -> str:
    """Sentence as the phoneme labels see it.

    Keeps letters, hyphens, blanks and apostrophes; deletes ``--`` without putting a blank in its place; lower case;
    blanks collapsed. Typographic apostrophes and dashes count as their plain forms, an extension that changes nothing
    in the released sets.

    Examples
    --------
    >>> clean_text("Well -- I don't know; it's twenty-one, isn't it?")
    "well i don't know it's twenty-one isn't it"
    """
    kept = _DROPPED.sub("", sentence.translate(_TYPOGRAPHIC)).replace("--", "")
    return " ".join(kept.lower().split())


def wer_text(sentence: str) -> str:
    """Sentence as it is compared for word error rates, strictly by the official rule.

    Like `clean_text`, but a hyphen before a blank goes first (so that what is left of ``-- `` is one hyphen), and an
    apostrophe after a blank joins the word before it.

    Examples
    --------
    >>> wer_text("The boys 'cause a semi- final.")
    "the boys'cause a semi final"
    """
    kept = _DROPPED.sub("", sentence)
    kept = kept.replace("- ", " ").replace("--", "").replace(" '", "'")
    return " ".join(kept.lower().split())


def words(sentence: str) -> list[str]:
    """Words of a sentence under `clean_text`; bits of punctuation that stand alone are no words.

    Examples
    --------
    >>> words("You - and 'those' dogs' tails!")
    ['you', 'and', "'those'", "dogs'", 'tails']
    """
    return [token for token in clean_text(sentence).split() if any("a" <= c <= "z" for c in token)]


def lost_words(sentence: str) -> list[str]:
    """Words that the official rule would damage without a sign: those with digits or with letters outside a-z.

    Examples
    --------
    >>> lost_words("Two cafés at 9, please.")
    ['cafés', '9']
    """
    return [token.strip(".,;:!?\"'()[]") for token in sentence.split() if any(map(_would_be_dropped, token))]


def _would_be_dropped(character: str) -> bool:
    return character.isalnum() and not (character.isascii() and character.isalpha())
