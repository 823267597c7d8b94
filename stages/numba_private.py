"""Every use of what Numba and llvmlite keep private; no other file has one (`tests/house`).

All of them were written for Numba 0.68 and not tested with another version: `require_version` refuses any
other when this module is imported, before one of them is used.

A kernel that only kernels call is a *callee*: no entry for Python, and no machine code of its own. Numba
makes machine code of every kernel, although each kernel already contains those that it calls. A callee stays
as LLVM's code, for its callers to take in: it is optimised and made into machine code once for each entry,
not once more for each level of calls.
"""

# ruff: noqa: E402 (names that another version lacks are imported after the version check)
from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple, Protocol

import llvmlite.binding as llvm
import numba

from twinsieve.stages.errors import UsageError

REQUIREMENT = "numba>=0.68,<0.69"
"""As in pyproject.toml."""


def require_version() -> None:
    """Check that this file fits this Numba. raises: UsageError"""
    if re.match(r"0\.68\.\d", numba.__version__) is None:
        raise UsageError(
            f"Numba {numba.__version__} is installed, and how kernels are compiled and kept fits Numba 0.68 "
            f"alone; install '{REQUIREMENT}'"
        )


require_version()

from numba.core import caching, codegen, compiler, registry, serialize
from numba.core.runtime import nrt

# Numba is typed here and there.
_Library: Any = codegen.JITCodeLibrary
_Dispatcher: Any = registry.CPUDispatcher
_Compiler: Any = compiler.Compiler
_compile_result: Any = compiler.compile_result
_dumps: Any = serialize.dumps
_cpu: Any = registry.cpu_target
_runtime: Any = nrt

UNCOUNTED = {"_nrt": False}
"""The option of `njit` that leaves out the counting of references. Such a kernel cannot allocate."""


class MachineTarget(NamedTuple):
    """What machine code is made for: LLVM's triple, CPU name and features, as Numba gives them."""

    triple: str
    cpu: str
    features: str


def own_target() -> MachineTarget:
    """What Numba compiles for in this process."""
    return MachineTarget(*_cpu.target_context.codegen().magic_tuple())


class CalledByKernels:
    """Base of an object that a kernel calls as the dispatcher in its `dispatcher`."""

    dispatcher: Any

    @property
    def _numba_type_(self) -> Any:
        return self.dispatcher._numba_type_


class KernelStore(Protocol):
    """The kept files of one kernel; `types` stands for a list of argument types."""

    @property
    def folder(self) -> str | None:
        """The folder that is written to."""

    def load(self, types: str) -> Any:
        """What was saved for these types, unpickled, or None."""

    def save(self, types: str, content: bytes) -> None:
        """Keep a pickle for these types."""


def keep(dispatcher: Any, files: KernelStore) -> None:
    """Let one kernel be loaded from its files, and written to them once it is compiled."""
    library = _kept_callee if isinstance(dispatcher, Callee) else _kept_entry
    dispatcher._cache = _KernelCache(files, library)


class _KernelCache(caching._Cache):
    """One kernel's files, in the form that Numba expects: pickles of its compile results.

    library: makes the library of what `serialize_using_object_code` gave
    """

    def __init__(self, files: KernelStore, library: Callable[[Any, Any, Any], Any]) -> None:
        self._files = files
        self._library = library
        self._enabled = True

    @property
    def cache_path(self) -> str | None:
        """The folder that is written to."""
        return self._files.folder

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The compile result for these argument types, or None."""
        reduced = self._files.load(str(sig)) if self._enabled else None
        if reduced is None:
            return None
        _name_functions_of_the_runtime()
        return self._rebuilt(target_context, reduced)

    def _rebuilt(self, target_context: Any, reduced: tuple[Any, ...]) -> Any:
        """The compile result of what `_without_ballast` left, as Numba itself makes it."""
        kept, function, environment, signature, object_mode, lifted, annotation, *loaded = reduced
        reload_init, environments = loaded
        for load in reload_init:
            load()
        library = self._library(target_context, kept, function)
        result = _compile_result(
            target_context=target_context,
            typing_context=target_context.typing_context,
            library=library,
            environment=environment,
            entry_point=target_context.get_executable(library, function, environment),
            fndesc=function,
            type_annotation=annotation,
            signature=signature,
            objectmode=object_mode,
            lifted=lifted,
            reload_init=reload_init,
            referenced_envs=environments,
        )
        for referenced in environments:
            library.codegen.set_env(referenced.env_name, referenced)
        return result

    def save_overload(self, sig: Any, data: Any) -> None:
        """Write a compile result; where that fails, warn once and continue."""
        if self._enabled and not (
            data.library.has_dynamic_globals or any(not loop.can_cache for loop in data.lifted)
        ):
            self._files.save(str(sig), _dumps(_without_ballast(data)))

    def enable(self) -> None:
        """Load and save from now on."""
        self._enabled = True

    def disable(self) -> None:
        """Neither load nor save from now on."""
        self._enabled = False

    def flush(self) -> None:
        """Forget nothing: kernels of other sources are in other folders."""


def _without_ballast(data: Any) -> tuple[Any, ...]:
    """What is written of a compile result: as Numba does, less what no kernel needs once it is compiled.

    That is the text of its types, and environments without constants: to load one imports the module of a
    function that was inlined, and with all of them half of Numba.
    """
    *most, environments = data._replace(type_annotation="")._reduce()
    return (*most, tuple(referenced for referenced in environments if referenced.consts))


@cache
def _name_functions_of_the_runtime() -> None:
    """Tell LLVM the addresses of Numba's functions for memory, which kept machine code calls by name.

    `rtsys.initialize` does so too, and then compiles what only kernels that are compiled link with: 27 MB
    of LLVM's code come into memory for that. Numba calls it by itself before it compiles anything.
    """
    for name, address in _runtime._nrt.c_helpers.items():
        llvm.add_symbol(name if name.startswith("_") else f"NRT_{name}", address)


class _EntryLibrary(_Library):  # type: ignore[misc]
    """Machine code that was kept. Its LLVM code is parsed only if a kernel that is compiled now calls it."""

    def __init__(self, target: Any, name: str, machine_code: bytes, llvm_code: bytes) -> None:
        super().__init__(target, name)
        self._shared_module: Any = None
        self._llvm_code = llvm_code
        self.enable_object_caching()
        self._set_compiled_object(machine_code)
        self._finalize_final_module()

    def _get_module_for_linking(self) -> Any:
        if self._shared_module is None:
            self._shared_module = llvm.parse_bitcode(self._llvm_code)
        return self._shared_module


def _kept_entry(target_context: Any, kept: tuple[str, str, tuple[bytes, bytes]], function: Any) -> Any:
    """The library of a kernel that Python calls, of what Numba's library of it gave to be kept.

    function: what Numba knows of the kernel
    """
    name, _, code = kept
    library = _EntryLibrary(target_context.codegen(), name, *code)
    # Numba takes these names from the LLVM code, which is not parsed.
    symbols = {function.llvm_func_name, function.llvm_cpython_wrapper_name}
    library.codegen._engine._defined_symbols |= symbols
    return library


class Callee(_Dispatcher):  # type: ignore[misc]
    """Numba's dispatcher, for kernels alone. Without this, a call from Python would jump to address 0."""

    def __init__(self, function: Any, options: dict[str, Any]) -> None:
        super().__init__(function, targetoptions=options, pipeline_class=_CalleeCompiler)

    def add_overload(self, compiled: Any) -> None:
        """Let kernels find what was compiled for these argument types, and Python not."""
        self.overloads[tuple(compiled.signature.args)] = compiled

    def _compile_for_args(self, *_arguments: Any, **_named: Any) -> Any:
        raise TypeError(f"{self.py_func.__qualname__} has no entry for Python: only kernels call it")


class _CalleeCompiler(_Compiler):  # type: ignore[misc]
    """Numba's compiler, which then compiles into a library of ours."""

    def compile_extra(self, func: Any) -> Any:
        """What Numba makes of a function; TypeError if that needs Python's objects, which callees lack."""
        self.state.library = _CalleeLibrary(self.state.targetctx.codegen(), func.__qualname__)
        result = super().compile_extra(func)
        if result.environment.consts:
            raise TypeError(f"{func.__qualname__} needs objects of Python: make it an entry, not a callee")
        return result


class _NoAddresses:
    """Stands where Numba would write the addresses of its objects into machine code."""

    def set_env(self, _name: str, _environment: Any) -> None:
        return


class _CalleeLibrary(_Library):  # type: ignore[misc]
    """Code that others take in; it is never made into machine code by itself."""

    codegen = _NoAddresses()

    def _optimize_final_module(self) -> None:
        """Nothing: the entries that take this in are optimised with all that they contain.

        Numba optimises each kernel together with its callees, so a callee six calls deep was optimised six
        times. All kernels compile in 58 CPU seconds instead of 80 so, and run as fast.
        """

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, _name: str) -> int:
        """0, as there is no machine code."""
        self._ensure_finalized()
        return 0

    def serialize_using_object_code(self) -> tuple[str, str, bytes]:
        """The code, for `_kept_callee`."""
        return self.name, "callee", self._get_module_for_linking().as_bitcode()


def _kept_callee(target_context: Any, kept: tuple[str, str, bytes], _function: Any) -> Any:
    """The library of a callee, of what it gave to be kept."""
    name, _, code = kept
    library = _CalleeLibrary(target_context.codegen(), name)
    library._shared_module = llvm.parse_bitcode(code)
    library._finalized = True
    return library
