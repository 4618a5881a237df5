"""A Lightning trainer set up for one run in one folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pytorch_lightning import Callback, Trainer
from pytorch_lightning.callbacks import ProgressBar

from decoders.training.callbacks import GradientCheck, LearningCurve
from decoders.training.checkpoints import FOLDER, AtomicCheckpointIO, Checkpoints
from decoders.training.limits import TRAINER, check_limits
from decoders.training.progress import RunProgress


def make_trainer(
    run: str | Path,
    *,
    checkpoints: Checkpoints | None = None,
    callbacks: Sequence[Callback] | Callback | None = None,
    plugins: Any = None,
    logger: Any = None,
    enable_progress_bar: bool | None = None,
    **options: Any,
) -> Trainer:
    """Trainer with a learning curve, safe checkpoints, a gradient check and a progress bar.

    Parameters
    ----------
    run
        Folder that gets ``learning_curve.csv`` and ``checkpoints/``.
    checkpoints
        When to write them; every ten minutes when left out.
    callbacks, plugins
        Further ones; a progress bar among them takes the place of the usual one.
    logger
        As Lightning takes it; None for none beside the learning curve.
    enable_progress_bar
        Show progress; None means yes.
    options
        Of `pytorch_lightning.Trainer`.

    Raises
    ------
    DataError
        If one of them is out of range.
    """
    check_limits("trainer", TRAINER, options)
    extra = [callbacks] if isinstance(callbacks, Callback) else list(callbacks or [])
    ours: list[Callback] = [LearningCurve(), GradientCheck(), checkpoints or Checkpoints()]
    show = enable_progress_bar is not False
    bar = [RunProgress()] if show and not any(isinstance(callback, ProgressBar) for callback in extra) else []
    return Trainer(
        default_root_dir=str(run),
        callbacks=[*extra, *ours, *bar],
        plugins=[*(plugins if isinstance(plugins, list) else [plugins] if plugins else []), AtomicCheckpointIO()],
        logger=logger if logger is not None else False,
        enable_progress_bar=show,
        # The data share each batch among the processes themselves, in equal parts.
        use_distributed_sampler=False,
        **options,
    )


def last_checkpoint(run: str | Path) -> Path | None:
    """The checkpoint that a run resumes from; None when there is none yet."""
    path = Path(run) / FOLDER / "last.ckpt"
    return path if path.exists() else None


def best_checkpoint(run: str | Path) -> Path | None:
    """The checkpoint with the lowest validation PER; None when there is none yet."""
    path = Path(run) / FOLDER / "best.ckpt"
    return path if path.exists() else None
