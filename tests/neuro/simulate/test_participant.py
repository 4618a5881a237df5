"""The participant: determinism, independence of trials, days and blocks, splits and corpora."""

from __future__ import annotations

import pickle
from collections import Counter, defaultdict
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from neuro import THRESHOLDS, DataError
from neuro.lexicon import Lexicon
from neuro.simulate import FORMS, PACES, SETTINGS, Participant


def same(a, b) -> bool:
    return (
        all(np.array_equal(a.counts[threshold], b.counts[threshold]) for threshold in THRESHOLDS)
        and np.array_equal(a.power, b.power)
        and (a.sentence, a.session, a.block, a.split) == (b.sentence, b.session, b.block, b.split)
    )


@pytest.fixture(scope="module", params=sorted(FORMS))
def someone(request) -> Participant:
    return Participant(request.param, sessions=3, trials=64, seed=9)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("pace", PACES)
def test_every_form_setting_and_pace(form, setting, pace):
    trial = Participant(form, sessions=1, trials=8, seed=0, setting=setting, pace=pace)[3]
    n_bins = len(trial.power)
    assert set(trial.counts) == set(THRESHOLDS)
    assert trial.power.shape == (n_bins, 256) and trial.power.dtype == np.float32
    assert all(counts.shape == (n_bins, 256) and counts.dtype == np.uint8 for counts in trial.counts.values())
    assert np.isfinite(trial.power).all() and (trial.power > 0).all()
    assert trial.phonemes.tolist() == Lexicon().phonemes(trial.sentence)
    assert len(trial.onsets) == len(trial.phonemes)
    assert (np.diff(trial.onsets) >= 2).all() and trial.onsets[0] > 3 and trial.onsets[-1] < n_bins


def test_deeper_thresholds_see_a_part_of_the_crossings(someone):
    trial = someone[0]
    for shallow, deep in pairwise(THRESHOLDS):
        assert (trial.counts[shallow] >= trial.counts[deep]).all()
        assert 0.3 < trial.counts[deep].sum() / trial.counts[shallow].sum() < 0.6


def test_same_seed_same_data_whatever_the_order(someone):
    again = Participant(someone.form_name, sessions=3, trials=64, seed=9)
    later = again[150]
    assert same(later, someone[150]) and same(again[2], someone[2])
    assert same(pickle.loads(pickle.dumps(again))[150], later)
    assert not same(Participant(someone.form_name, sessions=3, trials=64, seed=10)[150], later)


def test_more_sessions_change_nothing_in_the_first_ones():
    few, many = (Participant("b2t24", sessions=n, trials=32, seed=1) for n in (2, 5))
    assert few.sessions == many.sessions[:2]
    assert same(few[40], many[40])


def test_sessions_sort_in_order_of_time(someone):
    assert [entry.session for entry in someone.plan] == sorted(entry.session for entry in someone.plan)
    assert len(someone.sessions) == 3 and someone.sessions[0].startswith(someone.form.prefix + ".2001")


def test_24_splits_by_blocks():
    plan = Participant("b2t24", sessions=3, trials=88, seed=1).plan
    blocks = defaultdict(set)
    for entry in plan:
        blocks[entry.day, entry.block].add(entry.split)
    assert all(len(splits) == 1 for splits in blocks.values())
    by_day = [[next(iter(blocks[day, block])) for block in range(1, 12)] for day in range(3)]
    assert by_day[0] == ["test"] * 2 + ["train"] * 8 + ["val"]
    assert by_day[2] == ["train"] * 10 + ["val"]


def test_25_splits_share_blocks_and_shift_the_corpora():
    plan = Participant("b2t25", sessions=12, trials=80, seed=1).plan
    held_out, corpora, numbers = defaultdict(Counter), defaultdict(set), defaultdict(list)
    for entry in plan:
        corpora["train" if entry.split == "train" else "held out"].add(entry.corpus)
        numbers[entry.day, entry.block].append(entry.trial)
        if entry.split != "train":
            held_out[entry.day, entry.block][entry.split] += 1
    assert all(set(counted) == {"val", "test"} for counted in held_out.values())
    assert {day for day, _ in held_out} == set(range(12)) - {0, 11}  # training days only
    assert corpora["train"] == {"Switchboard", "Freq words", "50-Word"}
    assert corpora["held out"] == {"Switchboard", "Freq words", "Openwebtext", "Harvard", "Random"}
    steps = np.concatenate([np.diff(found) for found in numbers.values()])
    assert set(steps) == {1, 2} and np.mean(steps == 2) < 0.1  # numbers skip now and then
    share = sum(entry.split == "val" for entry in plan) / len(plan)
    assert 0.08 < share < 0.16


def test_tuning_turns_a_little_every_day():
    cortex = Participant("b2t24", sessions=4, trials=8, seed=1).cortex
    days = [cortex.day(d).tuning / np.linalg.norm(cortex.day(d).tuning, axis=0) for d in range(6)]
    cosines = [(days[0] * day).sum(axis=0) for day in days]
    np.testing.assert_allclose(cosines[1], np.cos(cortex.setting.day_rotation), rtol=1e-3)
    assert np.mean(cosines[1]) > np.mean(cosines[3]) > np.mean(cosines[5])


def test_rates_drift_from_block_to_block():
    cortex = Participant("b2t24", sessions=1, trials=8, seed=1).cortex
    steps = np.array([cortex.block_offset(0, block + 1) - cortex.block_offset(0, block) for block in range(10)])
    assert 0.8 < steps.std() / cortex.setting.block_drift < 1.2
    half = cortex.block_offset(0, 3.5)
    np.testing.assert_allclose(half, (cortex.block_offset(0, 3) + cortex.block_offset(0, 4)) / 2, atol=1e-6)
    assert not np.allclose(cortex.block_offset(1, 0), cortex.block_offset(0, 0))


def test_tuning_gain_is_what_moves_the_rates():
    louder = replace(SETTINGS["default"], tuning_gain=0.5, private_noise=0.0, shared_noise=0.0)
    deaf = replace(louder, tuning_gain=0.0)
    spread = {}
    for name, setting in (("louder", louder), ("deaf", deaf)):
        p = Participant("b2t24", sessions=1, trials=8, seed=1, setting=setting)
        rates = p.cortex.rates(
            p.attempt(p.plan[0]).latents, p.cortex.day(0), 0 * p.cortex.block_offset(0, 0), np.random.default_rng(0)
        )
        spread[name] = np.log(rates)[:, :128].std(axis=0).mean()
    assert spread["deaf"] < 1e-5
    assert 0.3 < spread["louder"] < 0.7


def test_firing_runs_ahead_of_the_movement():
    """In quiet, loud simulation the rates change before the first phoneme's true onset."""
    clear = replace(SETTINGS["default"], tuning_gain=0.5, private_noise=0.0, shared_noise=0.0, articulation_noise=0.0)
    p = Participant("b2t24", sessions=1, trials=8, seed=1, setting=clear)
    attempt = p.attempt(p.plan[0])
    moving = np.abs(attempt.latents - attempt.latents[0]).max(axis=1) > 0.5
    first = round(attempt.edges[1] / 0.02)
    assert 3 <= first - np.flatnonzero(moving)[0] <= 15


def test_own_sentences():
    mine = [f"Sentence {word}." for word in ("one", "two", "three", "four", "five")]
    p = Participant("b2t25", sessions=2, trials=10, seed=3, sentences=mine)
    said = [entry.sentence for entry in p.plan]
    assert all(set(said[start : start + 5]) == set(mine) for start in range(0, 20, 5))
    assert {entry.corpus for entry in p.plan} == {"Text"}
    assert said != sorted(said)


def test_easy_sentences_are_short():
    p = Participant("b2t25", sessions=2, trials=100, seed=1, setting="easy")
    assert {len(entry.sentence.split()) for entry in p.plan} <= {2, 3, 4}
    lengths = [p.attempt(entry).n_bins for entry in p.plan[::4]]
    assert 80 < np.mean(lengths) < 150


@pytest.mark.parametrize(
    "wrong",
    [
        {"form": "b2t23"},
        {"setting": "impossible"},
        {"pace": "t99"},
        {"sessions": 0},
        {"trials": 3},
        {"seed": -1},
        {"sentences": []},
    ],
)
def test_wrong_requests(wrong):
    with pytest.raises(DataError):
        Participant(**{"form": "b2t24", "sessions": 1, "trials": 8, **wrong})


def test_a_word_without_pronunciation_is_named_with_its_sentence():
    p = Participant("b2t24", sessions=1, trials=8, sentences=["We saw a zyxwv today."])
    with pytest.raises(DataError, match=r"zyxwv.*We saw a zyxwv today"):
        p[0]
