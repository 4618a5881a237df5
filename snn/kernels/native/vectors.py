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
    return _widened(array.builder, array.scalar(position), kind.dtype.signed)


def _widened(builder: Any, number: Any, signed: bool) -> Any:
    return builder.sext(number, _INT) if signed else builder.zext(number, _INT)


def _accumulating(module: Any, number: Any, delay: Any, signed: bool, width: int, vectors: int) -> Any:
    """A function of its own for the loops of `accumulate`: among others its registers would not be enough."""
    name = f"ranvier.accumulate.{number}.{delay}.{signed}.{vectors}"
    if name in module.globals:
        return module.globals[name]
    pointers = [number.as_pointer(), number.as_pointer(), number.as_pointer(), delay.as_pointer()]
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [*pointers, *[_INT] * 4]), name)
    function.linkage = "internal"
    function.attributes.add("noinline")
    for argument in function.args[:4]:
        argument.add_attribute("noalias")
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    sums, x, w, delays, stride, step, count, outputs = function.args
    kind = ir.VectorType(number, width)

    def vector_at(pointer: Any, place: int) -> Any:
        here = builder.gep(pointer, [ir.Constant(_INT, place * width)])
        return builder.bitcast(here, kind.as_pointer())

    size = 8 if isinstance(number, ir.DoubleType) else 4
    places = [cgutils.alloca_once(builder, kind) for _ in range(vectors)]
    with cgutils.for_range(builder, outputs, intp=_INT) as output:
        own = builder.gep(sums, [builder.mul(output.index, ir.Constant(_INT, VECTORS * width))])
        first = builder.mul(output.index, count)
        own_w, own_delays = builder.gep(w, [first]), builder.gep(delays, [first])
        for k, place in enumerate(places):
            builder.store(builder.load(vector_at(own, k), align=size), place)
        with cgutils.for_range(builder, count, intp=_INT) as loop:
            factor = spread(builder, builder.load(builder.gep(own_w, [loop.index])), kind)
            delayed = _widened(builder, builder.load(builder.gep(own_delays, [loop.index])), signed)
            row = builder.gep(x, [builder.add(builder.mul(loop.index, stride), builder.mul(delayed, step))])
            for k, place in enumerate(places):
                value = builder.load(vector_at(row, k), align=size)
                builder.store(_multiply_add(builder, factor, value, builder.load(place)), place)
        for k, place in enumerate(places):
            builder.store(builder.load(place), vector_at(own, k), align=size)
    builder.ret_void()
    return function


def _make_accumulate(vectors: int) -> Any:
    @intrinsic
    def accumulate(typing, sums, x, x_at, x_stride, w, w_at, delay, step, count, outputs):
        """`sums[j, k] += sum_i w[w_at + j * count + i] * x[x_at + i * x_stride + step * d_ji + k]`, i < count.

        For j < outputs, k over so many vectors; rows of `sums` are `VECTORS` vectors apart. `d_ji` is `delay[w_at + j *
        count + i]`.
        """
        signature = types.void(sums, x, x_at, x_stride, w, w_at, delay, step, count, outputs)

        def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            target, source, weight, shift = (Memory(context, builder, sig.args[k], args[k]) for k in (0, 1, 4, 6))
            wide = [context.cast(builder, args[k], sig.args[k], types.int64) for k in (2, 3, 5, 7, 8, 9)]
            x_from, stride, w_from, each, number, rows = wide
            function = _accumulating(
                builder.module, context.get_data_type(sig.args[0].dtype), context.get_data_type(sig.args[6].dtype),
                sig.args[6].dtype.signed, lanes(target.itemsize), vectors,
            )  # fmt: skip
            pointers = [target.data, source.pointer(x_from), weight.pointer(w_from), shift.pointer(w_from)]
            builder.call(function, [*pointers, stride, each, number, rows])
            return context.get_dummy_value()

        return signature, generate

    return accumulate


accumulate_1, accumulate_2, accumulate_4, accumulate_8, accumulate_16 = (
    _make_accumulate(k) for k in (1, 2, 4, 8, VECTORS)
)


def rows_together(itemsize: int) -> int:
    """Rows of x that `correlate` reads side by side: as many as there are registers for their addresses."""
    return lanes(itemsize) // 2


def _correlating(module: Any, number: Any, delay: Any, signed: bool, width: int) -> Any:
    """A function of its own for the loops of `correlate`."""
    name = f"ranvier.correlate.{number}.{delay}.{signed}"
    if name in module.globals:
        return module.globals[name]
    pointers = [number.as_pointer(), number.as_pointer(), number.as_pointer(), delay.as_pointer()]
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [*pointers, *[_INT] * 6]), name)
    function.linkage = "internal"
    function.attributes.add("noinline")
    for argument in function.args[:4]:
        argument.add_attribute("noalias")
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    out, g, x, delays, g_stride, x_stride, step, inputs, count, outputs = function.args
    kind, half = ir.VectorType(number, width), ir.VectorType(number, width // 2)
    size = 8 if isinstance(number, ir.DoubleType) else 4
    rows = width // 2
    zero = ir.Constant(kind, [0.0] * width)
    places = [[cgutils.alloca_once(builder, kind) for _ in range(2)] for _ in range(rows)]

    def load(pointer: Any, at: Any, part: int) -> Any:
        here = builder.gep(pointer, [builder.add(at, ir.Constant(_INT, part * width))])
        return builder.load(builder.bitcast(here, kind.as_pointer()), align=size)

    with cgutils.for_range(builder, outputs, intp=_INT) as output:
        first = builder.mul(output.index, inputs)
        left = builder.gep(g, [builder.mul(output.index, g_stride)])
        sources = []
        for k, pair in enumerate(places):
            delayed = _widened(
                builder, builder.load(builder.gep(delays, [builder.add(first, ir.Constant(_INT, k))])), signed
            )
            row = builder.add(builder.mul(ir.Constant(_INT, k), x_stride), builder.mul(delayed, step))
            sources.append(builder.gep(x, [row]))
            for place in pair:
                builder.store(zero, place)
        with cgutils.for_range(builder, count, intp=_INT) as loop:
            along = builder.mul(loop.index, ir.Constant(_INT, 2 * width))
            for part in range(2):
                value = load(left, along, part)
                for source, pair in zip(sources, places, strict=True):
                    total = _multiply_add(builder, value, load(source, along, part), builder.load(pair[part]))
                    builder.store(total, pair[part])
        sums = [builder.fadd(builder.load(pair[0]), builder.load(pair[1])) for pair in places]
        total = _sum_each(builder, sums, width)
        target = builder.bitcast(builder.gep(out, [first]), half.as_pointer())
        builder.store(builder.fadd(builder.load(target, align=size), total), target, align=size)
    builder.ret_void()
    return function


@intrinsic
def correlate(typing, out, out_at, g, g_at, g_stride, x, x_at, x_stride, delay, step, inputs, count, outputs):
    """`out[at + k] += sum_m g[g_at + j * g_stride + m] * x[x_at + k * x_stride + step * delay[at + k] + m]`.

    For j < outputs with `at = out_at + j * inputs`, for `rows_together` values of k, over 2 * `count` vectors of m.
    """
    signature = types.void(
        out, out_at, g, g_at, g_stride, x, x_at, x_stride, delay, step, inputs, count, outputs
    )  # fmt: skip

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        target, left, right, shift = (Memory(context, builder, sig.args[k], args[k]) for k in (0, 2, 5, 8))
        wide = [context.cast(builder, args[k], sig.args[k], types.int64) for k in (1, 3, 4, 6, 7, 9, 10, 11, 12)]
        out_from, g_from, left_stride, x_from, right_stride, each, width_of_out, number, rows = wide
        function = _correlating(
            builder.module, context.get_data_type(sig.args[0].dtype), context.get_data_type(sig.args[8].dtype),
            sig.args[8].dtype.signed, lanes(target.itemsize),
        )  # fmt: skip
        pointers = [target.pointer(out_from), left.pointer(g_from), right.pointer(x_from), shift.pointer(out_from)]
        builder.call(function, [*pointers, left_stride, right_stride, each, width_of_out, number, rows])
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
    """The vector (width / 2) whose lane k is the sum of the lanes of vector k; there are half as many as lanes."""
    index = ir.VectorType(ir.IntType(32), width)
    even = ir.Constant(index, list(range(0, 2 * width, 2)))
    odd = ir.Constant(index, list(range(1, 2 * width, 2)))
    while len(vectors) > 1:
        vectors = [
            builder.fadd(builder.shuffle_vector(a, b, even), builder.shuffle_vector(a, b, odd))
            for a, b in zip(vectors[::2], vectors[1::2], strict=True)
        ]
    # Two lanes are left of each.
    halves = ir.VectorType(ir.IntType(32), width // 2)
    nothing = ir.Constant(vectors[0].type, ir.Undefined)
    firsts = builder.shuffle_vector(vectors[0], nothing, ir.Constant(halves, list(range(0, width, 2))))
    seconds = builder.shuffle_vector(vectors[0], nothing, ir.Constant(halves, list(range(1, width, 2))))
    return builder.fadd(firsts, seconds)


@intrinsic
def move(typing, target, target_at, source, source_at):
    """Copy one vector from a place of the array `source` to one of `target`."""
    signature = types.void(target, target_at, source, source_at)

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        to, of = (Memory(context, builder, sig.args[k], args[k]) for k in (0, 2))
        there, here = (context.cast(builder, args[k], sig.args[k], types.int64) for k in (1, 3))
        kind = ir.VectorType(context.get_data_type(sig.args[0].dtype), lanes(to.itemsize))
        to.put(there, of.vector(here, kind))
        return context.get_dummy_value()

    return signature, generate


@intrinsic
def prefetch(typing: Any, source: Any, source_at: Any) -> Any:
    """Ask for the line of the cache that holds the number at a position, which may lie outside of the array."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = Memory(context, builder, signature.args[0], args[0]).pointer(args[1])
        byte, small = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, small, small, small])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
        read, keep, data = (ir.Constant(small, number) for number in (0, 3, 1))
        builder.call(function, [builder.bitcast(pointer, byte), read, keep, data])
        return context.get_dummy_value()

    return types.void(source, types.intp), generate


@intrinsic
def differing(typing, source, source_at, number):
    """Bit k of the result says that number k of the vector at a place of the array `source` is not `number`."""
    signature = types.uint64(source, source_at, number)

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        memory = Memory(context, builder, sig.args[0], args[0])
        here = context.cast(builder, args[1], sig.args[1], types.int64)
        width = lanes(memory.itemsize)
        kind = ir.VectorType(context.get_data_type(sig.args[0].dtype), width)
        unequal = builder.fcmp_unordered("!=", memory.vector(here, kind), spread(builder, args[2], kind))
        return builder.zext(builder.bitcast(unequal, ir.IntType(width)), _INT)

    return signature, generate


@intrinsic
def lowest_bit(typing, bits):
    """Number of zeros below the lowest bit that is set."""
    signature = types.uint64(types.uint64)

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return signature, generate
