"""Dropout drops the share it says, keeps the mean, and does nothing else."""

import pytest
import torch

import snn


@pytest.mark.parametrize("p", [0.1, 0.2, 0.5, 0.9])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
def test_share_mean_and_gradient(p, dtype):
    x = torch.ones(101, 333, dtype=dtype, requires_grad=True)
    y = snn.Dropout(p)(x)
    y.sum().backward()
    kept = y != 0
    sd = (p * (1 - p) / x.numel()) ** 0.5
    assert abs(1 - float(kept.double().mean()) - p) < 5 * sd
    assert torch.equal(x.grad, y)
    assert float(y.double().max()) == pytest.approx(1 / (1 - p), rel=1e-2 if dtype == torch.bfloat16 else 1e-4)


def test_elements_are_dropped_independently():
    """Four elements share a draw, and neighbours across draws share nothing."""
    kept = (snn.Dropout(0.5)(torch.ones(400_000)) != 0).double() - 0.5
    for lag in (1, 2, 3, 4, 5):
        assert abs(float((kept[lag:] * kept[:-lag]).mean())) < 5 * 0.25 / 400_000**0.5
    for place in range(4):
        assert abs(float(kept[place::4].mean())) < 5 * 0.5 / 100_000**0.5


def test_it_is_repeated_by_the_seed_and_absent_in_evaluation():
    drop, x = snn.Dropout(0.3), torch.randn(7, 5)
    torch.manual_seed(3)
    first = drop(x)
    torch.manual_seed(3)
    assert torch.equal(drop(x), first) and not torch.equal(drop(x), first)
    assert drop.eval()(x) is x
    assert snn.Dropout(0.0)(x) is x
    assert not snn.Dropout(1.0)(x).any()
    assert snn.Dropout(0.3)(x[:0]).shape == (0, 5)


def test_it_compiles_in_one_piece():
    drop, x = snn.Dropout(0.25), torch.ones(64, 64)
    y = torch.compile(drop, fullgraph=True, backend="aot_eager")(x)
    assert 0.15 < float((y == 0).float().mean()) < 0.35


@pytest.mark.parametrize("p", [-0.1, 1.5, float("nan")])
def test_a_share_outside_of_0_to_1_is_refused(p):
    with pytest.raises(ValueError, match=r"0\.\.1; found"):
        snn.Dropout(p)
