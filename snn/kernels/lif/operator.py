"""The leaky integrate-and-fire neuron as operators of `torch.library`: what the compiler and autograd know of it.

`ranvier::lif` and `ranvier::lif_grad` take the name of a path, a row of `PATHS`: the implementation that runs. The
surrogate is named by its `kernel_id` and its parameter.
"""

from __future__ import annotations

import importlib
from typing import Any

import torch
from torch import Tensor

from snn.kernels.layout import channels_first, sequence_like, state_like

PATHS: dict[str, str] = {"numba": "snn.kernels.lif.numba_cpu", "triton": "snn.kernels.lif.triton_gpu"}
"""Path -> module with `forward` and `backward` functions of the operators' arguments."""

KERNEL_IDS = ("arctan", "fast_sigmoid", "sigmoid", "triangle")
"""Each `kernel_id` whose slope the kernels know; its place here is its number there."""

RESETS = {"zero": 0, "subtract": 1, "none": 2}
"""Reset mechanism -> its number in the kernels."""


@torch.library.custom_op(
    "ranvier::lif",
    mutates_args=(),
    schema="(Tensor current, Tensor state, float beta, float threshold, str slope, float parameter, str reset, "
    "str path) -> (Tensor, Tensor)",
)
def lif(current, state, beta, threshold, slope, parameter, reset, path):
    """Spikes (T, B, ...) and the last membrane (B, ...)."""
    return importlib.import_module(PATHS[path]).forward(current, state, beta, threshold, reset)


@lif.register_fake
def _(current, state, beta, threshold, slope, parameter, reset, path):
    first = channels_first(current)
    return sequence_like(current, first), state_like(state, first)


@torch.library.custom_op(
    "ranvier::lif_grad",
    mutates_args=(),
    schema="(Tensor grad, Tensor grad_last, Tensor current, Tensor state, float beta, float threshold, str slope, "
    "float parameter, str reset, str path) -> (Tensor, Tensor)",
)
def lif_grad(grad, grad_last, current, state, beta, threshold, slope, parameter, reset, path):
    """Gradients of the current (T, B, ...) and of the first membrane (B, ...), the reset detached."""
    return importlib.import_module(PATHS[path]).backward(
        grad, grad_last, current, state, beta, threshold, slope, parameter, reset
    )


@lif_grad.register_fake
def _(grad, grad_last, current, state, beta, threshold, slope, parameter, reset, path):
    first = channels_first(current)
    return sequence_like(grad, first), state_like(grad_last, first)


def _setup(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    # Membranes are cheaper to compute again, a few at a time in the nearest cache, than to write and read.
    current, state, *ctx.constants = inputs
    ctx.save_for_backward(current, state)


def _backward(ctx: Any, grad: Tensor, grad_last: Tensor) -> tuple[Any, ...]:
    out, start = lif_grad(grad, grad_last, *ctx.saved_tensors, *ctx.constants)
    return out, start, *[None] * 6


lif.register_autograd(_backward, setup_context=_setup)
