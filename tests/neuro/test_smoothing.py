"""Smoothing against the sources' own formulas, and independence of batch mates."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from neuro.smoothing import KERNELS, GaussianSmoothing, gaussian_kernel, smooth
from tests.oracles import smoothing as oracle

ORACLES = {"b2t24": oracle.kernel_b2t24, "b2t25": oracle.kernel_b2t25}


def test_every_kernel_has_an_oracle() -> None:
    assert set(ORACLES) == set(KERNELS)


@pytest.mark.parametrize(("kind", "size"), [("b2t24", 20), ("b2t25", 9)])
def test_taps(kind: str, size: int) -> None:
    taps = gaussian_kernel(kind)
    assert taps.shape == (size,) and taps.dtype == np.float32
    np.testing.assert_allclose(taps, ORACLES[kind](), rtol=2e-6)
    assert taps.sum() == pytest.approx(1, abs=1e-6)
    np.testing.assert_array_equal(taps, taps[::-1])


@pytest.mark.parametrize("kind", sorted(KERNELS))
@pytest.mark.parametrize("T", [1, 2, 9, 10, 19, 20, 57])
def test_equals_the_loop_and_torchs_same_padding(kind: str, T: int) -> None:
    x = torch.randn(T, 3, 4, generator=torch.Generator().manual_seed(T))
    taps = gaussian_kernel(kind)
    result = smooth(x, taps)
    assert result.shape == x.shape
    for b in range(3):
        np.testing.assert_allclose(result[:, b], oracle.smooth_trial(x[:, b].numpy(), taps), atol=1e-5)
    # The convolution that both official decoders run, on (B, C, T).
    weight = torch.from_numpy(taps).view(1, 1, -1).repeat(4, 1, 1)
    convolved = F.conv1d(x.permute(1, 2, 0), weight, padding="same", groups=4).permute(2, 0, 1)
    torch.testing.assert_close(result, convolved, atol=1e-5, rtol=0)


def test_even_kernel_looks_half_a_bin_ahead() -> None:
    impulse = torch.zeros(41, 1, 1)
    impulse[20] = 1
    where = (torch.arange(41.0) * smooth(impulse, gaussian_kernel("b2t24"))[:, 0, 0]).sum()
    assert where == pytest.approx(19.5, abs=1e-4)
    where = (torch.arange(41.0) * smooth(impulse, gaussian_kernel("b2t25"))[:, 0, 0]).sum()
    assert where == pytest.approx(20, abs=1e-4)


@pytest.mark.parametrize("kind", sorted(KERNELS))
def test_padding_never_matters(kind: str) -> None:
    module = GaussianSmoothing(kind)
    lengths = torch.tensor([40, 1, 23, 17])
    x = torch.randn(40, 4, 7)
    dirty = x.clone()
    for b, length in enumerate(lengths):
        x[length:, b] = 0
        dirty[length:, b] = torch.nan
    together = module(dirty, lengths)
    for b, length in enumerate(lengths):
        alone = module(x[:length, b : b + 1])
        assert torch.equal(together[:length, b : b + 1], alone)
        assert together[length:, b].abs().sum() == 0
    assert torch.equal(module(x, lengths), together)


@pytest.mark.parametrize("N", [1, 3, 16, 33])
def test_the_same_bits_in_every_batch(N: int) -> None:
    """Vector units must not round the last channels of a row differently from the first."""
    x = torch.randn(50, 5, N, generator=torch.Generator().manual_seed(N))
    whole = smooth(x, gaussian_kernel("b2t24"))
    for b in range(5):
        assert torch.equal(smooth(x[:, b : b + 1].contiguous(), gaussian_kernel("b2t24")), whole[:, b : b + 1])


def test_input_is_left_alone_and_gradient_flows() -> None:
    x = torch.randn(12, 2, 3, dtype=torch.float64, requires_grad=True)
    before = x.detach().clone()
    module, lengths = GaussianSmoothing("b2t25"), torch.tensor([12, 7])
    module(x, lengths)
    assert torch.equal(x.detach(), before)
    assert torch.autograd.gradcheck(lambda value: module(value, lengths), (x,))
    (gradient,) = torch.autograd.grad(module(x, lengths).sum(), x)
    assert gradient[7:, 1].abs().sum() == 0


def test_module_has_no_parameters_and_adds_nothing_to_checkpoints() -> None:
    module = GaussianSmoothing("b2t25")
    assert not list(module.parameters()) and not module.state_dict()
    assert "b2t25" in repr(module) and "taps=9" in repr(module)
    x = torch.randn(9, 1, 2)
    assert torch.equal(pickle.loads(pickle.dumps(module))(x), module(x))


def test_unknown_kernel() -> None:
    with pytest.raises(ValueError, match="b2t24, b2t25"):
        GaussianSmoothing("b2t26")
