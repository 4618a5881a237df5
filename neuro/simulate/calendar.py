"""Which sentence is spoken when: recording days, blocks, splits, corpora, trial numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from neuro.errors import DataError
from neuro.simulate.prompts import draw_sentence
from neuro.simulate.randomness import Stream, generator
from neuro.simulate.settings import Form

FIRST_DAY = date(2001, 1, 8)
"""Simulated days carry dates long before any released recording, so that nobody mixes them up."""

FEWEST_TRIALS = 8

# Corpora by split; each entry is as frequent in its cycle as in the recorded sets, the rare ones a little more so.
_TRAIN = (
    "50-Word",
    "Switchboard",
    "Freq words",
    "Switchboard",
    "Switchboard",
    "Freq words",
    "Switchboard",
    "Switchboard",
)
_HELD_OUT = (
    "Switchboard",
    "Openwebtext",
    "Switchboard",
    "Freq words",
    "Harvard",
    "Switchboard",
    "Random",
    "Switchboard",
)
_CORPORA: dict[str, dict[str, dict[str, tuple[str, ...]]]] = {
    "full": {
        "b2t24": {"train": ("Switchboard",), "held out": ("Switchboard",)},
        "b2t25": {"train": _TRAIN, "held out": _HELD_OUT},
    },
    "short": {form: {"train": ("Short",), "held out": ("Short",)} for form in ("b2t24", "b2t25")},
}


@dataclass(frozen=True)
class Appointment:
    """A trial before it is spoken.

    Attributes
    ----------
    day, index : int
        Position of the session, and of the trial in its session.
    session, split, corpus, sentence : str
        As in `neuro.RawTrial`.
    block, trial : int
        Block of the day, and number of the trial in its block, which may skip.
    hour : float
        Time of the day in blocks, counted from 0.
    """

    day: int
    index: int
    session: str
    block: int
    trial: int
    split: str
    corpus: str
    sentence: str
    hour: float


def session_names(form: Form, n_sessions: int, seed: int) -> list[str]:
    """Names of the sessions in order of time: the form's prefix and a date, days to two weeks apart."""
    names, day = [], FIRST_DAY
    for position in range(n_sessions):
        names.append(f"{form.prefix}.{day:%Y.%m.%d}")
        day += timedelta(days=int(generator(seed, Stream.CALENDAR, position).integers(2, 15)))
    return names


def _splits_by_block(day: int, n_blocks: int) -> list[str]:
    """'24: last block val, first two test (on two days of three), the rest train."""
    test = 2 if day % 3 != 2 else 0
    return ["test"] * test + ["train"] * (n_blocks - test - 1) + ["val"]


def _splits_shared(day: int, n_blocks: int, n_sessions: int) -> list[str]:
    """'25: a quarter of the blocks holds val and test trials; one day in eleven is for training only."""
    if n_sessions > 1 and day % 11 == 0:
        return ["train"] * n_blocks
    held_out = max(1, n_blocks // 4)
    return ["train"] * (n_blocks - held_out) + ["held out"] * held_out


def schedule(
    form_name: str,
    form: Form,
    *,
    n_sessions: int,
    n_trials: int,
    seed: int,
    corpora: str = "full",
    sentences: Sequence[str] | None = None,
    corpus: str = "Text",
) -> list[Appointment]:
    """Plan every trial of a participant; nothing is simulated yet.

    Parameters
    ----------
    form_name, form
        The file form.
    n_sessions, n_trials
        Days, and trials of each day over all splits.
    seed
        The participant's seed.
    corpora
        ``"full"`` or ``"short"``.
    sentences
        The user's own sentences, used in a random order, again from the start when there are too few.
    corpus
        What the user's own sentences are called in the block table.

    Raises
    ------
    DataError
        If there are no sessions, or too few trials for every split to have one.
    """
    if n_sessions < 1:
        raise DataError("a participant needs a session", field="sessions", found=n_sessions, expected="at least 1")
    if n_trials < FEWEST_TRIALS:
        raise DataError(
            "too few trials a session for all splits",
            field="trials",
            found=n_trials,
            expected=f"at least {FEWEST_TRIALS}",
        )
    cycles = _CORPORA[corpora][form_name]
    names = session_names(form, n_sessions, seed)
    order = generator(seed, Stream.TEXT).permutation(len(sentences)) if sentences else None
    n_blocks = max(4, min(form.blocks, n_trials // 8))
    appointments = []
    for day, session in enumerate(names):
        if form.holdout == "blocks":
            splits = _splits_by_block(day, n_blocks)
        else:
            splits = _splits_shared(day, n_blocks, n_sessions)
        numbers: dict[int, int] = {}
        rank = {"train": 0, "held out": 0}
        kinds: list[str] = []
        for split in splits:
            kind = "train" if split == "train" else "held out"
            # Held-out blocks run through their cycle over all days, training blocks start it again every day.
            held_out_before = day * sum(s != "train" for s in splits) if kind == "held out" else 0
            cycle = cycles[kind]
            kinds.append(cycle[(held_out_before + rank[kind]) % len(cycle)])
            rank[kind] += 1
        for index in range(n_trials):
            block = index * n_blocks // n_trials
            rng = generator(seed, Stream.SPLIT, day, index)
            # Now and then the participant or the rig fails, and a number is skipped.
            number = numbers.get(block, -1) + (2 if rng.random() < 0.03 else 1)
            numbers[block] = number
            split, drawn = splits[block], kinds[block]
            if split == "held out":
                split = ("val", "test")[number % 2]
            if order is None:
                sentence = draw_sentence(drawn, generator(seed, Stream.SENTENCE, day, index))
            else:
                assert sentences is not None
                sentence, drawn = sentences[order[(day * n_trials + index) % len(order)]], corpus
            appointments.append(
                Appointment(
                    day=day,
                    index=index,
                    session=session,
                    block=block + 1,
                    trial=number,
                    split=split,
                    corpus=drawn,
                    sentence=sentence,
                    hour=index * n_blocks / n_trials,
                )
            )
    return appointments
