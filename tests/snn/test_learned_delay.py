"""Delays that are trained, and delays that are shared: the ceiling and the controls."""

import pytest
import torch

import snn
from snn.delay import SHARING


def narrow(layer):
    """Bells so narrow that a weight lies at its delay alone."""
    layer.width.fill_(1e-3)
    return layer


@pytest.mark.parametrize(("low", "high"), [(1, 9), (0, 4), (3, 3)])
@pytest.mark.parametrize("bias", [True, False])
def test_with_narrow_bells_it_is_the_fixed_layer(low, high, bias):
    layer = narrow(snn.LearnedDelayLinear(6, 5, max_delay=high, min_delay=low, bias=bias, seed=3))
    fixed = snn.FixedDelayLinear(6, 5, max_delay=high, min_delay=low, bias=bias, seed=3)
    fixed.load_state_dict({k: v for k, v in layer.state_dict().items() if k not in ("position", "width")})
    assert torch.equal(layer.delay, fixed.delay)
    x, history = torch.randn(12, 3, 6), torch.randn(high, 3, 6)
    for state in (None, history):
        want, want_state = fixed(x, state)
        for training in (True, False):
            got, got_state = layer.train(training)(x, state)
            torch.testing.assert_close(got, want)
            assert torch.equal(got_state, want_state)


def test_chunks_equal_the_whole_in_training():
    layer = snn.LearnedDelayLinear(6, 5, max_delay=7)
    x = torch.randn(20, 2, 6)
    whole, last = layer(x)
    state, parts = None, []
    for chunk in x.split([1, 6, 0, 13]):
        y, state = layer(chunk, state)
        parts.append(y)
    torch.testing.assert_close(torch.cat(parts), whole)
    assert torch.equal(state, last)


def test_a_delay_is_found_by_its_gradient():
    torch.manual_seed(1)
    layer = snn.LearnedDelayLinear(1, 1, max_delay=15, bias=False, seed=0)
    start = int(layer.delay)
    target = 3 if start > 8 else 13
    with torch.no_grad():
        layer.weight.fill_(1.0)
    layer.weight.requires_grad_(False)
    optimizer = torch.optim.Adam([layer.position], lr=0.02)
    for step in range(300):
        layer.anneal(step / 300)
        x = torch.randn(60, 4, 1)
        want = torch.cat([torch.zeros(target, 4, 1), x])[:60]
        loss = (layer(x)[0] - want).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    layer.eval()(torch.zeros(1, 1, 1))
    assert int(layer.delay) == target != start


def test_the_bells_narrow_to_their_last_width():
    layer = snn.LearnedDelayLinear(2, 2, max_delay=17)
    widths = []
    for progress in (0.0, 0.4, 0.75, 1.0):
        layer.anneal(progress)
        widths.append(float(layer.width))
    assert widths == sorted(widths, reverse=True)
    assert widths[0] == 8 and widths[2] == widths[3] == pytest.approx(0.23)
    assert torch.allclose(layer.kernel().sum(-1), layer.weight)


@pytest.mark.parametrize("sharing", SHARING)
def test_shared_delays(sharing):
    layer = snn.FixedDelayLinear(30, 20, max_delay=16, seed=2, sharing=sharing)
    rows, columns = SHARING[sharing](20, 30)
    drawn = layer.delay[:rows, :columns]
    assert torch.equal(layer.delay, drawn.expand(20, 30)) and layer.delay.is_contiguous()
    assert len(layer.delay.unique()) > 8 or sharing == "layer"
    with pytest.raises(ValueError, match="none, axon, dendrite, layer"):
        snn.FixedDelayLinear(2, 2, max_delay=3, sharing="brain")


def test_networks_take_both():
    x = torch.randn(12, 2, 5)
    net = snn.ResidualSNN(5, 8, 2, max_delay=6, learn_delays=True)
    net(x)[0].sum().backward()
    assert net.blocks[0].layer.linear.position.grad is not None
    fixed = snn.ResidualSNN(5, 8, 2, max_delay=6)
    assert sum(p.numel() for p in net.parameters()) == sum(p.numel() for p in fixed.parameters()) + 8 * 5 + 2 * 8 * 8
    shared = snn.ResidualSNN(5, 8, 2, max_delay=6, delay_sharing="layer")
    assert len(shared.first.linear.delay.unique()) == 1
