"""Exact counts of operations on real forward passes, and their price."""

from hardware.energy.arrivals import ARRIVALS, Arrivals
from hardware.energy.counting import count
from hardware.energy.counts import ACCOUNTINGS, Counts, Decomposition, LayerCounts, NeuronCounts, Tally
from hardware.energy.prices import Price, PriceList, load_prices

__all__ = [
    "ACCOUNTINGS",
    "ARRIVALS",
    "Arrivals",
    "Counts",
    "Decomposition",
    "LayerCounts",
    "NeuronCounts",
    "Price",
    "PriceList",
    "Tally",
    "count",
    "load_prices",
]
