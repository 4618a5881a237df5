"""The sets of the study, as tensors: trained on train, scored on test; val is at hand for choices."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from neuro import DataError
from neuro.images import Images, find_fashion_mnist, load_digits, load_idx


class Split(NamedTuple):
    """Labelled samples.

    Attributes
    ----------
    x : Tensor (n, C, H, W) of images, or (n, T, C) of sequences
    y : int64 Tensor (n,)
    lengths : Tensor (n,) or None
        Real steps of each sequence; None for images.
    """

    x: Tensor
    y: Tensor
    lengths: Tensor | None = None

    def take(self, chosen: Tensor) -> Split:
        """Some of the samples."""
        return Split(self.x[chosen], self.y[chosen], None if self.lengths is None else self.lengths[chosen])


def _tensors(images: dict[str, Images]) -> dict[str, Split]:
    return {name: Split(torch.from_numpy(of.pixels), torch.from_numpy(of.labels)) for name, of in images.items()}


def _digits() -> dict[str, Split]:
    return _tensors(load_digits())


def _fashion() -> dict[str, Split]:
    folder = find_fashion_mnist()
    if folder is None:
        raise DataError(
            "Fashion-MNIST not found; Debian's package dataset-fashion-mnist has it, or put its four files into "
            "$RANVIER_DATA/fashion-mnist"
        )
    return _tensors(load_idx(folder))


SETS: dict[str, Callable[[], dict[str, Split]]] = {"digits": _digits, "fashion": _fashion}
"""Name -> its splits train, val and test."""


@functools.cache
def load(name: str) -> dict[str, Split]:
    """The splits of a set; read once."""
    return SETS[name]()
