"""The fields of one CSV record: cut, unescaped, and written, as a dialect has them.

With escapes a backslash makes the character behind it one of the field: a delimiter, a quote, a line end or
another backslash. Python's csv, Spark and MySQL's `SELECT … INTO OUTFILE` write so. Text dumps of databases
(`mysql --batch`, PostgreSQL's COPY, ClickHouse) write letters for control characters, and `\\N` for no value.
No writer puts a backslash before such a letter and means the letter, so one rule reads both kinds.
"""

from __future__ import annotations

import csv
import io
import re
from threading import Lock
from typing import AnyStr, NamedTuple

_LIMIT_OF_CSV = Lock()
_LETTERS = {"0": "\0", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
"""Control characters, by the letter that stands behind a backslash for each."""
_NO_VALUE = r"\N"
ESCAPE_OR_QUOTE = r'\\.|""|"'
"""What counts in quotes, if there are escapes: an escaped character, a doubled quote, a closing quote."""
_IN_QUOTES = {False: re.compile('""|"'), True: re.compile(ESCAPE_OR_QUOTE, re.DOTALL)}
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED_IN_QUOTES = re.compile(r'\\(.)|""', re.DOTALL)


class Dialect(NamedTuple):
    """How the fields of a record are written.

    delimiter: what stands between two fields
    quoted: whether quotes may enclose a field; they may be doubled in it
    escaped: whether a backslash makes the character behind it one of the field
    """

    delimiter: str
    quoted: bool = True
    escaped: bool = False

    def fields(self, record: str) -> list[str] | list[str | None] | None:
        r"""The fields of a record; None if it is no record. A field that says it has no value is None.

        >>> Dialect(",", escaped=True).fields(r'a\,b,"c\"d",\N,"\N"')
        ['a,b', 'c"d', None, 'N']
        """
        if self.escaped and "\\" in record:
            spelt = self._cut(record)
            return None if spelt is None else [self._read(field) for field in spelt]
        body = record.removesuffix("\r")
        if not self.quoted or not ('"' in body or "\r" in body):
            return body.split(self.delimiter)
        # The limit is global to the process, which may read other CSV, so the old limit is restored below.
        with _LIMIT_OF_CSV:
            limit = csv.field_size_limit(max(len(record), 1 << 17))
            try:
                read = csv.reader(io.StringIO(record, newline=""), delimiter=self.delimiter, strict=True)
                records = list(read)
            except csv.Error:
                return None
            finally:
                csv.field_size_limit(limit)
        return records[0] if len(records) == 1 else None

    def spelt(self, record: str) -> list[str]:
        """The fields of a valid record exactly as written, with quotes and escapes.

        >>> Dialect(",").spelt('"a,""b",c "d,')
        ['"a,""b"', 'c "d', '']
        """
        return self._cut(record) or []

    def written(self, text: str) -> str:
        r"""A text as a field, in quotes if it needs them.

        Without quotes and escapes, blanks stand for what would end the field.

        >>> Dialect(",").written('a,"b'), Dialect(",", quoted=False).written("a,b")
        ('"a,""b"', 'a b')
        >>> Dialect(",", escaped=True).written('a,"b'), Dialect(",", False, True).written("a,b\\")
        ('"a,\\"b"', 'a\\,b\\\\')
        """
        if self.quoted:
            needs_quotes = any(char in text for char in (self.delimiter, *'"\r\n'))
            return self.enclosed(text) if needs_quotes else self._with_escapes(text)
        if self.escaped:
            return self._with_escapes(text)
        return " ".join(text.replace(self.delimiter, " ").splitlines())

    def enclosed(self, text: str) -> str:
        """A text as a field in quotes; as `written` if quotes enclose nothing."""
        if not self.quoted:
            return self.written(text)
        inside = self._with_escapes(text) if self.escaped else text.replace('"', '""')
        return f'"{inside}"'

    def _with_escapes(self, text: str) -> str:
        if not self.escaped:
            return text
        special = r'[\\"]' if self.quoted else rf"[\\\r\n]|{re.escape(self.delimiter)}"
        return re.sub(special, lambda found: f"\\{found[0]}", text)

    def _cut(self, record: str) -> list[str] | None:
        """The fields of a record as written; None if it is no record."""
        body = without_return(record, escaped=self.escaped)
        fields = []
        start = 0
        while (end := self._end_of(body, start)) is not None:
            fields.append(body[start:end])
            if end == len(body):
                return fields
            start = end + len(self.delimiter)
        return None

    def _end_of(self, body: str, start: int) -> int | None:
        """Where the field ends that begins here; None if neither a delimiter nor the end stands there."""
        if not self.quoted or not body.startswith('"', start):
            return self._end_of_bare(body, start)
        for found in _IN_QUOTES[self.escaped].finditer(body, start + 1):
            if found[0] == '"':
                end = found.end()
                return end if end == len(body) or body.startswith(self.delimiter, end) else None
        return None

    def _end_of_bare(self, body: str, start: int) -> int | None:
        """The same for a field that does not begin with a quote that encloses it."""
        if not self.escaped:
            end = body.find(self.delimiter, start)
            return len(body) if end < 0 else end
        ends = rf"\\.|\\|{re.escape(self.delimiter)}" + (r"|[\r\n]" if self.quoted else "")
        for found in re.compile(ends, re.DOTALL).finditer(body, start):
            if found[0] == self.delimiter:
                return found.start()
            if not found[0].startswith("\\") or len(found[0]) == 1:
                return None
        return len(body)

    def _read(self, spelt: str) -> str | None:
        """What a field says, from how it is written with escapes."""
        if spelt == _NO_VALUE:
            return None
        if self.quoted and spelt.startswith('"'):
            return _ESCAPED_IN_QUOTES.sub(_meant, spelt[1:-1])
        return _ESCAPED.sub(_meant, spelt)


def _meant(found: re.Match[str]) -> str:
    return '"' if found[1] is None else _LETTERS.get(found[1], found[1])


def ends_escaped(line: AnyStr) -> bool:
    r"""Whether a line ends with a backslash that no other one escapes.

    >>> ends_escaped("a\\"), ends_escaped(b"a\\\\"), ends_escaped("")
    (True, False, False)
    """
    backslash = b"\\" if isinstance(line, bytes) else "\\"
    return (len(line) - len(line.rstrip(backslash))) % 2 == 1


def without_return(record: AnyStr, *, escaped: bool) -> AnyStr:
    r"""A record without the carriage return before its newline. An escaped one is a character of its field.

    >>> without_return("a\r", escaped=True), without_return(b"a\\\r", escaped=True)
    ('a', b'a\\\r')
    """
    body = record.removesuffix(b"\r" if isinstance(record, bytes) else "\r")
    return record if escaped and body != record and ends_escaped(body) else body
