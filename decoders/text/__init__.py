"""Phonemes to words: scores of sentences."""

from decoders.text.scores import TextScores, score_sentences, word_errors

__all__ = ["TextScores", "score_sentences", "word_errors"]
