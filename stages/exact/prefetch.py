"""`prefetch(array, index)`: a hint to the processor that a cache line will be read soon.

A hint never changes an answer. Numba has no such call; LLVM has, so it is reached by an intrinsic.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

_NAME = "llvm.prefetch.p0"
_READ = 0
_KEEP_IN_ALL_CACHES = 3
_DATA = 1


@intrinsic
def _prefetch(_typing: Any, array: Any, index: Any) -> Any:
    if not isinstance(array, types.Array) or array.ndim != 1 or not isinstance(index, types.Integer):
        return None

    def emit(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        column = context.make_array(sig.args[0])(context, builder, args[0])
        address = builder.gep(column.data, [args[1]])
        byte_pointer = ir.IntType(8).as_pointer()
        word = ir.IntType(32)
        hint = builder.module.globals.get(_NAME)
        if hint is None:
            kind = ir.FunctionType(ir.VoidType(), [byte_pointer, word, word, word])
            hint = ir.Function(builder.module, kind, _NAME)
        settings = [ir.Constant(word, value) for value in (_READ, _KEEP_IN_ALL_CACHES, _DATA)]
        builder.call(hint, [builder.bitcast(address, byte_pointer), *settings])
        return context.get_dummy_value()

    return types.void(array, types.int64), emit


prefetch: Any = _prefetch
"""In a kernel: nothing; the line of `array[index]` starts to travel to the first-level cache.

array: one-dimensional, C-contiguous; index: integer, not checked (a wrong one is harmless)
source: LLVM language reference, `llvm.prefetch`
"""
