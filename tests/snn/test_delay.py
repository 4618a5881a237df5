import copy
import pickle

import numpy as np
import pytest
import torch
from torch import nn

import snn
from snn.functional import fixed_delay_linear
from tests.backends import every_backend
from tests.oracles.delay import fixed_delay_linear as oracle
from tests.oracles.delay import fixed_delay_linear_gradient

SIZES = [  # T, B, I, O, D
    (1, 1, 1, 1, 1),
    (1, 2, 3, 4, 5),
    (9, 1, 3, 5, 1),
    (13, 3, 7, 5, 4),
    (40, 2, 33, 18, 7),
    (11, 16, 20, 35, 3),
    (3, 1, 2, 2, 62),
    (45, 32, 19, 21, 9),  # strips of the batch, more than one block and chunk of each
]
both = pytest.mark.parametrize("backend", every_backend("fixed_delay_linear"))


def draw(size, dyadic=None, dtype=torch.float32):
    steps, batch, inputs, outputs, delay = size
    make = dyadic or (lambda *shape, dtype: torch.randn(shape, dtype=dtype))
    x, weight, bias = (make(*s, dtype=dtype) for s in ((steps, batch, inputs), (outputs, inputs), (outputs,)))
    delays = torch.randint(0, delay + 1, (outputs, inputs), dtype=torch.uint8)
    history = make(delay, batch, inputs, dtype=dtype)
    return x, weight, delays, bias, history


@both
@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("kind", ["real", "spikes", "few spikes", "zeros", "ones", "counts"])
def test_equals_the_oracle_exactly_on_dyadic_weights(dyadic, size, kind, backend):
    x, weight, delay, bias, history = draw(size, dyadic)
    kinds = {
        "real": lambda x: x,
        "spikes": lambda x: (x > 0.5).to(x.dtype),
        "few spikes": lambda x: (torch.rand_like(x) < 0.02).to(x.dtype),
        "zeros": torch.zeros_like,
        "ones": torch.ones_like,
        "counts": lambda x: (4 * x).round().abs(),
    }
    x, history = kinds[kind](x), kinds[kind](history)
    y, state = fixed_delay_linear(x, weight, delay, bias, history, backend=backend)
    want = oracle(x.numpy(), weight.numpy(), delay.numpy(), bias.numpy(), history.numpy())
    np.testing.assert_array_equal(y.numpy(), want)
    assert torch.equal(state, torch.cat([history, x])[-history.shape[0] :])


@both
@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("kind", ["real", "spikes"])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-10), (torch.float32, 1e-5)], ids=str)
def test_gradients_equal_the_oracle(size, kind, dtype, tolerance, backend):
    x, weight, delay, bias, _ = draw(size, dtype=dtype)
    if kind == "spikes":
        x = (x > 1.2).to(dtype)
    for tensor in (x, weight, bias):
        tensor.requires_grad_()
    y, _ = fixed_delay_linear(x, weight, delay, bias, max_delay=size[-1], backend=backend)
    grad = torch.randn_like(y)
    y.backward(grad)
    want = fixed_delay_linear_gradient(
        *(t.detach().double().numpy() for t in (x, weight)), delay.numpy(), grad.double().numpy()
    )
    for tensor, expected in zip((x, weight, bias), want, strict=True):
        scale = max(1.0, float(np.abs(expected).max()))
        np.testing.assert_allclose(tensor.grad.numpy(), expected, rtol=0, atol=tolerance * scale)


@both
def test_gradcheck(backend):
    x, weight, delay, bias, history = draw((5, 2, 3, 4, 2), dtype=torch.float64)

    def run(x, weight, bias, history):
        return fixed_delay_linear(x, weight, delay, bias, history, backend=backend)

    assert torch.autograd.gradcheck(run, [t.requires_grad_() for t in (x, weight, bias, history)])


@both
@pytest.mark.parametrize("wanted", range(1, 16))
def test_any_subset_of_gradients(wanted, backend):
    tensors = draw((6, 2, 3, 4, 2), dtype=torch.float64)
    delay = tensors[2]
    leaves = [tensors[k].requires_grad_(bool(wanted >> bit & 1)) for bit, k in enumerate((0, 1, 3, 4))]
    grads = []
    for name in ("reference", backend):
        x, weight, bias, history = leaves
        y, _ = fixed_delay_linear(x, weight, delay, bias, history, backend=name)
        needing = [leaf for leaf in leaves if leaf.requires_grad]
        grads.append(torch.autograd.grad(y.square().sum(), needing))
    for want, got in zip(*grads, strict=True):
        torch.testing.assert_close(got, want)


@both
@pytest.mark.parametrize("kind", ["dyadic", "spikes", "real"])
def test_chunks_equal_the_whole(dyadic, kind, backend):
    x, weight, delay, bias, history = draw((23, 3, 9, 8, 5), dyadic if kind == "dyadic" else None)
    if kind == "spikes":
        x, history = ((t > 1).float() for t in (x, history))
    whole, last = fixed_delay_linear(x, weight, delay, bias, history, backend=backend)
    state, parts = history, []
    for chunk in x.split([1, 1, 2, 0, 7, 12]):
        y, state = fixed_delay_linear(chunk, weight, delay, bias, state, backend=backend)
        parts.append(y)
    assert torch.equal(state, last)
    if kind == "dyadic" or backend != "reference":
        assert torch.equal(torch.cat(parts), whole)
    torch.testing.assert_close(torch.cat(parts), whole, rtol=0, atol=1e-5)


@both
def test_a_trial_does_not_depend_on_its_batch(backend):
    x, weight, delay, bias, _ = draw((40, 5, 64, 48, 6))
    together, _ = fixed_delay_linear(x, weight, delay, bias, max_delay=6, backend=backend)
    for b in range(5):
        alone, _ = fixed_delay_linear(x[:31, b : b + 1], weight, delay, bias, max_delay=6, backend=backend)
        if backend != "reference":
            assert torch.equal(alone[:, 0], together[:31, b])
        torch.testing.assert_close(alone[:, 0], together[:31, b], rtol=0, atol=1e-5)


@both
@pytest.mark.parametrize("layout", [(2, 0, 1), (1, 0, 2), (1, 2, 0)], ids=str)
def test_memory_layout_and_poisoned_neighbours_do_not_matter(dyadic, layout, backend):
    x, weight, delay, bias, history = draw((9, 4, 6, 5, 3), dyadic)
    want, _ = fixed_delay_linear(x, weight, delay, bias, history, backend="reference")
    inverse = tuple(int(k) for k in np.argsort(layout))

    def poisoned(tensor, order, back):
        wide = torch.full([2 * n for n in tensor.permute(order).shape], float("nan"))
        view = wide[tuple(slice(None, None, 2) for _ in order)]
        view.copy_(tensor.permute(order))
        return view.permute(back)

    strided = [poisoned(t, layout, inverse) for t in (x, history)]
    wide = poisoned(weight, (1, 0), (1, 0))
    y, state = fixed_delay_linear(strided[0], wide, delay.t().contiguous().t(), bias, strided[1], backend=backend)
    assert torch.equal(y, want) and not state.isnan().any()


@pytest.mark.parametrize("bias", [True, False])
def test_without_delays_it_is_nn_linear_bit_for_bit(bias):
    torch.manual_seed(3)
    layer = snn.FixedDelayLinear(37, 19, max_delay=0, min_delay=0, bias=bias)
    torch.manual_seed(3)
    plain = nn.Linear(37, 19, bias=bias)
    assert torch.equal(layer.weight, plain.weight)
    x = torch.randn(11, 3, 37)
    for module in (layer, plain):
        module.zero_grad()
    a, b = x.clone().requires_grad_(), x.clone().requires_grad_()
    y, state = layer(a)
    assert torch.equal(y, plain(b)) and state.shape == (0, 3, 37)
    y.square().sum().backward()
    plain(b).square().sum().backward()
    assert torch.equal(a.grad, b.grad) and torch.equal(layer.weight.grad, plain.weight.grad)


@both
def test_one_delay_for_all_is_a_shifted_linear_layer(dyadic, backend):
    x, weight, _, bias, _ = draw((12, 2, 6, 5, 1), dyadic)
    y, _ = fixed_delay_linear(x, weight, torch.full((5, 6), 4), bias, backend=backend)
    shifted = torch.cat([torch.zeros(4, 2, 6), x])[:12]
    torch.testing.assert_close(y, nn.functional.linear(shifted, weight, bias), rtol=0, atol=0)


@both
@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.int64])
def test_integer_inputs_are_taken_in_the_dtype_of_the_weight(dtype, backend):
    _, weight, delay, bias, _ = draw((9, 2, 6, 5, 3), dtype=torch.float64)
    x = torch.randint(0, 2, (9, 2, 6))
    y, state = fixed_delay_linear(x.to(dtype), weight, delay, bias, max_delay=3, backend=backend)
    want, _ = fixed_delay_linear(x.double(), weight, delay, bias, max_delay=3, backend="reference")
    torch.testing.assert_close(y, want)
    assert state.dtype == dtype and y.dtype == torch.float64


@both
def test_autocast_gives_its_dtype_and_float32_gradients(backend):
    x, weight, delay, bias, history = draw((9, 2, 6, 5, 3))
    weight.requires_grad_()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y, state = fixed_delay_linear(x, weight, delay, bias, history, backend=backend)
    y.float().sum().backward()
    want, _ = fixed_delay_linear(x, weight, delay, bias, history, backend="reference")
    assert y.dtype == torch.bfloat16 and weight.grad.dtype == torch.float32 and state.dtype == torch.float32
    torch.testing.assert_close(y.float(), want, rtol=0.05, atol=0.1)


@both
def test_empty_batch(backend):
    y, state = fixed_delay_linear(
        torch.zeros(4, 0, 3), torch.zeros(2, 3, requires_grad=True), torch.ones(2, 3, dtype=torch.int), backend=backend
    )
    assert y.shape == (4, 0, 2) and state.shape == (1, 0, 3)


X, W, D = torch.zeros(4, 2, 3), torch.zeros(5, 3), torch.ones(5, 3, dtype=torch.int64)


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda: fixed_delay_linear(X, W, D.float()), TypeError, "integer"),
        (lambda: fixed_delay_linear(X, W, D.bool()), TypeError, "integer"),
        (lambda: fixed_delay_linear(X, W, D[:, :2]), ValueError, "shape of weight"),
        (lambda: fixed_delay_linear(X, W, -D), ValueError, r"-1\.\.-1"),
        (lambda: fixed_delay_linear(X, W, 5 * D, max_delay=4), ValueError, r"0\.\.4; found 5\.\.5"),
        (lambda: fixed_delay_linear(X[..., :2], W, D), ValueError, "I = 3"),
        (lambda: fixed_delay_linear(X[0], W, D), ValueError, "I = 3"),
        (lambda: fixed_delay_linear(X.double(), W, D), TypeError, "float64"),
        (lambda: fixed_delay_linear(X, W.long(), D), TypeError, "weight must be floating"),
        (lambda: fixed_delay_linear(X, W, D, torch.zeros(3)), ValueError, "bias"),
        (lambda: fixed_delay_linear(X, W, D, None, X), ValueError, None),
        (lambda: fixed_delay_linear(X, W, D, None, torch.zeros(1, 3, 3)), ValueError, "state must be"),
        (lambda: fixed_delay_linear(X, W, D.to("meta")), ValueError, "different devices"),
    ],
)
def test_bad_arguments_are_named(call, error, says):
    if says is None:
        call()  # A history longer than the delays is a state of a layer with a larger max_delay.
        return
    with pytest.raises(error, match=says):
        call()


class TestLayer:
    def test_delays_are_drawn_from_the_seed_alone(self):
        a = snn.FixedDelayLinear(40, 30, max_delay=16, seed=5)
        torch.rand(7)
        b = snn.FixedDelayLinear(40, 30, max_delay=16, seed=5)
        c = snn.FixedDelayLinear(40, 30, max_delay=16, seed=6)
        assert torch.equal(a.delay, b.delay) and not torch.equal(a.delay, c.delay)
        assert a.delay.dtype == torch.uint8 and a.delay.min() == 1 and a.delay.max() == 16
        share = a.delay.long().flatten().bincount(minlength=17)[1:] / a.delay.numel()
        assert share.min() > 0.04 and share.max() < 0.09
        state = torch.random.get_rng_state()
        torch.randint(1, 17, (30, 40), generator=torch.Generator().manual_seed(5))
        assert torch.equal(state, torch.random.get_rng_state())

    def test_parameters_do_not_depend_on_the_delays(self):
        counts = {
            sum(p.numel() for p in snn.FixedDelayLinear(8, 9, max_delay=d, min_delay=min(d, 1)).parameters())
            for d in (0, 1, 16, 63)
        }
        assert counts == {8 * 9 + 9}

    def test_wide_delays_need_a_higher_cap(self):
        with pytest.raises(ValueError, match="cap of 63"):
            snn.FixedDelayLinear(2, 2, max_delay=64)
        wide = snn.FixedDelayLinear(20, 20, max_delay=300, delay_cap=300)
        assert wide.delay.dtype == torch.int16 and wide.delay.max() > 255
        y, state = wide(torch.randn(5, 1, 20))
        assert y.shape == (5, 1, 20) and state.shape == (300, 1, 20)

    @pytest.mark.parametrize(("low", "high"), [(1, 0), (-1, 4), (5, 4)])
    def test_bad_ranges_are_refused(self, low, high):
        with pytest.raises(ValueError, match="min_delay"):
            snn.FixedDelayLinear(2, 2, max_delay=high, min_delay=low)

    def test_state_dict_round_trip_brings_the_delays(self):
        a = snn.FixedDelayLinear(6, 5, max_delay=9, seed=1)
        b = snn.FixedDelayLinear(6, 5, max_delay=9, seed=2)
        b.load_state_dict(a.state_dict())
        x = torch.randn(12, 2, 6)
        assert torch.equal(a(x)[0], b(x)[0]) and b.delay.dtype == torch.uint8

    @pytest.mark.parametrize(
        ("spoil", "says"),
        [
            (lambda d: d.to(torch.int64) + 9, r"1\.\.9"),
            (lambda d: -d.to(torch.int64), r"1\.\.9"),
            (lambda d: d * 0, r"1\.\.9"),
            (lambda d: d.float(), "integers"),
            (lambda d: d[:, :2], r"\(5, 6\)"),
        ],
    )
    def test_a_checkpoint_that_does_not_fit_is_refused_and_changes_nothing(self, spoil, says):
        layer = snn.FixedDelayLinear(6, 5, max_delay=9)
        before = layer.delay.clone()
        checkpoint = {**layer.state_dict(), "delay": spoil(layer.delay)}
        with pytest.raises(RuntimeError, match=says):
            layer.load_state_dict(checkpoint)
        assert torch.equal(layer.delay, before)

    def test_pickles_copies_and_converts(self):
        layer = snn.FixedDelayLinear(6, 5, max_delay=9)
        x = torch.randn(12, 2, 6)
        for twin in (pickle.loads(pickle.dumps(layer)), copy.deepcopy(layer)):
            assert torch.equal(twin(x)[0], layer(x)[0])
        double = copy.deepcopy(layer).double()
        assert double.delay.dtype == torch.uint8 and double(x.double())[0].dtype == torch.float64

    def test_the_state_is_memory_of_its_own(self):
        layer = snn.FixedDelayLinear(3, 2, max_delay=2)
        x = torch.ones(5, 1, 3)
        _, state = layer(x)
        x.zero_()
        assert (state == 1).all()


@both
@pytest.mark.parametrize("size", [(5, 3, 1, 4, 3), (1, 1, 1, 1, 1), (4, 2, 1, 1, 6)], ids=str)
def test_gradients_of_one_input_and_its_history_are_apart(size, backend):
    x, weight, delay, bias, history = draw(size, dtype=torch.float64)
    results = []
    for name in ("reference", backend):
        a, h = x.clone().requires_grad_(), history.clone().requires_grad_()
        y, _ = fixed_delay_linear(a, weight, delay, bias, h, backend=name)
        results.append(torch.autograd.grad(y.square().sum(), [a, h]))
    for want, got in zip(*results, strict=True):
        torch.testing.assert_close(got, want)


def test_a_state_of_another_kind_is_refused():
    x, weight, delay, bias, history = draw((4, 2, 3, 5, 2))
    with pytest.raises(ValueError, match="state is on meta"):
        fixed_delay_linear(x, weight, delay, bias, history.to("meta"))
    with pytest.raises(TypeError, match="complex"):
        fixed_delay_linear(x, weight, delay, bias, history.to(torch.complex64))
