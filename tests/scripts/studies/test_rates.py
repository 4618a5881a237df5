"""The page on learning rates marks the best one of each decoder."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from neuro import DataError
from scripts.studies import rates
from tests.scripts.studies.test_delays import record


def arguments(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    rates.add_arguments(parser)
    return parser.parse_args(words)


def test_runs_differ_in_the_rate_alone() -> None:
    args = arguments("--updates", "70")
    one, other = rates.run_of(args, "snn-d16", 1e-3), rates.run_of(args, "snn-d16", 3e-3)
    assert one.name == "snn-d16@0.001" and other.name == "snn-d16@0.003"
    assert (one.changes["model"]["lr"], other.changes["model"]["lr"]) == (1e-3, 3e-3)
    assert {**one.changes, "model": None} == {**other.changes, "model": None} and one.recipe == other.recipe


def test_the_page_marks_the_best_rate(tmp_path: Path) -> None:
    args = arguments("--out", str(tmp_path), "--only-page")
    recipe = {"trainer": {"max_steps": 70}, "data": {"batch_size": 16}, "model": {"budget": "500k"}}
    for name, wrong in {"gru@0.001": 8, "gru@0.003": 4, "snn-d16@0.001": 2, "snn-d16@0.003": 6}.items():
        made = record(wrong, spike_rate=None)
        made.made_from["recipe"] = recipe
        made.write(tmp_path / "rates" / f"{name}.json")
    assert rates.run(args) == 0
    text = (tmp_path / "rates.md").read_text()
    assert "| gru | 10.0 | **5.0** |" in text and "| snn-d16 | **2.5** | 7.5 |" in text
    assert text.index("snn-d16") < text.index("| gru")


def test_what_is_missing_or_wrong_is_said(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no run of this study is finished"):
        rates.run(arguments("--out", str(tmp_path), "--only-page"))
    with pytest.raises(DataError, match="above 0"):
        rates.run(arguments("--out", str(tmp_path), "--rates", "0"))
