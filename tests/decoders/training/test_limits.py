"""Numbers that no training can use are named before it starts."""

from __future__ import annotations

import inspect
import math
from pathlib import Path
from typing import Any

import pytest
from pytorch_lightning import Trainer

from decoders.training import PhonemeTask, RecordingsData, make_trainer
from decoders.training.limits import DATA, MODEL, TRAINER, Limit, check_limits
from neuro import DataError


def test_every_limit_is_of_an_option_that_is_there_and_its_default_is_within() -> None:
    for owner, limits in ((PhonemeTask, MODEL), (RecordingsData, DATA), (Trainer, TRAINER)):
        options = inspect.signature(owner.__init__).parameters
        assert set(limits) <= set(options)
        check_limits("x", limits, {name: option.default for name, option in options.items()})


@pytest.mark.parametrize(
    ("limit", "within", "out"),
    [
        (Limit(0), [0, 1e9], [-1e-9, math.inf, math.nan]),
        (Limit(0, above=True), [1e-9], [0, -1]),
        (Limit(0, 1), [0, 1], [1.1]),
        (Limit(0, 1, below=True), [0, 0.99], [1]),
    ],
)
def test_ends_of_a_range(limit: Limit, within: list[float], out: list[float]) -> None:
    assert all(limit.holds(value) for value in within) and not any(limit.holds(value) for value in out)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"lr": 0.0}, r"model\.lr\): found 0\.0, expected above 0"),
        ({"lr": math.nan}, r"model\.lr\): found nan"),
        ({"betas": (0.9, 1.0)}, r"model\.betas\): found \(0\.9, 1\.0\), expected at least 0 and below 1"),
        ({"input_dropout": 1.0}, r"model\.input_dropout"),
        ({"patch": (0, 1)}, r"model\.patch"),
        ({"width": 0}, r"model\.width\): found 0, expected at least 1"),
        ({"warmup": -0.1}, r"model\.warmup"),
        ({"target_rate": 0.0}, r"model\.target_rate\): found 0\.0, expected above 0 and at most 1"),
    ],
)
def test_a_model_option_out_of_range_is_named(options: dict[str, Any], said: str) -> None:
    with pytest.raises(DataError, match=said):
        PhonemeTask(n_channels=4, **{"width": 8, **options})


@pytest.mark.parametrize("name", DATA)
def test_a_data_option_out_of_range_is_named(name: str, tmp_path: Path) -> None:
    options: dict[str, Any] = {name: -1}
    with pytest.raises(DataError, match=rf"data\.{name}\): found -1, expected at least"):
        RecordingsData(str(tmp_path), **options)


@pytest.mark.parametrize("options", [{"max_steps": -2}, {"accumulate_grad_batches": 0}, {"val_check_interval": 0}])
def test_a_trainer_option_out_of_range_is_named(options: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(DataError, match=rf"trainer\.{next(iter(options))}\): found"):
        make_trainer(tmp_path, **options)
