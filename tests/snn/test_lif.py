import copy
import pickle

import numpy as np
import pytest
import torch

import snn
from snn.functional import RESET_MECHANISMS, lif
from tests.backends import every_backend
from tests.oracles.lif import lif as oracle
from tests.oracles.lif import lif_gradient

SIZES = [(1, 1, 1), (7, 1, 3), (12, 3, 5), (33, 2, 17), (5, 16, 40)]
BACKENDS = every_backend("lif")


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("reset", RESET_MECHANISMS)
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_equals_the_oracle_exactly_on_dyadic_currents(dyadic, size, reset, backend):
    current, start = dyadic(*size, low=-8, high=32), dyadic(*size[1:])
    spikes, state = lif(current, beta=0.5, threshold=0.75, reset_mechanism=reset, state=start, backend=backend)
    want, _, after = oracle(current.numpy(), 0.5, 0.75, reset, start.numpy())
    np.testing.assert_array_equal(spikes.numpy(), want)
    np.testing.assert_allclose(state.numpy(), after[-1], rtol=0, atol=2e-7)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("surrogate", [kind() for kind in snn.SURROGATES.values()], ids=snn.SURROGATES)
@pytest.mark.parametrize("reset", RESET_MECHANISMS)
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-10), (torch.float32, 1e-5)], ids=str)
def test_gradients_equal_the_oracle(surrogate, reset, dtype, tolerance, backend):
    current = (1.5 * torch.randn(21, 3, 9, dtype=dtype)).requires_grad_()
    start = torch.randn(3, 9, dtype=dtype).requires_grad_()
    spikes, state = lif(current, beta=0.8, spike_grad=surrogate, reset_mechanism=reset, state=start, backend=backend)
    grad_spikes, grad_last = torch.randn_like(spikes), torch.randn_like(state)
    torch.autograd.backward([spikes, state], [grad_spikes, grad_last])
    want, before, _ = oracle(current.detach().numpy(), 0.8, 1.0, reset, start.detach().numpy())
    np.testing.assert_array_equal(spikes.detach().numpy(), want)
    slope = surrogate.slope(torch.from_numpy(before) - 1.0).numpy()
    grad_current, grad_start = lif_gradient(
        before, want, slope, grad_spikes.double().numpy(), grad_last.double().numpy(), 0.8, reset
    )
    np.testing.assert_allclose(current.grad.numpy(), grad_current, rtol=tolerance * 10, atol=tolerance)
    np.testing.assert_allclose(start.grad.numpy(), grad_start, rtol=tolerance * 10, atol=tolerance)


def test_gradcheck_with_the_surrogate_as_the_true_function():
    # No reset: the detached reset is not the derivative of what is computed, the rest is.
    def smooth(current, start):
        return lif(current, beta=0.7, spike_grad=torch.sigmoid, reset_mechanism="none", state=start)

    inputs = (torch.randn(4, 2, 3, dtype=torch.float64), torch.randn(2, 3, dtype=torch.float64))
    assert torch.autograd.gradcheck(smooth, [x.requires_grad_() for x in inputs])


@pytest.mark.parametrize("backend", BACKENDS)
def test_threshold_is_strict(backend):
    spikes, state = lif(torch.tensor([[[1.0]], [[0.75]]]), beta=0.5, backend=backend)
    assert spikes.flatten().tolist() == [0.0, 1.0] and state.item() == 0.0


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("reset", RESET_MECHANISMS)
def test_chunks_equal_the_whole_bit_for_bit(reset, backend):
    current = torch.randn(20, 3, 4)
    options = {"beta": 0.9, "reset_mechanism": reset, "backend": backend}
    whole, last = lif(current, **options)
    state, parts = None, []
    for chunk in current.split([1, 6, 0, 13]):
        spikes, state = lif(chunk, state=state, **options)
        parts.append(spikes)
    assert torch.equal(torch.cat(parts), whole) and torch.equal(state, last)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("layout", [(0, 1, 2), (2, 0, 1), (1, 0, 2), (1, 2, 0)], ids=str)
@pytest.mark.parametrize("size", [(9, 4, 6), (7, 16, 24)], ids=str)  # the second in whole vectors
def test_memory_layout_of_the_input_does_not_matter(layout, size, backend):
    plain = torch.randn(size)
    inverse = tuple(int(k) for k in np.argsort(layout))
    strided = plain.permute(layout).contiguous().permute(inverse).requires_grad_()
    plain.requires_grad_()
    for current in (plain, strided):
        spikes, state = lif(current, beta=0.5, backend=backend)
        (spikes * torch.arange(size[2])).sum().backward()
        state.sum()
    want, _ = lif(plain, beta=0.5, backend="reference")
    got, _ = lif(strided, beta=0.5, backend=backend)
    assert torch.equal(got, want)
    torch.testing.assert_close(strided.grad, plain.grad, rtol=0, atol=0)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16], ids=str)
def test_dtype_out_is_dtype_in_and_half_types_keep_a_float32_membrane(dtype, backend):
    current = torch.randn(5, 2, 3).to(dtype).requires_grad_()
    spikes, state = lif(current, beta=0.9, backend=backend)
    spikes.sum().backward()
    assert spikes.dtype == dtype == current.grad.dtype
    assert state.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("size", [(0, 2, 3), (4, 0, 3), (4, 2, 0)], ids=str)
def test_empty_sizes(size, backend):
    current = torch.zeros(size, requires_grad=True)
    spikes, state = lif(current, beta=0.5, backend=backend)
    (spikes.sum() + state.sum()).backward()
    assert spikes.shape == size and state.shape == size[1:]


def test_one_beta_and_threshold_for_each_neuron():
    current = torch.rand(12, 2, 3) * 2
    beta, threshold = torch.tensor([0.0, 0.5, 0.9]), torch.tensor([0.5, 1.0, 1.5])
    spikes, state = lif(current, beta=beta, threshold=threshold)
    for n in range(3):
        alone, last = lif(current[..., n : n + 1], beta=float(beta[n]), threshold=float(threshold[n]))
        assert torch.equal(alone[..., 0], spikes[..., n])
        torch.testing.assert_close(last[:, 0], state[:, n])


def test_beta_can_be_trained():
    beta = torch.full((3,), 0.5, requires_grad=True)
    spikes, _ = lif(torch.rand(6, 2, 3), beta=beta)
    spikes.sum().backward()
    assert beta.grad is not None and (beta.grad != 0).any()


def test_equals_snntorch_with_its_reset_at_once():
    snntorch = pytest.importorskip("snntorch", reason="snntorch (extra dev) is not installed")
    # snnTorch takes a second threshold off where one subtraction leaves the membrane above it: no current here does so.
    current = torch.rand(30, 4, 6)
    surrogate = snntorch.surrogate.fast_sigmoid(slope=10)
    a, b = current.clone().requires_grad_(), current.clone().requires_grad_()
    for reset in ("zero", "subtract"):
        neuron = snntorch.Leaky(beta=0.8, reset_mechanism=reset, reset_delay=False, spike_grad=surrogate)
        mem, theirs = neuron.init_leaky(), []
        for step in a:
            spikes, mem = neuron(step, mem)
            theirs.append(spikes)
        ours, _ = lif(b, beta=0.8, reset_mechanism=reset, spike_grad=surrogate)
        assert torch.equal(torch.stack(theirs), ours)


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"beta": 1.5}, ValueError, r"0\.\.1"),
        ({"beta": float("nan")}, ValueError, "finite"),
        ({"beta": torch.ones(4)}, ValueError, "one for each neuron"),
        ({"beta": 0.5, "reset_mechanism": "later"}, ValueError, "zero, subtract, none"),
        ({"beta": 0.5, "spike_grad": 3}, TypeError, "callable"),
        ({"beta": 0.5, "state": torch.zeros(3, 2)}, ValueError, "state"),
        ({"beta": 0.5, "backend": "abacus"}, ValueError, "expected one of"),
    ],
)
def test_bad_arguments_are_named(options, error, says):
    with pytest.raises(error, match=says):
        lif(torch.zeros(4, 2, 3), **options)


def test_integers_are_refused():
    with pytest.raises(TypeError, match="floating-point"):
        lif(torch.zeros(4, 2, 3, dtype=torch.long), beta=0.5)


class TestModule:
    def test_hands_everything_on(self):
        current, start = torch.randn(6, 2, 3), torch.randn(2, 3)
        options = {"beta": 0.7, "threshold": 0.8, "spike_grad": snn.Triangle(), "reset_mechanism": "subtract"}
        a, b = current.clone().requires_grad_(), current.clone().requires_grad_()
        ours, state = snn.LIF(**options)(a, start)
        want, last = lif(b, state=start, **options)
        ours.sum().backward()
        want.sum().backward()
        assert torch.equal(ours, want) and torch.equal(state, last) and torch.equal(a.grad, b.grad)

    def test_pickles_copies_and_converts(self):
        neuron = snn.LIF(beta=torch.tensor([0.5, 0.25]))
        for twin in (pickle.loads(pickle.dumps(neuron)), copy.deepcopy(neuron)):
            assert torch.equal(twin.beta, neuron.beta) and twin.spike_grad == neuron.spike_grad
        assert neuron.double().beta.dtype == torch.float64
        assert neuron(torch.zeros(2, 1, 2, dtype=torch.float64))[0].dtype == torch.float64

    @pytest.mark.parametrize(
        "options", [{"beta": 2.0}, {"beta": torch.tensor([2.0])}, {"beta": 0.5, "reset_mechanism": "x"}]
    )
    def test_finds_a_bad_value_when_it_is_made(self, options):
        with pytest.raises(ValueError, match=r"0\.\.1|reset_mechanism"):
            snn.LIF(**options)
