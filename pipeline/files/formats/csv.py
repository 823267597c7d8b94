"""CSV: fields between a delimiter, perhaps in quotes. The first record is a header, unless there is none."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import ClassVar, cast

from twinsieve.pipeline.basics.dead_letter_reasons import DeadLetterReason, UnreadableError
from twinsieve.pipeline.files import FileError
from twinsieve.pipeline.files.encoding import hides_backslashes, is_wide
from twinsieve.pipeline.files.endings import ending_of
from twinsieve.pipeline.files.format import RowChunk, Task, Writer
from twinsieve.pipeline.files.formats.csv_fields import Dialect, ends_escaped, without_return
from twinsieve.pipeline.files.formats.csv_records import FIELD_BYTES, Quoting, join_records
from twinsieve.pipeline.files.formats.text_rows import TextFormat, TextReader, TextWriter
from twinsieve.pipeline.files.input_columns import Columns
from twinsieve.pipeline.files.marks import NAME, RowMark, name_taken
from twinsieve.pipeline.files.rows import Rows, old_line_ends, split_lines
from twinsieve.pipeline.files.source import InputSource
from twinsieve.pipeline.files.write import Output
from twinsieve.pipeline.messages.decode import decode_rows
from twinsieve.pipeline.messages.reader import MessageColumns
from twinsieve.pipeline.settings.values import size_text
from twinsieve.stages.errors import UsageError
from twinsieve.stages.rows.lines import Lines

_DELIMITERS = ("\t", ";", "||", "|", "::", ",")
"""Those that a header is tried with if it does not fit the given one."""
_SEP_LINE = re.compile(r'"?sep=(.?)"?', re.IGNORECASE)
"""The line by which a spreadsheet is told the delimiter."""
_NAMED_DELIMITERS = {"tab": "\t", "\\t": "\t"}
_CHOICES = {
    True: "quotes enclose fields (--quote double); if they are characters of the text, add --quote none",
    False: "a field begins with a quote that closes before no delimiter or line end, so quotes are "
    "characters of the text (--quote none); if they enclose fields, add --quote double",
}
"""What is said about a choice that the first field with a quote made."""
_ADD_QUOTE = "if quotes are characters of the text, add --quote none"
_ADD_ESCAPE = "if backslashes escape {}, add --escape backslash"
_NO_ESCAPE = "if backslashes are characters of the text, leave --escape out"
_NO_RECORDS = (DeadLetterReason.INVALID_CSV, DeadLetterReason.NOT_UTF8, DeadLetterReason.TOO_LARGE)
"""Reasons for which a row has no fields that fit the header, so a mark makes the whole row one field."""


class Csv(TextFormat):
    """CSV.

    delimiter: the ASCII characters between the columns, or a word for them; None: the usual one. Several
        characters are read without quoting
    quote: one of QUOTES; None: the usual one
    escape: one of ESCAPES; None: no character is escaped
    no_header: given if the first row is no header; then the names of the columns are their numbers, from 1
    """

    name = "csv"
    title = "CSV"
    endings = (".csv",)
    flags: ClassVar[tuple[str, ...]] = ("delimiter", "quote", "escape", "no_header", "encoding")
    implied_by = "delimiter"
    flat = True
    usual = ","
    encloses: bool | None = True
    """What quotes usually mean, as in `Quoting`."""

    def __init__(
        self,
        delimiter: str | None = None,
        quote: str | None = None,
        escape: str | None = None,
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
        self.escaped = escape is not None
        if self.escaped and "\\" in self.delimiter:
            raise UsageError(
                f"--delimiter {delimiter!r}: cannot have a backslash with --escape {escape}; leave one out"
            )
        if self.escaped and self.encoding is not None and hides_backslashes(self.encoding):
            raise UsageError(
                f"--escape {escape}: in {self.encoding} the byte of a backslash is part of other characters "
                f"too; turn the input into UTF-8 first, as with `iconv -f {self.encoding} -t utf-8`"
            )

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
        self.escaped = format_.escaped
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
        return join_records(lines, self.max_bytes, self.delimiter.encode(), quoting, escaped=self.escaped)

    def dialect(self, *, quoted: bool) -> Dialect:
        """How the fields of rows are written. quoted: as in `Rows`"""
        return Dialect(self.delimiter, quoted, self.escaped)

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
        read = partial(self._record, dialect=self.dialect(quoted=rows.quoted))
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
        if head is None:
            what = "the header row" if self._has_header else "the first row"
            raise FileError(f"{where}: {what} {self.too_large(first)[0].detail}{advice}")
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
        fields = self.dialect(quoted=quoted).fields(first_row)
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
        if self._has_header:
            return [field or "" for field in fields]
        return [str(number + 1) for number in range(len(fields))]

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
            columns = Dialect(other, len(other) == 1, self.escaped).fields(header) or []
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
        dialect = self.dialect(quoted=batch.quoted)

        def ordered(record: bytes | None) -> bytes | None:
            if record is None or not record.strip():
                return record
            body = without_return(record, escaped=self.escaped)
            try:
                text = self.text_of(body)
            except UnreadableError:
                return record
            fields, spelt = dialect.fields(text), dialect.spelt(text)
            if fields is None or len(fields) != len(order) or len(spelt) != len(order):
                return record
            joined = self.delimiter.join([spelt[column] for column in order])
            return joined.encode(self.codec) + record[len(body) :]

        return replace(batch, rows=[ordered(record) for record in batch.rows])

    def _record(self, record: bytes | None, *, dialect: Dialect) -> dict[str, str | None]:
        """The fields of a CSV record, by column name. raises: UnreadableError"""
        text, width = self.text_of(record), len(self.names)
        fields = dialect.fields(text)
        if fields is None:
            raise UnreadableError(DeadLetterReason.INVALID_CSV, self._no_record(text, dialect))
        if len(fields) != width:
            model = "header" if self._has_header else "first row"
            detail = f"has {len(fields)} fields, the {model} {width}"
            if any(field is not None and field.startswith(' "') for field in fields):
                detail += "; a quote behind a blank encloses no field"
            if not self.escaped and (text.endswith("\\") or f"\\{self.delimiter}" in text):
                detail += f"; {_ADD_ESCAPE.format('delimiters and line ends')}"
            raise UnreadableError(DeadLetterReason.INVALID_CSV, detail)
        return dict(zip(self.names, fields, strict=True))

    def _no_record(self, text: str, dialect: Dialect) -> str:
        """Why a record cannot be read, for the user."""
        closed = dialect.fields(without_return(text, escaped=self.escaped) + '"')
        problem, advice = "a quoted field is followed by text", _ADD_QUOTE
        if closed is not None and dialect.quoted:
            size = size_text(FIELD_BYTES)
            problem = f"the quote that opens field {len(closed)} closes before no delimiter within {size}"
        elif self.escaped and ends_escaped(text):
            problem, advice = "the backslash at its end escapes nothing", _NO_ESCAPE
        elif '"' not in text:
            return "is not a CSV record; it has a carriage return that no quotes enclose"
        if not self.escaped and '\\"' in text:
            advice = f"{_ADD_ESCAPE.format('quotes inside fields')}; {advice}"
        return f"is not a CSV record; {problem}; {advice}"


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
        self._names, self._codec, self._dialect = reader.names, reader.codec, reader.dialect
        header = reader.header
        if marks and header is not None:
            names = [f"{NAME}_{field}" for field in RowMark._fields]
            for name in names:
                if name in reader.names:
                    raise name_taken(f"{reader.shown}:1", "a column", name)
            header = self._with_fields(header, names, reader.dialect(quoted=reader.encloses is not False))
        super().__init__(output, reader, header)

    def marked(self, chunk: RowChunk, row: int, mark: RowMark, reason: DeadLetterReason | None) -> bytes:
        raw = chunk.rows.raw(row)[0]
        dialect = self._dialect(quoted=cast(Rows, chunk.rows).quoted)
        spelt = mark.with_text_ids()._replace(flags=" ".join(mark.flags))
        fields = ["" if field is None else str(field) for field in spelt]
        if reason not in _NO_RECORDS:
            return self._with_fields(raw, fields, dialect)
        body = raw.removesuffix(b"\r")
        # Bytes that are not text would make the output unreadable, so they are escaped here. The dead letter
        # has the original bytes.
        text = dialect.enclosed(body.decode(self._codec, "backslashreplace"))
        record = text + dialect.delimiter * (len(self._names) - 1)
        end = raw[len(body) :]
        return self._with_fields(record.encode(self._codec, "backslashreplace") + end, fields, dialect)

    def _with_fields(self, record: bytes, fields: list[str], dialect: Dialect) -> bytes:
        # A field may contain the delimiter, because that may be a point or a dash.
        body = without_return(record, escaped=dialect.escaped)
        spelt = dialect.delimiter.join(["", *map(dialect.written, fields)])
        return body + spelt.encode(self._codec, "backslashreplace") + record[len(body) :]
