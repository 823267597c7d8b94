"""Rows of JSON of which each item of a list is a message (`--text-field data[*].text`).

What the reader of messages gets for an item is the row with this item alone in the list, and with no other
members than those that the settings name.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import cast

import numpy as np
from numpy.typing import NDArray

from twinsieve.pipeline.basics.dead_letter_reasons import UnreadableError
from twinsieve.pipeline.files.format import RowChunk
from twinsieve.pipeline.files.formats.json_ends import SPACE, OpenDocument, after, without_comma
from twinsieve.pipeline.files.rows import SHOWN_BYTES, Rows
from twinsieve.pipeline.messages.decode import Unreadable, decode_json
from twinsieve.pipeline.messages.paths import Path, field_at
from twinsieve.pipeline.messages.spelling import decoded, to_json, without_escapes

_MOST_TIMES = 16
"""The messages of a row may have this many times `input.max_bytes` together. Each has the fields of the row
that the settings name, so a row of many items with a long id would need as much as their product."""
_MESSAGE_BYTES = 256
"""Each message counts as this many bytes more: it takes more memory than its bytes, so a row of 2,000,000
numbers would need gigabytes. A row that `input.max_bytes` lets in comes to the limit of all messages only if
its items have less than some 20 bytes each."""

_Span = tuple[int, int]


@dataclass(slots=True, kw_only=True)
class ElementRows(Rows):
    """Messages of some rows. A row without items in the list is one message, as it is.

    parents: the rows; of: index of the row of each message
    items: index of each message in the list, None for a row without items
    spans: where the item lies in the row, (0, 0) for a row without items
    """

    parents: Rows
    of: list[int] = field(default_factory=list)
    items: list[int | None] = field(default_factory=list)
    spans: list[_Span] = field(default_factory=list)

    def lines(self) -> NDArray[np.int64]:
        return self.parents.lines()[self.of]

    def elements(self) -> Sequence[int | None]:
        return self.items

    def raw(self, row: int) -> tuple[bytes, int]:
        content = self.rows[row]
        if content is None:
            return self.heads[row]
        start, end = self.spans[row]
        if self.items[row] is not None:
            content = cast(bytes, self.parents.rows[self.of[row]])[start:end]
        return content, len(content)

    def advice(self, bad: Unreadable) -> str | None:
        if self.items[bad.row] is not None:
            return None
        return self.parents.advice(bad._replace(row=self.of[bad.row]))

    def written(self, numbers: list[int]) -> tuple[Rows, list[int]]:
        """Rows in which only the messages with these indices (ascending) are left, and the indices of those
        rows that have some."""
        rows = list(self.parents.rows)
        kept = []
        for parent, group in groupby(numbers, self.of.__getitem__):
            kept.append(parent)
            mine = list(group)
            if self.items[mine[0]] is not None:
                rows[parent] = self._only(parent, mine)
        return replace(self.parents, rows=rows), kept

    def _only(self, parent: int, messages: list[int]) -> bytes:
        """The row with these of its items alone, each behind the comma and blanks that stood before it."""
        row = cast(bytes, self.parents.rows[parent])
        first = messages[0] - cast(int, self.items[messages[0]])
        last = first
        while last + 1 < len(self.of) and self.of[last + 1] == parent:
            last += 1
        if len(messages) == last - first + 1:
            return row
        pieces = [row[: self.spans[first][0]]]
        for number, message in enumerate(messages):
            start, end = self.spans[message]
            pieces.append(row[self.spans[message - 1][1] if number else start : end])
        return b"".join([*pieces, row[self.spans[last][1] :]])


def elements_of(rows: Rows, each: Path, roots: set[str], max_bytes: int) -> ElementRows:
    """The messages of rows.

    each: path of the list; roots: names of the top-level members that messages need
    """
    payloads: list[bytes | None] = []
    cut = ElementRows(payloads, rows.line, terminated=rows.terminated, parents=rows)
    for number, row in enumerate(rows.rows):
        found = None if row is None else _found(row, each, roots)
        if row is None:
            cut.heads[len(payloads)] = rows.heads[number]
        elif found is not None and (size := found.size) > _MOST_TIMES * max_bytes:
            cut.heads[len(payloads)] = row[:SHOWN_BYTES], size
        elif found is not None:
            payloads += [found.head + row[start:end] + found.tail for start, end in found.spans]
            cut.of += [number] * len(found.spans)
            cut.items += range(len(found.spans))
            cut.spans += found.spans
            continue
        payloads.append(None if len(payloads) in cut.heads else row)
        cut.of.append(number)
        cut.items.append(None)
        cut.spans.append((0, 0))
    return cut


def as_written(chunk: RowChunk, numbers: list[int]) -> tuple[RowChunk, list[int]]:
    """A chunk and indices as a writer of rows takes them; messages that are items of lists as their rows."""
    if not isinstance(chunk.rows, ElementRows):
        return chunk, numbers
    rows, kept = chunk.rows.written(numbers)
    return replace(chunk, rows=rows), kept


@dataclass(frozen=True, slots=True)
class _Found:
    """The items of a list in a row. head, tail: what each message has before and behind its item"""

    spans: list[_Span]
    head: bytes
    tail: bytes

    @property
    def size(self) -> int:
        """Bytes of all messages together, as `_MESSAGE_BYTES` counts them."""
        around = len(self.head) + len(self.tail) + _MESSAGE_BYTES
        return sum(end - start + around for start, end in self.spans)


def _found(row: bytes, each: Path, roots: set[str]) -> _Found | None:
    """The items of the list at this path; None if there are none, or if the row is no JSON."""
    try:
        items = field_at(decode_json(without_comma(row)), each)
    except UnreadableError:
        return None
    if not isinstance(items, list) or not items:
        return None
    plain = without_escapes(row)
    members = {name: span for name, *span in _members(row, plain, after(SPACE, plain, 0))}
    root, *rest = each
    start, end = first, last = members[root]
    for part in rest:
        # If a name occurs twice, the last one counts.
        start, end = {name: span for name, *span in _members(row, plain, start)}[part]
    others = [
        to_json(name) + b":" + row[slice(*members[name])] + b","
        for name in sorted(roots - {str(root)})
        if name in members
    ]
    head = b"{" + b"".join(others) + to_json(root) + b":" + row[first : start + 1]
    spans = [(begin, stop) for _, begin, stop in _members(row, plain, start)]
    return _Found(spans, head, row[end - 1 : last] + b"}")


def _members(row: bytes, plain: bytes, start: int) -> Iterator[tuple[str | int, int, int]]:
    """Name or index, start and end of each value in the object or list that begins at `start` of valid JSON.

    plain: the row without escapes
    """
    is_object = plain.startswith(b"{", start)
    position, index = after(SPACE, plain, start + 1), 0
    while plain[position] not in b"]}":
        name: str | int = index
        if is_object:
            end = plain.index(b'"', position + 1) + 1
            name = str(decoded(row[position:end]))
            position = after(SPACE, plain, after(SPACE, plain, end) + 1)
        end = OpenDocument(plain[position]).end(plain, position + 1)
        yield name, position, end
        position, index = after(SPACE, plain, end), index + 1
        if plain.startswith(b",", position):
            position = after(SPACE, plain, position + 1)
