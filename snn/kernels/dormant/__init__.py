"""Backends of the Dormant Spiking Neuron over a whole sequence."""

from __future__ import annotations

from typing import Any

import torch

from snn.dispatch import Backend
from snn.kernels.dormant import numba_cpu, reference, triton_gpu
from snn.surrogate import Sigmoid

BACKENDS: tuple[Backend, ...] = (numba_cpu.BACKEND, triton_gpu.BACKEND, reference.BACKEND)


def example(device: torch.device, dtype: torch.dtype, spike_grad: Any = None) -> dict[str, Any]:
    """Arguments of a small call, for `snn.explain`."""
    surrogate = Sigmoid() if spike_grad is None else spike_grad
    return {
        "current": torch.zeros(2, 1, 1, device=device, dtype=dtype),
        "beta": 0.5,
        "threshold": 1.0,
        "dormancy_threshold": -0.05,
        "spike_grad": surrogate,
        "dormancy_grad": surrogate,
        "reset_mechanism": "zero",
        "membrane": torch.zeros(1, 1, device=device, dtype=dtype),
        "awake": torch.ones(1, 1, device=device, dtype=dtype),
        "wake": None,
    }
