"""The Triton kernels against the reference: on a GPU where there is one, else on tiny sizes under the interpreter."""

import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import snn
from snn.functional import RESET_MECHANISMS, dormant_lif, fixed_delay_linear, lif
from snn.kernels.gpu.triton_here import interpreted, triton_is_missing

pytestmark = pytest.mark.skipif(triton_is_missing() is not None, reason=str(triton_is_missing()))
CUDA = torch.cuda.is_available()
here = pytest.mark.skipif(
    not (CUDA or interpreted()), reason="no GPU; test_under_the_interpreter runs this file with TRITON_INTERPRET=1"
)
DEVICE = "cuda" if CUDA else "cpu"

SIZES = [(1, 1, 1, 1, 1), (13, 3, 7, 5, 4), (5, 2, 33, 18, 7), (3, 1, 2, 2, 62), (4, 2, 3, 3, 0)]
if CUDA:
    SIZES += [(100, 16, 130, 70, 32), (257, 3, 65, 33, 63)]


@pytest.mark.slow  # starts Python anew
@pytest.mark.skipif(CUDA or interpreted(), reason="the tests of this file run here themselves")
def test_under_the_interpreter():
    environment = {**os.environ, "TRITON_INTERPRET": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "--tb=short", str(Path(__file__)), "-p", "no:cacheprovider"]
    result = subprocess.run(
        command, env=environment, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout[-4000:] + result.stderr[-2000:]
    assert " passed" in result.stdout


def draw(size, dtype, make):
    steps, batch, inputs, outputs, longest = size
    x, weight, bias, history = (
        make(shape, dtype).to(DEVICE)
        for shape in ((steps, batch, inputs), (outputs, inputs), (outputs,), (longest, batch, inputs))
    )
    delay = torch.randint(0, longest + 1, (outputs, inputs), dtype=torch.uint8).to(DEVICE)
    return x, weight, delay, bias, history


def dyadic(shape, dtype):
    return torch.randint(-16, 17, shape).to(dtype) / 16


def real(shape, dtype):
    return torch.randn(shape, dtype=dtype)


@here
@pytest.mark.parametrize("size", SIZES[:-1] if not CUDA else SIZES, ids=str)
@pytest.mark.parametrize("with_history", [False, True])
def test_the_delayed_layer_is_exact_on_dyadic_weights(size, with_history):
    x, weight, delay, bias, history = draw(size, torch.float32, dyadic)
    history = history if with_history else None
    got, _ = fixed_delay_linear(x, weight, delay, bias, history, max_delay=size[-1], backend="triton")
    want, _ = fixed_delay_linear(x, weight, delay, bias, history, max_delay=size[-1], backend="reference")
    assert torch.equal(got, want)


@here
@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("with_history", [False, True])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-10), (torch.float32, 2e-5)], ids=str)
def test_every_gradient_of_the_delayed_layer(size, with_history, dtype, tolerance):
    tensors = draw(size, dtype, real)
    delay, results = tensors[2], []
    for backend in ("reference", "triton"):
        x, weight, bias, history = (tensors[k].clone().requires_grad_() for k in (0, 1, 3, 4))
        leaves = [x, weight, bias] + ([history] if with_history and size[-1] else [])
        y, _ = fixed_delay_linear(
            x, weight, delay, bias, history if with_history else None, max_delay=size[-1], backend=backend
        )
        grads = torch.autograd.grad(
            (y * torch.linspace(-1, 1, y.numel(), dtype=dtype, device=DEVICE).view(y.shape)).sum(), leaves
        )
        results.append((y.detach(), *grads))
    for want, got in zip(*results, strict=True):
        torch.testing.assert_close(got, want, rtol=0, atol=tolerance * max(1.0, float(want.abs().max())))


@here
@pytest.mark.parametrize("surrogate", [kind() for kind in snn.SURROGATES.values()], ids=snn.SURROGATES)
@pytest.mark.parametrize("reset", RESET_MECHANISMS)
@pytest.mark.parametrize("first", [False, True], ids=["time first", "channel first"])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-10), (torch.float32, 1e-5)], ids=str)
def test_the_neuron(surrogate, reset, first, dtype, tolerance):
    results = []
    current = 1.5 * torch.randn(9, 3, 5, dtype=dtype).to(DEVICE)
    start, weights = torch.randn(3, 5, dtype=dtype).to(DEVICE), torch.randn(9, 3, 5, dtype=dtype).to(DEVICE)
    for backend in ("reference", "triton"):
        c = current.permute(2, 0, 1).contiguous().permute(1, 2, 0) if first else current
        c, s = c.clone(memory_format=torch.preserve_format).requires_grad_(), start.clone().requires_grad_()
        spikes, last = lif(
            c, beta=0.8, threshold=0.9, spike_grad=surrogate, reset_mechanism=reset, state=s, backend=backend
        )
        grads = torch.autograd.grad((spikes * weights).sum() + last.square().sum(), [c, s])
        results.append((spikes.detach(), last.detach(), *grads))
    assert torch.equal(results[0][0], results[1][0])
    for want, got in zip(*results, strict=True):
        torch.testing.assert_close(got, want, rtol=10 * tolerance, atol=tolerance)


@here
@pytest.mark.parametrize("surrogate", [snn.Sigmoid(), snn.Triangle()], ids=repr)
@pytest.mark.parametrize("reset", RESET_MECHANISMS)
@pytest.mark.parametrize("first", [False, True], ids=["time first", "channel first"])
@pytest.mark.parametrize("waking", [False, True])
@pytest.mark.parametrize("gate", [-0.3, -math.inf])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-10), (torch.float32, 1e-5)], ids=str)
def test_the_dormant_neuron(surrogate, reset, first, waking, gate, dtype, tolerance):
    results = []
    current = torch.randn(9, 3, 5, dtype=dtype).to(DEVICE)
    start, weights = torch.randn(3, 5, dtype=dtype).to(DEVICE), torch.randn(9, 3, 5, dtype=dtype).to(DEVICE)
    awake, wake = (torch.rand(3, 5) < 0.8).to(DEVICE, dtype), (torch.rand(9, 3) < 0.3).to(DEVICE)
    for backend in ("reference", "triton"):
        c = current.permute(2, 0, 1).contiguous().permute(1, 2, 0) if first else current
        leaves = [t.clone(memory_format=torch.preserve_format).requires_grad_() for t in (c, start, awake)]
        spikes, last = dormant_lif(
            leaves[0], beta=0.8, threshold=0.9, dormancy_threshold=gate, spike_grad=surrogate,
            dormancy_grad=snn.ArcTan(), reset_mechanism=reset, state=snn.DormantState(*leaves[1:]),
            wake=wake if waking else None, backend=backend,
        )  # fmt: skip
        loss = (spikes * weights).sum() + last.membrane.square().sum() + last.awake.square().sum()
        results.append((spikes.detach(), *(t.detach() for t in last[:2]), *torch.autograd.grad(loss, leaves)))
    assert torch.equal(results[0][0], results[1][0])
    for want, got in zip(*results, strict=True):
        torch.testing.assert_close(got, want, rtol=10 * tolerance, atol=tolerance)


@here
def test_a_network_gives_the_same_spikes():
    net = snn.ResidualSNN(4, 6, 2, max_delay=3, norm=None).to(DEVICE)
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.copy_((parameter * 32).round() / 32)
    x = dyadic((9, 2, 4), torch.float32).to(DEVICE) * 2
    with snn.use_backend("reference"):
        want, _ = net(x)
    with snn.use_backend(lif="triton", fixed_delay_linear="triton"):
        got, _ = net(x)
    np.testing.assert_array_equal(got.detach().cpu().numpy(), want.detach().cpu().numpy())


@here
@pytest.mark.parametrize("size", [(0, 2, 3), (4, 0, 3), (4, 2, 0)], ids=str)
def test_empty_sizes(size):
    current = torch.zeros(size, device=DEVICE, requires_grad=True)
    spikes, state = lif(current, beta=0.5, backend="triton")
    (spikes.sum() + state.sum()).backward()
    assert spikes.shape == size


@pytest.mark.gpu
@pytest.mark.skipif(not CUDA, reason="no GPU")
def test_triton_is_chosen_on_a_gpu():
    assert all(
        row.backend == "triton" for row in snn.explain() if row.device == "cuda" and row.operator != "masked_batch_norm"
    )
