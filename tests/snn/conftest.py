"""Helpers for the tests of spiking layers."""

import pytest
import torch


@pytest.fixture(autouse=True)
def _seeded():
    torch.manual_seed(0)


@pytest.fixture
def dyadic():
    """Draws tensors of small multiples of 1/16: sums of them are exact in any order and precision."""

    def draw(*shape, dtype=torch.float32, low=-16, high=17):
        return torch.randint(low, high, shape).to(dtype) / 16

    return draw
