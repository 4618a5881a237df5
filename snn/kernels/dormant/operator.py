"""The Dormant Spiking Neuron as operators of `torch.library`: what the compiler and autograd know of it.

`ranvier::dormant_lif` and `ranvier::dormant_lif_grad` take the name of a path, a row of `PATHS`: the implementation
that runs. A surrogate is named by its `kernel_id` and its parameter; the gate's is `DETACHED` where no gradient passes.
"""

from __future__ import annotations

import importlib
from typing import Any

import torch
from torch import Tensor

from snn.kernels.layout import channels_first, sequence_like, state_like

PATHS: dict[str, str] = {"numba": "snn.kernels.dormant.numba_cpu", "triton": "snn.kernels.dormant.triton_gpu"}
"""Path -> module with `forward` and `backward` functions of the operators' arguments."""

DETACHED = "detached"
"""Name of the gate's surrogate whose slope is zero everywhere."""

_CONSTANTS = (
    "float beta, float threshold, float dormancy_threshold, str slope, float parameter, str gate_slope, "
    "float gate_parameter, str reset, str path"
)


@torch.library.custom_op(
    "ranvier::dormant_lif",
    mutates_args=(),
    schema=f"(Tensor current, Tensor membrane, Tensor awake, Tensor? wake, {_CONSTANTS}) -> (Tensor, Tensor, Tensor)",
)
def dormant_lif(
    current, membrane, awake, wake, beta, threshold, dormancy_threshold, slope, parameter, gate_slope, gate_parameter,
    reset, path,
):  # fmt: skip
    """Spikes (T, B, ...), the last membrane and the last gate D (B, ...)."""
    run = importlib.import_module(PATHS[path]).forward
    return run(current, membrane, awake, wake, beta, threshold, dormancy_threshold, reset)


@dormant_lif.register_fake
def _(current, membrane, awake, wake, *constants):
    first = channels_first(current)
    return sequence_like(current, first), state_like(membrane, first), state_like(awake, first)


@torch.library.custom_op(
    "ranvier::dormant_lif_grad",
    mutates_args=(),
    schema="(Tensor grad, Tensor grad_membrane, Tensor grad_awake, Tensor current, Tensor membrane, Tensor awake, "
    f"Tensor? wake, {_CONSTANTS}) -> (Tensor, Tensor, Tensor)",
)
def dormant_lif_grad(
    grad, grad_membrane, grad_awake, current, membrane, awake, wake, beta, threshold, dormancy_threshold, slope,
    parameter, gate_slope, gate_parameter, reset, path,
):  # fmt: skip
    """Gradients of the current (T, B, ...), of the first membrane and of the first gate (B, ...)."""
    return importlib.import_module(PATHS[path]).backward(
        grad, grad_membrane, grad_awake, current, membrane, awake, wake, beta, threshold, dormancy_threshold, slope,
        parameter, gate_slope, gate_parameter, reset,
    )  # fmt: skip


@dormant_lif_grad.register_fake
def _(grad, grad_membrane, grad_awake, current, *others):
    first = channels_first(current)
    return sequence_like(grad, first), state_like(grad_membrane, first), state_like(grad_awake, first)


def _setup(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor, Tensor]) -> None:
    # Membranes and gates are computed again on the way back, as in `ranvier::lif`.
    current, membrane, awake, wake, *ctx.constants = inputs
    ctx.save_for_backward(current, membrane, awake, wake)


def _backward(ctx: Any, *grads: Tensor) -> tuple[Any, ...]:
    out, membrane, awake = dormant_lif_grad(*grads, *ctx.saved_tensors, *ctx.constants)
    return out, membrane, awake, None, *[None] * len(ctx.constants)


dormant_lif.register_autograd(_backward, setup_context=_setup)
