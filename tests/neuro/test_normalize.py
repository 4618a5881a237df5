"""Block and running z-scores."""

import numpy as np
import pytest

from neuro import RunningZScore, block_zscore, require_counts
from tests.oracles.official_loaders import block_zscore_at_once


@pytest.mark.parametrize("dtype", [np.uint8, np.int64, np.float32, np.float64])
def test_block_zscore_equals_the_official_way(dtype):
    rng = np.random.default_rng(0)
    trials = [(rng.gamma(2.0, 20.0, (int(n), 5)) + 100).astype(dtype) for n in (1, 7, 40, 3, 90)]
    blocks = [4, 2, 4, 2, 9]  # a block's trials need not follow one another
    for ours, slow in zip(block_zscore(trials, blocks), block_zscore_at_once(trials, blocks), strict=True):
        assert ours.dtype == np.float32
        np.testing.assert_allclose(ours, slow, atol=1e-5)


def test_a_channel_that_never_changes_becomes_zero():
    trials = [np.full((4, 2), 7.0), np.full((3, 2), 7.0)]
    assert all((scored == 0).all() for scored in block_zscore(trials))


def test_block_zscore_of_nothing_and_of_mismatched_blocks():
    assert block_zscore([]) == []
    with pytest.raises(ValueError, match="1 trials but 2"):
        block_zscore([np.zeros((2, 2))], [1, 2])


def slow_running(x, window, warmup, eps=1e-8):
    """Statistics of the last `window` frames, from scratch for every frame."""
    y = np.zeros(x.shape)
    for t in range(warmup, len(x)):
        past = x[max(0, t + 1 - window) : t + 1]
        y[t] = (x[t] - past.mean(axis=0)) / (past.std(axis=0) + eps)
    return y


@pytest.mark.parametrize("offset", [0.0, 1e4])
def test_running_equals_the_slow_version(offset):
    x = np.random.default_rng(1).lognormal(0, 1, (260, 3)) + offset
    x[:, 2] = offset  # a dead channel
    normalize = RunningZScore(3, window_seconds=1.0, dt=0.02, warmup_seconds=0.2)
    y, state = normalize(x)
    np.testing.assert_allclose(y, slow_running(x, 50, 10), atol=2e-5)
    assert (y[:10] == 0).all() and (y[10:, :2] != 0).any(axis=1).all() and (y[:, 2] == 0).all()
    assert state.frames == 260


@pytest.mark.parametrize("sizes", [[1] * 130, [130], [0, 7, 50, 1, 72], [49, 1, 50, 30]])
def test_running_is_the_same_in_any_chunks(sizes):
    x = np.random.default_rng(2).poisson(0.6, (130, 4))
    normalize = RunningZScore(4, window_seconds=1.0)
    whole, end = normalize(x)
    state, parts, start = None, [], 0
    for size in sizes:
        before = state
        part, state = normalize(x[start : start + size], state)
        parts.append(part)
        start += size
        if before is not None:  # a state is a value: using it twice gives the same again
            again, _ = normalize(x[start - size : start], before)
            np.testing.assert_array_equal(again, part)
    np.testing.assert_array_equal(np.concatenate(parts), whole)
    np.testing.assert_array_equal(state.window, end.window)
    np.testing.assert_array_equal(state.total, end.total)


def test_running_takes_single_frames_and_never_looks_ahead():
    x = np.random.default_rng(3).normal(size=(80, 2))
    normalize = RunningZScore(2, window_seconds=0.5)
    whole, _ = normalize(x)
    state, frames = None, []
    for frame in x:
        y, state = normalize(frame, state)
        assert y.shape == (2,)
        frames.append(y)
    np.testing.assert_array_equal(np.array(frames), whole)
    changed = x.copy()
    changed[60:] += 5
    np.testing.assert_array_equal(normalize(changed)[0][:60], whole[:60])


def test_running_refuses_wrong_shapes():
    normalize = RunningZScore(2)
    with pytest.raises(ValueError, match="expected"):
        normalize(np.zeros((3, 4)))
    with pytest.raises(ValueError, match="window"):
        RunningZScore(2, window_seconds=0.01)


class Holder:
    def __init__(self, normalized):
        self.normalized = normalized


def test_count_transforms_warn_on_zscored_recordings(recwarn):
    with pytest.warns(UserWarning, match="signed log is made for spike counts"):
        assert not require_counts(Holder(True), "signed log")
    recwarn.clear()
    assert require_counts(Holder(False), "signed log")
    assert not recwarn
