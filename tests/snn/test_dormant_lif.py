import copy
import math
import pickle

import numpy as np
import pytest
import torch

import snn
from snn.functional import RESET_MECHANISMS, DormantState, awake_trace, dormant_lif, lif
from tests.backends import every_backend
from tests.oracles.dormant import dormant_gradient
from tests.oracles.dormant import dormant_lif as oracle

SIZES = [(1, 1, 1), (7, 1, 3), (12, 3, 5), (33, 2, 17), (5, 16, 40)]
BACKENDS = every_backend("dormant_lif")
SURROGATES = [kind() for kind in snn.SURROGATES.values()]


def wake_marks(steps, batch):
    return torch.rand(steps, batch) < 0.3


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("reset", RESET_MECHANISMS)
@pytest.mark.parametrize("waking", [False, True])
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_equals_the_oracle_exactly_on_dyadic_currents(dyadic, size, waking, reset, backend):
    current, start = dyadic(*size, low=-16, high=32), dyadic(*size[1:])
    awake, wake = (torch.rand(size[1:]) < 0.8).float(), wake_marks(*size[:2]) if waking else None
    options = {"beta": 0.5, "threshold": 0.75, "dormancy_threshold": -0.25, "reset_mechanism": reset}
    state = DormantState(start, awake)
    spikes, last = dormant_lif(current, **options, state=state, wake=wake, backend=backend)
    want = oracle(
        current.numpy(), 0.5, 0.75, -0.25, reset, start.numpy(), awake.numpy(), None if wake is None else wake.numpy()
    )
    np.testing.assert_array_equal(spikes.numpy(), want["spikes"])
    np.testing.assert_array_equal(last.awake.numpy(), want["awake"][-1])
    np.testing.assert_allclose(last.membrane.numpy(), want["after"][-1], rtol=0, atol=2e-7)
    np.testing.assert_array_equal(awake_trace(current, **options, state=state, wake=wake).numpy(), want["awake"] != 0)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("surrogate", SURROGATES, ids=snn.SURROGATES)
@pytest.mark.parametrize("reset", RESET_MECHANISMS)
@pytest.mark.parametrize("waking", [False, True])
@pytest.mark.parametrize("first", [False, True], ids=["time first", "channel first"])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-10), (torch.float32, 2e-5)], ids=str)
def test_gradients_equal_the_oracle(surrogate, reset, waking, first, dtype, tolerance, backend):
    steps, batch, neurons = size = (13, 3, 9)
    current = torch.randn(size, dtype=dtype)
    if first:
        current = current.permute(2, 0, 1).contiguous().permute(1, 2, 0)
    current.requires_grad_()
    start = (0.5 * torch.randn(batch, neurons, dtype=dtype)).requires_grad_()
    awake = (torch.rand(batch, neurons) < 0.8).to(dtype).requires_grad_()
    wake = wake_marks(steps, batch) if waking else None
    gate = snn.Sigmoid(3.0)
    spikes, last = dormant_lif(
        current, beta=0.8, threshold=0.6, dormancy_threshold=-0.3, spike_grad=surrogate, dormancy_grad=gate,
        reset_mechanism=reset, state=DormantState(start, awake), wake=wake, backend=backend,
    )  # fmt: skip
    grads = [torch.randn_like(t) for t in (spikes, last.membrane, last.awake)]
    torch.autograd.backward([spikes, last.membrane, last.awake], grads)
    marks = None if wake is None else wake.numpy()
    arrays = [t.detach().double().numpy() for t in (current, start, awake)]
    trace = oracle(arrays[0], 0.8, 0.6, -0.3, reset, arrays[1], arrays[2], marks)
    np.testing.assert_array_equal(spikes.detach().numpy(), trace["spikes"])

    def slope(kind):
        return lambda x: float(kind.slope(torch.tensor(x, dtype=torch.float64)))

    want = dormant_gradient(
        trace, arrays[1], arrays[2], marks, slope(surrogate), slope(gate), *(g.double().numpy() for g in grads),
        0.8, 0.6, -0.3, reset,
    )  # fmt: skip
    for got, expected in zip((current.grad, start.grad, awake.grad), want, strict=True):
        np.testing.assert_allclose(got.numpy(), expected, rtol=10 * tolerance, atol=tolerance)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_detached_gate_passes_nothing(backend):
    results = []
    current = torch.randn(12, 3, 8)
    for option in ({"detach_gate": True}, {"dormancy_grad": lambda x: (x > 0).to(x.dtype), "backend": "reference"}):
        c = current.clone().requires_grad_()
        spikes, _ = dormant_lif(c, **{"beta": 0.5, "backend": backend, **option})
        spikes.sum().backward()
        results.append((spikes.detach(), c.grad))
    assert torch.equal(results[0][0], results[1][0])
    torch.testing.assert_close(results[0][1], results[1][1])
    c = current.clone().requires_grad_()
    dormant_lif(c, beta=0.5, backend=backend)[0].sum().backward()
    assert not torch.allclose(c.grad, results[0][1])


@pytest.mark.parametrize("surrogate", SURROGATES, ids=snn.SURROGATES)
@pytest.mark.parametrize("reset", RESET_MECHANISMS)
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("size", [(21, 3, 9), (9, 4, 32)], ids=str)
def test_without_a_threshold_of_dormancy_it_is_a_lif_bit_for_bit(size, backend, reset, surrogate):
    current, start = 1.5 * torch.randn(size), torch.randn(size[1:])
    results = []
    for dormant in (False, True):
        c, s = current.clone().requires_grad_(), start.clone().requires_grad_()
        options = {"beta": 0.8, "spike_grad": surrogate, "reset_mechanism": reset, "backend": backend}
        if dormant:
            spikes, (last, awake, _) = dormant_lif(
                c, dormancy_threshold=-math.inf, state=DormantState(s, torch.ones_like(s)), **options
            )
            assert (awake == 1).all()
        else:
            spikes, last = lif(c, state=s, **options)
        torch.autograd.backward([spikes, last], [torch.arange(1.0, 1 + size[0]).view(-1, 1, 1) * spikes, last])
        results.append((spikes.detach(), last.detach(), c.grad, s.grad))
    for a, b in zip(*results, strict=True):
        assert torch.equal(a, b)


def test_gradcheck_with_the_surrogates_as_the_true_functions():
    # No reset: the detached reset is not the derivative of what is computed, the rest is.
    def smooth(current, membrane, awake):
        spikes, (last, gate, _) = dormant_lif(
            current, beta=0.7, spike_grad=torch.sigmoid, reset_mechanism="none", state=DormantState(membrane, awake)
        )
        return spikes, last, gate

    inputs = (torch.randn(4, 2, 3), torch.randn(2, 3), torch.rand(2, 3))
    assert torch.autograd.gradcheck(smooth, [x.double().requires_grad_() for x in inputs])


@pytest.mark.parametrize("backend", BACKENDS)
def test_both_tests_are_strict_and_the_first_step_is_never_dormant(backend):
    # A membrane exactly at the dormancy threshold sleeps; the current that put it there was still summed.
    current = torch.tensor([[-0.5, -0.25, 1.0], [4.0, 4.0, 4.0]]).unsqueeze(1)
    spikes, state = dormant_lif(current, beta=0.5, dormancy_threshold=-0.5, backend=backend)
    assert spikes[:, 0].tolist() == [[0.0, 0.0, 0.0], [0.0, 1.0, 1.0]]
    assert state.awake.tolist() == [[0.0, 1.0, 1.0]]


@pytest.mark.parametrize("backend", BACKENDS)
def test_who_sleeps_wakes_at_rest(backend):
    current = torch.tensor([-8.0, 9.0, 1.5, 0.75]).view(4, 1, 1)
    wake = torch.tensor([False, False, True, False]).view(4, 1)
    spikes, state = dormant_lif(current, beta=0.5, wake=wake, backend=backend)
    # Asleep at 1, though the membrane goes on; awake at 2 with membrane 0 and not with 9 - 4 = 5.
    assert spikes.flatten().tolist() == [0.0, 0.0, 1.0, 0.0]
    assert state.membrane.item() == 0.75 and state.awake.item() == 1.0


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("mode", ["latch", "window", "wake"])
def test_chunks_equal_the_whole_bit_for_bit(mode, backend):
    settings = {"latch": {}, "window": {"window": 6}, "wake": {"wake_above": 0.5}}[mode]
    neuron, current = snn.DormantLIF(beta=0.75, mode=mode, **settings), torch.randn(20, 3, 4)
    drive = torch.rand(20, 3) if neuron.listens else None
    with snn.use_backend(dormant_lif=backend):
        whole, last = neuron(current, drive=drive)
        state, parts, first = None, [], 0
        for chunk in current.split([1, 6, 0, 13]):
            here = None if drive is None else drive[first : first + len(chunk)]
            spikes, state = neuron(chunk, state, here)
            parts.append(spikes)
            first += len(chunk)
    assert torch.equal(torch.cat(parts), whole)
    assert torch.equal(state.membrane, last.membrane) and torch.equal(state.awake, last.awake)


@pytest.mark.parametrize("mode", ["latch", "window", "wake"])
def test_who_is_awake_next_is_known_before_the_step(mode):
    settings = {"latch": {}, "window": {"window": 5}, "wake": {"wake_above": 0.5}}[mode]
    neuron, current = snn.DormantLIF(beta=0.75, mode=mode, **settings), torch.randn(20, 3, 4)
    drive = torch.rand(20, 3) if neuron.listens else None
    trace = neuron.awake_trace(current, drive=drive)
    assert not trace.all()
    _, state = neuron(current[:0], drive=None if drive is None else drive[:0])
    for t in range(20):
        assert torch.equal(neuron.awake(state), trace[t])
        _, state = neuron(current[t : t + 1], state, None if drive is None else drive[t : t + 1])


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("layout", [(0, 1, 2), (2, 0, 1), (1, 0, 2), (1, 2, 0)], ids=str)
def test_memory_layout_of_the_input_does_not_matter(layout, backend):
    plain, wake = torch.randn(9, 4, 6), wake_marks(9, 4)
    inverse = tuple(int(k) for k in np.argsort(layout))
    strided = plain.permute(layout).contiguous().permute(inverse).requires_grad_()
    plain.requires_grad_()
    for current in (plain, strided):
        spikes, _ = dormant_lif(current, beta=0.5, wake=wake, backend=backend)
        (spikes * torch.arange(6)).sum().backward()
    want, _ = dormant_lif(plain, beta=0.5, wake=wake, backend="reference")
    got, _ = dormant_lif(strided, beta=0.5, wake=wake, backend=backend)
    assert torch.equal(got, want)
    torch.testing.assert_close(strided.grad, plain.grad, rtol=0, atol=0)


@pytest.mark.parametrize("backend", BACKENDS)
def test_images_have_any_number_of_axes(backend):
    current, wake = torch.randn(6, 2, 3, 4, 5), wake_marks(6, 2)
    images, state = dormant_lif(current, beta=0.5, wake=wake, backend=backend)
    flat, _ = dormant_lif(current.flatten(2), beta=0.5, wake=wake, backend=backend)
    assert torch.equal(images.flatten(2), flat) and state.awake.shape == (2, 3, 4, 5)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16], ids=str)
def test_dtype_out_is_dtype_in_and_half_types_keep_a_float32_state(dtype, backend):
    current = torch.randn(5, 2, 3).to(dtype).requires_grad_()
    spikes, state = dormant_lif(current, beta=0.9, backend=backend)
    spikes.sum().backward()
    assert spikes.dtype == dtype == current.grad.dtype
    assert state.membrane.dtype == state.awake.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("size", [(0, 2, 3), (4, 0, 3), (4, 2, 0)], ids=str)
def test_empty_sizes(size, backend):
    current = torch.zeros(size, requires_grad=True)
    spikes, state = dormant_lif(current, beta=0.5, backend=backend)
    (spikes.sum() + state.membrane.sum()).backward()
    assert spikes.shape == size and state.awake.shape == size[1:]


def test_one_beta_and_threshold_for_each_neuron():
    current = torch.randn(12, 2, 3) * 2
    beta, threshold = torch.tensor([0.0, 0.5, 0.9]), torch.tensor([0.5, 1.0, 1.5])
    spikes, _ = dormant_lif(current, beta=beta, threshold=threshold)
    for n in range(3):
        alone, _ = dormant_lif(current[..., n : n + 1], beta=float(beta[n]), threshold=float(threshold[n]))
        assert torch.equal(alone[..., 0], spikes[..., n])


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"dormancy_threshold": 0.0}, ValueError, "below 0.*found 0.0"),
        ({"dormancy_threshold": 0.1}, ValueError, "below 0"),
        ({"dormancy_threshold": float("nan")}, ValueError, "below 0"),
        ({"dormancy_threshold": torch.tensor(-1.0)}, ValueError, "below 0"),
        ({"beta": 1.5}, ValueError, r"0\.\.1"),
        ({"beta": torch.ones(4)}, ValueError, "one for each neuron"),
        ({"reset_mechanism": "later"}, ValueError, "zero, subtract, none"),
        ({"dormancy_grad": 3}, TypeError, "dormancy_grad must be callable"),
        ({"state": torch.zeros(2, 3)}, TypeError, "DormantState"),
        ({"state": DormantState(torch.zeros(2, 3), torch.zeros(3, 2))}, ValueError, "awake"),
        ({"wake": torch.ones(4, 3, dtype=torch.bool)}, ValueError, r"wake must be bool \(T, B\) = \(4, 2\)"),
        ({"wake": torch.ones(4, 2)}, ValueError, "wake must be bool"),
    ],
)
def test_bad_arguments_are_named(options, error, says):
    with pytest.raises(error, match=says):
        dormant_lif(torch.zeros(4, 2, 3), **{"beta": 0.5, **options})


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_membrane_that_is_not_a_number_is_refused(backend):
    current = torch.zeros(5, 2, 3)
    current[2, 1, 0] = float("nan")
    with pytest.raises(ValueError, match="1 of 6 membranes are not numbers"):
        dormant_lif(current, beta=0.5, backend=backend)
    # A window would wake the neuron at rest and hide it.
    with pytest.raises(ValueError, match="not numbers"):
        dormant_lif(current, beta=0.5, wake=torch.ones(5, 2, dtype=torch.bool), backend=backend)


class TestModule:
    def test_hands_everything_on(self):
        current = torch.randn(6, 2, 3)
        options = {
            "beta": 0.7, "threshold": 0.8, "dormancy_threshold": -0.3, "spike_grad": snn.Triangle(),
            "dormancy_grad": snn.ArcTan(), "reset_mechanism": "subtract",
        }  # fmt: skip
        a, b = current.clone().requires_grad_(), current.clone().requires_grad_()
        ours, state = snn.DormantLIF(**options)(a)
        want, last = dormant_lif(b, **options)
        ours.sum().backward()
        want.sum().backward()
        assert torch.equal(ours, want) and torch.equal(state.awake, last.awake) and torch.equal(a.grad, b.grad)

    def test_defaults_are_the_authors(self):
        neuron = snn.DormantLIF(beta=0.5)
        assert neuron.dormancy_threshold == -0.05 and neuron.mode == "latch" and not neuron.detach_gate
        assert neuron.spike_grad == neuron.dormancy_grad == snn.Sigmoid(4.0) and neuron.reset_mechanism == "zero"

    def test_pickles_copies_and_converts(self):
        neuron = snn.DormantLIF(beta=torch.tensor([0.5, 0.25]), mode="window", window=3)
        for twin in (pickle.loads(pickle.dumps(neuron)), copy.deepcopy(neuron)):
            assert torch.equal(twin.beta, neuron.beta) and twin.waking.window == 3
        assert neuron.double()(torch.zeros(2, 1, 2, dtype=torch.float64))[0].dtype == torch.float64

    def test_latch_never_wakes_and_a_window_does(self):
        current = torch.full((9, 1, 1), 3.0)
        current[1] = -30.0
        latch, _ = snn.DormantLIF(beta=0.5)(current)
        window, _ = snn.DormantLIF(beta=0.5, mode="window", window=4)(current)
        assert latch.flatten().tolist() == [1.0] + [0.0] * 8
        assert window.flatten().tolist() == [1.0] + [0.0] * 3 + [1.0] * 5

    def test_a_drive_of_the_step_before_wakes(self):
        current = torch.full((5, 1, 1), 3.0)
        current[1] = -30.0
        drive = torch.tensor([0.9, 0.1, 0.5, 0.6, 0.1]).view(5, 1)
        neuron = snn.DormantLIF(beta=0.5, mode="wake", wake_above=0.5)
        assert neuron(current, drive=drive)[0].flatten().tolist() == [1.0, 0.0, 0.0, 0.0, 1.0]
        with pytest.raises(ValueError, match="needs drive"):
            neuron(current)

    @pytest.mark.parametrize(
        ("options", "says"),
        [
            ({"beta": 2.0}, r"0\.\.1"),
            ({"dormancy_threshold": 0.0}, "below 0"),
            ({"mode": "nap"}, "mode must be one of latch, window, wake"),
            ({"mode": "window"}, "needs window"),
            ({"mode": "window", "window": 0}, "at least 1"),
            ({"mode": "wake", "wake_above": 1.0}, "below 1"),
            ({"window": 4}, "another mode"),
        ],
    )
    def test_finds_a_bad_value_when_it_is_made(self, options, says):
        with pytest.raises(ValueError, match=says):
            snn.DormantLIF(**{"beta": 0.5, **options})
