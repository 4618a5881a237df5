"""Two processes train what one would."""

import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from decoders.training import PhonemeTask, last_checkpoint
from neuro import DataError
from tests.decoders.training.tiny import assert_same, make_data, make_task, trainer_for

SCRIPT = """
import sys, torch
from pathlib import Path
from pytorch_lightning import Callback
from snn import MaskedBatchNorm
from tests.decoders.training.tiny import make_data, make_task, trainer_for
torch.set_num_threads(1)

class Gradients(Callback):
    'Keeps the gradients of the first update, with the norms in evaluation mode.'
    def on_train_start(self, trainer, task):
        for module in task.modules():
            if isinstance(module, MaskedBatchNorm):
                module.eval()
    def on_before_optimizer_step(self, trainer, task, optimizer):
        found = {name: p.grad.clone() for name, p in task.named_parameters()}
        torch.save(found, out / f"gradients{trainer.global_rank}.pt")

recording, out, world = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
options = {"devices": world, "strategy": "ddp"} if world > 1 else {}
# Activity is above this target in the union, whatever it is in one process's share.
task = make_task(core_options={"depth": 1, "max_delay": 3}, day_dropout=0.0, target_rate=0.01, rate_weight=1.0)
trainer = trainer_for(
    out / "one", max_steps=1, limit_val_batches=0, gradient_clip_val=None, callbacks=Gradients(), **options
)
trainer.fit(task, datamodule=make_data(recording, augmentations=None, batch_size=8))

task = make_task()
trainer = trainer_for(out / "fit", max_steps=6, val_check_interval=3, check_val_every_n_epoch=None, **options)
trainer.fit(task, datamodule=make_data(recording, batch_size=8, val_batch_size=5))
torch.save({"weights": task.state_dict(), "latest": task.latest}, out / f"end{trainer.global_rank}.pt")
"""


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def run(recording: Path, out: Path, world: int) -> None:
    """The script in ``world`` processes, started as a cluster's launcher would."""
    root = Path(__file__).resolve().parents[3]
    out.mkdir()
    common = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "OMP_NUM_THREADS": "1", "NODE_RANK": "0"}
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", SCRIPT, str(recording), str(out), str(world)],
            cwd=root,
            env={**os.environ, "PYTHONPATH": str(root), **(common if world > 1 else {}), "LOCAL_RANK": str(rank)},
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(world)
    ]
    try:
        for process in processes:
            assert process.wait(900) == 0, process.communicate()[1]
    finally:
        for process in processes:
            process.kill()


@pytest.fixture(scope="module")
def runs(recording: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    folder = tmp_path_factory.mktemp("ddp")
    for world in (1, 2):
        run(recording, folder / str(world), world)
    return {world: folder / str(world) for world in (1, 2)}


def load(path: Path) -> Any:
    return torch.load(path, weights_only=True)


@pytest.mark.slow
def test_gradients_are_those_of_the_union_batch(runs: dict[int, Path]) -> None:
    one = load(runs[1] / "gradients0.pt")
    two = [load(runs[2] / f"gradients{rank}.pt") for rank in (0, 1)]
    assert_same(*two)
    for name, gradient in one.items():
        torch.testing.assert_close(two[0][name], gradient, rtol=1e-4, atol=1e-6, msg=name)
    assert sum(float(gradient.abs().sum()) for gradient in one.values()) > 0.1


@pytest.mark.slow
def test_both_processes_end_with_the_same_weights_and_figures(runs: dict[int, Path]) -> None:
    ends = [load(runs[2] / f"end{rank}.pt") for rank in (0, 1)]
    assert_same(ends[0]["weights"], ends[1]["weights"])
    assert ends[0]["latest"] == ends[1]["latest"] and "val_per" in ends[0]["latest"]


@pytest.mark.slow
def test_every_validation_trial_counts_once(runs: dict[int, Path], recording: Path, tmp_path: Path) -> None:
    # Six trials, five a batch over two processes: the last batch is filled up with copies that must not count.
    checkpoint = last_checkpoint(runs[2] / "fit")
    assert checkpoint is not None
    task = PhonemeTask.load(checkpoint)
    figures = trainer_for(tmp_path).validate(task, datamodule=make_data(recording), verbose=False)[0]
    for name, value in figures.items():
        assert load(runs[2] / "end0.pt")["latest"][name] == pytest.approx(value, rel=1e-4)


def test_a_batch_that_cannot_be_shared_is_refused(recording: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = make_data(recording, batch_size=4)
    monkeypatch.setattr(type(data), "_world", 3)
    with pytest.raises(DataError, match="equally among 3 processes"):
        data.setup("fit")


def test_make_task_is_the_same_in_every_process() -> None:
    assert_same(make_task().state_dict(), make_task().state_dict())
