"""All uses of private parts of Numba and llvmlite in compiling; no other file uses them (`tests/house`), but
`machine_code.py` and `lent_tuples.py`.

Like that one it is written for Numba 0.68 and not tested with other versions.

An *entry* is a kernel that Python calls; a *callee* is a kernel that only other kernels call. Numba makes
machine code of every kernel, although the machine code of each kernel already includes the kernels that it
calls. Here a callee has no entry for Python and no machine code: it stays LLVM code, which its callers
include. So it is optimised and compiled once for each entry, and not again for each level of calls.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Protocol, cast

import llvmlite.binding as llvm
from numba import njit
from numba.core import caching, codegen, compiler, registry, serialize

from twinsieve.stages import instructions
from twinsieve.stages.lent_tuples import lent
from twinsieve.stages.machine_code import MachineCode, name_functions_of_the_runtime

# Only parts of Numba have type annotations.
_Library: Any = codegen.JITCodeLibrary
_Dispatcher: Any = registry.CPUDispatcher
_Compiler: Any = compiler.Compiler
_compile_result: Any = compiler.compile_result
_dumps: Any = serialize.dumps
_cpu: Any = registry.cpu_target

_KERNELS = "twinsieve.stages."
"""How the names of modules with kernels begin."""
_UNCOUNTED = {"_nrt": False}
"""The option of `njit` that switches reference counting off. Without counting, a kernel cannot allocate."""


def dispatcher_of(
    function: Callable[..., Any], files: KernelStore, *, callee: bool, allocates: bool, inlined: bool
) -> Any:
    """Numba's dispatcher of a function; it loads the kernel from the files, or compiles and writes it.

    callee, allocates, inlined: as of `kernel.kernel`
    """
    # Without a value of its own, a kernel would be inlined if the kernel is for which it is compiled first.
    options = ({} if allocates else _UNCOUNTED) | {"forceinline": inlined}
    # Numba would also make an entry for C. Nothing calls it, and it took a fifth of the compile time.
    own = {"no_cfunc_wrapper": True, "no_cpython_wrapper": callee}
    dispatcher = cast("Any", njit)(nogil=True, pipeline_class=_KernelCompiler, **own, **options)(function)
    if callee:
        dispatcher = Callee(function, dispatcher.targetoptions)
    # Numba's C code asks the dispatcher for the type of each argument, too.
    kind_of = dispatcher.typeof_pyval
    dispatcher.typeof_pyval = lambda value: lent(kind_of(value))
    dispatcher._cache = _KernelCache(files, _kept_callee if callee else _kept_entry)
    return dispatcher


def type_of_instruction(name: str) -> Any:
    """Numba's type of a function of `instructions.py`."""
    typing = _cpu.typing_context
    typing.refresh()
    return typing.resolve_value_type(getattr(instructions, name))


class KernelStore(Protocol):
    """The files with the compile results of one kernel. types: the argument types of one result, as text"""

    @property
    def folder(self) -> str | None:
        """The folder for new files, or None."""

    def load_all(self, types: str, count: int) -> list[Any]:
        """The first `count` objects that were saved for these types, or none."""

    def save(self, types: str, content: bytes) -> None:
        """Write pickles for these types, one behind the other."""


class _KernelCache(caching._Cache):
    """Adapter: the files of one kernel as a Numba cache.

    A file is two pickles: the `MachineCode` of an entry that needs nothing else, or None; then the compile
    result, without that machine code.

    library: function that makes a code library of the output of `serialize_using_object_code`
    """

    def __init__(self, files: KernelStore, library: Callable[[Any, Any, Any], Any]) -> None:
        self._files = files
        self._library = library
        self._enabled = True

    @property
    def cache_path(self) -> str | None:
        """The folder for new files, or None."""
        return self._files.folder

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The compile result for these argument types, or None."""
        loaded = self._files.load_all(str(sig), 2) if self._enabled else []
        if not loaded:
            return None
        name_functions_of_the_runtime()
        code, reduced = loaded
        return self._rebuilt(target_context, reduced if code is None else _with_code(reduced, code.code))

    def _rebuilt(self, target_context: Any, reduced: tuple[Any, ...]) -> Any:
        """The compile result, rebuilt as Numba does it. reduced: what `_without_ballast` returned"""
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
        """Write a compile result. If that fails, warn once and continue."""
        if self._enabled and not (
            data.library.has_dynamic_globals or any(not loop.can_cache for loop in data.lifted)
        ):
            reduced = _without_ballast(data)
            code = _machine_code(reduced)
            if code is not None:
                reduced = _with_code(reduced, b"")
            self._files.save(str(sig), _dumps(code) + _dumps(reduced))

    def enable(self) -> None:
        """Load and save from now on."""
        self._enabled = True

    def disable(self) -> None:
        """Neither load nor save from now on."""
        self._enabled = False

    def flush(self) -> None:
        """Do nothing: kernels of other sources are in other folders, so no file here is outdated."""


def _without_ballast(data: Any) -> tuple[Any, ...]:
    """The parts of a compile result that are written: what Numba writes, without two parts.

    A compiled kernel needs neither the text of its types nor environments that hold no constants. Loading
    such an environment would import the module of an inlined function; all of them import half of Numba.
    """
    *most, environments = data._replace(type_annotation="")._reduce()
    return (*most, tuple(referenced for referenced in environments if referenced.consts))


def _machine_code(reduced: tuple[Any, ...]) -> MachineCode | None:
    """The machine code of an entry which needs nothing else; None for any other kernel.

    reduced: what `_without_ballast` returned
    """
    (_, kind, code), function, environment, _, object_mode, lifted, _, reload_init, environments = reduced
    if kind != "object" or object_mode or lifted or reload_init or environments:
        return None
    return MachineCode(
        function.llvm_cpython_wrapper_name, function.env_name, list(environment.consts), code[0]
    )


def _with_code(reduced: tuple[Any, ...], machine_code: bytes) -> tuple[Any, ...]:
    (name, kind, (_, llvm_code)), *others = reduced
    return ((name, kind, (machine_code, llvm_code)), *others)


class _EntryLibrary(_Library):  # type: ignore[misc]
    """A library of loaded machine code. Its LLVM code is parsed only if a newly compiled kernel calls it."""

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
    """The code library of an entry.

    kept: what `serialize_using_object_code` of Numba's library returned; function: Numba's descriptor
    """
    name, _, code = kept
    library = _EntryLibrary(target_context.codegen(), name, *code)
    # Numba would take these names from the LLVM code, but that is not parsed here.
    symbols = {function.llvm_func_name, function.llvm_cpython_wrapper_name}
    library.codegen._engine._defined_symbols |= symbols
    return library


class Callee(_Dispatcher):  # type: ignore[misc]
    """The dispatcher of a callee. It refuses calls from Python, which would otherwise jump to address 0."""

    def __init__(self, function: Any, options: dict[str, Any]) -> None:
        super().__init__(function, targetoptions=options, pipeline_class=_CalleeCompiler)

    def add_overload(self, compiled: Any) -> None:
        """Add a compile result for its argument types. Kernels find it there, calls from Python do not."""
        self.overloads[tuple(compiled.signature.args)] = compiled

    def _compile_for_args(self, *_arguments: Any, **_named: Any) -> Any:
        raise TypeError(f"{self.py_func.__qualname__} has no entry for Python: only kernels call it")


class _KernelCompiler(_Compiler):  # type: ignore[misc]
    """Numba's compiler, but an index is taken as it is."""

    def compile_extra(self, func: Any) -> Any:
        """Numba's compile result of a function."""
        _take_indices_as_they_are()
        return super().compile_extra(func)


@cache
def _take_indices_as_they_are() -> None:
    """Let no kernel add the length of an array to a negative index.

    Numba looks at each signed index for that. No kernel has negative ones; without the look they take less
    time, and more of their loops become vector instructions. With NUMBA_BOUNDSCHECK a negative index is an
    IndexError, as one that is too large (`make checked`). Whatever is no kernel of this package keeps Numba's
    way.
    """
    # Imported here, because who only loads kernels does not need it.
    from numba.core import types
    from numba.np import arrayobj

    arrays: Any = arrayobj
    of_numba, signed, unsigned = arrays.fix_integer_index, cast("Any", types).intp, cast("Any", types).uintp

    def index_of(context: Any, builder: Any, kind: Any, index: Any, length: Any) -> Any:
        described = context.fndesc
        if described is None or not described.modname.startswith(_KERNELS):
            return of_numba(context, builder, kind, index, length)
        return context.cast(builder, index, kind, signed if kind.signed else unsigned)

    arrays.fix_integer_index = index_of


class _CalleeCompiler(_KernelCompiler):
    """The same, but the code goes into a `_CalleeLibrary`."""

    def compile_extra(self, func: Any) -> Any:
        """Numba's compile result of a function. raises: TypeError if the code needs Python objects"""
        self.state.library = _CalleeLibrary(self.state.targetctx.codegen(), func.__qualname__)
        result = super().compile_extra(func)
        if result.environment.consts:
            raise TypeError(f"{func.__qualname__} needs objects of Python: make it an entry, not a callee")
        return result


class _NoAddresses:
    """Placeholder for Numba's code generator; it ignores addresses that Numba writes into machine code."""

    def set_env(self, _name: str, _environment: Any) -> None:
        return


class _CalleeLibrary(_Library):  # type: ignore[misc]
    """LLVM code that other libraries include; it never becomes machine code by itself."""

    codegen = _NoAddresses()

    def _optimize_final_module(self) -> None:
        """Do nothing: the entries that include this code are optimised together with it.

        Numba optimises each kernel together with its callees, so it optimised a callee six calls deep six
        times. Without that, all kernels compile in 58 CPU seconds instead of 80, and run equally fast.
        """

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, _name: str) -> int:
        """0, because there is no machine code."""
        self._ensure_finalized()
        return 0

    def serialize_using_object_code(self) -> tuple[str, str, bytes]:
        """Name, type and LLVM code of the callee, as `_kept_callee` takes them."""
        return self.name, "callee", self._get_module_for_linking().as_bitcode()


def _kept_callee(target_context: Any, kept: tuple[str, str, bytes], _function: Any) -> Any:
    """The code library of a callee. kept: what its `serialize_using_object_code` returned"""
    name, _, code = kept
    library = _CalleeLibrary(target_context.codegen(), name)
    library._shared_module = llvm.parse_bitcode(code)
    library._finalized = True
    return library
