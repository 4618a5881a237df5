"""Price lists: those that ship are whole, and what is wrong with one's own is named."""

import pytest
import torch

from hardware import energy
from hardware.energy import count
from snn import ConvSNN


def test_every_list_that_ships_is_whole():
    for path in energy.prices.FOLDER.glob("*.toml"):
        prices = energy.load_prices(path.stem)
        assert {"AC", "MAC", "neuron"} <= set(prices.prices)
        assert all(price.source and price.kind in ("published", "derived") for price in prices.prices.values())


def test_a_file_of_ones_own(tmp_path):
    own = tmp_path / "own.toml"
    text = (energy.prices.FOLDER / "45nm.toml").read_text()
    own.write_text(text.replace("value = 0.9", "value = 9"))
    assert energy.load_prices(own)["AC"] == 9
    for old, new, says in (
        ('unit = "pJ"', 'unit = "nJ"', "unit must be 'pJ'; found 'nJ'"),
        ("source = ", "origin = ", r"prices.AC.source must be a str, not empty; found None"),
        ("value = 0.9", "value = -1", "prices.AC.value must be a number of 0 or more; found -1"),
        ("value = 0.9", 'value = "0.9"', "prices.AC.value must be a number"),
        ("[prices.AC]", "[prices.AC", "own.toml: not TOML"),
    ):
        own.write_text(text.replace(old, new))
        with pytest.raises(ValueError, match=says):
            energy.load_prices(own)
    with pytest.raises(ValueError, match="no price list '7nm': neither a file nor one of 45nm"):
        energy.load_prices("7nm")


def test_a_missing_price_is_named():
    prices = energy.load_prices()
    del prices.prices["neuron"]
    counts = count(ConvSNN(widths=(2, 2, 2)), torch.rand(1, 1, 8, 8))
    with pytest.raises(ValueError, match="no price for 'neuron'"):
        counts.energy(include_neurons=True, prices=prices)
