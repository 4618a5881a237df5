"""`FixedDelayLinear`: the module of `snn.functional.fixed_delay_linear`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from snn import functional

DELAY_CAP = 63
"""Largest delay a layer takes by default: Lava holds 62, and design delay d is Lava delay d - 1."""

SHARING: dict[str, Callable[[int, int], tuple[int, int]]] = {
    "none": lambda outputs, inputs: (outputs, inputs),
    "axon": lambda outputs, inputs: (1, inputs),
    "dendrite": lambda outputs, inputs: (outputs, 1),
    "layer": lambda outputs, inputs: (1, 1),
}
"""Which connections share a delay -> shape of what is drawn: none, those of an input, those of an output, all."""


class FixedDelayLinear(nn.Module):
    """Linear layer in which every connection has one fixed integer delay, drawn once and never trained.

    `y[t, b, j] = bias[j] + sum_i weight[j, i] * x[t - delay[j, i], b, i]`. With `max_delay = min_delay = 0` it equals
    `nn.Linear` bit for bit. The number of parameters does not depend on the delays.

    Parameters
    ----------
    in_features, out_features : int
        I and O.
    max_delay, min_delay : int
        Delays are uniform on min_delay..max_delay, in steps. Hardware needs 1 or more.
    bias : bool
    seed : int
        Of the draw. It has a generator of its own and leaves torch's global one alone.
    delay_cap : int
        Largest `max_delay` accepted. The default of 63 is what Loihi holds; a wider layer is one with a higher cap,
        such as `FixedDelayLinear(8, 8, max_delay=200, delay_cap=200)`, and does not export.
    sharing : str
        Controls: connections that share one delay, a key of `SHARING`: "none" (each has its own), "axon" (all of one
        input), "dendrite" (all of one output), "layer" (all).

    Attributes
    ----------
    weight : Parameter (O, I)
    bias : Parameter (O,) or None
    delay : integer buffer (O, I)
        uint8 where it fits, else int16; part of `state_dict`. Loading a checkpoint whose delays do not lie in
        min_delay..max_delay, or are not integers, raises RuntimeError and leaves the layer's delays as they were.

    Raises
    ------
    ValueError
        A size or delay out of range.

    Notes
    -----
    Delays fixed at their random start: the control of Hammouamri et al. 2023, arXiv 2306.17670.

    >>> layer = FixedDelayLinear(3, 2, max_delay=16)
    >>> y, state = layer(torch.zeros(5, 4, 3))
    >>> y.shape, state.shape
    (torch.Size([5, 4, 2]), torch.Size([16, 4, 3]))
    """

    weight: nn.Parameter
    bias: nn.Parameter | None
    delay: Tensor

    def __init__(
        self,
        in_features: int,
        out_features: int,
        *,
        max_delay: int,
        min_delay: int = 1,
        bias: bool = True,
        seed: int = 0,
        delay_cap: int = DELAY_CAP,
        sharing: str = "none",
    ) -> None:
        super().__init__()
        if in_features < 1 or out_features < 1:
            raise ValueError(f"FixedDelayLinear: features must be at least 1; found {in_features} -> {out_features}")
        if not 0 <= min_delay <= max_delay:
            raise ValueError(
                f"FixedDelayLinear: delays need 0 <= min_delay <= max_delay; found {min_delay} and {max_delay}"
            )
        if max_delay > delay_cap:
            raise ValueError(
                f"FixedDelayLinear: max_delay {max_delay} is above the cap of {delay_cap}; "
                "a higher delay_cap makes a wider layer, which does not export to Loihi"
            )
        if max_delay > torch.iinfo(torch.int16).max:
            raise ValueError(f"FixedDelayLinear: max_delay {max_delay} does not fit 16 bits")
        if sharing not in SHARING:
            raise ValueError(f"FixedDelayLinear: sharing must be one of {', '.join(SHARING)}; found {sharing!r}")
        self.in_features, self.out_features = in_features, out_features
        self.max_delay, self.min_delay = max_delay, min_delay
        self.seed, self.delay_cap, self.sharing = seed, delay_cap, sharing
        self.weight = nn.Parameter(torch.empty(out_features, in_features))
        if bias:
            self.bias = nn.Parameter(torch.empty(out_features))
        else:
            self.register_parameter("bias", None)
        generator = torch.Generator().manual_seed(seed)
        # Drawn on the processor, so that the same seed is the same network on every device.
        shape = SHARING[sharing](out_features, in_features)
        drawn = torch.randint(min_delay, max_delay + 1, shape, generator=generator, device="cpu")
        drawn = drawn.expand(out_features, in_features).contiguous()
        kind = torch.uint8 if max_delay <= 255 else torch.int16
        self.register_buffer("delay", drawn.to(torch.get_default_device(), kind))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw weight and bias as `nn.Linear` does, in the same order from the global generator; delays stay."""
        nn.init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            bound = 1 / math.sqrt(self.in_features)
            nn.init.uniform_(self.bias, -bound, bound)

    def forward(self, x: Tensor, state: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Apply the layer.

        Parameters
        ----------
        x : Tensor (T, B, I)
        state : Tensor (max_delay, B, I), optional
            Returned by the call before; silence when absent.

        Returns
        -------
        y : Tensor (T, B, O)
        state : Tensor (max_delay, B, I)
        """
        return functional.fixed_delay_linear(x, self.weight, self.delay, self.bias, state, max_delay=self.max_delay)

    def extra_repr(self) -> str:
        """Sizes and the range of the delays."""
        return (
            f"{self.in_features}, {self.out_features}, bias={self.bias is not None}, "
            f"delays {self.min_delay}..{self.max_delay}, seed={self.seed}"
        )

    def _load_from_state_dict(
        self, state_dict: dict[str, Any], prefix: str, local_metadata: Any, strict: bool,
        missing_keys: list[str], unexpected_keys: list[str], error_msgs: list[str],
    ) -> None:  # fmt: skip
        key = prefix + "delay"
        problem = self._misfit(state_dict[key]) if key in state_dict else None
        if problem:
            error_msgs.append(f"{key}: {problem}")
            # The rest of the layer is still checked and reported; the delays are left alone.
            state_dict = {**state_dict, key: self.delay}
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
        )

    def _misfit(self, delay: Tensor) -> str | None:
        """Why a checkpoint's delays cannot be this layer's; None when they can."""
        if delay.is_floating_point() or delay.is_complex() or delay.dtype == torch.bool:
            return f"delays must be integers; the checkpoint holds {delay.dtype}"
        if delay.shape != self.delay.shape:
            return f"delays must be {tuple(self.delay.shape)}; the checkpoint holds {tuple(delay.shape)}"
        lowest, highest = int(delay.min()), int(delay.max())
        if lowest < self.min_delay or highest > self.max_delay:
            return (
                f"delays must lie in {self.min_delay}..{self.max_delay} (min_delay..max_delay of this layer); "
                f"the checkpoint holds {lowest}..{highest}"
            )
        return None
