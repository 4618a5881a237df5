"""Word error rate, character error rate and sentence accuracy, each with its interval, and always with its decoder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from decoders.edits import ErrorCounts, total_counts
from decoders.metrics import Interval, bootstrap_interval
from neuro import DataError
from neuro.text import wer_text


@dataclass(frozen=True)
class TextScores:
    """How well sentences were read. No rate can be printed without the language model that helped.

    Attributes
    ----------
    language_model : str
        What made words of the phonemes.
    sentences : int
    counts : ErrorCounts
        Word errors of all sentences together.
    wer, cer, exact : Interval
        Word and character errors over reference words and characters (a blank is a character), and the share of
        sentences without an error; fractions.
    """

    language_model: str
    sentences: int
    counts: ErrorCounts
    wer: Interval
    cer: Interval
    exact: Interval

    def __str__(self) -> str:
        return (
            f"WER {_percent(self.wer)}, CER {_percent(self.cer)}, sentences without an error {_percent(self.exact)}, "
            f"{self.sentences} sentences, language model: {self.language_model}"
        )


def score_sentences(
    references: Sequence[str],
    hypotheses: Sequence[str],
    *,
    language_model: str,
    level: float = 0.95,
    n_resamples: int = 2000,
    seed: int = 0,
) -> TextScores:
    """Compare sentences by the official text rule (`neuro.text.wer_text`), which both sides go through.

    Rates are edits of all sentences over words (characters) of all references. Intervals resample the sentences.

    Parameters
    ----------
    references, hypotheses
        One hypothesis a reference; case and punctuation do not matter.
    language_model
        Name of what made words of phonemes.

    Raises
    ------
    DataError
        If the numbers differ, a reference is without words (a redacted sentence must not be scored), or the language
        model is not named.

    Examples
    --------
    >>> scores = score_sentences(["It's cold.", "See you"], ["it's cold", "sea you too"], language_model="none")
    >>> scores.counts.rate, scores.exact.value
    (0.5, 0.5)
    """
    if not language_model:
        raise DataError("a word error rate needs the name of its language model", field="language_model")
    if len(references) != len(hypotheses):
        raise DataError("references and hypotheses differ in number", found=len(hypotheses), expected=len(references))
    if not references:
        raise DataError("no sentences to score")
    pairs = [(wer_text(ref), wer_text(hyp)) for ref, hyp in zip(references, hypotheses, strict=True)]
    for number, (reference, _) in enumerate(pairs):
        if not reference:
            raise DataError("a reference without words cannot be scored", field=f"sentence {number}")
    interval = partial(bootstrap_interval, level=level, n_resamples=n_resamples, seed=seed)
    words = _numbered([(ref.split(), hyp.split()) for ref, hyp in pairs])
    characters = _numbered([(list(ref), list(hyp)) for ref, hyp in pairs])
    # A sentence as one symbol: its "edits" are 1 where anything is wrong.
    wrong = interval([[0]] * len(pairs), [[int(ref != hyp)] for ref, hyp in pairs])
    return TextScores(
        language_model=language_model,
        sentences=len(pairs),
        counts=total_counts(*words),
        wer=interval(*words),
        cer=interval(*characters),
        exact=Interval(1 - wrong.value, 1 - wrong.high, 1 - wrong.low, wrong.level),
    )


def word_errors(reference: str, hypothesis: str) -> ErrorCounts:
    """Word errors of one sentence by kind, under the official text rule."""
    return total_counts(*_numbered([(wer_text(reference).split(), wer_text(hypothesis).split())]))


def _numbered(pairs: Sequence[tuple[list[str], list[str]]]) -> tuple[list[list[int]], list[list[int]]]:
    """Units as numbers, equal ones by equal numbers."""
    numbers: dict[str, int] = {}

    def number(units: list[str]) -> list[int]:
        return [numbers.setdefault(unit, len(numbers)) for unit in units]

    return [number(ref) for ref, _ in pairs], [number(hyp) for _, hyp in pairs]


def _percent(rate: Interval) -> str:
    return f"{100 * rate.value:.1f} % ({100 * rate.low:.1f} to {100 * rate.high:.1f})"
