"""One bin at a time equals the whole sequence."""

import pytest
import torch

import snn
from snn.functional import lif
from snn.streaming import StreamingLayer, StreamingSNN

pytestmark = pytest.mark.slow  # compiles
modes = pytest.mark.parametrize("mode", ["auto", "scatter", "gather"])


def make_dyadic(net):
    """Weights as multiples of 1/64, so that every sum is exact in any order."""
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.copy_((parameter * 64).round() / 64)
    return net


@modes
@pytest.mark.parametrize("size", [(1, 1, 1), (9, 7, 5), (16, 40, 63), (3, 4, 0), (30, 300, 4)], ids=str)
@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("kind", ["spikes", "counts", "real", "silence", "ones"])
def test_a_layer_is_the_whole_sequence_exactly_on_dyadic_weights(dyadic, mode, size, batch, kind):
    inputs, outputs, longest = size
    layer = make_dyadic(snn.FixedDelayLinear(inputs, outputs, max_delay=longest, min_delay=min(1, longest)))
    x = {
        "spikes": (torch.rand(90, batch, inputs) < 0.1).float(),
        "counts": torch.randint(0, 4, (90, batch, inputs)).float(),
        "real": dyadic(90, batch, inputs),
        "silence": torch.zeros(90, batch, inputs),
        "ones": torch.ones(90, batch, inputs),
    }[kind]
    stream = StreamingLayer(layer, mode)
    state = stream.start(batch)
    got = torch.stack([stream.step(x_t, state) for x_t in x])
    want, last = layer(x)
    assert torch.equal(got, want)
    assert torch.equal(stream.history(state), last)


@modes
@pytest.mark.parametrize("shortcut", ["membrane", "current"])
@pytest.mark.parametrize("reset", ["zero", "subtract", "none"])
@pytest.mark.parametrize("readout", [None, "linear", "leaky"])
def test_a_network_is_the_whole_sequence_exactly_on_dyadic_weights(dyadic, mode, shortcut, reset, readout):
    net = snn.ResidualSNN(
        6, 20, 2, max_delay=9, shortcut=shortcut, norm=None, reset_mechanism=reset, readout=readout,
        out_features=None if readout is None else 4,
    ).eval()  # fmt: skip
    with torch.no_grad():
        make_dyadic(net)
        for block in net.blocks:
            block.layer.linear.weight.mul_(2)
    x = dyadic(50, 2, 6) * 2
    want, _ = net(x)
    stream = StreamingSNN(net, mode)
    state = stream.start(2)
    got = torch.stack([stream.step(x_t, state) for x_t in x])
    if readout is None:
        assert torch.equal(got, want) and 0 < got.mean() < 1
    torch.testing.assert_close(got, want, rtol=0, atol=1e-5)


@modes
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_a_trained_norm_is_folded(mode, dtype):
    net = snn.ResidualSNN(6, 20, 2, max_delay=5, readout="linear", out_features=4).to(dtype)
    for _ in range(3):
        net(torch.randn(40, 4, 6, dtype=dtype))
    net.eval()
    x = torch.randn(60, 1, 6, dtype=dtype)
    want, _ = net(x)
    stream = StreamingSNN(net, mode)
    state = stream.start()
    got = torch.stack([stream.step(x_t, state) for x_t in x])
    torch.testing.assert_close(got, want, rtol=0, atol=1e-5)
    assert all(row["mode"] == ("scatter" if mode == "auto" else mode) for row in stream.activity(state)[1:])


@modes
@pytest.mark.parametrize("shortcut", ["membrane", "current"])
def test_whole_sequences_and_single_bins_may_take_turns(dyadic, mode, shortcut):
    net = make_dyadic(snn.ResidualSNN(5, 12, 2, max_delay=7, shortcut=shortcut, norm=None)).eval()
    x = dyadic(40, 2, 5) * 2
    want, end = net(x)
    stream = StreamingSNN(net, mode)
    head, state = net(x[:13])
    single = stream.start(state=state)
    middle = torch.stack([stream.step(x_t, single) for x_t in x[13:30]])
    tail, last = net(x[30:], stream.residual_state(single))
    assert torch.equal(torch.cat([head, middle, tail]), want)
    for mine, its in zip(last.blocks, end.blocks, strict=True):
        assert torch.equal(mine.neuron, its.neuron) and torch.equal(mine.delayed, its.delayed)


def test_the_way_follows_activity_and_changing_it_changes_nothing(dyadic):
    layer = make_dyadic(snn.FixedDelayLinear(30, 20, max_delay=12))
    rates = torch.cat([torch.full((80,), 0.02), torch.full((80,), 1.0), torch.full((120,), 0.02)])
    x = (torch.rand(280, 1, 30) < rates[:, None, None]).float()
    stream = StreamingLayer(layer)
    state = stream.start(1)
    ways, got = [], []
    for x_t in x:
        got.append(stream.step(x_t, state))
        ways.append(state.mode)
    assert torch.equal(torch.stack(got), layer(x)[0])
    assert ways[79] == "scatter" and ways[159] == "gather" and ways[-1] == "scatter"


DORMANT = {
    "latch": {"dormancy_threshold": -0.75},
    "window": {"dormancy_threshold": -0.5, "mode": "window", "window": 17},
    "wake": {"dormancy_threshold": -0.5, "mode": "wake", "wake_above": 0.2},
}


def dormant_net(settings, shortcut="membrane", neuron=snn.DormantLIF, **options):
    net = snn.ResidualSNN(
        6, 30, 3, max_delay=5, shortcut=shortcut, norm=None, neuron=lambda: neuron(beta=0.5, **settings), **options
    ).eval()
    with torch.no_grad():
        make_dyadic(net)
        for block in net.blocks:
            block.layer.linear.weight.mul_(2)
    return net


class Slow(snn.DormantLIF):
    """Another class, which runs as any module does."""


@modes
@pytest.mark.parametrize("shortcut", ["membrane", "current"])
@pytest.mark.parametrize("settings", DORMANT.values(), ids=DORMANT)
@pytest.mark.parametrize("neuron", [snn.DormantLIF, Slow])
@pytest.mark.parametrize("skip", [True, False])
def test_dormant_neurons_stream_as_the_whole_sequence(dyadic, mode, shortcut, settings, neuron, skip):
    net = dormant_net(settings, shortcut, neuron)
    x = dyadic(120, 2, 6) * 2 * (torch.rand(120, 2, 6) < 0.5)
    want, end = net(x)
    stream = StreamingSNN(net, mode, skip)
    state = stream.start(2)
    got = torch.stack([stream.step(x_t, state) for x_t in x])
    assert torch.equal(got, want) and 0 < got.mean() < 1
    assert torch.equal(stream.residual_state(state).last.awake, end.last.awake)
    awake = [row["awake"] for row in stream.activity(state)]
    assert (min(awake) < 0.95) == skip


@pytest.mark.parametrize("settings", DORMANT.values(), ids=DORMANT)
def test_dormant_networks_take_turns_between_whole_sequences_and_bins(dyadic, settings):
    net = dormant_net(settings)
    x = dyadic(60, 2, 6) * 2
    want, _ = net(x)
    stream = StreamingSNN(net)
    head, state = net(x[:13])
    single = stream.start(state=state)
    middle = torch.stack([stream.step(x_t, single) for x_t in x[13:40]])
    tail, _ = net(x[40:], stream.residual_state(single))
    assert torch.equal(torch.cat([head, middle, tail]), want)


def test_the_sums_of_who_wakes_are_made_anew(dyadic):
    layer = make_dyadic(snn.FixedDelayLinear(40, 300, max_delay=12, min_delay=0))
    x = (torch.rand(150, 2, 40) < 0.15).float()
    awake = torch.rand(30, 2, 300).repeat_interleave(5, 0) < 0.4  # asleep and awake for a few bins at a time
    want, _ = layer(x)
    for mode, sleep in (("scatter", 99), ("scatter", 0), ("gather", 0)):
        stream = StreamingLayer(layer, mode)
        state = stream.start(2)
        for t in range(150):
            got = stream.step(x[t], state, None if t % 50 == 49 else awake[t], sleep)
            wanted = torch.ones(2, 300, dtype=torch.bool) if t % 50 == 49 else awake[t]
            assert torch.equal(got[wanted], want[t][wanted])


def test_a_membrane_that_is_not_a_number_is_refused():
    stream = StreamingSNN(dormant_net(DORMANT["latch"]))
    state = stream.start()
    stream.step(torch.full((1, 6), float("nan")), state)  # on its way
    with pytest.raises(ValueError, match="not numbers"):
        stream.step(torch.zeros(1, 6), state)


class Sleepy(snn.SpikingNeuron):
    """Neurons that fall asleep for good once their membrane is very low, and never fire again."""

    def forward(self, current, state=None):
        v, asleep = state if state is not None else (current.new_zeros(current.shape[1:]), None)
        asleep = torch.zeros_like(v, dtype=torch.bool) if asleep is None else asleep
        spikes = []
        for step in current:
            fired, after = lif(step.masked_fill(asleep, 0.0)[None], beta=0.5, state=v)
            v = torch.where(asleep, v, after)
            spikes.append(fired[0].masked_fill(asleep, 0.0))
            asleep = asleep | (v < -0.75)
        return torch.stack(spikes) if spikes else current, (v, asleep)

    def awake(self, state):
        return ~state[1]


@modes
@pytest.mark.parametrize("shortcut", ["membrane", "current"])
def test_sums_that_only_sleeping_neurons_would_read_are_skipped(dyadic, mode, shortcut):
    net = snn.ResidualSNN(6, 30, 3, max_delay=5, shortcut=shortcut, norm=None, neuron=Sleepy).eval()
    make_dyadic(net)
    x = dyadic(120, 2, 6) * 2
    want, end = net(x)
    stream = StreamingSNN(net, mode)
    state = stream.start(2)
    got = torch.stack([stream.step(x_t, state) for x_t in x])
    assert torch.equal(got, want)
    rows = stream.activity(state)
    assert rows[-1]["awake"] < 0.9
    assert end.last[1].any()


def test_bad_options_are_named():
    net = snn.ResidualSNN(3, 4, 1, max_delay=2)
    with pytest.raises(ValueError, match="auto, scatter, gather"):
        StreamingSNN(net, "fast")
    with pytest.raises(ValueError, match=r"float32 or float64; found torch\.bfloat16"):
        StreamingSNN(net.bfloat16())


@pytest.mark.parametrize(
    "x",
    [torch.zeros(2, 1), torch.zeros(1, 3), torch.zeros(3), torch.zeros(()), torch.zeros(1, 2, 3)],
    ids=lambda x: str(tuple(x.shape)),
)
def test_a_bin_of_another_shape_is_refused(x):
    stream = StreamingSNN(snn.ResidualSNN(3, 4, 1, max_delay=2))
    with pytest.raises(ValueError, match=r"\(2, 3\)"):
        stream.step(x, stream.start(2))


def test_other_numbers_and_networks_are_refused():
    stream = StreamingSNN(snn.ResidualSNN(3, 4, 1, max_delay=2))
    with pytest.raises(TypeError, match="float64"):
        stream.step(torch.zeros(1, 3, dtype=torch.float64), stream.start())
    with pytest.raises(ValueError, match="batch"):
        stream.start(0)
    with pytest.raises(TypeError, match="Linear"):
        StreamingSNN(torch.nn.Linear(2, 2))
