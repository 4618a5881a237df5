import copy

import pytest
import torch
from torch import nn

from snn import MaskedBatchNorm
from snn.functional import frame_mask, masked_batch_norm
from tests.backends import every_backend


def pair(features=5, dtype=torch.float64):
    ours, theirs = MaskedBatchNorm(features).to(dtype), nn.BatchNorm1d(features).to(dtype)
    for module in (ours, theirs):
        torch.manual_seed(1)
        nn.init.uniform_(module.weight)
        nn.init.normal_(module.bias)
    return ours, theirs


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_without_padding_it_is_batch_norm(dtype):
    ours, theirs = pair(dtype=dtype)
    for _ in range(3):
        a = (3 * torch.randn(7, 4, 5, dtype=dtype) + 2).requires_grad_()
        b = a.detach().clone().requires_grad_()
        y, want = ours(a), theirs(b.reshape(28, 5)).reshape(7, 4, 5)
        grad = torch.randn_like(y)
        y.backward(grad)
        want.backward(grad)
        torch.testing.assert_close(y, want)
        torch.testing.assert_close(a.grad, b.grad)
    for name in ("weight", "bias"):
        torch.testing.assert_close(getattr(ours, name).grad, getattr(theirs, name).grad)
    assert ours.state_dict().keys() == theirs.state_dict().keys()
    for name, value in theirs.state_dict().items():
        torch.testing.assert_close(ours.state_dict()[name], value)
    ours.eval(), theirs.eval()
    torch.testing.assert_close(ours(a), theirs(b.reshape(28, 5)).reshape(7, 4, 5))


@pytest.mark.parametrize("padding", [0.0, 1e6, float("nan")])
def test_statistics_and_gradients_leave_padding_out(padding):
    ours, theirs = pair()
    lengths = torch.tensor([7, 3, 1])
    real = torch.arange(7)[:, None] < lengths
    x = torch.randn(7, 3, 5, dtype=torch.float64)
    padded = x.masked_fill(~real[..., None], padding).requires_grad_()
    flat = x[real].clone().requires_grad_()
    y, want = ours(padded, lengths), theirs(flat)
    torch.testing.assert_close(y[real], want)
    grad = torch.randn_like(want)
    y[real].backward(grad)
    want.backward(grad)
    torch.testing.assert_close(padded.grad[real], flat.grad)
    if padding == 0.0:
        assert (padded.grad[~real] == 0).all()
    for name in ("running_mean", "running_var"):
        torch.testing.assert_close(getattr(ours, name), getattr(theirs, name))


def test_evaluation_looks_at_one_frame_only_and_learns_nothing():
    norm, _ = pair(dtype=torch.float32)
    norm(torch.randn(9, 4, 5))
    norm.eval()
    before = copy.deepcopy(norm.state_dict())
    x = torch.randn(50, 7, 5)
    assert torch.equal(norm(x, torch.full((7,), 2))[3:4, 2:3], norm(x[3:4, 2:3]))
    assert all(torch.equal(before[name], value) for name, value in norm.state_dict().items())


def test_half_types_come_back_and_statistics_stay_float32():
    norm = MaskedBatchNorm(5)
    y = norm((100 + torch.randn(64, 8, 5)).to(torch.bfloat16))
    assert y.dtype == torch.bfloat16 and norm.running_mean.dtype == torch.float32
    assert abs(y.float().std() - 1) < 0.3


@pytest.mark.parametrize("backend", every_backend("masked_batch_norm"))
def test_gradcheck_of_the_real_frames(backend):
    lengths = torch.tensor([4, 2, 1])
    real = frame_mask(lengths, 4)
    inputs = (torch.randn(4, 3, 5), torch.rand(5), torch.randn(5))

    def run(x, weight, bias):
        return masked_batch_norm(x, weight, bias, lengths, backend=backend)[0][real]

    assert torch.autograd.gradcheck(run, [value.double().requires_grad_() for value in inputs])


@pytest.mark.parametrize(
    ("x", "lengths", "says"),
    [
        (torch.zeros(4, 2, 3), None, "must be"),
        (torch.zeros(4, 5), None, "must be"),
        (torch.zeros(1, 1, 5), None, "at least 2"),
        (torch.zeros(4, 2, 5), torch.tensor([1, 0]), "at least 2"),
        (torch.zeros(4, 2, 5), torch.tensor([1, 2, 3]), "lengths"),
    ],
)
def test_bad_arguments_are_named(x, lengths, says):
    with pytest.raises(ValueError, match=says):
        MaskedBatchNorm(5)(x, lengths)
