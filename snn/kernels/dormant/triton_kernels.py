"""Triton kernels of the Dormant Spiking Neuron, fused over time, forward and backward.

Arrays are (P, T, Q) as in `snn.kernels.lif.triton_kernels`; `wake` is (T, Q). A KIND below 0 is a slope of zero.
"""

from __future__ import annotations

import triton
import triton.language as tl

from snn.kernels.lif.triton_kernels import _slope


@triton.jit
def forward_kernel(
    current_ptr, start_ptr, awake_ptr, wake_ptr, spikes_ptr, met_ptr, met_awake_ptr, membranes_ptr, awakes_ptr,
    last_ptr, last_awake_ptr, steps, width,
    BETA: tl.constexpr, THRESHOLD: tl.constexpr, GATE: tl.constexpr, RESET: tl.constexpr, WAKES: tl.constexpr,
    KEEP: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Spikes, the last membrane and gate; with KEEP all that the way back needs: see the names in `fused.backward`."""
    p = tl.program_id(0).to(tl.int64)
    q = tl.program_id(1).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = q < width
    v = tl.load(start_ptr + p * width + q, mask=inside, other=0.0)
    d = tl.load(awake_ptr + p * width + q, mask=inside, other=0.0)
    for t in range(0, steps):
        at = (p * steps + t) * width + q
        if WAKES:
            wake = tl.load(wake_ptr + t * width + q, mask=inside, other=0) != 0
            v = tl.where(wake & (d == 0.0) & (v == v), 0.0, v)
            d = tl.where(wake, 1.0, d).to(v.dtype)
        if KEEP:
            tl.store(met_ptr + at, v, mask=inside)
            tl.store(met_awake_ptr + at, d, mask=inside)
        d = tl.where(v > GATE, d, 0.0)
        v = BETA * v + tl.load(current_ptr + at, mask=inside, other=0.0)
        s = tl.where(v > THRESHOLD, d, 0.0)
        tl.store(spikes_ptr + at, s, mask=inside)
        if KEEP:
            tl.store(membranes_ptr + at, v, mask=inside)
            tl.store(awakes_ptr + at, d, mask=inside)
        if RESET == 0:
            v = tl.where(s != 0.0, 0.0, v)
        elif RESET == 1:
            v = v - THRESHOLD * s
    tl.store(last_ptr + p * width + q, v, mask=inside)
    tl.store(last_awake_ptr + p * width + q, d, mask=inside)


@triton.jit
def backward_kernel(
    grad_ptr, grad_last_ptr, grad_awake_ptr, first_awake_ptr, wake_ptr, met_ptr, met_awake_ptr, membranes_ptr,
    awakes_ptr, out_ptr, start_ptr, start_awake_ptr, steps, width,
    BETA: tl.constexpr, THRESHOLD: tl.constexpr, GATE: tl.constexpr, RESET: tl.constexpr, WAKES: tl.constexpr,
    KIND: tl.constexpr, A: tl.constexpr, GATE_KIND: tl.constexpr, GATE_A: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Gradients of the currents, of the start and of the first gate, the reset detached."""
    p = tl.program_id(0).to(tl.int64)
    q = tl.program_id(1).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = q < width
    carried = tl.load(grad_last_ptr + p * width + q, mask=inside, other=0.0)
    to_awake = tl.load(grad_awake_ptr + p * width + q, mask=inside, other=0.0)
    for back in range(0, steps):
        t = steps - 1 - back
        at = (p * steps + t) * width + q
        g = tl.load(grad_ptr + at, mask=inside, other=0.0)
        v = tl.load(membranes_ptr + at, mask=inside, other=0.0)
        d = tl.load(awakes_ptr + at, mask=inside, other=0.0)
        x = tl.load(met_ptr + at, mask=inside, other=0.0)
        above = v > THRESHOLD
        to_gate = to_awake + tl.where(above, g, 0.0)
        if RESET == 0:
            carried = tl.where(above & (d != 0.0), 0.0, carried)
        carried = carried + g * d * _slope(v, THRESHOLD, A, KIND)
        tl.store(out_ptr + at, carried, mask=inside)
        carried = BETA * carried
        if GATE_KIND >= 0:
            before = tl.load(met_awake_ptr + at, mask=inside, other=0.0)
            carried = carried + to_gate * before * _slope(x, GATE, GATE_A, GATE_KIND)
        to_awake = tl.where(x > GATE, to_gate, 0.0)
        if WAKES:
            wake = tl.load(wake_ptr + t * width + q, mask=inside, other=0) != 0
            if t > 0:
                last = tl.load(awakes_ptr + at - width, mask=inside, other=0.0)
            else:
                last = tl.load(first_awake_ptr + p * width + q, mask=inside, other=0.0)
            carried = tl.where(wake & (last == 0.0), 0.0, carried)
            to_awake = tl.where(wake, 0.0, to_awake)
    tl.store(start_ptr + p * width + q, carried, mask=inside)
    tl.store(start_awake_ptr + p * width + q, to_awake, mask=inside)
