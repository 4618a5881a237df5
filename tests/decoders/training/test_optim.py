import itertools
from typing import get_args, get_type_hints

import pytest
import torch
from torch import nn

from decoders.training import PhonemeTask
from decoders.training.optim import OPTIMIZERS, SCHEDULES, LearningRateFactor, parameter_groups


@pytest.mark.parametrize("name", SCHEDULES)
def test_every_schedule_rises_to_one_and_ends_where_it_should(name: str) -> None:
    factor = LearningRateFactor(name, total=100, warmup=0.2, start=0.1, end=0.01)
    values = [factor(step) for step in range(101)]
    assert values[0] == pytest.approx(0.1) and values[20] == pytest.approx(1.0)
    assert all(a < b for a, b in itertools.pairwise(values[:21]))
    assert all(a >= b for a, b in itertools.pairwise(values[20:]))
    assert values[100] == pytest.approx(1.0 if name == "constant" else 0.01)
    assert factor(1000) == values[100]


@pytest.mark.parametrize("name", SCHEDULES)
def test_no_warm_up_starts_at_the_peak(name: str) -> None:
    assert LearningRateFactor(name, 10, warmup=0, start=0.1, end=0.0)(0) == 1.0


def test_the_cosine_of_the_2025_recipe() -> None:
    # lr 5e-3 to 1e-4 over 120,000 updates after 1,000 of warm-up.
    factor = LearningRateFactor("cosine", 120_000, warmup=1000, start=0.0, end=0.02)
    assert 5e-3 * factor(500) == pytest.approx(2.5e-3)
    assert 5e-3 * factor(60_500) == pytest.approx((5e-3 + 1e-4) / 2)
    assert 5e-3 * factor(120_000) == pytest.approx(1e-4)


def test_schedule_state_is_plain_numbers() -> None:
    optimizer = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=1.0)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, LearningRateFactor("linear", 10, 0, 0, 0))
    state = scheduler.state_dict()["lr_lambdas"][0]
    assert state == {"schedule": "linear", "total": 10, "start": 0, "end": 0, "warmup": 0}


def test_an_unknown_schedule_is_named() -> None:
    with pytest.raises(ValueError, match=r"'sine'.*one_cycle"):
        LearningRateFactor("sine", 10, 0, 0, 0)


def test_the_typed_options_are_the_tables() -> None:
    hints = get_type_hints(PhonemeTask.__init__)
    assert set(get_args(hints["schedule"])) == set(SCHEDULES)
    assert set(get_args(hints["optimizer"])) == set(OPTIMIZERS)


def test_biases_norms_and_day_layers_are_not_decayed() -> None:
    model = nn.ModuleDict({"core": nn.Linear(3, 4), "norm": nn.LayerNorm(4), "day_layers": nn.Linear(3, 3)})
    decayed, spared = parameter_groups(model.named_parameters(), 0.1)
    assert decayed["weight_decay"] == 0.1 and [p.shape for p in decayed["params"]] == [(4, 3)]
    assert spared["weight_decay"] == 0.0 and len(spared["params"]) == 5
    (everything,) = parameter_groups(model.named_parameters(), 0.1, decay_everything=True)
    assert len(everything["params"]) == 6


def test_frozen_parameters_are_left_out() -> None:
    layer = nn.Linear(3, 4).requires_grad_(False)
    assert parameter_groups(layer.named_parameters(), 0.1) == []
