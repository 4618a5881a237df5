"""Augmentations: every argument changes the output, padding stays zero, lengths stay right, seeds decide."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
import torch

from neuro import Batch, Trial, collate
from neuro.augment import (
    AUGMENTATIONS,
    OFFICIAL,
    Compose,
    ConstantOffset,
    RandomCut,
    RandomWalk,
    StaticGain,
    TimeMask,
    WhiteNoise,
    official,
)

# name -> arguments that change something, the same that change nothing, and other values one at a time
CASES: dict[str, tuple[dict[str, Any], dict[str, Any], list[dict[str, Any]]]] = {
    "static_gain": ({"sd": 0.1}, {"sd": 0.0}, [{"sd": 0.2}]),
    "white_noise": ({"sd": 1.0}, {"sd": 0.0}, [{"sd": 0.5}]),
    "constant_offset": ({"sd": 0.2}, {"sd": 0.0}, [{"sd": 0.4}]),
    "random_walk": ({"sd": 0.1}, {"sd": 0.0}, [{"sd": 0.2}, {"axis": "channel"}]),
    "random_cut": ({"max_bins": 5}, {"max_bins": 0}, [{"max_bins": 15}]),
    "time_mask": ({"n_masks": 2, "max_fraction": 0.3}, {"n_masks": 0}, [{"n_masks": 9}, {"max_fraction": 0.9}]),
}
NAMES = sorted(AUGMENTATIONS)
LENGTHS = (40, 25, 33)


def make_batch(lengths: tuple[int, ...] = LENGTHS, channels: int = 6, value: float | None = None) -> Batch:
    rng = np.random.default_rng(1)
    trials = [
        Trial(
            features=rng.normal(size=(length, channels)).astype(np.float32)
            if value is None
            else np.full((length, channels), value),
            phonemes=np.array([1, 40]),
            sentence="a",
            session="t0.1",
            block=0,
            trial=i,
            split="train",
            key=f"t0.1/train/{i}",
        )
        for i, length in enumerate(lengths)
    ]
    return collate(trials, ["t0.1"])


def seeded(seed: int = 3) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_table_is_whole() -> None:
    assert set(CASES) == set(AUGMENTATIONS)
    assert all(set(steps) <= set(AUGMENTATIONS) for steps in OFFICIAL.values())


@pytest.mark.parametrize("name", NAMES)
def test_padding_stays_zero_and_the_given_batch_is_left_alone(name: str) -> None:
    batch = make_batch()
    before = batch.features.clone()
    out = AUGMENTATIONS[name](**CASES[name][0])(batch, seeded())
    assert torch.equal(batch.features, before)
    assert out.features.shape[0] == int(out.lengths.max())
    assert out.features[~out.mask()].abs().sum() == 0
    assert out.features.dtype == torch.float32
    assert torch.equal(out.phonemes, batch.phonemes) and out.keys == batch.keys


@pytest.mark.parametrize("name", NAMES)
def test_it_does_something_and_can_be_switched_off(name: str) -> None:
    on, off, _ = CASES[name]
    batch = make_batch()
    assert not same(AUGMENTATIONS[name](**on)(batch, seeded()), batch)
    assert same(AUGMENTATIONS[name](**(on | off))(batch, seeded()), batch)


@pytest.mark.parametrize("name", NAMES)
def test_every_argument_changes_the_output(name: str) -> None:
    on, _, others = CASES[name]
    assert {key for other in others for key in other} == set(CASES[name][0]) | (
        {"axis"} if name == "random_walk" else set()
    )
    batch = make_batch()
    reference = AUGMENTATIONS[name](**on)(batch, seeded())
    for other in others:
        assert not same(AUGMENTATIONS[name](**(on | other))(batch, seeded()), reference), other


@pytest.mark.parametrize("name", NAMES)
def test_the_generator_alone_decides(name: str) -> None:
    batch, step = make_batch(), AUGMENTATIONS[name](**CASES[name][0])
    torch.manual_seed(0)
    first = step(batch, seeded(7))
    torch.manual_seed(1)
    copied = pickle.loads(pickle.dumps(step))
    assert same(copied(batch, seeded(7)), first)
    assert any(not same(step(batch, seeded(seed)), first) for seed in range(5))


def same(a: Batch, b: Batch) -> bool:
    return (
        a.features.shape == b.features.shape
        and torch.equal(a.features, b.features)
        and torch.equal(a.lengths, b.lengths)
    )


def test_white_noise_and_offset_have_their_size() -> None:
    batch = make_batch((400, 300), channels=64, value=0.0)
    noise = WhiteNoise(0.8)(batch, seeded()).features[batch.mask()]
    assert noise.std() == pytest.approx(0.8, rel=0.02) and abs(noise.mean()) < 0.02
    shifted = ConstantOffset(0.2)(batch, seeded()).features
    assert shifted[0].std() == pytest.approx(0.2, rel=0.2)
    assert torch.equal(shifted[0, 1], shifted[299, 1])  # constant over the trial
    assert not torch.equal(shifted[0, 0], shifted[0, 1])  # another for each trial


def test_random_walk_grows_along_its_axis() -> None:
    batch = make_batch((400,) * 16, channels=40, value=0.0)
    in_time = RandomWalk(0.1)(batch, seeded()).features
    assert in_time[399].std() == pytest.approx(0.1 * 20, rel=0.2) and in_time[0].std() == pytest.approx(0.1, rel=0.2)
    over_channels = RandomWalk(0.1, axis="channel")(batch, seeded()).features
    assert over_channels[..., 39].std() == pytest.approx(0.1 * 40**0.5, rel=0.2)
    assert over_channels[..., 0].std() == pytest.approx(0.1, rel=0.2)
    with pytest.raises(ValueError, match="time, channel"):
        RandomWalk(0.1, axis="space")  # type: ignore[arg-type]


def test_static_gain_is_one_linear_map_a_trial() -> None:
    batch = make_batch((50, 50))
    out = StaticGain(0.1)(batch, seeded())
    for b in range(2):
        mixing = torch.linalg.lstsq(batch.features[:, b], out.features[:, b]).solution
        torch.testing.assert_close(batch.features[:, b] @ mixing, out.features[:, b], atol=1e-4, rtol=0)
        assert 0.03 < (mixing - torch.eye(6)).std() < 0.2


def test_random_cut_drops_the_same_leading_frames_from_all() -> None:
    batch, seen = make_batch(), set()
    generator = seeded()
    for _ in range(60):
        out = RandomCut(2)(batch, generator)
        cut = int(batch.lengths[0] - out.lengths[0])
        seen.add(cut)
        assert torch.equal(out.lengths, batch.lengths - cut)
        assert torch.equal(out.features, batch.features[cut:])
    assert seen == {0, 1, 2}


def test_random_cut_leaves_a_frame_of_the_shortest_trial() -> None:
    batch, generator = make_batch((2, 30)), seeded()
    assert {int(RandomCut(9)(batch, generator).lengths.min()) for _ in range(40)} == {1, 2}


def test_time_mask_stays_within_its_bounds() -> None:
    batch, generator = make_batch((40, 25, 33) * 20, value=1.0), seeded()
    widths, starts = set(), set()
    for _ in range(20):
        out = TimeMask(1, 0.2)(batch, generator).features
        assert ((out == 0).all(2) | (out == 1).all(2)).all()  # all channels together
        for b, length in enumerate(batch.lengths):
            masked = torch.where(out[:length, b, 0] == 0)[0]
            assert len(masked) <= 0.2 * length
            if len(masked):
                assert masked[-1] - masked[0] + 1 == len(masked)  # one stretch
                starts.add(int(masked[0]) if length == 40 else 0)
            if length == 40:
                widths.add(len(masked))
    assert widths == set(range(9)) and min(starts) == 0 and max(starts) > 35


def test_whole_trial_can_be_masked() -> None:
    batch = make_batch((1, 2), value=1.0)
    out = TimeMask(50, 1.0)(batch, seeded())
    assert out.features.abs().sum() == 0


def test_compose_goes_in_order_and_pickles() -> None:
    batch = make_batch()
    chain = Compose([RandomCut(5), WhiteNoise(0.1)])
    by_hand = seeded(9)
    expected = WhiteNoise(0.1)(RandomCut(5)(batch, by_hand), by_hand)
    assert same(pickle.loads(pickle.dumps(chain))(batch, seeded(9)), expected)
    assert Compose()(batch, seeded()) is batch


def test_official_recipes() -> None:
    assert official("b2t24").steps == [WhiteNoise(0.8), ConstantOffset(0.2)]
    assert official("b2t25").steps == [WhiteNoise(1.0), ConstantOffset(0.2), RandomCut(2)]
    assert official("b2t25", without=["white_noise", "random_cut"]).steps == [ConstantOffset(0.2)]
    with pytest.raises(ValueError, match="b2t24, b2t25"):
        official("b2t26")
    with pytest.raises(ValueError, match="random_cut"):
        official("b2t24", without=["random_cut"])


@pytest.mark.parametrize("name", NAMES)
def test_impossible_arguments_are_refused(name: str) -> None:
    for key, value in CASES[name][0].items():
        with pytest.raises(ValueError, match=key):
            AUGMENTATIONS[name](**(CASES[name][0] | {key: -value}))
    if name == "time_mask":
        with pytest.raises(ValueError, match="max_fraction"):
            TimeMask(1, 1.5)
