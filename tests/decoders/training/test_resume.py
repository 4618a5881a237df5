"""A run that was killed and resumed ends like one that was not, wherever it was killed."""

import csv
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from pytorch_lightning import Callback

from decoders.training import Interrupted, PhonemeTask, last_checkpoint
from decoders.training.checkpoints import AtomicCheckpointIO
from neuro import DataError
from tests.decoders.training.tiny import assert_same, make_data, make_task, trainer_for, weights, write_recording

# Validation in the middle of an epoch, at its end, never; by epochs and by updates; several batches an update.
SETTINGS: dict[str, dict[str, Any]] = {
    "by updates": {"max_steps": 9, "val_check_interval": 3, "check_val_every_n_epoch": None},
    "by epochs": {"max_steps": -1, "max_epochs": 3},
    "twice an epoch": {"max_steps": 9, "val_check_interval": 2},
    "no validation": {"max_steps": 9, "limit_val_batches": 0},
    "every update": {"max_steps": 9, "val_check_interval": 1, "check_val_every_n_epoch": None},
    "two batches an update": {
        "max_steps": 5,
        "val_check_interval": 4,
        "check_val_every_n_epoch": None,
        "accumulate_grad_batches": 2,
    },
}


class KeepEveryLast(Callback):
    """Copies every ``last.ckpt`` as a kill right after its writing would leave the folder."""

    def __init__(self, run: Path, copies: Path) -> None:
        self.run, self.copies = run, copies
        self.validated: list[int] = []

    def _copy(self) -> None:
        last = last_checkpoint(self.run)
        if last is not None:
            step = torch.load(last, weights_only=True)["global_step"]
            if not (self.copies / str(step)).exists():
                shutil.copytree(self.run, self.copies / str(step))

    def on_train_batch_start(self, *_: Any) -> None:
        self._copy()

    def on_train_end(self, *_: Any) -> None:
        self._copy()

    def on_validation_start(self, trainer: Any, *_: Any) -> None:
        self.validated.append(trainer.global_step)


def curve(run: Path) -> list[dict[str, str]]:
    with (run / "learning_curve.csv").open() as file:
        return [{name: value for name, value in row.items() if name != "seconds"} for row in csv.DictReader(file)]


@pytest.mark.parametrize("setting", SETTINGS)
def test_resuming_from_any_update_ends_the_same(setting: str, recording: Path, tmp_path: Path) -> None:
    options = SETTINGS[setting]
    whole, copies = tmp_path / "whole", tmp_path / "copies"
    spy = KeepEveryLast(whole, copies)
    task = make_task()
    trainer_for(whole, every_steps=1, callbacks=spy, **options).fit(task, datamodule=make_data(recording))
    steps = sorted(int(path.name) for path in copies.iterdir())
    final = max(steps)
    assert steps == list(range(1, final + 1))
    assert spy.validated or options.get("limit_val_batches") == 0
    for step in steps:
        run = copies / str(step)
        resumed, again = make_task(seed=1), KeepEveryLast(run, tmp_path / f"again{step}")
        with torch.no_grad():  # nothing of the first weights may matter
            for parameter in resumed.parameters():
                parameter.add_(1.0)
        trainer = trainer_for(run, every_steps=1, callbacks=again, **options)
        trainer.fit(resumed, datamodule=make_data(recording), ckpt_path=last_checkpoint(run))
        assert trainer.global_step == final
        assert_same(weights(task), weights(resumed))
        assert again.validated == [at for at in spy.validated if at > step]
        assert curve(run) == curve(whole)
        assert trainer.checkpoint_callback.best_per == pytest.approx(  # type: ignore[union-attr]
            min((float(row["val_per"]) for row in curve(whole) if row["val_per"]), default=float("inf"))
        )


@pytest.mark.parametrize("setting", SETTINGS)
def test_stopping_after_every_single_update_ends_the_same(setting: str, recording: Path, tmp_path: Path) -> None:
    options, whole, run = SETTINGS[setting], make_task(), tmp_path / "stopped"
    trainer = trainer_for(tmp_path / "whole", **options)
    trainer.fit(whole, datamodule=make_data(recording))
    for step in range(1, trainer.global_step):
        with pytest.raises(Interrupted) as stopped:
            trainer_for(run, callbacks=SignalAt(step), **options).fit(
                make_task(), datamodule=make_data(recording), ckpt_path=last_checkpoint(run)
            )
        assert stopped.value.step == step
    last = make_task()
    trainer_for(run, **options).fit(last, datamodule=make_data(recording), ckpt_path=last_checkpoint(run))
    assert_same(weights(whole), weights(last))
    assert curve(run) == curve(tmp_path / "whole")


def test_a_longer_run_goes_on_in_mid_epoch(recording: Path, tmp_path: Path) -> None:
    tasks = [make_task(schedule="constant"), make_task(schedule="constant"), make_task(schedule="constant")]
    trainer_for(tmp_path / "long", max_steps=10).fit(tasks[0], datamodule=make_data(recording))
    trainer_for(tmp_path / "short", max_steps=6).fit(tasks[1], datamodule=make_data(recording))
    with pytest.warns(UserWarning, match="planned for 6 updates"):
        trainer_for(tmp_path / "short", max_steps=10).fit(
            tasks[2], datamodule=make_data(recording), ckpt_path=last_checkpoint(tmp_path / "short")
        )
    assert_same(weights(tasks[0]), weights(tasks[2]))


def test_workers_and_cache_change_nothing(recording: Path, tmp_path: Path) -> None:
    ends = []
    for name, options in {"plain": {}, "workers": {"num_workers": 1}, "uncached": {"cache": False}}.items():
        task = make_task()
        trainer_for(tmp_path / name, max_steps=6).fit(task, datamodule=make_data(recording, **options))
        ends.append(weights(task))
    assert_same(ends[0], ends[1])
    assert_same(ends[0], ends[2])


def test_resuming_with_workers(recording: Path, tmp_path: Path) -> None:
    tasks = [make_task() for _ in range(3)]
    trainer_for(tmp_path / "whole").fit(tasks[0], datamodule=make_data(recording, num_workers=1))
    part = tmp_path / "part"
    with pytest.raises(Interrupted):
        trainer_for(part, callbacks=SignalAt(5)).fit(tasks[1], datamodule=make_data(recording, num_workers=1))
    trainer_for(part).fit(tasks[2], datamodule=make_data(recording, num_workers=1), ckpt_path=last_checkpoint(part))
    assert_same(weights(tasks[0]), weights(tasks[2]))


class SignalAt(Callback):
    """Sends this process a signal while an update is in progress."""

    def __init__(self, step: int, number: int = signal.SIGINT) -> None:
        self.step, self.number = step, number

    def on_before_optimizer_step(self, trainer: Any, *_: Any) -> None:
        if trainer.global_step == self.step - 1:
            os.kill(os.getpid(), self.number)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_ctrl_c_finishes_the_update_and_saves(number: int, code: int, recording: Path, tmp_path: Path) -> None:
    before = signal.getsignal(number)
    with pytest.raises(Interrupted) as stopped:
        trainer_for(tmp_path, callbacks=SignalAt(4, number)).fit(make_task(), datamodule=make_data(recording))
    assert stopped.value.code == code and stopped.value.step == 4 and stopped.value.checkpoint.exists()
    assert signal.getsignal(number) == before
    whole, resumed = make_task(), make_task()
    trainer_for(tmp_path / "whole").fit(whole, datamodule=make_data(recording))
    trainer_for(tmp_path).fit(resumed, datamodule=make_data(recording), ckpt_path=last_checkpoint(tmp_path))
    assert_same(weights(whole), weights(resumed))


def test_a_failed_write_leaves_the_old_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    io, path = AtomicCheckpointIO(), tmp_path / "last.ckpt"
    io.save_checkpoint({"ranvier": {}, "state_dict": {"w": torch.ones(3)}}, path)

    def half(checkpoint: Any, file: Any) -> None:
        file.write(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(torch, "save", half)
    with pytest.raises(OSError, match="No space left"):
        io.save_checkpoint({"ranvier": {}, "state_dict": {}}, path)
    assert torch.equal(io.load_checkpoint(path)["state_dict"]["w"], torch.ones(3))
    assert [file.name for file in tmp_path.iterdir()] == ["last.ckpt"]


def test_other_data_are_refused(recording: Path, tmp_path: Path) -> None:
    with pytest.raises(Interrupted):
        trainer_for(tmp_path / "run", callbacks=SignalAt(2)).fit(make_task(), datamodule=make_data(recording))
    fewer = write_recording(tmp_path / "fewer", sessions=("t15.2023.08.11", "t15.2023.08.13"))
    with pytest.raises(DataError, match=r"the data differ.*sessions"):
        trainer_for(tmp_path / "run").fit(
            make_task(), datamodule=make_data(fewer), ckpt_path=last_checkpoint(tmp_path / "run")
        )


def test_diverging_stops_in_a_sentence_and_keeps_the_last_good_checkpoint(recording: Path, tmp_path: Path) -> None:
    class Poison(Callback):
        def on_train_batch_start(self, trainer: Any, task: PhonemeTask, *_: Any) -> None:
            if trainer.global_step == 5:
                task.decoder.head.weight.data.fill_(float("nan"))

    with pytest.raises(DataError, match=r"diverged by update 6.*model\.lr.*last\.ckpt"):
        trainer_for(tmp_path, every_steps=1, callbacks=Poison()).fit(make_task(), datamodule=make_data(recording))
    kept = PhonemeTask.load(tmp_path / "checkpoints" / "last.ckpt")
    assert all(torch.isfinite(tensor).all() for tensor in weights(kept).values())


SCRIPT = """
import sys, time
from pathlib import Path
from pytorch_lightning import Callback
from decoders.training import last_checkpoint
from tests.decoders.training.tiny import make_data, make_task, trainer_for
import torch
torch.set_num_threads(1)

class Slow(Callback):
    def on_train_batch_end(self, *_): time.sleep(0.02)

recording, run, end = sys.argv[1:]
task = make_task()
trainer = trainer_for(Path(run), every_steps=3, max_steps=200, callbacks=Slow(), val_check_interval=70,
                      check_val_every_n_epoch=None)
trainer.fit(task, datamodule=make_data(Path(recording), updates_per_epoch=50), ckpt_path=last_checkpoint(run))
torch.save(task.state_dict(), end)
"""


def test_killed_in_mid_epoch_and_resumed_gives_the_same_weights(recording: Path, tmp_path: Path) -> None:
    root = Path(__file__).resolve().parents[3]

    def start(run: str) -> subprocess.Popen:
        command = [sys.executable, "-c", SCRIPT, str(recording), str(tmp_path / run), str(tmp_path / f"{run}.pt")]
        environment = {**os.environ, "PYTHONPATH": str(root), "OMP_NUM_THREADS": "1"}
        return subprocess.Popen(command, cwd=root, env=environment, stderr=subprocess.PIPE, text=True)

    whole, killed = start("whole"), start("killed")
    last = tmp_path / "killed" / "checkpoints" / "last.ckpt"
    deadline = time.monotonic() + 900
    step = 0
    while step < 60 or step % 50 == 0:  # past the first epoch, into the second
        assert time.monotonic() < deadline and killed.poll() is None, killed.communicate()[1]
        time.sleep(0.01)
        if last.exists():
            step = torch.load(last, weights_only=True)["global_step"]
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    assert step % 50 and not (tmp_path / "killed.pt").exists()
    resumed = start("killed")
    for process in (whole, resumed):
        assert process.wait(900) == 0, process.communicate()[1]
    one, other = (torch.load(tmp_path / f"{run}.pt", weights_only=True) for run in ("whole", "killed"))
    assert_same(one, other)
    assert curve(tmp_path / "whole") == curve(tmp_path / "killed")
