import pickle

import pytest
import torch

from snn import SURROGATES, ArcTan, FastSigmoid, Sigmoid, Triangle


@pytest.mark.parametrize("kind", SURROGATES.values(), ids=SURROGATES)
class TestEverySurrogate:
    def test_is_a_strict_step_forward_in_the_dtype_given(self, kind):
        x = torch.tensor([-1.0, 0.0, 1e-30, 1.0], dtype=torch.float64)
        assert kind()(x).tolist() == [0.0, 0.0, 1.0, 1.0]
        assert kind()(x.to(torch.bfloat16)).dtype == torch.bfloat16

    def test_gradient_is_its_slope(self, kind):
        x = torch.linspace(-2, 2, 41, dtype=torch.float64, requires_grad=True)
        kind()(x).sum().backward()
        torch.testing.assert_close(x.grad, kind().slope(x.detach()), rtol=0, atol=0)

    def test_slope_is_even_falls_off_and_has_unit_or_known_mass(self, kind):
        x = torch.linspace(-400, 400, 400_001, dtype=torch.float64)
        slope = kind().slope(x)
        torch.testing.assert_close(slope, slope.flip(0))
        assert (slope[200_000:].diff() <= 0).all()
        mass = {"fast_sigmoid": 2 / 25}.get(kind.kernel_id, 1.0)
        assert torch.trapezoid(slope, x).item() == pytest.approx(mass, rel=2e-2)

    def test_pickles_compares_and_prints(self, kind):
        surrogate = kind(3.0)
        assert pickle.loads(pickle.dumps(surrogate)) == surrogate != kind(2.0)
        assert "3" in repr(surrogate) and len({surrogate, kind(3.0)}) == 1

    @pytest.mark.parametrize("bad", [0.0, -1.0, float("nan"), float("inf")])
    def test_refuses_a_width_that_is_none(self, kind, bad):
        with pytest.raises(ValueError, match="positive"):
            kind(bad)


def test_triangle_is_zero_outside_its_width():
    x = torch.tensor([-0.6, -0.5, 0.5, 0.6])
    assert Triangle(0.5).slope(x).tolist() == [0.0, 0.0, 0.0, 0.0]


def test_equal_to_snntorch():
    theirs = pytest.importorskip("snntorch.surrogate", reason="snntorch (extra dev) is not installed")
    pairs = [
        (ArcTan(2.0), theirs.atan(alpha=2.0)),
        (FastSigmoid(25.0), theirs.fast_sigmoid(slope=25)),
        (Sigmoid(25.0), theirs.sigmoid(slope=25)),
    ]
    for ours, other in pairs:
        a = torch.linspace(-2, 2, 101, requires_grad=True)
        b = a.detach().clone().requires_grad_()
        assert torch.equal(ours(a), other(b))
        ours(a).sum().backward()
        other(b).sum().backward()
        torch.testing.assert_close(a.grad, b.grad)
