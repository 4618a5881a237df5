"""Backends of the leaky integrate-and-fire neuron over a whole sequence."""

from __future__ import annotations

from typing import Any

import torch

from snn.dispatch import Backend
from snn.kernels.lif import numba_cpu, reference, triton_gpu
from snn.surrogate import ArcTan

BACKENDS: tuple[Backend, ...] = (numba_cpu.BACKEND, triton_gpu.BACKEND, reference.BACKEND)


def example(device: torch.device, dtype: torch.dtype, spike_grad: Any = None) -> dict[str, Any]:
    """Arguments of a small call, for `snn.explain`."""
    return {
        "current": torch.zeros(2, 1, 1, device=device, dtype=dtype),
        "beta": 0.5,
        "threshold": 1.0,
        "spike_grad": ArcTan() if spike_grad is None else spike_grad,
        "reset_mechanism": "zero",
        "state": torch.zeros(1, 1, device=device, dtype=dtype),
    }
