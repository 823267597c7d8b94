"""`@kernel`: how functions that take tuples of arrays, or run row by row, are compiled.

Kernels take tuples of arrays and call each other row by row. With Numba's reference counting each such call
counts every array of the tuple up and down, atomically: judging a message cost 41 µs with it and 2.9 without.
Kernels allocate nothing and keep nothing, so there is nothing to count. `_nrt` is Numba's switch for that.
Those that do allocate memory of their own are `@compiled()`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba import njit

from twinsieve.compiled import keep

_Function = TypeVar("_Function", bound=Callable[..., Any])


def compiled(**options: Any) -> Callable[[_Function], _Function]:
    """A decorator that compiles a function at its first call, or loads what an earlier process compiled.

    options: Numba's; the interpreter's lock is released in any case
    """

    def decorate(function: _Function) -> _Function:
        # Numba also makes an entry for C, which nobody calls; that took a fifth of the time to compile.
        dispatcher = cast("Any", njit)(nogil=True, no_cfunc_wrapper=True, **options)(function)
        keep(dispatcher)
        return cast("_Function", dispatcher)

    return decorate


def kernel(function: _Function) -> _Function:
    """Compile a function without reference counting; it must not allocate."""
    return compiled(_nrt=False)(function)
