"""Membranes of the LIF network: how many neurons could sleep, before any training for it?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scripts.studies.dormancy.experiments.digits import STEPS, digits
from scripts.studies.dormancy.pairs import network_of, percent
from scripts.studies.dormancy.plan import Experiment, Records, Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LEVELS = (0.0, -0.05, -0.2, -0.5, -1.0)
EDGES = [round(-4 + 0.1 * k, 1) for k in range(51)]
"""Of the histogram; what lies outside is counted in its first and last bin."""


def take(settings: Mapping[str, Any], seed: int, folder: Path) -> dict[str, Any]:
    """Census of the trained LIF network of the settings.

    Returns
    -------
    dict
        ``below`` {neurons or "all": share of neuron-steps below each of `LEVELS`}; ``histogram`` {neurons: share of
        neuron-steps in each bin of `EDGES`}. The first step, where every membrane is 0, is left out.
    """
    import torch

    from scripts.studies.dormancy.data import load
    from scripts.studies.dormancy.training import trained
    from scripts.studies.dormancy.watching import membranes, watch

    network = network_of(settings, seed)
    net, _ = trained(network, folder)
    found = {name: v[1:].flatten() for name, v in watch(net, load(network.data)["test"], membranes).items()}
    edges = torch.tensor(EDGES)
    counts = {name: torch.histogram(v.clamp(EDGES[0], EDGES[-1]), edges).hist for name, v in found.items()}
    found["all"] = torch.cat([*found.values()])
    return {
        "below": {name: [float((v < level).double().mean()) for level in LEVELS] for name, v in found.items()},
        "histogram": {name: (count / count.sum()).tolist() for name, count in counts.items()},
    }


def runs(seeds: Sequence[int]) -> list[Run]:
    """The census at 4 and 8 steps."""
    found = [(steps, digits("lif", seed, steps)) for seed in seeds for steps in STEPS]
    return [
        Run(f"census-T{steps}-seed{lif.seed}", lif.seed, {**lif.settings(), "census": 1}, take) for steps, lif in found
    ]


def _of(records: Records, steps: int) -> list[dict[str, Any]]:
    return [record.findings for name, record in records.items() if name.startswith(f"census-T{steps}-")]


def section(records: Records) -> list[str]:
    """Shares below each level, by layer."""
    lines = [
        "Trained digits networks of plain LIF neurons, test samples: share of neuron-steps, in percent, at which the "
        "membrane that a step finds lies below a level. The first step, where all are at rest, is left out.",
        "",
        f"| steps | neurons | seeds | {' | '.join(f'below {level:g}' for level in LEVELS)} |",
        f"| ---: | --- | ---: | {' | '.join('---:' for _ in LEVELS)} |",
    ]
    for steps in STEPS:
        if found := _of(records, steps):
            for name in found[0]["below"]:
                columns = zip(*(of["below"][name] for of in found), strict=True)
                lines.append(f"| {steps} | {name} | {len(found)} | {' | '.join(map(percent, columns))} |")
    return lines


def draw(records: Records) -> Figure | None:
    """Histogram of the membranes of each layer, at the fewest steps; mean over seeds."""
    from scripts.plots.style import COLOURS, GREY, new_figure, tidy

    found = _of(records, STEPS[0])
    if not found:
        return None
    source = f"scikit-learn digits, test, {STEPS[0]} steps"
    figure = new_figure(7.0, 3.6, "Membranes of plain LIF neurons", source)
    axes = figure.subplots()
    for colour, name in zip(COLOURS, found[0]["histogram"], strict=False):
        shares = [sum(column) / len(found) for column in zip(*(of["histogram"][name] for of in found), strict=True)]
        axes.stairs([100 * share for share in shares], EDGES, color=colour, label=name, linewidth=1.3)
    axes.axvline(-0.05, color=GREY, linestyle="--", linewidth=1, label="dormancy threshold -0.05")
    tidy(axes, x="membrane that a step finds (spike threshold 1)", y="share of neuron-steps (%)")
    axes.legend(frameon=False, fontsize=8)
    return figure


EXPERIMENT = Experiment("Census of membranes", (1, 2, 3), runs, section, {"membranes": draw})
