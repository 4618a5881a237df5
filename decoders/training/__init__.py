"""Fitting phoneme decoders: the task, its data, a trainer that resumes exactly. Needs the extra ``train``."""

from decoders.training.checkpoints import Checkpoints, Interrupted
from decoders.training.data import RecordingsData
from decoders.training.task import PhonemeTask, read_checkpoint
from decoders.training.trainer import best_checkpoint, last_checkpoint, make_trainer

__all__ = [
    "Checkpoints",
    "Interrupted",
    "PhonemeTask",
    "RecordingsData",
    "best_checkpoint",
    "last_checkpoint",
    "make_trainer",
    "read_checkpoint",
]
