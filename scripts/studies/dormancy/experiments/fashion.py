"""Accuracy and energy of a residual convolutional network on the whole of Fashion-MNIST."""

from __future__ import annotations

from collections.abc import Sequence

from scripts.studies.dormancy.networks import Network, Training
from scripts.studies.dormancy.pairs import Claim, pair_lines, pair_runs
from scripts.studies.dormancy.plan import Experiment, Records, Run

TRAINING = Training(epochs=6, batch_size=128, flip=True)
OPTIONS = {"in_channels": 1, "classes": 10, "widths": [32, 64, 128], "blocks": [1, 1, 1], "stem": "7x7", "steps": 4}
CLAIM = Claim(saving=0.40, points=0.0)


def fashion(neuron: str, seed: int) -> Network:
    """The small MS-ResNet."""
    return Network("fashion", "ms_resnet", neuron, TRAINING, OPTIONS, {}, seed)


def runs(seeds: Sequence[int]) -> list[Run]:
    """A pair for each seed."""
    return [run for seed in seeds for run in pair_runs("fashion", fashion("lif", seed), fashion("dormant", seed))]


def section(records: Records) -> list[str]:
    """The table of pairs."""
    return [
        "Data: Fashion-MNIST, whole: 55,000 images train, 5,000 validation (of each class its share of the training "
        "files, seed 0), 10,000 test (the set's own). Network: MS-ResNet of three blocks with 32, 64, 128 channels; "
        "its stem of 7x7 convolution and max-pool, the one for large images, brings 28x28 pixels to 7x7 places. "
        f"4 steps; {TRAINING.epochs} epochs of batches of {TRAINING.batch_size}, mirrored at random, AdamW.",
        "",
        *pair_lines("fashion", records, CLAIM),
    ]


EXPERIMENT = Experiment("Fashion-MNIST", (1, 2), runs, section)
