"""The simulated participant: sentences in, raw trials out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from neuro.errors import DataError
from neuro.lexicon import Lexicon
from neuro.phonemes import SYMBOLS
from neuro.simulate.articulation import ARTICULATORS, trajectories
from neuro.simulate.calendar import Appointment, schedule
from neuro.simulate.cortex import LEAD_SECONDS, Cortex
from neuro.simulate.randomness import Stream, generator
from neuro.simulate.settings import FORMS, PACES, SETTINGS, Setting
from neuro.simulate.timing import durations, silences
from neuro.trial import BIN_SECONDS, RawTrial

# Mean and spread of each articulator over everyday speech at the t12 pace, and the spread of its velocity times the
# mean phoneme time: they bring all latent signals to about zero mean and unit variance. Fixed numbers, so that a
# trial does not depend on any other; a test compares them with what the articulation gives.
POSITION_MEAN = np.array(
    [-0.36, 0.12, 0.0, 0.0, 0.06, 0.12, 0.06, -0.36, -0.36, 0.06, -0.42, -0.36, -0.06, 0.24], np.float32
)
POSITION_SPREAD = np.array(
    [0.32, 0.52, 0.31, 0.56, 0.28, 0.41, 0.41, 0.37, 0.53, 0.68, 0.50, 0.29, 0.27, 0.92], np.float32
)
VELOCITY_SPREAD = np.array(
    [0.35, 0.49, 0.34, 0.79, 0.33, 0.42, 0.44, 0.41, 0.55, 0.84, 0.67, 0.34, 0.31, 0.78], np.float32
)


@dataclass(frozen=True)
class Attempt:
    """One sentence in the mouth, before any electrode.

    Attributes
    ----------
    phonemes : int64 (L,)
        Labels in torch order.
    edges : float64 (L + 3,)
        Start of the silence before, of every phoneme, of the silence after, and the end; seconds.
    n_bins : int
        Length of the trial.
    latents : float32 (n_bins, 2 A)
        Standardised positions and velocities of the articulators, ahead of the movement by the neural lead.
    """

    phonemes: np.ndarray
    edges: np.ndarray
    n_bins: int
    latents: np.ndarray


class Participant:
    """A simulated participant, trial by trial. No recording of any person is in it.

    Parameters
    ----------
    form
        ``"b2t24"`` or ``"b2t25"``: the areas, splits and corpora of that release.
    sessions, trials
        Recording days, and trials of each day over all splits (at least 8).
    seed
        Everything follows from it. A trial does not depend on how many are drawn, nor in which order.
    setting
        A key of `SETTINGS`, or a `Setting` of your own.
    pace
        A key of `PACES`; None for the setting's, or else that of the form's own participant.
    sentences
        Your own sentences instead of the grammar's.
    lexicon
        Pronunciations; None for the CMU dictionary.

    Raises
    ------
    DataError
        If a name is unknown, a number too small, or a word has no pronunciation.

    Examples
    --------
    >>> someone = Participant("b2t24", sessions=2, trials=8, seed=1, setting="easy")
    >>> trial = next(iter(someone))
    >>> trial.counts[-3.5].shape == trial.power.shape, trial.power.shape[1]
    (True, 256)
    """

    def __init__(
        self,
        form: str = "b2t25",
        *,
        sessions: int = 4,
        trials: int = 200,
        seed: int = 1,
        setting: str | Setting = "default",
        pace: str | None = None,
        sentences: Sequence[str] | None = None,
        lexicon: Lexicon | None = None,
    ) -> None:
        self.form_name = form
        self.form = _look_up(FORMS, form, "form")
        self.setting = setting if isinstance(setting, Setting) else _look_up(SETTINGS, setting, "setting")
        self.setting_name = setting if isinstance(setting, str) else "own"
        self.pace_name = pace or self.setting.pace or self.form.pace
        self.pace = _look_up(PACES, self.pace_name, "pace")
        if seed < 0:
            raise DataError("a seed cannot be negative", field="seed", found=seed)
        if sentences is not None and not sentences:
            raise DataError("there is no sentence to say", field="sentences")
        self.seed, self.n_trials = seed, trials
        self.lexicon = lexicon if lexicon is not None else Lexicon()
        self.cortex = Cortex(self.form, self.setting, seed)
        self.plan: list[Appointment] = schedule(
            form,
            self.form,
            n_sessions=sessions,
            n_trials=trials,
            seed=seed,
            corpora=self.setting.corpora,
            sentences=sentences,
        )
        self.sessions = sorted({entry.session for entry in self.plan})

    def __len__(self) -> int:
        return len(self.plan)

    def __getitem__(self, position: int) -> RawTrial:
        return self.record(self.plan[position])

    def __iter__(self) -> Iterator[RawTrial]:
        """All trials in order of time."""
        return map(self.record, self.plan)

    def attempt(self, entry: Appointment) -> Attempt:
        """What the mouth does in one trial.

        Raises
        ------
        DataError
            If a word has no pronunciation.
        """
        rng = generator(self.seed, Stream.TRIAL, entry.day, entry.index, 0)
        phonemes = np.array(self.lexicon.phonemes(entry.sentence), np.int64)
        symbols = [SYMBOLS[label] for label in phonemes]
        before, after = silences(self.pace, rng, self.setting.silence)
        spans = durations(symbols, self.pace, rng, self.setting.speed)
        edges = np.cumsum(np.concatenate([[0.0, before], spans, [after]]))
        n_bins = int(np.ceil(edges[-1] / BIN_SECONDS))
        offsets = rng.standard_normal((len(symbols) + 2, len(ARTICULATORS))) * self.setting.articulation_noise
        # Motor cortex at time t drives the movement at t + lead.
        times = (np.arange(n_bins) + 0.5) * BIN_SECONDS + LEAD_SECONDS
        positions, velocities = trajectories(["REST", *symbols, "REST"], edges, times, offsets)
        phoneme_seconds = self.pace.phoneme_seconds / self.setting.speed
        latents = np.concatenate(
            [(positions - POSITION_MEAN) / POSITION_SPREAD, velocities * (phoneme_seconds / VELOCITY_SPREAD)], axis=1
        )
        return Attempt(phonemes, edges, n_bins, latents.astype(np.float32))

    def record(self, entry: Appointment) -> RawTrial:
        """What the electrodes see in one trial."""
        attempt = self.attempt(entry)
        rng = generator(self.seed, Stream.TRIAL, entry.day, entry.index, 1)
        day = self.cortex.day(entry.day)
        offset = self.cortex.block_offset(entry.day, entry.hour)
        rates = self.cortex.rates(attempt.latents, day, offset, rng)
        counts = self.cortex.counts(rates, rng)
        onsets = np.minimum(np.floor(attempt.edges[1:-2] / BIN_SECONDS).astype(np.int64), attempt.n_bins - 1)
        return RawTrial(
            counts=counts,
            power=self.cortex.power(rates, counts[self.form.threshold], day, rng),
            sentence=entry.sentence,
            phonemes=attempt.phonemes,
            session=entry.session,
            block=entry.block,
            trial=entry.trial,
            split=entry.split,
            corpus=entry.corpus,
            onsets=onsets,
        )

    def describe(self) -> dict:
        """Settings and seed as plain values, for a file beside the data."""
        return {
            "simulated": True,
            "note": "Simulated participant of ranvier; no recording of any person.",
            "form": self.form_name,
            "sessions": self.sessions,
            "trials_per_session": self.n_trials,
            "seed": self.seed,
            "pace": {"name": self.pace_name, **asdict(self.pace)},
            "setting": {"name": self.setting_name, **asdict(self.setting)},
        }


def _look_up(table: dict, name: str, field: str):
    if name not in table:
        raise DataError(f"unknown {field}", field=field, found=name, expected=" or ".join(table))
    return table[name]
