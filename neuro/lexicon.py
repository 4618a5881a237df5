"""Words to phonemes by dictionary: the CMU dictionary inside the pocketsphinx wheel, and the user's own entries."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from neuro.errors import DataError
from neuro.phonemes import PHONEMES, SIL, SYMBOLS
from neuro.text import lost_words, words

_IDS = {symbol: position for position, symbol in enumerate(SYMBOLS)}
_KNOWN = frozenset(PHONEMES)
_VARIANT = re.compile(r"\(\d+\)$")
_SIBILANTS = frozenset(("S", "Z", "SH", "ZH", "CH", "JH"))
_VOICELESS = frozenset(("P", "T", "K", "F", "TH"))
_VOWELS = frozenset(p for p in PHONEMES if p[0] in "AEIOU")


class UnknownWordError(DataError):
    """A word that is in no dictionary.

    Attributes
    ----------
    word, sentence : str
        The word, and the sentence it stands in (None when only a word was asked for).
    """

    def __init__(self, word: str, sentence: str | None = None) -> None:
        super().__init__(
            f"no pronunciation for {word!r}"
            + (f" in the sentence {sentence!r}" if sentence is not None else "")
            + "; add it to your own dictionary file as a line such as 'WORD  W ER D'"
        )
        self.word, self.sentence = word, sentence


def _possessive(last: str) -> list[str]:
    if last in _SIBILANTS:
        return ["IH", "Z"]
    return ["S"] if last in _VOICELESS else ["Z"]


# What each clitic sounds like after a given phoneme; the forms that the CMU dictionary itself uses most.
CLITICS = {
    "'s": _possessive,
    "'d": lambda last: ["IH", "D"] if last in ("T", "D") else ["D"],
    "'ll": lambda last: ["L"] if last in _VOWELS else ["AH", "L"],
    "'ve": lambda last: ["V"] if last in _VOWELS else ["AH", "V"],
    "'re": lambda last: ["ER"],
}


def cmu_dictionary_path() -> Path:
    """Where the pocketsphinx wheel keeps its dictionary; pocketsphinx itself is not imported.

    Raises
    ------
    DataError
        If pocketsphinx, or the dictionary in it, is missing.
    """
    spec = find_spec("pocketsphinx")
    for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
        path = Path(folder) / "model" / "en-us" / "cmudict-en-us.dict"
        if path.is_file():
            return path
    raise DataError("the CMU dictionary is missing; install it with: pip install pocketsphinx")


def _read_own(path: Path) -> dict[str, str]:
    """First pronunciation of every word of a user's file, every line checked."""
    entries: dict[str, str] = {}
    for number, line in enumerate(_text(path).splitlines(), start=1):
        parts = line.split(None, 1)
        if not parts or line.startswith((";;;", "#")):
            continue
        _check(path, number, parts)
        entries.setdefault(_VARIANT.sub("", parts[0].lower()), parts[1])
    return entries


@cache
def _cmu() -> dict[str, str]:
    """First pronunciation of every word; the other ones are listed as ``word(2)``."""
    pairs = (line.split(None, 1) for line in _text(cmu_dictionary_path()).splitlines())
    words = {pair[0]: pair[1] for pair in pairs if len(pair) == 2 and pair[0][-1] != ")"}
    # Bare endings are listed too, with the name of their letter as their sound.
    return {word: entry for word, entry in words.items() if word not in CLITICS}


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise DataError("dictionary file not found", file=path) from None
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"dictionary file cannot be read as UTF-8 text: {error}", file=path) from None


def _check(path: Path, number: int, parts: list[str]) -> None:
    if len(parts) < 2:
        raise DataError(
            "dictionary line without phonemes", file=path, field=f"line {number}", expected="WORD  P1 P2 ..."
        )
    for phoneme in _split(parts[1]):
        if phoneme not in _KNOWN:
            raise DataError(
                "dictionary line with an unknown phoneme",
                file=path,
                field=f"line {number}",
                found=phoneme,
                expected="the 39 of ARPAbet: " + " ".join(PHONEMES),
            )


def _split(pronunciation: str) -> list[str]:
    return [phoneme.upper().rstrip("012") for phoneme in pronunciation.split()]


class Lexicon:
    """Pronunciations by dictionary, first pronunciation only; nothing is guessed from spelling.

    A word is looked up in the user's file, then in the CMU dictionary (134,000 entries, no stress). One that is in
    neither is composed, in this order, where all its parts are known:

    1. without apostrophes and hyphens at its edges (``'those'``, ``dogs'``);
    2. a hyphenated word from its parts, without a silence between them, as one word (``speech-to-text``);
    3. a word with ``'s``, ``'d``, ``'ll``, ``'ve`` or ``'re`` from its stem and the ending's usual sound, which for
       ``'s`` is IH Z after a sibilant, S after another voiceless sound, else Z.

    Parameters
    ----------
    file
        User's own dictionary, lines of ``WORD  P1 P2 ...``; its entries come first. Case and stress digits do not
        matter; lines that start with ``#`` or ``;;;`` are remarks; the first of several pronunciations counts.

    Raises
    ------
    DataError
        If the file is missing or a line of it is faulty (names the line).

    Examples
    --------
    >>> Lexicon().pronounce("brain's")
    ['B', 'R', 'EY', 'N', 'Z']
    """

    def __init__(self, file: str | Path | None = None) -> None:
        self.file = None if file is None else Path(file)
        self._own = {} if self.file is None else _read_own(self.file)

    def __contains__(self, word: str) -> bool:
        """Whether the word itself has an entry (composed words do not count)."""
        return word.lower() in self._own or word.lower() in _cmu()

    def __iter__(self) -> Iterator[str]:
        """All words with an entry, in lower case, the user's first."""
        yield from self._own
        yield from (word for word in _cmu() if word not in self._own)

    def pronounce(self, word: str) -> list[str]:
        """Phonemes of one word, without SIL.

        Raises
        ------
        UnknownWordError
            If the word is in no dictionary and cannot be composed.
        """
        found = self._find(word.lower())
        if found is None:
            raise UnknownWordError(word)
        return found

    def phonemes(self, sentence: str) -> list[int]:
        """Labels of a sentence: torch ids (1..40), SIL (40) after every word, none before the first.

        Raises
        ------
        UnknownWordError
            If a word is in no dictionary, or has digits or letters that the official text rule would drop.
        DataError
            If the sentence has no word.
        """
        for word in lost_words(sentence):
            raise UnknownWordError(word, sentence)
        ids: list[int] = []
        for word in words(sentence):
            found = self._find(word)
            if found is None:
                raise UnknownWordError(word, sentence)
            ids.extend(_IDS[phoneme] for phoneme in found)
            ids.append(SIL)
        if not ids:
            raise DataError("sentence without a word", found=repr(sentence))
        return ids

    def unknown(self, sentences: Iterable[str]) -> dict[str, list[str]]:
        """Every word of many sentences that `phonemes` would refuse, with the sentences it stands in."""
        missing: dict[str, list[str]] = {}
        for sentence in sentences:
            lost = lost_words(sentence)
            for word in dict.fromkeys((*lost, *(w for w in words(sentence) if self._find(w) is None))):
                missing.setdefault(word, []).append(sentence)
        return missing

    def _find(self, word: str) -> list[str] | None:
        entry = self._own.get(word) or _cmu().get(word)
        if entry is not None:
            return _split(entry)
        if word in CLITICS:
            return None  # Cut off from its word, as some tokenisers do: its sound depends on the word.
        bare = word.strip("'-")
        if bare != word:
            return self._find(bare) if bare else None
        if "-" in word:
            parts = [self._find(part) for part in word.split("-") if part]
            return None if None in parts else [phoneme for part in parts for phoneme in part or ()]
        stem, apostrophe, ending = word.rpartition("'")
        sound = CLITICS.get(apostrophe + ending)
        known = self._find(stem) if sound is not None and stem else None
        return None if known is None or sound is None else known + sound(known[-1])
