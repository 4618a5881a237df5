"""Backends of the linear layer with one fixed delay for each connection."""

from __future__ import annotations

from typing import Any

import torch

from snn.dispatch import Backend
from snn.kernels.delay import numba_cpu, reference, triton_gpu

BACKENDS: tuple[Backend, ...] = (*numba_cpu.BACKENDS, triton_gpu.BACKEND, reference.BACKEND)


def example(device: torch.device, dtype: torch.dtype, spike_grad: Any = None) -> dict[str, Any]:
    """Arguments of a small call, for `snn.explain`."""
    return {
        "x": torch.zeros(2, 1, 1, device=device, dtype=dtype),
        "weight": torch.zeros(1, 1, device=device, dtype=dtype),
        "delay": torch.ones(1, 1, device=device, dtype=torch.uint8),
        "bias": None,
        "history": None,
        "max_delay": 1,
    }
