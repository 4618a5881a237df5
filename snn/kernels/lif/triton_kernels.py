"""Triton kernels of the leaky integrate-and-fire neuron, fused over time, forward and backward.

Arrays are (P, T, Q): a program steps one p and a block of Q through T, with the membranes in registers. The constants
are compiled in: a float argument of a kernel would be rounded to float32, whatever the dtype of the call.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def forward_kernel(
    current_ptr, start_ptr, spikes_ptr, membranes_ptr, last_ptr, steps, width,
    BETA: tl.constexpr, THRESHOLD: tl.constexpr, RESET: tl.constexpr, KEEP: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Spikes, the last membrane, and with KEEP all membranes before reset."""
    p = tl.program_id(0).to(tl.int64)
    q = tl.program_id(1).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = q < width
    v = tl.load(start_ptr + p * width + q, mask=inside, other=0.0)
    for t in range(0, steps):
        at = (p * steps + t) * width + q
        v = BETA * v + tl.load(current_ptr + at, mask=inside, other=0.0)
        fired = v > THRESHOLD
        tl.store(spikes_ptr + at, fired.to(v.dtype), mask=inside)
        if KEEP:
            tl.store(membranes_ptr + at, v, mask=inside)
        if RESET == 0:
            v = tl.where(fired, 0.0, v)
        elif RESET == 1:
            v = tl.where(fired, v - THRESHOLD, v)
    tl.store(last_ptr + p * width + q, v, mask=inside)


@triton.jit
def _slope(v, THRESHOLD: tl.constexpr, A: tl.constexpr, KIND: tl.constexpr):
    x = v - THRESHOLD
    if KIND == 0:
        z = 1.5707963267948966 * A * x
        return (A / 2) / (1 + z * z)
    elif KIND == 1:
        z = 1 + A * tl.abs(x)
        return 1 / (z * z)
    elif KIND == 2:
        s = 1 / (1 + tl.exp(-A * x))
        return A * s * (1 - s)
    else:
        return tl.maximum(1 - tl.abs(x) / A, 0.0) / A


@triton.jit
def backward_kernel(
    grad_ptr, grad_last_ptr, membranes_ptr, out_ptr, start_ptr, steps, width,
    BETA: tl.constexpr, THRESHOLD: tl.constexpr, A: tl.constexpr, RESET: tl.constexpr, KIND: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """Gradients of the currents and of the start, the reset detached."""
    p = tl.program_id(0).to(tl.int64)
    q = tl.program_id(1).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = q < width
    carried = tl.load(grad_last_ptr + p * width + q, mask=inside, other=0.0)
    for back in range(0, steps):
        at = (p * steps + (steps - 1 - back)) * width + q
        v = tl.load(membranes_ptr + at, mask=inside, other=0.0)
        g = tl.load(grad_ptr + at, mask=inside, other=0.0)
        if RESET == 0:
            carried = tl.where(v > THRESHOLD, 0.0, carried)
        carried = carried + g * _slope(v, THRESHOLD, A, KIND)
        tl.store(out_ptr + at, carried, mask=inside)
        carried = BETA * carried
    tl.store(start_ptr + p * width + q, carried, mask=inside)
