"""`@kernel` and `@callee`: how functions that take tuples of arrays, or run row by row, are compiled.

Kernels take tuples of arrays and call each other row by row. With Numba's reference counting each such call
counts every array of the tuple up and down, atomically: judging a message cost 41 µs with it and 2.9 without.
Kernels allocate nothing and keep nothing, so there is nothing to count. `_nrt` is Numba's switch for that.
Those that do allocate memory of their own are `@compiled()`.

A kernel that only kernels call is a `@callee`: it has neither an entry for Python, which takes every array
of the tuples apart, nor machine code of its own (`callee.py`). All kernels compile in 43 CPU seconds instead
of 56 so.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba import njit
from numba.core.registry import CPUDispatcher

from twinsieve.compiled import keep
from twinsieve.stages.callee import Callee, kept_library

_Function = TypeVar("_Function", bound=Callable[..., Any])


def compiled(*, callee: bool = False, **options: Any) -> Callable[[_Function], _Function]:
    """A decorator that compiles a function at its first call, or loads what an earlier process compiled.

    callee: only other kernels call it; a call from Python is a TypeError
    options: Numba's; the interpreter's lock is released in any case
    """

    def decorate(function: _Function) -> _Function:
        # Numba also makes an entry for C, which nobody calls; that took a fifth of the time to compile.
        own = {"no_cfunc_wrapper": True, "no_cpython_wrapper": callee}
        dispatcher = cast("Any", njit)(nogil=True, **own, **options)(function)
        if callee and isinstance(dispatcher, CPUDispatcher):  # not with NUMBA_DISABLE_JIT
            dispatcher = Callee(function, dispatcher.targetoptions)
            keep(dispatcher, kept_library)
        else:
            keep(dispatcher)
        return cast("_Function", dispatcher)

    return decorate


def kernel(function: _Function) -> _Function:
    """Compile a function without reference counting; it must not allocate."""
    return compiled(_nrt=False)(function)


def callee(function: _Function) -> _Function:
    """The same for a function that only kernels call."""
    return compiled(callee=True, _nrt=False)(function)
