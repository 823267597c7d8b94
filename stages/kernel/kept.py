"""Compiled kernels on disk: Numba's cache, in the folder of `folder.py`.

Numba looks at the source file of a function alone. After a change in another file that the function calls,
it would load the old machine code, which judges by the old rules. Here the name of the folder covers all
sources.
"""

from __future__ import annotations

import fcntl
import logging
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Any

import llvmlite.binding as llvm
from numba.core import caching
from numba.core.runtime import _nrt_python  # type: ignore[attr-defined]

from twinsieve.stages.kernel import folder

_log = logging.getLogger("twinsieve")

# Only parts of Numba have type annotations.
_Files: Any = caching.CompileResultCacheImpl
_Cache: Any = caching.FunctionCache
_runtime: Any = _nrt_python


@cache
def _name_functions_of_the_runtime() -> None:
    """Tell LLVM the addresses of Numba's memory functions, which loaded machine code calls by name.

    Before it loads a kernel, Numba would import and compile all that it needs for compiling: .3 s and 56 MB.
    """
    for name, address in _runtime.c_helpers.items():
        llvm.add_symbol(name if name.startswith("_") else f"NRT_{name}", address)


class _Place:
    """What Numba asks a locator of its cache: the folder, and what tells whether a file in it is outdated."""

    def __init__(self, source: str) -> None:
        # Numba's warning about a kernel that it cannot keep, as with NUMBA_OPT=0, names it.
        self._py_file = source

    def get_cache_path(self) -> str:
        """The folder for compiled kernels."""
        return str(folder.path())

    def get_source_stamp(self) -> str:
        """Always the same: kernels of other sources are in other folders."""
        return ""

    def ensure_cache_path(self) -> None:
        """Nothing: the folder was made when the kernel was looked for."""


class KernelFiles(_Files):  # type: ignore[misc]
    """Where the files of one kernel lie, and how a compile result becomes one."""

    def __init__(self, function: Callable[..., Any]) -> None:
        # Not by Numba's constructor, which lets NUMBA_CACHE_LOCATOR_CLASSES name a folder.
        self._lineno = function.__code__.co_firstlineno
        self._locator = _Place(function.__code__.co_filename)
        self._filename_base = f"{function.__module__}.{function.__qualname__}"


class KeptKernel(_Cache):  # type: ignore[misc]
    """The files of one kernel; none where the folder cannot be used."""

    _impl_class: Any = KernelFiles

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The compile result for these argument types, or None. A damaged file counts as absent."""
        if not folder.is_usable():
            return None
        _name_functions_of_the_runtime()
        try:
            return self._load_overload(sig, target_context)
        except Exception as error:  # noqa: BLE001 (a damaged pickle raises anything)
            _log.debug("twinsieve: %r cannot be loaded (%r); it is compiled again", self, error)
            with suppress(OSError):
                self.flush()
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Write a compile result. If that fails, warn once and continue."""
        if not folder.is_usable():
            return
        try:
            # Numba reads the list of a kernel's files, and writes it with one more.
            with (folder.path() / "lock").open("a") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                super().save_overload(sig, data)
        except OSError as error:
            folder.warn_not_kept(error.strerror)
