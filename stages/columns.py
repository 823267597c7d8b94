"""Columns of n messages. dtype, shape and meaning are declared once; this file alone selects and joins rows.

A set of columns is a dataclass that derives from `Columns`. The annotation of each field declares how the
column is stored; the text below the field says what the column means:

>>> @dataclass(slots=True)
... class Words(Columns):
...     ids: Annotated[NDArray[np.uint64], PerRow("<u8")]
...     starts: Annotated[NDArray[np.int64], Starts("<u2")]
...     letters: Annotated[NDArray[np.uint32], Packed("<u4", by="starts")]
>>> words = Words(np.array([7, 8], np.uint64), np.array([0, 1, 3]), np.array([97, 98, 99], np.uint32))
>>> words.take(np.array([False, True]))
Words(ids=array([8], dtype=uint64), starts=array([0, 2]), letters=array([98, 99], dtype=uint32))

`pipeline.wire.columns` writes and reads the columns in the order of their declaration. To add a column,
declare it in its set and fill it; the code that selects, joins or sends rows needs no change.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from enum import Enum
from functools import cache, cached_property
from typing import (
    Annotated,
    Any,
    ClassVar,
    NamedTuple,
    Self,
    TypeVar,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Answer = TypeVar("Answer")
Which = NDArray[np.bool_] | NDArray[np.integer[Any]] | slice
"""Rows to select: a mask, indices in any order, or a slice of step 1."""

_NONE: Mapping[str, int] = {}


class Sent(Enum):
    """How a column is stored in the blocks that the processes (worker and index) send to each other."""

    COMPRESSED = "compressed"
    PLAIN = "plain"
    """sent without compression: compression does not make hashes smaller"""
    NOT = "not"
    """not sent; the reader fills the column with `Column.fill`"""


class Dim(NamedTuple):
    """One length of a column's shape that depends on the settings. It is sent before the rows.

    code: format character of `struct` with which the length is sent
    usual: the length if nobody passes another one
    """

    name: str
    code: str
    usual: int = 0


@dataclass(frozen=True)
class Column:
    """The declaration of a column; base of all kinds of columns below.

    dtype: dtype of the values; shape: shape of one entry
    fill: value of an entry that is unknown; sent: how the column is sent
    """

    dtype: str
    shape: tuple[int | Dim, ...] = ()
    fill: int = 0
    sent: Sent = Sent.COMPRESSED

    is_by_row: ClassVar[bool] = False
    """Whether this kind of column has exactly one entry for each row."""

    def sizes(self, dims: Mapping[str, int]) -> tuple[int, ...]:
        """The shape as numbers: each `Dim` becomes its length in `dims`, or its usual length."""
        if self._is_fixed:
            return cast("tuple[int, ...]", self.shape)
        return tuple(
            dims.get(size.name, size.usual) if isinstance(size, Dim) else size for size in self.shape
        )

    @cached_property
    def _is_fixed(self) -> bool:
        return not any(isinstance(size, Dim) for size in self.shape)

    def blank(self, rows: int, fill: int, dims: Mapping[str, int]) -> Array:
        """`rows` entries that are all `fill`; an empty array for columns without one entry a row."""
        shape = (rows if self.is_by_row else 0, *self.sizes(dims))
        # With few messages a block has few rows. Then each call of NumPy is a measurable part of the time,
        # and `zeros` is the faster call.
        return np.full(shape, fill, self.dtype) if fill else np.zeros(shape, self.dtype)

    def take(self, owner: Any, name: str, which: Which) -> Array:
        """The entries of the selected rows. owner: the set of columns; name: its field with this column"""
        return cast("Array", getattr(owner, name)[which])

    def concat(self, owners: Sequence[Any], name: str) -> Array:
        """The entries of all owners, one owner after another."""
        return np.concatenate([getattr(owner, name) for owner in owners])

    def put(self, _owner: Any, name: str, _which: Which, _rows: Any) -> None:
        """Overwrite the owner's entries of the selected rows with those of `rows`.

        raises: TypeError if the entries of this column have no fixed place for each row
        """
        raise TypeError(f"{name} has no room of its own for each row")

    def fault(self, owner: Any, name: str, rows: int) -> str | None:
        """In which way the array contradicts its declaration, or None if it fits. rows: number of rows"""
        array, dtype = getattr(owner, name), np.dtype(self.dtype)
        if array.dtype != dtype:
            return f"{name} is {array.dtype}, not {dtype}"
        sizes = zip(array.shape[1:], self.shape, strict=False)
        if array.ndim != 1 + len(self.shape) or any(
            isinstance(wanted, int) and size != wanted for size, wanted in sizes
        ):
            return f"{name} has the shape {array.shape}"
        if self.is_by_row and len(array) != rows:
            return f"{name} has {len(array)} rows, not {rows}"
        return None


@dataclass(frozen=True)
class PerRow(Column):
    """A column with one entry for each row: an array [n, *shape]."""

    is_by_row: ClassVar[bool] = True

    def put(self, owner: Any, name: str, which: Which, rows: Any) -> None:
        getattr(owner, name)[which] = getattr(rows, name)


@dataclass(frozen=True)
class Starts(Column):
    """Where each row of the `Packed` columns begins: int64[n + 1].

    dtype: dtype on the wire, which carries the lengths of the rows instead of their starts
    max_sent: longer rows are cut to this length before they are sent; None: rows are sent whole
    """

    max_sent: int | None = None

    def blank(self, rows: int, fill: int, dims: Mapping[str, int]) -> Array:
        return np.full((rows + 1, *self.sizes(dims)), fill, np.int64)

    def take(self, owner: Any, name: str, which: Which) -> Array:
        starts: NDArray[np.int64] = getattr(owner, name)
        if isinstance(which, slice):
            low, high, _ = which.indices(len(starts) - 1)
            return cast("Array", starts[low : high + 1] - starts[low])
        return starts_of(np.diff(starts)[which])

    def concat(self, owners: Sequence[Any], name: str) -> Array:
        return starts_of(np.concatenate([np.diff(getattr(owner, name)) for owner in owners]))

    def fault(self, owner: Any, name: str, rows: int) -> str | None:
        starts = getattr(owner, name)
        if starts.dtype != np.int64 or starts.shape != (rows + 1,):
            return f"{name} is {starts.dtype}{list(starts.shape)}, not int64[{rows + 1}]"
        return None if starts[0] == 0 and (np.diff(starts) >= 0).all() else f"{name} goes back"


@dataclass(frozen=True)
class Packed(Column):
    """A column in which the values of all rows stand end to end.

    by: name of the `Starts` column; row i is values[starts[i]:starts[i + 1]]
    """

    by: str = "starts"

    def take(self, owner: Any, name: str, which: Which) -> Array:
        starts: NDArray[np.int64] = getattr(owner, self.by)
        values: Array = getattr(owner, name)
        if isinstance(which, slice):
            low, high, _ = which.indices(len(starts) - 1)
            return values[starts[low] : starts[high]]
        lengths = np.diff(starts)[which]
        first = np.repeat(starts[:-1][which] - starts_of(lengths)[:-1], lengths)
        return values[first + np.arange(len(first))]

    def concat(self, owners: Sequence[Any], name: str) -> Array:
        # The array may be longer than its rows: values after the end of the last row belong to no row.
        return np.concatenate([getattr(owner, name)[: getattr(owner, self.by)[-1]] for owner in owners])

    def fault(self, owner: Any, name: str, rows: int) -> str | None:
        count, end = len(getattr(owner, name)), int(getattr(owner, self.by)[-1])
        other = None if count == end else f"{name} has {count} values, and {self.by} end at {end}"
        return super().fault(owner, name, rows) or other


@dataclass(frozen=True)
class Pooled(Column):
    """A column for entries that only few rows have: an array [m, *shape].

    by: name of the `Places` column, which holds the place of each row's entry in this array
    """

    by: str = ""

    def take(self, owner: Any, name: str, which: Which) -> Array:
        places = getattr(owner, self.by)[which]
        return cast("Array", getattr(owner, name)[places[places >= 0]])

    def put(self, owner: Any, name: str, _which: Which, rows: Any) -> None:
        setattr(owner, name, np.concatenate([getattr(owner, name), getattr(rows, name)]))

    def fault(self, owner: Any, name: str, rows: int) -> str | None:
        places, count = getattr(owner, self.by), len(getattr(owner, name))
        is_inside = int(places.max(initial=-1)) < count and int(places.min(initial=0)) >= -1
        other = None if is_inside else f"{name} has {count} entries, and {self.by} name others"
        return super().fault(owner, name, rows) or other


def places_of(has_entry: NDArray[np.bool_]) -> NDArray[np.int64]:
    """int64[n]: the places of the rows that have an entry, numbered from 0 in row order; -1 for the others.

    >>> places_of(np.array([False, True, True])).tolist()
    [-1, 0, 1]
    """
    return np.where(has_entry, np.cumsum(has_entry) - 1, -1)


@dataclass(frozen=True)
class Places(PerRow):
    """A column with, for each row, the place of its entry in the `Pooled` column `of`, or -1 for no entry.

    `take` numbers the places from 0 again, in the order of the selected rows.
    """

    fill: int = -1
    of: str = ""

    def take(self, owner: Any, name: str, which: Which) -> Array:
        return places_of(getattr(owner, name)[which] >= 0).astype(self.dtype)

    def put(self, owner: Any, name: str, which: Which, rows: Any) -> None:
        getattr(owner, name)[which] = self._behind(rows, name, len(getattr(owner, self.of)))

    def _behind(self, owner: Any, name: str, before: int) -> Array:
        """The owner's places in a larger pool, in which `before` other entries come first."""
        places = getattr(owner, name)
        return np.where(places < 0, -1, places + before).astype(self.dtype)

    def concat(self, owners: Sequence[Any], name: str) -> Array:
        arrays, before = [], 0
        for owner in owners:
            arrays.append(self._behind(owner, name, before))
            before += len(getattr(owner, self.of))
        return np.concatenate(arrays)


def once_a_kind(answer: Callable[[type[Columns]], Answer]) -> Callable[[type[Columns]], Answer]:
    """Decorator: compute a function's result once for each columns class and cache it."""
    return cast("Callable[[type[Columns]], Answer]", cache(answer))


class Columns:
    """n rows of columns; base of dataclasses whose fields are columns or other `Columns` of the same rows."""

    __slots__ = ()

    @classmethod
    def blank(cls, rows: int, *, fill: Mapping[str, int] = _NONE, dims: Mapping[str, int] = _NONE) -> Self:
        """`rows` rows in which every entry is unknown.

        fill: by column name, a value in place of `Column.fill`
        dims: by the name of a `Dim`, a length in place of its usual one
        """
        arrays: dict[str, Any] = {}
        for name, column in declared(cls).items():
            if isinstance(column, Column):
                arrays[name] = column.blank(rows, fill.get(name, column.fill), dims)
            else:
                arrays[name] = column.blank(rows, fill=fill, dims=dims)
        return cls(**arrays)

    @classmethod
    def concat(cls, parts: Sequence[Self]) -> Self:
        """The rows of all parts, one part after another. parts: at least one"""
        arrays: dict[str, Any] = {}
        for name, column in declared(cls).items():
            if isinstance(column, Column):
                arrays[name] = column.concat(parts, name)
            else:
                arrays[name] = column.concat([getattr(part, name) for part in parts])
        return cls(**arrays)

    def take(self, which: Which) -> Self:
        """The selected rows, in the order of `which`. A slice shares memory with this set where possible."""
        arrays: dict[str, Any] = {}
        for name, column in declared(type(self)).items():
            if isinstance(column, Column):
                arrays[name] = column.take(self, name, which)
            else:
                arrays[name] = getattr(self, name).take(which)
        return type(self)(**arrays)

    def for_kernels(self) -> Self:
        """The same rows in contiguous, writable arrays.

        Numba compiles a kernel once more for arrays that are read-only or not contiguous.
        """
        arrays: dict[str, Any] = {}
        for name in declared(type(self)):
            array = getattr(self, name)
            if isinstance(array, Columns):
                arrays[name] = array.for_kernels()
            else:
                arrays[name] = array if array.flags.carray else np.require(array, requirements=("C", "W"))
        return type(self)(**arrays)

    def slice(self, low: int, high: int) -> Self:
        """Rows low to high (exclusive), which share memory with this set where possible."""
        return self.take(slice(low, high))

    def put(self, which: Which, rows: Columns) -> None:
        """Overwrite the selected rows with `rows`. Replaced entries of a pool stay in it until `take`.

        raises: TypeError if a column is packed
        """
        # Pools come last: `Places.put` needs the length that the pool has before its own `put`.
        for name, column in sorted(
            declared(type(self)).items(), key=lambda item: isinstance(item[1], Pooled)
        ):
            if isinstance(column, Column):
                column.put(self, name, which, rows)
            else:
                getattr(self, name).put(which, getattr(rows, name))

    def check(self) -> None:
        """Compare all columns with their declarations.

        raises: ValueError, which names the column that contradicts its declaration
        """
        self._check(len(self))

    def _check(self, rows: int) -> None:
        # Starts come first: the check of a packed column uses them.
        for name, column in sorted(
            declared(type(self)).items(), key=lambda item: type(item[1]) is not Starts
        ):
            if isinstance(column, Column):
                fault = column.fault(self, name, rows)
                if fault is not None:
                    raise ValueError(fault)
            else:
                getattr(self, name)._check(rows)

    def __len__(self) -> int:
        name, is_starts = _counting_field(type(self))
        return len(getattr(self, name)) - is_starts


@once_a_kind
def _counting_field(kind: type[Columns]) -> tuple[str, bool]:
    """The first field whose length gives the number of rows, and whether that field is a `Starts` column."""
    for name, column in declared(kind).items():
        if not isinstance(column, Packed | Pooled):
            return name, isinstance(column, Starts)
    raise TypeError(f"{kind.__name__} has no column with one entry a row")


@once_a_kind
def declared(kind: type[Columns]) -> Mapping[str, Column | type[Columns]]:
    """The declaration of each field of a columns class, by field name, in the order of declaration.

    raises: TypeError for a field that is neither a column nor a set of columns
    """
    hints = get_type_hints(kind, include_extras=True)
    columns: dict[str, Column | type[Columns]] = {}
    for field in fields(cast("Any", kind)):
        hint = hints[field.name]
        column = get_args(hint)[1] if get_origin(hint) is Annotated else hint
        is_set = isinstance(column, type) and issubclass(column, Columns)
        if not is_set and not isinstance(column, Column):
            raise TypeError(f"{kind.__name__}.{field.name} has no column as its annotation")
        columns[field.name] = column
    return columns


def starts_of(lengths: Array) -> NDArray[np.int64]:
    """int64[n + 1]: where each row begins if rows of these lengths stand end to end; last: where they end."""
    starts = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=starts[1:])
    return starts
