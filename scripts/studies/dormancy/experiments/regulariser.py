"""With a price on spikes beside dormancy: do the savings multiply?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from scripts.studies.dormancy.experiments.digits import digits
from scripts.studies.dormancy.networks import Network
from scripts.studies.dormancy.pairs import network_run, percent, points, saving, spread
from scripts.studies.dormancy.plan import Experiment, Records, Run

WEIGHTS = (0.0, 0.3, 1.0, 3.0)
"""What the loss adds for the mean spikes of a neuron and step."""


def _priced(neuron: str, seed: int, weight: float) -> Network:
    network = digits(neuron, seed)
    return replace(network, training=replace(network.training, activity_weight=weight))


def runs(seeds: Sequence[int]) -> list[Run]:
    """Both neurons at every weight."""
    return [
        network_run(f"regulariser-{neuron}{weight:g}", _priced(neuron, seed, weight))
        for seed in seeds
        for weight in WEIGHTS
        for neuron in ("lif", "dormant")
    ]


def section(records: Records) -> list[str]:
    """Savings of the price, of dormancy, of both, and their product."""
    lines = [
        "The digits network at 4 steps, with this weight times the mean spikes of a neuron and step added to the loss. "
        "Savings against the LIF network without a price, per-neuron; \"product\" is what both would save if each kept "
        "its factor.",
        "",
        "| weight | seeds | LIF, % | dormant, % | points | price alone saves, % | dormancy alone, % | both, % "
        "| product, % |",
        "| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]  # fmt: skip
    for weight in WEIGHTS:
        rows = []
        for seed in sorted({record.seed for record in records.values()}):
            names = [f"regulariser-{n}{w:g}-seed{seed}" for w in (0.0, weight) for n in ("lif", "dormant")]
            if all(name in records for name in names):
                free, asleep, priced, both = (records[name] for name in names)
                alone = saving(priced, free, "none"), saving(asleep, free)
                accuracies = [100 * of.findings["accuracy"]["test"] for of in (priced, both)]
                product = 1 - (1 - alone[0]) * (1 - alone[1])
                rows.append((*accuracies, points(both, priced), *alone, saving(both, free), product))
        if rows:
            lif, dormant, gained, *saved = zip(*rows, strict=True)
            cells = [spread(lif, ".2f"), spread(dormant, ".2f"), spread(gained, "+.2f"), *map(percent, saved)]
            lines.append(f"| {weight:g} | {len(rows)} | {' | '.join(cells)} |")
    return lines


EXPERIMENT = Experiment("With an activity regulariser", (1, 2, 3), runs, section)
