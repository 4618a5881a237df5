"""Optimisers, parameter groups and learning-rate schedules of the recipes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import torch
from torch import nn

OPTIMIZERS: dict[str, type[torch.optim.Optimizer]] = {"adamw": torch.optim.AdamW, "adam": torch.optim.Adam}
"""AdamW decays weights beside the gradient; Adam adds the decay to it (plain L2), as the '24 recipe has it."""


def _straight(x: float) -> float:
    return 1 - x


def _half_cosine(x: float) -> float:
    return (1 + math.cos(math.pi * x)) / 2


def _flat(x: float) -> float:
    return 1.0


# Name -> (shape of the way up, shape of the way down), both functions from 0..1 to 1..0.
SCHEDULES: dict[str, tuple[Callable[[float], float], Callable[[float], float]]] = {
    "one_cycle": (_half_cosine, _half_cosine),
    "cosine": (_straight, _half_cosine),
    "linear": (_straight, _straight),
    "constant": (_straight, _flat),
}
"""Learning-rate schedules: a warm-up (a half cosine in "one_cycle", else straight) and then a way down."""


class LearningRateFactor:
    """Learning rate at an update, as a fraction of the peak. Called by ``torch.optim.lr_scheduler.LambdaLR``.

    Its state is plain numbers, so it is saved in a checkpoint and loads with ``weights_only=True``.

    Parameters
    ----------
    schedule
        A key of `SCHEDULES`.
    total
        Updates in all; the factor stays at ``end`` after them.
    warmup
        Updates on the way up when >= 1; a fraction of ``total`` when < 1.
    start, end
        Factor at the first update and at the last one.

    Examples
    --------
    >>> factor = LearningRateFactor("linear", total=10, warmup=0.2, start=0.0, end=0.0)
    >>> [round(factor(step), 3) for step in (0, 1, 2, 6, 10, 99)]
    [0.0, 0.5, 1.0, 0.5, 0.0, 0.0]
    """

    def __init__(self, schedule: str, total: int, warmup: float, start: float, end: float) -> None:
        if schedule not in SCHEDULES:
            raise ValueError(f"unknown schedule {schedule!r}; known are {', '.join(SCHEDULES)}")
        self.schedule, self.total, self.start, self.end = schedule, total, start, end
        self.warmup = round(warmup * total) if warmup < 1 else round(warmup)

    def __call__(self, step: int) -> float:
        """Factor at update ``step``, counted from 0."""
        up, down = SCHEDULES[self.schedule]
        if step < self.warmup:
            return 1 + (self.start - 1) * up(step / self.warmup)
        x = min(1.0, (step - self.warmup) / max(1, self.total - self.warmup))
        return self.end + (1 - self.end) * down(x)


def parameter_groups(
    named: Iterable[tuple[str, nn.Parameter]], weight_decay: float, *, decay_everything: bool = False
) -> list[dict]:
    """Two groups: decayed weights, and what decay would only harm.

    Biases, norms (everything with fewer than two dimensions) and the day layers, which start as the identity and must
    not be pulled to zero, are left alone, as in the '25 recipe.

    Parameters
    ----------
    named
        As ``module.named_parameters()`` gives them.
    weight_decay
        Of the first group.
    decay_everything
        One group with decay, as the '24 recipe has it.
    """
    decayed: list[nn.Parameter] = []
    spared: list[nn.Parameter] = []
    for name, parameter in named:
        if not parameter.requires_grad:
            continue
        decays = decay_everything or (parameter.ndim >= 2 and not _is_day(name))
        (decayed if decays else spared).append(parameter)
    groups = [{"params": decayed, "weight_decay": weight_decay}, {"params": spared, "weight_decay": 0.0}]
    return [group for group in groups if group["params"]]


def _is_day(name: str) -> bool:
    return any(part.startswith("day") for part in name.split("."))
