"""Budgets met within two percent by every core, or a clear sentence why not."""

from __future__ import annotations

import pytest
import torch

from decoders.budget import TOLERANCE, build_core, parse_budget, solve_width
from decoders.cores import CORES
from neuro import DataError


@pytest.mark.parametrize("name", CORES)
@pytest.mark.parametrize("in_features", [256, 512])
@pytest.mark.parametrize("budget", ["500k", "2M", "5M"])
def test_every_core_meets_every_budget(name: str, in_features: int, budget: str) -> None:
    width, wanted = solve_width(name, in_features, budget), parse_budget(budget)
    count = CORES[name].count(in_features, width)
    assert abs(count - wanted) <= TOLERANCE * wanted
    # No neighbour is nearer.
    for neighbour in (width - 1, width + 1):
        assert abs(CORES[name].count(in_features, neighbour) - wanted) >= abs(count - wanted)


@pytest.mark.parametrize("name", CORES)
def test_counting_without_building_is_exact_and_leaves_the_generator_alone(name: str) -> None:
    torch.manual_seed(0)
    before = torch.get_rng_state()
    width = solve_width(name, 32, 60_000)
    assert torch.equal(before, torch.get_rng_state())
    core = build_core(name, 32, budget=60_000)
    assert core.width == width
    assert sum(p.numel() for p in core.parameters()) == CORES[name].count(32, width)
    assert all(p.device.type == "cpu" for p in core.parameters())


def test_options_are_counted() -> None:
    shallow, deep = (solve_width("gru", 64, "500k", depth=depth) for depth in (1, 5))
    assert shallow > deep
    sizes = {solve_width("residual_snn", 64, "500k", max_delay=delay) for delay in (1, 16, 63)}
    assert len(sizes) == 1, "delays are no parameters"


def test_published_widths() -> None:
    # By arithmetic: three GRU layers without patches, four spiking blocks.
    for in_features, budget, width in ((256, "500k", 158), (256, "2M", 340), (256, "5M", 552)):
        assert abs(solve_width("gru", in_features, budget) - width) <= 3
    for in_features, budget, width in ((256, "500k", 320), (256, "2M", 672), (512, "5M", 1056)):
        assert abs(solve_width("residual_snn", in_features, budget) - width) <= 4


def test_budgets_are_read() -> None:
    assert [parse_budget(b) for b in ("500k", "2M", "0.5m", "65_000", 7)] == [500_000, 2_000_000, 500_000, 65_000, 7]
    for wrong in ("lots", "", "-5", 0, "2G", "1e6"):
        with pytest.raises(DataError, match="budget not understood"):
            parse_budget(wrong)  # type: ignore[arg-type]


def test_what_cannot_be_met_says_what_can() -> None:
    with pytest.raises(DataError, match=r"gru with 7168 input channels.*core parameters, expected 50,000"):
        solve_width("gru", 7168, 50_000)
    with pytest.raises(DataError, match=r"unknown core.*found grue, expected residual_snn, gru"):
        build_core("grue", 4)
    with pytest.raises(DataError, match=r"core gru has no such option.*field detph"):
        build_core("gru", 4, detph=3)
    with pytest.raises(DataError, match="not both"):
        build_core("gru", 4, budget="500k", width=8)
    with pytest.raises(ValueError, match="positions"):
        build_core("transformer", 4, budget="500k", positions="absolute")
    assert build_core("mlp", 4).width == CORES["mlp"].defaults()["width"]
