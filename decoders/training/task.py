"""Training of a phoneme decoder with CTC, as a Lightning module."""

from __future__ import annotations

import pickle
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import torch
from pytorch_lightning import LightningModule
from pytorch_lightning.utilities.rank_zero import rank_zero_warn

import snn
from decoders.ctc import ctc_loss, greedy
from decoders.metrics import edits_and_lengths
from decoders.phoneme_decoder import PhonemeDecoder
from decoders.training.limits import MODEL, check_limits
from decoders.training.meters import Means, widest
from decoders.training.optim import OPTIMIZERS, LearningRateFactor, parameter_groups
from decoders.training.sampler import stream_seed
from neuro import Batch, DataError

CHECKPOINT_KEY = "ranvier"
"""Where a checkpoint keeps what is ours: the data it was trained on, the newest figures, running means."""


class PhonemeTask(LightningModule):
    """A phoneme decoder, its loss, its optimiser and its schedule.

    Parameters
    ----------
    n_channels
        Channels of the recording.
    n_days
        Its number of sessions.
    core
        Name of the core: residual_snn, gru, lstm, tcn, mlp, transformer, gru_b2t24, gru_b2t25.
    budget
        Core parameters to meet within 2 %: 500k, 2M, 5M or a number.
    width
        The core's width itself, instead of a budget.
    core_options
        The core's other options, for instance ``{depth: 4, max_delay: 16, dropout: 0.2}``.
    day_layers
        Give each session its own affine map before the core.
    day_dropout
        After the day layers.
    smoothing
        Smooth the features over time with the Gaussian of the '24 or the '25 recipe.
    patch
        [size, stride] in bins: the core sees ``size`` bins at once and moves on by ``stride``.
    input_dropout
        Before the core.
    optimizer
        adamw, or adam with plain L2 as in the '24 recipe.
    lr
        Highest learning rate of the schedule.
    betas, eps
        Of the optimiser.
    weight_decay
        Not on biases, norms and day layers, unless ``decay_everything``.
    decay_everything
        Decay every parameter, as the '24 recipe does.
    schedule
        one_cycle, cosine, linear or constant, over all updates of the run.
    warmup
        Part of the updates on the way up (below 1), or their number (1 or more).
    lr_start, lr_end
        Learning rate at the first and the last update, as fractions of ``lr``.
    target_rate
        Spikes per neuron and bin that spiking layers should not exceed on average.
    rate_weight
        Weight of the penalty on activity above the target, ``(rate - target) / target``, beside the CTC loss in nats
        a phoneme. 0 switches it off.
    seed
        Of dropout; update k draws from (seed, k, process).

    Attributes
    ----------
    decoder : decoders.PhonemeDecoder
    recordings : dict
        What the decoder was trained on: form, sessions in day order, channels, normalisation, phonemes in order of
        their logits. Empty before training.
    latest : dict of str to float
        The newest figures: train_loss, train_rate, lr, val_loss, val_per, val_rate.
    """

    def __init__(
        self,
        n_channels: int,
        n_days: int = 0,
        core: str = "residual_snn",
        budget: int | str | None = None,
        width: int | None = None,
        core_options: dict[str, Any] | None = None,
        day_layers: bool = True,
        day_dropout: float = 0.0,
        smoothing: Literal["b2t24", "b2t25"] | None = None,
        patch: tuple[int, int] | None = None,
        input_dropout: float = 0.0,
        optimizer: Literal["adamw", "adam"] = "adamw",
        lr: float = 3e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-4,
        decay_everything: bool = False,
        schedule: Literal["one_cycle", "cosine", "linear", "constant"] = "one_cycle",
        warmup: float = 0.1,
        lr_start: float = 0.04,
        lr_end: float = 0.001,
        target_rate: float = 0.1,
        rate_weight: float = 0.0,
        seed: int = 1,
    ) -> None:
        super().__init__()
        given = {name: value for name, value in locals().items() if name not in ("self", "__class__")}
        check_limits("model", MODEL, given)
        self.save_hyperparameters({name: _plain(value) for name, value in given.items()}, logger=False)
        self.decoder = PhonemeDecoder(
            n_channels,
            core=core,
            budget=budget,
            width=width,
            core_options=dict(core_options or {}),
            n_days=n_days if day_layers else 0,
            day_dropout=day_dropout,
            smoothing=smoothing,
            patch=None if patch is None else (patch[0], patch[1]),
            input_dropout=input_dropout,
        )
        self.target_rate, self.rate_weight, self.seed = target_rate, rate_weight, seed
        self.recordings: dict[str, Any] = {}
        self.latest: dict[str, float] = {}
        self.train_means = Means()
        # Patches come before the core and pooling after it, so the lengths it is called with are those of its spikes.
        self._core_lengths = torch.zeros(0, dtype=torch.int64)
        self.decoder.core.register_forward_pre_hook(self._note_lengths)
        self.learned_delays = [m for m in self.decoder.modules() if isinstance(m, snn.LearnedDelayLinear)]
        self.spiking = any(isinstance(module, snn.SpikingNeuron) for module in self.decoder.modules())

    @property
    def options(self) -> dict[str, Any]:
        """The arguments that the task was made with, in plain containers."""
        return dict(self.hparams)

    def _note_lengths(self, module: torch.nn.Module, inputs: tuple) -> None:
        self._core_lengths = inputs[1]

    def forward(self, batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
        """Logits (T', B, 41) and their lengths (B,)."""
        return self.decoder(batch)

    def setup(self, stage: str) -> None:
        """Note what the decoder is trained on, so that a checkpoint can tell."""
        data: Any = getattr(self.trainer, "datamodule", None)
        if hasattr(data, "describe"):
            self.recordings = data.describe()

    def on_train_batch_start(self, batch: Batch, batch_idx: int) -> None:
        """Seed dropout from the batch's number, and narrow learned delays, whatever the update the run started from."""
        torch.manual_seed(stream_seed(self.seed, "dropout", self.trainer.fit_loop.total_batch_idx, self.global_rank))
        if self.learned_delays and self.trainer.max_steps > 0:
            for layer in self.learned_delays:
                layer.anneal(self.trainer.global_step / self.trainer.max_steps)

    def training_step(self, batch: Batch, batch_idx: int) -> torch.Tensor:
        """CTC loss in nats a phoneme, plus the penalty on spikes above the target."""
        loss, rate, _, _ = self._loss_and_rate(batch, watch=self.rate_weight > 0)
        self.train_means.add(loss=loss)
        if rate is None:
            return loss
        self.train_means.add(rate=rate)
        return loss + self.rate_weight * self._excess(rate) / self.target_rate

    def on_train_end(self) -> None:
        """Give every process the running statistics of the first, which are the ones that are saved."""
        if self.trainer.world_size > 1:
            for buffer in self.buffers():
                torch.distributed.broadcast(buffer, 0)

    def on_validation_epoch_start(self) -> None:
        """Forget what an interrupted validation left."""
        self._sums = torch.zeros(6, dtype=widest(self.device), device=self.device)

    def validation_step(self, batch: Batch, batch_idx: int) -> None:
        """Count edits, phonemes and spikes."""
        counted = getattr(batch, "counted", len(batch))
        batch = batch if counted in (0, len(batch)) else _first_trials(batch, counted)
        loss, rate, logits, lengths = self._loss_and_rate(batch, watch=True)
        if counted == 0:  # only there to keep the processes in step
            return
        labels = zip(batch.phonemes.tolist(), batch.phoneme_lengths.tolist(), strict=True)
        edits, phonemes = edits_and_lengths([label[:length] for label, length in labels], greedy(logits, lengths))
        sums = [float(edits.sum()), float(phonemes.sum()), float(loss) * len(batch), len(batch), 0.0, 0.0]
        if rate is not None:
            frames = int(self._core_lengths.sum())
            sums[4:] = [float(rate) * frames, frames]
        self._sums += torch.tensor(sums, dtype=self._sums.dtype).to(self.device)

    def on_validation_epoch_end(self) -> None:
        """Phoneme error rate over all trials of all processes."""
        sums = self.trainer.strategy.reduce(self._sums, reduce_op="sum")
        edits, phonemes, loss, trials, spikes, frames = torch.as_tensor(sums).tolist()
        figures = {"val_per": edits / max(phonemes, 1), "val_loss": loss / max(trials, 1)}
        if self.spiking:
            figures["val_rate"] = spikes / max(frames, 1)
        self.log_dict(figures, batch_size=1, sync_dist=True)
        if not self.trainer.sanity_checking:
            self.latest.update(figures)

    def configure_optimizers(self) -> Any:
        """Optimiser with its parameter groups, and the schedule stepped at every update."""
        options = self.options
        groups = parameter_groups(
            self.decoder.named_parameters(), options["weight_decay"], decay_everything=options["decay_everything"]
        )
        optimizer = OPTIMIZERS[options["optimizer"]](
            groups,
            lr=options["lr"],
            betas=tuple(options["betas"]),
            eps=options["eps"],
        )
        factor = LearningRateFactor(
            options["schedule"], self._updates(), options["warmup"], options["lr_start"], options["lr_end"]
        )
        scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, factor)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": scheduler, "interval": "step"}}

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Add what rebuilds the decoder and tells what it was trained on, as plain containers."""
        checkpoint[CHECKPOINT_KEY] = {
            "recordings": dict(self.recordings),
            "latest": dict(self.latest),
            "train_means": self.train_means.state_dict(),
        }

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Restore the running figures; refuse other data, and say when the schedule was planned for another length."""
        ours = checkpoint[CHECKPOINT_KEY]
        self._check_same_data(ours["recordings"])
        self.recordings = self.recordings or ours["recordings"]
        self.latest = dict(ours["latest"])
        self.train_means.load_state_dict(ours["train_means"], self.device)
        if self._trainer is None or self.trainer.state.fn != "fit":
            return
        planned = [factor["total"] for state in checkpoint.get("lr_schedulers", []) for factor in state["lr_lambdas"]]
        if planned and self._updates() != planned[0]:
            rank_zero_warn(
                f"the run was planned for {planned[0]} updates and its learning rate keeps that plan, "
                f"although it now goes on to {self._updates()}"
            )

    @classmethod
    def load(cls, path: str | Path, map_location: torch.device | str = "cpu") -> PhonemeTask:
        """The task with the weights of a checkpoint, in evaluation mode; nothing in the file is run.

        Raises
        ------
        DataError
            If the file is missing, damaged, or no checkpoint of a phoneme decoder.
        """
        checkpoint = read_checkpoint(path, map_location)
        if "hyper_parameters" not in checkpoint:
            raise DataError("the checkpoint does not name its decoder's options", file=path, field="hyper_parameters")
        task = cls(**checkpoint["hyper_parameters"])
        try:
            task.load_state_dict(checkpoint["state_dict"])
        except RuntimeError as error:
            raise DataError("the checkpoint's weights do not fit its options", file=path, found=error) from error
        task.recordings = checkpoint[CHECKPOINT_KEY]["recordings"]
        task.latest = checkpoint[CHECKPOINT_KEY]["latest"]
        return task.to(map_location).eval()

    def _loss_and_rate(
        self, batch: Batch, *, watch: bool
    ) -> tuple[torch.Tensor, torch.Tensor | None, torch.Tensor, torch.Tensor]:
        rate = None
        if watch and self.spiking:
            with snn.SpikeRecorder(self.decoder) as recorder:
                logits, lengths = self.decoder(batch)
            rate = recorder.mean_rate(self._core_lengths)
        else:
            logits, lengths = self.decoder(batch)
        return ctc_loss(logits, lengths, batch), rate, logits, lengths

    def _excess(self, rate: torch.Tensor) -> torch.Tensor:
        """Activity above the target, so that its gradient over processes is that of their batches taken together."""
        if self.trainer.world_size == 1:
            return torch.relu(rate - self.target_rate)
        frames = self._core_lengths.sum().to(rate.dtype)
        both = self.trainer.strategy.reduce(torch.stack([rate.detach() * frames, frames]), reduce_op="sum")
        # Lightning averages gradients over processes; the factor turns that average into the union's mean.
        share = rate * frames / both[1] * self.trainer.world_size
        return torch.where(both[0] / both[1] > self.target_rate, share - self.target_rate, torch.zeros_like(share))

    def _updates(self) -> int:
        """Optimiser updates of the whole run. Asking the trainer for it would start the data loader too early."""
        trainer = self.trainer
        data: Any = getattr(trainer, "datamodule", None)
        limits = [trainer.max_steps] if trainer.max_steps and trainer.max_steps > 0 else []
        if trainer.max_epochs and trainer.max_epochs > 0 and hasattr(data, "updates_per_epoch"):
            limits.append(-(-data.updates_per_epoch // trainer.accumulate_grad_batches) * trainer.max_epochs)
        if not limits:
            raise DataError("the run needs an end", field="trainer.max_steps", expected="a number of updates")
        return min(limits)

    def _check_same_data(self, known: dict[str, Any]) -> None:
        if not self.recordings or not known:
            return
        for name in ("form", "n_channels", "normalized", "phonemes", "sessions"):
            if self.recordings[name] != known[name]:
                raise DataError(
                    "the data differ from those the checkpoint was trained on",
                    field=name,
                    found=self.recordings[name],
                    expected=known[name],
                )


def read_checkpoint(path: str | Path, map_location: torch.device | str = "cpu") -> dict[str, Any]:
    """A checkpoint's contents, tensors and plain containers only.

    Raises
    ------
    DataError
        If the file is missing, damaged, would run code, or is no checkpoint of a phoneme decoder.
    """
    path = Path(path)
    if not path.is_file():
        raise DataError("no such checkpoint", file=path)
    try:
        with zipfile.ZipFile(path) as archive:
            damaged = archive.testzip()  # torch does not look at the checksums
    except (zipfile.BadZipFile, OSError, EOFError) as error:
        raise DataError(
            "the checkpoint cannot be read safely: it is no archive, or a damaged one", file=path, found=str(error)
        ) from error
    if damaged:
        raise DataError("the checkpoint is damaged", file=path, found=f"a wrong checksum of {damaged}")
    try:
        checkpoint = torch.load(path, map_location=map_location, weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, EOFError, OSError, ValueError, LookupError) as error:
        # Not torch's own words, which recommend to read it unsafely.
        raise DataError(
            "the checkpoint cannot be read safely: it holds more than tensors and plain containers, or is damaged",
            file=path,
        ) from error
    if not isinstance(checkpoint, dict) or CHECKPOINT_KEY not in checkpoint or "state_dict" not in checkpoint:
        raise DataError("the file is no checkpoint of a phoneme decoder trained by ranvier", file=path)
    for name, value in checkpoint["state_dict"].items():
        if torch.is_tensor(value) and value.is_floating_point() and not bool(value.isfinite().all()):
            raise DataError("the checkpoint holds weights that are not finite", file=path, field=name)
    return checkpoint


def _first_trials(batch: Batch, n: int) -> Batch:
    parts = {name: getattr(batch, name)[:n] for name in ("lengths", "phonemes", "phoneme_lengths", "days")}
    return replace(batch, features=batch.features[:, :n], keys=batch.keys[:n], sentences=batch.sentences[:n], **parts)


def _plain(value: Any) -> Any:
    """The value in containers that load with ``weights_only=True``."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise TypeError(f"option of a type that a checkpoint cannot keep: {value!r}")
