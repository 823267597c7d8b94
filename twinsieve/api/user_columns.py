"""Convert a user's column to a list of Python values, whichever library made the column.

This module imports no such library, except pyarrow for an object that offers only the Arrow C interface.
Every error names the argument and, if one row is the cause, the row, counted from `first`. Rows are taken in
their order; the index of a pandas Series is ignored.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.errors import UsageError

_NO_VALUES = frozenset({"NAType", "NaTType"})
"""Type names of `pandas.NA` and `pandas.NaT`. Types are compared because `pandas.NA == x` is `pandas.NA`,
which has no truth value."""

_ID_BITS = 128
"""The most bits of a whole number as id, enough for a UUID. There is a limit because Python refuses to print
integers of very many digits."""


_PIECE = 1_024


def is_null(value: object) -> bool:
    """Whether the value means "missing": None, NaN, `pandas.NA`, `pandas.NaT`, `numpy.datetime64("NaT")`.

    >>> [is_null(value) for value in (None, float("nan"), "", 0, np.datetime64("NaT", "ms"))]
    [True, True, False, False, True]
    """
    if value is None or type(value).__name__ in _NO_VALUES:
        return True
    if isinstance(value, (float, np.floating)):
        return bool(value != value)
    return isinstance(value, (np.datetime64, np.timedelta64)) and bool(np.isnat(value))


def values_of(column: object, name: str) -> list[Any]:
    """The column's values in order. The missing values of each library are left as they are (see `is_null`).

    column: list, tuple or another iterable; NumPy array (masked too); Series of pandas or polars; Arrow
        array or chunked array (dictionary-encoded too), or any object with `__arrow_c_stream__` or
        `__arrow_c_array__`
    name: the name of the column in errors
    raises: UsageError for anything else: text, bytes, a mapping, a set, a table, more than one dimension
    """
    refuse_no_column(column, name)
    if isinstance(column, (list, tuple)):
        return list(column)
    if isinstance(column, np.ndarray):
        return list(column.tolist()) if column.dtype.kind != "M" else list(column)
    for method in ("to_pylist", "to_list"):
        convert = getattr(column, method, None)
        if callable(convert):
            return list(convert())
    if hasattr(column, "__arrow_c_stream__") or hasattr(column, "__arrow_c_array__"):
        return list(_arrow_column(column, name).to_pylist())
    if isinstance(column, Iterable):
        return list(column)
    raise UsageError(f"{name} is {a_type(column)}, not a column; give a list or another iterable")


def texts_of(column: object, first: int = 0, name: str = "texts") -> list[str | None]:
    """The texts, None for a missing text. raises: as `texts_and_gaps`"""
    return texts_and_gaps(column, first, name)[0]


def texts_and_gaps(
    column: object, first: int = 0, name: str = "texts"
) -> tuple[list[str | None], NDArray[np.bool_] | None]:
    """The texts, None for a missing text; and which rows have one: bool[n], or None if all have.

    Lone surrogates are accepted like any other character.
    raises: UsageError at the first row that is neither text nor missing
    """
    texts: list[str | None] = []
    types: set[type] = set()
    whole = column if isinstance(column, list) else values_of(column, name)
    # In pieces, so that a text is in the processor's cache when its type is read.
    for low in range(0, len(whole), _PIECE):
        piece = whole[low : low + _PIECE]
        types.update(map(type, piece))
        texts += piece
    if types <= {str}:
        return texts, None
    for row, text in enumerate(texts):
        if type(text) is str:
            continue
        if isinstance(text, str):
            texts[row] = str(text)
        elif is_null(text):
            texts[row] = None
        elif isinstance(text, (bytes, bytearray, memoryview)):
            raise UsageError(f"{name}[{first + row}] is {type(text).__name__}, not str; decode it first")
        else:
            raise UsageError(
                f"{name}[{first + row}] is {a_type(text)} ({shown(text)}), not str; convert it first, "
                "or give None for no text"
            )
    return texts, np.array([text is not None for text in texts], np.bool_)


def ids_of(column: object, first: int = 0, name: str = "ids") -> list[str | int | None]:
    """The ids unchanged, None for a missing id; NumPy integers and strings become Python int and str.

    raises: UsageError at the first row that is neither int, str nor missing
    """
    ids = values_of(column, name)
    if set(map(type, ids)) <= {str, int} and all(map(_is_whole, _largest(ids))):
        return ids
    for row, value in enumerate(ids):
        if is_null(value):
            ids[row] = None
        elif isinstance(value, str):
            ids[row] = str(value)
        elif _is_whole(value):
            ids[row] = int(value)
        else:
            advice = "use int or str"
            if isinstance(value, int) and not isinstance(value, bool):
                advice = f"a whole number has {_ID_BITS} bits at most; use str"
            if isinstance(value, float):
                advice += " (in pandas, integers with missing values are of type Int64)"
            raise UsageError(f"{name}[{first + row}] is {a_type(value)} ({shown(value)}); {advice}")
    return ids


def scopes_of(column: object, first: int = 0, name: str = "scopes") -> list[tuple[str | int, ...] | None]:
    """Each scope as a tuple of its parts, None for a missing scope; `"a"` and `("a",)` are the same scope.

    raises: UsageError at the first row that is neither int, str, a tuple (or list) of these, nor missing
    """
    scopes = values_of(column, name)
    for row, scope in enumerate(scopes):
        if is_null(scope):
            scopes[row] = None
            continue
        parts = tuple(scope) if isinstance(scope, (tuple, list)) else (scope,)
        for part in parts:
            if not isinstance(part, str) and not _is_whole(part):
                raise UsageError(
                    f"{name}[{first + row}] is {a_type(scope)} ({shown(scope)}); "
                    f"use int (of {_ID_BITS} bits at most), str or a tuple of these"
                )
        scopes[row] = tuple(str(part) if isinstance(part, str) else int(part) for part in parts)
    return scopes


def a_type(value: object) -> str:
    """The name of the value's type with "a" or "an", for messages.

    >>> a_type(5), a_type({})
    ('an int', 'a dict')
    """
    kind = type(value).__name__
    return f"{'an' if kind[:1].lower() in 'aeiou' else 'a'} {kind}"


def shown(value: object) -> str:
    """The value as quoted in messages, cut at 40 characters."""
    # `repr` of an integer of very many digits raises, `hex` does not.
    text = repr(value) if not isinstance(value, int) or value.bit_length() < 1_000 else hex(value)
    return text if len(text) <= 40 else text[:39] + "…"


def _largest(ids: list[Any]) -> list[int]:
    """The smallest and the largest whole number. If any number has too many bits, one of these two has."""
    numbers = [value for value in ids if type(value) is int]
    return [min(numbers), max(numbers)] if numbers else []


def _is_whole(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        return False
    return int(value).bit_length() <= _ID_BITS


def is_arrow(column: object) -> bool:
    """Whether the column is one of pyarrow's arrays."""
    return hasattr(column, "to_pylist") and hasattr(column, "type") and hasattr(column, "cast")


def refuse_no_rows(items: object, name: str) -> None:
    """Refuse a lazy frame (polars), before anybody asks it for its columns, and a dict of the splits of a
    dataset (Hugging Face's `DatasetDict`). raises: UsageError
    """
    if isinstance(items, Mapping) and hasattr(items, "column_names"):
        split = next(iter(items), "train")
        raise UsageError(f"{name} is {a_type(items)}; give one of its splits, as {name}[{shown(split)}]")
    if hasattr(items, "collect_schema") and hasattr(items, "collect"):
        raise UsageError(f"{name} is {a_type(items)}, which has no rows yet; give {name}.collect()")


def refuse_no_column(column: object, name: str) -> None:
    """Refuse a single text, a mapping, a set and a table: Python can iterate over them, but not row by row.

    raises: UsageError
    """
    if isinstance(column, (str, bytes, bytearray)):
        raise UsageError(f"{name} is one {type(column).__name__}, not a column; write [{name[:-1] or 'it'}]")
    refuse_no_rows(column, name)
    if isinstance(column, Mapping):
        raise UsageError(f"{name} is {a_type(column)}, not a column; give one of its columns")
    if isinstance(column, Set):
        raise UsageError(f"{name} is {a_type(column)}, which has no order; give a list")
    if column is None:
        raise UsageError(f"{name} is None; give a list or another column")
    dimensions = getattr(column, "ndim", None)
    if isinstance(dimensions, int) and dimensions != 1:
        raise UsageError(f"{name} is {a_type(column)} of {dimensions} dimensions; give one of its columns")
    # A stream of rows (Hugging Face's IterableDataset) has columns, too, but no length.
    has_columns = hasattr(column, "num_columns") and hasattr(column, "__len__")
    if has_columns or hasattr(column, "get_columns") or hasattr(column, "to_arrow_table"):
        raise UsageError(f"{name} is {a_type(column)}, not a column; give one of its columns")


def _arrow_column(column: object, name: str) -> Any:
    """The column as a pyarrow array, for an object that offers only the Arrow C interface.

    raises: UsageError if pyarrow is not installed or does not accept the object
    """
    try:
        arrow: Any = import_module("pyarrow")
    except ImportError as error:
        raise UsageError(
            f"{name} is {a_type(column)}, an Arrow column that only pyarrow can read; install "
            "pyarrow, or give a list"
        ) from error
    try:
        if hasattr(column, "__arrow_c_stream__"):
            return arrow.chunked_array(column)
        return arrow.array(column)
    except (TypeError, ValueError) as error:
        raise UsageError(
            f"{name} is {a_type(column)}, which Arrow does not take as a column ({error})"
        ) from error
