"""What was recorded: trials and their files, phonemes and text, the ear, simulated participants."""

from neuro.batch import Batch, collate
from neuro.errors import DataError
from neuro.formats.base import TrialRef
from neuro.lexicon import Lexicon, UnknownWordError
from neuro.normalize import RunningZScore, block_zscore, require_counts
from neuro.phonemes import BLANK, N_SYMBOLS, PHONEMES, SIL, SYMBOLS, PhonemeOrder
from neuro.recordings import Recordings, convert, infeasible, open_recordings
from neuro.text import clean_text, wer_text
from neuro.trial import BIN_SECONDS, THRESHOLDS, RawTrial, Trial

__all__ = [
    "BIN_SECONDS",
    "BLANK",
    "N_SYMBOLS",
    "PHONEMES",
    "SIL",
    "SYMBOLS",
    "THRESHOLDS",
    "Batch",
    "DataError",
    "Lexicon",
    "PhonemeOrder",
    "RawTrial",
    "Recordings",
    "RunningZScore",
    "Trial",
    "TrialRef",
    "UnknownWordError",
    "block_zscore",
    "clean_text",
    "collate",
    "convert",
    "infeasible",
    "open_recordings",
    "require_counts",
    "wer_text",
]
