"""Surrogate gradients: a step on the way forward, a smooth slope on the way back.

Each surrogate is a small object that can be pickled and compared, and that carries the `kernel_id` under which the
fused kernels know its slope. Any other callable that takes `membrane - threshold` and returns spikes, such as those of
`snntorch.surrogate`, may be used in its place; it then runs on the reference path.

To add one, write a class with `kernel_id`, `parameter` and `slope`, and list it in `SURROGATES`. It works at once on
the reference path; the fused kernels take it when their own tables list its `kernel_id`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar

import torch
from torch import Tensor


class _Step(torch.autograd.Function):
    """Heaviside step whose gradient is the slope of a surrogate."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, surrogate: Surrogate) -> Tensor:
        ctx.save_for_backward(x)
        ctx.surrogate = surrogate
        return (x > 0).to(x.dtype)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[Tensor, None]:
        (x,) = ctx.saved_tensors
        return grads[0] * ctx.surrogate.slope(x), None


class Surrogate:
    """Base of the surrogates: `surrogate(x)` is 1 where `x > 0` (strictly) and 0 elsewhere, in the dtype of `x`.

    Attributes
    ----------
    kernel_id : str
        Name of the slope in the tables of the fused kernels.
    parameter : float
        The one number that shapes the slope.
    """

    kernel_id: ClassVar[str]
    parameter_name: ClassVar[str]

    def __init__(self, parameter: float) -> None:
        if not (isinstance(parameter, (int, float)) and math.isfinite(parameter) and parameter > 0):
            raise ValueError(
                f"{type(self).__name__}: {self.parameter_name} must be a positive number, found {parameter!r}"
            )
        self.parameter = float(parameter)

    def slope(self, x: Tensor) -> Tensor:
        """Derivative that stands in for the step's, elementwise: any shape in, the same shape out."""
        raise TypeError(f"{type(self).__name__} defines no slope")

    def __call__(self, x: Tensor) -> Tensor:
        """Spikes where `x`, the membrane minus the threshold, is positive; any shape."""
        return _Step.apply(x, self)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.parameter_name}={self.parameter:g})"

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.parameter == other.parameter

    def __hash__(self) -> int:
        return hash((type(self), self.parameter))


class ArcTan(Surrogate):
    """Slope `alpha / 2 / (1 + (pi/2 alpha x)^2)`; equals `snntorch.surrogate.atan(alpha)`.

    Source: Fang et al. 2021, "Incorporating learnable membrane time constant", arXiv 2007.05785.

    >>> import torch
    >>> x = torch.tensor([-0.5, 0.0, 0.5], requires_grad=True)
    >>> ArcTan()(x).tolist()
    [0.0, 0.0, 1.0]
    >>> ArcTan(alpha=2).slope(torch.zeros(1)).item()
    1.0
    """

    kernel_id = "arctan"
    parameter_name = "alpha"

    def __init__(self, alpha: float = 2.0) -> None:
        super().__init__(alpha)

    def slope(self, x: Tensor) -> Tensor:
        """See the class."""
        return (self.parameter / 2) / (1 + (math.pi / 2 * self.parameter * x).square())


class FastSigmoid(Surrogate):
    """Slope `1 / (1 + k |x|)^2`; equals `snntorch.surrogate.fast_sigmoid(slope=k)`.

    Source: Zenke and Ganguli 2018, "SuperSpike", arXiv 1705.11146.
    """

    kernel_id = "fast_sigmoid"
    parameter_name = "k"

    def __init__(self, k: float = 25.0) -> None:
        super().__init__(k)

    def slope(self, x: Tensor) -> Tensor:
        """See the class."""
        return 1 / (1 + self.parameter * x.abs()).square()


class Sigmoid(Surrogate):
    """Slope `alpha sigma(alpha x) (1 - sigma(alpha x))`; equals `snntorch.surrogate.sigmoid(slope=alpha)`.

    The default alpha of 4 is SpikingJelly's, which the Dormant Spiking Neuron uses (its authors' code).
    """

    kernel_id = "sigmoid"
    parameter_name = "alpha"

    def __init__(self, alpha: float = 4.0) -> None:
        super().__init__(alpha)

    def slope(self, x: Tensor) -> Tensor:
        """See the class."""
        s = torch.sigmoid(self.parameter * x)
        return self.parameter * s * (1 - s)


class Triangle(Surrogate):
    """Slope `max(0, 1 - |x| / width) / width`: exactly zero further than `width` from the threshold.

    Its compact support makes the gradient sparse. Source: Esser et al. 2016, PNAS 113(41), arXiv 1603.08270.
    """

    kernel_id = "triangle"
    parameter_name = "width"

    def __init__(self, width: float = 1.0) -> None:
        super().__init__(width)

    def slope(self, x: Tensor) -> Tensor:
        """See the class."""
        return (1 - x.abs() / self.parameter).clamp_min(0) / self.parameter


SURROGATES: dict[str, Callable[..., Surrogate]] = {
    cls.kernel_id: cls for cls in (ArcTan, FastSigmoid, Sigmoid, Triangle)
}
"""Every surrogate by its `kernel_id`."""
