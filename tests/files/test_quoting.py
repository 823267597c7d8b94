"""Quotes that enclose fields, quotes that are characters, and quotes that nobody closed."""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.calling import SMALL, Run, setting
from tests.row_files import read_lines
from twinsieve.pipeline.files.formats import csv_records
from twinsieve.pipeline.files.formats.csv_fields import Dialect
from twinsieve.pipeline.files.formats.csv_records import FIELD_BYTES, Quoting, join_records
from twinsieve.pipeline.files.rows import Rows, split_lines

_ALL = setting("near.method=none")
_FIRST = [
    '"So it goes", said the miller, and went home',
    '"So it goes',
    '"',
    '""So it goes"" is a saying',
    '"a" "b"',
    '"So it goes"!',
]
"""Texts that begin with a quote which closes before no tab."""


def _lines(first: str, other: str = "\t") -> list[str]:
    texts = ["words of the first row", first, 'a 5" pipe', '"one more open quote', "the last of all"]
    return [f"id{other}text{other}n", *(f"{at}{other}{text}{other}x" for at, text in enumerate(texts))]


@pytest.mark.parametrize("first", _FIRST)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("more", [(), ("--keep", "last")])
def test_a_tsv_without_quoting_is_read_line_by_line(
    tmp_path: Path, run: Run, first: str, end: str, more: tuple[str, ...]
) -> None:
    source, out = tmp_path / "a.tsv.gz", tmp_path / "out.tsv"
    content = end.join(_lines(first)) + end
    source.write_bytes(gzip.compress(content.encode()))
    ran = run("dedup", source, "-o", out, *more, *_ALL, *SMALL)
    assert (ran.code, out.read_bytes().decode()) == (0, content)
    (said,) = [line for line in ran.err.splitlines() if "--quote none" in line]
    assert said.startswith(f"{source}:3: ")


@pytest.mark.parametrize("first", _FIRST)
@pytest.mark.parametrize(
    ("name", "other", "said"),
    [
        ("a.csv", ",", ("--quote", "none")),
        ("a.tsv", "\t", ("--quote", "none")),
        ("a;b.tsv", ";", ("--delimiter", ";")),
        ("a.csv", "::", ("--delimiter", "::")),
        ("a.csv", "_!_", ("--delimiter", "_!_")),
    ],
)
def test_quotes_may_be_characters_like_others(
    tmp_path: Path, run: Run, first: str, name: str, other: str, said: tuple[str, ...]
) -> None:
    source, out, dead = tmp_path / name, tmp_path / f"out-{name}", tmp_path / "dead"
    lines = [*_lines(first.replace(",", ""), other), f"9{other}too few"]
    source.write_text("\n".join(lines) + "\n")
    ran = run("dedup", "-q", source, "-o", out, "--dead-letter", dead, *said, *_ALL, *SMALL)
    assert (ran.code, out.read_text()) == (0, "\n".join(lines[:-1]) + "\n")
    assert [(entry["line"], entry["raw"]) for entry in read_lines(dead)] == [(7, lines[-1])]
    ran = run("dedup", "-q", source, "-o", out, "--mark", *said, *_ALL, *SMALL)
    marked = [line.split(other) for line in out.read_text().splitlines()]
    assert {len(fields) for fields in marked} == {len(marked[0])}
    assert [other.join(fields[:3]) for fields in marked[:-1]] == lines[:-1]
    assert (marked[-1][:3], marked[-1][3]) == (["9 too few", "", ""], "unreadable")


@pytest.mark.parametrize("quoting", [csv.QUOTE_ALL, csv.QUOTE_MINIMAL])
def test_a_tsv_with_quoting_is_read_as_csv_reads_it(tmp_path: Path, run: Run, quoting: int) -> None:
    table = [["id", "text"], ["1", "some words"], ["2", 'with\ta tab, "quotes"\nand lines'], ["3", '"']]
    written = io.StringIO()
    csv.writer(written, "excel-tab", quoting=quoting, lineterminator="\n").writerows(table)  # type: ignore[arg-type]
    source, dropped = tmp_path / "a.tsv", tmp_path / "d.jsonl"
    source.write_text(written.getvalue() + written.getvalue().partition("\n")[2])
    ran = run("dedup", source, "-o", tmp_path / "out.tsv", "--duplicates", dropped, *_ALL, *SMALL)
    assert (ran.code, (tmp_path / "out.tsv").read_text()) == (0, written.getvalue())
    assert [row["text"] for row in read_lines(dropped)] == [row[1] for row in table[1:]]
    (said,) = [line for line in ran.err.splitlines() if "--quote double" in line]
    assert said.startswith(f"{source}:{1 if quoting == csv.QUOTE_ALL else 3}: ")


def test_a_tsv_without_quotes_at_the_beginning_of_fields_says_nothing(tmp_path: Path, run: Run) -> None:
    (tmp_path / "a.tsv").write_text('id\ttext\n1\ta 5" pipe\n')
    assert "--quote" not in run("dedup", tmp_path / "a.tsv", *SMALL).err


@pytest.mark.parametrize(
    ("name", "encoding", "texts", "flags"),
    [
        ("a.tsv", "utf-8", ["'open", "words", "closed'"], ()),
        ("a.csv", "utf-8", ["'open", "words", "closed'"], ()),
        ("a.tsv", "utf-8", ["“open", "words", "”closed"], ()),
        ("a.csv", "utf-8", ["«open", "words", "closed»", "„here“", "「there"], ()),
        ("a.csv", "utf-8", ['words"', 'a "b', 'c" d', '6"'], ()),
        ("a.tsv", "utf-8-sig", ['"open', "words", '"more'], ()),
        ("a.tsv", "utf-16", ['"open', "words", '"more'], ("--encoding", "utf-16")),
        ("a.tsv", "gb18030", ['"open', "话", '"more'], ("--encoding", "gb18030")),
        ("a.csv", "utf-8", ['"one; two"', '"two\nlines; here"', "words"], ("--delimiter", ";")),
    ],
)
def test_marks_that_open_no_field_join_no_lines(
    tmp_path: Path, run: Run, name: str, encoding: str, texts: list[str], flags: tuple[str, ...]
) -> None:
    """Quotes of other languages, quotes behind the first character, and unclosed ones in other encodings."""
    other = flags[1] if "--delimiter" in flags else "\t" if name == "a.tsv" else ","
    source, out, stats = tmp_path / name, tmp_path / f"out-{name}", tmp_path / "stats"
    rows = [f"id{other}text", *(f"{at}{other}{text}" for at, text in enumerate(texts))]
    source.write_bytes(("\n".join(rows) + "\n").encode(encoding))
    ran = run("dedup", "-q", source, "-o", out, "--stats", stats, *flags, *_ALL, *SMALL)
    told = json.loads(stats.read_bytes())
    assert (ran.code, told["unique"], told["unreadable"]) == (0, len(texts), {})
    assert out.read_bytes() == source.read_bytes()


@pytest.mark.parametrize("folder", [False, True])
def test_each_choice_is_said_once(tmp_path: Path, run: Run, folder: bool) -> None:
    for number in range(4):
        text = '"open' if number % 2 else '"closed"'
        (tmp_path / f"{number}.tsv").write_text(f"id\ttext\n1\t{text} \n2\t{text}\n".replace('" \n', '"\n'))
    inputs = [tmp_path / f"{number}.tsv" for number in range(4)]
    out = f"{tmp_path}/out/" if folder else tmp_path / "out.tsv"
    if folder:
        (tmp_path / "out").mkdir()
    ran = run("dedup", *inputs, "-o", out, *_ALL, *SMALL)
    said = [line for line in ran.err.splitlines() if "--quote" in line]
    assert [line.partition(": ")[0] for line in said] == [f"{inputs[0]}:2", f"{inputs[1]}:2"]


def test_blank_lines_between_rows_without_quoting_are_passed_over(tmp_path: Path, run: Run) -> None:
    source, stats = tmp_path / "a.tsv", tmp_path / "stats"
    source.write_text('id\ttext\n\n1\t"words" of a row\n\n2\t"others\n')
    ran = run("dedup", "-q", source, "--stats", stats, *_ALL, *SMALL)
    assert (ran.code, ran.out, ran.err) == (0, source.read_text().replace("\n\n", "\n"), "")


def test_several_characters_part_columns_without_quoting_only(tmp_path: Path, run: Run) -> None:
    (tmp_path / "a.csv").write_text("id::text\n1::words\n")
    ran = run("dedup", "-q", tmp_path / "a.csv", "--delimiter", "::", "--quote", "double", *SMALL)
    assert (ran.code, "--quote" in ran.err) == (2, True)
    ran = run("dedup", "-q", tmp_path / "a.csv", *SMALL)
    assert (ran.code, "--delimiter '::'" in ran.err) == (2, True)


@pytest.mark.parametrize(
    ("lines", "lost"),
    [
        (['1,"open', "2,words", "3,others", "4,last"], [2]),
        (["1,words", '2,"open', "3,others", '4,"also open', "5,last"], [3, 5]),
        (['1,"open', "2,words", '3,"closed, here"', "4,last"], [2]),
        (["1,words", '2,"two\nlines"', '3,"open'], [5]),
        (['1,"He said: "no" and left"', "2,words"], [2]),
        (['1,"backslash \\"here\\" and, there"', "2,words"], [2]),
        (['1,"open', *[f"{at},{'words ' * 40}{at}" for at in range(5_000)]], [2]),
        (['"two\nlines","open', "2,words"], [2]),
    ],
)
def test_a_quote_that_does_not_close_costs_its_own_line(
    tmp_path: Path, run: Run, lines: list[str], lost: list[int]
) -> None:
    source, out, dead = tmp_path / "a.csv", tmp_path / "out.csv", tmp_path / "dead"
    source.write_text("\n".join(["id,text", *lines]) + "\n")
    ran = run("dedup", "-q", source, "-o", out, "--dead-letter", dead, *_ALL, *SMALL)
    entries = read_lines(dead)
    assert (ran.code, [entry["line"] for entry in entries]) == (0, lost)
    assert all("quote" in entry["detail"] and "--quote none" in entry["detail"] for entry in entries)
    bad = {entry["raw"] for entry in entries}
    assert out.read_text() == "\n".join(["id,text", *(line for line in lines if line not in bad)]) + "\n"


@pytest.mark.parametrize("name", ["a.csv", "a.tsv"])
@pytest.mark.parametrize("more", [0, 1])
def test_a_quoted_field_with_line_breaks_closes_within_the_limit(
    tmp_path: Path, run: Run, name: str, more: int
) -> None:
    other = "," if name == "a.csv" else "\t"
    cell = "ab\n" * (FIELD_BYTES // 3) + "c" * (FIELD_BYTES % 3 - 1 + more)
    source, stats = tmp_path / name, tmp_path / "stats"
    source.write_text(f'id{other}text\n1{other}"{cell}"\n2{other}words\n')
    ran = run(
        "dedup", source, "-o", tmp_path / "out", "--stats", stats, "--max-unreadable", "1", *_ALL, *SMALL
    )
    assert ran.code == 0
    if more:
        assert "unreadable" in ran.err
        assert len((tmp_path / "out").read_bytes()) < FIELD_BYTES
    else:
        assert (tmp_path / "out").read_bytes() == source.read_bytes()


class _Row(NamedTuple):
    content: bytes | None
    line: int
    quoted: bool


def _joined(blocks: list[bytes], delimiter: bytes, enclose: bool | None, limit: int) -> list[_Row]:
    with patch.object(csv_records, "FIELD_BYTES", limit):
        batches = [*join_records(split_lines(iter(blocks), 1000), 1000, delimiter, Quoting(enclose))]
    assert all(batch.terminated for batch in batches[:-1])
    return [
        _Row(row, line, batch.quoted)
        for batch in batches
        for row, line in zip(batch.rows, batch.lines().tolist(), strict=True)
    ]


_FIELD = re.compile(rb'"(?:[^"]|"")*"(?!")')


def _twin(content: bytes, delimiter: bytes, enclose: bool | None, limit: int) -> Iterator[_Row]:
    """The records of a whole content, each looked for in all that is left."""
    lines = content.split(b"\n")
    lines = lines[:-1] if not lines[-1] else lines
    first = 0
    while first < len(lines):
        left = b"\n".join(lines[first:])
        count, place = 1, 0
        while enclose is not False:
            line_end = (left + b"\n").index(b"\n", place)
            if left[place : place + 1] != b'"':
                place = left.find(delimiter, place, line_end) + 1
                if not place:
                    break
                continue
            found = _FIELD.match(left, place)
            closes = found is not None and re.match(rb"\r?(\n|\Z)|" + delimiter, left[found.end() :])
            size = found.end() - 1 - place if found is not None else 0
            if enclose is None:
                enclose = bool(closes) and size <= limit
            if not enclose or found is None or not closes or (b"\n" in found[0] and size > limit):
                break
            count += found[0].count(b"\n")
            if left[found.end() : found.end() + 1] != delimiter:
                break
            place = found.end() + 1
        yield _Row(b"\n".join(lines[first : first + count]), first + 1, enclose is True)
        first += count


_PIECES = st.lists(st.sampled_from([b'"', b'"', b"\t", b"a", b"\n", b"\r\n", b"\r"]), max_size=40).map(
    b"".join
)


@given(
    _PIECES, st.lists(st.integers(0, 60), max_size=4), st.sampled_from([True, False, None]), st.integers(1, 9)
)
@example(b'a\n"\n"', [], True, 9)
@example(b'a\t"\n"', [], True, 9)
@example(b'a\n"bcd"\n', [], None, 3)
@example(b'a\n"bcd"\n', [], None, 4)
@settings(max_examples=500)
def test_records_are_those_of_the_plain_twin_for_any_blocks(
    content: bytes, cuts: list[int], enclose: bool | None, limit: int
) -> None:
    places = sorted(min(cut, len(content)) for cut in cuts)
    blocks = [content[a:b] for a, b in zip([0, *places], [*places, len(content)], strict=True)]
    assert _joined(blocks, b"\t", enclose, limit) == [*_twin(content, b"\t", enclose, limit)]


_CELL = st.text(st.sampled_from('ab",;\t\n\r 你'), max_size=6)


@given(
    st.lists(st.lists(_CELL, min_size=2, max_size=3), max_size=6),
    st.sampled_from(",;\t"),
    st.sampled_from([csv.QUOTE_ALL, csv.QUOTE_MINIMAL]),
    st.sampled_from(["\n", "\r\n"]),
    st.integers(0, 50),
)
def test_what_csv_writes_is_read_as_csv_reads_it(
    table: list[list[str]], delimiter: str, quoting: int, end: str, cut: int
) -> None:
    if quoting == csv.QUOTE_MINIMAL:
        # Some versions of Python leave a carriage return without quotes, and read it as the end of a row.
        table = [[cell.replace("\r", "") for cell in row] for row in table]
    written = io.StringIO()
    csv.writer(written, delimiter=delimiter, quoting=quoting, lineterminator=end).writerows(table)  # type: ignore[arg-type]
    content = written.getvalue().encode()
    blocks = [content[:cut], content[cut:]]
    for enclose in (True, None) if quoting == csv.QUOTE_ALL else (True,):
        rows = _joined(blocks, delimiter.encode(), enclose, FIELD_BYTES)
        assert all(row.quoted for row in rows)
        texts = [(row.content or b"").decode() for row in rows]
        assert [Dialect(delimiter).fields(text) for text in texts] == table


@given(st.text(st.sampled_from('a,;"\r '), min_size=1, max_size=8))
def test_fields_without_quotes_are_those_of_csv(record: str) -> None:
    try:
        (read,) = csv.reader(io.StringIO(record, newline=""), strict=True)
    except (csv.Error, ValueError):
        read = None
    if record.strip("\r"):
        assert Dialect(",").fields(record) == read
    assert Dialect(",", quoted=False).fields(record) == record.removesuffix("\r").split(",")


_HOSTILE = [
    b'x,"y\n',
    b'"\n',
    b'""\n',
    b'"""\n',
    b'a"","\n',
    b'z","y\n',
    b'x,"y\n' + b'""\n' * 50,
    b'x,"y\n' + b"\n" * 500,
    b'x,"y\n' + b'"" ""a\n' * 90 + b'b"c,"d\n',
    b'"' * 301 + b"\n",
]


@pytest.mark.parametrize("part", _HOSTILE)
@pytest.mark.parametrize("enclose", [True, None])
def test_bytes_are_searched_at_most_twice(part: bytes, enclose: bool | None) -> None:
    content = part * (200_000 // len(part))
    searched = taken = held = 0
    closing, take = csv_records.closing_quote, csv_records._Records._take_line

    def counted(line: bytes, place: int) -> int:
        nonlocal searched
        end = closing(line, place)
        searched += (len(line) if end < 0 else end + 1) - place
        return end

    def counted_line(self: csv_records._Records, line: bytes) -> None:
        nonlocal taken, held
        taken += len(line) + 1
        take(self, line)
        held = max(held, sum(map(len, self._after)))

    blocks = [content[at : at + 4096] for at in range(0, len(content), 4096)]
    with (
        patch.object(csv_records, "closing_quote", counted),
        patch.object(csv_records._Records, "_take_line", counted_line),
        patch.object(csv_records, "FIELD_BYTES", 10_000),
    ):
        rows = sum(
            len(batch)
            for batch in join_records(split_lines(iter(blocks), 1000), 1000, b",", Quoting(enclose))
        )
    assert rows
    assert searched <= 2 * len(content)
    assert taken <= 2 * len(content)
    assert held <= 10_000


def test_rows_behind_an_open_quote_come_out_after_the_limit() -> None:
    seen = 0

    def blocks() -> Iterator[bytes]:
        nonlocal seen
        yield b'id,text\n1,"open\n'
        for _ in range(64):
            seen += 1
            yield b"2,words\n" * (1 << 13)

    lines = 0
    found: list[Rows] = []
    for batch in join_records(split_lines(blocks(), 1 << 22), 1 << 22):
        lines += len(batch)
        found.append(batch)
        assert seen * (1 << 13) - lines <= FIELD_BYTES // 8 + (1 << 13)
    assert lines == 2 + 64 * (1 << 13)
    assert not any(batch.heads for batch in found)


@pytest.mark.parametrize("name", ["a.csv", "a.tsv"])
@pytest.mark.parametrize("content", [b"te\xffxt,n\nwords,1\n", b"id\rtext\r1\rwords\r", b'"id,text\n'])
def test_a_first_row_that_is_no_record_is_told(tmp_path: Path, run: Run, name: str, content: bytes) -> None:
    source = tmp_path / name
    source.write_bytes(content.replace(b",", b"," if name == "a.csv" else b"\t"))
    ran = run("dedup", "-q", source, *setting("input.expect_text=false"), *SMALL)
    readable = name == "a.tsv" and content.startswith(b'"')
    assert (ran.code, f"{source}:1: is not a CSV header" in ran.err) == (
        (0, False) if readable else (1, True)
    )
