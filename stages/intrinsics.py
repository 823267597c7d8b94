"""Functions that kernels of all stages use: hashing, and machine instructions that Numba does not offer."""

from __future__ import annotations

from typing import Any

import llvmlite.ir as ir
import numpy as np
from numba import types
from numba.core import cgutils as _numba_cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

from twinsieve.stages.kernel import kernel

# Numba turns a decorated function into one with fewer arguments. A type checker cannot follow that.
_intrinsic: Any = intrinsic
cgutils: Any = _numba_cgutils

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
"""2^64 divided by the golden ratio, rounded to an odd number. Multiplication by it spreads neighbouring keys
over the whole range.

source: Knuth, The Art of Computer Programming 3, section 6.4
"""
FNV_OFFSET, FNV_PRIME = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3)
"""Constants of a hash over a sequence of numbers. It starts with value = FNV_OFFSET; then for each number
value = (value ^ number) * FNV_PRIME.

source: RFC 9923, FNV-1a of 64 bits
"""


@kernel
def mix64(x: np.uint64) -> np.uint64:
    """A well-mixed hash of x, uint64; different numbers have different hashes.

    source: Stafford's variant 13 of the MurmurHash3 finaliser, as in SplitMix64

    >>> hex(int(mix64(np.uint64(1))))
    '0x5692161d100b05e5'
    """
    x ^= x >> np.uint64(30)
    x *= np.uint64(0xBF58476D1CE4E5B9)
    x ^= x >> np.uint64(27)
    x *= np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@kernel(callee=True)
def cell_of(keys: NDArray[np.uint64], key: np.uint64) -> np.int64:
    """The cell of a hash table that holds the key, or else the empty cell in which to insert it.

    keys: uint64[2**k], k at most 32, the table; 0 is an empty cell, and at least one cell must be empty
    key: not 0
    """
    mask = np.int64(len(keys) - 1)
    cell = np.int64((key * GOLDEN) >> np.uint64(32)) & mask
    while keys[cell] != np.uint64(0) and keys[cell] != key:
        cell = (cell + np.int64(1)) & mask
    return cell


@_intrinsic
def prefetch(_typing: Any, array: Any, index: Any) -> Any:
    """Tell the processor that `array[index]` will be read soon. array: one dimension, or two: then the row

    It changes no value, and an index outside of the array is no error.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array_type = signature.args[0]
        struct = context.make_array(array_type)(context, builder, args[0])
        first = [args[1], *[ir.Constant(args[1].type, 0)] * (array_type.ndim - 1)]
        pointer = cgutils.get_item_pointer(
            context, builder, array_type, struct, first, wraparound=False, boundscheck=False
        )
        byte_pointer = builder.bitcast(pointer, ir.PointerType(ir.IntType(8)))
        i32 = ir.IntType(32)
        function_type = ir.FunctionType(ir.VoidType(), [byte_pointer.type, i32, i32, i32])
        function = cgutils.get_or_insert_function(builder.module, function_type, "llvm.prefetch.p0")
        read, keep_in_all_levels, data = i32(0), i32(3), i32(1)
        builder.call(function, [byte_pointer, read, keep_in_all_levels, data])
        return context.get_dummy_value()

    return types.void(array, index), generate


@_intrinsic
def popcount(_typing: Any, value: Any) -> Any:
    """Number of bits that are 1 in an unsigned integer, as the same type."""

    def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return value(value), generate


@_intrinsic
def flags_at(_typing: Any, array: Any, start: Any) -> Any:
    """Which of the 16 bytes array[start:start + 16] are not 0: flag j is bit j of an uint16."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array_type = signature.args[0]
        struct = context.make_array(array_type)(context, builder, args[0])
        first = cgutils.get_item_pointer(
            context, builder, array_type, struct, [args[1]], wraparound=False, boundscheck=False
        )
        sixteen = ir.VectorType(ir.IntType(8), 16)
        content = builder.load(builder.bitcast(first, sixteen.as_pointer()), align=1)
        is_set = builder.icmp_unsigned("!=", content, ir.Constant(sixteen, [0] * 16))
        return builder.bitcast(is_set, ir.IntType(16))

    return types.uint16(array, start), generate
