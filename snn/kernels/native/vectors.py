"""The dense inner loops of the delayed layer, written in LLVM's vector types.

numba's own loops would not keep a block of sums in registers while the source of each product moves by its own delay;
these do. LLVM splits the vectors where the machine's are narrower, so the same code runs on every processor.

Every element of a result is summed in one fixed order by fused multiply-adds, whatever the size of the block it is
computed in: a result does not depend on what it was batched with, on chunking, or on the number of threads.
"""

from __future__ import annotations

from typing import Any

import llvmlite.binding as llvm
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

FEATURES = llvm.get_host_cpu_features()
VECTOR_BYTES = 64 if FEATURES.get("avx512f") else 32
VECTORS = 16
"""Vectors of sums that the largest block keeps in registers."""

_INT = ir.IntType(64)


def lanes(itemsize: int) -> int:
    """Numbers in a vector."""
    return VECTOR_BYTES // itemsize


def _multiply_add(builder: Any, a: Any, b: Any, c: Any) -> Any:
    """a * b + c, rounded once where the processor can and twice where it cannot; the same in every caller."""
    kind = a.type
    if not (FEATURES.get("fma") or FEATURES.get("neon")):
        return builder.fadd(builder.fmul(a, b), c)
    name = f"llvm.fma.v{kind.count}f{32 if isinstance(kind.element, ir.FloatType) else 64}"
    function = cgutils.get_or_insert_function(builder.module, ir.FunctionType(kind, [kind] * 3), name)
    return builder.call(function, [a, b, c])


class Memory:
    """A contiguous array inside generated code: loads and stores at element positions."""

    def __init__(self, context: Any, builder: Any, kind: Any, value: Any) -> None:
        self.builder = builder
        self.data = context.make_array(kind)(context, builder, value).data
        self.itemsize = context.get_abi_sizeof(context.get_data_type(kind.dtype))

    def pointer(self, position: Any) -> Any:
        """Of the number at a position."""
        return self.builder.gep(self.data, [position])

    def vector(self, position: Any, kind: Any) -> Any:
        """The vector of type `kind` that begins at a position, which need not be aligned."""
        pointer = self.builder.bitcast(self.pointer(position), kind.as_pointer())
        return self.builder.load(pointer, align=self.itemsize)

    def put(self, position: Any, value: Any) -> None:
        """Store a vector from a position on."""
        pointer = self.builder.bitcast(self.pointer(position), value.type.as_pointer())
        self.builder.store(value, pointer, align=self.itemsize)

    def scalar(self, position: Any) -> Any:
        """The number at a position."""
        return self.builder.load(self.pointer(position))


def spread(builder: Any, scalar: Any, kind: Any) -> Any:
    """A vector whose every lane is `scalar`."""
    one = builder.insert_element(ir.Constant(kind, ir.Undefined), scalar, ir.Constant(ir.IntType(32), 0))
    zeros = ir.Constant(ir.VectorType(ir.IntType(32), kind.count), [0] * kind.count)
    return builder.shuffle_vector(one, ir.Constant(kind, ir.Undefined), zeros)


def _delay(array: Memory, kind: Any, position: Any) -> Any:
    """The delay at `position` as a 64-bit integer."""
    widen = array.builder.sext if kind.dtype.signed else array.builder.zext
    return widen(array.scalar(position), _INT)


def _clamp(builder: Any, value: Any, low: Any, high: Any) -> Any:
    above = builder.select(builder.icmp_signed("<", value, low), low, value)
    return builder.select(builder.icmp_signed(">", above, high), high, above)


def _make_accumulate(vectors: int) -> Any:
    @intrinsic
    def accumulate(typing, y, y_at, x, x_at, x_stride, w, w_at, delay, m, step, low, high, count):
        """`y[y_at + k] += sum_i w[w_at + i] * x[x_at + i * x_stride + from_i + k]`, i < count.

        Where `from_i` is `m + step * delay[w_at + i]`, held between `low` and `high`.
        """
        signature = types.void(y, y_at, x, x_at, x_stride, w, w_at, delay, m, step, low, high, count)

        def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            arrays = {k: Memory(context, builder, sig.args[k], args[k]) for k in (0, 2, 5, 7)}
            target, source, weight, shift = arrays[0], arrays[2], arrays[5], arrays[7]
            wide = [context.cast(builder, args[k], sig.args[k], types.int64) for k in (1, 3, 4, 6, 8, 9, 10, 11, 12)]
            y_from, x_from, stride, w_from, start, each, lowest, highest, number = wide
            width = lanes(target.itemsize)
            kind = ir.VectorType(context.get_data_type(sig.args[0].dtype), width)
            steps = [ir.Constant(_INT, k * width) for k in range(vectors)]
            sums = []
            for step_at in steps:
                place = cgutils.alloca_once(builder, kind)
                builder.store(target.vector(builder.add(y_from, step_at), kind), place)
                sums.append(place)
            with cgutils.for_range(builder, number, intp=_INT) as loop:
                factor = spread(builder, weight.scalar(builder.add(w_from, loop.index)), kind)
                delayed = builder.mul(_delay(shift, sig.args[7], builder.add(w_from, loop.index)), each)
                moved = _clamp(builder, builder.add(start, delayed), lowest, highest)
                row = builder.add(builder.add(x_from, builder.mul(loop.index, stride)), moved)
                for step_at, place in zip(steps, sums, strict=True):
                    value = source.vector(builder.add(row, step_at), kind)
                    builder.store(_multiply_add(builder, factor, value, builder.load(place)), place)
            for step_at, place in zip(steps, sums, strict=True):
                target.put(builder.add(y_from, step_at), builder.load(place))
            return context.get_dummy_value()

        return signature, generate

    return accumulate


accumulate_1, accumulate_2, accumulate_4, accumulate_8, accumulate_16 = (
    _make_accumulate(k) for k in (1, 2, 4, 8, VECTORS)
)


@intrinsic
def correlate(typing, out, out_at, g, g_at, x, x_at, x_stride, delay, delay_at, step, count):
    """`out[out_at + k] += sum_m g[g_at + m] * x[x_at + k * x_stride + step * delay[delay_at + k] + m]`.

    For the `lanes` values of k, over `count` vectors of m.
    """
    signature = types.void(out, out_at, g, g_at, x, x_at, x_stride, delay, delay_at, step, count)

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        arrays = {k: Memory(context, builder, sig.args[k], args[k]) for k in (0, 2, 4, 7)}
        target, left, right, shift = arrays[0], arrays[2], arrays[4], arrays[7]
        wide = [context.cast(builder, args[k], sig.args[k], types.int64) for k in (1, 3, 5, 6, 8, 9, 10)]
        out_from, g_from, x_from, stride, shift_from, each, number = wide
        width = lanes(target.itemsize)
        kind = ir.VectorType(context.get_data_type(sig.args[0].dtype), width)
        rows, sums = [], []
        for k in range(width):
            at = ir.Constant(_INT, k)
            moved = builder.mul(_delay(shift, sig.args[7], builder.add(shift_from, at)), each)
            rows.append(builder.add(builder.add(x_from, builder.mul(at, stride)), moved))
            place = cgutils.alloca_once(builder, kind)
            builder.store(ir.Constant(kind, [0.0] * width), place)
            sums.append(place)
        with cgutils.for_range(builder, number, intp=_INT) as loop:
            along = builder.mul(loop.index, ir.Constant(_INT, width))
            value = left.vector(builder.add(g_from, along), kind)
            for row, place in zip(rows, sums, strict=True):
                other = right.vector(builder.add(row, along), kind)
                builder.store(_multiply_add(builder, value, other, builder.load(place)), place)
        total = _sum_each(builder, [builder.load(place) for place in sums], width)
        target.put(out_from, builder.fadd(target.vector(out_from, kind), total))
        return context.get_dummy_value()

    return signature, generate


@intrinsic
def multiply_add(typing, a, b, c):
    """`a * b + c` of three numbers, rounded as `accumulate` rounds it."""
    signature = c(c, c, c)

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        if not (FEATURES.get("fma") or FEATURES.get("neon")):
            return builder.fadd(builder.fmul(args[0], args[1]), args[2])
        kind = args[2].type
        name = f"llvm.fma.f{32 if isinstance(kind, ir.FloatType) else 64}"
        function = cgutils.get_or_insert_function(builder.module, ir.FunctionType(kind, [kind] * 3), name)
        return builder.call(function, args)

    return signature, generate


def _sum_each(builder: Any, vectors: list[Any], width: int) -> Any:
    """The vector whose lane k is the sum of the lanes of vector k; there are as many vectors as lanes."""
    index = ir.VectorType(ir.IntType(32), width)
    even = ir.Constant(index, list(range(0, 2 * width, 2)))
    odd = ir.Constant(index, list(range(1, 2 * width, 2)))
    while len(vectors) > 1:
        vectors = [
            builder.fadd(builder.shuffle_vector(a, b, even), builder.shuffle_vector(a, b, odd))
            for a, b in zip(vectors[::2], vectors[1::2], strict=True)
        ]
    return vectors[0]
