"""Runs of a study: each once, whatever stopped before, and one process at a time."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from neuro import DataError
from scripts.output import only_one
from scripts.studies import runs
from scripts.studies.records import Record, identity, read_record
from scripts.studies.runs import LAST, Run, run_all, training_command
from tests.scripts import tiny


def evaluation(folder: Path, per: float = 0.25) -> None:
    """What `ranvier evaluate` leaves, as far as a study reads it."""
    (folder / runs.EVALUATION).mkdir(parents=True)
    (folder / runs.EVALUATION / "summary.json").write_text(json.dumps({"per": per, "checkpoint": "/some/where"}))
    (folder / runs.EVALUATION / "trials.csv").write_text("key,edits,length,per\nd/val/trial_0000,1,2,0.5\n")


@pytest.fixture
def called(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Commands that would have been started; each leaves what the real one would."""
    seen: list[list[str]] = []

    def call(self: object, arguments: list[str], log: Path) -> None:
        seen.append(arguments)
        if "bad" in log.name:
            raise DataError("`ranvier train` ended with exit code 1", file=log)
        if arguments[0] == "train":
            folder = Path(arguments[arguments.index("--run") + 1])
            (folder / LAST).parent.mkdir(parents=True, exist_ok=True)
            (folder / LAST).touch()
        else:
            evaluation(Path(arguments[1]).parents[1])

    monkeypatch.setattr(runs._Children, "call", call)
    monkeypatch.setattr(runs, "identity", lambda data: {"digest": str(data)})
    return seen


def run_them(
    plan: list[Run], folder: Path, *, data: str = "data", workers: int = 1, report: Callable[[str], None] = print
) -> dict[str, Record]:
    return run_all(plan, folder, Path(data), records=folder / "records", workers=workers, report=report)


def test_each_run_is_trained_and_scored_once(called: list[list[str]], tmp_path: Path) -> None:
    plan = [Run("a", "gru_500k", {"model": {"lr": 0.5}}, seed=7), Run("b", "gru_500k")]
    said: list[str] = []
    results = run_them(plan, tmp_path, report=said.append)
    assert [arguments[0] for arguments in called] == ["train", "evaluate", "train", "evaluate"]
    assert called[0][called[0].index("--seed_everything") + 1] == "7"
    recipe = yaml.safe_load((tmp_path / "a.yaml").read_text())
    assert recipe["model"]["lr"] == 0.5 and recipe["model"]["core"] == "gru"
    assert results["a"].summary == {"per": 0.25}
    assert results["b"].trials == {"d/val/trial_0000": (1, 2)}
    # The last weights are scored: nothing is chosen on the split that is reported.
    assert called[1][1] == str(tmp_path / "a" / LAST)
    called.clear()
    assert run_them(plan, tmp_path, workers=2, report=said.append) == results
    assert not called and sum("finished earlier" in line for line in said) == 2


def test_a_record_is_all_that_must_be_kept(called: list[list[str]], tmp_path: Path) -> None:
    results = run_them([Run("a", "gru_500k")], tmp_path)
    shutil.rmtree(tmp_path / "a")
    called.clear()
    assert run_them([Run("a", "gru_500k")], tmp_path) == results and not called
    assert "some/where" not in (tmp_path / "records" / "a.json").read_text()


@pytest.mark.parametrize(
    ("other", "data", "field"),
    [
        (Run("a", "gru_500k", {"model": {"lr": 0.25}}), "data", "recipe.model.lr"),
        (Run("a", "gru_500k", seed=2), "data", "seed"),
        (Run("a", "gru_500k"), "others", "data.digest"),
    ],
)
def test_a_record_of_something_else_is_never_taken(
    other: Run, data: str, field: str, called: list[list[str]], tmp_path: Path
) -> None:
    run_them([Run("a", "gru_500k")], tmp_path)
    called.clear()
    with pytest.raises(DataError, match=r"made from something else.*--out") as caught:
        run_them([other, Run("b", "gru_500k")], tmp_path, data=data)
    assert field in str(caught.value) and not called


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"trials": 3}', '{"trials": {"a": [1]}}'])
def test_a_damaged_record_is_one_sentence(content: str, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(content)
    with pytest.raises(DataError, match="not the record of a run"):
        read_record(tmp_path / "a.json")


def test_what_was_stopped_in_training_goes_on_from_its_checkpoint(called: list[list[str]], tmp_path: Path) -> None:
    assert training_command(Run("a", "gru_500k"), tmp_path / "a", Path("data"))[:2] == ["fit", "--config"]
    (tmp_path / "a" / LAST).parent.mkdir(parents=True)
    (tmp_path / "a" / LAST).touch()
    (tmp_path / "a" / runs.CLOCK).write_text("100.0")
    record = run_them([Run("a", "gru_500k")], tmp_path)["a"]
    assert called[0][:3] == ["train", "fit", "--resume"]
    assert 100 <= record.training_seconds < 200


def test_a_run_that_fails_ends_the_study_in_a_sentence(called: list[list[str]], tmp_path: Path) -> None:
    with pytest.raises(DataError, match="exit code 1"):
        run_them([Run("bad", "gru_500k")], tmp_path)
    assert read_record(tmp_path / "records" / "bad.json") is None


def test_two_processes_never_share_a_study(tmp_path: Path) -> None:
    folder = tmp_path / "study"
    with only_one(folder, "taken"), pytest.raises(DataError, match="taken"), only_one(folder, "taken"):
        pass
    with only_one(folder, "taken"):
        pass


def test_shuffled_delays_are_the_same_numbers_elsewhere(called: list[list[str]], tmp_path: Path) -> None:
    import torch

    import snn

    net = snn.ResidualSNN(6, 8, 1, max_delay=9)
    source = tmp_path / "a" / LAST
    source.parent.mkdir(parents=True)
    torch.save({"state_dict": net.state_dict(), "global_step": 3}, source)
    (tmp_path / "a" / runs.TRAINED).touch()
    plan = [Run("a-shuffled", "gru_500k", seed=2, shuffles="a"), Run("a", "gru_500k")]
    run_them(plan, tmp_path)
    assert [arguments[0] for arguments in called] == ["evaluate", "evaluate"]
    before = torch.load(source, weights_only=True)["state_dict"]
    after = torch.load(tmp_path / "a-shuffled" / LAST, weights_only=True)["state_dict"]
    for name in before:
        if name.endswith(".delay"):
            assert not torch.equal(before[name], after[name])
            assert torch.equal(before[name].flatten().sort()[0], after[name].flatten().sort()[0])
        else:
            assert torch.equal(before[name], after[name])


def test_weights_that_are_gone_are_trained_again_for_what_is_made_of_them(
    called: list[list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "shuffle_delays", lambda source, target, seed: target.parent.mkdir(parents=True))
    run_them([Run("a", "gru_500k")], tmp_path)
    shutil.rmtree(tmp_path / "a")
    called.clear()
    results = run_them([Run("a", "gru_500k"), Run("s", "gru_500k", shuffles="a")], tmp_path)
    assert [arguments[0] for arguments in called] == ["train", "evaluate", "evaluate"] and set(results) == {"a", "s"}


def test_recordings_differ_by_their_trials(tmp_path: Path) -> None:
    one, same, other = (tiny.write_tree(tmp_path / name, n=n) for name, n in (("a", 6), ("b", 6), ("c", 9)))
    assert identity(one) == identity(same) != identity(other)
    assert identity(one)["channels"] == 8 and identity(one)["trials"]["train"] == 4
