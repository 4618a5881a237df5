"""Phonemes to movements: every phoneme its own target, neighbours blend, and a single moment is ambiguous."""

from __future__ import annotations

import numpy as np
import pytest

from neuro.phonemes import PHONEMES
from neuro.simulate import PACES, Participant
from neuro.simulate.articulation import ARTICULATORS, symbols, targets, trajectories
from neuro.simulate.timing import RELATIVE, durations, silences

LIPS, TIP, VOICING = (ARTICULATORS.index(name) for name in ("lips", "tip", "voicing"))


def say(*names: str, seconds: float = 0.2) -> tuple[np.ndarray, np.ndarray]:
    edges = np.arange(len(names) + 1) * seconds
    return trajectories(list(names), edges, np.arange(0.01, edges[-1], 0.02))


def test_every_phoneme_has_targets_and_a_duration():
    assert set(symbols()) == {*PHONEMES, "SIL", "REST"}
    assert set(RELATIVE) == {*PHONEMES, "SIL"}
    with pytest.raises(KeyError):
        targets("XX")


def test_no_two_phonemes_are_the_same():
    described = {symbol: np.concatenate([part.ravel() for part in targets(symbol)]) for symbol in symbols()}
    for a in described:
        for b in described:
            assert a == b or np.abs(described[a] - described[b]).max() > 0.1, (a, b)


def test_voice_alone_tells_some_pairs_apart():
    for voiced, voiceless in ("BP", "DT", "GK", ("Z", "S"), ("V", "F"), ("ZH", "SH"), ("DH", "TH"), ("JH", "CH")):
        different = np.any(targets(voiced)[0] != targets(voiceless)[0], axis=0)
        assert np.flatnonzero(different).tolist() == [VOICING]


def test_lips_close_for_b_whatever_stands_beside():
    middle = 25
    closed = [say("REST", vowel, "B", vowel, "REST")[0][middle, LIPS] for vowel in ("IY", "AA", "UW")]
    assert max(closed) < -0.4
    assert say("REST", "AA", "D", "AA", "REST")[0][middle, LIPS] > -0.2


def test_neighbours_colour_a_phoneme():
    height = ARTICULATORS.index("body front")
    between_front = say("REST", "IY", "B", "IY", "REST")[0][25, height]
    between_back = say("REST", "AO", "B", "AO", "REST")[0][25, height]
    assert between_front - between_back > 0.8


def test_movements_are_smooth_and_velocities_are_their_slopes():
    positions, velocities = say("REST", "K", "AE", "T", "SIL", "S", "AE", "T", "SIL", "REST")
    assert np.abs(np.diff(positions, axis=0)).max() < 0.8
    middle = (positions[2:] - positions[:-2]) / 0.04
    np.testing.assert_allclose(velocities[1:-1], middle, rtol=1e-3, atol=1e-3)
    assert np.isfinite(positions).all()


def test_at_rest_nothing_moves():
    _, velocities = say("REST", seconds=2.0)
    assert np.abs(velocities[10:-10]).max() < 1e-3


def test_durations():
    rng = np.random.default_rng(0)
    names = ["HH", "AY", "SIL"] * 10
    drawn = np.array([durations(names, PACES["t12"], rng) for _ in range(300)])
    assert drawn.min() >= 0.06
    assert drawn[:, 1:-3:3].mean() > 1.3 * drawn[:, 0:-3:3].mean()  # AY is longer than HH
    slow = np.array([durations(names, PACES["t15"], rng) for _ in range(300)])
    assert 2.5 < slow.mean() / drawn.mean() < 4
    assert min(min(silences(PACES["t12"], rng)) for _ in range(300)) >= 0.1


def test_constants_standardise_the_latent_signals():
    participant = Participant("b2t24", sessions=2, trials=200, seed=4)
    latents = np.concatenate([participant.attempt(entry).latents for entry in participant.plan[::4]])
    assert np.abs(latents.mean(axis=0)).max() < 0.3
    assert latents.std(axis=0).min() > 0.8 and latents.std(axis=0).max() < 1.25
