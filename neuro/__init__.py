"""What was recorded: trials and their files, phonemes and text, the ear, simulated participants."""

from neuro.batch import Batch, collate
from neuro.errors import DataError
from neuro.formats.base import TrialRef
from neuro.images import Images, find_fashion_mnist, load_digits, load_idx
from neuro.lexicon import Lexicon, UnknownWordError
from neuro.normalize import RunningZScore, block_zscore, require_counts
from neuro.phonemes import BLANK, N_SYMBOLS, PHONEMES, SIL, SYMBOLS, PhonemeOrder
from neuro.recordings import Recordings, convert, infeasible, open_recordings
from neuro.shd import SpikeBatch, SpikeTrains, open_shd, split_by_speaker
from neuro.shd_write import write_shd
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
    "Images",
    "Lexicon",
    "PhonemeOrder",
    "RawTrial",
    "Recordings",
    "RunningZScore",
    "SpikeBatch",
    "SpikeTrains",
    "Trial",
    "TrialRef",
    "UnknownWordError",
    "block_zscore",
    "clean_text",
    "collate",
    "convert",
    "find_fashion_mnist",
    "infeasible",
    "load_digits",
    "load_idx",
    "open_recordings",
    "open_shd",
    "require_counts",
    "split_by_speaker",
    "wer_text",
    "write_shd",
]
