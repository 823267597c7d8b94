"""`@kernel`: the decorator with which every compiled function is declared.

Kernels take tuples of arrays and call each other for each row. Numba's reference counting would increment and
decrement the count of every array at each call, atomically: judging a message took 41 µs with counting, and
2.9 µs without. Most kernels neither allocate nor store arrays, so they need no counting.

A *callee* is a kernel that only other kernels call. It has no entry for calls from Python (such an entry
unpacks every array of the tuples) and no machine code of its own (`numba_private.py`). That halves the
compile time.

A process that finds its kernels compiled calls their machine code (`machine_code.py`) and does not import
Numba, nor the modules that need it: `numba_private.py`, `lent_tuples.py` and `instructions.py`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import cached_property, update_wrapper
from typing import Any, TypeVar, cast, overload

import numpy as np

from twinsieve.stages import interpreted
from twinsieve.stages.compiled import KernelFiles, compiles
from twinsieve.stages.machine_code import fingerprint, linked, types_of

_Function = TypeVar("_Function", bound=Callable[..., Any])

ZERO = cast("int", np.int64(0))
NO, YES = cast("bool", np.bool_(False)), cast("bool", np.bool_(True))
"""0, False and True as arguments of a kernel. For Numba, a literal has another type than these values, so a
call with a literal would compile the kernel once more."""


_interprets = False
_interpreting = threading.RLock()
"""Held while a kernel is interpreted: it calls others, which must be interpreted, too, until it returns."""


def interpret(yes: bool) -> None:
    """Let Python interpret all kernels from now on, in all threads, or end this once none is under way.

    For the first rows of a run whose kernels are being compiled by other processes: a row takes some ten
    thousand times as long, and the results are those of compiled kernels (tests/stages/test_interpreted.py).
    """
    global _interprets
    with _interpreting:
        _interprets = yes


class Kernel:
    """A decorated function: calls its machine code, or Numba's dispatcher, which compiles it."""

    def __init__(self, function: Callable[..., Any], *, callee: bool, allocates: bool, inlined: bool) -> None:
        update_wrapper(self, function)
        self._function = function
        self._callee = callee
        self._allocates = allocates
        self._inlined = inlined
        self._files = KernelFiles(f"{function.__module__}.{function.__qualname__}")
        self._calls: dict[bytes, Callable[..., Any]] = {}
        """What a call with these arguments goes to, by their fingerprint."""

    @cached_property
    def dispatcher(self) -> Any:
        """Numba's dispatcher of the function; made at the first access, because most are never needed."""
        from twinsieve.stages.numba_private import dispatcher_of

        return dispatcher_of(
            self._function,
            self._files,
            callee=self._callee,
            allocates=self._allocates,
            inlined=self._inlined,
        )

    @property
    def _numba_type_(self) -> Any:
        """What the kernel is to Numba in kernels that call it."""
        return self.dispatcher._numba_type_

    def __call__(self, *arguments: Any) -> Any:
        if _interprets:
            # Hashes overflow on purpose.
            with _interpreting, np.errstate(over="ignore"):
                if _interprets:
                    return self._function(*arguments)
        try:
            call = self._calls[fingerprint(arguments)]
        except KeyError:
            call = self._found(arguments)
        except NotImplementedError:
            call = self.dispatcher
        return call(*arguments)

    def _found(self, arguments: tuple[Any, ...]) -> Callable[..., Any]:
        types = None if self._callee else types_of(arguments)
        code = None if types is None else self._files.load(types)
        function = self._function
        call: Callable[..., Any] = (
            self.dispatcher if code is None else linked(code, function.__module__, function.__name__)
        )
        self._calls[fingerprint(arguments)] = call
        return call

    def compile_for(self, *arguments: Any) -> None:
        """Compile or load the kernel for the types of these arguments, without a call."""
        dispatcher = self.dispatcher
        dispatcher.compile(tuple(map(dispatcher.typeof_pyval, arguments)))

    def __getattr__(self, name: str) -> Any:
        # Numba reads attributes of the dispatcher here. Python itself looks up dunder names; these look-ups
        # must not create the dispatcher.
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.dispatcher, name)


class Instruction:
    """A function of `instructions.py`, for kernels alone. name: of the function"""

    def __init__(self, name: str) -> None:
        self._name = name

    def __call__(self, *arguments: Any) -> Any:
        """What an interpreted kernel calls."""
        return getattr(interpreted, self._name)(*arguments)

    @cached_property
    def _numba_type_(self) -> Any:
        """What the function is to Numba in kernels that call it."""
        from twinsieve.stages.numba_private import type_of_instruction

        return type_of_instruction(self._name)


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
    inlined: LLVM puts the code into each caller. For small functions that are called for every row: a call
        may take longer than what they do. Every caller compiles their code once more
    """

    def decorate(function: _Function) -> _Function:
        if not compiles():
            return function
        return cast("_Function", Kernel(function, callee=callee, allocates=allocates, inlined=inlined))

    return decorate if function is None else decorate(function)
