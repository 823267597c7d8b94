"""The documents of some rows, of which a reader wants a few values: decoded whole, or read where they lie."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np
import orjson

from twinsieve.pipeline.messages.paths import MISSING, Path, field_at
from twinsieve.pipeline.messages.verdict_values import pick
from twinsieve.stages.rows.byte_column import ByteColumn
from twinsieve.stages.rows.lines import Lines
from twinsieve.stages.rows.members import ESCAPED, PLAIN, find_members, strings_of
from twinsieve.stages.rows.members import MISSING as _NO_MEMBER
from twinsieve.stages.rows.strings import Strings

WORTH_SCANNING = 32
"""Rows from which on scanning them together takes less time than decoding each."""


def listed(values: list[Any] | Strings) -> list[Any]:
    """The values as a list."""
    return values.listed() if isinstance(values, Strings) else values


class Documents(Protocol):
    """The documents of n rows; None for a row that is unreadable."""

    def __len__(self) -> int: ...

    def __getitem__(self, row: int) -> Any:
        """The decoded document of a row."""

    def values(self, path: Path) -> list[Any] | Strings:
        """The value at a path in each row, MISSING where there is none."""

    def only(self, rows: Sequence[int]) -> Documents:
        """The documents of these rows (ascending)."""


class Decoded:
    """Documents that were decoded whole."""

    def __init__(self, documents: Sequence[Any]) -> None:
        self._documents = documents

    def __len__(self) -> int:
        return len(self._documents)

    def __getitem__(self, row: int) -> Any:
        return self._documents[row]

    def values(self, path: Path) -> list[Any]:
        if len(path) == 1:
            key = path[0]
            try:
                return [document.get(key, MISSING) for document in self._documents]
            except AttributeError:
                pass
        return [field_at(document, path) for document in self._documents]

    def only(self, rows: Sequence[int]) -> Decoded:
        return Decoded(pick(self._documents, rows))


class Scanned:
    """Rows of JSON, of which only the members with some names are found.

    rows: the JSON of each row, None for an unreadable row
    names: names of the members that `values` may be asked for
    decode: returns the documents of the rows with these indices, None for an unreadable one; it is called
        for rows that the scan cannot read
    """

    def __init__(
        self,
        rows: Sequence[bytes | None],
        names: Sequence[str],
        decode: Callable[[Sequence[int]], list[Any]],
    ) -> None:
        self._rows = rows
        self._names = list(dict.fromkeys(names))
        self._content: bytes | memoryview
        if isinstance(rows, Lines):
            # A newline behind a document changes nothing.
            self._content, sizes = rows.piece(), rows.sizes
        elif isinstance(rows, ByteColumn):
            whole = rows.packed()
            self._content, sizes = whole.content.data, np.maximum(whole.sizes, 0)
        else:
            filled = [row or b"" for row in rows]
            self._content = b"".join(filled)
            sizes = np.fromiter(map(len, filled), np.int64, len(filled))
        self._found = find_members(self._content, sizes, self._names)
        left = np.flatnonzero(self._found.left).tolist()
        self._others: dict[int, Any] = dict(zip(left, decode(left), strict=True)) if left else {}

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, row: int) -> Any:
        if row in self._others:
            return self._others[row]
        return orjson.loads(self._rows[row] or b"")

    def values(self, path: Path) -> list[Any] | Strings:
        name, *rest = path
        column = self._names.index(str(name))
        kinds = self._found.kinds[:, column]
        # No string has the character NUL: the scan leaves such rows to the decoder.
        strings = Strings(strings_of(self._content, self._found, column), len(self))
        others = np.flatnonzero(((kinds != PLAIN) & (kinds != ESCAPED)) | self._found.left).tolist()
        if not others and not rest:
            return strings
        values: list[Any] = strings.listed()
        for row in others:
            values[row] = self._value(row, column, path)
        return [field_at(value, tuple(rest)) for value in values] if rest else values

    def _value(self, row: int, column: int, path: Path) -> Any:
        """The member of a row, if it is no string."""
        found = self._found
        if row in self._others:
            return field_at(self._others[row], path[:1])
        if found.kinds[row, column] == _NO_MEMBER:
            return MISSING
        return orjson.loads(self._content[found.starts[row, column] : found.ends[row, column]])

    def only(self, rows: Sequence[int]) -> Documents:
        return self if len(rows) == len(self) else _Some(self, rows)


class _Some:
    """Some of the rows of other documents."""

    def __init__(self, documents: Documents, rows: Sequence[int]) -> None:
        self._documents = documents
        self._chosen = rows

    def __len__(self) -> int:
        return len(self._chosen)

    def __getitem__(self, row: int) -> Any:
        return self._documents[self._chosen[row]]

    def values(self, path: Path) -> list[Any]:
        values = self._documents.values(path)
        return [values[row] for row in self._chosen]

    def only(self, rows: Sequence[int]) -> Documents:
        return _Some(self._documents, pick(self._chosen, rows))


def objects_of(documents: Documents) -> Iterator[dict[str, Any]]:
    """The documents that are objects."""
    return (each for row in range(len(documents)) if isinstance(each := documents[row], dict))
