"""Makes kernels compile in half the time, and run faster, with private parts of Numba.

In force for the versions of Numba that `kernel/__init__.py` names, and off for any other: then kernels are
compiled as Numba does it, and give the same results. It changes four things.

*Lent tuples.* Numba takes a tuple by value, each array in it as seven words. A kernel with the tuples of a
sieve would hand 770 words to the next one. Here the entry for Python writes the tuples to its stack, and
kernels hand on their addresses. A lent tuple is read like the tuple: an attribute that is a tuple is lent,
too, and any other one is loaded. It is valid until the entry returns. No kernel changes a tuple, so LLVM may
move these loads, also out of loops. A tuple that a kernel makes itself stays a value.

*Callees* have no machine code of their own: they stay LLVM code, which their callers include. Numba would
optimise a callee by itself, and again with each caller.

*LLVM code* of a kernel that is loaded from disk is parsed only if a newly compiled kernel calls that one.

*Indices* are taken as they are. Numba looks at each signed one whether it is below 0 and counts from the end.
No kernel has such an index, and with NUMBA_BOUNDSCHECK it is an IndexError (`make checked`).
"""

from __future__ import annotations

from functools import cache
from typing import Any, cast

import llvmlite.binding as llvm
import llvmlite.ir as ir
from numba import extending as _extending
from numba import types
from numba.core import cgutils as _cgutils
from numba.core import codegen, compiler
from numba.core.imputils import impl_ret_borrowed
from numba.core.typing.templates import AttributeTemplate

from twinsieve.stages.kernel import kept

# Only parts of Numba have type annotations.
cgutils: Any = _cgutils
extending: Any = _extending
_as_borrowed: Any = impl_ret_borrowed
_Pointer: Any = types.CPointer
_Template: Any = AttributeTemplate
_Library: Any = codegen.JITCodeLibrary
_Compiler: Any = compiler.Compiler

_KERNELS = "twinsieve.stages."


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


@extending.register_model(Lent)
class _LentModel(extending.models.PointerModel):  # type: ignore[misc]
    def from_argument(self, _builder: Any, value: Any) -> Any:
        """An argument of a kernel, of which LLVM learns that no store changes what it points to."""
        if isinstance(value, ir.Argument):
            value.add_attribute("noalias")
        return value


@extending.unbox(Lent)
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

    return extending.NativeValue(address, is_error=found.is_error, cleanup=give_back)


@extending.infer_getattr
class _Attributes(_Template):  # type: ignore[misc]
    key = Lent

    def generic_resolve(self, kind: Any, name: str) -> Any:
        """Type of an attribute; None if the tuple has no such attribute."""
        fields = kind.dtype.fields
        return _lent(kind.dtype[fields.index(name)]) if name in fields else None


@extending.lower_getattr_generic(Lent)
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
    def set_env(self, _name: str, _environment: Any) -> None:
        """Ignore an address that Numba writes into machine code, which a callee does not have."""


class _CalleeLibrary(_Library):  # type: ignore[misc]
    """LLVM code that other libraries include; it never becomes machine code by itself."""

    codegen = _NoAddresses()

    def _optimize_final_module(self) -> None:
        """Nothing: the entries that include this code are optimised together with it."""

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, _name: str) -> int:
        return 0


class _LoadedLibrary(_Library):  # type: ignore[misc]
    _shared_module: Any

    def _get_module_for_linking(self) -> Any:
        if isinstance(self._shared_module, bytes):
            self._shared_module = llvm.parse_bitcode(self._shared_module)
        return self._shared_module


class _KernelFiles(kept.KernelFiles):
    def rebuild(self, target_context: Any, payload: Any) -> Any:
        """The compile result of a kernel. payload: what Numba made of it for its cache"""
        (name, kind, (machine_code, llvm_code)), function, *others = payload
        # Numba takes from the LLVM code which functions there are.
        names = (function.llvm_func_name, function.llvm_cpython_wrapper_name)
        stubs = "\n".join(f'define void @"{each}"() {{ ret void }}' for each in names)
        code = (machine_code, llvm.parse_assembly(stubs).as_bitcode())
        result = super().rebuild(target_context, ((name, kind, code), function, *others))
        result.library.__class__ = _LoadedLibrary
        result.library._shared_module = llvm_code
        return result


class KeptKernel(kept.KeptKernel):
    _impl_class = _KernelFiles


@cache
def _take_indices_as_they_are() -> None:
    """Replace Numba's look at each index, for kernels of this package alone."""
    from numba.np import arrayobj  # takes long, and a process that only loads kernels does not need it

    arrays: Any = arrayobj
    of_numba = arrays.fix_integer_index
    signed, unsigned = cast("Any", types).intp, cast("Any", types).uintp

    def index_of(context: Any, builder: Any, kind: Any, index: Any, length: Any) -> Any:
        described = context.fndesc
        if described is None or not described.modname.startswith(_KERNELS):
            return of_numba(context, builder, kind, index, length)
        return context.cast(builder, index, kind, signed if kind.signed else unsigned)

    arrays.fix_integer_index = index_of
