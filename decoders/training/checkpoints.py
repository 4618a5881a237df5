"""Checkpoints that a kill cannot damage, written where a resumed run goes on exactly; Ctrl-C that loses nothing."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import torch
from lightning_fabric.plugins import TorchCheckpointIO
from pytorch_lightning import LightningModule, Trainer
from pytorch_lightning.callbacks import Checkpoint

from decoders.training.task import read_checkpoint
from neuro import DataError

FOLDER = "checkpoints"
"""Folder of a run that holds ``best.ckpt`` and ``last.ckpt``."""

SIGNALS = {signal.SIGINT: 130, signal.SIGTERM: 143}
"""Signals that end a run gently, and the exit code that shells give them."""


class Interrupted(Exception):  # noqa: N818 - no error: the user wished it
    """The user stopped the run; everything up to ``step`` is in ``checkpoint``."""

    def __init__(self, step: int, checkpoint: Path, code: int) -> None:
        super().__init__(f"stopped after update {step}; everything is in {checkpoint}")
        self.step, self.checkpoint, self.code = step, checkpoint, code


class AtomicCheckpointIO(TorchCheckpointIO):
    """Writes a checkpoint under another name and then renames it, so that the name always holds a whole one."""

    def save_checkpoint(self, checkpoint: dict[str, Any], path: Any, storage_options: Any | None = None) -> None:
        """Write ``checkpoint``; on any failure what stood at ``path`` is untouched."""
        path = Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(f".{path.name}.partial-{os.getpid()}")
        try:
            with partial.open("wb") as file:
                torch.save(checkpoint, file)
                file.flush()
                os.fsync(file.fileno())
            partial.replace(path)
        except BaseException:
            with contextlib.suppress(OSError):
                partial.unlink()
            raise

    def load_checkpoint(
        self, path: Any, map_location: Any = lambda storage, loc: storage, weights_only: bool | None = None
    ) -> dict[str, Any]:
        """Tensors and plain containers; nothing in the file is run."""
        return read_checkpoint(path, map_location)


class Checkpoints(Checkpoint):
    """Keeps ``best.ckpt`` (lowest validation PER) and ``last.ckpt`` (to resume from) in the run's folder.

    ``last.ckpt`` is written between two updates; where a validation follows the update, after that validation, so that
    a resumed run neither repeats nor misses it. ``best.ckpt`` has the weights and no optimiser state.

    Ctrl-C (and SIGTERM) ends the run after the update in progress, with a checkpoint; a second one ends it at once.

    Parameters
    ----------
    every_steps
        Updates between two writings of ``last.ckpt``.
    every_minutes
        Minutes between two of them. It is always written at the end too.

    Attributes
    ----------
    best_per, best_step
        Lowest validation PER, and the update where it was reached.
    """

    def __init__(self, every_steps: int | None = None, every_minutes: float | None = 10.0) -> None:
        super().__init__()
        for name, value in (("every_steps", every_steps), ("every_minutes", every_minutes)):
            if value is not None and value <= 0:
                raise DataError("needs to be above 0", field=f"checkpoint.{name}", found=value)
        self.every_steps, self.every_minutes = every_steps, every_minutes
        self.best_per, self.best_step = float("inf"), -1
        self.signal: int | None = None
        self._saved_step, self._saved_time = -1, time.monotonic()
        self._old_handlers: dict[int, Any] = {}

    @staticmethod
    def folder(trainer: Trainer) -> Path:
        """Where the run's checkpoints are."""
        return Path(trainer.default_root_dir) / FOLDER

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Start the clock and listen for Ctrl-C."""
        self._saved_step, self._saved_time, self.signal = trainer.global_step, time.monotonic(), None
        if threading.current_thread() is threading.main_thread():
            self._old_handlers = {number: signal.signal(number, self._on_signal) for number in SIGNALS}

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Write ``last.ckpt`` when it is due and no validation follows."""
        if not _validation_follows(trainer):
            self._save_last_if_due(trainer, pl_module)

    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Write ``best.ckpt`` after progress, and ``last.ckpt`` when it is due."""
        if trainer.sanity_checking or trainer.state.fn != "fit":
            return
        per = float(trainer.callback_metrics["val_per"])
        if per < self.best_per:
            self.best_per, self.best_step = per, trainer.global_step
            self._save(trainer, pl_module, "best", weights_only=True)
        self._save_last_if_due(trainer, pl_module)

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Write ``last.ckpt`` when a run ended early, by another callback's wish."""
        if trainer.global_step != self._saved_step:
            self._save(trainer, pl_module, "last")

    def teardown(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Give the signals back."""
        self._restore_signals()

    def on_exception(self, trainer: Trainer, pl_module: LightningModule, exception: BaseException) -> None:
        """Give the signals back; the state may be between two updates, so nothing is written."""
        self._restore_signals()

    def state_dict(self) -> dict[str, Any]:
        """The best PER and its update."""
        return {"best_per": self.best_per, "best_step": self.best_step}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on from a checkpoint's best PER."""
        self.best_per, self.best_step = state_dict["best_per"], state_dict["best_step"]

    def _save_last_if_due(self, trainer: Trainer, pl_module: LightningModule) -> None:
        step = trainer.global_step
        accumulating = trainer.fit_loop.epoch_loop._should_accumulate()
        code, clock = self._agree(
            trainer,
            SIGNALS[signal.Signals(self.signal)] if self.signal else 0,
            self.every_minutes is not None and time.monotonic() - self._saved_time >= 60 * self.every_minutes,
        )
        if accumulating or (step == self._saved_step and not code):
            return
        regular = self.every_steps is not None and step - self._saved_step >= self.every_steps
        if code or clock or regular or _last_update(trainer):
            self._save(trainer, pl_module, "last")
        if code:
            raise Interrupted(step, self.folder(trainer) / "last.ckpt", code)

    @staticmethod
    def _agree(trainer: Trainer, code: int, clock: bool) -> tuple[int, bool]:
        """The same answer in every process: signals and clocks differ between them."""
        if trainer.world_size == 1:
            return code, clock
        mine = torch.tensor([code, int(clock)], device=trainer.strategy.root_device)
        both = trainer.strategy.reduce(mine, reduce_op="max")
        return int(both[0]), bool(both[1])

    def _save(self, trainer: Trainer, pl_module: LightningModule, name: str, *, weights_only: bool = False) -> None:
        check_finite(trainer, pl_module)
        if name == "last":
            self._saved_step, self._saved_time = trainer.global_step, time.monotonic()
        trainer.save_checkpoint(self.folder(trainer) / f"{name}.ckpt", weights_only=weights_only)

    def _on_signal(self, number: int, frame: Any) -> None:
        if self.signal is not None:
            self._restore_signals()
            raise KeyboardInterrupt
        self.signal = number
        os.write(2, b"\nstopping after this update, and saving a checkpoint; once more to stop at once\n")

    def _restore_signals(self) -> None:
        for number, handler in self._old_handlers.items():
            signal.signal(number, handler)
        self._old_handlers = {}


def check_finite(trainer: Trainer, pl_module: Any) -> None:
    """Stop a run whose loss has become NaN or infinite.

    Raises
    ------
    DataError
        Says what to change, and where the last good weights are.
    """
    finite = pl_module.train_means.finite()
    if trainer.world_size > 1:
        finite = trainer.strategy.reduce_boolean_decision(finite, all=True)
    if finite:
        return
    last = Checkpoints.folder(trainer) / "last.ckpt"
    good = f"the last good checkpoint is {last}" if last.exists() else "no checkpoint was written before"
    raise DataError(
        f"training diverged by update {trainer.global_step}: the loss is not finite any more; lower model.lr or "
        f"trainer.gradient_clip_val, or look for extreme values in the features; {good}"
    )


def _validation_follows(trainer: Trainer) -> bool:
    loop: Any = trainer.fit_loop
    return bool(trainer.enable_validation and loop.epoch_loop._should_check_val_fx(loop._data_fetcher))


def _last_update(trainer: Trainer) -> bool:
    if trainer.max_steps > 0 and trainer.global_step >= trainer.max_steps:
        return True
    last_epoch = bool(trainer.max_epochs) and trainer.max_epochs == trainer.current_epoch + 1
    return last_epoch and trainer.fit_loop.epoch_loop._num_ready_batches_reached()
