"""Lent tuples: how kernels get the named tuples that Python hands to them.

Numba takes a tuple by value, each array in it as seven words. A kernel with the tuples of a sieve would hand
770 words to the next one: slow to run, and slow to compile, because each call names them all. So the entry
for Python writes the tuples to its stack, and kernels hand on their addresses.

A *lent* tuple is read like the tuple: an attribute that is a tuple is lent, too, and any other one is loaded.
It is valid until the entry returns. No kernel changes a tuple, so LLVM may move these loads, also out of
loops. A tuple that a kernel makes itself stays a value.

Like `numba_private.py`, this file uses private parts of Numba 0.68.
"""

from __future__ import annotations

from typing import Any

import llvmlite.ir as ir
from numba import types
from numba.core import cgutils as _cgutils
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


class Lent(_Pointer):  # type: ignore[misc]
    """Numba's type of a lent tuple. dtype: type of the tuple"""

    def __init__(self, dtype: Any) -> None:
        super().__init__(dtype)
        self.name = f"lent {dtype}"


def lent(kind: Any) -> Any:
    """The type as which kernels get a value. kind: Numba's type of it"""
    return Lent(kind) if isinstance(kind, types.BaseNamedTuple) else kind


@_model_of(Lent)
class _LentModel(_Model):  # type: ignore[misc]
    def from_argument(self, _builder: Any, value: Any) -> Any:
        """An argument of a kernel, of which LLVM learns that no store changes what it points to."""
        if isinstance(value, ir.Argument):
            value.add_attribute("noalias")
        return value


@_argument_code_of(Lent)
def _written_to_the_stack(kind: Any, value: Any, entry: Any) -> Any:
    """The address of a tuple of Python. entry: Numba's context of the code that Python calls"""
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
        return lent(kind.dtype[fields.index(name)]) if name in fields else None


@_attribute_code_of(Lent)
def _attribute(context: Any, builder: Any, kind: Any, address: Any, name: str) -> Any:
    place = kind.dtype.fields.index(name)
    found = kind.dtype[place]
    inside = cgutils.gep_inbounds(builder, address, 0, place)
    if isinstance(lent(found), Lent):
        return inside
    loaded = context.data_model_manager[found].load_from_data_pointer(builder, inside)
    return _as_borrowed(context, builder, found, loaded)
