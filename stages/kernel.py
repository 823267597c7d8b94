"""`@kernel`: the decorator with which every compiled function is declared.

Kernels take tuples of arrays and call each other for each row. Numba's reference counting would increment and
decrement the count of every array at each call, atomically: judging a message took 41 µs with counting, and
2.9 µs without. Most kernels neither allocate nor store arrays, so they need no counting.

A *callee* is a kernel that only other kernels call. It has no entry for calls from Python (such an entry
unpacks every array of the tuples) and no machine code of its own (`numba_private.py`). That halves the
compile time.
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
"""0, False and True as arguments of a kernel. For Numba, a literal has another type than these values, so a
call with a literal would compile the kernel once more."""


class Kernel(CalledByKernels):
    """A decorated function. Its Numba dispatcher is made when Python or another kernel first uses it.

    A process calls a dozen of more than a hundred kernels; their machine code includes the callees. So most
    dispatchers are never needed, and making all of them took 5 % of the start of a process.
    """

    def __init__(self, function: Callable[..., Any], *, callee: bool, options: dict[str, Any]) -> None:
        update_wrapper(self, function)
        self._function = function
        self._callee = callee
        self._options = options

    @cached_property
    def dispatcher(self) -> Any:
        """Numba's dispatcher of the function; made at the first access."""
        # Numba would also make an entry for C. Nothing calls it, and it took a fifth of the compile time.
        own = {"no_cfunc_wrapper": True, "no_cpython_wrapper": self._callee}
        dispatcher = cast("Any", njit)(nogil=True, **own, **self._options)(self._function)
        if self._callee:
            dispatcher = Callee(self._function, dispatcher.targetoptions)
        keep(dispatcher, KernelFiles(f"{self._function.__module__}.{self._function.__qualname__}"))
        return dispatcher

    def __call__(self, *arguments: Any) -> Any:
        return self.dispatcher(*arguments)

    def __getattr__(self, name: str) -> Any:
        # Numba reads attributes of the dispatcher here. Python itself looks up dunder names; these look-ups
        # must not create the dispatcher.
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.dispatcher, name)


@overload
def kernel(function: _Function) -> _Function: ...
@overload
def kernel(
    *, callee: bool = ..., allocates: bool = ..., inlined: bool = ...
) -> Callable[[_Function], _Function]: ...
def kernel(
    function: _Function | None = None,
    *,
    callee: bool = False,
    allocates: bool = False,
    inlined: bool = False,
) -> _Function | Callable[[_Function], _Function]:
    """Decorator: compile a function at its first call, or load the code that an earlier process compiled.

    callee: only other kernels call the function; a call from Python is a TypeError
    allocates: the function creates arrays, so Numba must count references in it
    inlined: LLVM puts the code into each caller. For functions that are called for every row: a call hands
        over each array of a tuple as seven words, which takes longer than what most of them do
    """
    options = ({} if allocates else UNCOUNTED) | ({"forceinline": True} if inlined else {})

    def decorate(function: _Function) -> _Function:
        if _config.DISABLE_JIT:
            return function
        return cast("_Function", Kernel(function, callee=callee, options=options))

    return decorate if function is None else decorate(function)
