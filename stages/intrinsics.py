"""What kernels of all stages use: machine instructions that Numba has no name for, and hashing."""

from __future__ import annotations

from typing import Any

import llvmlite.ir as ir
import numpy as np
from numba import types
from numba.core import cgutils as _numba_cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

from twinsieve.stages.kernel import kernel

# Numba turns these into functions of fewer arguments, which a type checker cannot follow.
_intrinsic: Any = intrinsic
cgutils: Any = _numba_cgutils

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
"""2^64 by the golden ratio, odd: its multiples spread neighbouring keys over the whole range.

source: Knuth, The Art of Computer Programming 3, section 6.4
"""
FNV_OFFSET, FNV_PRIME = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3)
"""Of a hash that takes one number after the other: value = (value ^ number) * FNV_PRIME.

source: RFC 9923, FNV-1a of 64 bits
"""


@kernel
def mix64(x: np.uint64) -> np.uint64:
    """Well-mixed uint64 of a uint64; a bijection.

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
    """The cell that holds a key, or the empty one where it belongs.

    keys: uint64[2**k], k at most 32, 0 for an empty cell, never full; key: not 0
    """
    mask = np.int64(len(keys) - 1)
    cell = np.int64((key * GOLDEN) >> np.uint64(32)) & mask
    while keys[cell] != np.uint64(0) and keys[cell] != key:
        cell = (cell + np.int64(1)) & mask
    return cell


@_intrinsic
def prefetch(_typing: Any, array: Any, index: Any) -> Any:
    """Hint that `array[index]` (one dimension) will be read soon; changes nothing and never faults."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array_type = signature.args[0]
        struct = context.make_array(array_type)(context, builder, args[0])
        pointer = cgutils.get_item_pointer(
            context, builder, array_type, struct, [args[1]], wraparound=False, boundscheck=False
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
    """Number of one bits of an unsigned integer, in the same type."""

    def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return value(value), generate
