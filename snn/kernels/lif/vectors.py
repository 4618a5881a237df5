"""The inner loops of the neuron in LLVM's vector types: membranes stay in registers for the whole sequence.

`GROUP` vectors of neurons are stepped side by side, which hides the latency of one step behind the others. Products and
sums are rounded one by one, as the reference rounds them.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from snn.kernels.lif.operator import RESETS
from snn.kernels.native.vectors import Memory, lanes, spread

GROUP = 4
"""Vectors stepped side by side."""

_INT = ir.IntType(64)


def _after_reset(builder: Any, reset: str, v: Any, fired: Any, threshold: Any) -> Any:
    if reset == "zero":
        return builder.select(fired, ir.Constant(v.type, [0.0] * v.type.count), v)
    if reset == "subtract":
        return builder.select(fired, builder.fsub(v, threshold), v)
    return v


def _make_steps(reset: str, keep: bool) -> Any:
    @intrinsic
    def steps(typing, current, out, bases, bases_at, out_gap, out_stride, stride, v, beta, threshold, count):
        """Step the group whose vector k is at `bases[bases_at + k]` of `current`, `stride` numbers on for each step.

        `v` (GROUP * lanes,) holds the membranes before and after. What is written to `out` at each step are spikes, at
        the places of `current`, or with `keep` the membranes before reset, `out_gap` apart and `out_stride` on.
        """
        signature = types.void(
            current, out, bases, bases_at, out_gap, out_stride, stride, v, beta, threshold, count
        )  # fmt: skip

        def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            source, target, places, held = (Memory(context, builder, sig.args[k], args[k]) for k in (0, 1, 2, 7))
            first, gap, out_step, step, number = (
                context.cast(builder, args[k], sig.args[k], types.int64) for k in (3, 4, 5, 6, 10)
            )
            width = lanes(source.itemsize)
            kind = ir.VectorType(context.get_data_type(sig.args[0].dtype), width)
            decay, limit = spread(builder, args[8], kind), spread(builder, args[9], kind)
            one, zero = ir.Constant(kind, [1.0] * width), ir.Constant(kind, [0.0] * width)
            starts = [places.scalar(builder.add(first, ir.Constant(_INT, k))) for k in range(GROUP)]
            membranes = []
            for k in range(GROUP):
                place = cgutils.alloca_once(builder, kind)
                builder.store(held.vector(ir.Constant(_INT, k * width), kind), place)
                membranes.append(place)
            with cgutils.for_range(builder, number, intp=_INT) as loop:
                along, out_along = builder.mul(loop.index, step), builder.mul(loop.index, out_step)
                for k, (start, place) in enumerate(zip(starts, membranes, strict=True)):
                    at = builder.add(start, along)
                    u = builder.fadd(builder.fmul(decay, builder.load(place)), source.vector(at, kind))
                    fired = builder.fcmp_ordered(">", u, limit)
                    if keep:
                        target.put(builder.add(out_along, builder.mul(ir.Constant(_INT, k), gap)), u)
                    else:
                        target.put(at, builder.select(fired, one, zero))
                    builder.store(_after_reset(builder, reset, u, fired, limit), place)
            for k, place in enumerate(membranes):
                held.put(ir.Constant(_INT, k * width), builder.load(place))
            return context.get_dummy_value()

        return signature, generate

    return steps


def _make_back(reset: str) -> Any:
    @intrinsic
    def back(typing, grad, out, bases, bases_at, stride, membranes, slopes, carried, beta, threshold, count):
        """Step the gradients of a group backwards through `count` steps.

        `grad` and `out` lie as the currents do; `membranes` and `slopes` (count, GROUP * lanes) are contiguous;
        `carried` (GROUP * lanes,) holds the gradients of the membranes after the last step, and then before the first.
        """
        signature = types.void(
            grad, out, bases, bases_at, stride, membranes, slopes, carried, beta, threshold, count
        )  # fmt: skip

        def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            source, target, places, before, slope, held = (
                Memory(context, builder, sig.args[k], args[k]) for k in (0, 1, 2, 5, 6, 7)
            )
            first, step, number = (context.cast(builder, args[k], sig.args[k], types.int64) for k in (3, 4, 10))
            width = lanes(source.itemsize)
            kind = ir.VectorType(context.get_data_type(sig.args[0].dtype), width)
            decay, limit = spread(builder, args[8], kind), spread(builder, args[9], kind)
            zero = ir.Constant(kind, [0.0] * width)
            starts = [places.scalar(builder.add(first, ir.Constant(_INT, k))) for k in range(GROUP)]
            gradients = []
            for k in range(GROUP):
                place = cgutils.alloca_once(builder, kind)
                builder.store(held.vector(ir.Constant(_INT, k * width), kind), place)
                gradients.append(place)
            with cgutils.for_range(builder, number, intp=_INT) as loop:
                t = builder.sub(builder.sub(number, loop.index), ir.Constant(_INT, 1))
                along, row = builder.mul(t, step), builder.mul(t, ir.Constant(_INT, GROUP * width))
                for k, (start, place) in enumerate(zip(starts, gradients, strict=True)):
                    at, inner = builder.add(start, along), builder.add(row, ir.Constant(_INT, k * width))
                    own = builder.fmul(source.vector(at, kind), slope.vector(inner, kind))
                    passed = builder.load(place)
                    if reset == "zero":
                        fired = builder.fcmp_ordered(">", before.vector(inner, kind), limit)
                        passed = builder.select(fired, zero, passed)
                    total = builder.fadd(passed, own)
                    target.put(at, total)
                    builder.store(builder.fmul(decay, total), place)
            for k, place in enumerate(gradients):
                held.put(ir.Constant(_INT, k * width), builder.load(place))
            return context.get_dummy_value()

        return signature, generate

    return back


spikes_zero, spikes_subtract, spikes_none = (_make_steps(reset, keep=False) for reset in RESETS)
membranes_zero, membranes_subtract, membranes_none = (_make_steps(reset, keep=True) for reset in RESETS)
back_zero, back_subtract, back_none = (_make_back(reset) for reset in RESETS)
