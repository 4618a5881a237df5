"""Edit distance against trying everything; error kinds, intervals, confusions, chance."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from decoders import metrics
from decoders.chance import _edit_costs, _flatten
from neuro import DataError
from tests.oracles import edit_distance as oracle

strings = st.lists(st.integers(1, 3), max_size=7)


@settings(max_examples=150, deadline=None)
@given(strings, strings)
def test_distance_and_alignment_agree_with_trying_everything(ref: list[int], hyp: list[int]) -> None:
    fewest = oracle.edit_distance(tuple(ref), tuple(hyp))
    counts = metrics.error_counts(ref, hyp)
    assert metrics.edit_distance(ref, hyp) == fewest == counts.edits
    assert counts.length == len(ref)
    assert len(ref) - counts.deletions + counts.insertions == len(hyp)
    pairs = metrics.align(ref, hyp)
    assert [r for r, _ in pairs if r is not None] == ref
    assert [h for _, h in pairs if h is not None] == hyp
    assert sum(r != h for r, h in pairs) == fewest


def test_long_sequences_do_not_overflow() -> None:
    # Tables of 8-bit numbers, found in three public decoders, go wrong above 255.
    assert metrics.edit_distance([1] * 700, [2] * 300) == 700
    assert metrics.edit_distance([], [1] * 70_000) == 70_000


def test_per_pools_sentences() -> None:
    refs, hyps = [[1, 2, 3, 4], [5, 6], [7]], [[1, 2, 4], [], [7, 8, 9]]
    assert metrics.per(refs, hyps) == pytest.approx(5 / 7)
    counts = metrics.total_counts(refs, hyps)
    assert (counts.substitutions, counts.insertions, counts.deletions, counts.length) == (0, 2, 3, 7)
    assert counts.rate == pytest.approx(5 / 7)
    assert np.isnan(metrics.ErrorCounts().rate)


def test_what_cannot_be_scored_says_so() -> None:
    with pytest.raises(DataError, match="differ in number"):
        metrics.per([[1]], [])
    with pytest.raises(DataError, match="no reference phonemes"):
        metrics.per([[], []], [[1], []])
    with pytest.raises(DataError, match="no training label"):
        metrics.best_constant_sequence([[], []])


def test_confusions_put_gaps_in_the_blank_row_and_column() -> None:
    matrix = metrics.confusion_matrix([[1, 2, 3], [4]], [[1, 3], [5, 4]], n_symbols=6)
    expected = np.zeros((6, 6), int)
    expected[1, 1] = expected[3, 3] = expected[4, 4] = expected[2, 0] = expected[0, 5] = 1
    assert (matrix == expected).all()


def test_bootstrap_interval_matches_what_theory_says() -> None:
    rng = np.random.default_rng(0)
    refs = [[1] * 10 for _ in range(400)]
    hyps = [[1] * (10 - wrong) + [2] * wrong for wrong in rng.binomial(10, 0.2, 400)]
    interval = metrics.bootstrap_interval(refs, hyps, seed=1)
    assert interval.value == metrics.per(refs, hyps)
    half_width = 1.96 * np.sqrt(0.2 * 0.8 / 4000)
    assert (interval.high - interval.low) / 2 == pytest.approx(half_width, rel=0.15)
    assert interval.low < interval.value < interval.high
    assert interval == metrics.bootstrap_interval(refs, hyps, seed=1)
    assert metrics.bootstrap_interval(refs, refs).high == 0


def test_paired_difference_takes_out_what_is_hard_for_both() -> None:
    rng = np.random.default_rng(0)
    refs = [[1] * 10 for _ in range(200)]
    wrong = rng.integers(0, 9, 200)
    hyps_a = [[1] * (10 - n) + [2] * n for n in wrong]
    hyps_b = [[1] * (9 - n) + [2] * (n + 1) for n in wrong]
    edits_a, lengths = metrics.edits_and_lengths(refs, hyps_a)
    edits_b, _ = metrics.edits_and_lengths(refs, hyps_b)
    difference = metrics.bootstrap_difference(edits_a, edits_b, lengths)
    assert (difference.low, difference.value, difference.high) == pytest.approx((-0.1, -0.1, -0.1))
    alone = metrics.bootstrap_interval(refs, hyps_a)
    assert alone.high - alone.low > 0.02


@settings(max_examples=30, deadline=None)
@given(strings, st.lists(strings, min_size=1, max_size=4))
def test_cost_of_every_single_edit_is_exact(string: list[int], labels: list[list[int]]) -> None:
    def total(edited: list[int]) -> int:
        return sum(oracle.edit_distance(tuple(edited), tuple(label)) for label in labels)

    replaced, inserted, deleted = _edit_costs(np.array(string, np.int64), *_flatten(labels), 4)
    for i in range(len(string)):
        assert deleted[i] == total(string[:i] + string[i + 1 :])
        for symbol in range(1, 4):
            assert replaced[i, symbol] == total([*string[:i], symbol, *string[i + 1 :]])
    for i in range(len(string) + 1):
        for symbol in range(1, 4):
            assert inserted[i, symbol] == total([*string[:i], symbol, *string[i:]])


def test_best_constant_is_nearly_the_best_there_is() -> None:
    rng = np.random.default_rng(0)
    for _ in range(5):
        labels = [tuple(rng.integers(1, 4, rng.integers(2, 6)).tolist()) for _ in range(12)]
        found = metrics.best_constant_sequence(labels)
        total = sum(oracle.edit_distance(label, tuple(found)) for label in labels)
        assert total <= oracle.median_string(labels, range(1, 4), 5) + 1


def test_best_constant_beats_empty_and_silence_and_never_changes() -> None:
    rng = np.random.default_rng(0)
    words = [rng.integers(1, 40, rng.integers(1, 6)).tolist() for _ in range(300)]
    labels = [[p for w in rng.integers(0, 300, rng.integers(4, 8)) for p in [*words[w], 40]] for _ in range(600)]
    rates = metrics.chance_rates(labels[:500], labels[500:])
    assert rates["empty"] == 1.0
    assert rates["best_constant"] <= rates["sil_run"] < 1.0
    assert metrics.best_constant_sequence(labels) == metrics.best_constant_sequence(labels)


def test_best_run_has_the_best_length() -> None:
    labels = [[1, 40, 2, 40], [40, 3, 4, 40, 5, 40], [6, 40]]
    run = metrics.best_run(labels)
    totals = [metrics.constant_per([40] * n, labels) for n in range(8)]
    assert metrics.constant_per(run, labels) == min(totals) and set(run) <= {40}
