"""Train one network of the study, from its last finished epoch where there is one."""

from __future__ import annotations

import fcntl
import logging
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from pytorch_lightning import Callback, LightningModule, Trainer
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset, Sampler

from decoders.training.checkpoints import AtomicCheckpointIO
from neuro import DataError
from scripts.studies.dormancy.data import Split, load
from scripts.studies.dormancy.networks import Network, Training
from snn import SpikeRecorder
from snn.functional import frame_mask


def logits_of(net: nn.Module, batch: Split) -> Tensor:
    """Logits (B, K): the mean of every step's, over real steps alone."""
    if batch.lengths is None:
        return net(batch.x)[0].mean(0)
    logits, _ = net(batch.x.transpose(0, 1), lengths=batch.lengths)
    mask = frame_mask(batch.lengths, logits.shape[0])
    return logits.masked_fill(~mask.unsqueeze(2), 0.0).sum(0) / batch.lengths.unsqueeze(1)


def batches(split: Split, size: int) -> Iterator[Split]:
    """All samples in their order, some at a time."""
    for start in range(0, len(split.y), size):
        yield split.take(torch.arange(start, min(start + size, len(split.y))))


def trained(network: Network, folder: Path) -> tuple[nn.Module, float]:
    """The network with its last weights, in eval mode, and the seconds that its training took.

    Parameters
    ----------
    network
    folder
        Of the trained networks. One that is there is not trained again; a training that was stopped goes on from its
        last finished epoch. Two processes never train the same one: the second waits.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"{network.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        net = network.build()
        content = _fit(
            net, network.training, load(network.data)["train"], network.seed, folder / f"{network.name}.ckpt"
        )
    task = Classifier(net, network.training)
    task.load_state_dict(content["state_dict"])
    return net.eval(), float(content["seconds"])


def fine_tuned(net: nn.Module, training: Training, split: Split, seed: int, path: Path) -> nn.Module:
    """Train a network further, in place; stopped and resumed like `trained`. Handed back in eval mode."""
    content = _fit(net, training, split, seed, path)
    Classifier(net, training).load_state_dict(content["state_dict"])
    return net.eval()


class Classifier(LightningModule):
    """Cross-entropy of the mean logits, and the price of spikes.

    Parameters
    ----------
    net : Module
    training : Training
    """

    def __init__(self, net: nn.Module, training: Training) -> None:
        super().__init__()
        self.net, self.training_options = net, training

    def training_step(self, batch: Split, index: int) -> Tensor:
        """Loss of one batch."""
        weight = self.training_options.activity_weight
        if not weight:
            return F.cross_entropy(logits_of(self.net, batch), batch.y)
        with SpikeRecorder(self.net) as recorder:
            loss = F.cross_entropy(logits_of(self.net, batch), batch.y)
        return loss + weight * recorder.mean_rate(batch.lengths)

    def configure_optimizers(self) -> Any:
        """AdamW and its schedule."""
        options = self.training_options
        optimiser = torch.optim.AdamW(self.parameters(), lr=options.lr, weight_decay=options.weight_decay)
        updates = int(self.trainer.estimated_stepping_batches)
        schedule = torch.optim.lr_scheduler.OneCycleLR(
            optimiser, options.lr, total_steps=updates, pct_start=0.1, cycle_momentum=False
        )
        return {"optimizer": optimiser, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}


class _Chosen(Dataset):
    """Batches by the indices of their samples, and which of them are mirrored."""

    def __init__(self, split: Split) -> None:
        self.split = split

    def __getitem__(self, chosen: tuple[Tensor, Tensor]) -> Split:
        indices, mirrored = chosen
        batch = self.split.take(indices)
        if mirrored.any():
            shape = (-1, *[1] * (batch.x.dim() - 1))
            batch = batch._replace(x=torch.where(mirrored.view(shape), batch.x.flip(-1), batch.x))
        return batch


class _Shuffled(Sampler):
    """Batches of an epoch, decided by seed and epoch alone: a resumed run sees what an unbroken one sees."""

    def __init__(self, samples: int, training: Training, seed: int) -> None:
        self.samples, self.training, self.seed, self.epoch = samples, training, seed, 0

    def set_epoch(self, epoch: int) -> None:
        """Called by Lightning before every epoch."""
        self.epoch = epoch

    def __len__(self) -> int:
        # An incomplete last batch is left out, but for a set smaller than one.
        return max(1, self.samples // self.training.batch_size)

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        generator = torch.Generator().manual_seed(1_000_003 * self.seed + self.epoch)
        order = torch.randperm(self.samples, generator=generator)
        for part in order.split(self.training.batch_size)[: len(self)]:
            mirrored = torch.rand(len(part), generator=generator) < (0.5 if self.training.flip else 0.0)
            yield part, mirrored


class _EpochEnds(Callback):
    """Keeps the last finished epoch, and the seconds of all epochs so far."""

    def __init__(self, path: Path, seed: int) -> None:
        self.path, self.seed, self.seconds, self.since = path, seed, 0.0, time.perf_counter()

    def on_train_epoch_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Give dropout the same draws whether the run was resumed or not."""
        torch.manual_seed(1_000_003 * self.seed + trainer.current_epoch)

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Write the checkpoint."""
        now = time.perf_counter()
        self.seconds, self.since = self.seconds + now - self.since, now
        trainer.save_checkpoint(self.path)

    def on_save_checkpoint(self, trainer: Trainer, pl_module: LightningModule, checkpoint: dict[str, Any]) -> None:
        """Put the seconds and the end into it."""
        checkpoint["seconds"] = self.seconds
        checkpoint["finished"] = trainer.current_epoch + 1 == trainer.max_epochs

    def on_load_checkpoint(self, trainer: Trainer, pl_module: LightningModule, checkpoint: dict[str, Any]) -> None:
        """Go on counting."""
        self.seconds = float(checkpoint["seconds"])


class _CheckpointIO(AtomicCheckpointIO):
    def load_checkpoint(self, path: Any, map_location: Any = None, weights_only: bool | None = None) -> dict[str, Any]:
        return _read(Path(path))


def _read(path: Path) -> dict[str, Any]:
    try:
        content: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
        content["state_dict"], content["seconds"], content["finished"]
    except Exception as error:
        # torch raises half a dozen kinds for a damaged file.
        raise DataError(
            "is not the checkpoint of a network of this study; delete it to train again", file=path
        ) from error
    return content


def _fit(net: nn.Module, training: Training, split: Split, seed: int, path: Path) -> dict[str, Any]:
    """Train until the checkpoint says finished; its content."""
    if not (path.is_file() and _read(path)["finished"]):
        for name in ("pytorch_lightning", "lightning.pytorch", "lightning_fabric"):
            logging.getLogger(name).setLevel(logging.ERROR)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", module=r"(pytorch_lightning|lightning_fabric)\.")
            trainer = Trainer(
                max_epochs=training.epochs, accelerator="cpu", devices=1, logger=False, barebones=False,
                enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
                callbacks=[_EpochEnds(path, seed)], plugins=[_CheckpointIO()], use_distributed_sampler=False,
                default_root_dir=str(path.parent), gradient_clip_val=1.0,
            )  # fmt: skip
            loader = DataLoader(_Chosen(split), sampler=_Shuffled(len(split.y), training, seed), batch_size=None)
            trainer.fit(Classifier(net, training), loader, ckpt_path=str(path) if path.is_file() else None)
    return _read(path)
