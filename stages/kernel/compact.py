"""Makes kernels compile in half the time, and run faster, with private parts of Numba.

In force for the versions of Numba that `kernel/__init__.py` names, and off for any other: then kernels are
compiled as Numba does it, and give the same results. It changes three things.

*Lent tuples.* Numba takes a tuple by value, each array in it as seven words. A kernel with the tuples of a
sieve would hand 770 words to the next one. Here the entry for Python writes the tuples to its stack, and
kernels hand on their addresses. A lent tuple is read like the tuple: an attribute that is a tuple is lent,
too, and any other one is loaded. It is valid until the entry returns. No kernel changes a tuple, so LLVM may
move these loads, also out of loops. A tuple that a kernel makes itself stays a value.

*Callees* have no machine code of their own: they stay LLVM code, which their callers include. Numba would
optimise a callee by itself, and again with each caller.

*Indices* are taken as they are. Numba looks at each signed one whether it is below 0 and counts from the end.
No kernel has such an index, and with NUMBA_BOUNDSCHECK it is an IndexError (`make checked`).
"""

from __future__ import annotations

from functools import cache
from typing import Any, cast

import llvmlite.ir as ir
from numba import types
from numba.core import cgutils as _cgutils
from numba.core import codegen, compiler
from numba.core.imputils import impl_ret_borrowed
from numba.core.typing.templates import AttributeTemplate
from numba.extending import NativeValue, infer_getattr, lower_getattr_generic, models, register_model, unbox

# Only parts of Numba have type annotations.
cgutils: Any = _cgutils
_as_borrowed: Any = impl_ret_borrowed
_native: Any = NativeValue
_Pointer: Any = types.CPointer
_Model: Any = models.PointerModel
_Template: Any = AttributeTemplate
_model_of: Any = register_model
_attributes_of: Any = infer_getattr
_attribute_code_of: Any = lower_getattr_generic
_argument_code_of: Any = unbox
_Library: Any = codegen.JITCodeLibrary
_Compiler: Any = compiler.Compiler

_KERNELS = "twinsieve.stages."
"""How the names of modules with kernels begin."""


class Lent(_Pointer):  # type: ignore[misc]
    """Numba's type of a lent tuple. dtype: type of the tuple"""

    def __init__(self, dtype: Any) -> None:
        super().__init__(dtype)
        self.name = f"lent {dtype}"


def _lent(kind: Any) -> Any:
    """The type as which kernels get a value. kind: Numba's type of it"""
    return Lent(kind) if isinstance(kind, types.BaseNamedTuple) else kind


def lend_tuples(dispatcher: Any) -> None:
    """Let an entry lend the tuples that it gets from Python."""
    # Numba's C code asks the dispatcher for the type of each argument, too.
    kind_of = dispatcher.typeof_pyval
    dispatcher.typeof_pyval = lambda value: _lent(kind_of(value))


@_model_of(Lent)
class _LentModel(_Model):  # type: ignore[misc]
    def from_argument(self, _builder: Any, value: Any) -> Any:
        """An argument of a kernel, of which LLVM learns that no store changes what it points to."""
        if isinstance(value, ir.Argument):
            value.add_attribute("noalias")
        return value


@_argument_code_of(Lent)
def _written_to_the_stack(kind: Any, value: Any, entry: Any) -> Any:
    """The address of a copy of Python's tuple, on the stack of the entry. entry: Numba's context of it"""
    found = entry.unbox(kind.dtype, value)
    model = entry.context.data_model_manager[kind.dtype]
    address = cgutils.alloca_once_value(entry.builder, model.as_data(entry.builder, found.value))

    def give_back() -> None:
        if found.cleanup is not None:
            found.cleanup()
        # Numba counts the arrays of a tuple when it takes it from Python. It does not look for them behind
        # an address when the kernel returns.
        if entry.context.enable_nrt:
            entry.context.nrt.decref(entry.builder, kind.dtype, found.value)

    return _native(address, is_error=found.is_error, cleanup=give_back)


@_attributes_of
class _Attributes(_Template):  # type: ignore[misc]
    key = Lent

    def generic_resolve(self, kind: Any, name: str) -> Any:
        """Type of an attribute; None if the tuple has no such attribute."""
        fields = kind.dtype.fields
        return _lent(kind.dtype[fields.index(name)]) if name in fields else None


@_attribute_code_of(Lent)
def _attribute(context: Any, builder: Any, kind: Any, address: Any, name: str) -> Any:
    place = kind.dtype.fields.index(name)
    found = kind.dtype[place]
    inside = cgutils.gep_inbounds(builder, address, 0, place)
    if isinstance(_lent(found), Lent):
        return inside
    loaded = context.data_model_manager[found].load_from_data_pointer(builder, inside)
    return _as_borrowed(context, builder, found, loaded)


class EntryCompiler(_Compiler):  # type: ignore[misc]
    """Numba's compiler, but an index is taken as it is."""

    def compile_extra(self, func: Any) -> Any:
        """Numba's compile result of a function."""
        _take_indices_as_they_are()
        return super().compile_extra(func)


class CalleeCompiler(EntryCompiler):
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
        """Do nothing: the entries that include this code are optimised together with it."""

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, _name: str) -> int:
        """0, because there is no machine code."""
        self._ensure_finalized()
        return 0


@cache
def _take_indices_as_they_are() -> None:
    """Replace Numba's look at each index; for whatever is no kernel of this package it stays as it is."""
    # Imported here, because who only loads kernels does not need it.
    from numba.np import arrayobj

    arrays: Any = arrayobj
    of_numba = arrays.fix_integer_index
    signed, unsigned = cast("Any", types).intp, cast("Any", types).uintp

    def index_of(context: Any, builder: Any, kind: Any, index: Any, length: Any) -> Any:
        described = context.fndesc
        if described is None or not described.modname.startswith(_KERNELS):
            return of_numba(context, builder, kind, index, length)
        return context.cast(builder, index, kind, signed if kind.signed else unsigned)

    arrays.fix_integer_index = index_of
