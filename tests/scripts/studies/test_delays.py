"""The page on delays says what the runs found, whatever they found."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from neuro import DataError
from scripts.studies import delays, delays_page
from scripts.studies.records import Record

SHORT = ("--max-delays", "1", "16", "--baselines", "gru", "--controls", "--longer")


def arguments(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    delays.add_arguments(parser)
    return parser.parse_args(words)


def record(wrong: int, *, spike_rate: float | None, trials: int = 20, digest: str = "d") -> Record:
    """Sentences of four phonemes; in the first ``wrong`` of them there is one error."""
    found = {f"d/val/trial_{k:04d}": (int(k < wrong), 4) for k in range(trials)}
    per = wrong / (4 * trials)
    summary = {
        "per": per,
        "per_low": per / 2,
        "per_high": 2 * per,
        "spike_rate": spike_rate,
        "parameters": {"core": 500_123},
        "chance": {"best_constant": 0.9, "empty": 1.0},
        "source": "simulated participant",
        "form": "b2t24",
        "split": "val",
        "trials": trials,
        "phonemes": 4 * trials,
        "boundaries": {"entropy_contrast_nats": -0.125, "entropy_contrast_without_blank_nats": None},
    }
    recipe = {"trainer": {"max_steps": 70}, "data": {"batch_size": 16}}
    return Record({"recipe": recipe, "data": {"digest": digest}}, summary, found, 120.0, "2026-01-02")


def test_arms_differ_in_nothing_but_what_is_compared() -> None:
    one, sixteen, gru = delays.arms_of(arguments("--updates", "70", *SHORT))
    assert one.changes["trainer"] == sixteen.changes["trainer"] == gru.changes["trainer"]
    assert one.changes["data"] == sixteen.changes["data"] == gru.changes["data"]
    assert {arm.changes["model"]["budget"] for arm in (one, sixteen, gru)} == {"500k"}
    assert one.recipe == sixteen.recipe
    assert [arm.changes["model"]["core_options"] for arm in (one, sixteen)] == [{"max_delay": 1}, {"max_delay": 16}]


def test_longer_rows_differ_in_the_number_of_updates_alone() -> None:
    *_, gru, longer = delays.arms_of(arguments("--updates", "70", *SHORT, "gru"))
    assert (gru.changes["trainer"]["max_steps"], longer.changes["trainer"]["max_steps"]) == (70, 210)
    assert {**longer.changes, "trainer": None} == {**gru.changes, "trainer": None}
    assert longer.recipe == gru.recipe and "3 times the updates" in longer.title and longer.name != gru.name


@pytest.mark.parametrize(("wrong", "sign"), [((8, 4, 6), "-"), ((4, 8, 6), "+")])
def test_the_page_reports_either_outcome(wrong: tuple[int, int, int], sign: str, tmp_path: Path) -> None:
    args = arguments("--seeds", "1", "2", "--out", str(tmp_path), *SHORT)
    arms = delays.arms_of(args)
    results = {
        run.name: record(count, spike_rate=None if arm.max_delay is None else 0.08)
        for arm, count in zip(arms, wrong, strict=True)
        for run in arm.runs(args.seeds)
    }
    page = delays_page.write_page(args, results).read_text()
    rows = {line.split("|")[1].strip(): line for line in page.splitlines() if line.startswith("| ")}
    for arm, count in zip(arms, wrong, strict=True):
        assert f"| {100 * count / 80:.1f} |" in rows[arm.title] and "500,123" in rows[arm.title]
    assert "| -0.125 | - |" in rows["GRU"]
    assert "0.080" in rows[arms[1].title] and "| - |" in rows["GRU"]
    assert "best constant" in rows and "simulated participant" in page and "seeds 1, 2" in page
    difference = next(line for line in page.splitlines() if line.startswith("- spiking, no delays"))
    assert difference.count(f": {sign}5.0") == 1 and difference.count(f"{sign}5.0 (") == 2
    assert (tmp_path / "delays.png").stat().st_size > 1000
    assert sorted(path.name for path in tmp_path.iterdir()) == ["delays.md", "delays.png"]
    assert "70 updates of 16 trials" in page and "Not finished" not in page


def test_runs_scored_on_other_trials_are_never_compared() -> None:
    with pytest.raises(DataError, match="different trials"):
        delays_page.paired(record(1, spike_rate=None), record(1, spike_rate=None, trials=19))


def test_counts_below_one_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"--updates.*found 0|found 0"):
        delays.run(arguments("--updates", "0", "--runs", str(tmp_path)))


def test_the_whole_sweep_has_every_control_and_baseline(tmp_path: Path) -> None:
    args = arguments("--seeds", "1", "--out", str(tmp_path))
    arms = delays.arms_of(args)
    assert [arm.kind for arm in arms] == ["delays"] * 6 + ["control"] * 4 + ["baseline"] * 5 + ["longer"] * 2
    assert len({arm.name for arm in arms}) == len(arms)
    by_name = {arm.name.removeprefix("snn-500k-"): arm for arm in arms}
    assert by_name["d16-layer"].changes["model"]["core_options"] == {"max_delay": 16, "delay_sharing": "layer"}
    learned = by_name["d16-learned"].changes["model"]
    assert learned["budget"] is None and 250 < learned["width"] < 400 and learned["core_options"]["learn_delays"]
    (shuffled,) = by_name["d16-shuffled"].runs([1])
    assert shuffled.shuffles == "snn-500k-d16-seed1"
    results = {run.name: record(6, spike_rate=0.1) for arm in arms for run in arm.runs([1])}
    page = delays_page.write_page(args, results).read_text()
    assert all(arm.title in page for arm in arms)


def test_shuffling_needs_a_trained_network_of_its_delay() -> None:
    with pytest.raises(DataError, match="shuffled"):
        delays.run(arguments("--max-delays", "1", "8"))


def test_another_budget_is_another_page(tmp_path: Path) -> None:
    args = arguments("--budget", "2M", "--seeds", "1", "--out", str(tmp_path), *SHORT)
    arms = delays.arms_of(args)
    results = {run.name: record(6, spike_rate=0.1) for arm in arms for run in arm.runs([1])}
    assert delays_page.write_page(args, results).name == "delays-2M.md"
    assert "(delays-2M.png)" in (tmp_path / "delays-2M.md").read_text()


def test_a_sweep_that_is_not_finished_has_a_page_that_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = ("--seeds", "1", "2", "--out", str(tmp_path), "--only-page", *SHORT)
    with pytest.raises(DataError, match="no run of this study is finished"):
        delays.run(arguments(*given))
    record(8, spike_rate=0.1).write(tmp_path / "delays" / "snn-500k-d1-seed1.json")
    record(4, spike_rate=0.1).write(tmp_path / "delays" / "snn-500k-d16-seed1.json")
    record(6, spike_rate=0.1).write(tmp_path / "delays" / "snn-500k-d16-seed2.json")
    monkeypatch.setattr("sys.argv", ["ranvier", "study", "delays", *given])
    assert delays.run(arguments(*given)) == 0
    page = (tmp_path / "delays.md").read_text()
    assert "Not finished yet: 3 of 6 runs" in page and "--only-page" not in page and "| GRU |" not in page
    assert "- spiking, no delays: -5.0 (" in page and "2026-01-02 to 2026-01-02" in page


def test_runs_of_other_recordings_never_share_a_page(tmp_path: Path) -> None:
    args = arguments("--seeds", "1", "2", "--out", str(tmp_path), *SHORT)
    found = {f"snn-500k-d16-seed{k}": record(4, spike_rate=0.1, digest=str(k)) for k in (1, 2)}
    with pytest.raises(DataError, match="same recording"):
        delays_page.write_page(args, found)
