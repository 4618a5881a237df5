"""Accuracy and energy against the dormancy threshold; sleep that was trained, put on afterwards, or trained blindly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scripts.studies.dormancy.experiments.digits import digits
from scripts.studies.dormancy.pairs import network_of, network_run, percent, points, saving, spread
from scripts.studies.dormancy.plan import Experiment, Records, Run
from scripts.studies.dormancy.record import Record

if TYPE_CHECKING:
    from matplotlib.figure import Figure

THRESHOLDS = (-0.05, -0.2, -0.5, -1.0)
KINDS = {
    "trained": "trained",
    "blind": "trained, no gradient through the gate",
    "gated": "LIF, gated after training",
}
"""Kind -> what it is called."""


def gate_and_measure(settings: Mapping[str, Any], seed: int, folder: Path) -> dict[str, Any]:
    """Put dormancy on the neurons of the trained LIF network of the settings, and measure that."""
    import snn
    from scripts.studies.dormancy.data import load
    from scripts.studies.dormancy.measuring import measure
    from scripts.studies.dormancy.networks import replace_neurons
    from scripts.studies.dormancy.training import trained

    network = network_of(settings, seed)
    net, _ = trained(network, folder)

    def gated(name: str, neuron: Any) -> snn.DormantLIF:
        return snn.DormantLIF(
            beta=neuron.beta, threshold=neuron.threshold, dormancy_threshold=settings["gated_at"],
            reset_mechanism=neuron.reset_mechanism,
        )  # fmt: skip

    return measure(replace_neurons(net, gated).eval(), load(network.data))


def runs(seeds: Sequence[int]) -> list[Run]:
    """The LIF network, and each kind at each threshold."""
    found = []
    for seed in seeds:
        lif = digits("lif", seed)
        found.append(network_run("thresholds-lif", lif))
        for threshold in THRESHOLDS:
            trained = digits("dormant", seed, dormancy_threshold=threshold)
            blind = digits("dormant", seed, dormancy_threshold=threshold, detach_gate=True)
            settings = {**lif.settings(), "gated_at": threshold}
            found += [
                network_run(f"thresholds-trained{threshold:g}", trained),
                network_run(f"thresholds-blind{threshold:g}", blind),
                Run(f"thresholds-gated{threshold:g}-seed{seed}", seed, settings, gate_and_measure, stage=1),
            ]
    return found


def compared(records: Records) -> dict[tuple[str, float], list[tuple[Record, Record]]]:
    """(Kind, threshold) -> (LIF, the other) of every seed that has both."""
    found = {}
    for kind in KINDS:
        for threshold in THRESHOLDS:
            names = [r.name for r in records.values() if r.name.startswith(f"thresholds-{kind}{threshold:g}-seed")]
            twins = [(records.get(f"thresholds-lif-seed{records[name].seed}"), records[name]) for name in sorted(names)]
            if pairs := [(lif, other) for lif, other in twins if lif is not None]:
                found[kind, threshold] = pairs
    return found


def section(records: Records) -> list[str]:
    """A table over kinds and thresholds."""
    lines = [
        "The digits network at 4 steps. Trained with the gate at each dormancy threshold; trained so, but with no "
        "gradient through the gate (its surrogate detached); and the trained LIF network with the gate put on "
        "afterwards, without any training: is sleep learned, or there for the taking?",
        "",
        "| | dormancy threshold | seeds | accuracy, % | points against LIF | saved, per-neuron, % | saved, strict, % |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for (kind, threshold), pairs in compared(records).items():
        accuracy = spread([100 * other.findings["accuracy"]["test"] for _, other in pairs], ".2f")
        gained = spread([points(other, lif) for lif, other in pairs], "+.2f")
        saved = [percent([saving(other, lif, how) for lif, other in pairs]) for how in ("per-neuron", "strict")]
        lines.append(
            f"| {KINDS[kind]} | {threshold:g} | {len(pairs)} | {accuracy} | {gained} | {saved[0]} | {saved[1]} |"
        )
    return lines


def draw(records: Records) -> Figure | None:
    """Points of accuracy gained against energy saved, a line for each kind."""
    from scripts.plots.style import COLOURS, GREY, new_figure, tidy

    found = compared(records)
    if not found:
        return None
    figure = new_figure(7.5, 3.8, "Sleep, trained or put on afterwards", "scikit-learn digits, test, 4 steps")
    axes = figure.subplots()
    for colour, (kind, title) in zip(COLOURS, KINDS.items(), strict=False):
        marks = []
        for threshold in THRESHOLDS:
            if pairs := found.get((kind, threshold)):
                saved = sum(saving(other, lif) for lif, other in pairs) / len(pairs)
                marks.append((100 * saved, sum(points(other, lif) for lif, other in pairs) / len(pairs), threshold))
        axes.plot([m[0] for m in marks], [m[1] for m in marks], "o-", color=colour, label=title, linewidth=1.2)
        for x, y, threshold in marks:
            axes.annotate(f"{threshold:g}", (x, y), textcoords="offset points", xytext=(4, 4), fontsize=7, color=GREY)
    axes.axhline(0, color=GREY, linewidth=0.8, linestyle="--")
    tidy(axes, x="synaptic energy saved, per-neuron (%)", y="accuracy against LIF (points)")
    axes.legend(frameon=False, fontsize=8)
    return figure


EXPERIMENT = Experiment("Dormancy threshold, and whether sleep is learned", (1, 2, 3), runs, section, {"all": draw})
