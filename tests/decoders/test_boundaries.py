"""Boundary analysis on posteriors whose answer is known."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from decoders.boundaries import analyse_boundaries, forced_onsets
from neuro import DataError
from tests.oracles import ctc as oracle


def posteriors(onsets: list[int], label: list[int], T: int, certain: float, n_symbols: int = 6) -> torch.Tensor:
    """Log probabilities (T, symbols): all phonemes alike within 2 bins of an onset, else certain of the right one."""
    probs = np.zeros((T, n_symbols))
    for t in range(T):
        k = max(0, int(np.searchsorted(onsets, t, side="right")) - 1)
        if min(abs(t - o) for o in onsets) <= 2:
            probs[t, 1:] = 1 / (n_symbols - 1)
        else:
            probs[t, 1:] = (1 - certain) / (n_symbols - 2)
            probs[t, label[k]] = certain
    return torch.tensor(probs).log().clamp(min=-1e4).float()


def test_entropy_and_probability_around_true_onsets() -> None:
    onsets, label, T, certain = [15, 40, 65], [1, 2, 3], 90, 0.9
    logits = posteriors(onsets, label, T, certain)[:, None]
    result = analyse_boundaries(
        logits, torch.tensor([T]), torch.tensor([label]), torch.tensor([3]), onsets=[np.array(onsets)]
    )
    unsure, sure = np.log(5), -(0.9 * np.log(0.9) + 4 * 0.025 * np.log(0.025))
    near = np.abs(result.offsets) <= 2
    assert result.offsets.tolist() == list(range(-10, 11))
    np.testing.assert_allclose(result.entropy[near], unsure, rtol=1e-5)
    np.testing.assert_allclose(result.entropy[~near], sure, rtol=1e-5)
    np.testing.assert_allclose(result.entropy_nonblank, result.entropy, rtol=1e-5)
    assert result.contrast == pytest.approx(unsure - sure, rel=1e-5)
    np.testing.assert_allclose(result.probability[near], 0.2, rtol=1e-5)
    np.testing.assert_allclose(result.probability[~near], 0.9, rtol=1e-5)
    # The posterior of each phoneme is first at its highest three bins after its onset.
    assert result.latency == pytest.approx(3) and result.jitter == pytest.approx(0)
    assert (result.n_boundaries, result.skipped, result.source) == (3, [], "onsets")


def test_a_certain_blank_lowers_the_entropy_but_not_that_of_the_phonemes() -> None:
    onsets, label, T = [15, 40], [1, 2], 70
    clean = posteriors(onsets, label, T, 0.9)
    log_blank = torch.full((T, 1), float(np.log(0.95)))
    with_blank = torch.cat([log_blank, clean[:, 1:] + np.log(0.05)], dim=1)
    arguments = (torch.tensor([T]), torch.tensor([label]), torch.tensor([2]))
    plain = analyse_boundaries(clean[:, None], *arguments, onsets=[np.array(onsets)])
    masked = analyse_boundaries(with_blank[:, None], *arguments, onsets=[np.array(onsets)])
    assert (masked.entropy < 0.5 * plain.entropy.max()).all()
    np.testing.assert_allclose(masked.entropy_nonblank, plain.entropy_nonblank, rtol=1e-4)
    np.testing.assert_allclose(masked.probability_nonblank, plain.probability_nonblank, rtol=1e-4)
    np.testing.assert_allclose(masked.probability, 0.05 * plain.probability, rtol=1e-4)


def test_jitter_is_the_spread_of_the_peaks() -> None:
    onsets, label, T, delays = [10, 30, 50, 70], [1, 2, 1, 3], 90, [2, 6, 2, 6]
    logits = torch.zeros(T, 1, 6)
    for onset, phoneme, delay in zip(onsets, label, delays, strict=True):
        logits[onset + delay, 0, phoneme] = 5.0
    result = analyse_boundaries(
        logits, torch.tensor([T]), torch.tensor([label]), torch.tensor([4]), onsets=[np.array(onsets)]
    )
    assert (result.latency, result.jitter) == (pytest.approx(4), pytest.approx(2))


def test_frames_of_patches_are_put_back_on_their_bins() -> None:
    # Frames of 4 bins every 4 bins; phoneme 1 fills bins 0..39, phoneme 2 bins 40..79.
    logits = torch.zeros(20, 1, 4)
    logits[:10, 0, 1] = logits[10:, 0, 2] = 20.0
    result = analyse_boundaries(
        logits,
        torch.tensor([20]),
        torch.tensor([[1, 2]]),
        torch.tensor([2]),
        onsets=[np.array([0, 40])],
        patch=(4, 4),
    )
    np.testing.assert_allclose(result.probability, 1.0, atol=1e-6)


def test_padding_and_bins_outside_the_trial_are_left_out() -> None:
    onsets, label, T = [5, 20], [1, 2], 30
    logits = posteriors(onsets, label, T, 0.9)[:, None]
    arguments = (torch.tensor([label]), torch.tensor([2]))
    alone = analyse_boundaries(logits, torch.tensor([T]), *arguments, onsets=[np.array(onsets)])
    padded = torch.cat([logits, torch.randn(50, 1, 6)])
    same = analyse_boundaries(padded, torch.tensor([T]), *arguments, onsets=[np.array(onsets)])
    np.testing.assert_array_equal(alone.entropy, same.entropy)
    np.testing.assert_array_equal(alone.probability, same.probability)


def test_forced_alignment_finds_the_likeliest_path() -> None:
    generator = torch.Generator().manual_seed(0)
    for label in ([1, 2], [2, 2], [1], [3, 1, 3]):
        log_probs = torch.randn(6, 4, generator=generator).log_softmax(-1)
        path = oracle.best_path(log_probs.double().numpy(), tuple(label))
        starts = [t for t in range(6) if path[t] != 0 and (t == 0 or path[t] != path[t - 1])]
        assert forced_onsets(log_probs, torch.tensor(label)).tolist() == starts


def test_forced_boundaries_of_clear_posteriors_are_the_true_ones() -> None:
    onsets, label, T = [0, 12, 30], [1, 2, 3], 45
    logits = torch.zeros(T, 2, 6)
    for onset, end, phoneme in zip(onsets, [12, 30, 45], label, strict=True):
        logits[onset:end, 0, phoneme] = 8.0
    arguments = (
        torch.tensor([T, 2]),
        torch.tensor([label, label]),
        torch.tensor([3, 3]),
    )
    forced = analyse_boundaries(logits, *arguments)
    true = analyse_boundaries(logits, *arguments, onsets=[np.array(onsets), None])
    np.testing.assert_allclose(forced.entropy, true.entropy)
    assert forced.skipped == true.skipped == [1]
    assert (forced.source, forced.n_boundaries) == ("forced", 3)


def test_unusable_trials_are_said_clearly() -> None:
    arguments = (torch.zeros(9, 1, 4), torch.tensor([9]), torch.tensor([[1, 2]]), torch.tensor([2]))
    with pytest.raises(DataError, match="differ in number"):
        analyse_boundaries(*arguments, onsets=[np.array([1])])
    with pytest.raises(DataError, match="no trial can be aligned"):
        analyse_boundaries(*arguments, onsets=[None])
