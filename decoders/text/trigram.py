"""The trigram model that the pocketsphinx wheel carries: the offline default."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from decoders.text.flashlight import flashlight_decoder
from neuro import DataError
from neuro.lexicon import cmu_dictionary_path

CACHED_SCORES = 200_000
"""Scores kept between queries; about 30 MB."""

START, END = "<s>", "</s>"
History = tuple[str, ...]


class PocketsphinxTrigram:
    """A word trigram of 72,547 words (US English, BSD licence), queried through pocketsphinx.

    Attributes
    ----------
    name : str
        For reports.
    nats : float
        Natural logarithms in one unit of what the search sees as this model's score.

    Raises
    ------
    DataError
        If pocketsphinx is installed without its model.
    """

    name = "pocketsphinx en-us trigram, 72k words"
    nats = 1.0

    def __init__(self) -> None:
        from pocketsphinx import Config, LogMath, NGramModel

        path = cmu_dictionary_path().with_name("en-us.lm.bin")
        if not path.is_file():
            raise DataError("the trigram model is missing; install it again with: pip install pocketsphinx", file=path)
        self._log = LogMath()
        self._model = NGramModel(Config(), self._log, str(path))
        self._zero = self._log.get_zero()
        self._cache: dict[tuple[str, History], float] = {}

    def prior(self, word: str) -> float | None:
        """Natural log-probability of a word without history; None for an unknown one."""
        found = self._model.prob([word])
        return None if found <= self._zero or word in (START, END) else self._log.log_to_ln(found)

    def conditional(self, word: str, history: History) -> float:
        """Natural log-probability of a word after at most two others, the latest last."""
        key = (word, history)
        found = self._cache.get(key)
        if found is None:
            if len(self._cache) >= CACHED_SCORES:
                self._cache.clear()
            found = self._cache[key] = self._log.log_to_ln(self._model.prob([word, *reversed(history)]))
        return found

    def sentence(self, words: Sequence[str]) -> float:
        """Natural log-probability of a sentence with its end."""
        total = 0.0
        history: History = (START,)
        for word in (*words, END):
            total += self.conditional(word, history)
            history = (*history[-1:], word)
        return total

    def for_search(self, words: Sequence[str]) -> Any:
        """This model as flashlight asks for it: words by number, one state for each history of two words."""
        return _search_model()(self, words)


def _search_model() -> type:
    decoder: Any = flashlight_decoder()
    base: Any = decoder.LM

    class SearchTrigram(base):
        """States are told apart by identity, so that hypotheses with the same last two words recombine."""

        def __init__(self, model: PocketsphinxTrigram, words: Sequence[str]) -> None:
            super().__init__()
            self._model, self._words = model, words
            self._states: dict[History, Any] = {}
            self._histories: dict[Any, History] = {}

        def _state(self, history: History) -> Any:
            state = self._states.get(history)
            if state is None:
                state = self._states[history] = decoder.LMState()
                self._histories[state] = history
            return state

        def start(self, start_with_nothing: bool) -> Any:
            # A new utterance: no hypothesis of an older one is alive, so its states may go.
            self._states.clear()
            self._histories.clear()
            return self._state((START,))

        def score(self, state: Any, index: int) -> tuple[Any, float]:
            history, word = self._histories[state], self._words[index]
            return self._state((*history[-1:], word)), self._model.conditional(word, history)

        def finish(self, state: Any) -> tuple[Any, float]:
            history = self._histories[state]
            return self._state((*history[-1:], END)), self._model.conditional(END, history)

    return SearchTrigram
