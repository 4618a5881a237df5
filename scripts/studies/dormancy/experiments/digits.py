"""Accuracy and energy on handwritten digits: the main claim, in minutes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from scripts.studies.dormancy.networks import Network, Training
from scripts.studies.dormancy.pairs import Claim, pair_lines, pair_runs
from scripts.studies.dormancy.plan import Experiment, Records, Run

STEPS = (4, 8)
EPOCHS = 30

CLAIMS = {4: Claim(saving=0.45, points=0.3), 8: Claim(saving=0.55, points=0.3)}
"""Steps -> what was to be shown."""


def digits(neuron: str, seed: int, steps: int = 4, **neuron_options: Any) -> Network:
    """The network of three convolutions that all experiments on digits share."""
    return Network("digits", "conv", neuron, Training(EPOCHS), {"steps": steps}, neuron_options, seed)


def runs(seeds: Sequence[int]) -> list[Run]:
    """Each pair at 4 and 8 steps."""
    return [
        run
        for steps in STEPS
        for seed in seeds
        for run in pair_runs(f"digits-T{steps}", digits("lif", seed, steps), digits("dormant", seed, steps))
    ]


def section(records: Records) -> list[str]:
    """A table for each number of steps."""
    lines = [
        "Data: scikit-learn's digits, 8x8 pixels; of each class 60 % train, 20 % validation, 20 % test, drawn with "
        "seed 0 (the set names no writers). Network: three 3x3 convolutions of 32, 64, 64 channels and strides "
        f"1, 2, 2, linear readout of all spikes; {EPOCHS} epochs of batches of 64, AdamW.",
        "",
    ]
    for steps in STEPS:
        lines += [f"### {steps} steps", "", *pair_lines(f"digits-T{steps}", records, CLAIMS[steps]), ""]
    return lines


EXPERIMENT = Experiment("Digits", (1, 2, 3, 4, 5), runs, section)
