"""Electrodes: from articulatory movement to threshold crossings and spike-band power.

Log firing rates follow a few latent signals (positions and velocities of the articulators), as motor cortex does in
attempted speech, plus fluctuations that have nothing to do with speech. Counts come from a family that holds the
binomial, Poisson and negative binomial laws; deeper thresholds see a random part of the same crossings; and the power
holds the same spikes, background activity with the same rate, and a skewed noise of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.signal import lfilter

from neuro.simulate.articulation import ARTICULATORS
from neuro.simulate.randomness import Stream, generator
from neuro.simulate.settings import Form, Setting
from neuro.trial import BIN_SECONDS, THRESHOLDS

N_ELECTRODES = 256
N_LATENTS = 2 * len(ARTICULATORS)

LEAD_SECONDS = 0.1
"""Motor cortex runs ahead of the movement, by the same time on every electrode."""

SHARED_RANK = 5
"""Number of slow signals common to an area that have nothing to do with speech."""

SLOW_SECONDS = 0.5
"""Time constant of the fluctuations that have nothing to do with speech."""

MEAN_RATE, RATE_SPREAD, LOWEST_RATE, HIGHEST_RATE = 0.54, 0.28, 0.07, 1.35
"""Crossings per bin at the form's threshold: mean, standard deviation and limits over electrodes."""

GAIN_SHAPE = 6.0
"""Shape of the gamma law of speech tuning over electrodes: some hear a lot of speech, many a little."""

HIGHEST_BURST = 4.0
"""Cap of the momentary rate at the form's threshold, per bin: 250 Hz."""

HIGHEST_COUNT = 30
"""No more crossings fit into a bin at -3.5 x RMS, of at least half a millisecond each."""

DISPERSION, DISPERSION_SPREAD = 0.955, 0.10
"""Variance over mean of the counts at a constant rate: mean and standard deviation over electrodes."""

PASS_MEAN, PASS_SPREAD = 0.42, 0.08
"""Share of the crossings of one threshold that also cross the next one."""

SPIKE_POWER = 0.10
"""Power that one crossing of the form's threshold adds to a bin, in units of the electrode's background."""

HASH_POWER = 0.13
"""Share of the background power that is distant spikes, and so follows the rate."""

POWER_NOISE, POWER_SKEW, POWER_COMMON = 0.125, 0.40, 0.012
"""Log-power noise of an electrode, its asymmetry, and the part common to an area."""

MEDIAN_POWER, POWER_SPREAD = 120.0, 0.5
"""Background power of the median electrode in uV^2, and the log spread over electrodes."""


@dataclass(frozen=True)
class Day:
    """What the electrodes are like on one day; N electrodes.

    Attributes
    ----------
    tuning : float32 (N_LATENTS, N)
        Effect of each latent signal on an electrode's log rate.
    shared : float32 (areas, SHARED_RANK, N / areas)
        Effect of the common fluctuations.
    log_rate : float32 (N,)
        Logarithm of the mean crossings per bin at -3.5 x RMS.
    log_power : float32 (N,)
        Logarithm of the background power, uV^2.
    """

    tuning: np.ndarray
    shared: np.ndarray
    log_rate: np.ndarray
    log_power: np.ndarray


class Cortex:
    """The electrodes of one simulated participant, day after day.

    Parameters
    ----------
    form
        Areas and their tuning.
    setting
        Tuning gain, noise and drift.
    seed
        The participant's seed.
    """

    def __init__(self, form: Form, setting: Setting, seed: int) -> None:
        self.form, self.setting, self.seed = form, setting, seed
        rng = generator(seed, Stream.CORTEX)
        n_areas = len(form.areas)
        self.area = np.repeat(np.arange(n_areas), N_ELECTRODES // n_areas)
        area_gain = np.array([gain for _, gain in form.areas])[self.area]
        self.gain = (area_gain * rng.gamma(GAIN_SHAPE, 1 / GAIN_SHAPE, N_ELECTRODES)).astype(np.float32)
        self.noise_gain = np.exp(0.3 * rng.standard_normal(N_ELECTRODES)).astype(np.float32)
        dispersion = DISPERSION + DISPERSION_SPREAD * rng.standard_normal(N_ELECTRODES)
        self.passes = np.clip(PASS_MEAN + PASS_SPREAD * rng.standard_normal((3, N_ELECTRODES)), 0.1, 0.9)
        # In the '25 form the stored counts are those at -4.5: the same statistics, one threshold deeper.
        self.count_scale = np.ones(N_ELECTRODES)
        for index in range(THRESHOLDS.index(form.threshold)):
            self.count_scale /= self.passes[index]
        base = np.clip(MEAN_RATE + RATE_SPREAD * rng.standard_normal(N_ELECTRODES), LOWEST_RATE, HIGHEST_RATE)
        self._base_rate = np.log(base * self.count_scale)
        # Refractoriness makes busy electrodes regular; a quiet one cannot be more regular than chance.
        dispersion = np.clip(dispersion, 1 - 0.35 * np.minimum(base * self.count_scale, 1), 1.3)
        self.panjer = (1 - 1 / dispersion).astype(np.float32)  # the "a" of the (a, b, 0) class
        self.panjer[np.abs(self.panjer) < 1e-3] = 1e-3
        self._base_power = np.log(MEDIAN_POWER) + POWER_SPREAD * rng.standard_normal(N_ELECTRODES)
        self.day = lru_cache(maxsize=4)(self._day)
        self._directions: list[tuple[np.ndarray, np.ndarray]] = []

    def __getstate__(self) -> dict:
        return {"form": self.form, "setting": self.setting, "seed": self.seed}

    def __setstate__(self, state: dict) -> None:
        self.__init__(state["form"], state["setting"], state["seed"])  # type: ignore[misc]

    def _draw_directions(self, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        # Heavy tails: an electrode prefers a few of the latent signals.
        raw = rng.standard_normal((N_LATENTS, N_ELECTRODES)) * rng.gamma(0.7, 1.0, (N_LATENTS, N_ELECTRODES))
        shared = rng.standard_normal((len(self.form.areas), SHARED_RANK, N_ELECTRODES // len(self.form.areas)))
        return raw / np.linalg.norm(raw, axis=0), shared / np.sqrt(SHARED_RANK)

    def _day(self, day: int) -> Day:
        angle = self.setting.day_rotation
        while len(self._directions) <= day:
            rng = generator(self.seed, Stream.DAY, len(self._directions))
            fresh, shared = self._draw_directions(rng)
            if self._directions:
                before, shared_before = self._directions[-1]
                fresh -= before * (fresh * before).sum(axis=0)  # turn every electrode's tuning by exactly `angle`
                fresh = np.cos(angle) * before + np.sin(angle) * fresh / np.linalg.norm(fresh, axis=0)
                shared = np.cos(angle) * shared_before + np.sin(angle) * shared
            self._directions.append((fresh, shared))
        direction, shared = self._directions[day]
        rng = generator(self.seed, Stream.DAY, day, 1)
        spread = self.setting.day_gain
        gain = self.setting.tuning_gain * self.gain * np.exp(spread * rng.standard_normal(N_ELECTRODES))
        return Day(
            tuning=(direction * gain).astype(np.float32),
            shared=(shared * self.setting.shared_noise).astype(np.float32),
            log_rate=(self._base_rate + spread * rng.standard_normal(N_ELECTRODES)).astype(np.float32),
            log_power=(self._base_power + 0.5 * spread * rng.standard_normal(N_ELECTRODES)).astype(np.float32),
        )

    def block_offset(self, day: int, block: float) -> np.ndarray:
        """Log-rate offset of every electrode at a time of the day, float32 (N,): a random walk over blocks.

        Parameters
        ----------
        day
            Day index.
        block
            Time of the day in blocks; between two blocks the walk is a straight line.
        """
        whole = int(block)
        steps = [generator(self.seed, Stream.BLOCK, day, b).standard_normal(N_ELECTRODES) for b in range(whole + 2)]
        walk = np.sum(steps[: whole + 1], axis=0) + (block - whole) * steps[whole + 1]
        return (self.setting.block_drift * walk).astype(np.float32)

    def rates(self, latents: np.ndarray, day: Day, offset: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Expected crossings per bin at -3.5 x RMS.

        Parameters
        ----------
        latents : float32 (T, N_LATENTS)
            Standardised movement signals, already shifted by the neural lead.
        day
            The day's electrodes.
        offset : float32 (N,)
            See `block_offset`.
        rng
            Source of the slow fluctuations.

        Returns
        -------
        float32 (T, N)
        """
        modulation = latents @ day.tuning
        common = slow_noise(len(latents), SHARED_RANK * len(day.shared), rng).reshape(len(latents), len(day.shared), -1)
        modulation += np.einsum("tak,akn->tan", common, day.shared).reshape(modulation.shape)
        private = slow_noise(len(latents), N_ELECTRODES, rng)
        private *= self.setting.private_noise * self.noise_gain
        modulation += private
        modulation += day.log_rate + offset
        np.exp(modulation, out=modulation)
        return np.minimum(modulation, (HIGHEST_BURST * self.count_scale).astype(np.float32), out=modulation)

    def counts(self, rates: np.ndarray, rng: np.random.Generator) -> dict[float, np.ndarray]:
        """Crossings at the four thresholds, each a part of the one before; uint8 (T, N) each."""
        first = draw_counts(rates, self.panjer, rng)
        result = {THRESHOLDS[0]: first}
        filled = np.flatnonzero(first)
        times = first.ravel()[filled]
        bins = np.repeat(filled, times)  # one entry a crossing
        electrodes = np.repeat(filled % N_ELECTRODES, times)
        depth = rng.random(len(bins), dtype=np.float32)
        for threshold, share in zip(THRESHOLDS[1:], np.cumprod(self.passes, axis=0).astype(np.float32), strict=True):
            kept = depth < share[electrodes]
            bins, electrodes, depth = bins[kept], electrodes[kept], depth[kept]
            result[threshold] = np.bincount(bins, minlength=first.size).astype(np.uint8).reshape(first.shape)
        return result

    def power(self, rates: np.ndarray, counts: np.ndarray, day: Day, rng: np.random.Generator) -> np.ndarray:
        """Spike-band power in uV^2, float32 (T, N), of bins with these rates and these crossings
        at the form's threshold."""
        level = np.float32(1 - HASH_POWER) + np.float32(HASH_POWER) * rates / np.exp(day.log_rate)
        level += np.float32(SPIKE_POWER) * counts
        noise = rng.standard_normal(rates.shape, dtype=np.float32)
        # Skewed to the right, zero mean, unit variance.
        skew = np.float32(POWER_SKEW)
        noise = np.expm1(skew * noise - skew**2 / 2) / np.float32(np.sqrt(np.expm1(POWER_SKEW**2)))
        noise *= np.float32(POWER_NOISE)
        common = rng.standard_normal((len(rates), len(day.shared)), dtype=np.float32) * np.float32(POWER_COMMON)
        noise += common[:, self.area]
        level *= np.exp(noise + day.log_power)
        return level


def slow_noise(n_bins: int, n_signals: int, rng: np.random.Generator) -> np.ndarray:
    """Stationary first-order fluctuations of unit variance, float32 (T, n), correlated over `SLOW_SECONDS`."""
    keep = np.float32(np.exp(-BIN_SECONDS / SLOW_SECONDS))
    start = rng.standard_normal((1, n_signals), dtype=np.float32)
    drive = rng.standard_normal((n_bins, n_signals), dtype=np.float32) * np.sqrt(1 - keep**2)
    one = np.float32(1)
    return lfilter([one], [one, -keep], drive, axis=0, zi=keep * start)[0]


def draw_counts(rates: np.ndarray, a: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw counts with given means whose variance over mean is 1 / (1 - a).

    The Panjer (a, b, 0) class: p_k = (a + b / k) p_(k-1), which is binomial for a < 0, Poisson for a = 0 and negative
    binomial for a > 0.

    Parameters
    ----------
    rates : float32 (T, N)
        Means, at least 0.
    a : float32 (N,)
        Below 1 and not 0.
    rng
        Source of randomness.

    Returns
    -------
    uint8 (T, N)
    """
    # The chances sum to 1 but for rounding; stay below what is lost.
    uniform = rng.random(rates.shape, dtype=np.float32)
    uniform *= np.float32(1 - 2e-6)
    chance = np.exp(rates * ((1 - a) * np.log1p(-a) / a))
    # Most bins are empty: from here on, only those whose count is still growing.
    left = np.flatnonzero(uniform > chance)
    electrode = left % rates.shape[1]
    uniform, chance, a = uniform.ravel()[left], chance.ravel()[left], a[electrode]
    b = rates.ravel()[left] * (1 - a) - a
    below = chance.copy()
    counts = np.zeros(rates.size, np.uint8)
    k = 1
    while len(left):
        counts[left] = k
        chance *= np.maximum(a + b / np.float32(k), 0)
        below += chance
        more = (uniform > below) & (k < HIGHEST_COUNT)
        left, uniform, chance, below, a, b = (array[more] for array in (left, uniform, chance, below, a, b))
        k += 1
    return counts.reshape(rates.shape)
