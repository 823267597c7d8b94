"""Encodes and decodes sets of columns: the declared columns in their order, in sections (docs/WIRE.md)."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any, NamedTuple, NoReturn, TypeVar, cast

import lz4.block
import numpy as np
from numpy.typing import DTypeLike

from twinsieve.stages.columns import (
    Array,
    Column,
    Columns,
    Dim,
    Packed,
    Pooled,
    Sent,
    Starts,
    declared,
    once_a_kind,
    starts_of,
)
from twinsieve.stages.errors import StateError

MAX_BYTES = 1 << 28
"""A section that claims to be larger counts as damaged; no memory is allocated for it."""

_MOST_LZ4 = 255
"""LZ4 makes no more of a byte. A section that claims more counts as damaged too."""
_SECTION = struct.Struct("<BII")
_PLAIN_SENT = Sent.PLAIN
"""Kept in a variable for speed: Python 3.11 needs microseconds to look up an enum member, and every block
needs this one once per column."""
_PLAIN = 0
_LZ4 = 1
_NARROW = 2
"""Bytes of each packed value if all values of the column fit; otherwise the values keep the size of their
dtype."""
_ADVICE = "only twinsieve may write to this topic; delete the app's internal topics or start a new app"

Set = TypeVar("Set", bound=Columns)


class _Field(NamedTuple):
    """A column of a set, or of a set inside it. name: path to the column, as in `fingerprints.digests`"""

    name: str
    column: Column

    def beside(self, name: str) -> str:
        """Path to another column of the same set."""
        within, dot, _ = self.name.rpartition(".")
        return within + dot + name


@once_a_kind
def _fields(kind: type[Columns]) -> tuple[_Field, ...]:
    """The columns that are sent, in the order of encoding: first those with one entry per row, then packed
    values, then pools."""
    fields = [field for field in _walk(kind, "") if field.column.sent is not Sent.NOT]
    return tuple(
        sorted(
            fields, key=lambda field: isinstance(field.column, Packed) + 2 * isinstance(field.column, Pooled)
        )
    )


def _walk(kind: type[Columns], prefix: str) -> Iterator[_Field]:
    for name, column in declared(kind).items():
        if isinstance(column, Column):
            yield _Field(prefix + name, column)
        else:
            yield from _walk(column, f"{prefix}{name}.")


def _of_sort(kind: type[Columns], sort: type[Column]) -> list[_Field]:
    return [field for field in _fields(kind) if isinstance(field.column, sort)]


@once_a_kind
def _compressed(kind: type[Columns]) -> list[_Field]:
    return [field for field in _fields(kind) if field.column.sent is not _PLAIN_SENT]


@once_a_kind
def _plain(kind: type[Columns]) -> list[_Field]:
    return [field for field in _fields(kind) if field.column.sent is _PLAIN_SENT]


@once_a_kind
def _dims(kind: type[Columns]) -> dict[str, tuple[str, int, str]]:
    """The lengths that depend on settings. By name of such a length: a column that has it, the axis, and the
    `struct` code."""
    return {
        dim.name: (field.name, axis, dim.code)
        for field in _fields(kind)
        for axis, dim in enumerate(field.column.shape, 1)
        if isinstance(dim, Dim)
    }


@once_a_kind
def _shape(kind: type[Columns]) -> struct.Struct:
    """Format of a shape: number of rows, number of values of each packed column, number of entries of each
    pool, the lengths of `_dims`, bytes per value of each packed column."""
    packed, pools = _of_sort(kind, Packed), _of_sort(kind, Pooled)
    codes = "".join(code for _, _, code in _dims(kind).values())
    return struct.Struct("<I" + "I" * (len(packed) + len(pools)) + codes + "B" * len(packed))


def arrays_of(rows: Columns, sent: Sent = Sent.COMPRESSED) -> list[Array]:
    """The columns of one section, as they are encoded. sent: which section"""
    arrays = []
    for field in (_plain if sent is _PLAIN_SENT else _compressed)(type(rows)):
        array = attrgetter(field.name)(rows)
        if isinstance(field.column, Starts):
            array = _sent_lengths(rows, field.name).astype(field.column.dtype)
        elif isinstance(field.column, Packed):
            array = _values(rows, field)
        arrays.append(array)
    return arrays


@once_a_kind
def _starts(kind: type[Columns]) -> dict[str, Starts]:
    return {field.name: field.column for field in _fields(kind) if isinstance(field.column, Starts)}


def _sent_lengths(rows: Columns, starts: str) -> Array:
    """Length of each row of a packed column, cut to the part that is sent. starts: path to the column of row
    starts"""
    lengths: Array = np.diff(attrgetter(starts)(rows))
    limit = _starts(type(rows))[starts].max_sent
    return lengths if limit is None else np.minimum(lengths, limit)


def _values(rows: Columns, field: _Field) -> Array:
    """Values of a packed column, each row cut to the part that is sent, in as few bytes as the values
    need."""
    column = cast("Packed", field.column)
    by = field.beside(column.by)
    starts: Array = attrgetter(by)(rows)
    values: Array = attrgetter(field.name)(rows)
    lengths, sent = np.diff(starts), _sent_lengths(rows, by)
    values = values[: int(starts[-1])]
    if len(lengths) and int(lengths.max()) > int(sent.max()):
        within = np.arange(len(values)) - np.repeat(starts[:-1], lengths)
        values = values[within < np.repeat(sent, lengths)]
    width = np.dtype(column.dtype).itemsize
    fits = not len(values) or int(values.max()) < 1 << 8 * _NARROW
    return values.astype(f"<u{_NARROW}") if fits and width > _NARROW else values


def row_bytes(rows: Columns) -> Array:
    """Upper limit for the encoded bytes of each row before compression, as int64[n]."""
    fixed = 0
    total = np.zeros(len(rows), np.int64)
    for field in _fields(type(rows)):
        column, array = field.column, attrgetter(field.name)(rows)
        entry = array.itemsize * math.prod(array.shape[1:])
        if isinstance(column, Packed):
            total += entry * _sent_lengths(rows, field.beside(column.by))
        elif isinstance(column, Pooled):
            total += entry * (attrgetter(field.beside(column.by))(rows) >= 0)
        else:
            fixed += entry
    return total + fixed


def encode_columns(rows: Columns) -> bytes:
    """The set as bytes: its shape, the compressed section, the plain section."""
    kind = type(rows)
    compressed, plain = arrays_of(rows), arrays_of(rows, Sent.PLAIN)
    in_order = _compressed(kind)
    values = [
        array for field, array in zip(in_order, compressed, strict=True) if isinstance(field.column, Packed)
    ]
    shape = _shape(kind).pack(
        len(rows),
        *map(len, values),
        *(len(attrgetter(field.name)(rows)) for field in _of_sort(kind, Pooled)),
        *(attrgetter(name)(rows).shape[axis] for name, axis, _ in _dims(kind).values()),
        *(array.itemsize for array in values),
    )
    return b"".join((shape, pack_section(compressed, compress=True), pack_section(plain, compress=False)))


def decode_columns(kind: type[Set], content: memoryview, position: int, where: str) -> tuple[Set, int]:
    """The rows that begin at `position`, and the position after them. raises: StateError if they are
    damaged"""
    shape = _shape(kind)
    if len(content) < position + shape.size:
        raise StateError(f"{where}: ends early; {_ADVICE}")
    numbers = iter(shape.unpack_from(content, position))
    lengths = {"": next(numbers)}
    packed, pools = _of_sort(kind, Packed), _of_sort(kind, Pooled)
    lengths |= {field.name: next(numbers) for field in [*packed, *pools]}
    dims = {name: next(numbers) for name in _dims(kind)}
    widths = {field.name: next(numbers) for field in packed}
    compressed = WireSection(content, position + shape.size, where)
    plain = WireSection(content, compressed.end, where)
    arrays: dict[str, Array] = {}
    for field in _fields(kind):
        column, name = field.column, field.name
        reader = plain if column.sent is _PLAIN_SENT else compressed
        if isinstance(column, Starts):
            arrays[name] = starts_of(reader.take(column.dtype, lengths[""]))
        elif isinstance(column, Packed):
            width = widths[name] if widths[name] in {1, 2, 4, 8} else compressed.contradiction()
            values = reader.take(f"<u{width}", lengths[name])
            arrays[name] = values.astype(column.dtype)
        else:
            count = lengths[name] if isinstance(column, Pooled) else lengths[""]
            arrays[name] = reader.take(column.dtype, count, *column.sizes(dims))
    compressed.finish()
    plain.finish()
    rows = _built(kind, arrays, lengths[""], dims)
    # Check only packed columns and pools: all others were read with the right shape.
    for field in (*packed, *pools):
        owner, _, name = field.name.rpartition(".")
        if field.column.fault(attrgetter(owner)(rows) if owner else rows, name, lengths[""]) is not None:
            compressed.contradiction()
    return rows, plain.end


def _built(
    kind: type[Set], arrays: Mapping[str, Array], count: int, dims: Mapping[str, int], prefix: str = ""
) -> Set:
    """A set of these columns; columns that were not sent contain their fill value."""
    columns: dict[str, Any] = {}
    for name, column in declared(kind).items():
        if not isinstance(column, Column):
            columns[name] = _built(column, arrays, count, dims, f"{prefix}{name}.")
        elif prefix + name in arrays:
            columns[name] = arrays[prefix + name]
        elif isinstance(column, Packed):
            columns[name] = np.full(int(columns[column.by][-1]), column.fill, column.dtype)
        else:
            columns[name] = column.blank(count, column.fill, dims)
    return kind(**columns)


def pack_section(arrays: Sequence[Array], *, compress: bool) -> bytes:
    """A section as bytes: a byte that says whether it is LZ4, its lengths packed and unpacked, and the arrays
    one after the other."""
    plain = b"".join(np.ascontiguousarray(array).tobytes() for array in arrays if array.size)
    if compress:
        packed: bytes = lz4.block.compress(plain, store_size=False)
        if len(packed) < len(plain):
            return _SECTION.pack(_LZ4, len(packed), len(plain)) + packed
    return _SECTION.pack(_PLAIN, len(plain), len(plain)) + plain


class WireSection:
    """Reads the arrays of a section; checks every length against the bytes that are there.

    end: position after the section in the content
    """

    def __init__(self, content: memoryview, start: int, where: str) -> None:
        if len(content) < start + _SECTION.size:
            raise StateError(f"{where}: ends early; {_ADVICE}")
        method, packed, plain = _SECTION.unpack_from(content, start)
        self.end = start + _SECTION.size + packed
        body = content[start + _SECTION.size : self.end]
        if len(body) != packed or method not in (_PLAIN, _LZ4) or plain > min(MAX_BYTES, _MOST_LZ4 * packed):
            raise StateError(f"{where}: a section has a wrong length or compression; {_ADVICE}")
        self._where = where
        self._position = 0
        try:
            self._plain = memoryview(
                lz4.block.decompress(body, uncompressed_size=plain) if method == _LZ4 else body
            )
        except lz4.block.LZ4BlockError as error:
            raise StateError(f"{where}: cannot be decompressed ({error}); {_ADVICE}") from error
        if len(self._plain) != plain:
            raise StateError(f"{where}: a section has a wrong length or compression; {_ADVICE}")

    def take(self, dtype: DTypeLike, *shape: int) -> Array:
        """The next array, copied to memory that is aligned and writable, as kernels expect."""
        kind = np.dtype(dtype)
        count = math.prod(shape)
        size = count * kind.itemsize
        if self._position + size > len(self._plain):
            raise StateError(f"{self._where}: a column ends early; {_ADVICE}")
        # Read bools as bytes first: a byte that is neither 0 nor 1 is no valid bool.
        values = np.frombuffer(self._plain, np.uint8 if kind == np.bool_ else kind, count, self._position)
        self._position += size
        return values.astype(kind).reshape(shape)

    def contradiction(self) -> NoReturn:
        """Refuse columns that cannot belong together. raises: StateError, always"""
        raise StateError(f"{self._where}: its columns contradict each other; {_ADVICE}")

    def finish(self) -> None:
        """Check that all bytes were read. raises: StateError if bytes are left over"""
        if self._position != len(self._plain):
            raise StateError(f"{self._where}: {len(self._plain) - self._position} bytes too many; {_ADVICE}")
