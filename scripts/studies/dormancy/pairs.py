"""Pairs of networks that differ in their neurons alone: the runs, and the table that compares them."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple

from scripts.studies.dormancy.networks import Network, Training
from scripts.studies.dormancy.plan import Records, Run
from scripts.studies.dormancy.record import Record


class Claim(NamedTuple):
    """What a pair was to show.

    Attributes
    ----------
    saving : float
        Least share of the synaptic energy saved; per-neuron accounting, synapses that receive spikes.
    points : float
        Most points of accuracy lost.
    """

    saving: float
    points: float


def network_of(settings: Mapping[str, Any], seed: int) -> Network:
    """The network of a run's settings."""
    named = {field.name: settings[field.name] for field in fields(Network) if field.name in settings}
    return Network(**{**named, "training": Training(**settings["training"])}, seed=seed)


def train_and_measure(settings: Mapping[str, Any], seed: int, folder: Path) -> dict[str, Any]:
    """Train the network of the settings, unless it is there, and measure it."""
    from scripts.studies.dormancy.data import load
    from scripts.studies.dormancy.measuring import measure
    from scripts.studies.dormancy.training import trained

    network = network_of(settings, seed)
    net, seconds = trained(network, folder)
    return {**measure(net, load(network.data)), "training_seconds": round(seconds, 1)}


def network_run(name: str, network: Network) -> Run:
    """Train one network and measure it."""
    return Run(f"{name}-seed{network.seed}", network.seed, network.settings(), train_and_measure)


def pair_runs(name: str, *networks: Network) -> list[Run]:
    """The runs NAME-NEURON-seedN of networks that differ in their neurons."""
    return [network_run(f"{name}-{network.neuron}", network) for network in networks]


def saving(dormant: Record, lif: Record, accounting: str = "per-neuron", kind: str = "spikes") -> float:
    """Share of the LIF network's energy that the dormant one does without."""
    return 1 - dormant.findings["energy"][accounting][kind] / lif.findings["energy"]["none"][kind]


def factors(dormant: Record, lif: Record, accounting: str = "per-neuron") -> tuple[float, float, float]:
    """Ratio of the energies as a product: spikes that arrive, connections awake, and how the two meet."""
    mine, its = dormant.findings["energy"], lif.findings["energy"]
    rate = mine["none"]["spikes"] / its["none"]["spikes"]
    awake = dormant.findings["connections"][accounting] / dormant.findings["connections"]["none"]
    return rate, awake, mine[accounting]["spikes"] / its["none"]["spikes"] / rate / awake


def points(dormant: Record, lif: Record) -> float:
    """Accuracy on test gained, in points."""
    return 100 * (dormant.findings["accuracy"]["test"] - lif.findings["accuracy"]["test"])


def pairs_of(name: str, records: Records) -> list[tuple[Record, Record]]:
    """(LIF, dormant) of every seed that has both, by seed."""
    found = []
    for record in sorted(records.values(), key=lambda record: record.seed):
        twin = records.get(f"{name}-lif-seed{record.seed}")
        if record.name == f"{name}-dormant-seed{record.seed}" and twin is not None:
            found.append((twin, record))
    return found


def spread(values: Sequence[float], form: str = ".1f") -> str:
    """Mean, and the standard deviation over seeds where there are several.

    >>> spread([1.0, 2.0]), spread([1.0])
    ('1.5 ± 0.7', '1.0')
    """
    mean = format(statistics.mean(values), form)
    return f"{mean} ± {statistics.stdev(values):{form.lstrip('+')}}" if len(values) > 1 else mean


def percent(values: Sequence[float]) -> str:
    """`spread` of shares, in percent."""
    return spread([100 * value for value in values])


def pair_lines(name: str, records: Records, claim: Claim) -> list[str]:
    """Table of a pair: a row a seed, their means, what was claimed and whether it holds; how the saving comes about."""
    pairs = pairs_of(name, records)
    if not pairs:
        return ["No seed has both of its networks yet."]
    columns: list[list[float]] = [[] for _ in range(8)]
    for lif, dormant in pairs:
        row = [
            100 * lif.findings["accuracy"]["test"], 100 * dormant.findings["accuracy"]["test"], points(dormant, lif),
            *(100 * saving(dormant, lif, accounting) for accounting in ("per-neuron", "strict")),
            *(100 * saving(dormant, lif, kind=kind) for kind in ("analogue", "analogue_once")),
            100 * dormant.findings["awake"],
        ]  # fmt: skip
        for column, value in zip(columns, row, strict=True):
            column.append(value)
    lines = [
        "| seed | LIF, % | dormant, % | points | saved, per-neuron, % | saved, strict, % | with the analogue layer, % "
        "| counted once, % | neuron-steps awake, % |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    forms = [".2f", ".2f", "+.2f", ".1f", ".1f", ".1f", ".1f", ".1f"]
    for index, (_, dormant) in enumerate(pairs):
        cells = [format(column[index], form) for column, form in zip(columns, forms, strict=True)]
        lines.append(f"| {dormant.seed} | {' | '.join(cells)} |")
    if len(pairs) > 1:
        cells = [spread(column, form) for column, form in zip(columns, forms, strict=True)]
        lines.append(f"| mean ± sd of {len(pairs)} | {' | '.join(cells)} |")
    return [*lines, "", claim_line(claim, columns[2], columns[3]), "", *source_lines(pairs)]


def claim_line(claim: Claim, gained: Sequence[float], saved: Sequence[float]) -> str:
    """Whether the claim holds for the means over seeds, and by how much it does not."""
    saves, loses = statistics.mean(saved), -statistics.mean(gained)
    said = f"Wanted: at least {100 * claim.saving:.0f} % saved per-neuron, at most {claim.points:g} points lost. "
    missed = []
    if saves < 100 * claim.saving:
        missed.append(f"{100 * claim.saving - saves:.1f} % too little saved")
    if loses > claim.points:
        missed.append(f"{loses - claim.points:.2f} points too many lost")
    return said + (f"Missed: {', '.join(missed)}." if missed else "Both hold for the means.")


def source_lines(pairs: Sequence[tuple[Record, Record]]) -> list[str]:
    """Where the ratio of the energies comes from, and what the training cost."""
    parts = zip(*(factors(dormant, lif) for lif, dormant in pairs), strict=True)
    rate, awake, meeting = (spread(part, ".2f") for part in parts)
    energies = [spread([record.findings["energy"][kind]["spikes"] / 1e3 for record in of], ".1f") for of, kind in (
        ([lif for lif, _ in pairs], "none"), ([dormant for _, dormant in pairs], "per-neuron"),
    )]  # fmt: skip
    minutes = sum(record.findings["training_seconds"] for pair in pairs for record in pair) / 60
    dates = sorted(record.date for pair in pairs for record in pair)
    return [
        f"Synaptic energy of a test sample, analogue layer left out: LIF {energies[0]} nJ, dormant {energies[1]} nJ "
        f"(45 nm price list, 32-bit additions). The ratio as a product: {rate} (fewer spikes) x {awake} (connections "
        f"to neurons awake) x {meeting} (whether spikes come while their readers sleep). {minutes:.0f} minutes of "
        f"training, {dates[0]} to {dates[-1]}."
    ]
