"""The three orders of the 41 symbols."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from neuro import DataError, PhonemeOrder
from neuro.phonemes import BLANK, N_SYMBOLS, PHONEMES, SIL, SYMBOLS, decode, encode, permutation, reorder

PAIRS = list(itertools.product(PhonemeOrder, repeat=2))


def test_torch_order_is_the_one_of_the_released_labels() -> None:
    assert N_SYMBOLS == 41 and BLANK == 0 and SIL == 40
    assert SYMBOLS[1] == "AA" and SYMBOLS[39] == "ZH" and SYMBOLS[40] == "SIL"
    assert list(PHONEMES) == sorted(PHONEMES) and len(set(SYMBOLS)) == 41


def test_places_of_blank_and_silence() -> None:
    assert [(order.blank, order.sil) for order in PhonemeOrder] == [(0, 40), (40, 39), (0, 1)]
    assert PhonemeOrder.TENSORFLOW.index("AA") == 0
    assert PhonemeOrder.LANGUAGE_MODEL.index("AA") == 2


def test_language_model_order_is_first_last_then_the_rest() -> None:
    # nejm-brain-to-text, rearrange_speech_logits_pt
    assert permutation(PhonemeOrder.TORCH, PhonemeOrder.LANGUAGE_MODEL).tolist() == [0, 40, *range(1, 40)]


def test_tensorflow_order_moves_the_blank_to_the_end() -> None:
    assert permutation(PhonemeOrder.TORCH, PhonemeOrder.TENSORFLOW).tolist() == [*range(1, 41), 0]
    assert permutation(PhonemeOrder.TENSORFLOW, PhonemeOrder.TORCH).tolist() == [40, *range(40)]


@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_every_column_lands_under_its_own_symbol(source: PhonemeOrder, target: PhonemeOrder) -> None:
    order = permutation(source, target)
    assert sorted(order.tolist()) == list(range(41))
    assert [source.symbols[i] for i in order] == list(target.symbols)


@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_there_and_back_is_the_same(source: PhonemeOrder, target: PhonemeOrder) -> None:
    logits = np.random.default_rng(0).normal(size=(5, 3, 41))
    there = reorder(logits, source, target)
    assert np.array_equal(reorder(there, target, source), logits)
    assert there.shape == logits.shape and (there is not logits)
    for k, symbol in enumerate(target.symbols):
        assert np.array_equal(there[..., k], logits[..., source.index(symbol)])


def test_tensors_stay_tensors_and_keep_their_gradient() -> None:
    logits = torch.randn(4, 2, 41, requires_grad=True)
    moved = reorder(logits, PhonemeOrder.TORCH, PhonemeOrder.LANGUAGE_MODEL)
    assert isinstance(moved, torch.Tensor)
    assert torch.equal(moved[..., 1], logits[..., 40])
    moved[..., 1].sum().backward()
    assert torch.equal(logits.grad[..., 40], torch.ones(4, 2)) and logits.grad[..., :40].abs().sum() == 0


def test_wrong_width_is_refused() -> None:
    with pytest.raises(DataError, match="found 40, expected 41"):
        reorder(np.zeros((3, 40)), PhonemeOrder.TORCH, PhonemeOrder.TENSORFLOW)


@pytest.mark.parametrize("order", list(PhonemeOrder))
def test_encode_and_decode_are_inverse(order: PhonemeOrder) -> None:
    names = ["HH", "EH", "L", "OW", "SIL", "ZH", "AA"]
    ids = encode(names, order)
    assert decode(ids, order) == names == decode(np.array(ids), order) == decode(torch.tensor(ids), order)


@pytest.mark.parametrize("bad", [-1, 41])
def test_ids_outside_are_refused(bad: int) -> None:
    with pytest.raises(DataError, match=r"0\.\.40"):
        decode([3, bad])


def test_unknown_symbol_is_refused() -> None:
    with pytest.raises(DataError, match="AX"):
        encode(["AX"])
