"""Progress of a run in the terminal: one line with loss, phoneme error rate and spike rate."""

from __future__ import annotations

import sys
from typing import Any

from pytorch_lightning import LightningModule, Trainer
from pytorch_lightning.callbacks import ProgressBar
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

# Figure of the task -> how the bar shows it.
SHOWN = {
    "train_loss": "loss {:.3f}",
    "val_per": "PER {:.1%}",
    "train_rate": "spikes {:.1%}",
    "val_rate": "val spikes {:.1%}",
}
REFRESHES_PER_SECOND = 2


def summary(latest: dict[str, float], best_per: float | None = None) -> str:
    """The newest figures in words.

    Examples
    --------
    >>> summary({"train_loss": 1.25, "val_per": 0.4, "train_rate": 0.08}, best_per=0.38)
    'loss 1.250  PER 40.0% (best 38.0%)  spikes 8.0%'
    """
    parts = []
    for name, form in SHOWN.items():
        if name not in latest or (name == "val_rate" and "train_rate" in latest):
            continue
        part = form.format(latest[name])
        if name == "val_per" and best_per is not None and best_per < float("inf"):
            part += f" (best {best_per:.1%})"
        parts.append(part)
    return "  ".join(parts)


class RunProgress(ProgressBar):
    """Bar over the updates of the whole run; a line a validation where there is no terminal.

    Figures are those that the learning curve has at hand, so showing them costs no synchronisation with the device.

    Parameters
    ----------
    console
        Where to show it; the terminal's standard error when left out.
    """

    def __init__(self, console: Console | None = None) -> None:
        super().__init__()
        self.console = console or Console(file=sys.stderr)
        self._progress: Progress | None = None
        self._enabled = True

    def disable(self) -> None:
        """Show nothing (on all processes but the first)."""
        self._enabled = False

    def enable(self) -> None:
        """Show again."""
        self._enabled = True

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Open the bar where the run stands."""
        if not (self._enabled and self.console.is_terminal):
            return
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[figures]}"),
            console=self.console,
            refresh_per_second=REFRESHES_PER_SECOND,
        )
        self._task = self._progress.add_task(
            "training", total=planned_updates(trainer), completed=trainer.global_step, figures=""
        )
        self._progress.start()

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Move the bar; it is drawn twice a second."""
        if self._progress is not None:
            self._show(trainer, pl_module, "training")

    def on_validation_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Say that the pause is a validation."""
        if self._progress is not None and not trainer.sanity_checking:
            self._show(trainer, pl_module, "validating")

    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Show the new error rate; without a terminal, as a line of its own."""
        if not self._enabled or trainer.sanity_checking:
            return
        if self._progress is not None:
            self._show(trainer, pl_module, "training")
        elif trainer.state.fn == "fit":
            line = f"update {trainer.global_step}/{planned_updates(trainer)}  {summary(pl_module.latest)}"
            self.console.print(line, highlight=False, soft_wrap=True)

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Leave the finished bar standing."""
        self._close()

    def on_exception(self, trainer: Trainer, pl_module: LightningModule, exception: BaseException) -> None:
        """Give the terminal back."""
        self._close()

    def teardown(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Give the terminal back."""
        self._close()

    def _show(self, trainer: Trainer, pl_module: LightningModule, doing: str) -> None:
        assert self._progress is not None
        best = getattr(trainer.checkpoint_callback, "best_per", None)
        self._progress.update(
            self._task,
            completed=trainer.global_step,
            description=doing,
            figures=summary(pl_module.latest, best),
        )

    def _close(self) -> None:
        if self._progress is not None:
            self._progress.stop()
            self._progress = None


def planned_updates(trainer: Trainer) -> int | None:
    """Updates of the whole run; None when they are not known."""
    per_epoch = -(-int(trainer.num_training_batches) // trainer.accumulate_grad_batches)
    limits = [trainer.max_steps] if trainer.max_steps > 0 else []
    if trainer.max_epochs and trainer.max_epochs > 0:
        limits.append(per_epoch * trainer.max_epochs)
    return min(limits) if limits else None
