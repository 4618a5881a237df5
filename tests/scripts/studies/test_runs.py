"""Runs of a study: each once, whatever stopped before, and one process at a time."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from neuro import DataError
from scripts.output import only_one
from scripts.studies import runs
from scripts.studies.runs import LAST, Run, read_result, run_all, training_command


def evaluation(folder: Path, per: float = 0.25) -> None:
    """What `ranvier evaluate` leaves, as far as a study reads it."""
    (folder / runs.EVALUATION).mkdir(parents=True)
    (folder / runs.EVALUATION / "summary.json").write_text(json.dumps({"per": per}))
    (folder / runs.EVALUATION / "trials.csv").write_text("key,reference,hypothesis\nd/val/trial_0000,AA SIL,AA\n")


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
    return seen


def test_each_run_is_trained_and_scored_once(called: list[list[str]], tmp_path: Path) -> None:
    plan = [Run("a", "gru_500k", {"model": {"lr": 0.5}}, seed=7), Run("b", "gru_500k")]
    said: list[str] = []
    results = run_all(plan, tmp_path, Path("data"), workers=1, report=said.append)
    assert [arguments[0] for arguments in called] == ["train", "evaluate", "train", "evaluate"]
    assert called[0][called[0].index("--seed_everything") + 1] == "7"
    recipe = yaml.safe_load((tmp_path / "a.yaml").read_text())
    assert recipe["model"]["lr"] == 0.5 and recipe["model"]["core"] == "gru"
    assert results["a"].summary["per"] == 0.25
    assert results["b"].trials == [("d/val/trial_0000", ["AA", "SIL"], ["AA"])]
    # The last weights are scored: nothing is chosen on the split that is reported.
    assert called[1][1] == str(tmp_path / "a" / LAST)
    called.clear()
    run_all(plan, tmp_path, Path("data"), workers=2, report=said.append)
    assert not called and sum("finished earlier" in line for line in said) == 2


def test_what_was_stopped_in_training_goes_on_from_its_checkpoint(called: list[list[str]], tmp_path: Path) -> None:
    assert training_command(Run("a", "gru_500k"), tmp_path / "a", Path("data"))[:2] == ["fit", "--config"]
    (tmp_path / "a" / LAST).parent.mkdir(parents=True)
    (tmp_path / "a" / LAST).touch()
    (tmp_path / "a" / runs.CLOCK).write_text("100.0")
    result = run_all([Run("a", "gru_500k")], tmp_path, Path("data"), workers=1, report=lambda line: None)["a"]
    assert called[0][:3] == ["train", "fit", "--resume"]
    assert 100 <= result.training_seconds < 200


def test_a_run_that_fails_ends_the_study_in_a_sentence(called: list[list[str]], tmp_path: Path) -> None:
    with pytest.raises(DataError, match="exit code 1"):
        run_all([Run("bad", "gru_500k")], tmp_path, Path("data"), workers=1, report=lambda line: None)
    with pytest.raises(DataError, match="not finished"):
        read_result(tmp_path / "bad")


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
    (tmp_path / "a" / "trained").touch()
    run_all([Run("a-shuffled", "x", seed=2, shuffles="a"), Run("a", "x")], tmp_path, Path("d"), workers=1, report=print)
    assert [arguments[0] for arguments in called] == ["evaluate", "evaluate"]
    before = torch.load(source, weights_only=True)["state_dict"]
    after = torch.load(tmp_path / "a-shuffled" / LAST, weights_only=True)["state_dict"]
    for name in before:
        if name.endswith(".delay"):
            assert not torch.equal(before[name], after[name])
            assert torch.equal(before[name].flatten().sort()[0], after[name].flatten().sort()[0])
        else:
            assert torch.equal(before[name], after[name])
