"""A recording and a task so small that a fit takes a second."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import torch
from pytorch_lightning import Trainer

from decoders.training import Checkpoints, PhonemeTask, RecordingsData, make_trainer

CHANNELS = 6
SESSIONS = ("t15.2023.08.11", "t15.2023.08.13", "t15.2023.08.18")


def write_recording(
    root: Path,
    *,
    sessions: tuple[str, ...] = SESSIONS,
    trials: int = 5,
    val_trials: int = 2,
    channels: int = CHANNELS,
    hard: int = 0,
    bins_per_phoneme: tuple[int, int] = (4, 8),
    seed: int = 0,
) -> Path:
    """A tree in the '25 form, with a pattern for each phoneme; ``hard`` trials have labels longer than their frames."""
    rng = np.random.default_rng(seed)
    pattern = rng.normal(size=(41, channels)).astype(np.float32)
    for session in sessions:
        for split, count in (("train", trials), ("val", val_trials)):
            if count == 0:
                continue
            (root / session).mkdir(parents=True, exist_ok=True)
            with h5py.File(root / session / f"data_{split}.hdf5", "w") as file:
                for number in range(count):
                    labels = np.append(rng.integers(1, 6, rng.integers(2, 5)), 40)
                    features = np.repeat(pattern[labels], rng.integers(*bins_per_phoneme, len(labels)), axis=0)
                    if split == "train" and session == sessions[0] and number < hard:
                        features = features[: len(labels) - 1]
                    features = features + rng.normal(scale=0.3, size=features.shape).astype(np.float32)
                    write_trial(file, session, number, features, labels)
    return root


def write_trial(file: h5py.File, session: str, number: int, features: np.ndarray, labels: np.ndarray) -> None:
    """One trial as the '25 release stores it."""
    group = file.create_group(f"trial_{number:04d}")
    group["input_features"] = features.astype(np.float32)
    padded = np.zeros(500, np.int32)
    padded[: len(labels)] = labels
    group["seq_class_ids"] = padded
    sentence = b"A sentence."
    text = np.zeros(500, np.int32)
    text[: len(sentence)] = list(sentence)
    group["transcription"] = text
    group.attrs.update(
        n_time_steps=len(features),
        seq_len=len(labels),
        session=session,
        block_num=1,
        trial_num=number,
        sentence_label=sentence.decode(),
    )


def make_task(seed: int = 1, **options: Any) -> PhonemeTask:
    """A spiking decoder of a few hundred parameters, with everything random switched on."""
    torch.manual_seed(seed)
    settings: dict[str, Any] = {
        "n_channels": CHANNELS,
        "n_days": len(SESSIONS),
        "core": "residual_snn",
        "width": 8,
        "core_options": {"depth": 1, "max_delay": 3, "dropout": 0.2},
        "day_dropout": 0.1,
        "lr": 1e-2,
        "rate_weight": 0.5,
        "seed": seed,
    }
    return PhonemeTask(**{**settings, **options})


def make_data(path: Path, **options: Any) -> RecordingsData:
    """Its data, augmented."""
    settings: dict[str, Any] = {
        "batch_size": 4,
        "augmentations": {"white_noise": {"sd": 0.2}, "random_cut": {"max_bins": 1}},
    }
    return RecordingsData(str(path), **{**settings, **options})


def trainer_for(run: Path, *, every_steps: int | None = None, callbacks: Any = None, **options: Any) -> Trainer:
    """A quiet trainer on the CPU."""
    settings: dict[str, Any] = {
        "accelerator": "cpu",
        "devices": 1,
        "max_steps": 9,
        "log_every_n_steps": 2,
        "num_sanity_val_steps": 0,
        "enable_progress_bar": False,
        "enable_model_summary": False,
        "gradient_clip_val": 5.0,
    }
    checkpoints = Checkpoints(every_steps=every_steps, every_minutes=None)
    return make_trainer(run, checkpoints=checkpoints, callbacks=callbacks, **{**settings, **options})


def weights(task: PhonemeTask) -> dict[str, torch.Tensor]:
    """Copies of every parameter and buffer."""
    return {name: tensor.detach().clone() for name, tensor in task.state_dict().items()}


def assert_same(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> None:
    """Bit for bit."""
    assert one.keys() == other.keys()
    different = [name for name in one if not torch.equal(one[name], other[name])]
    assert not different
