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

_EIGHT = ir.VectorType(ir.IntType(64), 8)

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


def _eight_words(context: Any, builder: Any, array_type: Any, array: Any, start: Any) -> Any:
    """array[start:start + 8] as a vector; the array has items of 64 bits."""
    struct = context.make_array(array_type)(context, builder, array)
    first = cgutils.get_item_pointer(
        context, builder, array_type, struct, [start], wraparound=False, boundscheck=False
    )
    return builder.load(builder.bitcast(first, _EIGHT.as_pointer()), align=8)


def _eight_times(builder: Any, value: Any) -> Any:
    """A vector of eight equal values, from an integer of 64 bits."""
    one = builder.insert_element(ir.Constant(_EIGHT, ir.Undefined), value, ir.IntType(32)(0))
    return builder.shuffle_vector(one, one, ir.Constant(ir.VectorType(ir.IntType(32), 8), [0] * 8))


def _lanes(*kinds: Any) -> Any:
    """The signature of a function of (array, start, numbers of 64 bits): bit j of the result is of item j."""
    return types.uint8(*kinds[:2], *[types.uint64] * (len(kinds) - 2))


@_intrinsic
def lanes_equal(_typing: Any, array: Any, start: Any, value: Any, mask: Any) -> Any:
    """Which of the 8 words array[start:start + 8] have the bits of `value` where `mask` has ones.

    array: uint64, C-contiguous. returns: uint8, bit j is of word j; so are those of the next two functions
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        words = _eight_words(context, builder, signature.args[0], args[0], args[1])
        differing = builder.and_(
            builder.xor(words, _eight_times(builder, args[2])), _eight_times(builder, args[3])
        )
        return builder.bitcast(
            builder.icmp_unsigned("==", differing, ir.Constant(_EIGHT, [0] * 8)), ir.IntType(8)
        )

    return _lanes(array, start, value, mask), generate


@_intrinsic
def lanes_close(_typing: Any, array: Any, start: Any, value: Any, shift: Any, most: Any) -> Any:
    """Which of 8 words differ from `value` in at most `most` of the bits from bit `shift` on."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        words = _eight_words(context, builder, signature.args[0], args[0], args[1])
        differing = builder.lshr(
            builder.xor(words, _eight_times(builder, args[2])), _eight_times(builder, args[3])
        )
        # The builder's own ctpop takes no vectors.
        function_type = ir.FunctionType(_EIGHT, [_EIGHT])
        function = cgutils.get_or_insert_function(builder.module, function_type, "llvm.ctpop.v8i64")
        counted = builder.call(function, [differing])
        return builder.bitcast(
            builder.icmp_unsigned("<=", counted, _eight_times(builder, args[4])), ir.IntType(8)
        )

    return _lanes(array, start, value, shift, most), generate


@_intrinsic
def lanes_between(_typing: Any, array: Any, start: Any, shift: Any, mask: Any, low: Any, span: Any) -> Any:
    """Which of 8 words w have ((w >> shift) - low) & mask <= span."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        words = _eight_words(context, builder, signature.args[0], args[0], args[1])
        shifted = builder.lshr(words, _eight_times(builder, args[2]))
        above = builder.and_(
            builder.sub(shifted, _eight_times(builder, args[4])), _eight_times(builder, args[3])
        )
        return builder.bitcast(
            builder.icmp_unsigned("<=", above, _eight_times(builder, args[5])), ir.IntType(8)
        )

    return _lanes(array, start, shift, mask, low, span), generate


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


@kernel(callee=True, inlined=True)
def first_lane(lanes: np.uint64) -> np.int64:
    """Number of the lowest bit that is 1. lanes: not 0"""
    return np.int64(popcount(~lanes & (lanes - np.uint64(1))))
