import copy
import functools

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

import snn
from snn import DormantLIF, MSResNet, SpikeRecorder
from snn.ms_resnet import STEMS
from tests.oracles.lif import lif as lif_oracle

SMALL = {"widths": (4, 6), "blocks": (2, 1)}
dormant = functools.partial(DormantLIF, beta=0.5)
every_stem = pytest.mark.parametrize("stem", STEMS)


def make(size=16, **options):
    torch.manual_seed(0)
    net = MSResNet(2, 5, **{**SMALL, **options})
    for module in net.modules():  # statistics that have settled: with those from nowhere the neurons may be silent
        if isinstance(module, nn.BatchNorm2d):
            module.momentum = 0.5
    with torch.no_grad():
        for _ in range(5):
            net(torch.randn(4, 8, 2, size, size))
    return net


@every_stem
@pytest.mark.parametrize("neuron", [None, dormant, functools.partial(dormant, mode="wake", wake_above=0.1)])
def test_chunks_equal_the_whole(stem, neuron):
    net = make(stem=stem, neuron=neuron).eval()
    x = torch.randn(9, 3, 2, 16, 16)
    whole, last = net(x)
    state, parts = None, []
    for chunk in x.split([1, 1, 3, 4]):
        out, state = net(chunk, state)
        parts.append(out)
    torch.testing.assert_close(torch.cat(parts), whole, rtol=0, atol=1e-5)
    torch.testing.assert_close(state, last, rtol=0, atol=1e-5)


@every_stem
def test_a_static_image_is_an_image_repeated(stem):
    net = make(stem=stem, steps=3).eval()
    image = torch.randn(2, 2, 16, 16)
    whole, last = net(image)
    repeated, _ = net(image.expand(3, -1, -1, -1, -1))
    torch.testing.assert_close(whole, repeated, rtol=0, atol=1e-5)
    first, state = net(image, steps=1)
    rest, state = net(image, state, steps=2)
    torch.testing.assert_close(torch.cat([first, rest]), whole, rtol=0, atol=1e-5)
    torch.testing.assert_close(state, last, rtol=0, atol=1e-5)


def test_company_changes_nothing_in_evaluation():
    net = make().eval()
    x = torch.randn(4, 3, 2, 16, 16)
    together, _ = net(x)
    for b in range(3):
        torch.testing.assert_close(net(x[:, b : b + 1])[0], together[:, b : b + 1], rtol=0, atol=1e-5)


def test_equals_a_network_put_together_from_the_oracle():
    net = make(size=8).eval().double()
    x = torch.randn(4, 2, 2, 8, 8, dtype=torch.float64)

    def conv(module, inputs):
        weight, norm = module.conv.weight, module.norm
        y = F.conv2d(torch.from_numpy(inputs).flatten(0, 1), weight, None, module.conv.stride, module.conv.padding)
        scale = norm.weight / torch.sqrt(norm.running_var + norm.eps)
        y = (y - norm.running_mean[:, None, None]) * scale[:, None, None] + norm.bias[:, None, None]
        return y.unflatten(0, inputs.shape[:2]).detach().numpy()

    def fire(current):
        spikes, _, _ = lif_oracle(current.reshape(*current.shape[:2], -1), 0.5)
        return spikes.reshape(current.shape)

    stream = conv(net.stem, x.numpy())
    for index, block in enumerate(net.blocks):
        spikes = fire(stream)
        update = conv(block.conv2, fire(conv(block.conv1, spikes)))
        # Only the first block of the second stage changes the shape.
        assert (block.shortcut is not None) == (index == 2)
        carried = stream if block.shortcut is None else conv(block.shortcut.conv, fire(stream))
        stream = carried + update
    spikes = fire(stream)
    want = spikes.mean((3, 4)) @ net.readout.linear.weight.detach().numpy().T + net.readout.linear.bias.detach().numpy()
    assert spikes.sum() > 0
    np.testing.assert_allclose(net(x)[0].detach().numpy(), want, atol=1e-9)


@every_stem
@pytest.mark.parametrize("neuron", [None, dormant])
def test_gradients_reach_every_parameter(stem, neuron):
    net = make(stem=stem, neuron=neuron)
    logits, _ = net(torch.randn(4, 8, 2, 16, 16))
    F.cross_entropy(logits.mean(0), torch.arange(8) % 5).backward()
    for name, parameter in net.named_parameters():
        assert parameter.grad is not None and parameter.grad.abs().sum() > 0, name
        assert parameter.grad.isfinite().all(), name


@pytest.mark.parametrize("options", [{"widths": (32, 64, 128), "blocks": (1, 1, 1)}, {"widths": (8, 16, 32, 64)}])
@pytest.mark.parametrize("static", [True, False])
def test_every_layer_fires_at_the_start(options, static):
    net = MSResNet(3, 10, **options)
    x = torch.randn(4, 3, 32, 32) if static else torch.randn(4, 4, 3, 32, 32)
    with SpikeRecorder(net) as recorder, torch.no_grad():
        net(x)
    for name, spikes in recorder.spikes.items():
        assert 0.04 < spikes.mean() < 0.3, (name, spikes.mean())


def test_training_moves_the_loss():
    net = MSResNet(1, 2, widths=(8, 16), blocks=(1, 1), steps=3)
    x = torch.randn(16, 1, 8, 8)
    labels = (x.mean((1, 2, 3)) > 0).long()
    optimiser, losses = torch.optim.Adam(net.parameters(), lr=0.01), []
    for _ in range(15):
        loss = F.cross_entropy(net(x)[0].mean(0), labels)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert losses[-1] < 0.5 * losses[0]


def test_statistics_run_over_time_and_trials():
    net = MSResNet(2, 5, **SMALL)
    x = torch.randn(5, 3, 2, 8, 8)
    net(x)
    want = net.stem.conv(x.flatten(0, 1))
    torch.testing.assert_close(net.stem.norm.running_mean, 0.1 * want.mean((0, 2, 3)))
    torch.testing.assert_close(net.stem.norm.running_var, 0.9 + 0.1 * want.var((0, 2, 3)))


def test_the_default_is_the_network_of_eighteen_layers():
    net = MSResNet()
    convs = [module for module in net.modules() if isinstance(module, nn.Conv2d)]
    on_path = [conv for conv in convs if conv.kernel_size != (1, 1)]
    assert len(on_path) + 1 == 18 and len(convs) - len(on_path) == 3
    assert 11.1e6 < sum(parameter.numel() for parameter in net.parameters()) < 11.3e6
    assert sum(isinstance(module, snn.SpikingNeuron) for module in net.modules()) == 16 + 3 + 1


def test_neurons_are_made_one_by_one_and_copies_compute_the_same():
    net = make(neuron=functools.partial(snn.LIF, beta=0.75)).eval()
    neurons = [module for module in net.modules() if isinstance(module, snn.LIF)]
    assert len({id(neuron) for neuron in neurons}) == 8 and all(neuron.beta == 0.75 for neuron in neurons)
    x = torch.randn(2, 2, 8, 8)
    assert torch.equal(copy.deepcopy(net)(x)[0], net(x)[0])


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"stem": "5x5"}, "stem must be one of 3x3, 7x7; found '5x5'"),
        ({"widths": (4,)}, r"one number of 1 or more for each stage; found \(4,\) and \(2, 1\)"),
        ({"blocks": (0, 1)}, "1 or more for each stage"),
        ({"steps": 0}, "steps must be 1 or more; found 0"),
    ],
)
def test_bad_arguments_are_named(options, says):
    with pytest.raises(ValueError, match=says):
        MSResNet(2, 5, **{**SMALL, **options})


def test_bad_input_is_named():
    net = make()
    with pytest.raises(ValueError, match=r"\(B, 2, H, W\).*found \(3, 1, 8, 8\)"):
        net(torch.zeros(3, 1, 8, 8))
    with pytest.raises(ValueError, match="time axis of its own"):
        net(torch.zeros(3, 1, 2, 8, 8), steps=3)
    with pytest.raises(ValueError, match="steps=0"):
        net(torch.zeros(1, 2, 8, 8), steps=0)
    _, state = net(torch.randn(3, 2, 16, 16))
    with pytest.raises(ValueError, match="3 blocks, the network 2"):
        MSResNet(2, 5, widths=(4, 6), blocks=(1, 1))(torch.randn(3, 2, 16, 16), state)
