"""Which numbers an option may be, so that a slip of the pen is named before any work starts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from neuro import DataError


class Limit(NamedTuple):
    """A range of numbers.

    Attributes
    ----------
    low, high : float
        Its ends.
    above, below : bool
        Whether the low or the high end itself is out of it.
    """

    low: float = -math.inf
    high: float = math.inf
    above: bool = False
    below: bool = False

    def holds(self, value: float) -> bool:
        """Whether a number is finite and in the range."""
        over = value > self.low if self.above else value >= self.low
        under = value < self.high if self.below else value <= self.high
        return math.isfinite(value) and over and under

    def __str__(self) -> str:
        ends = []
        if math.isfinite(self.low):
            ends.append(f"above {self.low:g}" if self.above else f"at least {self.low:g}")
        if math.isfinite(self.high):
            ends.append(f"below {self.high:g}" if self.below else f"at most {self.high:g}")
        return " and ".join(ends) or "a finite number"


AT_LEAST_0, AT_LEAST_1, POSITIVE = Limit(0), Limit(1), Limit(0, above=True)
FRACTION, PROPER_FRACTION = Limit(0, 1), Limit(0, 1, below=True)

MODEL: dict[str, Limit] = {
    "width": AT_LEAST_1,
    "day_dropout": PROPER_FRACTION,
    "input_dropout": PROPER_FRACTION,
    "patch": AT_LEAST_1,
    "lr": POSITIVE,
    "betas": PROPER_FRACTION,
    "eps": POSITIVE,
    "weight_decay": AT_LEAST_0,
    "warmup": AT_LEAST_0,
    "lr_start": AT_LEAST_0,
    "lr_end": AT_LEAST_0,
    "target_rate": Limit(0, 1, above=True),
    "rate_weight": AT_LEAST_0,
}
"""Of `PhonemeTask`."""

DATA: dict[str, Limit] = {
    "batch_size": AT_LEAST_1,
    "val_batch_size": AT_LEAST_1,
    "days_per_batch": AT_LEAST_1,
    "updates_per_epoch": AT_LEAST_1,
    "num_workers": AT_LEAST_0,
}
"""Of `RecordingsData`."""

TRAINER: dict[str, Limit] = {
    "max_steps": Limit(-1),
    "max_epochs": Limit(-1),
    "gradient_clip_val": AT_LEAST_0,
    "accumulate_grad_batches": AT_LEAST_1,
    "val_check_interval": POSITIVE,
    "log_every_n_steps": AT_LEAST_0,
}
"""Of `pytorch_lightning.Trainer`, which takes a few of these and fails later."""


def check_limits(where: str, limits: Mapping[str, Limit], options: Mapping[str, Any]) -> None:
    """Refuse the first option that is out of its range; None and what has no limit are passed over.

    Parameters
    ----------
    where : str
        Leads the name of the option in the message: model, data, trainer.
    limits, options : mapping
        By name. An option that is a list or tuple is checked number by number.

    Raises
    ------
    DataError
        Naming the option, what was found and what may stand there.

    Examples
    --------
    >>> check_limits("model", MODEL, {"lr": -1.0})
    Traceback (most recent call last):
    ...
    neuro.errors.DataError: option out of range (field model.lr): found -1.0, expected above 0
    """
    for name, limit in limits.items():
        value = options.get(name)
        numbers = value if isinstance(value, (list, tuple)) else [value]
        if any(isinstance(number, (int, float)) and not limit.holds(number) for number in numbers):
            raise DataError("option out of range", field=f"{where}.{name}", found=value, expected=str(limit))
