"""Phonemes to words: dictionaries, language models, beam search, and scores of sentences."""

from decoders.text.beam import BeamSearch, Hypothesis, Weights, rank
from decoders.text.language_models import LANGUAGE_MODELS, LanguageModel, load_language_model
from decoders.text.scores import TextScores, score_sentences, word_errors
from decoders.text.vocabulary import Vocabulary, check_order, read_dictionary

__all__ = [
    "LANGUAGE_MODELS",
    "BeamSearch",
    "Hypothesis",
    "LanguageModel",
    "TextScores",
    "Vocabulary",
    "Weights",
    "check_order",
    "load_language_model",
    "rank",
    "read_dictionary",
    "score_sentences",
    "word_errors",
]
