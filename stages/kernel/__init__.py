"""`@kernel`: the decorator with which every compiled function is declared.

Kernels take tuples of arrays and call each other for each row. Numba's reference counting would increment and
decrement the count of every array at each call, atomically: judging a message took 41 µs with counting, and
2.9 µs without. Most kernels neither allocate nor store arrays, so they need no counting.

An *entry* is a kernel that Python calls; it is kept on disk (`kept.py`). A *callee* is a kernel that only
other kernels call. It takes no calls from Python, for which Numba would unpack every array of the tuples.

With the versions of Numba that `compact.py` was tested with, kernels compile in half the time. With any
other version they are compiled as Numba does it, and give the same results.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, update_wrapper
from importlib import import_module
from typing import Any, TypeVar, cast, overload

import numpy as np
from numba import __version__, njit
from numba import config as _config

from twinsieve.stages.kernel import kept

config: Any = _config  # it has no type annotations

_Function = TypeVar("_Function", bound=Callable[..., Any])

ZERO = cast("int", np.int64(0))
NO, YES = cast("bool", np.bool_(False)), cast("bool", np.bool_(True))
"""0, False and True as arguments of a kernel. For Numba, a literal has another type than these values, so a
call with a literal would compile the kernel once more."""

TESTED = ((0, 61), (0, 68))
"""The oldest and the newest minor version of Numba with which the tests ran."""
_COMPACT = ((0, 68),)
"""The minor versions of Numba with which `compact.py` was tested."""

version = tuple(map(int, __version__.split(".")[:2]))
"""The minor version of the installed Numba."""
_ways: Any = import_module("twinsieve.stages.kernel.compact") if version in _COMPACT else None

_UNCOUNTED = {"_nrt": False}
"""The option of `njit` that switches reference counting off. Without counting, a kernel cannot allocate."""


class Callee:
    """A kernel that only kernels call."""

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        update_wrapper(self, function)
        self.py_func = function
        self._options = options

    @cached_property
    def dispatcher(self) -> Any:
        """Numba's dispatcher; made at the first access, because a start that compiles nothing needs none."""
        return cast("Any", njit)(**self._options)(self.py_func)

    @property
    def _numba_type_(self) -> Any:
        """What the kernel is to Numba in kernels that call it."""
        return self.dispatcher._numba_type_

    def __call__(self, *_arguments: Any) -> Any:
        raise TypeError(f"{self.py_func.__qualname__} has no entry for Python: only kernels call it")


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

    With NUMBA_DISABLE_JIT it stays a function of Python.

    callee: only other kernels call the function; a call from Python is a TypeError
    allocates: the function creates arrays, so Numba must count references in it
    inlined: LLVM puts the code into each caller. For small functions that are called for every row: a call
        may take longer than what they do. Every caller compiles their code once more
    """
    # Numba would also make an entry for C, which nothing calls and which takes a fifth of the compile time.
    # Without a value of its own, a kernel would be inlined if the kernel is for which it is compiled first.
    options = {
        "nogil": True,
        "no_cfunc_wrapper": True,
        "no_cpython_wrapper": callee,
        "forceinline": inlined,
        **({} if allocates else _UNCOUNTED),
    }

    def decorate(function: _Function) -> _Function:
        if config.DISABLE_JIT:
            return function
        if _ways is not None:
            options["pipeline_class"] = _ways.CalleeCompiler if callee else _ways.EntryCompiler
        if callee:
            return cast("_Function", Callee(function, options))
        dispatcher = cast("Any", njit)(**options)(function)
        if _ways is not None:
            _ways.lend_tuples(dispatcher)
        # The name of the folder holds for the sources of this package alone.
        if function.__module__.startswith("twinsieve."):
            dispatcher._cache = (_ways or kept).KeptKernel(function)
        return cast("_Function", dispatcher)

    return decorate if function is None else decorate(function)
