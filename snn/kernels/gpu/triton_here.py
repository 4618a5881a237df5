"""Whether Triton's kernels can run, and on which tensors."""

from __future__ import annotations

import importlib.util
import os
from contextlib import AbstractContextManager, nullcontext
from functools import cache

import torch
from torch import Tensor

from snn.dispatch import same_when_compiled

LEAST_CAPABILITY = (7, 0)


@cache  # asked at every call of every operator
def triton_is_missing() -> str | None:
    """Why the Triton kernels cannot run; None when triton is installed."""
    if importlib.util.find_spec("triton") is None:
        return "triton is not installed"
    return None


@same_when_compiled
def interpreted() -> bool:
    """Whether Triton's interpreter runs the kernels, which it does on tensors of the CPU, slowly.

    The variable must be set before triton is imported for the first time.
    """
    return os.environ.get("TRITON_INTERPRET") == "1"


def unsupported(x: Tensor) -> str | None:
    """Why the kernels cannot take tensors like `x`; None when they can."""
    if x.dtype not in (torch.float32, torch.float64):
        return f"it takes float32 and float64, the call is {x.dtype}"
    if x.device.type == "cpu":
        return None if interpreted() else "it runs on CUDA (on the CPU only under TRITON_INTERPRET=1)"
    if x.device.type != "cuda":
        return f"it runs on CUDA, the call is on {x.device.type}"
    return _too_old(x.device.index or 0)


@same_when_compiled
def _too_old(index: int) -> str | None:
    found = torch.cuda.get_device_capability(index)
    if found >= LEAST_CAPABILITY:
        return None
    return f"it needs compute capability {'.'.join(map(str, LEAST_CAPABILITY))}; the device has {found[0]}.{found[1]}"


def on_device_of(x: Tensor) -> AbstractContextManager:
    """Launch kernels on the device of `x`."""
    return torch.cuda.device(x.device) if x.device.type == "cuda" else nullcontext()
