"""Cuts the lines of an input into CSV records: quotes may enclose fields with line breaks, or mean nothing.

People write quotes without closing them. If such a quote swallowed all lines up to the next one, their rows
would be lost. So a quoted field must close where a field can end, and within `FIELD_BYTES` if it holds line
breaks. If it does not, its record ends with the line in which the field begins, and reading goes on behind
that line.

A line is searched for quotes at most twice. While a field is open, the lines behind its first one are
searched for the quote that closes it, and all quotes before that one are in pairs. If the field turns out to
be no field, these lines are searched again, as lines of their own. Then only the last one of them can open a
field again, because a pair of quotes does not open one.

With escapes, a line that ends with a backslash continues in the next line too. Such a record ends with the
line in which the field comes to FIELD_BYTES, so no line is searched again for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from twinsieve.pipeline.files.formats.csv_fields import ESCAPE_OR_QUOTE, ends_escaped
from twinsieve.pipeline.files.rows import GrowingRows, OpenRow, Rows, noting
from twinsieve.stages.rows.lines import Lines

FIELD_BYTES = 1 << 20
"""A quoted field with line breaks must close within this many bytes of the quote that opens it."""
_QUOTE = b'"'
_RETURN = b"\r"
_BACKSLASH = b"\\"
_NONE, _BROKEN = -1, -2
"""Places of no field, and of a field that makes its line no record."""
_ESCAPE_OR_QUOTE = re.compile(ESCAPE_OR_QUOTE.encode(), re.DOTALL)


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
    batches: Iterator[Rows],
    max_bytes: int,
    delimiter: bytes = b",",
    quoting: Quoting | None = None,
    *,
    escaped: bool = False,
) -> Iterator[Rows]:
    """The CSV records in these lines: a line that ends inside quotes continues in the next line.

    A quote counts as opening only at the beginning of a field: `5" pipe` is an ordinary field. A record over
    the limit is too large. All that depends on the bytes of the input, not on its batches.

    quoting: what quotes mean; it is told here, if it is not known
    escaped: whether a backslash escapes what stands behind it: a line end too
    """
    records = _Records(max_bytes, delimiter, Quoting() if quoting is None else quoting, escaped)
    for batch in noting(batches, lambda: records.unfinished):
        yield from records.take(batch)
    yield from records.end()


class _Records:
    """Joins lines to records.

    A record is open while a quoted field in it is. Then `_record` has its lines up to the one in which that
    field begins, and `_after` the lines behind that one, which may turn out to be no part of it. It is open
    too behind an escaped line end: then `_in_quotes` is False, and `_record` has all its lines.
    """

    def __init__(self, max_bytes: int, delimiter: bytes, quoting: Quoting, escaped: bool) -> None:
        self._max_bytes = max_bytes
        self._delimiter = delimiter
        self._opening = delimiter + _QUOTE
        self._quoting = quoting
        self._escaped = escaped
        self._bare_end = re.compile(rb"\\.|" + re.escape(delimiter), re.DOTALL)
        self._in_quotes = self._line_escaped = False
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
        self._end_open()
        return self._taken()

    def _are_records(self, batch: Rows) -> bool:
        """Whether each line is a record: no line end is escaped, and no field is enclosed by quotes."""
        # Without this path, inputs with very many blank lines would be slow.
        piece = batch.rows.piece() if isinstance(batch.rows, Lines) else None
        if self._escaped and (piece is None or b"\\\n" in piece):
            return False
        if self._quoting.enclose is False:
            return True
        if piece is None:
            return False
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
            self._quoting.enclose = enclose
            self._quoting.line = self._start + max(self._lines - 1, 0)
            self._begin_rows()

    def _add(self, line: bytes, size: int) -> None:
        self._rows.add(line, size, self._max_bytes)
        self._spans.append(1)

    def _take_large(self, head: bytes, size: int) -> None:
        """Take a line over the limit. What is quoted in it is not known, so it is a record of its own."""
        self._end_open()
        self._add(head, size)

    def _end_open(self) -> None:
        """End the open record, because nothing continues it."""
        while self._lines:
            if self._in_quotes:
                self._take_again(self._give_up())
            else:
                self._end_record()

    def _take_again(self, lines: list[bytes]) -> None:
        for line in lines:
            self._take_line(line)

    def _take_line(self, line: bytes) -> None:
        if not self._lines:
            self._begin(line)
        elif self._in_quotes:
            self._continue(line)
        else:
            self._continue_bare(line)

    def _begin(self, line: bytes) -> None:
        """Take a line that begins a record."""
        place = self._open_field(line, 0)
        if place < 0 and not self._goes_on(line, place):
            self._add(line, len(line))
            return
        self._record.add(line)
        self._lines = 1
        self._hold(line, place)

    def _hold(self, line: bytes, place: int) -> None:
        """Keep the record open behind this line, or end it. place: as from `_open_field`"""
        self._in_quotes = place >= 0
        self._line_escaped = self._goes_on(line, place)
        self._field_bytes = len(line) - place if self._in_quotes else 0
        if not self._in_quotes and not self._line_escaped:
            self._end_record()

    def _goes_on(self, line: bytes, place: int) -> bool:
        """Whether the line end behind this line is escaped. place: as from `_open_field`"""
        return self._escaped and place != _BROKEN and ends_escaped(line)

    def _continue(self, line: bytes) -> None:
        """Take a line while a field in quotes is open."""
        end = self._closing(line, 0)
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
        place = _NONE
        if line.startswith(self._delimiter, end + 1):
            place = self._open_field(line, end + 1 + len(self._delimiter))
        self._hold(line, place)

    def _continue_bare(self, line: bytes) -> None:
        """Take a line behind an escaped line end."""
        self._record.add(b"\n")
        self._record.add(line)
        self._lines += 1
        if (end := self._bare_end_in(line)) >= 0:
            self._hold(line, self._open_field(line, end))
            return
        self._field_bytes += 1 + len(line)
        if self._field_bytes > FIELD_BYTES or not ends_escaped(line):
            self._end_record()

    def _end_record(self) -> None:
        self._record.end(self._rows)
        self._spans.append(self._lines)
        self._lines = 0

    def _give_up(self) -> list[bytes]:
        """End the open record with the line in which its open field begins. returns: the lines behind it

        If quotes turn out to mean nothing, an escaped line end behind that line keeps the record open.
        """
        self._tell(False)
        if self._line_escaped and self._quoting.enclose is False:
            self._in_quotes, self._field_bytes = False, 0
        else:
            self._end_record()
        after, self._after = self._after, []
        return after

    def _open_field(self, line: bytes, place: int) -> int:
        """Where the quote stands that opens a field which is open at the end of the line, or `_NONE`.

        place: where a field begins. The first field that begins with a quote, and closes in its line, tells
        what quotes mean if nothing did before. A quoted field that is followed by text makes the line no
        record: `_BROKEN`.
        """
        while self._quoting.enclose is not False:
            if not line.startswith(_QUOTE, place):
                place = self._next_opening(line, place)
            if place < 0:
                break
            end = self._closing(line, place + 1)
            if end < 0:
                return place
            if self._quoting.enclose is None:
                self._tell(end - place <= FIELD_BYTES and self._ends_field(line, end + 1))
                continue
            if not self._ends_field(line, end + 1):
                return _BROKEN
            if not line.startswith(self._delimiter, end + 1):
                break
            place = end + 1 + len(self._delimiter)
        return _NONE

    def _next_opening(self, line: bytes, place: int) -> int:
        """Where the next field begins that begins with a quote, or `_NONE`. place: in a field without one"""
        if self._escaped and _BACKSLASH in line and _QUOTE in line:
            for found in self._bare_end.finditer(line, place):
                if found[0] == self._delimiter and line.startswith(_QUOTE, found.end()):
                    return found.end()
            return _NONE
        place = line.find(self._opening, place)
        return _NONE if place < 0 else place + len(self._delimiter)

    def _bare_end_in(self, line: bytes) -> int:
        """Where the next field begins in a line that begins in a field without quotes, or `_NONE`."""
        ends = (found.end() for found in self._bare_end.finditer(line) if found[0] == self._delimiter)
        return next(ends, _NONE)

    def _closing(self, line: bytes, place: int) -> int:
        """Where the quote stands that closes a field; -1 if there is none. place: inside the quotes

        A doubled quote closes nothing. With escapes, a quote behind a backslash closes nothing either.
        """
        if not self._escaped or _BACKSLASH not in line:
            return closing_quote(line, place)
        quotes = _ESCAPE_OR_QUOTE.finditer(line, place)
        return next((found.start() for found in quotes if found[0] == _QUOTE), _NONE)

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
