import functools

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from snn import ConvSNN, DormantLIF, SpikeRecorder
from snn.conv import SPATIAL_READOUTS
from tests.oracles.lif import lif as lif_oracle

dormant = functools.partial(DormantLIF, beta=0.5)
every = pytest.mark.parametrize("readout", SPATIAL_READOUTS)


def make(**options):
    torch.manual_seed(0)
    net = ConvSNN(1, 5, **{"widths": (6, 8, 8), **options})
    for module in net.modules():  # statistics that have settled: with those from nowhere the neurons may be silent
        if isinstance(module, nn.BatchNorm2d):
            module.momentum = 0.5
    with torch.no_grad():
        for _ in range(5):
            net(torch.randn(16, 1, *net.size))
    return net


@every
@pytest.mark.parametrize("neuron", [None, dormant, functools.partial(dormant, mode="wake", wake_above=0.1)])
def test_chunks_equal_the_whole_and_static_images_are_repeated(readout, neuron):
    net = make(readout=readout, neuron=neuron, steps=6).eval()
    image = torch.randn(3, 1, 8, 8)
    whole, last = net(image)
    state, parts = None, []
    for steps in (1, 3, 2):
        out, state = net(image, state, steps)
        parts.append(out)
    torch.testing.assert_close(torch.cat(parts), whole, rtol=0, atol=1e-5)
    torch.testing.assert_close(state, last, rtol=0, atol=1e-5)
    frames, _ = net(image.expand(6, -1, -1, -1, -1))
    torch.testing.assert_close(frames, whole, rtol=0, atol=1e-5)


@every
def test_equals_a_network_put_together_from_the_oracle(readout):
    net = make(readout=readout).eval().double()
    x = torch.randn(4, 2, 1, 8, 8, dtype=torch.float64)
    spikes = x.numpy()
    for layer in net.layers:
        conv, norm = layer.conv.conv, layer.conv.norm
        y = F.conv2d(torch.from_numpy(spikes).flatten(0, 1), conv.weight, None, conv.stride, conv.padding)
        y = F.batch_norm(y, norm.running_mean, norm.running_var, norm.weight, norm.bias, eps=norm.eps)
        current = y.detach().numpy().reshape(4, 2, -1)
        spikes = lif_oracle(current, 0.5)[0].reshape(4, 2, *y.shape[1:])
    weight, bias = (parameter.detach().numpy() for parameter in net.readout.linear.parameters())
    features = spikes.reshape(4, 2, -1) if readout == "flatten" else spikes.mean((3, 4))
    assert spikes.sum() > 0
    np.testing.assert_allclose(net(x)[0].detach().numpy(), features @ weight.T + bias, atol=1e-9)


@every
@pytest.mark.parametrize("neuron", [None, dormant])
def test_gradients_reach_every_parameter(readout, neuron):
    net = make(readout=readout, neuron=neuron)
    logits, _ = net(torch.randn(16, 1, 8, 8))
    F.cross_entropy(logits.mean(0), torch.arange(16) % 5).backward()
    for name, parameter in net.named_parameters():
        assert parameter.grad is not None and parameter.grad.abs().sum() > 0, name


def test_every_layer_fires_at_the_start_and_has_a_neuron_for_each_output():
    net, shapes = ConvSNN(), {}
    for index, layer in enumerate(net.layers):
        layer.conv.conv.register_forward_hook(
            lambda module, args, output, index=index: shapes.update({f"layers.{index}.neuron": output.shape[1:]})
        )
    with SpikeRecorder(net) as recorder:
        net(torch.randn(32, 1, 8, 8))
    assert recorder.spikes["layers.2.neuron"].shape[2:] == (64, 2, 2)
    for name, spikes in recorder.spikes.items():
        assert 0.04 < spikes.mean() < 0.3, (name, spikes.mean())
        assert spikes.shape[2:] == shapes[name]


@pytest.mark.parametrize(("size", "strides"), [((7, 5), (2, 2)), ((9, 9), (1, 3)), ((1, 1), (2, 2))])
def test_odd_sizes_fit(size, strides):
    net = ConvSNN(2, 3, size=size, widths=(4, 4), strides=strides)
    assert net(torch.randn(5, 3, 2, *size))[0].shape == (5, 3, 3)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"readout": "max"}, "readout must be one of mean, flatten; found 'max'"),
        ({"strides": (1, 2)}, r"found \(6, 8, 8\) and \(1, 2\)"),
        ({"widths": (1, 0, 1)}, "1 or more for each layer"),
        ({"steps": 0}, "steps must be 1 or more; found 0"),
    ],
)
def test_bad_arguments_are_named(options, says):
    with pytest.raises(ValueError, match=says):
        make(**options)


def test_bad_input_is_named():
    net = make()
    with pytest.raises(ValueError, match=r"\(B, 1, H, W\).*found \(3, 2, 8, 8\)"):
        net(torch.zeros(3, 2, 8, 8))
    with pytest.raises(ValueError, match=r"images of \(8, 8\); found \(7, 8\)"):
        net(torch.zeros(3, 1, 7, 8))
    with pytest.raises(ValueError, match="state has 2 layers, the network 3"):
        net(torch.zeros(3, 1, 8, 8), (None, None))
