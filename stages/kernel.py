"""`@kernel`: the one way in which functions are compiled.

Kernels take tuples of arrays and call each other row by row. With Numba's reference counting each call
counts every array of the tuple up and down, atomically: a judged message cost 41 µs with it, 2.9 without.
Most kernels allocate nothing and keep nothing, so there is nothing to count.

A kernel that only kernels call is a *callee*: it has neither an entry for Python, which takes every array
of the tuples apart, nor machine code of its own (`numba_private.py`). That halves the time to compile.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, update_wrapper
from typing import Any, TypeVar, cast, overload

import numpy as np
from numba import config, njit

from twinsieve.stages.compiled import KernelFiles
from twinsieve.stages.numba_private import UNCOUNTED, CalledByKernels, Callee, keep

_Function = TypeVar("_Function", bound=Callable[..., Any])
_config: Any = config  # untyped in Numba

ZERO = cast("int", np.int64(0))
NO, YES = cast("bool", np.bool_(False)), cast("bool", np.bool_(True))
"""0, False, True as arguments of a kernel. A literal has a type of its own, which compiles it once more."""


class Kernel(CalledByKernels):
    """A function that Numba's dispatcher is made of at its first use, by Python or by a kernel.

    A process calls a dozen of more than a hundred, and loads them with their callees inside. Making all
    dispatchers took a twentieth of a start.
    """

    def __init__(self, function: Callable[..., Any], *, callee: bool, options: dict[str, Any]) -> None:
        update_wrapper(self, function)
        self._function = function
        self._callee = callee
        self._options = options

    @cached_property
    def dispatcher(self) -> Any:
        """Numba's."""
        # Numba also makes an entry for C, which is never called; that took a fifth of the time to compile.
        own = {"no_cfunc_wrapper": True, "no_cpython_wrapper": self._callee}
        dispatcher = cast("Any", njit)(nogil=True, **own, **self._options)(self._function)
        if self._callee:
            dispatcher = Callee(self._function, dispatcher.targetoptions)
        keep(dispatcher, KernelFiles(f"{self._function.__module__}.{self._function.__qualname__}"))
        return dispatcher

    def __call__(self, *arguments: Any) -> Any:
        return self.dispatcher(*arguments)

    def __getattr__(self, name: str) -> Any:
        # Numba looks for the dispatcher's attributes; Python's own lookups must not make it.
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.dispatcher, name)


@overload
def kernel(function: _Function) -> _Function: ...
@overload
def kernel(*, callee: bool = ..., allocates: bool = ...) -> Callable[[_Function], _Function]: ...
def kernel(
    function: _Function | None = None, *, callee: bool = False, allocates: bool = False
) -> _Function | Callable[[_Function], _Function]:
    """Compile a function at its first call, or load what an earlier process compiled.

    callee: only other kernels call it; a call from Python is a TypeError
    allocates: it makes arrays of its own, so Numba counts references in it
    """
    options = {} if allocates else UNCOUNTED

    def decorate(function: _Function) -> _Function:
        if _config.DISABLE_JIT:
            return function
        return cast("_Function", Kernel(function, callee=callee, options=options))

    return decorate if function is None else decorate(function)
