"""Every core in the table: one call, state in chunks, the past alone, padding that never matters."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import snn
from decoders.cores import CORES, Core
from decoders.cores.transformer import DistanceBias, Transformer

# What makes a small one of each; variants of a core stand beside it.
SMALL: dict[str, tuple[str, dict[str, Any]]] = {
    "residual_snn": ("residual_snn", {"width": 12, "depth": 2, "max_delay": 5}),
    "residual_snn, pooled": ("residual_snn", {"width": 12, "depth": 1, "max_delay": 3, "pool": 4}),
    "residual_snn, current": ("residual_snn", {"width": 12, "depth": 2, "max_delay": 3, "shortcut": "current"}),
    "residual_snn, dormant": (
        "residual_snn",
        {"width": 12, "depth": 2, "max_delay": 3, "dormancy": {"dormancy_threshold": -2.0}},
    ),
    "residual_snn, dormant in windows": (
        "residual_snn",
        {"width": 12, "depth": 2, "max_delay": 3, "dormancy": {"mode": "window", "window": 6}},
    ),
    "residual_snn, dormant until woken": (
        "residual_snn",
        {"width": 12, "depth": 2, "max_delay": 3, "dormancy": {"mode": "wake", "wake_above": 0.2}},
    ),
    "gru": ("gru", {"width": 12, "depth": 2}),
    "gru, both ways": ("gru", {"width": 12, "depth": 2, "bidirectional": True}),
    "lstm": ("lstm", {"width": 12, "depth": 2}),
    "lstm, both ways": ("lstm", {"width": 12, "depth": 2, "bidirectional": True}),
    "tcn": ("tcn", {"width": 12, "depth": 3}),
    "mlp": ("mlp", {"width": 12, "context": 5}),
    "mlp, one frame": ("mlp", {"width": 12, "context": 1}),
    "transformer": ("transformer", {"width": 16, "depth": 2, "heads": 2}),
    "transformer, short": ("transformer", {"width": 18, "depth": 2, "heads": 2, "context": 6}),
    "transformer, relative": (
        "transformer",
        {"width": 16, "depth": 2, "heads": 2, "positions": "relative", "mask_token": True},
    ),
    "transformer, both ways": (
        "transformer",
        {"width": 16, "depth": 2, "heads": 2, "causal": False, "positions": "relative", "context": 9},
    ),
    "gru_b2t24": ("gru_b2t24", {"width": 12, "depth": 2}),
    "gru_b2t24, one way": ("gru_b2t24", {"width": 12, "depth": 2, "bidirectional": False}),
    "gru_b2t25": ("gru_b2t25", {"width": 12, "depth": 2}),
}
N = 7


def make(name: str) -> Core:
    torch.manual_seed(0)
    kind, options = SMALL[name]
    core = CORES[kind](N, **options)
    # Norms that have seen data: with statistics from nowhere a spiking core may be silent.
    norms = [module for module in core.modules() if isinstance(module, snn.MaskedBatchNorm)]
    for norm in norms:
        norm.momentum = 1.0
    if norms:
        with torch.no_grad():
            core(noise(100, 4), torch.full((4,), 100))
    return core.eval()


def noise(T: int, B: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(T, B, N, generator=torch.Generator().manual_seed(seed))


def test_every_core_has_a_small_one_here() -> None:
    assert {core for core, _ in SMALL.values()} == set(CORES)


@pytest.mark.parametrize("name", CORES)
def test_defaults_are_what_the_constructor_takes(name: str) -> None:
    defaults = CORES[name].defaults()
    assert "width" in defaults and "depth" in defaults and "in_features" not in defaults
    small = CORES[name](3, **{**defaults, "width": 16})
    assert isinstance(small.out_features, int) and isinstance(small.causal, bool)


@pytest.mark.parametrize("name", SMALL)
def test_shapes_and_lengths(name: str) -> None:
    core, lengths = make(name), torch.tensor([21, 9, 14])
    features, new_lengths, _ = core(noise(21, 3), lengths)
    assert torch.equal(new_lengths, core.output_lengths(lengths))
    assert features.shape == (int(new_lengths.max()), 3, core.out_features)
    assert torch.isfinite(features).all()


@pytest.mark.parametrize("name", SMALL)
def test_padding_never_matters(name: str) -> None:
    core, lengths = make(name), torch.tensor([11, 25, 16, 0])
    x = noise(25, 4)
    for b, length in enumerate(lengths):
        x[length:, b] = 0
    together, new_lengths, _ = core(x, lengths)
    poisoned = torch.cat([x, torch.zeros(8, 4, N)])
    for b, length in enumerate(lengths):
        poisoned[length:, b] = 1e3
    again, _, _ = core(poisoned, lengths)
    for b, length in enumerate(lengths[:3]):
        alone, _, _ = core(x[:length, b : b + 1], lengths[b : b + 1])
        n = int(new_lengths[b])
        for features in (together, again):
            torch.testing.assert_close(features[:n, b], alone[:n, 0], atol=1e-5, rtol=1e-5)
        if name.startswith("residual_snn"):
            assert torch.equal(together[:n, b], alone[:n, 0]), "spikes are not exactly the same"


@pytest.mark.parametrize("name", [name for name in SMALL if make(name).causal])
@pytest.mark.parametrize("chunk", [1, 4, 7])
def test_chunks_give_what_the_whole_gives(name: str, chunk: int) -> None:
    core, x = make(name), noise(26, 2)
    whole, _, _ = core(x, torch.tensor([26, 26]))
    parts, state = [], None
    for piece in x.split(chunk):
        features, lengths, state = core(piece, torch.full((2,), len(piece)), state)
        assert (lengths == len(features)).all()
        parts.append(features)
    torch.testing.assert_close(torch.cat(parts), whole, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", [name for name in SMALL if make(name).causal])
def test_a_causal_core_does_not_see_the_future(name: str) -> None:
    core, x = make(name), noise(24, 1)
    changed = x.clone()
    changed[12:] += 1
    before, after = core(x, torch.tensor([24]))[0], core(changed, torch.tensor([24]))[0]
    frames = int(core.output_lengths(torch.tensor(12)))
    torch.testing.assert_close(before[:frames], after[:frames], atol=1e-6, rtol=0)
    assert not torch.equal(before[frames:], after[frames:])


@pytest.mark.parametrize("name", [name for name in SMALL if not make(name).causal])
def test_a_core_that_sees_the_future_takes_no_state(name: str) -> None:
    core = make(name)
    _, _, state = core(noise(5, 1), torch.tensor([5]))
    with pytest.raises(ValueError, match="whole trial"):
        core(noise(5, 1), torch.tensor([5]), state)


@pytest.mark.parametrize("name", SMALL)
def test_every_parameter_learns(name: str) -> None:
    core = make(name).train()
    x = noise(24, 3)
    x[4, 0] = 0  # a masked frame, for cores with a mask token
    features, _, _ = core(x, torch.tensor([24, 20, 24]))
    (features * torch.randn(features.shape, generator=torch.Generator().manual_seed(1))).sum().backward()
    still = [p for p, tensor in core.named_parameters() if tensor.grad is None or not tensor.grad.any()]
    # The bias of a key shifts all scores of a query alike; it sits in one vector with those that do matter.
    assert not still


@pytest.mark.parametrize("name", SMALL)
def test_empty_input_is_no_special_case(name: str) -> None:
    core = make(name)
    features, lengths, _ = core(noise(0, 2), torch.tensor([0, 0]))
    assert features.shape == (0, 2, core.out_features) and lengths.tolist() == [0, 0]
    features, _, _ = core(noise(1, 1), torch.tensor([1]))
    assert features.shape[1:] == (1, core.out_features)


def test_the_receptive_field_of_the_tcn_is_what_it_says() -> None:
    core = CORES["tcn"](N, 8, depth=3)
    assert core.receptive_field == 29
    x = noise(60, 1).requires_grad_()
    core(x, torch.tensor([60]))[0][50].sum().backward()
    assert x.grad is not None
    reached = x.grad[:, 0].abs().sum(1).nonzero().flatten()
    assert reached.min().item() == 50 - 28 and reached.max().item() == 50


def test_masked_frames_become_the_learned_token() -> None:
    core = Transformer(N, 16, depth=1, heads=2, mask_token=True).eval()
    x = noise(10, 1)
    x[3] = 0
    lengths = torch.tensor([10])
    with torch.no_grad():
        before = core(x, lengths)[0]
        assert core.mask_token is not None
        core.mask_token.add_(1.0)
        after = core(x, lengths)[0]
    assert torch.equal(before[:3], after[:3]) and not torch.equal(before[3], after[3])
    x[3] = 0.1
    with torch.no_grad():
        core.mask_token.add_(1.0)
        plain = core(x, lengths)[0]
        core.mask_token.add_(1.0)
        assert torch.equal(plain, core(x, lengths)[0])


def test_rotary_attention_depends_on_distances_alone() -> None:
    core = Transformer(N, 16, depth=1, heads=2, context=4).eval()
    x = noise(12, 1)
    late, _, _ = core(x, torch.tensor([12]))
    early, _, _ = core(x[5:], torch.tensor([7]))
    torch.testing.assert_close(late[8:], early[3:], atol=1e-5, rtol=1e-5)


def test_distance_buckets_are_exact_near_and_coarse_far() -> None:
    bias = DistanceBias(1, causal=True, buckets=8, furthest=64)
    with torch.no_grad():
        bias.bias.weight.copy_(torch.arange(8.0)[:, None])
    buckets = bias(torch.arange(200)[:, None])[0, :, 0]
    assert buckets[:4].tolist() == [0, 1, 2, 3]
    assert (buckets.diff() >= 0).all() and buckets[64:].unique().tolist() == [7] and buckets[63] < 7
    both = DistanceBias(1, causal=False, buckets=8, furthest=64)
    with torch.no_grad():
        both.bias.weight.copy_(torch.arange(8.0)[:, None])
    sides = both(torch.arange(-99, 100)[:, None])[0, :, 0]
    assert set(sides[:99].tolist()).isdisjoint(sides[99:].tolist())


def test_wrong_options_are_refused() -> None:
    for wrong in ({"positions": "absolute"}, {"context": 0}, {"width": 4}):
        with pytest.raises(ValueError):
            Transformer(N, **wrong)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="pool"):
        CORES["residual_snn"](N, 8, pool=0)
    with pytest.raises(ValueError, match="spike_grad"):
        CORES["residual_snn"](N, 8, spike_grad="nonsense")
    with pytest.raises(ValueError, match=r"dormancy knows .*mode.*: found 'nap'"):
        CORES["residual_snn"](N, 8, dormancy={"nap": 3})
    with pytest.raises(ValueError, match="below 0"):
        CORES["residual_snn"](N, 8, dormancy={"dormancy_threshold": 0.0})
    with pytest.raises(ValueError, match="give one of them"):
        CORES["residual_snn"](N, 8, dormancy={}, neuron=lambda: snn.LIF(beta=0.5))
    with pytest.raises(ValueError, match="context"):
        CORES["mlp"](N, 8, context=0)
    with pytest.raises(ValueError, match="width"):
        CORES["gru"](N, 0)
