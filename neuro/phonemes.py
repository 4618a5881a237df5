"""The 41 output symbols and the three orders in which decoders index them.

Brain-to-Text labels are the 39 ARPAbet symbols without stress, a silence that ends every word, and the CTC blank. The
releases disagree on the numbering, and a language model fed with the wrong one fails without an error; so the orders
have names here, and every conversion goes through `permutation`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum
from typing import TypeVar

import numpy as np
import torch

from neuro.errors import DataError

PHONEMES: tuple[str, ...] = (
    *(
        "AA",
        "AE",
        "AH",
        "AO",
        "AW",
        "AY",
        "B",
        "CH",
        "D",
        "DH",
        "EH",
        "ER",
        "EY",
        "F",
        "G",
        "HH",
        "IH",
        "IY",
        "JH",
        "K",
    ),
    *("L", "M", "N", "NG", "OW", "OY", "P", "R", "S", "SH", "T", "TH", "UH", "UW", "V", "W", "Y", "Z", "ZH"),
)
"""The 39 ARPAbet symbols without stress, in the order that all releases share."""

BLANK_NAME, SIL_NAME = "<blank>", "SIL"

SYMBOLS: tuple[str, ...] = (BLANK_NAME, *PHONEMES, SIL_NAME)
"""All 41 symbols in torch order: blank 0, AA..ZH 1..39, SIL 40."""

N_SYMBOLS = len(SYMBOLS)
BLANK = SYMBOLS.index(BLANK_NAME)
SIL = SYMBOLS.index(SIL_NAME)
MAX_LABELS = 500
"""Room for labels in one trial of the released files."""

Logits = TypeVar("Logits", np.ndarray, torch.Tensor)


class PhonemeOrder(Enum):
    """How a decoder numbers its 41 outputs; the value is the tuple of symbols in that order.

    ``TORCH`` is used by the PyTorch baselines of both releases and throughout this project: blank, AA..ZH, SIL.
    ``TENSORFLOW`` is the '24 original: AA..ZH, SIL, blank. ``LANGUAGE_MODEL`` is what the n-gram decoders of both
    releases expect: blank, SIL, AA..ZH.
    Sources: cffan/neural_seq_decoder, fwillett/speechBCI, Neuroprosthetics-Lab/nejm-brain-to-text.

    Examples
    --------
    >>> PhonemeOrder.LANGUAGE_MODEL.index("SIL"), PhonemeOrder.TENSORFLOW.blank
    (1, 40)
    """

    TORCH = SYMBOLS
    TENSORFLOW = (*PHONEMES, SIL_NAME, BLANK_NAME)
    LANGUAGE_MODEL = (BLANK_NAME, SIL_NAME, *PHONEMES)

    @property
    def symbols(self) -> tuple[str, ...]:
        """The 41 symbols in this order."""
        return self.value

    @property
    def blank(self) -> int:
        """Index of the CTC blank."""
        return self.value.index(BLANK_NAME)

    @property
    def sil(self) -> int:
        """Index of the silence that ends a word."""
        return self.value.index(SIL_NAME)

    def index(self, symbol: str) -> int:
        """Index of a symbol in this order.

        Raises
        ------
        DataError
            If the symbol is not one of the 41.
        """
        try:
            return self.value.index(symbol)
        except ValueError:
            raise DataError("unknown phoneme", found=symbol, expected="one of " + " ".join(SYMBOLS)) from None


def permutation(source: PhonemeOrder, target: PhonemeOrder) -> np.ndarray:
    """Indices that bring logits from one order to another.

    Returns
    -------
    int64 (41,)
        ``p`` with ``logits_target[..., k] = logits_source[..., p[k]]``.

    Examples
    --------
    >>> permutation(PhonemeOrder.TORCH, PhonemeOrder.LANGUAGE_MODEL)[:4].tolist()
    [0, 40, 1, 2]
    """
    return np.array([source.index(symbol) for symbol in target.symbols], dtype=np.int64)


def reorder(logits: Logits, source: PhonemeOrder, target: PhonemeOrder) -> Logits:
    """Logits (or log-probabilities) in another order of the symbols.

    Parameters
    ----------
    logits
        Array or tensor (..., 41) in the order ``source``.

    Returns
    -------
    Array or tensor (..., 41)
        A copy, of the same kind, in the order ``target``.

    Raises
    ------
    DataError
        If the last axis does not have 41 entries.
    """
    if logits.shape[-1] != N_SYMBOLS:
        raise DataError("logits have the wrong number of outputs", found=logits.shape[-1], expected=N_SYMBOLS)
    order = permutation(source, target)
    if isinstance(logits, torch.Tensor):
        return logits.index_select(-1, torch.from_numpy(order).to(logits.device))
    return np.take(logits, order, axis=-1)


def encode(symbols: Iterable[str], order: PhonemeOrder = PhonemeOrder.TORCH) -> list[int]:
    """Symbols to ids.

    Raises
    ------
    DataError
        If a symbol is not one of the 41 (stress digits must be gone).

    Examples
    --------
    >>> encode(["HH", "AY", "SIL"])
    [16, 6, 40]
    """
    return [order.index(symbol) for symbol in symbols]


def decode(ids: Sequence[int] | np.ndarray | torch.Tensor, order: PhonemeOrder = PhonemeOrder.TORCH) -> list[str]:
    """Ids (L,) to symbols.

    Raises
    ------
    DataError
        If an id lies outside 0..40.

    Examples
    --------
    >>> decode([16, 6, 40])
    ['HH', 'AY', 'SIL']
    """
    symbols = order.symbols
    names = []
    for entry in ids:
        position = int(entry)
        if not 0 <= position < N_SYMBOLS:
            raise DataError("label outside the phoneme set", found=position, expected=f"0..{N_SYMBOLS - 1}")
        names.append(symbols[position])
    return names
