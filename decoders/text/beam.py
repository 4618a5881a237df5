"""Phoneme posteriors to sentences: a beam search over the spellings of words, with a language model."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch

from decoders.text.flashlight import flashlight_decoder
from decoders.text.language_models import LanguageModel
from decoders.text.vocabulary import Vocabulary
from neuro import DataError
from neuro.phonemes import BLANK, N_SYMBOLS, SIL, SYMBOLS, PhonemeOrder, reorder

UNPRUNED = 1e9


@dataclass(frozen=True)
class Weights:
    """What each part of a sentence's score counts.

    Attributes
    ----------
    language_model : float
        Of the n-gram's natural log-probability.
    word : float
        Added for every word; positive favours many short ones.
    rescorer : float
        Of a causal language model's natural log-probability, where there is one.
    """

    language_model: float = 1.0
    word: float = 0.0
    rescorer: float = 0.0

    def __str__(self) -> str:
        return ", ".join(f"{name} {value:g}" for name, value in asdict(self).items())


@dataclass(frozen=True)
class Hypothesis:
    """One reading of an utterance.

    Attributes
    ----------
    words : tuple of str
    acoustic, language_model : float
        Natural logarithms: of the phonemes' best path, and of the sentence under the n-gram.
    rescorer : float
        That of a causal language model; 0 where there is none.
    """

    words: tuple[str, ...]
    acoustic: float
    language_model: float
    rescorer: float = 0.0

    @property
    def text(self) -> str:
        """The words with blanks between."""
        return " ".join(self.words)

    def score(self, weights: Weights) -> float:
        """Everything together; higher is better."""
        return (
            self.acoustic
            + weights.language_model * self.language_model
            + weights.word * len(self.words)
            + weights.rescorer * self.rescorer
        )


class BeamSearch:
    """Lexicon beam search (flashlight-text; Collobert, Puhrsch and Synnaeve 2016) over phoneme posteriors.

    Every word ends with a SIL, as in the labels of all releases, and the trie spells it so. Without it, a word's last
    phoneme could not last for more than one frame, and the best path would be missed; with it, the search without
    pruning finds the best path exactly. More SIL may stand anywhere between words.

    Parameters
    ----------
    vocabulary
        Words and their spellings.
    language_model
        From `decoders.text.load_language_model`.
    weights
        What the search itself uses; a list may be ranked by others later (`rank`).
    beam, beam_tokens, threshold
        Hypotheses kept after each frame, phonemes tried from each, and how far below the best one may lie (natural
        logarithm).
    nbest
        Readings handed out, best first.
    blank_penalty
        Subtracted from the blank's log-probability in every frame.

    Raises
    ------
    DataError
        If the sizes make no sense, or flashlight-text is not installed.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        language_model: LanguageModel,
        weights: Weights = Weights(),
        *,
        beam: int = 100,
        beam_tokens: int = N_SYMBOLS,
        threshold: float = 50.0,
        nbest: int = 50,
        blank_penalty: float = 0.0,
    ) -> None:
        for name, size in (("beam", beam), ("beam_tokens", beam_tokens), ("nbest", nbest)):
            if size < 1:
                raise DataError("needs to be at least 1", field=name, found=size)
        decoder = flashlight_decoder()
        self.vocabulary, self.language_model, self.weights = vocabulary, language_model, weights
        self.nbest, self.blank_penalty = nbest, blank_penalty
        self._ids = {symbol: number for number, symbol in enumerate(SYMBOLS)}
        self._lm = language_model.for_search(vocabulary.words)
        self._trie = self._spell(decoder)
        options = decoder.LexiconDecoderOptions(
            beam_size=beam,
            beam_size_token=min(beam_tokens, N_SYMBOLS),
            beam_threshold=threshold,
            lm_weight=weights.language_model * language_model.nats,
            word_score=weights.word,
            unk_score=-math.inf,
            sil_score=0.0,
            log_add=False,
            criterion_type=decoder.CriterionType.CTC,
        )
        self._decoder = decoder.LexiconDecoder(options, self._trie, self._lm, SIL, BLANK, -1, [], False)

    def _spell(self, decoder: Any) -> Any:
        number = {word: position for position, word in enumerate(self.vocabulary.words)}
        # The search subtracts these from the words' scores on the way, so they must be in the model's own unit.
        priors = {word: (self.language_model.prior(word) or 0.0) / self.language_model.nats for word in number}
        trie = decoder.Trie(N_SYMBOLS, SIL)
        for spelling, words in self.vocabulary.spellings.items():
            symbols = [*(self._ids[symbol] for symbol in spelling), SIL]
            for word in words:
                trie.insert(symbols, number[word], priors[word])
        trie.smear(decoder.SmearingMode.MAX)
        return trie

    def decode(
        self, logits: torch.Tensor, lengths: torch.Tensor, order: PhonemeOrder = PhonemeOrder.TORCH
    ) -> list[list[Hypothesis]]:
        """Read a batch.

        Parameters
        ----------
        logits : (T', B, 41)
            Logits or log-probabilities of a phoneme decoder.
        lengths : (B,)
            Real frames of each utterance; what comes after them is not read.
        order
            How the decoder numbers its outputs.

        Returns
        -------
        list of list of Hypothesis
            For each utterance at most `nbest` different readings, best first; never empty.

        Raises
        ------
        DataError
            If a shape or a length is wrong, or a logit is NaN.
        """
        if logits.ndim != 3 or len(lengths) != logits.shape[1]:
            raise DataError(
                "logits need the shape (frames, batch, 41) and one length an utterance",
                found=f"{tuple(logits.shape)} and {len(lengths)} lengths",
            )
        longest = max(map(int, lengths), default=0)
        if longest > len(logits):
            raise DataError("a length beyond the logits", found=longest, expected=f"at most {len(logits)}")
        emissions = reorder(logits.detach().float().cpu(), order, PhonemeOrder.TORCH).log_softmax(-1)
        emissions[..., BLANK] -= self.blank_penalty
        return [self._read(emissions[: int(frames), b].numpy()) for b, frames in enumerate(lengths)]

    def _read(self, emissions: np.ndarray) -> list[Hypothesis]:
        if np.isnan(emissions).any():
            raise DataError("logits with NaN cannot be decoded")
        if not len(emissions):
            return [Hypothesis((), 0.0, self.language_model.sentence(()))]
        emissions = np.ascontiguousarray(emissions, np.float32)
        found: dict[tuple[str, ...], Hypothesis] = {}
        for result in self._decoder.decode(emissions.ctypes.data, *emissions.shape):
            words = tuple(self.vocabulary.words[index] for index in result.words if index >= 0)
            # The best path of a sentence comes first; the others read the same words from other phonemes.
            if words not in found:
                found[words] = Hypothesis(words, result.emittingModelScore, self.language_model.sentence(words))
        ranked = rank(list(found.values()), self.weights) or [Hypothesis((), -math.inf, 0.0)]
        return ranked[: self.nbest]


def rank(hypotheses: Sequence[Hypothesis], weights: Weights) -> list[Hypothesis]:
    """Hypotheses by their score under some weights, best first."""
    return sorted(hypotheses, key=lambda hypothesis: -hypothesis.score(weights))
