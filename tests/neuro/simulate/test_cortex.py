"""Counts: the means and the dispersion asked for, against the textbook distributions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from neuro.simulate.cortex import HIGHEST_COUNT, SLOW_SECONDS, draw_counts, slow_noise


@pytest.mark.parametrize(
    ("mean", "fano"),
    [
        (0.05, 0.99),
        (0.05, 1.0001),
        (0.05, 1.25),
        (0.57, 0.85),
        (0.57, 0.999),
        (0.57, 1.25),
        (2.0, 0.8),
        (6.0, 0.9),
        (6.0, 1.2),
    ],
)
def test_mean_and_dispersion(mean, fano):
    a = np.full(10, 1 - 1 / fano, np.float32)
    counts = draw_counts(np.full((20_000, 10), mean, np.float32), a, np.random.default_rng(1)).astype(float)
    assert counts.mean() == pytest.approx(mean, rel=0.02)
    assert counts.var() / counts.mean() == pytest.approx(fano, rel=0.03)


def test_histogram_of_nearly_poisson_and_of_negative_binomial_counts():
    rng = np.random.default_rng(2)
    for fano, law in ((1.0002, stats.poisson(0.6)), (1.25, stats.nbinom(0.6 / 0.25, 0.8))):
        rates = np.full((100_000, 2), 0.6, np.float32)
        counts = draw_counts(rates, np.full(2, 1 - 1 / fano, np.float32), rng)
        found = np.bincount(counts.ravel(), minlength=7)[:7] / counts.size
        np.testing.assert_allclose(found, law.pmf(np.arange(7)), atol=0.003)


def test_no_rate_no_count_and_no_endless_count():
    a = np.full(4, 0.02, np.float32)
    assert draw_counts(np.zeros((100, 4), np.float32), a, np.random.default_rng(0)).max() == 0
    many = draw_counts(np.full((100, 4), 200.0, np.float32), a, np.random.default_rng(0))
    assert many.max() <= HIGHEST_COUNT
    assert draw_counts(np.zeros((0, 4), np.float32), a, np.random.default_rng(0)).shape == (0, 4)


def test_slow_noise_is_stationary_and_slow():
    noise = slow_noise(4000, 50, np.random.default_rng(3))
    assert noise.dtype == np.float32
    assert noise[0].std() == pytest.approx(1, abs=0.25) and noise.std() == pytest.approx(1, abs=0.05)
    step = round(SLOW_SECONDS / 0.02)
    assert np.mean(noise[step:] * noise[:-step]) == pytest.approx(np.exp(-1), abs=0.05)
