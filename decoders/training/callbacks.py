"""What a run reports while it goes: learning curve, TensorBoard, layers that no gradient reaches."""

from __future__ import annotations

import csv
import time
from pathlib import Path
from typing import Any

import torch
from pytorch_lightning import Callback, LightningModule, Trainer
from pytorch_lightning.utilities.rank_zero import rank_zero_warn
from torch import nn

from decoders.training.checkpoints import check_finite
from decoders.training.meters import widest

CURVE_FILE = "learning_curve.csv"
CURVE_COLUMNS = (
    "update",
    "epoch",
    "seconds",
    "lr",
    "train_loss",
    "train_rate",
    "val_loss",
    "val_per",
    "val_rate",
)


class LearningCurve(Callback):
    """Writes ``learning_curve.csv`` in the run's folder, and the same figures to the trainer's loggers.

    A row holds the means over the updates since the row before (``trainer.log_every_n_steps`` of them), or the result
    of a validation. ``lr`` is the learning rate of the update that follows; ``train_rate`` and ``val_rate`` are spikes
    per neuron and bin; ``seconds`` counts training time over all resumed parts of a run. Resuming drops rows that were
    written after the checkpoint. Stops a run whose loss is not finite any more.
    """

    def __init__(self) -> None:
        super().__init__()
        self._seconds, self._since = 0.0, time.monotonic()
        self._step = -1

    @property
    def seconds(self) -> float:
        """Training time so far, in seconds."""
        return self._seconds + time.monotonic() - self._since

    def state_dict(self) -> dict[str, Any]:
        """Training time so far."""
        return {"seconds": self.seconds}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on from a checkpoint's training time."""
        self._seconds = state_dict["seconds"]

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Start the clock; drop the rows that the run will write again."""
        self._since, self._step = time.monotonic(), trainer.global_step
        if trainer.is_global_zero:
            keep_rows(self.file(trainer), trainer.global_step)

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        """Write a row at every ``log_every_n_steps``-th update."""
        step = trainer.global_step
        if step == self._step or step % trainer.log_every_n_steps:
            return
        self._step = step
        check_finite(trainer, pl_module)
        means = pl_module.train_means.take()
        if trainer.world_size > 1:
            values = torch.tensor(list(means.values()), dtype=widest(pl_module.device), device=pl_module.device)
            means = dict(zip(means, trainer.strategy.reduce(values, reduce_op="mean").tolist(), strict=True))
        figures = {f"train_{name}": value for name, value in means.items()}
        # The scheduler has stepped already: this is the rate of the update that comes next.
        figures["lr"] = trainer.optimizers[0].param_groups[0]["lr"]
        pl_module.latest.update(figures)
        self._write(trainer, figures)

    def on_validation_end(self, trainer: Trainer, pl_module: Any) -> None:
        """Write the validation's row."""
        if trainer.sanity_checking or trainer.state.fn != "fit":
            return
        names = ("val_loss", "val_per", "val_rate")
        self._write(trainer, {name: pl_module.latest[name] for name in names if name in pl_module.latest})

    @staticmethod
    def file(trainer: Trainer) -> Path:
        """Where the curve is."""
        return Path(trainer.default_root_dir) / CURVE_FILE

    def _write(self, trainer: Trainer, figures: dict[str, float]) -> None:
        if not trainer.is_global_zero:
            return
        row = {"update": trainer.global_step, "epoch": trainer.current_epoch, "seconds": round(self.seconds, 3)}
        append_row(self.file(trainer), {**row, **figures})
        for logger in trainer.loggers:
            logger.log_metrics(figures, step=trainer.global_step)


def append_row(path: Path, row: dict[str, Any]) -> None:
    """Add a row to a CSV file with `CURVE_COLUMNS`, and the header when the file is new."""
    new = not path.exists()
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, CURVE_COLUMNS)
        if new:
            writer.writeheader()
        writer.writerow(row)


def keep_rows(path: Path, last: int) -> None:
    """Drop the rows after update ``last``; all of them when it is 0."""
    if not path.exists():
        return
    with path.open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["update"] and 0 < int(row["update"]) <= last]
    partial = path.with_name(f".{path.name}.partial")
    with partial.open("w", newline="") as file:
        writer = csv.DictWriter(file, CURVE_COLUMNS)
        writer.writeheader()
        writer.writerows(rows)
    partial.replace(path)


class GradientCheck(Callback):
    """After the first backward pass of a run, names the layers that no gradient reaches.

    A spiking layer whose neurons all stay silent, or are all far from the threshold, learns nothing and says nothing;
    this does.

    Attributes
    ----------
    silent : list of str
        Names of the layers found, as in ``named_modules``; empty when the gradient reaches every layer.
    """

    def __init__(self) -> None:
        super().__init__()
        self.silent: list[str] | None = None

    def on_after_backward(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Look once, at the very start of a run."""
        if self.silent is not None or trainer.global_step > 0:
            return
        self.silent = layers_without_gradient(pl_module)
        if self.silent:
            rank_zero_warn(
                f"no gradient reaches {', '.join(self.silent)} in the first update: nothing there will learn "
                "unless that changes (for spiking layers, look at the firing rates and the surrogate's width)"
            )


def layers_without_gradient(model: nn.Module) -> list[str]:
    """Modules with trainable parameters of their own, none of which has a non-zero gradient."""
    found = []
    for name, module in model.named_modules():
        own = [parameter for parameter in module.parameters(recurse=False) if parameter.requires_grad]
        if own and not any(parameter.grad is not None and bool(torch.any(parameter.grad != 0)) for parameter in own):
            found.append(name)
    return found
