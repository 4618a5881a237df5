"""Sentences for the simulated participant: a small grammar of everyday English, and the corpora made from it.

A rule's expansions hold plain words, other rules as ``<rule>``, and words of a class with a form: ``[person]`` a noun,
``[food+]`` its plural, ``[go/past]`` a verb, ``[feel!]`` an adjective, ``[often~]`` an adverb.
"""

from __future__ import annotations

import re
from functools import cache

import numpy as np

from neuro.simulate.grammar import GRAMMAR
from neuro.simulate.vocabulary import (
    ADJECTIVES,
    ADVERBS,
    CITIES,
    DAYS,
    MONTHS,
    NAMES,
    NOUNS,
    NUMBERS,
    VERBS,
    inflect,
    plural,
)

MAX_WORDS = 22
_TOKEN = re.compile(r"<(\w+)>|\[([\w]+)([+!~]?)(?:/(\w+))?\]|([\w']+)|([.,?])")
_PROPER = frozenset(f"{NAMES} {CITIES} {DAYS} {MONTHS}".split()) - {"may", "march", "mark"} | {"i"}
_LISTS = {"name": NAMES, "city": CITIES, "number": NUMBERS, "weekday": DAYS, "month": MONTHS}
_FREQUENT = (
    "i you we they he she it the a that this what who how when where why not do is are was were have had will would "
    "can could should and but or so if of in on at to for with from about up out over know think like want go get "
    "see come say tell good time people now here there yes no well just really all some more one two day work year "
    "home things"
)
_FIFTY = (
    "hello good bad yes no not my i you we they it is are was am do have need want like go come see help bring feel "
    "tell know please thank sorry here now more very hungry tired cold music water family nurse home name what "
    "where how right outside"
)


@cache
def _words(name: str, mark: str, form: str) -> tuple[str, ...]:
    if form:
        return tuple(inflect(verb, form) for verb in VERBS[name].split())
    if mark == "+":
        return tuple(plural(noun) for noun in NOUNS[name].split())
    table = {"!": ADJECTIVES, "~": ADVERBS}.get(mark) or (NOUNS | _LISTS)
    return tuple(table[name].split())


@cache
def _expansions(rule: str) -> tuple[tuple[tuple[tuple[str, ...], ...], ...], np.ndarray]:
    choices, weights = [], []
    for line in GRAMMAR[rule]:
        head, _, rest = line.partition(" ")
        weighted = head.isdigit()
        weights.append(float(head) if weighted else 1.0)
        choices.append(tuple(_TOKEN.findall(rest if weighted else line)))
    return tuple(choices), np.cumsum(weights) / np.sum(weights)


def _expand(rule: str, rng: np.random.Generator, out: list[str]) -> None:
    choices, cumulative = _expansions(rule)
    for inner, name, mark, form, word, sign in choices[int(np.searchsorted(cumulative, rng.random()))]:
        if inner:
            _expand(inner, rng, out)
        elif name:
            options = _words(name, mark, form)
            out.append(options[int(rng.integers(len(options)))])
        elif word or sign:
            out.append(word or sign)


def _joins(token: str) -> bool:
    """Whether a token is the end of the word before it: punctuation, or the ending of a possessive."""
    return token in ".,?" or token.startswith("'")


def _polish(tokens: list[str]) -> str:
    """Tokens to a sentence: a or an, capitals, punctuation."""
    words: list[str] = []
    for i, token in enumerate(tokens):
        if _joins(token):
            if words:
                words[-1] += token
            continue
        if token in ("a", "an"):
            following = tokens[i + 1] if i + 1 < len(tokens) else ""
            vowel = following[:1] in tuple("aeiou") and not following.startswith(("uni", "use", "one", "eu"))
            token = "an" if vowel or following in ("hour", "honest") else "a"
        words.append(token.capitalize() if token.split("'")[0] in _PROPER else token)
    text = " ".join(words)
    text = text[0].upper() + text[1:]
    return text if text[-1] in ".?" else text + "."


def _from_grammar(rule: str, rng: np.random.Generator) -> str:
    while True:
        tokens: list[str] = []
        _expand(rule, rng, tokens)
        n_words = sum(not _joins(token) for token in tokens)
        if 1 <= n_words <= MAX_WORDS:
            return _polish(tokens)


def _random_words(rng: np.random.Generator) -> str:
    words = all_words()
    return _polish([words[int(i)] for i in rng.integers(len(words), size=int(rng.integers(3, 9)))])


def _word_list(words: str, longest: int, rng: np.random.Generator) -> str:
    options = words.split()
    n = int(rng.integers(1, longest + 1))
    return _polish([options[int(i)] for i in rng.integers(len(options), size=n)])


CORPORA = {
    "Switchboard": lambda rng: _from_grammar("everyday", rng),
    "Freq words": lambda rng: _word_list(_FREQUENT, 9, rng),
    "50-Word": lambda rng: _from_grammar("fifty", rng) if rng.random() < 0.7 else _word_list(_FIFTY, 4, rng),
    "Openwebtext": lambda rng: _from_grammar("news", rng),
    "Harvard": lambda rng: _from_grammar("plain", rng),
    "Random": _random_words,
    "Short": lambda rng: _from_grammar("short", rng),
}
"""Name of a corpus -> function that draws a sentence of it."""


@cache
def all_words() -> tuple[str, ...]:
    """Every word that the grammar can produce, in lower case, sorted."""
    found = set(f"{_FREQUENT} {_FIFTY}".split())
    for rule in GRAMMAR:
        for choice in _expansions(rule)[0]:
            for _, name, mark, form, word, _ in choice:
                found.update(_words(name, mark, form) if name else [word] if word and not _joins(word) else [])
    return tuple(sorted(found | {"an"}))


def draw_sentence(corpus: str, rng: np.random.Generator) -> str:
    """Draw one sentence of a corpus.

    Parameters
    ----------
    corpus
        A key of `CORPORA`. The names are those of the recorded sets; the sentences are the project's own.
    rng
        Source of randomness.

    Returns
    -------
    str
        1 to 22 words with case and punctuation.

    Raises
    ------
    KeyError
        If there is no such corpus.
    """
    return CORPORA[corpus](rng)
