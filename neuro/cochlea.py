"""The ear: sound to spike counts of auditory nerve fibres, one group of fibres per frequency channel.

Stages, all causal: gammatone filters on the ERB-rate scale, half-wave rectification, power-law compression, a low-pass
for the hair cell's membrane, subtractive adaptation, spikes.

Sources: bandwidths and spacing, Glasberg & Moore 1990 (Hearing Research 47), ERB(f) = 24.7 (4.37 f / 1000 + 1) Hz and
ERB-rate(f) = 21.4 log10(1 + 4.37 f / 1000); filters of order 4 and bandwidth 1.019 ERB, Patterson et al. 1992, in the
form of four equal complex one-pole filters, Hohmann 2002 (Acta Acustica 88); compression exponent about 0.3 and the
chain of rectifier and low-pass, Dau, Pueschel & Kohlrausch 1996 and Lyon's cascades; adaptation with one time constant
of tens of milliseconds, after Westerman & Smith 1984 (Hearing Research 15).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numba import njit
from scipy import signal

from neuro.errors import DataError
from neuro.trial import BIN_SECONDS

_BANDWIDTH = 1.019  # of the order-4 gammatone, in ERB
_REFERENCE_RMS = 0.05  # what level 0 dB stands for, on the scale of samples in -1..1
_NOTHING = 1e-30


def erb(hz: np.ndarray | float) -> np.ndarray:
    """Equivalent rectangular bandwidth of the ear's filter at a frequency, Hz (Glasberg & Moore 1990).

    Examples
    --------
    >>> round(float(erb(1000.0)), 1)
    132.6
    """
    return 24.7 * (0.00437 * np.asarray(hz) + 1.0)


def erb_space(low_hz: float, high_hz: float, n_channels: int) -> np.ndarray:
    """Centre frequencies float64 (N,), Hz, low to high, at equal steps on the ERB-rate scale.

    Examples
    --------
    >>> erb_space(100.0, 4000.0, 3).round()
    array([ 100.,  950., 4000.])
    """
    low, high = (np.log10(1.0 + 0.00437 * hz) for hz in (low_hz, high_hz))
    return (10.0 ** np.linspace(low, high, n_channels) - 1.0) / 0.00437


def _poisson(expected: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return rng.poisson(expected)


def _integrate(expected: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    # A perfect integrator fires each time its integral passes a whole number, from a random phase in 0..1. Counts come
    # from differences of the running integral, so no spike is lost at the edge of a bin.
    crossings = np.floor(np.cumsum(expected, axis=0) + rng.random(expected.shape[1]))
    return np.diff(crossings, axis=0, prepend=0.0).astype(np.int64)


SPIKES: dict[str, Callable[[np.ndarray, np.random.Generator], np.ndarray]] = {
    "poisson": _poisson,
    "integrate": _integrate,
}
"""Spike generators: expected counts (T, N) and a generator to counts (T, N)."""


@dataclass(frozen=True)
class Cochlea:
    """A bank of ears-worth of channels; made once, used for any number of recordings. Picklable, holds no state.

    Parameters
    ----------
    n_channels
        Frequency channels N.
    low_hz, high_hz
        Lowest and highest centre frequency, Hz. By default the highest is the smaller of 8 kHz and 0.9 of half the
        sample rate.
    sample_rate
        Hz, at which filtering runs; a recording with another rate is resampled first.
    dt
        Length of a bin, seconds.
    threshold
        Amplitude of a filter's output that is not heard yet, on the scale of samples in -1..1.
    compression
        Exponent of the power law above the threshold; 1 is linear.
    cutoff_hz
        Corner of the hair cell's one-pole low-pass, Hz.
    adaptation, adaptation_seconds
        Share of the recent mean drive that is taken away (0 is off), and the time constant of that mean, seconds.
    spontaneous_hz, gain_hz
        Spikes per second of a channel in silence, and what a drive of 1 adds. A drive of 1 is a tone of constant
        amplitude 1 after the level is set and before compression.
    level_db
        Level to which every recording is brought, dB relative to a root mean square of 0.05; None leaves it as it
        came. Recordings differ in level for reasons that have nothing to do with speech.
    spikes
        ``poisson``, or ``integrate`` for perfect integrate-and-fire (almost no variability).

    Raises
    ------
    DataError
        If a parameter makes no sense, such as a channel above half the sample rate.

    Examples
    --------
    >>> ear = Cochlea(n_channels=8, sample_rate=8000)
    >>> tone = np.sin(2 * np.pi * 1000 * np.arange(8000) / 8000)
    >>> counts = ear.spike_counts(tone, 8000, seed=0)
    >>> counts.shape, bool(abs(ear.centres[counts.sum(0).argmax()] - 1000) < 250)
    ((50, 8), True)
    """

    n_channels: int = 64
    low_hz: float = 80.0
    high_hz: float | None = None
    sample_rate: int = 16_000
    dt: float = BIN_SECONDS
    threshold: float = 1e-4
    compression: float = 0.3
    cutoff_hz: float = 1000.0
    adaptation: float = 0.5
    adaptation_seconds: float = 0.05
    spontaneous_hz: float = 10.0
    gain_hz: float = 400.0
    level_db: float | None = 0.0
    spikes: str = "poisson"

    def __post_init__(self) -> None:
        positive = ("low_hz", "dt", "compression", "cutoff_hz", "adaptation_seconds")
        at_least = {"n_channels": 1, "sample_rate": 1, **dict.fromkeys(positive, 1e-6)}
        at_least |= dict.fromkeys(("threshold", "adaptation", "spontaneous_hz", "gain_hz"), 0)
        for name, least in at_least.items():
            if not getattr(self, name) >= least:
                raise DataError(
                    "cochlea parameter too small", field=name, found=getattr(self, name), expected=f"at least {least}"
                )
        if self.spikes not in SPIKES:
            raise DataError(
                "unknown spike generator", field="spikes", found=self.spikes, expected=f"one of {', '.join(SPIKES)}"
            )
        top = self.sample_rate / 2 if self.high_hz is None else self.high_hz
        if not self.low_hz < top <= self.sample_rate / 2:
            raise DataError(
                "cochlea channels must lie between low_hz and half the sample rate",
                field="high_hz",
                found=top,
                expected=f"above {self.low_hz:g} and up to {self.sample_rate / 2:g}",
            )
        if self.dt * self.sample_rate < 1:
            raise DataError(
                "bins shorter than one sample", field="dt", found=self.dt, expected=f">= {1 / self.sample_rate}"
            )

    @property
    def centres(self) -> np.ndarray:
        """Centre frequency of every channel, Hz, float64 (N,), low to high."""
        high = self.high_hz if self.high_hz is not None else max(min(8000.0, 0.45 * self.sample_rate), self.low_hz)
        return erb_space(self.low_hz, high, self.n_channels)

    def n_bins(self, n_samples: int) -> int:
        """Bins that cover so many samples at `sample_rate`; the last may be partly past the end."""
        return max(1, int(np.ceil(n_samples / (self.dt * self.sample_rate) - 1e-6)))

    def envelopes(self, wave: np.ndarray, rate: int) -> np.ndarray:
        """Hair-cell drive of every channel, averaged over each bin: rectified, compressed, before adaptation.

        Parameters
        ----------
        wave
            Samples (S,), real; several channels must be mixed before.
        rate
            Sample rate, Hz.

        Returns
        -------
        float32 (T, N)

        Raises
        ------
        DataError
            If the wave is empty, has more than one axis, or holds NaN or infinite values.
        """
        return self._drive(wave, rate)[0]

    def rates(self, wave: np.ndarray, rate: int) -> np.ndarray:
        """Mean firing rate of every channel in each bin, spikes per second, float32 (T, N). See `envelopes`."""
        return (self.spontaneous_hz + self.gain_hz * self._drive(wave, rate)[1]).astype(np.float32)

    def spike_counts(self, wave: np.ndarray, rate: int, seed: int | np.random.SeedSequence) -> np.ndarray:
        """Spikes of every channel in each bin, int64 (T, N); the same seed gives the same spikes. See `envelopes`."""
        return self.encode(wave, rate, seed)[0]

    def encode(
        self, wave: np.ndarray, rate: int, seed: int | np.random.SeedSequence, *, silence: float = 0.0
    ) -> tuple[np.ndarray, np.ndarray]:
        """`spike_counts` int64 (T, N) and `envelopes` float32 (T, N) in one pass.

        ``silence`` is put before and after the wave, in seconds, once its level is set: it does not make it louder.
        """
        envelope, adapted = self._drive(wave, rate, silence)
        expected = (self.spontaneous_hz + self.gain_hz * adapted.astype(np.float64)) * self.dt
        return SPIKES[self.spikes](expected, np.random.default_rng(seed)), envelope

    def _prepare(self, wave: np.ndarray, rate: int, silence: float = 0.0) -> np.ndarray:
        wave = np.asarray(wave)
        if wave.ndim != 1 or wave.size == 0 or wave.dtype.kind not in "buif":
            raise DataError(
                "sound is not a row of samples", found=f"{wave.dtype} {wave.shape}", expected="at least one number"
            )
        samples = wave.astype(np.float64)
        if not np.isfinite(samples).all():
            raise DataError(
                "sound holds NaN or infinite samples", found=f"{(~np.isfinite(samples)).sum()} of {len(samples)}"
            )
        if rate != self.sample_rate:
            if rate <= 0:
                raise DataError("impossible sample rate", found=rate, expected="Hz")
            ratio = Fraction(int(self.sample_rate), int(rate))
            samples = signal.resample_poly(samples, ratio.numerator, ratio.denominator)
        rms = float(np.sqrt(np.mean(samples**2)))
        if self.level_db is not None and rms > 0:
            samples *= _REFERENCE_RMS * 10.0 ** (self.level_db / 20.0) / rms
        return np.pad(samples, round(silence * self.sample_rate))

    def _drive(self, wave: np.ndarray, rate: int, silence: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
        """Mean drive per bin before and after adaptation, each float32 (T, N)."""
        samples = self._prepare(wave, rate, silence)
        # Edges are rounded one by one, so that bins stay in step when a bin is not a whole number of samples.
        edges = np.round(np.arange(self.n_bins(len(samples)) + 1) * self.dt * self.sample_rate).astype(np.int64)
        centres = self.centres
        radius = np.exp(-2 * np.pi * _BANDWIDTH * erb(centres) / self.sample_rate)
        return _hair_cells(
            samples,
            radius * np.exp(2j * np.pi * centres / self.sample_rate),
            1 - radius,
            edges,
            self.threshold,
            self.compression,
            np.exp(-2 * np.pi * self.cutoff_hz / self.sample_rate),
            np.exp(-1 / (self.adaptation_seconds * self.sample_rate)),
            self.adaptation,
        )


@njit(cache=True)
def _hair_cells(samples, poles, gains, edges, threshold, exponent, fast, slow, adaptation):
    """All stages but the spikes, a channel at a time: nothing as large as the filters' outputs is ever in memory.

    samples float64 (S,), with silence after them; poles complex128 (N,); gains float64 (N,); edges int64 (T + 1,).
    """
    T, N = len(edges) - 1, len(poles)
    plain = np.empty((T, N), np.float32)
    adapted = np.empty((T, N), np.float32)
    for c in range(N):
        pole, gain = poles[c], gains[c]
        # One pole at radius r and angle w has the impulse response r^t e^(iwt); four of them in a row give about
        # t^3 r^t e^(iwt), whose real part is the gammatone.
        first = second = third = fourth = 0j
        membrane = recent = 0.0
        for k in range(T):
            total = total_adapted = 0.0
            for t in range(edges[k], edges[k + 1]):
                sample = samples[t] if t < len(samples) else 0.0
                first = pole * first + gain * sample
                second = pole * second + gain * first
                third = pole * third + gain * second
                fourth = pole * fourth + gain * third
                heard = 2.0 * fourth.real - threshold
                drive = heard**exponent if heard > 0.0 else 0.0
                membrane = fast * membrane + (1.0 - fast) * drive
                recent = slow * recent + (1.0 - slow) * membrane
                total += membrane
                total_adapted += max(membrane - adaptation * recent, 0.0)
            width = edges[k + 1] - edges[k]
            plain[k, c] = total / width
            adapted[k, c] = total_adapted / width
            # In long silence everything would sink into the denormal numbers, which are slow to compute with.
            if abs(first) + abs(fourth) + membrane + recent < _NOTHING:
                first = second = third = fourth = 0j
                membrane = recent = 0.0
    return plain, adapted
