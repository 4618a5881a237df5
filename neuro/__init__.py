"""What was recorded: trials and their files, phonemes and text, the ear, simulated participants."""

from neuro.batch import Batch, collate
from neuro.errors import DataError
from neuro.trial import BIN_SECONDS, THRESHOLDS, RawTrial, Trial

__all__ = ["BIN_SECONDS", "THRESHOLDS", "Batch", "DataError", "RawTrial", "Trial", "collate"]
