"""What is measured of a trained network: accuracy, energy under every accounting, spikes, sleep."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from hardware import energy
from hardware.energy import ACCOUNTINGS, Counts
from scripts.studies.dormancy.data import Split
from scripts.studies.dormancy.training import batches, logits_of

BATCH = 250


@torch.no_grad()
def accuracy(net: nn.Module, split: Split) -> float:
    """Share of samples whose class has the largest mean logit."""
    right = sum(int((logits_of(net, batch).argmax(1) == batch.y).sum()) for batch in batches(split, BATCH))
    return right / len(split.y)


def counted(net: nn.Module, split: Split, *, spiking_input: bool = False) -> Counts:
    """Operations on every sample of a split, summed."""
    total = []
    for batch in batches(split, BATCH):
        if batch.lengths is None:
            counts = energy.count(net, batch.x, spiking_input=spiking_input)
        else:
            counts = energy.count(net, batch.x.transpose(0, 1), lengths=batch.lengths, spiking_input=spiking_input)
        total.append(counts.pooled())
    return sum(total[1:], total[0]).pooled()


def measure(net: nn.Module, splits: dict[str, Split], *, spiking_input: bool = False) -> dict[str, Any]:
    """Everything a record keeps of a trained network.

    Returns
    -------
    dict
        ``accuracy`` {"val", "test"}; ``samples`` of test; on the samples of test ``energy`` and the rest of
        `energy_findings`.
    """
    return {
        "accuracy": {name: accuracy(net, splits[name]) for name in ("val", "test")},
        "samples": len(splits["test"].y),
        **energy_findings(counted(net, splits["test"], spiking_input=spiking_input)),
    }


def energy_findings(counts: Counts) -> dict[str, Any]:
    """What a record keeps of the counts.

    Returns
    -------
    dict
        ``energy`` {accounting: {"spikes", "analogue", "analogue_once", "neurons"}} in pJ a sample at the 45 nm prices:
        synapses that receive spikes; with the analogue first layer, counted at every step or once for a static image;
        with that layer at every step and the neurons' updates. ``connections``
        {accounting: pJ} without skipping any zero of the input (spiking layers); ``awake``, share of neuron-steps;
        ``rates`` {neuron: spikes a neuron and step}; ``rate`` of all neurons together.
    """
    kinds: dict[str, dict[str, Any]] = {
        "spikes": {},
        "analogue": {"include_analogue": True},
        "analogue_once": {"include_analogue": True, "static": "once"},
        "neurons": {"include_analogue": True, "include_neurons": True},
    }
    steps = sum(int(neuron.steps.sum()) for neuron in counts.neurons.values())
    price = energy.load_prices()["AC"]
    spiking = [layer for layer in counts.layers.values() if layer.operation == "AC"]
    return {
        "energy": {a: {kind: counts.energy(a, **options) for kind, options in kinds.items()} for a in ACCOUNTINGS},
        "connections": {
            a: price * sum(int(layer.dense[a].sum()) for layer in spiking) / counts.samples for a in ACCOUNTINGS
        },
        "awake": sum(int(neuron.awake.sum()) for neuron in counts.neurons.values()) / steps,
        "rate": sum(int(neuron.spikes.sum()) for neuron in counts.neurons.values()) / steps,
        "rates": {name: int(of.spikes.sum()) / int(of.steps.sum()) for name, of in counts.neurons.items()},
    }
