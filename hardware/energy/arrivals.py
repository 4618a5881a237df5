"""How many synaptic events arrive at each output of a layer: one function for each kind of layer.

A layer counts its own events when it runs with 1 in place of every input and weight that is not zero. Sums of zeros
and ones are exact in float32 up to 2^24 terms, in any order. Convolution algorithms that transform their input are off
by far less than one half, so rounding makes them exact too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from snn import FixedDelayLinear, functional
from snn.residual import CurrentShortcut


class Arrivals(NamedTuple):
    """Events of one call of a layer.

    Attributes
    ----------
    received : Tensor
        What the layer was given.
    events : Tensor (..., *outputs), float32
        Connections of each output that deliver something: weight and input both differ from zero.
    fan_in : Tensor (*outputs), float32
        Connections of each output, zero weights among them; places in the padding of an image are no connections.
    """

    received: Tensor
    events: Tensor
    fan_in: Tensor


def linear(layer: nn.Linear, inputs: tuple[Any, ...]) -> Arrivals:
    """Of `nn.Linear`: one output for each feature."""
    x = inputs[0]
    fan_in = torch.full((layer.out_features,), float(layer.in_features), device=x.device)
    return Arrivals(x, F.linear(_present(x), _present(layer.weight)), fan_in)


def conv2d(layer: nn.Conv2d, inputs: tuple[Any, ...]) -> Arrivals:
    """Of `nn.Conv2d` with zero padding: one output for each channel and place.

    Raises
    ------
    ValueError
        Another padding, or an image without a batch axis.
    """
    x = inputs[0]
    if layer.padding_mode != "zeros" or x.dim() != 4:
        raise ValueError(
            "hardware.energy: a Conv2d is counted with zero padding on (N, C, H, W); "
            f"found padding_mode {layer.padding_mode!r} on {tuple(x.shape)}"
        )

    def run(x: Tensor, weight: Tensor) -> Tensor:
        return F.conv2d(x, weight, None, layer.stride, layer.padding, layer.dilation, layer.groups).round_()

    everything = run(x.new_ones((1, *x.shape[1:]), dtype=torch.float32), _present(torch.ones_like(layer.weight)))
    return Arrivals(x, run(_present(x), _present(layer.weight)), everything[0])


def fixed_delay_linear(layer: FixedDelayLinear, inputs: tuple[Any, ...]) -> Arrivals:
    """Of `FixedDelayLinear`: an event is counted at the step at which it arrives, not at which it was sent."""
    x, state = (*inputs, None)[:2]
    history = None if state is None else _present(state)
    events, _ = functional.fixed_delay_linear(
        _present(x), _present(layer.weight), layer.delay, None, history, max_delay=layer.max_delay
    )
    fan_in = torch.full((layer.out_features,), float(layer.in_features), device=x.device)
    return Arrivals(x, events.round_(), fan_in)


def current_shortcut(layer: CurrentShortcut, inputs: tuple[Any, ...]) -> Arrivals:
    """Of the shortcut of a `ResidualSNN` that carries spikes as current: one connection for each output."""
    _, _, spikes, history, delay = inputs
    steps = spikes.shape[0]
    before = spikes.new_zeros(delay, *spikes.shape[1:]) if history is None else history[history.shape[0] - delay :]
    carried = _present(torch.cat([before.to(spikes.dtype), spikes])[:steps])
    return Arrivals(spikes, carried * _present(layer.gain), torch.ones(layer.gain.shape, device=spikes.device))


def _present(x: Tensor) -> Tensor:
    return (x != 0).to(torch.float32)


ARRIVALS: dict[type[nn.Module], Callable[[Any, tuple[Any, ...]], Arrivals]] = {
    nn.Linear: linear,
    nn.Conv2d: conv2d,
    FixedDelayLinear: fixed_delay_linear,
    CurrentShortcut: current_shortcut,
}
"""Kind of layer -> its arrivals from (layer, positional inputs of its forward). Subclasses may compute something else,
so they need an entry of their own."""
