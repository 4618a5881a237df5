"""The simulated recordings have the statistics of the published ones (one public T12 trial; both sets' trial lengths).

Each band is stated beside the recorded value. One recorded trial is an anchor, not a distribution, so bands are wide.
"""

from __future__ import annotations

import numpy as np
import pytest

from neuro.simulate import Participant

LAGS = (1, 2, 5, 10, 25)
N_TUNED = 128


def autocorrelation(x: np.ndarray, lag: int) -> float:
    x = x - x.mean(axis=0)
    return float(np.mean((x[lag:] * x[:-lag]).mean(axis=0) / (x * x).mean(axis=0)))


def correlations(x: np.ndarray) -> np.ndarray:
    return np.corrcoef(x.T)[np.triu_indices(x.shape[1], 1)]


@pytest.fixture(scope="module")
def participant() -> Participant:
    return Participant("b2t24", sessions=2, trials=250, seed=5)


@pytest.fixture(scope="module")
def trials(participant) -> list[tuple[np.ndarray, np.ndarray]]:
    """Counts and log power of area 6v in the longest trials of two days, as long as the recorded one (591 bins)."""
    longest = sorted(participant.plan, key=lambda entry: -len(entry.sentence))[:50:2]
    found = []
    for entry in longest:
        trial = participant.record(entry)
        if 400 < len(trial.power) < 900:
            found.append(
                (trial.counts[-3.5][:, :N_TUNED].astype(float), np.log(trial.power[:, :N_TUNED].astype(float)))
            )
    assert len(found) >= 12
    return found


@pytest.fixture(scope="module")
def counts(trials) -> list[np.ndarray]:
    return [pair[0] for pair in trials]


@pytest.fixture(scope="module")
def log_power(trials) -> list[np.ndarray]:
    return [pair[1] for pair in trials]


def test_mean_counts(counts):
    means = np.array([x.mean(axis=0) for x in counts])
    assert 0.50 < np.median(means) < 0.65  # recorded: 0.57
    assert np.mean(means.min(axis=1)) < 0.2  # recorded: 0.06
    assert 1.3 < np.mean(means.max(axis=1)) < 2.4  # recorded: 1.69


def test_zero_bins_and_largest_count(counts):
    zero = np.mean([np.mean(x == 0) for x in counts])
    assert 0.52 < zero < 0.62  # recorded: 0.575
    assert 5 <= np.median([x.max() for x in counts]) <= 12  # recorded: 7


def test_fano_factor(counts):
    fano = np.array([x.var(axis=0) / x.mean(axis=0) for x in counts])
    assert 0.96 < np.median(fano) < 1.08  # recorded: 1.02
    assert 0.6 < np.mean(fano.min(axis=1)) < 0.85  # recorded: 0.66
    assert 1.15 < np.mean(fano.max(axis=1)) < 1.75  # recorded: 1.37


@pytest.mark.parametrize(("lag", "recorded"), list(zip(LAGS, (0.05, 0.06, 0.07, 0.05, 0.01), strict=True)))
def test_autocorrelation_of_counts(counts, lag, recorded):
    assert abs(np.mean([autocorrelation(x, lag) for x in counts]) - recorded) < 0.04


@pytest.mark.parametrize(("lag", "recorded"), list(zip(LAGS, (0.13, 0.13, 0.12, 0.10, 0.05), strict=True)))
def test_autocorrelation_of_log_power(log_power, lag, recorded):
    assert abs(np.mean([autocorrelation(x, lag) for x in log_power]) - recorded) < 0.06


def test_electrodes_are_nearly_independent(counts, log_power):
    pairs = [correlations(x) for x in counts]
    assert abs(np.mean([pair.mean() for pair in pairs])) < 0.03  # recorded: 0.009
    assert 0.035 < np.mean([pair.std() for pair in pairs]) < 0.06  # recorded: 0.045
    pairs = [correlations(x) for x in log_power]
    assert -0.01 < np.mean([pair.mean() for pair in pairs]) < 0.05  # recorded: 0.031
    assert 0.045 < np.mean([pair.std() for pair in pairs]) < 0.08  # recorded: 0.063


def test_shape_of_log_power(log_power):
    scores = [(x - x.mean(axis=0)) / x.std(axis=0) for x in log_power]
    assert 0.6 < np.median([np.mean(z**3, axis=0) for z in scores]) < 1.1  # recorded: 0.86
    assert 3.3 < np.median([np.mean(z**4, axis=0) for z in scores]) < 5.0  # recorded: 4.0


def test_counts_and_power_of_an_electrode_go_together(trials):
    found = [np.median([np.corrcoef(c[:, i], p[:, i])[0, 1] for i in range(N_TUNED)]) for c, p in trials]
    assert 0.42 < np.mean(found) < 0.56  # recorded: 0.49


# Recorded: '24 311 bins a trial (median 295, 97 to 919), 4.4 phonemes a second; '25 886 (850, 138 to 2475), 1.5.
@pytest.mark.parametrize(
    ("form", "pace", "bins", "per_second"),
    [
        ("b2t24", None, (280, 350), (3.9, 4.8)),
        ("b2t25", None, (700, 950), (1.25, 1.75)),
        ("b2t25", "t12", (220, 350), (3.7, 4.8)),
    ],
)
def test_trial_length_and_pace(form, pace, bins, per_second):
    participant = Participant(form, sessions=4, trials=100, seed=2, pace=pace)
    attempts = [participant.attempt(entry) for entry in participant.plan[::2]]
    lengths = np.array([attempt.n_bins for attempt in attempts])
    n_phonemes = sum(len(attempt.phonemes) for attempt in attempts)
    assert bins[0] < lengths.mean() < bins[1]
    assert np.median(lengths) < lengths.mean()
    assert per_second[0] < n_phonemes / (0.02 * lengths.sum()) < per_second[1]
    shortest = {"b2t24": 60, "b2t25": 60}[form]
    assert lengths.min() >= shortest and lengths.max() <= 3000


def test_area_44_says_little(participant):
    movement, tuned, rest = [], [], []
    for entry in participant.plan[:12]:
        rates = participant.cortex.rates(
            participant.attempt(entry).latents,
            participant.cortex.day(0),
            participant.cortex.block_offset(0, 0),
            np.random.default_rng(0),
        )
        movement.append(np.log(rates).std(axis=0))
    movement = np.mean(movement, axis=0)
    tuned, rest = movement[:N_TUNED], movement[N_TUNED:]
    silent = participant.setting.shared_noise**2 + participant.setting.private_noise**2
    assert np.mean(tuned**2) > 1.3 * np.mean(rest**2)
    assert np.mean(rest**2) < 1.6 * silent


def test_slow_fluctuations_are_not_speech(participant):
    """Before the sentence starts, firing still wanders together within an area."""
    entry = participant.plan[0]
    still = np.zeros_like(participant.attempt(entry).latents)[:1]
    day, offset = participant.cortex.day(0), participant.cortex.block_offset(0, 0)
    rates = participant.cortex.rates(np.repeat(still, 2000, axis=0), day, offset, np.random.default_rng(0))
    log_rate = np.log(rates[:, :N_TUNED].astype(float))
    log_rate -= log_rate.mean(axis=0)
    assert 0.9 < np.mean((log_rate[1:] * log_rate[:-1]).mean(axis=0) / log_rate.var(axis=0)) < 0.99
    strongest = np.linalg.eigvalsh(np.cov(log_rate.T))[-5:].sum() / np.var(log_rate, axis=0).sum()
    assert strongest > 0.2  # five shared signals carry far more than 5 of 128 private ones would
