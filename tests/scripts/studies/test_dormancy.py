"""The study of dormant neurons: pairs that differ in their neurons alone, each run once, a page for either outcome."""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import snn
from neuro import DataError
from scripts.studies import dormancy
from scripts.studies.dormancy import data, training
from scripts.studies.dormancy.data import Split
from scripts.studies.dormancy.experiments import EXPERIMENTS
from scripts.studies.dormancy.experiments.digits import digits
from scripts.studies.dormancy.experiments.thresholds import gate_and_measure
from scripts.studies.dormancy.measuring import measure
from scripts.studies.dormancy.networks import Network, Training, replace_neurons
from scripts.studies.dormancy.page import write_page
from scripts.studies.dormancy.pairs import Claim, claim_line, factors, pairs_of, saving, train_and_measure
from scripts.studies.dormancy.plan import Run, run_all
from scripts.studies.dormancy.record import Record, read_record
from scripts.studies.dormancy.training import Classifier, fine_tuned, trained
from scripts.studies.dormancy.watching import gates, membranes, watch

SMALL = Network("digits", "conv", "dormant", Training(epochs=3, batch_size=8), {"steps": 2, "widths": (3, 4, 5)})


def samples(n: int = 24) -> Split:
    """Images whose brightness tells their class."""
    y = torch.arange(n) % 3
    generator = torch.Generator().manual_seed(0)
    return Split(y.view(-1, 1, 1, 1) / 3 + 0.1 * torch.rand(n, 1, 8, 8, generator=generator), y)


def arguments(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    dormancy.add_arguments(parser)
    return parser.parse_args(words)


def record(neuron: str, seed: int, energy: float, accuracy: float, *, steps: int = 4, awake: float = 1.0) -> Record:
    """As the digits experiment would leave it."""
    kinds = {"spikes": energy, "analogue": energy + 50, "analogue_once": energy + 10, "neurons": energy + 60}
    silent = dict.fromkeys(kinds, 100.0)
    findings: dict[str, Any] = {
        "accuracy": {"val": accuracy, "test": accuracy},
        "samples": 360,
        "energy": {"none": kinds if neuron == "lif" else silent, "per-neuron": kinds, "strict": kinds},
        "connections": {"none": 200.0, "per-neuron": 200.0 * awake, "strict": 200.0 * awake},
        "awake": awake, "rate": 0.1, "rates": {}, "training_seconds": 60.0,
    }  # fmt: skip
    run = next(r for r in EXPERIMENTS["digits"].runs([seed]) if r.name == f"digits-T{steps}-{neuron}-seed{seed}")
    return Record(run.name, "digits", seed, dict(run.settings), findings, 61.0, "2026-12-06")


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_runs_have_a_name_each_and_those_asked_for_have_their_records_experiment(name: str, tmp_path: Path) -> None:
    experiment = EXPERIMENTS[name]
    runs = experiment.runs([4, 7])
    assert len({run.name for run in runs}) == len(runs) and {run.seed for run in runs} == {4, 7}
    assert experiment.section({})  # before any of them is done
    assert all(draw({}) is None for draw in experiment.figures.values())
    assert all(json.loads(json.dumps(run.settings)) == run.settings for run in runs)  # else no record would match


@pytest.mark.parametrize("name", ["digits", "regulariser", "fashion"])
def test_the_two_of_a_pair_start_from_the_same_weights_and_differ_in_their_neurons(name: str) -> None:
    runs = EXPERIMENTS[name].runs([1])
    assert len({run.name for run in runs}) == len(runs) and all(run.seed == 1 for run in runs)
    for lif, dormant in zip(runs[::2], runs[1::2], strict=True):
        assert lif.settings["neuron"] == "lif" and dormant.settings["neuron"] == "dormant"
        assert {**lif.settings, "neuron": "", "neuron_options": {}} == {
            **dormant.settings, "neuron": "", "neuron_options": {}
        }  # fmt: skip
    one = digits("lif", 3).build().state_dict()
    other = digits("dormant", 3).build().state_dict()
    assert [*one] == [*other] and all(torch.equal(one[key], other[key]) for key in one)


def test_a_training_that_was_stopped_ends_where_an_unbroken_one_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fit(path: Path) -> dict[str, torch.Tensor]:
        return fine_tuned(SMALL.build(), SMALL.training, samples(), 1, path).state_dict()

    whole = fit(tmp_path / "whole.ckpt")
    step, done = Classifier.training_step, []

    def stops(self: Classifier, batch: Split, index: int) -> torch.Tensor:
        done.append(index)
        if len(done) == 5:  # in the middle of the second epoch
            raise RuntimeError("power cut")
        return step(self, batch, index)

    monkeypatch.setattr(Classifier, "training_step", stops)
    with pytest.raises(RuntimeError, match="power cut"):
        fit(tmp_path / "cut.ckpt")
    assert not training._read(tmp_path / "cut.ckpt")["finished"]
    resumed = fit(tmp_path / "cut.ckpt")
    assert len(done) == 5 + 6  # the second epoch and the third, not the first
    assert all(torch.equal(whole[key], resumed[key]) for key in whole)
    assert len(done) == 11 and fit(tmp_path / "cut.ckpt").keys() == whole.keys() and len(done) == 11


def test_batches_differ_between_epochs_and_seeds_and_hold_every_sample_once() -> None:
    def epoch(seed: int, number: int) -> list[int]:
        sampler = training._Shuffled(24, Training(epochs=1, batch_size=8), seed)
        sampler.set_epoch(number)
        return torch.cat([chosen for chosen, _ in sampler]).tolist()

    assert sorted(epoch(1, 0)) == list(range(24)) and epoch(1, 0) == epoch(1, 0)
    assert epoch(1, 0) != epoch(1, 1) and epoch(1, 0) != epoch(2, 0)


def test_a_network_is_trained_once_and_a_damaged_checkpoint_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(training, "load", lambda name: {"train": samples()})
    network = replace(SMALL, training=Training(epochs=1, batch_size=8))
    net, seconds = trained(network, tmp_path)
    again, same = trained(network, tmp_path)
    assert seconds > 0 and same == seconds and not again.training
    assert all(torch.equal(a, b) for a, b in zip(net.state_dict().values(), again.state_dict().values(), strict=True))
    (checkpoint,) = tmp_path.glob("*.ckpt")
    checkpoint.write_bytes(b"half a file")
    with pytest.raises(DataError, match=rf"checkpoint of a network.*{checkpoint.name}"):
        trained(network, tmp_path)


def test_energy_of_a_network_that_never_sleeps_is_that_of_lif() -> None:
    lif = replace(SMALL, neuron="lif").build().eval()
    awake = SMALL.of("dormant", dormancy_threshold=-float("inf")).build().eval()
    splits = {"val": samples(), "test": samples()}
    one, other = measure(lif, splits), measure(awake, splits)
    assert one == other and one["awake"] == 1 and one["energy"]["none"] == one["energy"]["strict"]
    asleep = replace_neurons(SMALL.build(), lambda name, neuron: snn.DormantLIF(beta=0.5, dormancy_threshold=-1e-6))
    found = measure(asleep.eval(), splits)
    assert found["awake"] < 1
    assert found["energy"]["per-neuron"]["spikes"] <= found["energy"]["strict"]["spikes"]
    assert found["energy"]["strict"]["spikes"] <= found["energy"]["none"]["spikes"]


def test_membranes_are_those_that_each_step_finds() -> None:
    net = replace(SMALL, neuron="lif", options={**SMALL.options, "steps": 4}).build().eval()
    seen = watch(net, samples(), membranes)
    current = net.layers[0].conv(samples().x)  # the same at every step
    v, expected = torch.zeros_like(current), []
    for _ in range(4):
        expected.append(v)
        v = 0.5 * v + current
        v = torch.where(v > 1, torch.zeros_like(v), v)
    assert seen["layers.0.neuron"].shape == (4, 24, 3 * 8 * 8)
    torch.testing.assert_close(seen["layers.0.neuron"], torch.stack(expected).flatten(2))


def test_gates_close_after_the_step_that_left_the_membrane_too_low() -> None:
    net = replace(SMALL, options={**SMALL.options, "steps": 4}).build().eval()
    seen = watch(net, samples(), gates)
    low = net.layers[0].conv(samples().x).flatten(1) <= -0.05  # after the first step
    awake = seen["layers.0.neuron"]
    assert awake[0].all() and torch.equal(~awake[1], low) and low.any() and not low.all()
    assert not (awake[1:] & ~awake[:-1]).any()  # a latch


def test_gating_a_trained_network_leaves_its_weights_and_a_threshold_out_of_reach_its_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    splits = dict.fromkeys(("train", "val", "test"), samples())
    monkeypatch.setattr(training, "load", lambda name: splits)
    monkeypatch.setattr(data, "load", lambda name: splits)
    lif = replace(SMALL, neuron="lif", training=Training(epochs=1, batch_size=8))
    plain = train_and_measure(lif.settings(), 1, tmp_path)
    far = gate_and_measure({**lif.settings(), "gated_at": -1e9}, 1, tmp_path)
    near = gate_and_measure({**lif.settings(), "gated_at": -1e-3}, 1, tmp_path)
    assert far == {key: value for key, value in plain.items() if key != "training_seconds"}
    assert near["awake"] < 1 and near["energy"]["none"]["spikes"] <= far["energy"]["none"]["spikes"]
    assert len([*tmp_path.glob("*.ckpt")]) == 1


def _findings(settings: Any, seed: int, folder: Path) -> dict[str, Any]:
    with (folder / "calls.txt").open("a") as file:
        file.write(f"{settings['a']}{seed}\n")
    return {"accuracy": {"test": 0.5}}


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_each_run_is_done_once(tmp_path: Path, workers: int) -> None:
    plan = [("digits", Run(f"{a}-seed1", 1, {"a": a}, _findings, stage)) for a, stage in (("late", 1), ("early", 0))]
    lines: list[str] = []
    run_all(plan[:1], tmp_path / "records", tmp_path, workers=workers, report=lines.append)
    run_all(plan, tmp_path / "records", tmp_path, workers=workers, report=lines.append)
    assert (tmp_path / "calls.txt").read_text() == "late1\nearly1\n"
    assert "1 of 2 runs are finished" in lines
    made = read_record(tmp_path / "records/early-seed1.json", {"a": "early"})
    assert made is not None and made.experiment == "digits" and made.findings == {"accuracy": {"test": 0.5}}
    with pytest.raises(DataError, match=r"made from something else.*field a"):
        read_record(tmp_path / "records/early-seed1.json", {"a": "other"})


def test_stages_keep_their_order(tmp_path: Path) -> None:
    plan = [("digits", Run(f"{a}-seed1", 1, {"a": a}, _findings, stage)) for a, stage in (("late", 1), ("early", 0))]
    run_all(plan, tmp_path / "records", tmp_path, workers=1, report=lambda line: None)
    assert (tmp_path / "calls.txt").read_text() == "early1\nlate1\n"


def test_saving_and_its_factors() -> None:
    lif, dormant = record("lif", 1, 200.0, 0.98), record("dormant", 1, 60.0, 0.98, awake=0.75)
    assert saving(dormant, lif) == pytest.approx(0.7)
    assert saving(dormant, lif, kind="analogue") == pytest.approx(1 - 110 / 250)
    rate, awake, meeting = factors(dormant, lif)
    assert (rate, awake) == (pytest.approx(0.5), pytest.approx(0.75)) and rate * awake * meeting == pytest.approx(0.3)


@pytest.mark.parametrize(
    ("gained", "saved", "said"),
    [
        ([-0.1, -0.4], [50.0, 40.0], "Both hold"),
        ([0.0], [44.0], "Missed: 1.0 % too little saved."),
        ([-0.5], [50.0], "Missed: 0.20 points too many lost."),
        ([-0.5], [40.0], "Missed: 5.0 % too little saved, 0.20 points too many lost."),
    ],
)
def test_the_claim_is_judged_by_the_means(gained: list[float], saved: list[float], said: str) -> None:
    assert said in claim_line(Claim(saving=0.45, points=0.3), gained, saved)


def test_the_page_says_what_came_out_and_what_is_missing(tmp_path: Path) -> None:
    folder = tmp_path / "dormancy"
    for seed in (1, 2):
        record("lif", seed, 200.0, 0.98).write(folder)
        record("dormant", seed, 80.0 + 10 * seed, 0.975 + 0.005 * seed).write(folder)
    record("lif", 3, 200.0, 0.98).write(folder)  # its twin is not there yet
    text = write_page(tmp_path).read_text()
    assert "| 1 | 98.00 | 98.00 | +0.00 | 55.0 |" in text and "| 2 | 98.00 | 98.50 | +0.50 | 50.0 |" in text
    assert "| mean ± sd of 2 | 98.00 ± 0.00 | 98.25 ± 0.35 | +0.25 ± 0.35 | 52.5 ± 3.5 |" in text
    assert "Both hold for the means." in text and "Not finished yet: 5 of 20 runs." in text
    assert "No seed has both of its networks yet." in text  # at 8 steps
    assert dormancy.run(arguments("--only-page", "--out", str(tmp_path))) == 0


def test_pairs_need_both(tmp_path: Path) -> None:
    one = record("dormant", 1, 80.0, 0.98)
    assert pairs_of("digits-T4", {one.name: one}) == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda content: content[:-20], "is not the record of a run"),
        (lambda content: "[]", "is not the record of a run"),
        (lambda content: json.dumps({**json.loads(content), "seed": "1"}), "is not the record of a run"),
        (lambda content: json.dumps({**json.loads(content), "experiment": "cats"}), "unknown experiment.*cats"),
    ],
)
def test_a_damaged_record_is_named(tmp_path: Path, change: Any, said: str) -> None:
    path = record("lif", 1, 200.0, 0.98).write(tmp_path / "dormancy")
    path.write_text(change(path.read_text()))
    with pytest.raises(DataError, match=rf"{said}") as caught:
        write_page(tmp_path)
    assert path.name in str(caught.value)


def test_what_cannot_be_is_said(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no run of this study is finished"):
        dormancy.run(arguments("--only-page", "--out", str(tmp_path)))
    with pytest.raises(DataError, match=r"at least 1.*--workers"):
        dormancy.run(arguments("--workers", "0", "--out", str(tmp_path)))
