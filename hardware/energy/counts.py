"""What was counted: operations of each layer and steps of each neuron, sample by sample, and their price."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import torch
from torch import Tensor

from hardware.energy.prices import PriceList, load_prices
from snn import Synapses

ACCOUNTINGS = ("none", "per-neuron", "strict")
"""What dormancy saves. "none": nothing. "per-neuron": the sum into a neuron that is dormant. "strict": the sum into a
place all of whose readers are dormant; a residual stream carries it to several."""

NOT_PRICED = "residual additions, norm shifts and biases, memory traffic, one bit a neuron for its dormancy"

STATIC = ("per-step", "once")


@dataclass(frozen=True)
class Tally:
    """One number a sample under each accounting.

    Parameters
    ----------
    none, per_neuron, strict : Tensor (S,), int64
    """

    none: Tensor
    per_neuron: Tensor
    strict: Tensor

    def __getitem__(self, accounting: str) -> Tensor:
        """By the accounting's name; ValueError for an unknown one."""
        _known("accounting", accounting, ACCOUNTINGS)
        return getattr(self, accounting.replace("-", "_"))


@dataclass(frozen=True)
class LayerCounts:
    """Operations of one weighted layer.

    Parameters
    ----------
    synapses : Synapses
        The layer and its place in the network.
    operation : str
        "AC" (the input is spikes) or "MAC" (analogue).
    events : Tally
        Synaptic events that arrive: `sum_t sum_j sum_{i in N(j)} [w_ji != 0 and x_i[t] != 0]`; under the accountings
        that save, at the awake places alone.
    events_once : Tally
        The same for hardware that sums a static input once and keeps the sum: counted where it is needed at any step.
        Equal to `events` where the input has a time axis.
    dense : Tally
        Operations of a machine that skips no zeros, neither inputs nor weights: `sum_t sum_j |N(j)|`, padding left out.
    """

    synapses: Synapses
    operation: str
    events: Tally
    events_once: Tally
    dense: Tally


@dataclass(frozen=True)
class NeuronCounts:
    """Steps of one layer of neurons.

    Parameters
    ----------
    steps, awake, spikes : Tensor (S,), int64
        Neurons times steps; those in which the neuron was not dormant; spikes.
    """

    steps: Tensor
    awake: Tensor
    spikes: Tensor


class Decomposition(NamedTuple):
    """`ratio = rate * active * interaction`: the energy relative to a baseline, and what it is made of.

    Attributes
    ----------
    ratio : float
        E/E0: synaptic energy over that of the baseline, which skips zeros of its input and nothing else.
    rate : float
        What the change of input activity alone does: E without dormancy over E0.
    active : float
        What dormancy alone does: the share of all connections, weighted by price, whose target is awake.
    interaction : float
        1 where activity arrives at awake and dormant neurons alike; below 1 where more of it meets dormant ones.
    """

    ratio: float
    rate: float
    active: float
    interaction: float


@dataclass(frozen=True)
class Counts:
    """Operations of a network on real samples; counts of several batches add up, `a + b` or `sum(...)`.

    Parameters
    ----------
    layers : dict of str to LayerCounts
        By the layer's name.
    neurons : dict of str to NeuronCounts
        By the neuron's name.
    samples : int
        How many samples were counted. Tensors hold one number for each, or their sum after `pooled`.
    """

    layers: dict[str, LayerCounts]
    neurons: dict[str, NeuronCounts]
    samples: int

    def __add__(self, other: Counts) -> Counts:
        """The samples of both, one after the other; ValueError where they are not of one network."""
        if not isinstance(other, Counts):
            raise TypeError(f"Counts add up with Counts; found {type(other).__name__}")
        mine, theirs = (
            {name: (layer.synapses, layer.operation) for name, layer in counts.layers.items()}
            for counts in (self, other)
        )
        if mine != theirs or list(self.neurons) != list(other.neurons):
            raise ValueError("Counts: only counts of the same network, with the same kind of input, add up")
        return self._joined(other, lambda a, b: torch.cat([a, b]), self.samples + other.samples)

    def __radd__(self, other: Any) -> Counts:
        """So that `sum` works, which starts from 0."""
        return self if isinstance(other, int) and other == 0 else self + other

    def pooled(self) -> Counts:
        """The same with all samples summed into one number: constant memory, however many batches are added."""
        return self._joined(self, lambda a, _: a.sum(0, keepdim=True), self.samples)

    def _joined(self, other: Counts, join: Callable[[Tensor, Tensor], Tensor], samples: int) -> Counts:
        def tally(a: Tally, b: Tally) -> Tally:
            return Tally(*(join(a[accounting], b[accounting]) for accounting in ACCOUNTINGS))

        layers = {
            name: replace(
                a, events=tally(a.events, b.events), events_once=tally(a.events_once, b.events_once),
                dense=tally(a.dense, b.dense),
            )
            for (name, a), b in zip(self.layers.items(), other.layers.values(), strict=True)
        }  # fmt: skip
        neurons = {
            name: NeuronCounts(join(a.steps, b.steps), join(a.awake, b.awake), join(a.spikes, b.spikes))
            for (name, a), b in zip(self.neurons.items(), other.neurons.values(), strict=True)
        }
        return Counts(layers, neurons, samples)

    def energy_per_sample(
        self,
        accounting: str = "per-neuron",
        *,
        include_analogue: bool = False,
        include_neurons: bool = False,
        static: str = "per-step",
        prices: PriceList | None = None,
    ) -> Tensor:
        """Energy of each sample.

        Parameters
        ----------
        accounting : str
            One of `ACCOUNTINGS`: what dormancy saves.
        include_analogue : bool
            Add the layers whose input is analogue, at the price of a MAC.
        include_neurons : bool
            Add the updates of the neurons: of all under "none", else of those awake.
        static : str
            A layer that receives a static image counts "per-step" (as published accountings do) or "once".
        prices : PriceList, optional
            `load_prices()` when absent: 45 nm, fp32.

        Returns
        -------
        Tensor (S,), float64
            In pJ. Not in it: see `NOT_PRICED`.

        Raises
        ------
        ValueError
            An unknown accounting or convention, or an operation without a price.
        """
        _known("static", static, STATIC)
        prices = load_prices() if prices is None else prices
        total = self._synaptic(
            "events" if static == "per-step" else "events_once", accounting, include_analogue, prices
        )
        if include_neurons:
            for neuron in self.neurons.values():
                total = total + prices["neuron"] * (neuron.steps if accounting == "none" else neuron.awake)
        return total

    def energy(self, accounting: str = "per-neuron", **options: Any) -> float:
        """Mean energy of a sample, in pJ; arguments as of `energy_per_sample`."""
        return float(self.energy_per_sample(accounting, **options).sum()) / self.samples

    def relative_to(
        self,
        baseline: Counts,
        accounting: str = "per-neuron",
        *,
        include_analogue: bool = False,
        prices: PriceList | None = None,
    ) -> Decomposition:
        """Synaptic energy relative to a baseline's that skips zeros of its input alone.

        Parameters
        ----------
        baseline : Counts
            Of the other network on the same samples, for instance one of plain LIF neurons.
        accounting, include_analogue, prices
            As of `energy_per_sample`; static input per step.

        Returns
        -------
        Decomposition
            Not-a-number where a factor is zero by zero.
        """
        prices = load_prices() if prices is None else prices

        def mean(counts: Counts, field: str, accounting: str) -> float:
            return float(counts._synaptic(field, accounting, include_analogue, prices).sum()) / counts.samples

        reference = mean(baseline, "events", "none")
        saving, silent = mean(self, "events", accounting), mean(self, "events", "none")
        active = _over(mean(self, "dense", accounting), mean(self, "dense", "none"))
        return Decomposition(
            ratio=_over(saving, reference),
            rate=_over(silent, reference),
            active=active,
            interaction=_over(_over(saving, silent), active),
        )

    def _synaptic(self, field: str, accounting: str, include_analogue: bool, prices: PriceList) -> Tensor:
        _known("accounting", accounting, ACCOUNTINGS)
        size = next((layer.events.none.shape[0] for layer in self.layers.values()), self.samples)
        total = torch.zeros(size, dtype=torch.float64)
        for layer in self.layers.values():
            if layer.operation != "MAC" or include_analogue:
                total = total + prices[layer.operation] * getattr(layer, field)[accounting]
        return total

    def rows(self) -> list[dict[str, Any]]:
        """One dict a layer, for CSV or JSON: means over samples of events, and of dense operations."""
        return [
            {
                "layer": name,
                "source": layer.synapses.source,
                "target": layer.synapses.target,
                "operation": layer.operation,
                **{f"events {a}": float(layer.events[a].sum()) / self.samples for a in ACCOUNTINGS},
                **{f"events once {a}": float(layer.events_once[a].sum()) / self.samples for a in ACCOUNTINGS},
                "dense": float(layer.dense.none.sum()) / self.samples,
            }
            for name, layer in self.layers.items()
        ]

    def __str__(self) -> str:
        """A table of the means over samples, with the energy under every accounting."""
        prices = load_prices()
        head = ["layer", "op", *ACCOUNTINGS, "dense"]
        lines = [[row["layer"], row["operation"], *(f"{row[f'events {a}']:,.1f}" for a in ACCOUNTINGS),
                  f"{row['dense']:,.0f}"] for row in self.rows()]  # fmt: skip
        for label, analogue, neurons in (
            ("spikes", False, False),
            ("+ analogue", True, False),
            ("+ neurons", True, True),
        ):
            energies = [
                self.energy(a, include_analogue=analogue, include_neurons=neurons, prices=prices) for a in ACCOUNTINGS
            ]
            lines.append([f"{label}, {prices.unit}", "", *(f"{energy:,.1f}" for energy in energies), ""])
        widths = [max(len(line[column]) for line in [head, *lines]) for column in range(len(head))]

        def shown(line: list[str]) -> str:
            cells = [
                cell.ljust(w) if c < 2 else cell.rjust(w) for c, (cell, w) in enumerate(zip(line, widths, strict=True))
            ]
            return "  ".join(cells).rstrip()

        note = f"means of {self.samples} samples; prices {prices.name}; static input per step; not priced: {NOT_PRICED}"
        return "\n".join([shown(head), *(shown(line) for line in lines), note])


def _over(a: float, b: float) -> float:
    return a / b if b else float("nan")


def _known(what: str, found: str, names: tuple[str, ...]) -> None:
    if found not in names:
        raise ValueError(f"{what} must be one of {', '.join(names)}; found {found!r}")
