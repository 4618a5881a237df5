"""Language models by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from decoders.text.kenlm_file import KenLMFile
from decoders.text.trigram import PocketsphinxTrigram


class LanguageModel(Protocol):
    """What the search needs of a language model.

    Attributes
    ----------
    name : str
        For reports; no word error rate appears without it.
    nats : float
        Natural logarithms in one unit of the scores that `for_search` hands to flashlight.
    """

    name: str
    nats: float

    def prior(self, word: str) -> float | None:
        """Natural log-probability of a word without history; None for an unknown one."""

    def sentence(self, words: Sequence[str]) -> float:
        """Natural log-probability of a sentence with its end."""

    def for_search(self, words: Sequence[str]) -> Any:
        """A flashlight LM over words by number."""


LANGUAGE_MODELS: dict[str, Callable[[], LanguageModel]] = {"default": PocketsphinxTrigram}
"""Language models that need no file; any other name is that of a file."""


def load_language_model(name: str) -> LanguageModel:
    """A language model by name (see `LANGUAGE_MODELS`), or from an ARPA or KenLM file.

    Raises
    ------
    DataError
        If there is no such file, or it is damaged.
    """
    make = LANGUAGE_MODELS.get(name)
    return KenLMFile(name) if make is None else make()
