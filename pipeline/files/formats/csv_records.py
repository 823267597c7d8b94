"""Cuts the lines of an input into CSV records: quotes may enclose fields with line breaks, or mean nothing.

People write quotes without closing them. If such a quote swallowed all lines up to the next one, their rows
would be lost. So a quoted field must close where a field can end, and within `FIELD_BYTES` if it holds line
breaks. If it does not, its record ends with the line in which the field begins, and reading goes on behind
that line.

A line is searched for quotes at most twice. While a field is open, the lines behind its first one are
searched for the quote that closes it, and all quotes before that one are in pairs. If the field turns out to
be no field, these lines are searched again, as lines of their own. Then only the last one of them can open a
field again, because a pair of quotes does not open one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from twinsieve.pipeline.files.rows import GrowingRows, OpenRow, Rows, noting
from twinsieve.stages.rows.lines import Lines

FIELD_BYTES = 1 << 20
"""A quoted field with line breaks must close within this many bytes of the quote that opens it."""
_QUOTE = b'"'
_RETURN = b"\r"


@dataclass(slots=True)
class Quoting:
    """What quotes mean in one input.

    enclose: whether a quote at the beginning of a field encloses that field; None: the first field that
        begins with a quote will tell. They do if that field closes directly before a delimiter or a line end,
        within FIELD_BYTES
    line: the line in which that field begins, 0 before it or if nothing had to be told
    """

    enclose: bool | None = True
    line: int = 0


def join_records(
    batches: Iterator[Rows], max_bytes: int, delimiter: bytes = b",", quoting: Quoting | None = None
) -> Iterator[Rows]:
    """The CSV records in these lines: a line that ends inside quotes continues in the next line.

    A quote counts as opening only at the beginning of a field: `5" pipe` is an ordinary field. A record over
    the limit is too large. All that depends on the bytes of the input, not on its batches.

    quoting: what quotes mean; it is told here, if it is not known
    """
    records = _Records(max_bytes, delimiter, Quoting() if quoting is None else quoting)
    for batch in noting(batches, lambda: records.unfinished):
        yield from records.take(batch)
    yield from records.end()


class _Records:
    """Joins lines to records.

    A record is open while a quoted field in it is. Then `_record` has its lines up to the one in which that
    field begins, and `_after` the lines behind that one, which may turn out to be no part of it.
    """

    def __init__(self, max_bytes: int, delimiter: bytes, quoting: Quoting) -> None:
        self._max_bytes = max_bytes
        self._delimiter = delimiter
        self._opening = delimiter + _QUOTE
        self._quoting = quoting
        self._record = OpenRow(max_bytes)
        self._lines = 0
        self._after: list[bytes] = []
        self._field_bytes = 0
        self._done: list[Rows] = []
        self._start = 1
        self._terminated = True
        self._begin_rows()

    @property
    def unfinished(self) -> int:
        """Bytes of the open record, with the newline of its last line."""
        if not self._lines:
            return 0
        return self._record.size + 1 + sum(len(line) + 1 for line in self._after)

    def take(self, batch: Rows) -> list[Rows]:
        """The records that end in these lines."""
        self._terminated = batch.terminated
        if not self._lines and self._are_records(batch):
            rows = replace(batch, line=self._start, quoted=self._quoting.enclose is True)
            self._start += len(batch)
            self._begin_rows()
            return [rows]
        for number, line in enumerate(batch.rows):
            if line is None:
                self._take_large(*batch.heads[number])
            else:
                self._take_line(line)
        return self._taken()

    def end(self) -> list[Rows]:
        """The records that are left at the end of the input."""
        while self._lines:
            self._take_again(self._give_up())
        return self._taken()

    def _are_records(self, batch: Rows) -> bool:
        """Whether each line is a record, because no field begins with a quote or quotes mean nothing."""
        if self._quoting.enclose is False:
            return True
        # Without this path, inputs with very many blank lines would be slow.
        if not isinstance(batch.rows, Lines):
            return False
        piece = batch.rows.piece()
        return not (piece.startswith(_QUOTE) or b'\n"' in piece or self._opening in piece)

    def _begin_rows(self) -> None:
        self._spans: list[int] = []
        self._rows = GrowingRows([], self._start, self._spans, quoted=self._quoting.enclose is True)

    def _end_rows(self) -> None:
        if self._spans:
            self._done.append(self._rows)
            self._start += sum(self._spans)
        self._begin_rows()

    def _taken(self) -> list[Rows]:
        if self._spans:
            self._rows.terminated = self._terminated or self._lines > 0
        self._end_rows()
        done, self._done = self._done, []
        return done

    def _tell(self, enclose: bool) -> None:
        """Note what quotes mean from the line on that is to be taken, or that begins the open record."""
        if self._quoting.enclose is None:
            self._end_rows()
            self._quoting.enclose, self._quoting.line = enclose, self._start
            self._begin_rows()

    def _add(self, line: bytes, size: int) -> None:
        self._rows.add(line, size, self._max_bytes)
        self._spans.append(1)

    def _take_large(self, head: bytes, size: int) -> None:
        """Take a line over the limit. What is quoted in it is not known, so it is a record of its own."""
        while self._lines:
            self._take_again(self._give_up())
        self._add(head, size)

    def _take_again(self, lines: list[bytes]) -> None:
        for line in lines:
            self._take_line(line)

    def _take_line(self, line: bytes) -> None:
        if self._lines:
            self._continue(line)
            return
        if self._quoting.enclose is None:
            self._look(line)
        place = -1 if self._quoting.enclose is False or _QUOTE not in line else self._open_field(line, 0)
        if place < 0:
            self._add(line, len(line))
            return
        self._record.add(line)
        self._lines, self._field_bytes = 1, len(line) - place

    def _look(self, line: bytes) -> None:
        """Tell by this line what quotes mean, if it has a field that begins with a quote, and closes it."""
        place = 0 if line.startswith(_QUOTE) else line.find(self._opening) + len(self._delimiter)
        if not line.startswith(_QUOTE, place):
            return
        end = closing_quote(line, place + 1)
        if end >= 0:
            self._tell(end - place <= FIELD_BYTES and self._ends_field(line, end + 1))

    def _continue(self, line: bytes) -> None:
        """Take a line while a field is open."""
        end = closing_quote(line, 0)
        size = self._field_bytes + 1 + (len(line) if end < 0 else end)
        if size > FIELD_BYTES or (end >= 0 and not self._ends_field(line, end + 1)):
            self._take_again([*self._give_up(), line])
            return
        if end < 0:
            self._after.append(line)
            self._field_bytes = size
            return
        self._tell(True)
        for part in (*self._after, line):
            self._record.add(b"\n")
            self._record.add(part)
        self._lines += len(self._after) + 1
        self._after = []
        place = -1
        if line.startswith(self._delimiter, end + 1):
            place = self._open_field(line, end + 1 + len(self._delimiter))
        self._field_bytes = len(line) - place
        if place < 0:
            self._end_record()

    def _end_record(self) -> None:
        self._record.end(self._rows)
        self._spans.append(self._lines)
        self._lines = 0

    def _give_up(self) -> list[bytes]:
        """End the open record with the line in which its open field begins. returns: the lines behind it"""
        self._tell(False)
        self._end_record()
        after, self._after = self._after, []
        return after

    def _open_field(self, line: bytes, place: int) -> int:
        """Where the quote stands that opens a field which is open at the end of the line, or -1.

        place: where a field begins. A quoted field that is followed by text makes the line no record, so none
        is open behind it.
        """
        while True:
            if not line.startswith(_QUOTE, place):
                place = line.find(self._opening, place)
                if place < 0:
                    return -1
                place += len(self._delimiter)
            end = closing_quote(line, place + 1)
            if end < 0:
                return place
            if not line.startswith(self._delimiter, end + 1):
                return -1
            place = end + 1 + len(self._delimiter)

    def _ends_field(self, line: bytes, place: int) -> bool:
        """Whether a field can end before this place: a delimiter stands there, or the line ends."""
        return line.startswith(self._delimiter, place) or line[place:] in (b"", _RETURN)


def closing_quote(line: bytes, place: int) -> int:
    """Where the first quote from this place on stands that is not doubled; -1 if there is none.

    >>> closing_quote(b'a ""b"" c", d', 0), closing_quote(b'""', 0)
    (9, -1)
    """
    while True:
        place = line.find(_QUOTE, place)
        if place < 0 or not line.startswith(_QUOTE, place + 1):
            return place
        place += 2
