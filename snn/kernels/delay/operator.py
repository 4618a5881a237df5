"""The delayed layer as operators of `torch.library`: what the compiler and autograd know of it.

`ranvier::fixed_delay_linear` and `ranvier::fixed_delay_linear_grad` take the name of a path, a row of `PATHS`: the
implementation that runs. Each backend but the plain reference is one path.
"""

from __future__ import annotations

import importlib
from typing import Any

import torch
from torch import Tensor

from snn.kernels.layout import empty_sequence

PATHS: dict[str, str] = {
    "numba": "snn.kernels.delay.numba_cpu",
    "numba_shifted": "snn.kernels.delay.numba_cpu",
    "numba_events": "snn.kernels.delay.numba_cpu",
    "triton": "snn.kernels.delay.triton_gpu",
}
"""Path -> module with `forward` and `backward` functions of the operators' arguments."""


@torch.library.custom_op(
    "ranvier::fixed_delay_linear",
    mutates_args=(),
    schema="(Tensor x, Tensor weight, Tensor delay, Tensor? bias, Tensor? history, int max_delay, str path) -> Tensor",
)
def fixed_delay_linear(x, weight, delay, bias, history, max_delay, path):
    """`y` (T, B, O) of `x` (T, B, I) that follows `history` (max_delay, B, I), or silence."""
    return importlib.import_module(PATHS[path]).forward(x, weight, delay, bias, history, max_delay, path)


@fixed_delay_linear.register_fake
def _(x, weight, delay, bias, history, max_delay, path):
    # Memory is channel first, as the kernels write it and those of the neurons read it.
    return empty_sequence(x, x.shape[0], x.shape[1], weight.shape[0])


@torch.library.custom_op(
    "ranvier::fixed_delay_linear_grad",
    mutates_args=(),
    schema="(Tensor grad, Tensor x, Tensor weight, Tensor delay, Tensor? history, int max_delay, str path, bool for_x, "
    "bool for_weight, bool for_history) -> (Tensor, Tensor, Tensor)",
)
def fixed_delay_linear_grad(grad, x, weight, delay, history, max_delay, path, for_x, for_weight, for_history):
    """Gradients of x (T, B, I), weight (O, I) and history (max_delay, B, I); an empty tensor where none is wanted."""
    return importlib.import_module(PATHS[path]).backward(
        grad, x, weight, delay, history, max_delay, path, for_x, for_weight, for_history
    )


@fixed_delay_linear_grad.register_fake
def _(grad, x, weight, delay, history, max_delay, path, for_x, for_weight, for_history):
    steps, batch, inputs = x.shape
    return (
        empty_sequence(x, steps, batch, inputs) if for_x else x.new_empty(0),
        weight.new_empty(weight.shape) if for_weight else weight.new_empty(0),
        empty_sequence(x, max_delay, batch, inputs) if for_history else x.new_empty(0),
    )


def _setup(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    x, weight, delay, _, history, ctx.max_delay, ctx.path = inputs
    for_weight = ctx.needs_input_grad[1]
    # The inputs are all that is kept, and those of a spiking network are kept by the neurons anyway.
    ctx.save_for_backward(x, weight, delay, history if for_weight else None)


def _backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    x, weight, delay, history = ctx.saved_tensors
    for_x, for_weight, _, for_bias, for_history, _, _ = ctx.needs_input_grad
    grad_x = grad_weight = grad_history = None
    if for_x or for_weight or for_history:
        grad_x, grad_weight, grad_history = fixed_delay_linear_grad(
            grad, x, weight, delay, history, ctx.max_delay, ctx.path, for_x, for_weight, for_history
        )
    return (
        grad_x if for_x else None,
        grad_weight if for_weight else None,
        None,
        grad.sum((0, 1)) if for_bias else None,
        grad_history if for_history else None,
        None,
        None,
    )


fixed_delay_linear.register_autograd(_backward, setup_context=_setup)
