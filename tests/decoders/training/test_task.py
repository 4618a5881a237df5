import pickle
from pathlib import Path

import pytest
import torch

from decoders.training import PhonemeTask, read_checkpoint
from decoders.training.meters import Means
from decoders.training.task import CHECKPOINT_KEY
from neuro import DataError, collate
from tests.decoders.training.tiny import SESSIONS, assert_same, make_data, make_task, trainer_for, weights


@pytest.fixture(scope="module")
def run(recording: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of nine updates with three validations."""
    folder = tmp_path_factory.mktemp("run")
    trainer = trainer_for(folder, val_check_interval=3, check_val_every_n_epoch=None)
    trainer.fit(make_task(), datamodule=make_data(recording))
    return folder


@pytest.mark.slow
def test_it_learns(recording: Path, tmp_path: Path) -> None:
    task = make_task(rate_weight=0.0, width=32, core_options={"depth": 1, "max_delay": 3}, lr=2e-2)
    trainer = trainer_for(tmp_path, max_steps=300, log_every_n_steps=50, limit_val_batches=0)
    trainer.fit(task, datamodule=make_data(recording, augmentations=None, batch_size=15))
    assert task.latest["train_loss"] < 0.3


def test_a_checkpoint_alone_rebuilds_the_model(run: Path, recording: Path) -> None:
    task = PhonemeTask.load(run / "checkpoints" / "best.ckpt")
    assert not task.training and task.recordings["sessions"] == list(SESSIONS)
    assert task.recordings["form"] == "b2t25" and task.recordings["normalized"] is True
    assert task.latest["val_per"] > 0
    checkpoint = torch.load(run / "checkpoints" / "last.ckpt", weights_only=True)
    assert_same(weights(PhonemeTask.load(run / "checkpoints" / "last.ckpt")), checkpoint["state_dict"])
    view = make_data(recording).recordings.split("val")
    batch = collate([view[0], view[1]], view.sessions)
    logits, lengths = task(batch)
    assert logits.shape[1:] == (2, 41) and torch.equal(lengths, batch.lengths)


def test_lightning_can_load_it_too(run: Path) -> None:
    path = run / "checkpoints" / "best.ckpt"
    loaded = PhonemeTask.load_from_checkpoint(path, map_location="cpu", weights_only=True)
    assert_same(weights(loaded), weights(PhonemeTask.load(path)))


def test_loading_runs_nothing_and_names_what_is_wrong(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such checkpoint"):
        PhonemeTask.load(tmp_path / "absent.ckpt")
    bad = tmp_path / "bad.ckpt"
    bad.write_bytes(b"\x80\x04 not a checkpoint")
    with pytest.raises(DataError, match="cannot be read safely"):
        PhonemeTask.load(bad)
    torch.save({"state_dict": {}, CHECKPOINT_KEY: Path("/tmp")}, bad)
    with pytest.raises(DataError, match="cannot be read safely"):
        PhonemeTask.load(bad)
    with bad.open("wb") as file:
        pickle.dump(print, file)
    with pytest.raises(DataError, match="cannot be read safely"):
        PhonemeTask.load(bad)
    torch.save({"state_dict": {}, CHECKPOINT_KEY: {}}, bad)
    with pytest.raises(DataError, match=r"does not name.*options"):
        PhonemeTask.load(bad)
    torch.save({"model": torch.zeros(1)}, bad)
    with pytest.raises(DataError, match="no checkpoint of a phoneme decoder"):
        PhonemeTask.load(bad)


def test_damaged_weights_are_never_scored(run: Path, tmp_path: Path) -> None:
    best = run / "checkpoints" / "best.ckpt"
    content = bytearray(best.read_bytes())
    middle = len(content) // 2
    content[middle : middle + 64] = bytes(64)
    (tmp_path / "flipped.ckpt").write_bytes(content)
    with pytest.raises(DataError, match=r"damaged"):
        PhonemeTask.load(tmp_path / "flipped.ckpt")
    checkpoint = read_checkpoint(best)
    name = next(name for name, value in checkpoint["state_dict"].items() if value.is_floating_point())
    checkpoint["state_dict"][name].fill_(float("nan"))
    torch.save(checkpoint, tmp_path / "nan.ckpt")
    with pytest.raises(DataError, match="not finite"):
        PhonemeTask.load(tmp_path / "nan.ckpt")


def test_weights_that_do_not_fit_are_named(run: Path, tmp_path: Path) -> None:
    checkpoint = read_checkpoint(run / "checkpoints" / "best.ckpt")
    checkpoint["hyper_parameters"]["width"] = 9
    torch.save(checkpoint, tmp_path / "wrong.ckpt")
    with pytest.raises(DataError, match="do not fit"):
        PhonemeTask.load(tmp_path / "wrong.ckpt")


def test_options_that_a_checkpoint_cannot_keep_are_refused() -> None:
    with pytest.raises(TypeError, match="cannot keep"):
        make_task(core_options={"depth": 1, "max_delay": 3, "spike_grad": torch.sigmoid})


def test_figures_come_from_real_frames_and_all_trials(recording: Path, tmp_path: Path) -> None:
    figures = []
    for batch_size in (1, 2, 6):  # other batches, other padding
        task = make_task()
        trainer = trainer_for(tmp_path)
        data = make_data(recording, val_batch_size=batch_size)
        figures.append(trainer.validate(task, datamodule=data, verbose=False)[0])
    for other in figures[1:]:
        assert other["val_per"] == figures[0]["val_per"]
        assert other["val_rate"] == pytest.approx(figures[0]["val_rate"], rel=1e-5)
        assert other["val_loss"] == pytest.approx(figures[0]["val_loss"], rel=1e-4)


def test_the_rate_penalty_lowers_activity(recording: Path, tmp_path: Path) -> None:
    rates = {}
    for weight in (0.0, 5.0):
        task = make_task(rate_weight=weight, target_rate=0.02, lr=3e-2, schedule="constant")
        trainer = trainer_for(tmp_path / str(weight), max_steps=40, check_val_every_n_epoch=None, val_check_interval=40)
        trainer.fit(task, datamodule=make_data(recording))
        rates[weight] = task.latest["val_rate"]
    assert rates[5.0] < 0.6 * rates[0.0]


def test_activity_under_the_target_costs_nothing(recording: Path, tmp_path: Path) -> None:
    losses = []
    for weight in (0.0, 5.0):
        trainer = trainer_for(tmp_path / str(weight), max_steps=4, limit_val_batches=0)
        task = make_task(rate_weight=weight, target_rate=1.0)
        trainer.fit(task, datamodule=make_data(recording))
        losses.append(weights(task))
    assert_same(*losses)


def test_cores_without_spikes_have_no_rate(recording: Path, tmp_path: Path) -> None:
    task = make_task(core="gru", core_options={"depth": 1})
    trainer = trainer_for(tmp_path, max_steps=2, val_check_interval=2, check_val_every_n_epoch=None)
    trainer.fit(task, datamodule=make_data(recording))
    assert not task.spiking and not {"train_rate", "val_rate"} & set(task.latest)


def test_bf16(recording: Path, tmp_path: Path) -> None:
    task = make_task(core="gru", core_options={"depth": 1})
    trainer = trainer_for(
        tmp_path, max_steps=4, precision="bf16-mixed", val_check_interval=4, check_val_every_n_epoch=None
    )
    trainer.fit(task, datamodule=make_data(recording))
    assert all(torch.isfinite(tensor).all() and tensor.dtype != torch.bfloat16 for tensor in weights(task).values())
    assert 0 < task.latest["train_loss"] < 50


def test_a_run_without_an_end_is_refused(recording: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"trainer.max_steps"):
        trainer_for(tmp_path, max_steps=-1, max_epochs=-1).fit(make_task(), datamodule=make_data(recording))


def test_means_survive_a_checkpoint_exactly() -> None:
    means, copy = Means(), Means()
    for k in range(7):
        means.add(loss=torch.tensor(1 / (k + 3)), rate=torch.tensor(0.1) * k)
    copy.load_state_dict(means.state_dict())
    means.add(loss=torch.tensor(0.3), weight=2.0)
    copy.add(loss=torch.tensor(0.3), weight=2.0)
    assert means.finite() and means.take() == copy.take()
    means.add(loss=torch.tensor(float("nan")))
    assert not means.finite()
