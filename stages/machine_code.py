"""Calls compiled kernels without Numba, whose import takes longer than everything else at a start.

The file of a kernel begins with its `MachineCode`. LLVM links it, and three extension modules of Numba, in C,
hold the functions that it calls. They are loaded from their files, because an import of them would first run
`numba/__init__.py`.

Numba's dispatcher finds the machine code for the types of the arguments of each call. Here `types_of` says
these types as Numba does, and `fingerprint` is the function of Numba that tells, at each call, whether they
are those of a call before.

Like `numba_private.py`, this file uses private parts of Numba 0.68, so `require_version` refuses any other
version before the first use.
"""

from __future__ import annotations

import builtins
import ctypes
import re
import sys
import threading
from collections.abc import Callable
from functools import cache
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader, ModuleSpec
from importlib.metadata import version
from importlib.util import find_spec, module_from_spec
from types import ModuleType
from typing import Any, NamedTuple

import llvmlite.binding as llvm
import numpy as np

from twinsieve.stages.errors import UsageError

REQUIREMENT = "numba>=0.68,<0.69"
"""The requirement as pyproject.toml states it."""

_HELPERS, _FUNCTIONS, _RUNTIME = "numba._helperlib", "numba._dynfunc", "numba.core.runtime._nrt_python"
_ARRAYS, _DISPATCHER = "numba._devicearray", "numba._dispatcher"
_NUMBERS = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
_OF_PYTHON = {bool: "bool", int: "int64", float: "float64"}
_TYPE_CODES = (*_NUMBERS, "float32", "float64", "complex64", "complex128")
_NAME_OF = {np.dtype(name): name for name in _TYPE_CODES}
"""Names of the element types that kernels know; a type with foreign byte order is none of them."""


def numba_version() -> str:
    """The version of the installed Numba."""
    imported = sys.modules.get("numba")
    return version("numba") if imported is None else str(imported.__version__)


def require_version() -> None:
    """Check that the installed Numba is a version that the private parts fit. raises: UsageError"""
    found = numba_version()
    if re.match(r"0\.68\.\d", found) is None:
        raise UsageError(
            f"Numba {found} is installed, and how kernels are compiled and kept fits Numba 0.68 "
            f"alone; install '{REQUIREMENT}'"
        )


class MachineCode(NamedTuple):
    """The machine code of one kernel for one list of argument types.

    entry: symbol of the function that Python calls; environment: symbol of the pointer to its constants
    constants: objects of Python that it uses; code: an object file
    """

    entry: str
    environment: str
    constants: list[Any]
    code: bytes


def types_of(arguments: tuple[Any, ...]) -> str | None:
    """The types of the arguments, as `str` of a tuple of Numba's types; None if one of them is unknown here.

    >>> types_of((np.zeros((2, 3)), True, 5))
    "(Array(float64, 2, 'C', False, aligned=True), bool, int64)"
    """
    found = [_argument_type(each) for each in arguments]
    if None in found:
        return None
    return f"({', '.join(map(str, found))}{',' if len(found) == 1 else ''})"


def _argument_type(value: Any) -> str | None:
    """The name of the type as which a kernel gets this value: it gets the address of a tuple."""
    if type(value) is np.ndarray:
        return _array_type(value)
    found = _type_of(value)
    return f"lent {found}" if found is not None and isinstance(value, tuple) else found


def _array_type(array: np.ndarray[Any, Any]) -> str | None:
    if not _has_type(array):
        return None
    readonly = not array.flags.writeable
    return f"Array({_NAME_OF[array.dtype]}, {array.ndim}, '{_order(array)}', {readonly}, aligned=True)"


def _has_type(array: np.ndarray[Any, Any]) -> bool:
    return array.dtype in _NAME_OF and array.flags.aligned


def _order(array: np.ndarray[Any, Any]) -> str:
    return "C" if array.flags.c_contiguous else "F" if array.flags.f_contiguous else "A"


def _type_of(value: Any) -> str | None:
    """The name of the type of a value that is no array, or of an array in a tuple."""
    if type(value) is np.ndarray:
        if not _has_type(value):
            return None
        mark = "" if value.flags.writeable else "readonly "
        return f"{mark}array({_NAME_OF[value.dtype]}, {value.ndim}d, {_order(value)})"
    if type(value) in _OF_PYTHON:
        # A larger integer has another type.
        return None if type(value) is int and not -(1 << 63) <= value < 1 << 63 else _OF_PYTHON[type(value)]
    if isinstance(value, np.generic):
        return _NAME_OF.get(value.dtype)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return _tuple_type(value)
    return None


def _tuple_type(value: tuple[Any, ...]) -> str | None:
    parts = [_type_of(each) for each in value]
    if not parts or None in parts:
        return None
    inner = f"{parts[0]} x {len(parts)}" if len(set(parts)) == 1 else ", ".join(map(str, parts))
    return f"{type(value).__name__}({inner})"


def linked(code: MachineCode, module: str, name: str) -> Callable[..., Any]:
    """The kernel as a function of Python, which trusts the types of its arguments.

    module, name: of the function that was compiled
    """
    with _lock:
        engine = _engine()
        engine.add_object_file(llvm.ObjectFileRef.from_data(code.code))
        engine.finalize_object()
        functions = _extension(_FUNCTIONS)
        environment = functions.Environment({})
        environment.consts.extend(code.constants)
        pointer = engine.get_global_value_address(code.environment)
        if pointer:
            ctypes.c_void_p.from_address(pointer).value = id(environment)
        address = engine.get_function_address(code.entry)
        made: Callable[..., Any] = functions.make_function(
            sys.modules[module], name, f"compiled {module}.{name}", address, environment, (engine,)
        )
        return made


_lock = threading.RLock()


@cache
def _engine() -> Any:
    """LLVM's linker, which knows the functions that kernels call."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    helpers = [_extension(name).c_helpers for name in (_HELPERS, _FUNCTIONS)]
    symbols = {f"numba_{name}": address for each in helpers for name, address in each.items()}
    errors = (each for each in vars(builtins).values() if isinstance(each, type))
    symbols |= {f"PyExc_{each.__name__}": id(each) for each in errors if issubclass(each, BaseException)}
    for name, address in (symbols | {"_Py_NoneStruct": id(None)}).items():
        llvm.add_symbol(name, address)
    name_functions_of_the_runtime()
    nothing = llvm.parse_assembly(f'target triple = "{llvm.get_process_triple()}"')
    machine = llvm.Target.from_default_triple().create_target_machine(jit=True)
    return llvm.create_mcjit_compiler(nothing, machine)


@cache
def name_functions_of_the_runtime() -> None:
    """Tell LLVM the addresses of Numba's memory functions, which loaded machine code calls by name.

    Numba's `rtsys.initialize` does this too. But it also compiles helpers that only newly compiled kernels
    need, and loads 27 MB of LLVM code for it. Numba itself calls it before it compiles a kernel.
    """
    for name, address in _extension(_RUNTIME).c_helpers.items():
        llvm.add_symbol(name if name.startswith("_") else f"NRT_{name}", address)


@cache
def _extension(name: str) -> Any:
    """One of Numba's extension modules. Numba itself finds it in `sys.modules` if it is imported later."""
    found = sys.modules.get(name)
    if found is not None:
        return found
    numba = find_spec("numba")
    assert numba is not None
    assert numba.submodule_search_locations is not None
    path = "/".join((numba.submodule_search_locations[0], *name.split(".")[1:])) + EXTENSION_SUFFIXES[0]
    loader = ExtensionFileLoader(name, path)
    made = module_from_spec(ModuleSpec(name, loader, origin=path))
    loader.exec_module(made)
    sys.modules[name] = made
    return made


class _Omitted:
    """Stands for Numba's type of arguments that were left out, which kernels do not have."""


def _fingerprint() -> Callable[[tuple[Any, ...]], bytes]:
    if "numba" in sys.modules or threading.active_count() > 1:
        # Another thread may be importing Numba, and must not find what stands here for it.
        import numba  # noqa: F401
    if _DISPATCHER not in sys.modules:
        # Its initialisation takes an address from `numba._devicearray`, by way of the package.
        placeholder = ModuleType("numba")
        placeholder._devicearray = _extension(_ARRAYS)  # type: ignore[attr-defined]
        placeholder.__spec__ = find_spec("numba")
        sys.modules["numba"] = placeholder
        try:
            dispatcher = _extension(_DISPATCHER)
        finally:
            del sys.modules["numba"]
        dispatcher.typeof_init(_Omitted, {name: code for code, name in enumerate(_TYPE_CODES)})
    compute: Callable[[tuple[Any, ...]], bytes] = sys.modules[_DISPATCHER].compute_fingerprint
    return compute


require_version()

fingerprint = _fingerprint()
"""A short text that two tuples of arguments share only if their types are equal for Numba.

raises: NotImplementedError for a type that it does not know
"""
