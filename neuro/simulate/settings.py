"""Every number of the simulated participant, in named sets.

A `Form` is what a file format dictates, a `Pace` how fast the participant speaks, a `Setting` how well the electrodes
hear it. The values were fixed against the statistics of recorded data, each within the band that
``tests/neuro/simulate`` states.

The difficulty, `Setting.tuning_gain`, was set once by how well non-spiking networks of 2M core parameters read the
result, before any spiking one did, and is frozen. ``docs/results/difficulty.md`` has the figures and the commands.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Pace:
    """Speaking rate of a participant.

    Attributes
    ----------
    phoneme_seconds : float
        Mean time of a phoneme (word boundaries included) while speaking.
    before_seconds, after_seconds : tuple of float
        Mean and standard deviation (of a log-normal law) of the silence before and after the sentence.
    """

    phoneme_seconds: float
    before_seconds: tuple[float, float]
    after_seconds: tuple[float, float]


@dataclass(frozen=True)
class Form:
    """What a file format dictates.

    Attributes
    ----------
    prefix : str
        Start of every session name.
    pace : str
        The pace of the participant whose recordings have this form.
    areas : tuple of (str, float)
        Array groups in electrode order with the strength of speech tuning there; all have the same size.
    blocks : int
        Blocks of a day when there are enough trials.
    holdout : str
        How val and test are cut: ``"blocks"`` (whole blocks) or ``"shared"`` (val and test in the same blocks).
    threshold : float
        The crossing threshold whose counts carry the recorded rates.
    """

    prefix: str
    pace: str
    areas: tuple[tuple[str, float], ...]
    blocks: int
    holdout: str
    threshold: float


@dataclass(frozen=True)
class Setting:
    """How well the electrodes hear the participant, and what the participant says.

    Attributes
    ----------
    tuning_gain : float
        The difficulty: standard deviation of the speech-driven part of a typical electrode's log firing rate.
    articulation_noise : float
        Standard deviation of what each attempt at a phoneme adds to its articulatory target.
    shared_noise, private_noise : float
        Standard deviation of slow log-rate fluctuations that have nothing to do with speech, common to an area and
        of each electrode alone.
    day_rotation : float
        Angle in radians by which each electrode's tuning turns from one day to the next.
    day_gain : float
        Standard deviation of the day's change of an electrode's log gain and log rate.
    block_drift : float
        Standard deviation of one step of the random walk of log rates over the blocks of a day.
    corpora : str
        Name of the set of corpora: ``"full"`` or ``"short"``.
    pace : str, or None
        A key of `PACES` that stands in for the form's.
    speed : float
        Factor on the speaking rate.
    silence : float
        Factor on the silence before and after.
    """

    tuning_gain: float
    articulation_noise: float
    shared_noise: float
    private_noise: float
    day_rotation: float
    day_gain: float
    block_drift: float
    corpora: str = "full"
    pace: str | None = None
    speed: float = 1.0
    silence: float = 1.0


PACES: dict[str, Pace] = {
    "t12": Pace(phoneme_seconds=0.178, before_seconds=(0.75, 0.25), after_seconds=(0.45, 0.2)),
    "t15": Pace(phoneme_seconds=0.58, before_seconds=(1.0, 0.35), after_seconds=(0.8, 0.35)),
}

FORMS: dict[str, Form] = {
    "b2t24": Form(
        prefix="t12",
        pace="t12",
        areas=(("6v superior and inferior", 1.0), ("44", 0.12)),
        blocks=11,
        holdout="blocks",
        threshold=-3.5,
    ),
    "b2t25": Form(
        prefix="t15",
        pace="t15",
        areas=(("ventral 6v", 1.0), ("4", 1.0), ("55b", 0.6), ("dorsal 6v", 0.8)),
        blocks=8,
        holdout="shared",
        threshold=-4.5,
    ),
}

SETTINGS: dict[str, Setting] = {
    "default": Setting(
        tuning_gain=0.17,
        articulation_noise=0.12,
        shared_noise=0.12,
        private_noise=0.19,
        day_rotation=0.25,
        day_gain=0.12,
        block_drift=0.08,
    ),
    "easy": Setting(
        tuning_gain=0.55,
        articulation_noise=0.05,
        shared_noise=0.05,
        private_noise=0.05,
        day_rotation=0.08,
        day_gain=0.05,
        block_drift=0.03,
        corpora="short",
        pace="t12",
        speed=1.15,
        silence=0.5,
    ),
}
