"""CSV in which a backslash escapes quotes, delimiters and line ends: dumps of databases, and Python's csv."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from tests.calling import SMALL, Run, setting
from tests.row_files import read_lines
from twinsieve.pipeline.files.formats import csv_records
from twinsieve.pipeline.files.formats.csv_fields import Dialect
from twinsieve.pipeline.files.formats.csv_records import FIELD_BYTES, Quoting, join_records
from twinsieve.pipeline.files.rows import split_lines

_ALL = setting("near.method=none")
_ESCAPE = ("--escape", "backslash")
_Joined = list[tuple[bytes | None, int, bool]]


def _blocks(content: bytes, cuts: list[int]) -> list[bytes]:
    places = sorted(min(cut, len(content)) for cut in cuts)
    return [content[a:b] for a, b in zip([0, *places], [*places, len(content)], strict=True)]


def _joined(blocks: list[bytes], delimiter: bytes, enclose: bool | None, limit: int = FIELD_BYTES) -> _Joined:
    with patch.object(csv_records, "FIELD_BYTES", limit):
        batches = [
            *join_records(split_lines(iter(blocks), 1000), 1000, delimiter, Quoting(enclose), escaped=True)
        ]
    return [
        (row, line, batch.quoted)
        for batch in batches
        for row, line in zip(batch.rows, batch.lines().tolist(), strict=True)
    ]


_CELL = st.text(st.sampled_from('ab",;\t\n \\ntN0你'), max_size=7)


@given(
    st.lists(st.lists(_CELL, min_size=2, max_size=3), max_size=6),
    st.sampled_from(",;\t"),
    st.sampled_from([csv.QUOTE_ALL, csv.QUOTE_MINIMAL, csv.QUOTE_NONE]),
    st.booleans(),
    st.lists(st.integers(0, 60), max_size=3),
)
def test_what_csv_writes_with_escapes_is_read_as_csv_reads_it(
    table: list[list[str]], delimiter: str, quoting: int, doubled: bool, cuts: list[int]
) -> None:
    if quoting == csv.QUOTE_NONE:
        # Without quotes Python writes an empty line for some rows, and some versions refuse them.
        table = [[f"x{cell}" for cell in row] for row in table]
    written = io.StringIO()
    how = {"delimiter": delimiter, "quoting": quoting, "escapechar": "\\", "doublequote": doubled}
    csv.writer(written, lineterminator="\n", **how).writerows(table)  # type: ignore[arg-type]
    text = written.getvalue()
    assert [*csv.reader(io.StringIO(text, newline=""), **how)] == table  # type: ignore[arg-type]
    quoted = quoting != csv.QUOTE_NONE
    rows = _joined(_blocks(text.encode(), cuts), delimiter.encode(), quoted)
    dialect = Dialect(delimiter, quoted, escaped=True)
    assert [dialect.fields((row or b"").decode()) for row, _, _ in rows] == table


@given(st.text(st.sampled_from('a,;"\\\r\n '), min_size=1, max_size=9), st.booleans())
@example("a\\", True)
@example("a\\\r", True)
@example('a,"b\\",c"', True)
def test_a_record_with_escapes_is_that_of_csv(record: str, quoted: bool) -> None:
    if not quoted:
        record = record.replace("\r", "").replace("\n", "")
    # Without these the line end would have ended the record.
    assume("\n" not in record or "\\" in record or '"' in record)
    how = csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE
    stream = io.StringIO(f"{record}\n", newline="")
    try:
        (read,) = csv.reader(stream, strict=True, quoting=how, escapechar="\\")  # type: ignore[arg-type]
    except (csv.Error, ValueError):
        read = None
    fields = Dialect(",", quoted, escaped=True).fields(record)
    if record.strip("\r\n") and not record.endswith("\n"):
        assert fields == read
    if fields is not None:
        spelt = Dialect(",", quoted, escaped=True).spelt(record)
        assert record.startswith(",".join(spelt))
        assert [Dialect(",", quoted, escaped=True).fields(one) for one in spelt] == [[one] for one in fields]


@given(st.lists(st.text(st.sampled_from('ab",\t\n\r\\N '), max_size=6), min_size=1), st.booleans())
def test_what_is_written_with_escapes_is_read_again(fields: list[str], quoted: bool) -> None:
    dialect = Dialect(",", quoted, escaped=True)
    assert dialect.fields(",".join(map(dialect.written, fields))) == fields
    assert dialect.fields(",".join(map(dialect.enclosed, fields))) == fields


def test_letters_stand_for_control_characters_and_a_field_may_have_no_value() -> None:
    for quoted in (True, False):
        read = Dialect("\t", quoted, escaped=True).fields("a\\nb\\t\\\\n\t\\N\t\\\\N\t\\0\\r\\x\t\\Nx\t")
        assert read == ["a\nb\t\\n", None, "\\N", "\0\rx", "Nx", ""]
    assert Dialect(",", escaped=True).fields('"\\N","\\n"') == ["N", "\n"]


def _field(content: bytes, place: int, enclose: bool | None) -> tuple[int, bool, bool]:
    """Where a field ends, whether it is closed or need not be, and whether quotes enclose it."""
    inside = content[place : place + 1] == b'"' and enclose is not False
    place += inside
    while place < len(content):
        char = content[place : place + 1]
        if char == b"\\":
            place += 2
            continue
        if inside and char == b'"':
            if content[place + 1 : place + 2] != b'"':
                return place, True, True
            place += 1
        elif not inside and char in (b"\t", b"\n"):
            break
        place += 1
    return min(place, len(content)), not inside, inside


def _twin(content: bytes, enclose: bool | None, limit: int) -> Iterator[tuple[bytes, int, bool]]:
    """The records of a whole content, each looked for in all that is left."""
    start, line, whole = 0, 1, len(content)
    content = content.removesuffix(b"\n")
    while start < whole:
        place = start
        while True:
            end, closed, inside = _field(content, place, enclose)
            if inside:
                after = content[end + 1 :]
                ends = closed and (
                    not after or after[:1] in b"\t\n" or after in (b"\r",) or after[:2] == b"\r\n"
                )
                size = end - place
                many = b"\n" in content[place:end]
                if enclose is None:
                    enclose = ends and size <= limit
                    if not enclose:
                        continue
                if not ends or (many and size > limit):
                    stop = content.find(b"\n", place)
                    break
                end += 1
                if after[:1] != b"\t":
                    stop = content.find(b"\n", end)
                    break
                place = end + 1
                continue
            if content[end : end + 1] == b"\t" and not (cut := _cut(content, place, end, limit)):
                place = end + 1
                continue
            cut = _cut(content, place, end, limit)
            stop = cut or content.find(b"\n", end)
            break
        stop = len(content) if stop < 0 else stop
        yield content[start:stop], line, enclose is True
        line += content[start:stop].count(b"\n") + 1
        start = stop + 1


def _cut(content: bytes, place: int, end: int, limit: int) -> int:
    """The newline at which a field without quotes has too many bytes behind its first line; 0 for none."""
    first = content.find(b"\n", place, end)
    while first >= 0 and (at := content.find(b"\n", place, end)) >= 0:
        place = at + 1
        if at > first and at - first > limit:
            return at
    return 0


_PIECES = st.lists(
    st.sampled_from([b'"', b'"', b"\t", b"a", b"\n", b"\r\n", b"\\", b"\\\n", b"\\\n"]), max_size=40
).map(b"".join)


@given(
    _PIECES, st.lists(st.integers(0, 60), max_size=4), st.sampled_from([True, False, None]), st.integers(1, 9)
)
@example(b'\\\n"a\\\n\t"b\n', [], None, 9)
@example(b"a\\\nbbbbbb\\\nc\\\nd\n", [], True, 4)
@example(b'"a\\\n"b\\\nc\n', [3], None, 9)
@settings(max_examples=1000)
def test_records_with_escapes_are_those_of_the_plain_twin_for_any_blocks(
    content: bytes, cuts: list[int], enclose: bool | None, limit: int
) -> None:
    assert _joined(_blocks(content, cuts), b"\t", enclose, limit) == [*_twin(content, enclose, limit)]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize(
    ("name", "more", "rows"),
    [
        (
            "a.csv",
            (),
            ['1,"the \\"old\\" mill, by night"', '2,"a path c:\\\\"', "3,bread\\, butter", "4,two\\nlines"],
        ),
        ("a.csv", ("--quote", "none"), ['1,the "old" mill\\, by night', '2,"open', "3,bread\\\nand butter"]),
        (
            "a.tsv",
            ("--quote", "none"),
            ["1\tthe mill\\tby night", '2\t"open', "3\tbread\\\nand butter", "4\t\\N"],
        ),
        ("a.tsv", (), ['1\t"the \\"old\\" mill', "2\tby\\\tnight"]),
    ],
)
def test_a_dump_with_backslashes_is_read_and_comes_out_byte_for_byte(
    tmp_path: Path, run: Run, name: str, more: tuple[str, ...], rows: list[str], end: str
) -> None:
    other = "," if name == "a.csv" else "\t"
    lines = [f"id{other}text", *rows]
    copies = [f"9{row[1:]}" for row in rows if not row.endswith("\\N")]
    source, out, dropped = tmp_path / name, tmp_path / f"out-{name}", tmp_path / "d.jsonl"
    source.write_bytes((end.join([*lines, *copies]) + end).encode())
    call = ("-q", source, "-o", out, *more, *_ESCAPE, *_ALL, *SMALL)
    ran = run("dedup", *call, "--duplicates", dropped)
    assert (ran.code, out.read_bytes().decode()) == (0, end.join(lines) + end)
    texts = [entry["text"] for entry in read_lines(dropped)]
    assert len(texts) == len(copies)
    for text, row in zip(texts, copies, strict=True):
        assert ("\\" in text) == ("\\\\" in row)
    ran = run("dedup", *call, "--mark")
    assert run("dedup", "-q", out, *more, *_ESCAPE, *_ALL, *SMALL, "--strict").code == 0
    assert ran.code == 0


def test_columns_of_another_order_keep_their_escapes(tmp_path: Path, run: Run) -> None:
    (tmp_path / "a.csv").write_text("id,text\n1,some\\, words\n")
    (tmp_path / "b.csv").write_text('text,id\nbread\\, butter,2\n"some, words",3\n"a \\"b\\", c",4\n')
    ran = run("dedup", "-q", tmp_path / "a.csv", tmp_path / "b.csv", *_ESCAPE, *_ALL, *SMALL)
    assert (ran.code, ran.out) == (0, 'id,text\n1,some\\, words\n2,bread\\, butter\n4,"a \\"b\\", c"\n')


@pytest.mark.parametrize("row", ['2,"the \\"old\\" mill"', "2,bread\\, butter"])
def test_rows_that_show_escapes_get_the_hint(tmp_path: Path, run: Run, row: str) -> None:
    source, out = tmp_path / "a.csv", tmp_path / "out.csv"
    source.write_text(f"id,text\n1,words\n{row}\n")
    ran = run("dedup", source, "-o", out, *SMALL)
    assert (ran.code, "--escape backslash" in ran.err, f"{source}:3" in ran.err) == (1, True, True)
    assert run("dedup", source, "-o", out, *_ESCAPE, *SMALL).code == 0


def test_a_backslash_that_escapes_nothing_is_told(tmp_path: Path, run: Run) -> None:
    source, dead = tmp_path / "a.csv", tmp_path / "dead"
    for row in ("2,open\\", '2,"a" b\\\n3,others'):
        source.write_text(f"id,text\n1,words\n{row}")
        ran = run("dedup", "-q", source, "--dead-letter", dead, *_ESCAPE, *SMALL)
        (entry,) = read_lines(dead)
        assert (ran.code, entry["line"], entry["reason"]) == (0, 3, "invalid_csv")
    assert "3,others" in ran.out


@pytest.mark.parametrize(
    ("said", "fact"),
    [
        (("--encoding", "gb18030"), "gb18030"),
        (("--encoding", "big5"), "iconv"),
        (("--delimiter", "\\"), "--delimiter"),
        (("--format", "jsonl"), "--escape"),
    ],
)
def test_escapes_go_with_what_has_backslashes(
    tmp_path: Path, run: Run, said: tuple[str, ...], fact: str
) -> None:
    (tmp_path / "a.csv").write_text("id,text\n1,words\n")
    ran = run("dedup", "-q", tmp_path / "a.csv", *said, *_ESCAPE, *SMALL)
    assert (ran.code, fact in ran.err) == (2, True)


@pytest.mark.parametrize("part", [b"a\\\n", b'x,"y\\\n', b'x,"\\"\n', b"\\\\" * 40 + b'"\\\n', b'\\,"\n'])
@pytest.mark.parametrize("enclose", [True, False, None])
def test_bytes_with_escapes_are_taken_at_most_twice(part: bytes, enclose: bool | None) -> None:
    content = part * (100_000 // len(part))
    taken = 0
    take = csv_records._Records._take_line

    def counted(self: csv_records._Records, line: bytes) -> None:
        nonlocal taken
        taken += len(line) + 1
        take(self, line)
        assert sum(map(len, self._after)) <= 10_000

    blocks = [content[at : at + 4096] for at in range(0, len(content), 4096)]
    with patch.object(csv_records._Records, "_take_line", counted):
        assert _joined(blocks, b",", enclose, 10_000)
    assert taken <= 2 * len(content)
