"""A linear layer in which every connection has its own fixed delay."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from snn import dispatch
from snn.kernels.delay.plan import plan_of


def fixed_delay_linear(
    x: Tensor,
    weight: Tensor,
    delay: Tensor,
    bias: Tensor | None = None,
    state: Tensor | None = None,
    *,
    max_delay: int | None = None,
    backend: str | None = None,
) -> tuple[Tensor, Tensor]:
    r"""Linear layer with one integer delay for each connection.

    `y[t, b, j] = bias[j] + sum_i weight[j, i] * x[t - delay[j, i], b, i]`, where x before the start is `state`, or 0.
    Running a sequence in chunks, each with the state of the one before, gives what running it at once gives.

    Parameters
    ----------
    x : Tensor (T, B, I)
        Spikes, counts or real values. Integers and booleans are taken in the dtype of `weight`.
    weight : Tensor (O, I), floating
    delay : Tensor (O, I), integer
        In steps (bins), 0..max_delay. A delay of 0 is the same step: Lava's delay plus 1.
    bias : Tensor (O,), optional
    state : Tensor (max_delay, B, I), optional
        The input frames that came last, oldest first.
    max_delay : int, optional
        Length of the state. Default: the length of `state`, or else the largest delay.
    backend : str, optional
        Forces a backend, see `snn.dispatch`. Without delays (max_delay 0) the layer is `torch.nn.functional.linear`.

    Returns
    -------
    y : Tensor (T, B, O)
        In the dtype of `weight`, or the one of autocast. Sums are taken in float32 where that is a half type.
    state : Tensor (max_delay, B, I)
        In the dtype of `x`.

    Raises
    ------
    ValueError
        Shapes, devices or delays that do not fit. TypeError: dtypes that do not fit.

    Notes
    -----
    Fixed random delays as a control: Hammouamri et al. 2023, arXiv 2306.17670.

    >>> import torch
    >>> x = torch.tensor([1.0, 2.0, 3.0]).view(3, 1, 1)
    >>> y, state = fixed_delay_linear(x, torch.ones(1, 1), torch.tensor([[2]]))
    >>> y.flatten().tolist(), state.flatten().tolist()
    ([0.0, 0.0, 1.0], [2.0, 3.0])
    """
    _check_operands(x, weight, delay, bias)
    max_delay = _check_delays(delay, state, max_delay)
    shape = (max_delay, *x.shape[1:])
    if state is not None and state.shape != shape:
        raise ValueError(f"fixed_delay_linear: state must be (max_delay, B, I) = {shape}; found {tuple(state.shape)}")
    if state is not None and state.device != x.device:
        raise ValueError(f"fixed_delay_linear: state is on {state.device}, x on {x.device}")
    if x.is_complex() or (state is not None and state.is_complex()):
        raise TypeError("fixed_delay_linear: x and state must be real; found complex numbers")
    following = _last_frames(x, state, max_delay)
    if not x.is_floating_point():
        x = x.to(weight.dtype)
    if max_delay == 0:
        return F.linear(x, weight, bias), following
    dtype = weight.dtype
    if torch.is_autocast_enabled(x.device.type):
        dtype = torch.get_autocast_dtype(x.device.type)
    working = torch.promote_types(dtype, torch.float32)

    def operand(tensor: Tensor | None) -> Tensor | None:
        # Rounded to the dtype of the result first, so that a half type sees what it would see in nn.Linear.
        return None if tensor is None else tensor.to(dtype).to(working)

    if x.shape[0] == 0 or x.shape[1] == 0:
        return x.new_zeros(*x.shape[:2], weight.shape[0], dtype=dtype), following
    arguments = {
        "x": operand(x),
        "weight": operand(weight),
        "delay": delay,
        "bias": operand(bias),
        "history": operand(state),
        "max_delay": max_delay,
    }
    with torch.autocast(x.device.type, enabled=False):
        y = dispatch.choose("fixed_delay_linear", arguments, backend).run(**arguments)
    return y.to(dtype), following


def _last_frames(x: Tensor, state: Tensor | None, max_delay: int) -> Tensor:
    """The state after `x`: its last frames, filled up from the state before. Always memory of its own."""
    if x.shape[0] >= max_delay:
        return x[x.shape[0] - max_delay :].clone()
    before = x.new_zeros(max_delay, *x.shape[1:]) if state is None else state.to(x.dtype)
    return torch.cat([before[x.shape[0] :], x])


def _check_operands(x: Tensor, weight: Tensor, delay: Tensor, bias: Tensor | None) -> None:
    if not weight.is_floating_point() or weight.dim() != 2:
        raise TypeError(
            f"fixed_delay_linear: weight must be floating (O, I); found {weight.dtype} {tuple(weight.shape)}"
        )
    if delay.is_floating_point() or delay.is_complex() or delay.dtype == torch.bool:
        raise TypeError(f"fixed_delay_linear: delay must be an integer tensor; found {delay.dtype}")
    if delay.shape != weight.shape:
        raise ValueError(
            f"fixed_delay_linear: delay must have the shape of weight {tuple(weight.shape)}; found {tuple(delay.shape)}"
        )
    if x.dim() != 3 or x.shape[2] != weight.shape[1]:
        raise ValueError(f"fixed_delay_linear: x must be (T, B, I) with I = {weight.shape[1]}; found {tuple(x.shape)}")
    if bias is not None and bias.shape != weight.shape[:1]:
        raise ValueError(f"fixed_delay_linear: bias must be ({weight.shape[0]},); found {tuple(bias.shape)}")
    if x.is_floating_point() and x.dtype != weight.dtype and not torch.is_autocast_enabled(x.device.type):
        raise TypeError(f"fixed_delay_linear: x is {x.dtype}, weight is {weight.dtype}")
    devices = {str(t.device) for t in (x, weight, delay, bias) if t is not None}
    if len(devices) > 1:
        raise ValueError(f"fixed_delay_linear: x, weight, delay and bias are on different devices: {sorted(devices)}")


def _check_delays(delay: Tensor, state: Tensor | None, max_delay: int | None) -> int:
    """The length of the state; checks the values where that costs no wait for a device."""
    if max_delay is None and state is not None:
        max_delay = state.shape[0]
    if delay.numel() == 0:
        return max_delay or 0
    if max_delay is not None and (delay.device.type != "cpu" or torch.compiler.is_compiling()):
        return max_delay
    plan = plan_of(delay)
    lowest, highest = plan.lowest, plan.highest
    if lowest < 0 or (max_delay is not None and highest > max_delay):
        raise ValueError(
            f"fixed_delay_linear: delays must lie in 0..{'' if max_delay is None else max_delay}; "
            f"found {lowest}..{highest}"
        )
    return highest if max_delay is None else max_delay
