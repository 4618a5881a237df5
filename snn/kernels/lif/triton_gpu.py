"""Leaky integrate-and-fire in Triton, fused over time: on CUDA, or on the CPU under Triton's interpreter."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor

from snn.dispatch import Backend
from snn.kernels.gpu.triton_here import on_device_of, triton_is_missing, unsupported
from snn.kernels.layout import channels_first, plane, planes, sequence, state_of
from snn.kernels.lif.numba_cpu import known_constants, run
from snn.kernels.lif.operator import KERNEL_IDS, RESETS

BLOCK = 128
"""Neurons of a program."""


def forward(current: Tensor, state: Tensor, beta: float, threshold: float, reset: str) -> tuple[Tensor, Tensor]:
    """Spikes and last membrane of `ranvier::lif`."""
    first = channels_first(current)
    x, start = planes(current.detach(), first), plane(state.detach(), first)
    spikes, last, _ = _steps(x, start, beta, threshold, reset, keep=False)
    return sequence(spikes, current.shape, first), state_of(last, state.shape, first)


def _steps(
    x: Tensor, start: Tensor, beta: float, threshold: float, reset: str, *, keep: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """Spikes (P, T, Q), last membrane (P, Q), and with `keep` the membranes before reset."""
    import triton

    from snn.kernels.lif.triton_kernels import forward_kernel

    spikes, last = torch.empty_like(x), torch.empty_like(start)
    membranes = torch.empty_like(x) if keep else x
    if x.numel():
        with on_device_of(x):
            forward_kernel[(x.shape[0], triton.cdiv(x.shape[2], BLOCK))](
                x, start, spikes, membranes, last, x.shape[1], x.shape[2],
                BETA=beta, THRESHOLD=threshold, RESET=RESETS[reset], KEEP=keep, BLOCK=BLOCK,
            )  # fmt: skip
    return spikes, last, membranes


def backward(
    grad: Tensor, grad_last: Tensor, current: Tensor, state: Tensor, beta: float, threshold: float, slope: str,
    parameter: float, reset: str,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Gradients of the current and of the first membrane of `ranvier::lif_grad`."""
    import triton

    from snn.kernels.lif.triton_kernels import backward_kernel

    first = channels_first(current)
    x, begin_at = planes(current.detach(), first), plane(state.detach(), first)
    _, _, v = _steps(x, begin_at, beta, threshold, reset, keep=True)
    g, g_last = planes(grad, first), plane(grad_last, first)
    out, start = torch.empty_like(g), torch.empty_like(g_last)
    if g.numel():
        with on_device_of(g):
            backward_kernel[(g.shape[0], triton.cdiv(g.shape[2], BLOCK))](
                g, g_last, v, out, start, g.shape[1], g.shape[2],
                BETA=beta, THRESHOLD=threshold, A=parameter, RESET=RESETS[reset],
                KIND=KERNEL_IDS.index(slope), BLOCK=BLOCK,
            )  # fmt: skip
    return sequence(out, grad.shape, first), state_of(start, grad_last.shape, first)


def supports(arguments: Mapping[str, Any]) -> str | None:
    """Float32 and float64 on CUDA, numbers for beta and threshold, and a surrogate whose slope is compiled in."""
    return unsupported(arguments["current"]) or known_constants(arguments)


BACKEND = Backend("triton", 90, "Triton, fused over time", triton_is_missing, supports, partial(run, path="triton"))
