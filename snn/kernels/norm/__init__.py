"""Backends of batch normalisation over the real frames of a padded batch, in training."""

from __future__ import annotations

from typing import Any

import torch

from snn.dispatch import Backend
from snn.kernels.norm import numba_cpu, reference

BACKENDS: tuple[Backend, ...] = (numba_cpu.BACKEND, reference.BACKEND)


def example(device: torch.device, dtype: torch.dtype, spike_grad: Any = None) -> dict[str, Any]:
    """Arguments of a small call, for `snn.explain`."""
    return {
        "x": torch.zeros(2, 1, 1, device=device, dtype=dtype),
        "weight": torch.ones(1, device=device, dtype=dtype),
        "bias": torch.zeros(1, device=device, dtype=dtype),
        "mask": torch.ones(2, 1, device=device, dtype=torch.bool),
        "eps": 1e-5,
    }
