"""Who sleeps, and whether that depends on the input: dormancy is no static pruning."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from scripts.studies.dormancy.experiments.digits import STEPS, digits
from scripts.studies.dormancy.pairs import network_of, percent
from scripts.studies.dormancy.plan import Experiment, Records, Run


def take(settings: Mapping[str, Any], seed: int, folder: Path) -> dict[str, Any]:
    """Statistics of the gates of the trained dormant network of the settings.

    Returns
    -------
    dict
        {neurons or "all": {"asleep", "always", "never", "between", "classes"}}. Of the share q of samples in which a
        neuron sleeps at the last step: its mean; the share of neurons with q 1; with q 0; the mean of q (1 - q), the
        variance over samples, as a share of what it would be were all neurons alike; and the share of that variance
        that lies between the means of the classes.
    """
    import torch

    from scripts.studies.dormancy.data import load
    from scripts.studies.dormancy.training import trained
    from scripts.studies.dormancy.watching import gates, watch

    network = network_of(settings, seed)
    net, _ = trained(network, folder)
    test = load(network.data)["test"]
    asleep = {name: ~awake[-1] for name, awake in watch(net, test, gates).items()}
    asleep["all"] = torch.cat([*asleep.values()], 1)
    classes = [test.y == label for label in test.y.unique()]
    found = {}
    for name, maps in asleep.items():
        q = maps.double().mean(0)
        within = sum(float(of.double().mean()) * _variance(maps[of].double().mean(0)) for of in classes)
        variance, alike = _variance(q), float(q.mean() * (1 - q.mean()))
        found[name] = {
            "asleep": float(q.mean()),
            "always": float((q == 1).double().mean()),
            "never": float((q == 0).double().mean()),
            "between": variance / alike if alike else 0.0,
            "classes": 1 - within / variance if variance else 0.0,
        }
    return found


def _variance(q: Any) -> float:
    return float((q * (1 - q)).mean())


def runs(seeds: Sequence[int]) -> list[Run]:
    """The maps at 4 and 8 steps."""
    found = [(steps, digits("dormant", seed, steps)) for seed in seeds for steps in STEPS]
    return [Run(f"maps-T{steps}-seed{net.seed}", net.seed, {**net.settings(), "maps": 1}, take) for steps, net in found]


def section(records: Records) -> list[str]:
    """A row for each layer."""
    lines = [
        "Trained dormant digits networks, test samples, gates at the last step. A static pruning would have every "
        "neuron always or never asleep and no variance over samples. The variance is given as a share of what it "
        "would be if all neurons slept equally often, each by chance; \"by class\" is the part of it that lies "
        "between the means of the ten digits.",
        "",
        "| steps | neurons | seeds | asleep, % | always, % of neurons | never, % of neurons | variance over samples, % "
        "| by class, % |",
        "| ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]  # fmt: skip
    for steps in STEPS:
        found = [record.findings for name, record in records.items() if name.startswith(f"maps-T{steps}-")]
        for name in found[0] if found else ():
            columns = zip(*(of[name].values() for of in found), strict=True)
            lines.append(f"| {steps} | {name} | {len(found)} | {' | '.join(map(percent, columns))} |")
    return lines


EXPERIMENT = Experiment("Dormancy maps", (1, 2, 3), runs, section)
