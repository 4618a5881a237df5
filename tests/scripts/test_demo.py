"""The demo end to end, with so few trials and updates that nothing is learned: only the plumbing is looked at."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("pytorch_lightning", reason="the demo trains, which needs ranvier[train]")

from scripts import cli, demo


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "SESSIONS", 1)
    monkeypatch.setattr(demo, "TRIALS", 16)


def test_demo_end_to_end(small: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "demo"
    assert cli.main(["demo", "--out", str(out), "--updates", "2"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    for words in (
        "simulated",
        "SIMULATED",
        "spiking",
        "GRU",
        "chance",
        "empty output",
        "run of SIL",
        "95 %",
        "spike rate",
    ):
        assert words in text, words
    summary = json.loads((out / "summary.json").read_text())
    assert summary["source"] == "simulated participant"
    snn, gru = summary["decoders"]["residual_snn"], summary["decoders"]["gru"]
    assert snn["parameters"]["core"] == pytest.approx(65_000, rel=0.05)
    assert gru["parameters"]["core"] == pytest.approx(snn["parameters"]["core"], rel=0.05)
    assert snn["spike_rate"] is not None and gru["spike_rate"] is None
    assert (out / "learning_curve.png").is_file()
    for name in demo.CONTESTANTS:
        assert (out / name / "evaluation-val" / "trial.png").is_file()

    # A second demo keeps the first, unless it is told to replace it.
    assert cli.main(["demo", "--out", str(out)]) == 2
    assert "--overwrite" in capsys.readouterr().err
    assert (out / "summary.json").is_file()


def test_a_folder_of_something_else_is_never_replaced(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    assert cli.main(["demo", "--out", str(tmp_path), "--overwrite"]) == 2
    assert "was not" in capsys.readouterr().err
    assert (tmp_path / "thesis.txt").read_text() == "mine"


def test_an_earlier_demo_is_replaced_when_asked(
    small: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "demo"
    out.mkdir()
    (out / demo.MARKER).touch()
    (out / "old.txt").touch()

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(demo, "_stage", stop)
    assert cli.main(["demo", "--out", str(out), "--overwrite"]) == cli.INTERRUPTED
    assert not (out / "old.txt").exists()


def test_both_recipes_make_the_same_number_of_updates() -> None:
    import yaml

    from scripts.train import find_recipe

    plans = [yaml.safe_load(find_recipe(c.recipe).read_text()) for c in demo.CONTESTANTS.values()]
    assert len({(plan["trainer"]["max_steps"], plan["data"]["batch_size"]) for plan in plans}) == 1
