"""CSV: fields between a delimiter, perhaps in quotes. The first record is a header, unless there is none."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import chain
from threading import Lock
from typing import ClassVar, cast

from twinsieve.pipeline.basics.dead_letter_reasons import DeadLetterReason
from twinsieve.pipeline.files import FileError
from twinsieve.pipeline.files.encoding import is_wide
from twinsieve.pipeline.files.endings import ending_of
from twinsieve.pipeline.files.format import RowChunk, Task, Writer
from twinsieve.pipeline.files.formats.csv_records import FIELD_BYTES, Quoting, join_records
from twinsieve.pipeline.files.formats.text_rows import TextFormat, TextReader, TextWriter
from twinsieve.pipeline.files.input_columns import Columns
from twinsieve.pipeline.files.marks import NAME, RowMark, name_taken
from twinsieve.pipeline.files.rows import Rows, old_line_ends, split_lines
from twinsieve.pipeline.files.source import InputSource
from twinsieve.pipeline.files.write import Output
from twinsieve.pipeline.messages.decode import UnreadableError, decode_rows
from twinsieve.pipeline.messages.reader import MessageColumns
from twinsieve.pipeline.settings.values import size_text
from twinsieve.stages.errors import UsageError
from twinsieve.stages.rows.lines import Lines

_DELIMITERS = ("\t", ";", "||", "|", "::", ",")
"""Those that a header is tried with if it does not fit the given one."""
_SEP_LINE = re.compile(r'"?sep=(.?)"?', re.IGNORECASE)
"""The line by which a spreadsheet is told the delimiter."""
_NAMED_DELIMITERS = {"tab": "\t", "\\t": "\t"}
_LIMIT_OF_CSV = Lock()
_CHOICES = {
    True: "quotes enclose fields (--quote double); if they are characters of the text, add --quote none",
    False: "a field begins with a quote that closes before no delimiter or line end, so quotes are "
    "characters of the text (--quote none); if they enclose fields, add --quote double",
}
"""What is said about a choice that the first field with a quote made."""
_NO_RECORDS = (DeadLetterReason.INVALID_CSV, DeadLetterReason.NOT_UTF8, DeadLetterReason.TOO_LARGE)
"""Reasons for which a row has no fields that fit the header, so a mark makes the whole row one field."""


class Csv(TextFormat):
    """CSV.

    delimiter: the ASCII characters between the columns, or a word for them; None: the usual one. Several
        characters are read without quoting
    quote: one of QUOTES; None: the usual one
    no_header: given if the first row is no header; then the names of the columns are their numbers, from 1
    """

    name = "csv"
    title = "CSV"
    endings = (".csv",)
    flags: ClassVar[tuple[str, ...]] = ("delimiter", "quote", "no_header", "encoding")
    implied_by = "delimiter"
    flat = True
    usual = ","
    encloses: bool | None = True
    """What quotes usually mean, as in `Quoting`."""

    def __init__(
        self,
        delimiter: str | None = None,
        quote: str | None = None,
        no_header: str | None = None,
        encoding: str | None = None,
    ) -> None:
        super().__init__(encoding)
        self.has_header = no_header is None
        self.delimiter = self.usual if delimiter is None else _delimiter(delimiter)
        if quote is not None:
            self.encloses = quote == "double"
        if len(self.delimiter) > 1:
            if quote == "double":
                raise UsageError(
                    f"--delimiter {delimiter!r}: several characters go with --quote none; leave --quote out"
                )
            self.encloses = False

    @classmethod
    def for_inputs(cls, names: list[str], **options: str) -> Csv:
        """CSV, or TSV where all names that have an ending say so. raises: UsageError"""
        is_tsv = {ending_of(name) for name in names} - {""} == set(Tsv.endings)
        return (Tsv if is_tsv else cls)(**options)

    def reader(self, task: Task) -> TextReader:
        """A new reader."""
        return _CsvReader(self, task)


class Tsv(Csv):
    """CSV with tabs. Most files of posts with tabs are written without quoting, so each file shows it."""

    name = "tsv"
    title = "TSV"
    endings = (".tsv",)
    usual = "\t"
    encloses = None


def _delimiter(given: str) -> str:
    delimiter = _NAMED_DELIMITERS.get(given, given)
    if not delimiter.isascii() or not delimiter:
        raise UsageError(f"--delimiter {given!r}: must be an ASCII character or several, or tab")
    if any(char.isalnum() or char in '"\r\n\0' for char in delimiter):
        raise UsageError(
            f"--delimiter {given!r}: cannot have a quote, a letter, a digit or the end of a line"
        )
    return delimiter


class _CsvReader(TextReader):
    """Reads CSV.

    names: columns of the first input, empty before it
    header: its header row with the byte order mark before it, None before that input and without a header;
        for UTF-16 and UTF-32 the header as UTF-8, without the mark
    shown: its name
    encloses: what quotes mean, as in `Quoting`; None: each input shows it
    """

    def __init__(self, format_: Csv, task: Task) -> None:
        super().__init__(format_.encoding, task)
        self.delimiter = format_.delimiter
        self._has_header = format_.has_header
        self.encloses = format_.encloses
        self.choices: dict[str, str] = {}
        self._columns = Columns(task.messages, task.settings)
        self.other_order = self._columns.other_order
        self._marks = task.marks
        self.names: list[str] = []
        self.header: bytes | None = None
        self.shown = ""
        self._order: list[int] | None = None

    def split(self, source: InputSource) -> Iterator[Rows]:
        records = self._with_choice(source)
        first = self._begin(source, records)
        if first is None:
            return
        if not self._has_header:
            yield from chain([first], records)
            return
        spans = first.lines_of or [1] * len(first)
        heads = {row - 1: head for row, head in first.heads.items()}
        rest = replace(
            first, rows=first.rows[1:], line=first.line + spans[0], lines_of=spans[1:], heads=heads
        )
        following: Iterator[Rows] = chain([rest] if len(rest) else [], records)
        if len(self.names) > 1:
            following = map(partial(_with_repeats, header=first.rows[0] or b""), following)
        yield from following if self._order is None else map(self._in_order, following)

    def _records(self, source: InputSource, quoting: Quoting) -> Iterator[Rows]:
        lines = split_lines(self.blocks(source), self.max_bytes)
        return join_records(lines, self.max_bytes, self.delimiter.encode(), quoting)

    def _with_choice(self, source: InputSource) -> Iterator[Rows]:
        """The records of an input. What its first field with a quote shows is added to `choices`."""
        quoting = Quoting(self.encloses)
        for rows in self._records(source, quoting):
            if self.encloses is None and quoting.enclose is not None:
                self.choices.setdefault(_CHOICES[quoting.enclose], f"{source.shown}:{quoting.line}")
            yield rows

    def check(self, source: InputSource) -> None:
        self._begin(source, self._records(source, Quoting(self.encloses)))

    def columns(self, rows: Rows) -> MessageColumns:
        bad = self.too_large(rows)
        read = partial(self._record, quoted=rows.quoted)
        return self.messages.columns(decode_rows(rows.rows, read, bad), bad)

    def writer(self, output: Output) -> Writer:
        return _CsvWriter(output, self, marks=self._marks)

    def _begin(self, source: InputSource, batches: Iterator[Rows]) -> Rows | None:
        """The first rows of an input, whose columns are checked against the first input.

        None if the input is empty or is only one empty line: it has no rows.
        """
        where = f"{source.shown}:1"
        first = next(batches, None)
        if first is None or (len(first) == 1 and first.rows[0] == b"" and next(batches, None) is None):
            return None
        ends = old_line_ends(first.raw(0)[0])
        advice = "" if ends is None else f"; {ends}"
        head = first.rows[0]
        if not head:
            problem = "has no header row; the first row of a CSV file names its columns"
            if not self._has_header:
                problem = "has no first row; with --no-header the first row shows the number of columns"
            raise FileError(f"{source.shown}: {problem}{advice}")
        try:
            text = self.text_of(head)
        except UnreadableError:
            text = ""
        names = self._names_of(where, text, advice, quoted=first.quoted)
        self._order = self._columns.order_of(source.shown, names, where)
        self._columns.refuse_twice(where, names)
        if self._columns.lack_text(names):
            self._refuse_without_text(where, text, names)
        if not self.names:
            self.names, self.shown = names, source.shown
            if self._has_header:
                self.header = head if is_wide(self.encoding) else source.mark + head
        return first

    def _names_of(self, where: str, first_row: str, advice: str, *, quoted: bool) -> list[str]:
        """The names of the columns that the first row of an input shows. raises: FileError, UsageError

        advice: what else may be wrong, for the end of an error
        """
        if (said := _SEP_LINE.fullmatch(first_row.rstrip("\r"))) is not None:
            raise UsageError(
                f"{where}: is a line for spreadsheets, not a row; take it out, as by tail -n +2, and add "
                f"--delimiter {_shown_delimiter(said[1] or self.delimiter)}"
            )
        fields = _csv_fields(first_row, self.delimiter, quoted=quoted)
        if not first_row or (not quoted and "\r" in first_row.removesuffix("\r")):
            fields = None
        if fields is None:
            self._refuse_other_delimiter(where, first_row, [])
            is_not = "is not a CSV header; the first row names the columns"
            if not self._has_header:
                is_not = (
                    "is not a CSV record; with --no-header the first row shows how many columns there are"
                )
            raise FileError(f"{where}: {is_not}{advice}")
        return fields if self._has_header else [str(number + 1) for number in range(len(fields))]

    def _refuse_without_text(self, where: str, first_row: str, names: list[str]) -> None:
        """Refuse columns that lack the text, with the most likely cause. raises: UsageError"""
        if not self._has_header:
            self._columns.refuse_without_text(where, names)
        self._refuse_other_delimiter(where, first_row, names)
        bare = {name.strip(" ").strip('"'): name for name in names if name.startswith(' "')}
        if (wanted := next((name for name in self._columns.wanted if name in bare), None)) is not None:
            raise UsageError(
                f"{where}: the blank before the quote makes {bare[wanted]!r} the name of a column: quotes "
                "behind a blank enclose no field; take these blanks out first, as by Python's "
                "csv.reader(file, skipinitialspace=True)"
            )
        also = "if the first row is no header, add --no-header and name columns by number; "
        self._columns.refuse_without_text(where, names, also)

    def _refuse_other_delimiter(self, where: str, header: str, names: list[str]) -> None:
        """Refuse a header that another delimiter clearly fits better. raises: UsageError"""
        wanted = self._columns.wanted
        for other in _DELIMITERS:
            columns = _csv_fields(header, other, quoted=len(other) == 1) or []
            if set(wanted) & set(columns) or len(columns) > max(len(names), 1):
                shown = _shown_delimiter(other)
                raise UsageError(
                    f"{where}: has no column {self._columns.wanted_words}; its columns look separated by "
                    f"{shown}: add --delimiter {shown}"
                )

    def _in_order(self, batch: Rows) -> Rows:
        """The records with their columns in the order of the first input; each field keeps its exact bytes.

        A record that does not have as many fields as its header stays unchanged.
        """
        order = self._order or []
        quoted = batch.quoted

        def ordered(record: bytes | None) -> bytes | None:
            if record is None or not record.strip():
                return record
            body = record.removesuffix(b"\r")
            try:
                text = self.text_of(body)
            except UnreadableError:
                return record
            fields = _csv_fields(text, self.delimiter, quoted=quoted)
            spelt = _spelt_fields(text, self.delimiter) if quoted else text.split(self.delimiter)
            if fields is None or len(fields) != len(order) or len(spelt) != len(order):
                return record
            joined = self.delimiter.join([spelt[column] for column in order])
            return joined.encode(self.codec) + record[len(body) :]

        return replace(batch, rows=[ordered(record) for record in batch.rows])

    def _record(self, record: bytes | None, *, quoted: bool) -> dict[str, str]:
        """The fields of a CSV record, by column name. raises: UnreadableError"""
        text, width = self.text_of(record), len(self.names)
        fields = _csv_fields(text, self.delimiter, quoted=quoted)
        if fields is None:
            raise UnreadableError(DeadLetterReason.INVALID_CSV, self._no_record(text))
        if len(fields) != width:
            model = "header" if self._has_header else "first row"
            detail = f"has {len(fields)} fields, the {model} {width}"
            if any(field.startswith(' "') for field in fields):
                detail += "; a quote behind a blank encloses no field"
            raise UnreadableError(DeadLetterReason.INVALID_CSV, detail)
        return dict(zip(self.names, fields, strict=True))

    def _no_record(self, text: str) -> str:
        """Why a record cannot be read, for the user."""
        closed = _csv_fields(text.removesuffix("\r") + '"', self.delimiter)
        problem = "a quoted field is followed by text"
        if closed is not None:
            size = size_text(FIELD_BYTES)
            problem = f"the quote that opens field {len(closed)} closes before no delimiter within {size}"
        elif '"' not in text:
            return "is not a CSV record; it has a carriage return that no quotes enclose"
        return f"is not a CSV record; {problem}; if quotes are characters of the text, add --quote none"


def _shown_delimiter(delimiter: str) -> str:
    return "tab" if delimiter == "\t" else repr(delimiter)


def _with_repeats(batch: Rows, header: bytes) -> Rows:
    """The rows with `repeats`: those equal to the header, perhaps behind a byte order mark.

    Parts that were put together have their headers in the midst. (Where there is one column, a row equal to
    its name may well be a text, so callers leave that out.)
    """
    bare = header.removesuffix(b"\r")
    if isinstance(batch.rows, Lines) and bare not in batch.rows.piece():
        return batch
    spelt = {mark + bare + end for mark in (b"", codecs.BOM_UTF8) for end in (b"", b"\r")}
    repeats = [number for number, row in enumerate(batch.rows) if row in spelt]
    return replace(batch, repeats=repeats) if repeats else batch


class _CsvWriter(TextWriter):
    """Writes CSV records. A mark is some more columns, in ASCII, which fits every encoding.

    A row that is no record of the header's columns becomes its first column.
    """

    def __init__(self, output: Output, reader: _CsvReader, *, marks: bool) -> None:
        self._delimiter, self._names, self._codec = reader.delimiter, reader.names, reader.codec
        header = reader.header
        if marks and header is not None:
            names = [f"{NAME}_{field}" for field in RowMark._fields]
            for name in names:
                if name in reader.names:
                    raise name_taken(f"{reader.shown}:1", "a column", name)
            header = self._with_fields(header, names, quoted=reader.encloses is not False)
        super().__init__(output, reader, header)

    def marked(self, chunk: RowChunk, row: int, mark: RowMark, reason: DeadLetterReason | None) -> bytes:
        raw = chunk.rows.raw(row)[0]
        quoted = cast(Rows, chunk.rows).quoted
        spelt = mark.with_text_ids()._replace(flags=" ".join(mark.flags))
        fields = ["" if field is None else str(field) for field in spelt]
        if reason not in _NO_RECORDS:
            return self._with_fields(raw, fields, quoted=quoted)
        body = raw.removesuffix(b"\r")
        end = raw[len(body) :]
        try:
            body.decode(self._codec)
        except UnicodeError:
            # Bytes that are not text would make the output unreadable, so they are escaped here. The dead
            # letter has the original bytes.
            text = body.decode(self._codec, "backslashreplace")
            body = text.encode(self._codec, "backslashreplace")
        others = self._delimiter * (len(self._names) - 1)
        if quoted:
            body = b'"' + body.replace(b'"', b'""') + b'"'
        else:
            text = body.decode(self._codec).replace(self._delimiter, " ")
            body = text.encode(self._codec, "backslashreplace")
        return self._with_fields(body + others.encode() + end, fields, quoted=quoted)

    def _with_fields(self, record: bytes, fields: list[str], *, quoted: bool) -> bytes:
        # A field may contain the delimiter, because that may be a point or a dash; quote such a field, or
        # write a blank where nothing can be quoted.
        if quoted:
            special = (self._delimiter, *'"\r\n')
            spelt = [
                _in_quotes(field) if any(char in field for char in special) else field for field in fields
            ]
        else:
            spelt = [" ".join(field.replace(self._delimiter, " ").splitlines()) for field in fields]
        body = record.removesuffix(b"\r")
        added = self._delimiter.join(["", *spelt]).encode(self._codec, "backslashreplace")
        return body + added + record[len(body) :]


def _in_quotes(field: str) -> str:
    quoted = field.replace('"', '""')
    return f'"{quoted}"'


def _spelt_fields(record: str, delimiter: str) -> list[str]:
    """The fields of a valid CSV record exactly as written, with their quotes.

    >>> _spelt_fields('"a,""b",c "d,', ",")
    ['"a,""b"', 'c "d', '']
    """
    fields = []
    start = 0
    while True:
        end = start
        if record[start : start + 1] == '"':
            end = record.find('"', start + 1)
            while record[end + 1 : end + 2] == '"' and end >= 0:
                end = record.find('"', end + 2)
            if end < 0:
                return []
        end = record.find(delimiter, end)
        fields.append(record[start:] if end < 0 else record[start:end])
        if end < 0:
            return fields
        start = end + 1


def _csv_fields(record: str, delimiter: str, *, quoted: bool = True) -> list[str] | None:
    """The fields of one record, or None if it is not valid CSV. quoted: whether quotes may enclose fields"""
    body = record.removesuffix("\r")
    if not quoted or not ('"' in body or "\r" in body):
        return body.split(delimiter)
    # The limit is global to the process, which may read other CSV, so the old limit is restored below.
    with _LIMIT_OF_CSV:
        limit = csv.field_size_limit(max(len(record), 1 << 17))
        try:
            records = list(csv.reader(io.StringIO(record, newline=""), delimiter=delimiter, strict=True))
        except csv.Error:
            return None
        finally:
            csv.field_size_limit(limit)
    return records[0] if len(records) == 1 else None
