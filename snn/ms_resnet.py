"""MS-ResNet: a residual convolutional network in which membranes, not spikes, are carried past the layers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from torch import Tensor, nn

from snn.conv import START_SPREAD, ConvNorm, MeanReadout, NeuronMaker, check_images, default_neuron, over_time
from snn.residual import fire
from snn.wiring import Synapses


def _small_stem(channels: int, width: int, spread: float) -> ConvNorm:
    return ConvNorm(channels, width, 3, spread=spread)


def _large_stem(channels: int, width: int, spread: float) -> ConvNorm:
    return ConvNorm(channels, width, 7, 2, spread=spread, pool=nn.MaxPool2d(3, stride=2, padding=1))


STEMS: dict[str, Callable[[int, int, float], ConvNorm]] = {"3x3": _small_stem, "7x7": _large_stem}
"""Name -> first layer built from (in_channels, width, spread): for small images, and for those of ImageNet's size."""


class Projection(nn.Module):
    """The shortcut where the stream changes its shape: neurons, then a 1x1 convolution with its norm.

    Parameters
    ----------
    neuron, conv : Module
    """

    def __init__(self, neuron: nn.Module, conv: ConvNorm) -> None:
        super().__init__()
        self.neuron, self.conv = neuron, conv

    def forward(self, stream: Tensor, beneath: Tensor, state: Any = None) -> tuple[Tensor, Any]:
        """From the stream (T, B, C, H, W) to the carried part of the next one; `beneath` as of `MSBlock`."""
        spikes, state = fire(self.neuron, stream, state, beneath)
        return self.conv(spikes), state


class MSBlockState(NamedTuple):
    """State of the neurons of one block between chunks; `shortcut` is None where the stream is carried as it is."""

    first: Any
    second: Any
    shortcut: Any


class MSBlock(nn.Module):
    """Neurons, convolution, neurons, convolution, and the stream carried past them.

    Parameters
    ----------
    in_channels, out_channels, stride : int
    neuron : callable () -> Module
    spread, gain : float
        Spread of the first convolution's output at the start, and the second's as a share of it.
    """

    def __init__(
        self, in_channels: int, out_channels: int, stride: int, neuron: NeuronMaker, spread: float, gain: float
    ) -> None:
        super().__init__()
        self.neuron1, self.conv1 = neuron(), ConvNorm(in_channels, out_channels, 3, stride, spread=spread)
        self.neuron2, self.conv2 = neuron(), ConvNorm(out_channels, out_channels, 3, spread=gain * spread)
        self.shortcut = None
        if stride != 1 or in_channels != out_channels:
            self.shortcut = Projection(neuron(), ConvNorm(in_channels, out_channels, 1, stride, spread=spread))

    def forward(
        self, stream: Tensor, beneath: Tensor, state: MSBlockState | None = None
    ) -> tuple[Tensor, Tensor, MSBlockState]:
        """From the stream (T, B, C, H, W) that enters to the one that leaves, and what the last convolution took in.

        `beneath` (T, B, I) is what the last convolution before took in.
        """
        first, second, carried = state if state is not None else (None, None, None)
        spikes, first = fire(self.neuron1, stream, first, beneath)
        inner, second = fire(self.neuron2, self.conv1(spikes), second, spikes.flatten(2))
        update = self.conv2(inner)
        if self.shortcut is not None:
            stream, carried = self.shortcut(stream, beneath, carried)
        return stream + update, inner.flatten(2), MSBlockState(first, second, carried)


class MSResNetState(NamedTuple):
    """State of an `MSResNet` between chunks."""

    blocks: tuple[MSBlockState, ...]
    last: Any


class MSResNet(nn.Module):
    """Membrane-shortcut residual network for images and event frames.

    A stem, stages of blocks, neurons, and a linear classifier averaged over places. Each block adds
    `conv(neuron(conv(neuron(u))))` to the real-valued stream u. Neurons come before every convolution but the stem, so
    every product of a weight is with a spike, except in the stem where the input is analogue. A stage after the first
    begins with stride 2, where the stream passes through neurons of its own and a 1x1 convolution.

    Parameters
    ----------
    in_channels, classes : int
        C and K.
    widths, blocks : sequence of int
        Channels and number of blocks of each stage. The default is the network of 18 layers;
        `widths=(32, 64, 128), blocks=(1, 1, 1)` is a small one.
    stem : str
        "3x3" for small images, "7x7" (stride 2, then a max-pool of stride 2) for large ones.
    neuron : callable () -> Module, optional
        Makes each layer of neurons, as of a `ResidualSNN`; LIF with beta 0.5 and threshold 1 when absent.
    steps : int
        How often a static image is presented.
    spread : float
        Spread of the input current at the start, in units of the membrane.

    Raises
    ------
    ValueError
        An unknown stem, or stages that do not fit.

    Notes
    -----
    Hu et al. 2021, arXiv 2112.08954; the stem for small images, and neurons before the classifier, as in networks
    published since. At the start the norms give a stage's blocks together half the power of what enters them.

    >>> import torch
    >>> net = MSResNet(1, 10, widths=(8, 16), blocks=(1, 1), steps=3)
    >>> logits, state = net(torch.randn(2, 1, 8, 8))
    >>> logits.shape, logits.mean(0).shape
    (torch.Size([3, 2, 10]), torch.Size([2, 10]))
    """

    def __init__(
        self,
        in_channels: int = 3,
        classes: int = 10,
        *,
        widths: Sequence[int] = (64, 128, 256, 512),
        blocks: Sequence[int] = (2, 2, 2, 2),
        stem: str = "3x3",
        neuron: NeuronMaker | None = None,
        steps: int = 4,
        spread: float = START_SPREAD,
    ) -> None:
        super().__init__()
        if stem not in STEMS:
            raise ValueError(f"MSResNet: stem must be one of {', '.join(STEMS)}; found {stem!r}")
        if not widths or len(widths) != len(blocks) or min(*widths, *blocks) < 1:
            raise ValueError(
                "MSResNet: widths and blocks need one number of 1 or more for each stage; "
                f"found {tuple(widths)} and {tuple(blocks)}"
            )
        if steps < 1:
            raise ValueError(f"MSResNet: steps must be 1 or more; found {steps}")
        make = default_neuron if neuron is None else neuron
        self.in_channels, self.classes, self.steps = in_channels, classes, steps
        self.stem = STEMS[stem](in_channels, widths[0], spread)
        made, channels = [], widths[0]
        for stage, (width, count) in enumerate(zip(widths, blocks, strict=True)):
            gain = 1 / math.sqrt(2 * count)
            for index in range(count):
                stride = 2 if stage > 0 and index == 0 else 1
                made.append(MSBlock(channels, width, stride, make, spread, gain))
                channels = width
        self.blocks = nn.ModuleList(made)
        self.neuron = make()
        self.readout = MeanReadout(channels, classes)

    def forward(
        self, x: Tensor, state: MSResNetState | None = None, steps: int | None = None
    ) -> tuple[Tensor, MSResNetState]:
        """Run the network.

        Parameters
        ----------
        x : Tensor (T, B, C, H, W) or (B, C, H, W)
            Frames, or static images: the stem then runs once and its output is repeated.
        state : MSResNetState, optional
            Returned by the call on the chunk before; rest when absent.
        steps : int, optional
            T of static images in place of the network's own, for instance of one chunk.

        Returns
        -------
        logits : Tensor (T, B, K)
            Of each step. A decision is their mean over the steps, `logits.mean(0)`; taken by the caller, it can run
            over chunks.
        state : MSResNetState

        Raises
        ------
        ValueError
            A shape, number of steps or state that does not fit.
        """
        check_images("MSResNet", x, self.in_channels, steps)
        states, last = state if state is not None else ((None,) * len(self.blocks), None)
        if len(states) != len(self.blocks):
            raise ValueError(f"MSResNet: the state has {len(states)} blocks, the network {len(self.blocks)}")
        steps = self.steps if steps is None else steps
        stream, beneath = over_time(self.stem(x), steps), over_time(x, steps).flatten(2)
        passed = []
        for block, block_state in zip(self.blocks, states, strict=True):
            stream, beneath, block_state = block(stream, beneath, block_state)
            passed.append(block_state)
        spikes, last = fire(self.neuron, stream, last, beneath)
        return self.readout(spikes), MSResNetState(tuple(passed), last)

    def synapses(self) -> list[Synapses]:
        """The weighted layers and the neurons between them."""

        def listening(after: int) -> tuple[str, ...]:
            """Neurons that read the stream from block `after` on, up to where it changes its shape."""
            names = []
            for index in range(after + 1, len(self.blocks)):
                names.append(f"blocks.{index}.neuron1")
                if self.blocks[index].shortcut is not None:
                    return (*names, f"blocks.{index}.shortcut.neuron")
            return (*names, "neuron")

        def into_stream(layer: str, source: str | None, after: int, pool: str | None = None) -> Synapses:
            readers = listening(after)
            return Synapses(layer, source, target=readers[0], readers=readers, pool=pool)

        found = [into_stream("stem.conv", None, -1, None if self.stem.pool is None else "stem.pool")]
        for index, block in enumerate(self.blocks):
            here = f"blocks.{index}"
            found.append(Synapses(f"{here}.conv1.conv", f"{here}.neuron1", f"{here}.neuron2", (f"{here}.neuron2",)))
            found.append(into_stream(f"{here}.conv2.conv", f"{here}.neuron2", index))
            if block.shortcut is not None:
                found.append(into_stream(f"{here}.shortcut.conv.conv", f"{here}.shortcut.neuron", index))
        return [*found, Synapses("readout.linear", source="neuron", target=None)]
