import copy
import functools
import io
import pickle

import pytest
import torch

import snn
from snn import LIF, ResidualSNN, SpikeRecorder
from snn.readout import READOUTS
from snn.residual import NORMS, SHORTCUTS, START_RATE
from tests.oracles.delay import fixed_delay_linear as delay_oracle
from tests.oracles.lif import lif as lif_oracle

VARIANTS = [
    {"shortcut": shortcut, "norm": norm, "readout": readout, "out_features": None if readout is None else 5}
    for shortcut in SHORTCUTS
    for norm in (*NORMS, None)
    for readout in (None, *READOUTS)
]
every = pytest.mark.parametrize("options", VARIANTS, ids=lambda o: f"{o['shortcut']}-{o['norm']}-{o['readout']}")


def make(options=None, **more):
    torch.manual_seed(0)
    net = ResidualSNN(6, 12, 3, **{"max_delay": 4, **(options or {}), **more})
    norms = [module for module in net.modules() if isinstance(module, snn.MaskedBatchNorm)]
    for norm in norms:  # statistics that have settled: with those from nowhere the neurons may be silent
        norm.momentum = 0.5
    if norms:
        for _ in range(5):
            net(torch.randn(30, 4, 6))
    return net


@every
def test_chunks_equal_the_whole(options):
    net = make(options).eval()
    x = torch.randn(19, 3, 6)
    whole, last = net(x)
    state, parts = None, []
    for chunk in x.split([1, 1, 2, 5, 10]):
        out, state = net(chunk, state)
        parts.append(out)
    torch.testing.assert_close(torch.cat(parts), whole, rtol=0, atol=1e-6)
    torch.testing.assert_close(state, last, rtol=0, atol=1e-5)


@every
def test_padding_and_company_change_nothing(options):
    net = make(options).eval()
    x, lengths = torch.randn(25, 4, 6), torch.tensor([25, 11, 18, 3])
    together, _ = net(x, lengths=lengths)
    for b, length in enumerate(lengths.tolist()):
        alone, _ = net(x[:length, b : b + 1])
        torch.testing.assert_close(alone[:, 0], together[:length, b], rtol=0, atol=1e-6)


def test_padding_changes_nothing_in_training_either():
    lengths = torch.tensor([25, 11, 18, 3])
    real = (torch.arange(25)[:, None] < lengths)[..., None]
    x = torch.randn(25, 4, 6)
    outs, grads = [], []
    for padding in (0.0, 50.0):
        net = make(readout="linear", out_features=5)
        out, _ = net(x.masked_fill(~real, padding), lengths=lengths)
        (out * real).square().sum().backward()
        outs.append((out * real).detach())
        grads.append(torch.cat([p.grad.flatten() for p in net.parameters()]))
    torch.testing.assert_close(outs[0], outs[1])
    torch.testing.assert_close(grads[0], grads[1])


@pytest.mark.parametrize("shortcut", SHORTCUTS)
def test_equals_a_network_put_together_from_the_oracles(shortcut):
    net = make(shortcut=shortcut, norm=None, min_delay=2, max_delay=4).double()
    x = torch.randn(15, 2, 6, dtype=torch.float64)

    def layer(module, inputs):
        linear = module.linear
        return delay_oracle(inputs, linear.weight.detach().numpy(), linear.delay.numpy(), linear.bias.detach().numpy())

    stream = layer(net.first, x.numpy())
    for block in net.blocks:
        spikes, _, _ = lif_oracle(stream, 0.5)
        update = layer(block.layer, spikes)
        if shortcut == "membrane":
            stream = stream + update
        else:
            stream = update
            stream[2:] += block.shortcut.gain.detach().numpy() * spikes[:-2]
    want, _, _ = lif_oracle(stream, 0.5)
    assert want.sum() > 0
    assert (net(x)[0].detach().numpy() == want).all()


@every
def test_gradients_reach_every_parameter(options):
    net = make(options)
    out, _ = net(torch.randn(40, 4, 6))
    (out * torch.randn_like(out)).sum().backward()
    for name, parameter in net.named_parameters():
        assert parameter.grad is not None and parameter.grad.abs().sum() > 0, name
        assert parameter.grad.isfinite().all(), name


@pytest.mark.parametrize("beta", [0.5, 0.9])
@pytest.mark.parametrize("threshold", [1.0, 0.25])
@pytest.mark.parametrize("norm", [*NORMS, None])
@pytest.mark.parametrize("shortcut", SHORTCUTS)
def test_every_layer_fires_at_the_start(beta, threshold, norm, shortcut):
    torch.manual_seed(0)
    net = ResidualSNN(64, 128, 4, max_delay=8, beta=beta, threshold=threshold, norm=norm, shortcut=shortcut)
    with SpikeRecorder(net) as recorder:
        net(torch.randn(100, 4, 64))
    expected = START_RATE * (1 - beta**2)
    for name, rate in recorder.rates().items():
        assert 0.5 * expected < rate.mean() < 0.2, (name, rate.mean())


def test_parameters_do_not_depend_on_the_delays_and_layers_draw_apart():
    nets = [ResidualSNN(6, 12, 3, max_delay=d, min_delay=min(d, 1)) for d in (0, 1, 16)]
    assert len({sum(p.numel() for p in net.parameters()) for net in nets}) == 1
    delays = [block.layer.linear.delay for block in nets[2].blocks]
    assert not torch.equal(delays[0], delays[1])
    other = ResidualSNN(6, 12, 3, max_delay=16, seed=1)
    assert not any(torch.equal(a, b.layer.linear.delay) for a in delays for b in other.blocks)


def test_a_budget_of_half_a_million_is_the_papers_width():
    net = ResidualSNN(256, 320, 4, max_delay=16)
    weights = sum(module.weight.numel() for module in net.modules() if isinstance(module, snn.FixedDelayLinear))
    assert weights == 256 * 320 + 4 * 320**2 == 491_520


def test_dropout_acts_in_training_only_and_the_final_spikes_are_whole():
    net = make(dropout=0.5)
    x = torch.randn(30, 4, 6)
    torch.manual_seed(0)
    a, _ = net(x)
    b, _ = net(x)
    assert not torch.equal(a, b) and set(a.unique().tolist()) <= {0.0, 1.0}
    net.eval()
    assert torch.equal(net(x)[0], net(x)[0])


@every
def test_pickles_copies_and_loads(options):
    net = make(options).eval()
    x = torch.randn(9, 2, 6)
    want, state = net(x)
    twins = [pickle.loads(pickle.dumps(net)), copy.deepcopy(net)]
    file = io.BytesIO()
    torch.save({"model": net.state_dict(), "state": tuple(state[0:1])}, file)
    file.seek(0)
    fresh = ResidualSNN(6, 12, 3, max_delay=4, seed=9, **options).eval()
    fresh.load_state_dict(torch.load(file, weights_only=True)["model"])
    for twin in (*twins, fresh):
        assert torch.equal(twin(x)[0], want)


def test_double_no_grad_and_autocast():
    net = make(readout="leaky", out_features=5)
    x = torch.randn(9, 2, 6)
    with torch.no_grad():
        assert not net(x)[0].requires_grad
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out, _ = net(x)
    out.float().sum().backward()
    assert all(p.grad is None or p.grad.dtype == torch.float32 for p in net.parameters())
    out, _ = net.double()(x.double())
    assert out.dtype == torch.float64


def test_another_neuron_takes_the_place_of_lif():
    net = make(neuron=functools.partial(LIF, beta=0.9, reset_mechanism="subtract"))
    neurons = [module for module in net.modules() if isinstance(module, LIF)]
    assert len(neurons) == 4 and all(neuron.beta == 0.9 for neuron in neurons)
    assert len({id(neuron) for neuron in neurons}) == 4


def test_depth_zero_is_one_layer():
    net = ResidualSNN(6, 12, 0, max_delay=2)
    out, state = net(torch.randn(5, 2, 6))
    assert out.shape == (5, 2, 12) and state.blocks == ()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"shortcut": "long"}, "'membrane', 'current'"),
        ({"norm": "layer"}, "'batch' or None"),
        ({"readout": "mean"}, "'linear', 'leaky' or None"),
        ({"readout": "linear"}, "go together"),
        ({"out_features": 3}, "go together"),
        ({"max_delay": 64}, "cap of 63"),
        ({"beta": 1.5}, r"0\.\.1"),
    ],
)
def test_bad_arguments_are_named(options, says):
    with pytest.raises(ValueError, match=says):
        ResidualSNN(4, 4, 1, **{"max_delay": 2, **options})


def test_state_of_another_depth_is_refused():
    _, state = make()(torch.randn(5, 2, 6))
    with pytest.raises(ValueError, match="3 blocks"):
        ResidualSNN(6, 12, 2, max_delay=4)(torch.randn(5, 2, 6), state)


class TestRecorder:
    def test_names_every_neuron_and_leaves_no_hook(self):
        net = make()
        with SpikeRecorder(net) as recorder:
            out, _ = net(torch.randn(9, 2, 6))
        assert list(recorder.spikes) == ["blocks.0.neuron", "blocks.1.neuron", "blocks.2.neuron", "neuron"]
        assert torch.equal(recorder.spikes["neuron"], out)
        assert all(not module._forward_hooks for module in net.modules())

    def test_rates_leave_padding_out(self):
        net, lengths = make(), torch.tensor([9, 4])
        with SpikeRecorder(net) as recorder:
            out, _ = net(torch.randn(9, 2, 6), lengths=lengths)
        want = torch.cat([out[:, 0], out[:4, 1]]).mean(0)
        torch.testing.assert_close(recorder.rates(lengths)["neuron"], want)
        torch.testing.assert_close(recorder.rates()["neuron"], out.mean((0, 1)))

    def test_mean_rate_can_be_trained_down(self):
        net = make()
        x, optimiser, rates = torch.randn(40, 4, 6), torch.optim.Adam(net.parameters(), lr=0.02), []
        for _ in range(20):
            with SpikeRecorder(net) as recorder:
                net(x)
            rate = recorder.mean_rate()
            optimiser.zero_grad()
            rate.backward()
            optimiser.step()
            rates.append(rate.item())
        assert rates[-1] < 0.5 * rates[0]

    def test_says_when_there_is_nothing(self):
        with pytest.raises(ValueError, match="no spiking neuron"):
            SpikeRecorder(torch.nn.Linear(2, 2))
        with pytest.raises(ValueError, match="nothing recorded"):
            SpikeRecorder(make()).mean_rate()


class TestFold:
    @every
    def test_computes_the_same(self, options):
        net = make(options).double()
        with torch.no_grad():
            for parameter in net.parameters():
                parameter.add_(0.1 * torch.randn_like(parameter))
        folded = snn.fold_batch_norm(net)
        net.eval()
        x = torch.randn(30, 3, 6, dtype=torch.float64)
        (want, _), (out, _) = net(x), folded(x)
        assert want.abs().sum() > 0 and not folded.training
        torch.testing.assert_close(out, want, rtol=0, atol=1e-6)
        stream, _ = net.first(x)
        torch.testing.assert_close(folded.first(x)[0], stream, rtol=0, atol=1e-6)

    def test_leaves_the_model_alone_and_removes_every_norm(self):
        net = make()
        before = copy.deepcopy(net.state_dict())
        folded = snn.fold_batch_norm(net)
        assert all(torch.equal(before[name], value) for name, value in net.state_dict().items())
        assert net.training and not any(isinstance(m, snn.MaskedBatchNorm) for m in folded.modules())

    def test_refuses_a_norm_it_cannot_fold(self):
        model = torch.nn.Sequential(torch.nn.Linear(2, 3), snn.MaskedBatchNorm(3))
        with pytest.raises(ValueError, match="no delayed layer directly before 1"):
            snn.fold_batch_norm(model)


def test_leaky_readout_leaks():
    readout = snn.LeakyReadout(3, 2, beta=0.75)
    spikes = torch.rand(6, 2, 3)
    out, state = readout(spikes)
    drive = readout.linear(spikes)
    membrane = torch.zeros(2, 2)
    for t in range(6):
        membrane = 0.75 * membrane + 0.25 * drive[t]
        torch.testing.assert_close(out[t], membrane)
    assert torch.equal(out[-1], state)
