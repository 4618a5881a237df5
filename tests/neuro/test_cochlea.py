"""The ear: against a loop over samples, and for what an ear must do."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from neuro import DataError
from neuro.cochlea import SPIKES, Cochlea, erb, erb_space
from tests.oracles import cochlea as oracle

RATE = 8000
EAR = Cochlea(n_channels=16, sample_rate=RATE)


def tone(hz: float, seconds: float = 0.5, rate: int = RATE) -> np.ndarray:
    return np.sin(2 * np.pi * hz * np.arange(round(seconds * rate)) / rate)


def noise(samples: int = 1000) -> np.ndarray:
    return np.random.default_rng(0).normal(size=samples) * 0.1


def test_erb_scale() -> None:
    assert erb(1000.0) == pytest.approx(132.6, abs=0.1)  # Glasberg & Moore 1990
    centres = erb_space(80, 3600, 64)
    assert centres[0] == pytest.approx(80) and centres[-1] == pytest.approx(3600)
    # Equal steps on the scale: the distance of neighbours is the same share of their bandwidth, about.
    share = np.diff(centres) / erb((centres[1:] + centres[:-1]) / 2)
    assert share.max() / share.min() < 1.01


@pytest.mark.parametrize("dt", [0.02, 0.005, 0.0041])
def test_every_stage_equals_the_loop(dt: float) -> None:
    ear = Cochlea(n_channels=5, sample_rate=RATE, dt=dt, level_db=None)
    wave = noise()
    T = ear.n_bins(len(wave))
    edges = [round(k * dt * RATE) for k in range(T + 1)]
    padded = np.concatenate([wave, np.zeros(edges[-1])])[: edges[-1]]
    envelopes, rates = ear.envelopes(wave, RATE), ear.rates(wave, RATE)
    assert envelopes.shape == rates.shape == (T, 5) and envelopes.dtype == rates.dtype == np.float32
    for c, centre in enumerate(ear.centres):
        plain, adapted = oracle.drive(oracle.gammatone(padded, centre, RATE), ear, RATE)
        for k in range(T):
            inside = slice(edges[k], edges[k + 1])
            assert envelopes[k, c] == pytest.approx(plain[inside].mean(), rel=1e-4, abs=1e-7)
            expected = ear.spontaneous_hz + ear.gain_hz * adapted[inside].mean()
            assert rates[k, c] == pytest.approx(expected, rel=1e-4)


def test_each_channel_prefers_its_own_frequency() -> None:
    for c in range(0, 16, 3):
        assert EAR.envelopes(tone(EAR.centres[c]), RATE)[5:].mean(0).argmax() == c


def test_unit_gain_at_the_centre() -> None:
    """A tone of amplitude 1, linear ear: the mean of a rectified sine is 1 / pi."""
    ear = replace(EAR, compression=1.0, threshold=0.0, level_db=None, cutoff_hz=1e9)
    for c in (4, 9, 14):
        assert ear.envelopes(tone(ear.centres[c]), RATE)[10:-1, c].mean() == pytest.approx(1 / np.pi, rel=0.02)


def test_compression() -> None:
    """Sixty times the amplitude gives little more drive."""
    ear = replace(EAR, level_db=None, threshold=0.0)
    quiet, loud = (ear.envelopes(a * tone(1000), RATE)[5:-1].max() for a in (0.01, 0.6))
    assert loud / quiet == pytest.approx(60**0.3, rel=0.02)


def test_level_is_set_unless_it_is_told_not_to() -> None:
    wave = noise()
    np.testing.assert_allclose(EAR.envelopes(wave, RATE), EAR.envelopes(wave / 50, RATE), rtol=1e-5)
    untouched = replace(EAR, level_db=None)
    assert untouched.envelopes(wave, RATE).mean() > 2 * untouched.envelopes(wave / 50, RATE).mean()


def test_adaptation_favours_onsets() -> None:
    rates = EAR.rates(np.concatenate([np.zeros(2000), tone(1000)]), RATE)
    channel = rates.sum(0).argmax()
    response = rates[:, channel] - EAR.spontaneous_hz
    assert response[:12].max() < 1e-3  # 0.25 s of silence
    assert response[13:15].max() > 1.4 * response[30:36].mean() > 10
    steady = replace(EAR, adaptation=0.0).rates(np.concatenate([np.zeros(2000), tone(1000)]), RATE)[:, channel]
    assert steady[13:15].max() < 1.1 * steady[30:36].mean()


def test_causal_and_independent_of_what_comes_later() -> None:
    ear = replace(EAR, level_db=None)
    wave = noise(4000)
    later = np.concatenate([wave[:1600], noise(800)])
    np.testing.assert_array_equal(ear.envelopes(wave, RATE)[:10], ear.envelopes(later, RATE)[:10])


def test_silence_is_put_around_without_changing_the_level() -> None:
    wave = tone(1000, 0.4)
    _, bare = EAR.encode(wave, RATE, 0)
    _, padded = EAR.encode(wave, RATE, 0, silence=0.2)
    assert len(padded) == len(bare) + 20
    np.testing.assert_allclose(padded[10 : 10 + len(bare)], bare, rtol=1e-5, atol=1e-6)
    assert padded[:10].max() < 1e-6


def test_long_silence_stays_silent() -> None:
    wave = np.concatenate([tone(1000, 0.1), np.zeros(5 * RATE)])
    envelopes = EAR.envelopes(wave, RATE)
    assert np.isfinite(envelopes).all() and (envelopes[50:] < 1e-6).all()
    assert (EAR.envelopes(np.zeros(800), RATE) == 0).all()


@pytest.mark.parametrize("spikes", sorted(SPIKES))
def test_spikes_follow_the_rate_and_the_seed(spikes: str) -> None:
    ear = replace(EAR, spikes=spikes)
    wave = noise(4 * RATE)
    counts = ear.spike_counts(wave, RATE, seed=1)
    assert counts.dtype == np.int64 and (counts >= 0).all() and counts.shape == (200, 16)
    assert np.array_equal(counts, ear.spike_counts(wave, RATE, seed=1))
    assert not np.array_equal(counts, ear.spike_counts(wave, RATE, seed=2))
    expected = ear.rates(wave, RATE).sum(0) * ear.dt
    np.testing.assert_allclose(counts.sum(0), expected, atol=5 * np.sqrt(expected.max()))


def test_poisson_is_variable_and_integration_is_not() -> None:
    expected = np.full((4000, 3), 1.7)
    fano = {
        name: float((c := make(expected, np.random.default_rng(0))).var() / c.mean()) for name, make in SPIKES.items()
    }
    assert fano["poisson"] == pytest.approx(1, abs=0.06)
    assert fano["integrate"] < 0.2


def test_integration_equals_the_loop() -> None:
    expected = np.random.default_rng(3).gamma(2.0, 0.4, size=(200, 4))
    phases = np.random.default_rng(5).random(4)
    counts = SPIKES["integrate"](expected, np.random.default_rng(5))
    for c in range(4):
        assert np.array_equal(counts[:, c], oracle.integrate_and_fire(expected[:, c], phases[c]))


def test_finer_bins_hold_the_same_sound() -> None:
    fine, coarse = replace(EAR, dt=0.005), EAR
    wave = noise(RATE)
    summed = fine.envelopes(wave, RATE).reshape(50, 4, 16).mean(1)
    np.testing.assert_allclose(summed, coarse.envelopes(wave, RATE), rtol=1e-4, atol=1e-6)


def test_other_sample_rates_are_resampled() -> None:
    """The same tone at 8 and at 16 kHz sounds the same to a channel in the middle."""
    low, high = EAR.envelopes(tone(1000), RATE), EAR.envelopes(tone(1000, rate=16_000), 16_000)
    assert low.shape == high.shape
    np.testing.assert_allclose(low[3:-2].mean(0), high[3:-2].mean(0), atol=0.02)


@pytest.mark.parametrize(("samples", "bins"), [(1, 1), (159, 1), (160, 1), (161, 2), (1600, 10)])
def test_bins_cover_the_sound(samples: int, bins: int) -> None:
    assert EAR.spike_counts(np.ones(samples), RATE, 0).shape == (bins, 16)


def test_ears_pickle_and_compare() -> None:
    assert pickle.loads(pickle.dumps(EAR)) == EAR != replace(EAR, dt=0.01)


@pytest.mark.parametrize(
    ("wave", "message"),
    [
        (np.zeros(0), "not a row of samples"),
        (np.zeros((10, 2)), "not a row of samples"),
        (np.array(["a"]), "not a row of samples"),
        (np.array([0.0, np.nan, np.inf]), "2 of 3"),
    ],
)
def test_bad_sound(wave: np.ndarray, message: str) -> None:
    with pytest.raises(DataError, match=message):
        EAR.envelopes(wave, RATE)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("n_channels", 0),
        ("low_hz", 0.0),
        ("low_hz", 5000.0),
        ("high_hz", 5000.0),
        ("high_hz", 50.0),
        ("dt", 0.0),
        ("dt", 1e-5),
        ("compression", -1.0),
        ("adaptation", -0.1),
        ("gain_hz", float("nan")),
        ("spikes", "gaussian"),
    ],
)
def test_bad_parameters(field: str, value: object) -> None:
    with pytest.raises(DataError):
        replace(EAR, **{field: value})


def test_a_recorded_digit(shared_data: Path) -> None:
    """ "Six" begins and ends with a hiss: high channels lead at both ends, low ones in the vowel between."""
    import soundfile

    wave, rate = soundfile.read(shared_data / "fsdd" / "recordings" / "6_jackson_0.wav")
    ear = Cochlea(sample_rate=rate)
    counts, envelope = ear.encode(wave, rate, 0)
    assert 0.1 < counts.mean() < 3 and counts.shape == envelope.shape
    high = (envelope * ear.centres).sum(1) / envelope.sum(1)
    thirds = np.array_split(high, 3)
    assert thirds[0].max() > 1.5 * thirds[1].min()
