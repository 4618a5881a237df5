import io
from pathlib import Path

import pytest
import torch
from rich.console import Console
from torch import nn

from decoders.training import Checkpoints
from decoders.training.callbacks import CURVE_COLUMNS, GradientCheck, append_row, keep_rows, layers_without_gradient
from decoders.training.progress import RunProgress, summary
from neuro import DataError
from tests.decoders.training.tiny import make_data, make_task, trainer_for


def test_the_curve_has_a_row_for_each_interval_and_validation(recording: Path, tmp_path: Path) -> None:
    task = make_task()
    trainer = trainer_for(tmp_path, max_steps=6, val_check_interval=3, check_val_every_n_epoch=None)
    trainer.fit(task, datamodule=make_data(recording))
    header, *rows = (tmp_path / "learning_curve.csv").read_text().splitlines()
    assert header.split(",") == list(CURVE_COLUMNS)
    cells = [dict(zip(CURVE_COLUMNS, row.split(","), strict=True)) for row in rows]
    assert [int(row["update"]) for row in cells] == [2, 3, 4, 6, 6]
    assert [bool(row["val_per"]) for row in cells] == [False, True, False, False, True]
    assert all(0 < float(row["train_rate"]) < 1 for row in cells if row["train_rate"])
    assert {"train_loss", "train_rate", "lr", "val_loss", "val_per", "val_rate"} <= set(task.latest)


def test_rows_after_the_checkpoint_are_dropped(tmp_path: Path) -> None:
    path = tmp_path / "curve.csv"
    keep_rows(path, 5)
    assert not path.exists()
    for step in (2, 4, 6):
        append_row(path, {"update": step, "train_loss": 1 / 3})
    keep_rows(path, 4)
    assert [line.split(",")[0] for line in path.read_text().splitlines()] == ["update", "2", "4"]
    keep_rows(path, 0)
    assert len(path.read_text().splitlines()) == 1


def test_layers_that_no_gradient_reaches_are_named(recording: Path, tmp_path: Path) -> None:
    task = make_task()
    first = task.decoder.core.net.blocks[0]  # type: ignore[union-attr,index]
    first.neuron.threshold = 1e9  # silent, and far beyond its surrogate
    task.decoder.core.net.neuron.threshold = 1e9  # type: ignore[union-attr]
    check = GradientCheck()
    trainer = trainer_for(tmp_path, max_steps=1, limit_val_batches=0, callbacks=check)
    with pytest.warns(UserWarning, match="no gradient reaches .*blocks"):
        trainer.fit(task, datamodule=make_data(recording))
    assert check.silent and any("blocks.0.layer" in name for name in check.silent)
    assert "decoder.head" not in check.silent


def test_a_healthy_model_is_not_complained_about() -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1))
    assert layers_without_gradient(model) == ["0", "2"]
    model(torch.randn(5, 3)).sum().backward()
    assert layers_without_gradient(model) == []
    model[0].weight.requires_grad_(False), model[0].bias.requires_grad_(False)
    model.zero_grad()
    assert layers_without_gradient(model) == ["2"]


@pytest.mark.parametrize("terminal", [True, False])
def test_progress_shows_error_and_spike_rates(terminal: bool, recording: Path, tmp_path: Path) -> None:
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=terminal, width=200)
    bar = RunProgress(console)
    trainer = trainer_for(
        tmp_path,
        max_steps=4,
        val_check_interval=2,
        check_val_every_n_epoch=None,
        callbacks=bar,
        enable_progress_bar=None,
    )
    trainer.fit(make_task(), datamodule=make_data(recording))
    text = stream.getvalue()
    assert "PER" in text and "spikes" in text and ("4/4" in text)


def test_summary_leaves_out_what_is_not_known() -> None:
    assert summary({}) == ""
    assert summary({"val_per": 0.5, "val_rate": 0.1}, float("inf")) == "PER 50.0%  val spikes 10.0%"


@pytest.mark.parametrize("options", [{"every_steps": 0}, {"every_minutes": -1.0}])
def test_intervals_must_be_positive(options: dict) -> None:
    with pytest.raises(DataError, match="above 0"):
        Checkpoints(**options)


def test_minutes_write_checkpoints_too(recording: Path, tmp_path: Path) -> None:
    checkpoints = Checkpoints(every_minutes=1e-6)
    saved = []
    checkpoints._save = lambda trainer, task, name, **_: saved.append((trainer.global_step, name))  # type: ignore
    trainer = trainer_for(tmp_path, max_steps=3, limit_val_batches=0)
    trainer.callbacks = [c for c in trainer.callbacks if not isinstance(c, Checkpoints)] + [checkpoints]
    trainer.fit(make_task(), datamodule=make_data(recording))
    assert saved[:3] == [(1, "last"), (2, "last"), (3, "last")]
