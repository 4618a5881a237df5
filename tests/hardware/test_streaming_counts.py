"""What is counted as saved is what streaming leaves out."""

import pytest
import torch

from hardware.energy import count
from snn import DormantLIF, ResidualSNN, StreamingSNN
from snn.functional import fixed_delay_linear
from snn.record import SpikeRecorder

pytestmark = pytest.mark.slow  # compiles


@pytest.mark.parametrize("shortcut", ["membrane", "current"])
def test_strict_counts_are_the_sums_that_streaming_makes(shortcut):
    torch.manual_seed(0)
    net = ResidualSNN(
        5, 24, 2, max_delay=4, shortcut=shortcut, norm=None,
        neuron=lambda: DormantLIF(beta=0.5, dormancy_threshold=-0.8),
    ).eval()  # fmt: skip
    x = 2 * torch.randn(60, 1, 5)
    counts = count(net, x)
    with torch.no_grad(), SpikeRecorder(net) as recorder:
        net(x)
    stream = StreamingSNN(net)
    state, wanted = stream.start(), []
    for frame in x:
        wanted.append([mask.copy() for mask in stream._wanted(state)])
        stream.step(frame, state)
    for k, block in enumerate(net.blocks):
        linear = block.layer.linear
        ones = torch.ones_like(linear.weight)
        arrivals, _ = fixed_delay_linear(recorder.spikes[f"blocks.{k}.neuron"], ones, linear.delay, max_delay=4)
        made = sum(float(arrivals[t][torch.from_numpy(masks[k + 1])].sum()) for t, masks in enumerate(wanted))
        events = counts.layers[f"blocks.{k}.layer.linear"].events
        assert made == int(events["strict"]) < int(events["none"])
        assert int(events["per-neuron"]) <= int(events["strict"])
