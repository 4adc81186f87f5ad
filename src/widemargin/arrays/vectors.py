"""Vector code for three inner loops over classes, extremes that vectorise, and a prefetch.

One sparse row x against L classes that lie side by side in memory (weights `w[j * L + k]`, L a
multiple of 4):

    class_dots    out[k] = sum_t values[t] * w[indices[t] * L + k]
    class_best    out[k] = max_t values[t] + w[indices[t] * L + k]    (a step of Viterbi)
    class_axpy    w[indices[t] * L + k] += values[t] * step[k]

Numba runs no straight-line vectoriser: the plain loops over k compile to scalar code, and the whole
fit takes three times as long. So the loops are written here as LLVM vectors of four doubles, in
strips of up to 16 classes that stay in registers, with Numba's public `intrinsic`. Each has a twin
of plain loops at the end of the file, which takes its place where indices are checked.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic as numba_intrinsic
from numba.np.arrayobj import make_array

from ..compile import IS_CHECKED, kernel

intrinsic: Any = numba_intrinsic  # its stub does not know that the typing context is hidden

LANES = 4
FAST = ("fast",)
VECTOR4 = ir.VectorType(ir.DoubleType(), LANES)
I32, I64 = ir.IntType(32), ir.IntType(64)
ONE, FOUR, SIXTEEN = np.uint64(1), np.uint64(4), np.uint64(16)


def padded(n_classes: int) -> int:
    """L: the number of classes rounded up to whole vectors."""
    return -(-n_classes // LANES) * LANES


def aligned(size: int) -> np.ndarray:
    """Zeros that start on a cache line, so that no vector straddles two."""
    block = np.zeros(size + 8)
    skip = -block.ctypes.data // 8 % 8
    return block[skip : skip + size]


def splat(builder, scalar, vector=VECTOR4):
    """A vector with `scalar` in every lane."""
    undefined = ir.Constant(vector, ir.Undefined)
    one = builder.insert_element(undefined, scalar, ir.Constant(I32, 0))
    lanes = ir.Constant(ir.VectorType(I32, vector.count), [0] * vector.count)
    return builder.shuffle_vector(one, undefined, lanes)


def vectors(builder, base, offset, count, vector=VECTOR4):
    """Pointers to `count` vectors from number `offset` of the array at `base`."""
    first = builder.gep(base, [offset])
    steps = [builder.gep(first, [ir.Constant(I64, vector.count * v)]) for v in range(count)]
    return [builder.bitcast(place, vector.as_pointer()) for place in steps]


def row_loop(builder, lo, hi, body):
    """body(t, slot) for lo <= t < hi, unrolled twice; slot tells the two apart."""
    two = ir.Constant(I64, 2)
    pairs = builder.udiv(builder.sub(hi, lo), two)
    with cgutils.for_range(builder, pairs, intp=I64) as loop:
        t = builder.add(lo, builder.mul(loop.index, two))
        body(t, 0)
        body(builder.add(t, ir.Constant(I64, 1)), 1)
    rest = builder.add(lo, builder.mul(pairs, two))
    with cgutils.for_range(builder, builder.sub(hi, rest), intp=I64) as loop:
        body(builder.add(rest, loop.index), 0)


def emit_dots(builder, lo, hi, term, targets, vector=VECTOR4):
    """Sums in registers, two per vector so that additions overlap."""
    zero, align = ir.Constant(vector, [0.0] * vector.count), 8 if vector is VECTOR4 else 4
    sums = [[cgutils.alloca_once(builder, vector) for _ in targets] for _ in range(2)]
    for total in (*sums[0], *sums[1]):
        builder.store(zero, total)

    def body(t, slot):
        value, rows = term(t)
        for total, row in zip(sums[slot], rows, strict=True):
            product = builder.fmul(value, builder.load(row, align=align), flags=FAST)
            builder.store(builder.fadd(builder.load(total), product, flags=FAST), total)

    row_loop(builder, lo, hi, body)
    for even, odd, target in zip(*sums, targets, strict=True):
        total = builder.fadd(builder.load(even), builder.load(odd), flags=FAST)
        builder.store(total, target, align=align)


def emit_best(builder, lo, hi, term, targets):
    """Largest sums in registers; minus infinity is a value like any other."""
    least = ir.Constant(VECTOR4, [float("-inf")] * LANES)
    tops = [[cgutils.alloca_once(builder, VECTOR4) for _ in targets] for _ in range(2)]
    for top in (*tops[0], *tops[1]):
        builder.store(least, top)

    def larger(one, two):
        return builder.select(builder.fcmp_ordered(">", one, two), one, two)

    def body(t, slot):
        value, rows = term(t)
        for top, row in zip(tops[slot], rows, strict=True):
            total = builder.fadd(value, builder.load(row, align=8))
            builder.store(larger(total, builder.load(top)), top)

    row_loop(builder, lo, hi, body)
    for even, odd, target in zip(*tops, targets, strict=True):
        builder.store(larger(builder.load(even), builder.load(odd)), target, align=8)


def emit_axpy(builder, lo, hi, term, sources):
    """The steps stay in registers."""
    steps = [builder.load(source, align=8) for source in sources]

    def body(t, slot):
        value, rows = term(t)
        for step, row in zip(steps, rows, strict=True):
            product = builder.fmul(value, step, flags=FAST)
            total = builder.fadd(builder.load(row, align=8), product, flags=FAST)
            builder.store(total, row, align=8)

    row_loop(builder, lo, hi, body)


def strip_kernel(emit, strip: int):
    """An intrinsic for `strip` classes beginning at class `first`."""
    count = strip // LANES

    def codegen(context, builder, signature, args):
        kinds = signature.args
        data = [
            make_array(kind)(context, builder, arg).data if isinstance(kind, types.Array) else arg
            for kind, arg in zip(kinds, args, strict=True)
        ]
        values, indices, lo, hi, w, width, first, side = data

        def term(t):
            value = builder.load(builder.gep(values, [t]))
            if kinds[0].dtype == types.float32:
                value = builder.fpext(value, ir.DoubleType())
            row = builder.zext(builder.load(builder.gep(indices, [t])), I64)
            at = builder.add(builder.mul(row, width), first)
            return splat(builder, value), vectors(builder, w, at, count)

        emit(builder, lo, hi, term, vectors(builder, side, first, count))
        return context.get_dummy_value()

    @intrinsic
    def function(typingctx, values, indices, lo, hi, w, width, first, side):
        u = types.uint64
        return types.none(values, indices, u, u, w, u, u, side), codegen

    return function


dots4, dots8, dots12, dots16 = (strip_kernel(emit_dots, size) for size in (4, 8, 12, 16))
best4, best8, best12, best16 = (strip_kernel(emit_best, size) for size in (4, 8, 12, 16))
axpy4, axpy8, axpy12, axpy16 = (strip_kernel(emit_axpy, size) for size in (4, 8, 12, 16))


@intrinsic
def prefetch(typingctx, array, index):
    """Ask the memory for the cache line of array.flat[index]."""

    def codegen(context, builder, signature, args):
        base = make_array(signature.args[0])(context, builder, args[0]).data
        at = builder.bitcast(builder.gep(base, [args[1]]), ir.IntType(8).as_pointer())
        kind = ir.FunctionType(ir.VoidType(), [at.type, I32, I32, I32])
        call = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        builder.call(call, [at] + [ir.Constant(I32, c) for c in (0, 3, 1)])
        return context.get_dummy_value()

    return types.none(array, types.uint64), codegen


def chosen(sign: str) -> Any:
    """max or min of two doubles as a `select` with flags, which the loop vectoriser understands.

    Numba's own flags stop at the comparison: a loop with a largest number in it compiles to scalar
    code, three times as slow.
    """

    @intrinsic
    def function(typingctx, a, b):
        def codegen(context, builder, signature, args):
            flags = "nnan", "nsz"
            first = builder.fcmp_ordered(sign, *args, flags=flags)
            return builder.select(first, *args, flags=flags)

        return types.float64(types.float64, types.float64), codegen

    return function


larger, smaller = chosen(">"), chosen("<")


@kernel
def prefetch_row(values, indices, lo, hi):
    """The cache lines of a row soon to be read."""
    for t in range(lo, hi, np.uint64(64 // values.itemsize)):
        prefetch(values, np.uint64(t))
    if indices.size:
        for t in range(lo, hi, SIXTEEN):
            prefetch(indices, np.uint64(t))


@kernel
def class_dots(values, indices, lo, hi, w, width, out):
    """out[k] = <x, w_k> for the row at lo..hi."""
    first = np.uint64(0)
    while width - first >= SIXTEEN:
        dots16(values, indices, lo, hi, w, width, first, out)
        first += SIXTEEN
    rest = width - first
    if rest == np.uint64(12):
        dots12(values, indices, lo, hi, w, width, first, out)
    elif rest == np.uint64(8):
        dots8(values, indices, lo, hi, w, width, first, out)
    elif rest == FOUR:
        dots4(values, indices, lo, hi, w, width, first, out)


@kernel
def class_best(values, indices, lo, hi, w, width, out):
    """out[k] = max_t values[t] + w[indices[t] * width + k]."""
    first = np.uint64(0)
    while width - first >= SIXTEEN:
        best16(values, indices, lo, hi, w, width, first, out)
        first += SIXTEEN
    rest = width - first
    if rest == np.uint64(12):
        best12(values, indices, lo, hi, w, width, first, out)
    elif rest == np.uint64(8):
        best8(values, indices, lo, hi, w, width, first, out)
    elif rest == FOUR:
        best4(values, indices, lo, hi, w, width, first, out)


@kernel
def any_of_four(step, first):
    """Whether a vector of steps moves anything."""
    return (
        (step[first] != 0.0)
        | (step[first + ONE] != 0.0)
        | (step[first + np.uint64(2)] != 0.0)
        | (step[first + np.uint64(3)] != 0.0)
    )


@kernel
def class_axpy(values, indices, lo, hi, w, width, step):
    """w_k += step[k] x for the row at lo..hi; vectors of classes that stand still are skipped."""
    first = np.uint64(0)
    while first < width:
        if not any_of_four(step, first):
            first += FOUR
            continue
        end = first + FOUR
        while end < width and end < first + SIXTEEN and any_of_four(step, end):
            end += FOUR
        strip = end - first
        if strip == FOUR:
            axpy4(values, indices, lo, hi, w, width, first, step)
        elif strip == np.uint64(8):
            axpy8(values, indices, lo, hi, w, width, first, step)
        elif strip == np.uint64(12):
            axpy12(values, indices, lo, hi, w, width, first, step)
        else:
            axpy16(values, indices, lo, hi, w, width, first, step)
        first = end


# ------------------------------------------------------------------ the twins


@kernel
def plain_dots(values, indices, lo, hi, w, width, out):
    """`class_dots` in plain loops."""
    for k in range(width):
        total = 0.0
        for t in range(lo, hi):
            total += values[t] * w[np.uint64(indices[t]) * width + np.uint64(k)]
        out[k] = total


@kernel
def plain_best(values, indices, lo, hi, w, width, out):
    """`class_best` in plain loops."""
    for k in range(width):
        top = -np.inf
        for t in range(lo, hi):
            top = max(top, values[t] + w[np.uint64(indices[t]) * width + np.uint64(k)])
        out[k] = top


@kernel
def plain_axpy(values, indices, lo, hi, w, width, step):
    """`class_axpy` in plain loops."""
    for k in range(width):
        for t in range(lo, hi):
            w[np.uint64(indices[t]) * width + np.uint64(k)] += values[t] * step[k]


if IS_CHECKED:
    class_dots, class_best, class_axpy = plain_dots, plain_best, plain_axpy
