"""CTC loss against a sum over all paths; feasibility; greedy decoding."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from decoders.ctc import ctc_loss, feasible, greedy, infeasible_trials, needed_frames
from neuro import Batch
from tests.oracles import ctc as oracle


def batch_of(labels: list[list[int]]) -> Batch:
    phonemes = torch.zeros(len(labels), max(map(len, labels), default=0), dtype=torch.int64)
    for b, label in enumerate(labels):
        phonemes[b, : len(label)] = torch.tensor(label, dtype=torch.int64)
    return Batch(
        features=torch.zeros(1, len(labels), 1),
        lengths=torch.ones(len(labels), dtype=torch.int64),
        phonemes=phonemes,
        phoneme_lengths=torch.tensor([len(label) for label in labels], dtype=torch.int64),
        days=torch.zeros(len(labels), dtype=torch.int64),
        keys=[f"s/train/trial_{b:04d}" for b in range(len(labels))],
        sentences=[None] * len(labels),
    )


def test_loss_is_the_mean_over_trials_of_the_loss_of_every_path() -> None:
    labels, lengths = [[1, 2], [2, 2], [3], [1]], torch.tensor([5, 4, 3, 1])
    logits = torch.randn(5, 4, 4, generator=torch.Generator().manual_seed(0))
    log_probs = logits.double().log_softmax(-1).numpy()
    expected = np.mean(
        [oracle.loss(log_probs[: lengths[b], b], tuple(label)) / len(label) for b, label in enumerate(labels)]
    )
    assert ctc_loss(logits, lengths, batch_of(labels)).item() == pytest.approx(expected, rel=1e-5)


def test_labels_that_cannot_be_aligned_are_named_and_leave_finite_gradients() -> None:
    labels, lengths = [[1, 2, 3], [1, 1], [2, 2], [1], [1]], torch.tensor([2, 2, 3, 2, 0])
    batch = batch_of(labels)
    assert feasible(lengths, batch).tolist() == [False, False, True, True, False]
    assert infeasible_trials(lengths, batch) == [f"s/train/trial_000{b}" for b in (0, 1, 4)]
    logits = torch.randn(3, 5, 4, generator=torch.Generator().manual_seed(1), requires_grad=True)
    loss = ctc_loss(logits, lengths, batch)
    loss.backward()
    assert torch.isfinite(loss) and logits.grad is not None and torch.isfinite(logits.grad).all()
    assert (logits.grad[:, [0, 1, 4]] == 0).all() and (logits.grad[:, 2:4] != 0).any()
    fit = [2, 3]
    expected = sum(
        oracle.loss(logits.detach().double().log_softmax(-1)[: lengths[b], b].numpy(), tuple(labels[b]))
        / len(labels[b])
        for b in fit
    )
    assert loss.item() == pytest.approx(expected / 5, rel=1e-5)


def test_needed_frames_counts_repeats_inside_the_label_only() -> None:
    phonemes = torch.tensor([[1, 1, 1, 0, 0], [1, 2, 1, 2, 2], [5, 0, 0, 0, 0], [0, 0, 0, 0, 0]])
    assert needed_frames(phonemes, torch.tensor([3, 5, 1, 0])).tolist() == [5, 6, 1, 0]
    assert needed_frames(torch.zeros(2, 0, dtype=torch.int64), torch.tensor([0, 0])).tolist() == [0, 0]


def test_padding_changes_neither_loss_nor_gradient() -> None:
    logits = torch.randn(6, 2, 4, generator=torch.Generator().manual_seed(2))
    lengths, batch = torch.tensor([6, 4]), batch_of([[1, 2], [3]])
    poisoned = torch.cat([logits, torch.full((3, 2, 4), 1e4)])
    poisoned[4:, 1] = -1e4
    clean, dirty = logits.clone().requires_grad_(), poisoned.requires_grad_()
    loss, same = ctc_loss(clean, lengths, batch), ctc_loss(dirty, lengths, batch)
    loss.backward()
    same.backward()
    assert loss.item() == pytest.approx(same.item(), rel=1e-6)
    assert clean.grad is not None and dirty.grad is not None
    torch.testing.assert_close(dirty.grad[:4], clean.grad[:4])
    assert (dirty.grad[4:, 1] == 0).all() and (dirty.grad[6:] == 0).all()


def test_low_precision_logits_are_scored_in_float32() -> None:
    logits = torch.randn(5, 1, 4, generator=torch.Generator().manual_seed(3)).bfloat16()
    loss = ctc_loss(logits, torch.tensor([5]), batch_of([[1, 2]]))
    assert loss.dtype == torch.float32
    assert loss.item() == pytest.approx(ctc_loss(logits.float(), torch.tensor([5]), batch_of([[1, 2]])).item())


def test_nothing_to_score_is_a_zero_that_can_be_differentiated() -> None:
    logits = torch.zeros(0, 2, 4, requires_grad=True)
    loss = ctc_loss(logits, torch.tensor([0, 0]), batch_of([[1], [2]]))
    loss.backward()
    assert loss.item() == 0


def test_greedy_collapses_and_stops_at_the_length() -> None:
    best = torch.tensor([[1, 1, 0, 1, 2, 2], [0, 3, 3, 3, 0, 3], [5, 5, 5, 5, 5, 5]]).T
    logits = torch.nn.functional.one_hot(best, 6).float()
    assert greedy(logits, torch.tensor([6, 4, 0])) == [[1, 1, 2], [3], []]
    for b, path in enumerate(best.T.tolist()):
        assert greedy(logits, torch.tensor([6, 6, 6]))[b] == list(oracle.collapse(tuple(path)))
    assert greedy(torch.zeros(0, 2, 6), torch.tensor([0, 0])) == [[], []]
