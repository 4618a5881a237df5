import pickle
from pathlib import Path

import pytest
import torch

from decoders.training import RecordingsData
from decoders.training.batches import NumberedBatch, SomeTrials, available_memory
from neuro import DataError
from neuro.augment import AUGMENTATIONS
from tests.decoders.training.tiny import SESSIONS, make_data, make_task, trainer_for, write_recording


def batches(data: RecordingsData) -> list[NumberedBatch]:
    data.setup("fit")
    return list(data.train_dataloader())


def test_an_epoch_is_one_pass_or_a_stated_number_of_updates(recording: Path) -> None:
    assert len(batches(make_data(recording))) == 4  # 15 trials, 4 a batch
    assert len(batches(make_data(recording, updates_per_epoch=7))) == 7


def test_the_same_seed_gives_the_same_batches_with_and_without_workers_and_cache(recording: Path) -> None:
    one = batches(make_data(recording, updates_per_epoch=3))
    for other in (
        batches(make_data(recording, updates_per_epoch=3, cache=False)),
        batches(make_data(recording, updates_per_epoch=3, num_workers=2)),
    ):
        assert [batch.keys for batch in one] == [batch.keys for batch in other]
        assert all(torch.equal(a.features, b.features) for a, b in zip(one, other, strict=True))
    assert [batch.keys for batch in one] != [b.keys for b in batches(make_data(recording, updates_per_epoch=3, seed=2))]


def test_what_a_checkpoint_remembers(recording: Path) -> None:
    known = make_data(recording).describe()
    assert known["sessions"] == list(SESSIONS) and known["form"] == "b2t25" and known["normalized"] is True
    assert len(known["phonemes"]) == 41 and known["phonemes"][40] == "SIL"


def test_validation_sees_every_trial_once(recording: Path) -> None:
    data = make_data(recording, val_batch_size=4)
    data.setup("validate")
    loaded = list(data.val_dataloader())
    keys = [key for batch in loaded for key in batch.keys[: batch.counted]]
    assert len(keys) == len(set(keys)) == 6
    assert [len(batch) for batch in data.val_dataloader()] == [4, 2]  # and again


def test_augmentation_depends_on_seed_and_number_alone(recording: Path, tmp_path: Path) -> None:
    data = make_data(recording)
    trainer = trainer_for(tmp_path)
    data.trainer = trainer
    trainer.training = True
    trainer.datamodule = data  # type: ignore[attr-defined]
    data.train_trials = SomeTrials(data.recordings.split("train"), torch.arange(15).numpy(), True)
    plan_batch = next(iter(data.train_dataloader()))
    once, twice = data.on_after_batch_transfer(plan_batch, 0), data.on_after_batch_transfer(plan_batch, 0)
    assert torch.equal(once.features, twice.features) and isinstance(once, NumberedBatch)
    assert not torch.equal(once.features, plan_batch.features)
    trainer.training, trainer.validating = False, True
    assert data.on_after_batch_transfer(plan_batch, 0) is plan_batch


@pytest.mark.parametrize("name", AUGMENTATIONS)
def test_every_augmentation_can_be_asked_for_by_name(name: str, recording: Path) -> None:
    options = {"random_cut": {"max_bins": 1}, "time_mask": {"n_masks": 1, "max_fraction": 0.1}}
    data = make_data(recording, augmentations={name: options.get(name, {"sd": 0.1})})
    assert [type(step) for step in data.augment.steps] == [AUGMENTATIONS[name]]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"augmentations": {"noise": {"sd": 1}}}, "unknown augmentation.*noise.*white_noise"),
        ({"augmentations": {"white_noise": {"std": 1}}}, "refused.*std"),
        ({"augmentations": {"white_noise": {"sd": -1}}}, "sd must be 0"),
        ({"batch_size": 0}, "data.batch_size"),
        ({"days_per_batch": 2, "sort_by_length": True}, "exclude each other"),
    ],
)
def test_bad_options_are_refused_in_a_sentence(options: dict, words: str, recording: Path) -> None:
    with pytest.raises(DataError, match=words):
        make_data(recording, **options)


def test_an_empty_validation_split_is_named(tmp_path: Path) -> None:
    data = make_data(write_recording(tmp_path / "data", val_trials=0))
    with pytest.raises(DataError, match=r"val.*empty"):
        data.setup("fit")


def test_infeasible_trials_are_counted_named_and_left_out(tmp_path: Path) -> None:
    path = write_recording(tmp_path / "data", hard=2)
    trainer, task, data = trainer_for(tmp_path / "run", max_steps=1), make_task(), make_data(path)
    with pytest.warns(UserWarning, match=r"2 of 15 training trials.*t15\.2023\.08\.11/train/trial_0000.*at least"):
        trainer.fit(task, datamodule=data)
    assert data.train_trials is not None and len(data.train_trials) == 13


def test_infeasible_trials_stop_the_run_when_asked_to(tmp_path: Path) -> None:
    path = write_recording(tmp_path / "data", hard=1)
    data = make_data(path, infeasible="stop", augmentations=None)
    with pytest.raises(DataError, match=r"1 of 15.*trial_0000"):
        trainer_for(tmp_path / "run").fit(make_task(), datamodule=data)


def test_pooling_makes_more_trials_infeasible(tmp_path: Path) -> None:
    # 4 to 7 bins a phoneme: four bins a frame leave at least one frame a phoneme, eight do not.
    data = make_data(write_recording(tmp_path / "data"), augmentations=None)
    trainer = trainer_for(tmp_path / "run", max_steps=1)
    with pytest.raises(DataError, match="15 of 15"):
        trainer.fit(make_task(patch=(8, 8), core="gru", core_options=None), datamodule=data)


def test_trials_are_read_once_when_kept(recording: Path) -> None:
    view = make_data(recording).recordings.split("train")
    kept = SomeTrials(view, torch.arange(15).numpy(), True)
    assert kept[3] is kept[3]
    assert len(pickle.loads(pickle.dumps(kept))) == 15
    assert available_memory() > 2**20


def test_too_large_for_memory_is_said_and_not_kept(recording: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("decoders.training.data.available_memory", lambda: 1000)
    data = make_data(recording)
    with pytest.warns(UserWarning, match="more than half of the free memory"):
        data.setup("fit")
    assert data.train_trials is not None and not data.train_trials.keep
