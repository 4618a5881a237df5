"""The Dormant Spiking Neuron in Triton, fused over time: on CUDA, or on the CPU under Triton's interpreter."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor

from snn.dispatch import Backend
from snn.kernels.dormant.numba_cpu import gate_number, known_constants, run, wake_plane
from snn.kernels.gpu.triton_here import on_device_of, triton_is_missing, unsupported
from snn.kernels.layout import channels_first, plane, planes, sequence, state_of
from snn.kernels.lif.operator import KERNEL_IDS, RESETS

BLOCK = 128
"""Neurons of a program."""


def forward(
    current: Tensor, membrane: Tensor, awake: Tensor, wake: Tensor | None, beta: float, threshold: float, gate: float,
    reset: str,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Spikes, last membrane and last gate of `ranvier::dormant_lif`."""
    first = channels_first(current)
    x, start, gates = planes(current.detach(), first), plane(membrane.detach(), first), plane(awake.detach(), first)
    waking = wake_plane(wake, current, first)
    (spikes, last, last_awake), _ = _steps(x, start, gates, waking, beta, threshold, gate, reset, keep=False)
    return (
        sequence(spikes, current.shape, first), state_of(last, membrane.shape, first),
        state_of(last_awake, awake.shape, first),
    )  # fmt: skip


def _steps(
    x: Tensor, start: Tensor, awake: Tensor, wake: Tensor, beta: float, threshold: float, gate: float, reset: str,
    *, keep: bool,
) -> tuple[tuple[Tensor, Tensor, Tensor], list[Tensor]]:  # fmt: skip
    """Spikes (P, T, Q), last membrane and gate (P, Q), and with `keep` what the way back needs."""
    import triton

    from snn.kernels.dormant.triton_kernels import forward_kernel

    spikes, last, last_awake = torch.empty_like(x), torch.empty_like(start), torch.empty_like(awake)
    kept = [torch.empty_like(x) if keep else x for _ in range(4)]
    if x.numel():
        with on_device_of(x):
            forward_kernel[(x.shape[0], triton.cdiv(x.shape[2], BLOCK))](
                x, start, awake, wake, spikes, *kept, last, last_awake, x.shape[1], x.shape[2],
                BETA=beta, THRESHOLD=threshold, GATE=gate, RESET=RESETS[reset], WAKES=wake.numel() > 0, KEEP=keep,
                BLOCK=BLOCK,
            )  # fmt: skip
    return (spikes, last, last_awake), kept


def backward(
    grad: Tensor, grad_membrane: Tensor, grad_awake: Tensor, current: Tensor, membrane: Tensor, awake: Tensor,
    wake: Tensor | None, beta: float, threshold: float, gate: float, slope: str, parameter: float, gate_slope: str,
    gate_parameter: float, reset: str,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Gradients of the current, of the first membrane and of the first gate of `ranvier::dormant_lif_grad`."""
    import triton

    from snn.kernels.dormant.triton_kernels import backward_kernel

    first = channels_first(current)
    x, start, gates = planes(current.detach(), first), plane(membrane.detach(), first), plane(awake.detach(), first)
    waking = wake_plane(wake, current, first)
    _, kept = _steps(x, start, gates, waking, beta, threshold, gate, reset, keep=True)
    g, g_last, g_awake = planes(grad, first), plane(grad_membrane, first), plane(grad_awake, first)
    out, to_start, to_awake = torch.empty_like(g), torch.empty_like(g_last), torch.empty_like(g_awake)
    if g.numel():
        with on_device_of(g):
            backward_kernel[(g.shape[0], triton.cdiv(g.shape[2], BLOCK))](
                g, g_last, g_awake, gates, waking, *kept, out, to_start, to_awake, g.shape[1], g.shape[2],
                BETA=beta, THRESHOLD=threshold, GATE=gate, RESET=RESETS[reset], WAKES=waking.numel() > 0,
                KIND=KERNEL_IDS.index(slope), A=parameter, GATE_KIND=gate_number(gate_slope), GATE_A=gate_parameter,
                BLOCK=BLOCK,
            )  # fmt: skip
    return (
        sequence(out, grad.shape, first), state_of(to_start, grad_membrane.shape, first),
        state_of(to_awake, grad_awake.shape, first),
    )  # fmt: skip


def supports(arguments: Mapping[str, Any]) -> str | None:
    """Float32 and float64 on CUDA, numbers for the constants, and surrogates whose slopes are compiled in."""
    return unsupported(arguments["current"]) or known_constants(arguments)


BACKEND = Backend("triton", 90, "Triton, fused over time", triton_is_missing, supports, partial(run, path="triton"))
