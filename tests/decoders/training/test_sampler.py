import numpy as np
import pytest

from decoders.training.batches import EachTrialOnce
from decoders.training.sampler import STREAMS, FewDays, MixedDays, UpdateNumbers, stream_seed

FRAMES = np.random.default_rng(0).integers(20, 900, 103)
DAYS = np.arange(103) % 7

PLANS = {
    "mixed": lambda seed: MixedDays(103, 8, seed),
    "sorted": lambda seed: MixedDays(103, 8, seed, frames=FRAMES, pool=4),
    "few days": lambda seed: FewDays(DAYS, 8, 3, seed),
}


@pytest.mark.parametrize("make", PLANS.values(), ids=PLANS.keys())
def test_batch_k_depends_on_seed_and_k_alone(make) -> None:
    forwards = [make(5)(k).tolist() for k in range(40)]
    plan = make(5)
    for k in reversed(range(40)):  # another order of asking, from the same object
        assert plan(k).tolist() == forwards[k]
    assert all(len(batch) == 8 for batch in forwards)
    assert [make(6)(k).tolist() for k in range(40)] != forwards


@pytest.mark.parametrize("name", ["mixed", "sorted"])
def test_every_trial_comes_once_a_pass(name: str) -> None:
    n, batch = 96, 8
    plan = MixedDays(n, batch, 3, frames=FRAMES[:n] if name == "sorted" else None, pool=4)
    for epoch in range(3):
        drawn = np.concatenate([plan(epoch * 12 + k) for k in range(12)])
        assert sorted(drawn) == list(range(n))


def test_passes_that_do_not_divide_lose_no_trial() -> None:
    plan = MixedDays(10, 4, 0)
    drawn = np.concatenate([plan(k) for k in range(5)])
    assert np.array_equal(np.bincount(drawn), np.full(10, 2))


def test_a_batch_may_be_larger_than_the_data() -> None:
    counts = np.bincount(MixedDays(3, 8, 0)(0), minlength=3)
    assert counts.sum() == 8 and counts.min() >= 2


def test_sorting_by_length_saves_padding() -> None:
    def padding(plan) -> int:
        batches = [FRAMES[plan(k)] for k in range(48)]
        return sum(int((batch.max() - batch).sum()) for batch in batches)

    assert padding(PLANS["sorted"](0)) < 0.4 * padding(PLANS["mixed"](0))


def test_few_days_draws_equally_from_a_few_days() -> None:
    plan = FewDays(DAYS, 8, 4, 0)
    days = [DAYS[plan(k)] for k in range(20)]
    assert all((np.unique(batch, return_counts=True)[1] == 2).all() and len(set(batch)) == 4 for batch in days)
    assert len({day for batch in days for day in batch}) == 7
    assert len(set(DAYS[FewDays(DAYS, 64, 99, 0)(0)])) == 7  # fewer days than asked for: all of them


def test_update_numbers_go_on_in_mid_epoch() -> None:
    done = 0
    numbers = UpdateNumbers(5, lambda: done)
    assert len(numbers) == 5 and list(numbers) == [0, 1, 2, 3, 4]
    done = 7
    assert list(numbers) == [7, 8, 9]
    done = 10
    assert list(numbers) == [10, 11, 12, 13, 14]


def test_streams_of_random_numbers_differ() -> None:
    seeds = {
        stream_seed(seed, stream, k, rank) for seed in (0, 1) for stream in STREAMS for k in (0, 1) for rank in (0, 1)
    }
    assert len(seeds) == 2 * len(STREAMS) * 4 and all(0 <= seed < 2**63 for seed in seeds)


@pytest.mark.parametrize("world", [1, 2, 3])
def test_scored_trials_count_once_over_all_processes(world: int) -> None:
    plan = EachTrialOnce(FRAMES, 8, world)
    scored = []
    for k in range(len(plan)):
        positions = plan(k)
        assert len(positions) % world == 0
        for rank in range(world):
            share = positions[rank::world]
            scored.extend(share[: len(range(rank, plan.counted(k), world))])
    assert sorted(scored) == list(range(103))
