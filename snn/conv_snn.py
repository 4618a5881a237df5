"""A plain convolutional spiking network for small images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor, nn

from snn.conv import (
    SPATIAL_READOUTS,
    START_SPREAD,
    ConvNorm,
    NeuronMaker,
    check_images,
    default_neuron,
    over_time,
)
from snn.residual import fire
from snn.wiring import Synapses


class ConvLayer(nn.Module):
    """A convolution with its norm, and the neurons it drives, one for each of its outputs.

    Parameters
    ----------
    conv, neuron : Module
    """

    def __init__(self, conv: ConvNorm, neuron: nn.Module) -> None:
        super().__init__()
        self.conv, self.neuron = conv, neuron

    def forward(self, x: Tensor, state: Any, steps: int) -> tuple[Tensor, Any]:
        """From (T, B, C, H, W), or static images (B, C, H, W), to spikes (T, B, C', H', W')."""
        return fire(self.neuron, over_time(self.conv(x), steps), state, over_time(x, steps).flatten(2))


class ConvSNN(nn.Module):
    """Convolutions with their norms, neurons after each, and a linear readout of the last spikes.

    The 3x3 convolutions shrink the image by strides, not by pooling: the neurons of a layer and its outputs are one to
    one. The first receives the image itself, the others spikes.

    Parameters
    ----------
    in_channels, classes : int
        C and K.
    size : tuple (H, W)
        Of the images; 8x8 digits by default.
    widths, strides : sequence of int
        Channels and stride of each convolution.
    readout : str
        "flatten" has a weight for every neuron of the last layer, "mean" one for every channel.
    neuron : callable () -> Module, optional
        Makes each layer of neurons, as of a `ResidualSNN`; LIF with beta 0.5 and threshold 1 when absent.
    steps : int
        How often a static image is presented.
    spread : float
        Spread of the input current at the start, in units of the membrane.

    Raises
    ------
    ValueError
        An unknown readout, or widths and strides that do not fit.

    >>> import torch
    >>> net = ConvSNN(steps=3)
    >>> logits, state = net(torch.rand(2, 1, 8, 8))
    >>> logits.shape, logits.mean(0).shape
    (torch.Size([3, 2, 10]), torch.Size([2, 10]))
    """

    def __init__(
        self,
        in_channels: int = 1,
        classes: int = 10,
        *,
        size: tuple[int, int] = (8, 8),
        widths: Sequence[int] = (32, 64, 64),
        strides: Sequence[int] = (1, 2, 2),
        readout: str = "flatten",
        neuron: NeuronMaker | None = None,
        steps: int = 4,
        spread: float = START_SPREAD,
    ) -> None:
        super().__init__()
        if readout not in SPATIAL_READOUTS:
            raise ValueError(f"ConvSNN: readout must be one of {', '.join(SPATIAL_READOUTS)}; found {readout!r}")
        if not widths or len(widths) != len(strides) or min(*widths, *strides) < 1:
            raise ValueError(
                "ConvSNN: widths and strides need one number of 1 or more for each layer; "
                f"found {tuple(widths)} and {tuple(strides)}"
            )
        if steps < 1:
            raise ValueError(f"ConvSNN: steps must be 1 or more; found {steps}")
        make = default_neuron if neuron is None else neuron
        self.in_channels, self.classes, self.size, self.steps = in_channels, classes, tuple(size), steps
        layers, channels, (height, width) = [], in_channels, size
        for out, stride in zip(widths, strides, strict=True):
            layers.append(ConvLayer(ConvNorm(channels, out, 3, stride, spread=spread), make()))
            channels, height, width = out, -(-height // stride), -(-width // stride)
        self.layers = nn.ModuleList(layers)
        self.readout = SPATIAL_READOUTS[readout](channels, classes, height * width)

    def forward(
        self, x: Tensor, state: tuple[Any, ...] | None = None, steps: int | None = None
    ) -> tuple[Tensor, tuple[Any, ...]]:
        """Run the network.

        Parameters
        ----------
        x : Tensor (T, B, C, H, W) or (B, C, H, W)
            Frames, or static images: the first convolution then runs once and its output is repeated.
        state : tuple, optional
            Returned by the call on the chunk before; rest when absent.
        steps : int, optional
            T of static images in place of the network's own, for instance of one chunk.

        Returns
        -------
        logits : Tensor (T, B, K)
            Of each step. A decision is their mean over the steps, `logits.mean(0)`; taken by the caller, it can run
            over chunks.
        state : tuple
            Of the neurons, layer by layer.

        Raises
        ------
        ValueError
            A shape, number of steps or state that does not fit.
        """
        check_images("ConvSNN", x, self.in_channels, steps)
        if tuple(x.shape[-2:]) != self.size:
            raise ValueError(f"ConvSNN: made for images of {self.size}; found {tuple(x.shape[-2:])}")
        states = state if state is not None else (None,) * len(self.layers)
        if len(states) != len(self.layers):
            raise ValueError(f"ConvSNN: the state has {len(states)} layers, the network {len(self.layers)}")
        passed = []
        for layer, layer_state in zip(self.layers, states, strict=True):
            x, layer_state = layer(x, layer_state, self.steps if steps is None else steps)
            passed.append(layer_state)
        return self.readout(x), tuple(passed)

    def synapses(self) -> list[Synapses]:
        """The weighted layers and the neurons between them."""
        neurons = [f"layers.{index}.neuron" for index in range(len(self.layers))]
        sources = [None, *neurons[:-1]]
        found = [
            Synapses(f"layers.{index}.conv.conv", source, neuron, (neuron,))
            for index, (source, neuron) in enumerate(zip(sources, neurons, strict=True))
        ]
        return [*found, Synapses("readout.linear", source=neurons[-1], target=None)]
