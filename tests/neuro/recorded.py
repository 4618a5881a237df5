"""Small made-up recordings for the tests of the file formats."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from neuro import THRESHOLDS, Lexicon, RawTrial

SENTENCES = (
    "Aluminum foil has a shiny side and a dull side.",
    "How are you?",
    "I don't know, but she does.",
    "Bring it closer to me.",
    "They were very good friends!",
)


def raw_trials(
    sessions: tuple[str, ...] = ("t15.2023.08.11", "t15.2023.08.13"),
    *,
    n_electrodes: int = 128,
    per_split: tuple[int, int, int] = (5, 3, 2),
    first_only_train: bool = True,
    seed: int = 0,
) -> Iterator[RawTrial]:
    """Sessions of a training block and a block shared by val and test; trial numbers have gaps, as in real files."""
    rng, lexicon = np.random.default_rng(seed), Lexicon()
    for day, session in enumerate(sessions):
        numbers = {1: 0, 2: 0}
        for split, n_trials in zip(("train", "val", "test"), per_split, strict=True):
            if split != "train" and day == 0 and first_only_train:
                continue
            for i in range(n_trials):
                block = 1 if split == "train" else 2
                numbers[block] += int(rng.integers(1, 3))
                sentence = SENTENCES[(day + i) % len(SENTENCES)]
                phonemes = np.array(lexicon.phonemes(sentence))
                frames = int(rng.integers(45, 80))
                rate = rng.uniform(0.1, 1.5, n_electrodes) * (1 + 0.3 * day)
                yield RawTrial(
                    counts={
                        threshold: rng.poisson(rate / (1 + level), (frames, n_electrodes))
                        for level, threshold in enumerate(THRESHOLDS)
                    },
                    power=rng.lognormal(4 + 0.2 * block, 0.5, (frames, n_electrodes)).astype(np.float32),
                    sentence=sentence,
                    phonemes=phonemes,
                    session=session,
                    block=block,
                    trial=numbers[block],
                    split=split,
                    corpus="Switchboard" if block == 1 else "Harvard",
                    onsets=np.sort(rng.integers(0, frames, len(phonemes))),
                )
