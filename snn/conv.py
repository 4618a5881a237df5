"""Parts of convolutional spiking networks: convolution with its norm, images presented over time, readouts."""

from __future__ import annotations

import functools
from collections.abc import Callable

from torch import Tensor, nn

from snn.neurons import LIF

NeuronMaker = Callable[[], nn.Module]
"""Makes one layer of neurons: a module with `forward(current, state) -> (spikes, state)`, as of a `ResidualSNN`."""

default_neuron: NeuronMaker = functools.partial(LIF, beta=0.5, threshold=1.0)

START_SPREAD = 0.7
"""Spread of the current of a neuron at the start. White current of this spread gives a LIF membrane of beta 0.5 a
spread of 0.8, so that with a threshold of 1 every layer fires and none is saturated."""


class ConvNorm(nn.Module):
    """A convolution without bias, and the batch norm that follows it.

    Batch statistics run over time and trials alike. A static image has no time axis and is convolved once.

    Parameters
    ----------
    in_channels, out_channels, kernel_size, stride : int
        Padded with zeros so that stride 1 keeps the size; odd kernels.
    spread : float
        Start value of the norm's scale, so the spread of the output in training.
    pool : Module, optional
        Applied to the normalised output.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int,
        stride: int = 1,
        *,
        spread: float = START_SPREAD,
        pool: nn.Module | None = None,
    ) -> None:
        super().__init__()
        self.conv = nn.Conv2d(
            in_channels, out_channels, kernel_size, stride=stride, padding=kernel_size // 2, bias=False
        )
        self.norm = nn.BatchNorm2d(out_channels)
        self.pool = pool
        nn.init.kaiming_normal_(self.conv.weight, mode="fan_out", nonlinearity="relu")
        nn.init.constant_(self.norm.weight, spread)

    def forward(self, x: Tensor) -> Tensor:
        """From (T, B, C, H, W) or (B, C, H, W) to the same with other channels and places."""
        frames = x.flatten(0, 1) if x.dim() == 5 else x
        y = self.norm(self.conv(frames))
        if self.pool is not None:
            y = self.pool(y)
        return y.unflatten(0, x.shape[:2]) if x.dim() == 5 else y


class MeanReadout(nn.Module):
    """A linear layer on the spikes of each place, averaged over places.

    The mean comes last. It is linear, so the order changes nothing but rounding, and every product of a weight stays
    one with a spike.

    Parameters
    ----------
    channels, classes : int
        C and K.
    places : int, optional
        Not used: any size of image fits.
    """

    def __init__(self, channels: int, classes: int, places: int | None = None) -> None:
        super().__init__()
        self.linear = nn.Linear(channels, classes)

    def forward(self, spikes: Tensor) -> Tensor:
        """From (T, B, C, H, W) to (T, B, K)."""
        return self.linear(spikes.flatten(3).transpose(2, 3)).mean(2)


class FlatReadout(nn.Module):
    """A linear layer on all spikes of a step, each place with weights of its own.

    Parameters
    ----------
    channels, classes, places : int
        C, K and H * W.
    """

    def __init__(self, channels: int, classes: int, places: int) -> None:
        super().__init__()
        self.linear = nn.Linear(channels * places, classes)

    def forward(self, spikes: Tensor) -> Tensor:
        """From (T, B, C, H, W) to (T, B, K)."""
        return self.linear(spikes.flatten(2))


SPATIAL_READOUTS: dict[str, Callable[[int, int, int], nn.Module]] = {"mean": MeanReadout, "flatten": FlatReadout}
"""Name -> readout built from (channels, classes, places)."""


def check_images(name: str, x: Tensor, channels: int, steps: int | None) -> None:
    """Refuse what is neither images nor frames of `channels` channels.

    Raises
    ------
    ValueError
        `x` is not (B, C, H, W) or (T, B, C, H, W), or `steps` is asked of an input that has its own, or is below 1.
    """
    if x.dim() not in (4, 5) or x.shape[-3] != channels:
        raise ValueError(
            f"{name}: x must be images (B, {channels}, H, W) or frames (T, B, {channels}, H, W); found {tuple(x.shape)}"
        )
    if steps is not None and x.dim() == 5:
        raise ValueError(f"{name}: steps is for static images; x {tuple(x.shape)} has a time axis of its own")
    if steps is not None and steps < 1:
        raise ValueError(f"{name}: a static image is shown for 1 step or more; found steps={steps}")


def over_time(y: Tensor, steps: int) -> Tensor:
    """`y` (T, B, ...) of frames as it is; of a static image (B, C, H, W), a view repeated `steps` times."""
    return y if y.dim() == 5 else y.unsqueeze(0).expand(steps, *y.shape)
