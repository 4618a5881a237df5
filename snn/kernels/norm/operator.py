"""Masked batch normalisation as operators of `torch.library`: what the compiler and autograd know of it."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from snn.kernels.layout import empty_sequence


@torch.library.custom_op(
    "ranvier::masked_batch_norm",
    mutates_args=(),
    schema="(Tensor x, Tensor weight, Tensor bias, Tensor? mask, float eps) -> (Tensor, Tensor, Tensor)",
    device_types="cpu",
)
def masked_batch_norm(x, weight, bias, mask, eps):
    """`y` (T, B, N), and mean and biased variance (N,) over the frames where `mask` (T, B) is True."""
    from snn.kernels.norm import numba_cpu

    return numba_cpu.forward(x, weight, bias, mask, eps)


@masked_batch_norm.register_fake
def _(x, weight, bias, mask, eps):
    return empty_sequence(x, *x.shape), weight.new_empty(weight.shape), weight.new_empty(weight.shape)


@torch.library.custom_op(
    "ranvier::masked_batch_norm_grad",
    mutates_args=(),
    schema="(Tensor grad, Tensor x, Tensor weight, Tensor mean, Tensor var, Tensor? mask, float eps) "
    "-> (Tensor, Tensor, Tensor)",
    device_types="cpu",
)
def masked_batch_norm_grad(grad, x, weight, mean, var, mask, eps):
    """Gradients of x (T, B, N), weight and bias (N,)."""
    from snn.kernels.norm import numba_cpu

    return numba_cpu.backward(grad, x, weight, mean, var, mask, eps)


@masked_batch_norm_grad.register_fake
def _(grad, x, weight, mean, var, mask, eps):
    return empty_sequence(x, *x.shape), weight.new_empty(weight.shape), weight.new_empty(weight.shape)


def _setup(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor, Tensor]) -> None:
    x, weight, _, mask, ctx.eps = inputs
    _, mean, var = output
    ctx.mark_non_differentiable(mean, var)
    ctx.save_for_backward(x, weight, mean, var, mask)


def _backward(ctx: Any, grad: Tensor, *unused: Any) -> tuple[Tensor | None, ...]:
    x, weight, mean, var, mask = ctx.saved_tensors
    return *masked_batch_norm_grad(grad, x, weight, mean, var, mask, ctx.eps), None, None


masked_batch_norm.register_autograd(_backward, setup_context=_setup)
