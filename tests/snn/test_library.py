"""The operators as `torch.library` and the compiler see them."""

import pytest
import torch
from torch.library import opcheck

import snn
from snn.functional import fixed_delay_linear, lif
from snn.kernels.delay import operator as delay_operator
from snn.kernels.delay.plan import plan_of
from snn.kernels.dormant import operator as dormant_operator
from snn.kernels.lif import operator as lif_operator
from snn.kernels.norm import operator as norm_operator

pytestmark = pytest.mark.slow  # compiles


def operands(requires_grad=False):
    x = (torch.rand(7, 2, 5) < 0.4).float().requires_grad_(requires_grad)
    weight, bias, history = (torch.randn(s).requires_grad_(requires_grad) for s in ((4, 5), (4,), (3, 2, 5)))
    delay = torch.randint(0, 4, (4, 5), dtype=torch.uint8)
    return x, weight, delay, bias, history


@pytest.mark.parametrize("path", ["numba", "numba_shifted", "numba_events"])
@pytest.mark.parametrize("layout", [(0, 1, 2), (2, 0, 1)], ids=str)
@pytest.mark.parametrize("bare", [False, True])
def test_fixed_delay_linear(path, layout, bare):
    x, weight, delay, bias, history = operands(requires_grad=True)
    if bare:
        bias = history = None
    x = x.detach().permute(layout).contiguous().permute(torch.argsort(torch.tensor(layout)).tolist()).requires_grad_()
    opcheck(delay_operator.fixed_delay_linear, (x, weight, delay, bias, history, 3, path))
    y = delay_operator.fixed_delay_linear(x, weight, delay, bias, history, 3, path)
    operands_of_grad = [t if t is None else t.detach() for t in (torch.randn_like(y), x, weight, delay, history)]
    for wanted in ((True, True, not bare), (True, False, False), (False, True, False)):
        opcheck(delay_operator.fixed_delay_linear_grad, (*operands_of_grad, 3, path, *wanted))


@pytest.mark.parametrize("first", [False, True], ids=["time first", "channel first"])
@pytest.mark.parametrize("requires_grad", [False, True])
def test_lif(first, requires_grad):
    current = torch.randn(6, 2, 5)
    if first:
        current = current.permute(2, 0, 1).contiguous().permute(1, 2, 0)
    current.requires_grad_(requires_grad)
    state = torch.randn(2, 5, requires_grad=requires_grad)
    constants = (0.5, 1.0, "arctan", 2.0, "zero", "numba")
    opcheck(lif_operator.lif, (current, state, *constants))
    spikes, last = (t.detach() for t in lif_operator.lif(current, state, *constants))
    grads = (torch.randn_like(spikes), torch.randn_like(last))
    opcheck(lif_operator.lif_grad, (*grads, current.detach(), state.detach(), *constants))


@pytest.mark.parametrize("first", [False, True], ids=["time first", "channel first"])
@pytest.mark.parametrize("gate", ["sigmoid", dormant_operator.DETACHED])
@pytest.mark.parametrize("waking", [False, True])
def test_dormant_lif(first, gate, waking):
    current = torch.randn(6, 2, 5)
    if first:
        current = current.permute(2, 0, 1).contiguous().permute(1, 2, 0)
    current.requires_grad_()
    state = torch.randn(2, 5, requires_grad=True), torch.ones(2, 5, requires_grad=True)
    wake = torch.rand(6, 2) < 0.3 if waking else None
    constants = (wake, 0.5, 1.0, -0.1, "arctan", 2.0, gate, 4.0, "zero", "numba")
    opcheck(dormant_operator.dormant_lif, (current, *state, *constants))
    grads = [torch.randn_like(t) for t in dormant_operator.dormant_lif(current, *state, *constants)]
    operands_of_grad = [t.detach() for t in (*grads, current, *state)]
    opcheck(dormant_operator.dormant_lif_grad, (*operands_of_grad, *constants))


@pytest.mark.parametrize("masked", [False, True])
def test_masked_batch_norm(masked):
    x, weight, bias = torch.randn(6, 2, 5, requires_grad=True), torch.rand(5), torch.randn(5)
    mask = torch.rand(6, 2) < 0.7 if masked else None
    opcheck(norm_operator.masked_batch_norm, (x, weight.requires_grad_(), bias.requires_grad_(), mask, 1e-5))
    y, mean, var = (t.detach() for t in norm_operator.masked_batch_norm(x, weight, bias, mask, 1e-5))
    arguments = (torch.randn_like(y), x.detach(), weight.detach(), mean, var, mask, 1e-5)
    opcheck(norm_operator.masked_batch_norm_grad, arguments)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("shortcut", ["membrane", "current"])
@pytest.mark.parametrize("mode", [None, "latch", "window", "wake"])
def test_a_network_compiles_into_one_graph(training, shortcut, mode):
    settings = {"latch": {}, "window": {"window": 4}, "wake": {"wake_above": 0.1}}
    neuron = None if mode is None else (lambda: snn.DormantLIF(beta=0.5, mode=mode, **settings[mode]))
    net = snn.ResidualSNN(
        6, 12, 2, max_delay=4, shortcut=shortcut, readout="linear", out_features=3, neuron=neuron
    ).train(training)
    x, lengths = torch.randn(9, 3, 6), torch.tensor([9, 7, 4])
    torch.compiler.reset()  # one function is compiled a few times only
    results = []
    for run in (net, torch.compile(net, fullgraph=True, backend="aot_eager")):
        net.zero_grad()
        out, _ = run(x, lengths=lengths)
        out.square().sum().backward()
        results.append((out.detach(), [p.grad.clone() for p in net.parameters()]))
    (eager, eager_grads), (compiled, compiled_grads) = results
    torch.testing.assert_close(compiled, eager)
    torch.testing.assert_close(compiled_grads, eager_grads)


def test_a_compiled_function_keeps_its_backend():
    x, weight, delay, _, _ = operands()

    def layer(x):
        return fixed_delay_linear(x, weight, delay, max_delay=3)[0]

    with snn.use_backend("reference"):
        compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
        want = compiled(x)
    torch.testing.assert_close(compiled(x), want, rtol=0, atol=0)


def test_gradients_twice_are_refused_in_words():
    current = torch.randn(4, 1, 2, requires_grad=True)
    spikes, _ = lif(current, beta=0.5, backend="numba")
    (grad,) = torch.autograd.grad(spikes.sum(), current, create_graph=True)
    with pytest.raises(RuntimeError):
        grad.sum().backward()


def test_delays_written_over_are_read_again():
    x, weight, delay, _, _ = operands()
    before, _ = fixed_delay_linear(x, weight, delay, max_delay=3, backend="numba")
    delay.fill_(2)
    after, _ = fixed_delay_linear(x, weight, delay, max_delay=3, backend="numba")
    want, _ = fixed_delay_linear(x, weight, delay, max_delay=3, backend="reference")
    torch.testing.assert_close(after, want)
    assert not torch.allclose(before, after)
    delay.fill_(9)
    with pytest.raises(ValueError, match=r"0\.\.3; found 9\.\.9"):
        fixed_delay_linear(x, weight, delay, max_delay=3, backend="numba")


def test_a_plan_is_let_go_with_its_delays():
    from snn.kernels.delay import plan

    delay = torch.ones(3, 2, dtype=torch.uint8)
    assert plan_of(delay) is plan_of(delay)
    kept = len(plan._plans)
    del delay
    assert len(plan._plans) == kept - 1


@pytest.mark.parametrize("threads", [2, 3])
def test_the_number_of_threads_changes_no_bit(threads):
    x, weight, delay = (torch.rand(40, 3, 70) < 0.2).float(), torch.randn(50, 70), torch.randint(0, 9, (50, 70))
    results = []
    before = torch.get_num_threads()
    try:
        for number in (1, threads):
            torch.set_num_threads(number)
            for backend in ("numba_shifted", "numba_events"):
                a, w = x.clone().requires_grad_(), weight.clone().requires_grad_()
                y, _ = fixed_delay_linear(a, w, delay, max_delay=8, backend=backend)
                y.square().sum().backward()
                results.append((y.detach(), a.grad, w.grad))
    finally:
        torch.set_num_threads(before)
    for one, many in ((results[0], results[2]), (results[1], results[3])):
        assert all(torch.equal(a, b) for a, b in zip(one, many, strict=True))
    assert torch.equal(results[0][0], results[1][0]), "both ways sum in the same order"
