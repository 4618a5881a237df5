"""A tiny recording and a tiny untrained checkpoint, for tests of the commands."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch

from neuro import RawTrial
from neuro.formats import FORMATS
from neuro.phonemes import SYMBOLS

SENTENCE = "hi there"
PHONEMES = ["HH", "AY", "SIL", "DH", "EH", "R", "SIL"]
SESSIONS = ("t15.2001.01.08", "t15.2001.01.12")


def trials(sessions: tuple[str, ...] = SESSIONS, n: int = 6, electrodes: int = 4) -> Iterator[RawTrial]:
    """Random counts; the last third of every session is val."""
    rng = np.random.default_rng(0)
    labels = np.array([SYMBOLS.index(name) for name in PHONEMES])
    for session in sessions:
        for k in range(n):
            frames = int(rng.integers(30, 60))
            yield RawTrial(
                counts={-4.5: rng.poisson(1.0, (frames, electrodes)).astype(np.int16)},
                power=rng.gamma(2.0, 10.0, (frames, electrodes)).astype(np.float32),
                sentence=SENTENCE,
                phonemes=labels,
                session=session,
                block=k // 3,
                trial=k % 3,
                split=("train", "val", "test")[3 * k // n],
                corpus="Short",
                onsets=np.linspace(2, frames - 6, len(labels)).astype(int),
            )


def write_tree(root: Path, **options) -> Path:
    write = FORMATS["b2t25"].write
    assert write is not None
    return write(list(trials(**options)), root)


def write_checkpoint(path: Path, *, core: str = "residual_snn", n_channels: int = 8, sessions=SESSIONS) -> Path:
    from decoders.training.task import PhonemeTask

    torch.manual_seed(0)
    options = {"residual_snn": {"depth": 1, "max_delay": 3}, "gru": {"depth": 1}}[core]
    task = PhonemeTask(n_channels, n_days=len(sessions), core=core, width=8, core_options=options)
    task.recordings = {
        "path": "somewhere",
        "form": "b2t25",
        "sessions": list(sessions),
        "n_channels": n_channels,
        "normalize": "auto",
        "normalized": True,
        "phonemes": list(SYMBOLS),
    }
    content: dict = {"state_dict": task.state_dict(), "hyper_parameters": dict(task.hparams)}
    task.on_save_checkpoint(content)
    path.parent.mkdir(parents=True, exist_ok=True)
    torch.save(content, path)
    return path
