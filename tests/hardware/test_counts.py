"""Counts equal those made by hand and by the slow oracle, exactly, with and without neurons that sleep."""

import functools

import numpy as np
import pytest
import torch
from torch import nn

import snn
from hardware.energy import ACCOUNTINGS, ARRIVALS, count
from snn import ConvSNN, DormantLIF, FixedDelayLinear, MSResNet, Synapses
from tests.hardware.toys import Frames, Scripted, Stream, Toy, listed, prune, settled, spikes
from tests.oracles import synaptic_events as oracle


@pytest.fixture(autouse=True)
def _seeded():
    torch.manual_seed(0)


class TestByHand:
    """Small enough to count with a pencil."""

    def test_dense(self):
        # Two steps, one sample. Weights 3 x 2 of which one is zero: neuron 0 reaches 3 outputs, neuron 1 reaches 2.
        layer = nn.Linear(2, 3)
        layer.weight.data = torch.tensor([[1.0, 0.0], [2.0, 1.0], [-1.0, 3.0]])
        fired = torch.tensor([[[1.0, 1.0]], [[0.0, 1.0]]])
        # Step 0: outputs 0, 1, 2 receive 1, 2, 2; step 1: 0, 1, 1. Output 0 sleeps at step 0, output 2 at step 1.
        awake = torch.tensor([[[0, 1, 1]], [[1, 1, 0]]])
        net = Toy(nn.Linear(1, 2), [(Scripted(fired), layer)], Scripted(torch.ones(2, 1, 3), awake))
        counts = count(net, torch.tensor([[[0.5]], [[0.0]]]))
        assert listed(counts.layers["layers.0"].events) == [[7], [5], [5]]
        assert listed(counts.layers["layers.0"].dense) == [[12], [8], [8]]
        assert counts.layers["layers.0"].operation == "AC"
        # The first layer: one input that is zero at the second step, two outputs.
        assert listed(counts.layers["first"].events) == [[2], [2], [2]]
        assert counts.layers["first"].operation == "MAC"
        last = counts.neurons["last"]
        assert (last.steps.tolist(), last.awake.tolist(), last.spikes.tolist()) == ([6], [4], [6])
        # 5 additions; with the input 2 multiplications more; with the neurons 4 and 4 updates more.
        assert counts.energy() == pytest.approx(5 * 0.9)
        assert counts.energy(include_analogue=True) == pytest.approx(5 * 0.9 + 2 * 4.6)
        assert counts.energy(include_neurons=True) == pytest.approx(5 * 0.9 + 8 * 5.5)
        assert counts.energy("none", include_neurons=True) == pytest.approx(7 * 0.9 + 10 * 5.5)

    def test_delayed(self):
        # A spike at step 0 arrives at outputs 0 and 1 after 1 and 2 steps; the one at step 2 arrives at output 0 only.
        layer = FixedDelayLinear(1, 2, max_delay=2)
        layer.weight.data.fill_(1.0)
        layer.delay.copy_(torch.tensor([[1], [2]]))
        fired = torch.tensor([1.0, 0.0, 1.0, 0.0])[:, None, None]
        awake = torch.tensor([[0, 1], [1, 1], [0, 0], [1, 1]])[:, None]
        net = Toy(nn.Linear(1, 1), [(Scripted(fired), layer)], Scripted(torch.zeros(4, 1, 2), awake))
        counts = count(net, torch.ones(4, 1, 1)).layers["layers.0"]
        # Arrivals: output 0 at steps 1 and 3, output 1 at step 2, when it sleeps.
        assert listed(counts.events) == [[3], [2], [2]]
        assert listed(counts.dense) == [[8], [5], [5]]

    def test_convolution_at_the_border(self):
        # One spike in the corner of a 2 x 2 image reaches all four places of a padded 3 x 3 convolution.
        conv = nn.Conv2d(1, 1, 3, padding=1)
        fired = torch.zeros(1, 1, 1, 2, 2)
        fired[..., 0, 0] = 1
        awake = torch.tensor([[1, 0], [1, 0]])[None, None, None]
        net = Frames(conv, Scripted(fired), Scripted(torch.zeros_like(fired), awake))
        counts = count(net, torch.ones(1, 1, 1, 2, 2)).layers["conv"]
        assert listed(counts.events) == [[4], [2], [2]]
        assert listed(counts.dense) == [[16], [8], [8]]

    def test_strict_spares_only_what_no_reader_needs(self):
        net = Stream(awake_first=torch.tensor([1, 0, 0]), awake_last=torch.tensor([0, 1, 0]))
        counts = count(net, torch.ones(3, 1, 1)).layers["first"]
        assert listed(counts.events) == [[3], [1], [2]]
        assert listed(count(net, torch.ones(3, 1, 1)).layers["second"].events) == [[3], [1], [1]]

    def test_dormant_lif(self):
        # -1 puts the neuron to sleep after its first step; it is counted awake in that one alone.
        layer = nn.Linear(1, 1, bias=False)
        layer.weight.data.fill_(-1.0)
        net = Toy(nn.Linear(1, 1), [(Scripted(torch.ones(4, 2, 1)), layer)], DormantLIF(beta=0.5))
        counts = count(net, torch.ones(4, 2, 1))
        assert listed(counts.layers["layers.0"].events) == [[4, 4], [1, 1], [1, 1]]
        assert counts.neurons["last"].awake.tolist() == [1, 1] and counts.neurons["last"].steps.tolist() == [4, 4]


class TestAgainstTheOracle:
    def test_linear(self):
        layer, fired, awake = prune(nn.Linear(7, 5)), spikes(6, 3, 7), spikes(6, 3, 5).bool()
        net = Toy(nn.Linear(2, 7), [(Scripted(fired), layer)], Scripted(spikes(6, 3, 5), awake))
        events = oracle.linear(fired.numpy(), layer.weight.detach().numpy())
        counts = count(net, torch.randn(6, 3, 2)).layers["layers.0"]
        assert counts.events.none.tolist() == events.sum((0, 2)).tolist()
        assert counts.events.per_neuron.tolist() == oracle.gated(events, awake.numpy()).tolist()

    def test_delayed_with_a_history(self):
        layer = prune(FixedDelayLinear(4, 5, max_delay=6, min_delay=0))
        x, state = spikes(7, 2, 4), spikes(6, 2, 4)
        events = oracle.delayed(x.numpy(), layer.weight.detach().numpy(), layer.delay.numpy(), state.numpy())
        got = ARRIVALS[FixedDelayLinear](layer, (x, state))
        assert (got.events.numpy() == events).all() and (got.fan_in == 4).all()
        silent = oracle.delayed(x.numpy(), layer.weight.detach().numpy(), layer.delay.numpy())
        assert (ARRIVALS[FixedDelayLinear](layer, (x,)).events.numpy() == silent).all()

    @pytest.mark.parametrize("options", [{}, {"stride": 2, "padding": 1}, {"groups": 2, "padding": 2}, {"stride": 3}])
    def test_convolution(self, options):
        conv = prune(nn.Conv2d(4, 6, 3, **options))
        fired = spikes(3, 2, 4, 7, 6)
        shape = oracle.conv2d(fired.numpy(), conv.weight.detach().numpy(), **options)
        awake = spikes(*shape.shape).bool()
        counts = count(Frames(conv, Scripted(fired), Scripted(spikes(*shape.shape), awake)), fired).layers["conv"]
        assert counts.events.none.tolist() == shape.sum((0, 2, 3, 4)).tolist()
        assert counts.events.strict.tolist() == oracle.gated(shape, awake.numpy()).tolist()
        dense = oracle.conv2d(fired.numpy(), conv.weight.detach().numpy(), **options, dense=True)
        assert counts.dense.none.tolist() == dense.sum((0, 2, 3, 4)).tolist()
        assert counts.dense.per_neuron.tolist() == oracle.gated(dense, awake.numpy()).tolist()

    @pytest.mark.parametrize("neuron", [None, functools.partial(DormantLIF, beta=0.5)])
    def test_a_whole_network(self, neuron):
        net = settled(neuron)
        image = torch.randn(2, 1, 5, 5)
        heard, currents = [], []
        for layer in net.layers:
            layer.neuron.register_forward_hook(lambda module, args, output: currents.append(args[0]))
            layer.conv.conv.register_forward_hook(lambda module, args, output: heard.append(args[0]))
        with torch.no_grad():
            net(image)
        counts = count(net, image)
        for index, (layer, x, current) in enumerate(zip(net.layers, heard, currents, strict=False)):
            frames = image.expand(4, *image.shape) if index == 0 else x.unflatten(0, (4, 2))
            stride = layer.conv.conv.stride[0]
            weight = layer.conv.conv.weight.detach().numpy()
            events = oracle.conv2d(frames.numpy(), weight, stride=stride, padding=1)
            awake = torch.ones_like(current).bool() if neuron is None else layer.neuron.awake_trace(current)
            tally = counts.layers[f"layers.{index}.conv.conv"].events
            assert tally.none.tolist() == events.sum((0, 2, 3, 4)).tolist() != [0, 0]
            assert tally.per_neuron.tolist() == oracle.gated(events, awake.numpy()).tolist()
            assert tally.strict.tolist() == tally.per_neuron.tolist()
            assert (tally.per_neuron < tally.none).all() or neuron is None

    def test_every_kind_of_layer_is_tested_here(self):
        assert set(ARRIVALS) == {nn.Linear, nn.Conv2d, FixedDelayLinear, snn.residual.CurrentShortcut}


@pytest.mark.parametrize("history", [None, spikes(4, 2, 3)])
def test_current_shortcut(history):
    shortcut = snn.residual.CurrentShortcut(3, 1.0)
    shortcut.gain.data[1] = 0
    x, weight = spikes(5, 2, 3), torch.diag(shortcut.gain.detach()).numpy()
    past = None if history is None else history.numpy()
    events = oracle.delayed(x.numpy(), weight, np.full((3, 3), 2), past)
    assert (ARRIVALS[type(shortcut)](shortcut, (None, None, x, history, 2)).events.numpy() == events).all()


class TestConventions:
    def test_a_static_image_counts_once_a_step_or_once(self):
        net = ConvSNN(1, 3, size=(4, 4), widths=(2,), strides=(1,), steps=4).eval()
        image = torch.rand(2, 1, 4, 4) + 0.1
        first = count(net, image).layers["layers.0.conv.conv"]
        once = 2 * (4 * 4 + 8 * 6 + 4 * 9)  # channels; corners, edges, inside
        assert first.events.none.tolist() == [4 * once, 4 * once] and first.events_once.none.tolist() == [once, once]
        frames = count(net, image.expand(4, -1, -1, -1, -1)).layers["layers.0.conv.conv"]
        assert listed(frames.events) == listed(frames.events_once) == listed(first.events)
        counts = count(net, image)
        kept = counts.energy(include_analogue=True, static="once")
        assert counts.energy(include_analogue=True) - kept == pytest.approx(3 * once * 4.6)

    def test_what_is_kept_is_needed_if_its_neuron_is_ever_awake(self):
        awake = torch.tensor([[1, 0, 0], [0, 0, 1]])[:, None]
        net = Toy(nn.Linear(2, 3), [], Scripted(torch.zeros(2, 1, 3), awake))
        first = count(net, torch.ones(1, 2)).layers["first"]
        assert listed(first.events) == [[12], [4], [4]] and listed(first.events_once) == [[6], [4], [4]]

    def test_places_before_a_max_pool_are_needed_by_every_window_over_them(self):
        net = MSResNet(1, 2, widths=(2,), blocks=(1,), stem="7x7", neuron=functools.partial(DormantLIF, beta=0.5))
        image = torch.randn(2, 1, 13, 15)
        net(image)
        net.eval()
        seen = {}
        for name in ("blocks.0.neuron1", "neuron"):
            module = net.get_submodule(name)
            module.register_forward_hook(lambda m, args, output, name=name: seen.update({name: m.awake_trace(args[0])}))
        net(image)
        events = oracle.conv2d(image[None].numpy(), net.stem.conv.weight.detach().numpy(), stride=2, padding=3)
        counts = count(net, image).layers["stem.conv"].events
        for accounting, readers in (("per-neuron", ["blocks.0.neuron1"]), ("strict", list(seen))):
            pooled = np.logical_or.reduce([seen[name].numpy() for name in readers])
            needed = np.zeros((4, *events.shape[1:]), dtype=bool)
            for t, b, c, r, k in np.argwhere(pooled):
                needed[t, b, c, max(0, 2 * r - 1) : 2 * r + 2, max(0, 2 * k - 1) : 2 * k + 2] = True
            want = oracle.gated(np.broadcast_to(events, needed.shape), needed)
            assert counts[accounting].tolist() == want.tolist()
            assert not needed.all()

    def test_padded_frames_count_for_nothing(self):
        layer = FixedDelayLinear(4, 3, max_delay=3)
        fired, x, lengths = spikes(8, 2, 4), torch.randn(8, 2, 2), torch.tensor([8, 3])
        net = Toy(nn.Linear(2, 4), [(Scripted(fired), layer)], Scripted(fired[..., :3], fired[..., 1:]))
        together = count(net, x, lengths=lengths)
        net.neurons[0].spikes, net.last = fired[:3, 1:], Scripted(fired[:3, 1:, :3], fired[:3, 1:, 1:])
        alone = count(net, x[:3, 1:])
        for name in together.layers:
            assert [a[1:] for a in listed(together.layers[name].events)] == listed(alone.layers[name].events)
            assert [a[1:] for a in listed(together.layers[name].dense)] == listed(alone.layers[name].dense)
        for field in ("steps", "awake", "spikes"):
            both, one = (getattr(counts.neurons["last"], field) for counts in (together, alone))
            assert both[1:].tolist() == one.tolist()

    def test_input_of_spikes_is_added(self):
        net = Toy(nn.Linear(3, 4), [], Scripted(spikes(5, 2, 4)))
        assert count(net, spikes(5, 2, 3), spiking_input=True).layers["first"].operation == "AC"
        with pytest.raises(ValueError, match="'first' should receive spikes of the input"):
            count(net, torch.randn(5, 2, 3), spiking_input=True)

    def test_autocast_changes_no_count(self):
        net = Toy(nn.Linear(1, 999), [(Scripted(torch.ones(2, 1, 999)), nn.Linear(999, 3))], Scripted(spikes(2, 1, 3)))
        with torch.autocast("cpu", dtype=torch.bfloat16):
            counts = count(net, torch.ones(2, 1, 1))
        assert counts.layers["layers.0"].events.none.tolist() == [2 * 3 * 999]

    def test_sums_beyond_the_integers_of_single_precision_are_exact(self):
        n = 4097  # its square is the first odd one above 2^24
        layer = nn.Linear(n, n, bias=False)
        layer.weight.data.fill_(1.0)
        ones = torch.ones(1, 1, n)
        net = Toy(nn.Linear(1, n), [(Scripted(ones), layer)], Scripted(ones, ones))
        counts = count(net, torch.ones(1, 1, 1)).layers["layers.0"]
        assert listed(counts.events) == listed(counts.dense) == [[n * n]] * 3

    def test_no_graph_no_hook_and_the_same_mode_remain(self):
        net = ConvSNN(widths=(2, 2, 2)).train()
        count(net, torch.rand(2, 1, 8, 8))
        assert net.training and all(not module._forward_hooks for module in net.modules())


class TestSums:
    def setup_method(self):
        torch.manual_seed(0)
        self.net = settled(functools.partial(DormantLIF, beta=0.5))
        self.images = torch.randn(6, 1, 5, 5)
        self.counts = count(self.net, self.images)

    def test_batches_add_up_to_the_whole_and_pool(self):
        added = sum(count(self.net, part) for part in self.images.split([1, 2, 3]))
        assert added.samples == 6
        for name, layer in self.counts.layers.items():
            assert listed(layer.events) == listed(added.layers[name].events)
        for options in ({}, {"include_analogue": True, "include_neurons": True, "static": "once"}):
            for accounting in ACCOUNTINGS:
                each = added.energy_per_sample(accounting, **options)
                assert each.shape == (6,) and each.mean().item() == pytest.approx(added.energy(accounting, **options))
                pooled = added.pooled() + added.pooled()
                assert pooled.energy(accounting, **options) == pytest.approx(added.energy(accounting, **options))
        assert pooled.samples == 12 and pooled.layers["readout.linear"].events.none.shape == (2,)

    def test_the_decomposition_multiplies_to_the_ratio(self):
        baseline = count(settled(None), self.images)
        for accounting in ACCOUNTINGS:
            parts = self.counts.relative_to(baseline, accounting)
            ratio = self.counts.energy(accounting) / baseline.energy("none")
            assert parts.ratio == pytest.approx(ratio)
            assert parts.rate * parts.active * parts.interaction == pytest.approx(ratio)
        assert parts.active < 1
        none = self.counts.relative_to(baseline, "none")
        assert none.active == none.interaction == 1

    def test_input_that_meets_awake_and_sleeping_alike_does_not_interact(self):
        def toy(awake):
            return Toy(nn.Linear(1, 4), [(Scripted(torch.ones(3, 2, 4)), nn.Linear(4, 2))],
                       Scripted(torch.zeros(3, 2, 2), awake))  # fmt: skip

        whole, half = (
            count(toy(awake), torch.ones(3, 2, 1))
            for awake in (torch.ones(3, 2, 2), torch.tensor([1, 0]).expand(3, 2, 2))
        )
        assert half.relative_to(whole) == (0.5, 1.0, 0.5, 1.0)

    def test_rows_and_the_table_say_everything(self):
        rows = self.counts.rows()
        assert [row["layer"] for row in rows] == [one.layer for one in self.net.synapses()]
        assert rows[1]["events strict"] == self.counts.layers[rows[1]["layer"]].events.strict.sum() / 6
        text = str(self.counts)
        for word in (*ACCOUNTINGS, "45 nm, fp32", "pJ", "6 samples", "not priced", "readout.linear"):
            assert word in text

    def test_what_does_not_belong_together_does_not_add_up(self):
        other = count(ConvSNN(1, 3, size=(5, 5), widths=(2, 3, 3)), self.images)
        with pytest.raises(ValueError, match="same network"):
            self.counts + other
        with pytest.raises(ValueError, match="accounting must be one of none, per-neuron, strict; found 'loose'"):
            self.counts.energy("loose")
        with pytest.raises(ValueError, match="static must be one of"):
            self.counts.energy(static="twice")


class TestRefuses:
    def test_a_model_that_does_not_say_how_it_is_wired(self):
        with pytest.raises(TypeError, match=r"Linear does not say how it is wired.*synapses"):
            count(nn.Linear(2, 2), torch.zeros(1, 2))

    def test_a_layer_of_another_kind(self):
        net = Toy(nn.Bilinear(2, 2, 3), [], Scripted(spikes(4, 2, 3)))
        with pytest.raises(TypeError, match="'first' is a Bilinear, which cannot be counted; what can is Linear"):
            count(net, torch.zeros(4, 2, 2))

    def test_weights_that_are_not_declared(self):
        net = Toy(nn.Linear(2, 3), [(Scripted(spikes(4, 2, 3)), nn.Linear(3, 3))], Scripted(spikes(4, 2, 3)))
        net.declared = [Synapses("first", None, "last", ("last",))]
        with pytest.raises(ValueError, match=r"'layers.0' \(Linear\) has weights, but Toy"):
            count(net, torch.zeros(4, 2, 2))

    def test_values_that_are_no_spikes(self):
        net = Toy(nn.Linear(2, 3), [(Scripted(torch.full((4, 2, 3), 2.0)), nn.Linear(3, 3))], Scripted(spikes(4, 2, 3)))
        with pytest.raises(ValueError, match=r"'layers.0' should receive spikes of neurons.0 .*in training mode"):
            count(net, torch.zeros(4, 2, 2))

    def test_neurons_that_do_not_fit(self):
        net = Toy(nn.Linear(2, 3), [], Scripted(spikes(4, 2, 5), spikes(4, 2, 5)))
        with pytest.raises(
            ValueError, match="outputs \\(3,\\), its reader 'last' neurons \\(5,\\): they must be one to"
        ):
            count(net, torch.zeros(4, 2, 2))
        net = Toy(nn.Linear(2, 3), [], Scripted(spikes(4, 2, 3), spikes(4, 2, 1)))
        with pytest.raises(ValueError, match="awake_trace of 'last'"):
            count(net, torch.zeros(4, 2, 2))
        net = Toy(nn.Linear(2, 3), [], Scripted(spikes(5, 2, 3)))
        with pytest.raises(ValueError, match=r"'first' ran on \(4, 2\); the neurons have 5 steps of 2 samples"):
            count(net, torch.zeros(4, 2, 2))

    def test_a_layer_that_runs_twice_or_never(self):
        shared = nn.Linear(3, 3)
        net = Toy(nn.Linear(2, 3), [(Scripted(spikes(4, 2, 3)), shared), (Scripted(spikes(4, 2, 3)), shared)], None)
        net.declared = [Synapses("first", None, None), Synapses("layers.0", "neurons.0", None)]
        with pytest.raises(ValueError, match=r"'layers.0' runs more than once"):
            count(net, torch.zeros(4, 2, 2))
        net = ConvSNN()
        net.spare = nn.Linear(2, 2)
        declared = net.synapses()
        net.synapses = lambda: [*declared, Synapses("spare", None, None)]
        with pytest.raises(ValueError, match="'spare' did not run"):
            count(net, torch.zeros(1, 1, 8, 8))

    def test_padding_that_is_not_of_zeros(self):
        conv = nn.Conv2d(1, 1, 3, padding=1, padding_mode="reflect")
        net = Frames(conv, Scripted(spikes(2, 1, 1, 4, 4)), Scripted(spikes(2, 1, 1, 4, 4)))
        with pytest.raises(ValueError, match="padding_mode 'reflect'"):
            count(net, torch.zeros(1))
