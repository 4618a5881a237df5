"""Words the search may write, and how each is spelled in phonemes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from neuro import DataError
from neuro.lexicon import CLITICS, cmu_dictionary_path
from neuro.phonemes import PHONEMES

Spelling = tuple[str, ...]

WORDS_A_SPELLING = 6
"""Homophones that flashlight's trie keeps; more are lost without an error (flashlight/text, issue 75)."""

_VARIANT = re.compile(r"\(\d+\)$")


@dataclass(frozen=True)
class Vocabulary:
    """Words with their pronunciations.

    Attributes
    ----------
    words : tuple of str
        Sorted; the position is the word's number in the search.
    spellings : dict of spelling to words
        Each spelling a tuple of ARPAbet symbols without stress and without SIL; its homophones, likeliest first, at
        most `WORDS_A_SPELLING`.
    dropped : dict of word to spellings
        Where a word found no room among its homophones. It is still in `words` if it has another spelling.
    """

    words: tuple[str, ...]
    spellings: dict[Spelling, tuple[str, ...]]
    dropped: dict[str, tuple[Spelling, ...]]

    @classmethod
    def build(
        cls, entries: Iterable[tuple[str, Spelling]], prior: Callable[[str], float | None], *, source: str | Path = ""
    ) -> Vocabulary:
        """Group homophones and keep the likeliest of each group.

        Parameters
        ----------
        entries
            Pairs of word and spelling; a word may come several times.
        prior
            Log-probability of a word; None for one that the language model does not know, which is left out.
        source
            Named when nothing is left.

        Raises
        ------
        DataError
            If no word is left.
        """
        known: dict[str, float] = {}
        unknown: set[str] = set()
        groups: dict[Spelling, dict[str, None]] = {}
        for word, spelling in entries:
            if word not in known and word not in unknown:
                found = prior(word)
                if found is None:
                    unknown.add(word)
                else:
                    known[word] = found
            if word in known:
                groups.setdefault(spelling, {})[word] = None
        if not groups:
            raise DataError(
                "the vocabulary is empty: no word of the dictionary is known to the language model",
                file=source or None,
                found=f"{len(unknown)} words in the dictionary, such as {', '.join(sorted(unknown)[:3]) or 'none'}",
            )
        ranked = {spelling: sorted(group, key=lambda w: (-known[w], w)) for spelling, group in groups.items()}
        kept = {spelling: tuple(group[:WORDS_A_SPELLING]) for spelling, group in ranked.items()}
        dropped: dict[str, tuple[Spelling, ...]] = {}
        for spelling, group in ranked.items():
            for word in group[WORDS_A_SPELLING:]:
                dropped[word] = (*dropped.get(word, ()), spelling)
        return cls(tuple(sorted({word for group in kept.values() for word in group})), kept, dropped)

    def __str__(self) -> str:
        variants = sum(map(len, self.spellings.values()))
        text = f"{len(self.words):,} words, {variants:,} pronunciations"
        if self.dropped:
            some = ", ".join(sorted(self.dropped)[:8]) + (", ..." if len(self.dropped) > 8 else "")
            text += f"; without one of their pronunciations, which {WORDS_A_SPELLING} likelier words share: {some}"
        return text


def read_dictionary(path: str | Path | None = None) -> Iterator[tuple[str, Spelling]]:
    """Words and spellings of a dictionary file, variants such as ``read(2)`` included.

    Parameters
    ----------
    path
        Lines of ``WORD  P1 P2 ...``; case and stress digits do not matter; lines that start with ``#`` or ``;;;`` are
        remarks. The CMU dictionary in the pocketsphinx wheel by default, without its bare endings (``'s``), whose
        sound there is the name of their letter.

    Raises
    ------
    DataError
        If the file cannot be read, or a line is without phonemes or with unknown ones (named).
    """
    file = cmu_dictionary_path() if path is None else Path(path)
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"dictionary file cannot be read as UTF-8 text: {error}", file=file) from None
    known = frozenset(PHONEMES)
    for number, line in enumerate(lines, start=1):
        if not line.strip() or line.startswith((";;;", "#")):
            continue
        name, *symbols = line.split()
        word = _VARIANT.sub("", name).lower()
        spelling = tuple(symbol.upper().rstrip("012") for symbol in symbols)
        strange = [symbol for symbol in spelling if symbol not in known]
        if strange or not spelling:
            raise DataError(
                "dictionary line with an unknown phoneme" if strange else "dictionary line without phonemes",
                file=file,
                field=f"line {number}",
                found=strange[0] if strange else repr(line[:40]),
                expected="the 39 of ARPAbet: " + " ".join(PHONEMES),
            )
        if path is not None or word not in CLITICS:
            yield word, spelling


def check_order(found: Sequence[str] | None, expected: Sequence[str], file: str | Path | None = None) -> None:
    """Refuse a checkpoint whose outputs stand in another order than the search reads them in.

    Raises
    ------
    DataError
        Names both orders.
    """
    if found is not None and list(found) != list(expected):
        raise DataError(
            "the checkpoint's outputs are in another order than the search expects",
            file=file,
            field="phonemes",
            found=" ".join(found),
            expected=" ".join(expected),
        )
