"""Rows cut from blocks equal what a plain split gives, however the blocks fall."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.call_count import calls_made
from twinsieve.pipeline.files.formats.csv_records import join_records
from twinsieve.pipeline.files.rows import FIRST_ROWS, Rows, split_lines
from twinsieve.pipeline.messages.unseen import ENOUGH_ROWS

_TEXT = st.binary(max_size=60) | st.lists(
    st.sampled_from([b"a", b"\n", b"\r\n", b'"', b",", b"\xe4\xbd\xa0"])
).map(b"".join)


@st.composite
def _blocks(draw: st.DrawFn) -> list[bytes]:
    content = draw(_TEXT)
    cuts = sorted(draw(st.lists(st.integers(0, len(content)), max_size=4)))
    return [content[a:b] for a, b in zip([0, *cuts], [*cuts, len(content)], strict=True)]


def _rows(batches: Iterator[Rows]) -> tuple[list[bytes | None], bool]:
    rows: list[bytes | None] = []
    terminated = True
    for batch in batches:
        rows += batch.rows
        terminated = batch.terminated
    return rows, terminated


@given(_blocks())
def test_lines_are_those_of_a_plain_split(blocks: list[bytes]) -> None:
    content = b"".join(blocks)
    rows, terminated = _rows(split_lines(iter(blocks), 1000))
    assert (
        b"\n".join(row for row in rows if row is not None) + (b"\n" if rows and terminated else b"")
        == content
    )
    assert len(rows) == content.count(b"\n") + (bool(content) and not content.endswith(b"\n"))


@given(_blocks(), st.integers(1, 8))
def test_only_rows_over_the_limit_are_taken_out(blocks: list[bytes], limit: int) -> None:
    content = b"".join(blocks)
    plain = content.split(b"\n")
    if plain[-1] == b"":
        plain.pop()
    heads: list[tuple[bytes, int]] = []
    rows: list[bytes | None] = []
    for batch in split_lines(iter(blocks), limit):
        heads += [batch.heads[at] for at in sorted(batch.heads)]
        assert [at for at, row in enumerate(batch.rows) if row is None] == sorted(batch.heads)
        rows += batch.rows
    assert rows == [row if len(row) <= limit else None for row in plain]
    assert heads == [(row[:256], len(row)) for row in plain if len(row) > limit]


def test_a_row_over_the_limit_is_not_held() -> None:
    seen = 0

    def blocks() -> Iterator[bytes]:
        nonlocal seen
        for _ in range(1000):
            seen += 1
            yield b"x" * 1000
        yield b"\nshort\n"

    (batch,) = split_lines(blocks(), 5000)
    assert [*batch.rows] == [None, b"short"]
    assert batch.heads == {0: (b"x" * 256, 1_000_000)}
    assert seen == 1000


_FIELD = st.text(st.sampled_from('ab",;\n\r你'), max_size=6)


@given(st.lists(st.lists(_FIELD, min_size=2, max_size=2), max_size=6), st.sampled_from(",;"), st.data())
def test_csv_records_are_those_that_were_written(
    table: list[list[str]], delimiter: str, data: st.DataObject
) -> None:
    written = io.StringIO()
    csv.writer(written, delimiter=delimiter, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows(table)
    content = written.getvalue().encode()
    cut = data.draw(st.integers(0, len(content)))
    lines = split_lines(iter([content[:cut], content[cut:]]), 1000)
    rows, _ = _rows(join_records(lines, 1000, delimiter.encode()))
    texts = [io.StringIO((row or b"").decode(), newline="") for row in rows]
    assert [next(csv.reader(text, delimiter=delimiter, strict=True)) for text in texts] == table


def test_a_lost_quote_costs_one_record() -> None:
    lines = [b'a,"lost', *[b"x" * 10] * 20, b"good,row", b'"also, good",row']
    rows, _ = _rows(join_records(split_lines(iter([b"\n".join(lines) + b"\n"]), 100), 100))
    assert rows == lines


_PIECES = st.lists(st.sampled_from([b'"', b",", b"a", b"\n"]), max_size=40).map(b"".join)


@given(_PIECES)
def test_csv_records_end_where_the_reader_of_csv_ends_them(content: bytes) -> None:
    try:
        whole = list(csv.reader(io.StringIO(content.decode() + "\n", newline=""), strict=True))
    except csv.Error:
        whole = None
    rows, _ = _rows(join_records(split_lines(iter([content + b"\n"]), 1000), 1000))
    found = [(row or b"").decode() for row in rows]
    if whole is not None:
        assert [next(csv.reader(io.StringIO(f"{one}\n", newline=""))) for one in found] == whole
    assert "\n".join(found) == content.decode()


def test_a_quote_inside_a_field_swallows_no_rows() -> None:
    lines = [b'1,a 5" pipe,x', b"2,b,y", b'3,"c, ""d""",z', b"4,e,w"]
    (batch,) = join_records(split_lines(iter([b"\n".join(lines) + b"\n"]), 100), 100)
    assert [*batch.rows] == lines


def test_csv_records_know_their_lines() -> None:
    content = b'h,t\n1,"a\nb"\n2,c\n'
    (batch,) = join_records(split_lines(iter([content]), 100), 100)
    assert [*batch.rows] == [b"h,t", b'1,"a\nb"', b"2,c"]
    assert batch.lines_of == [1, 2, 1]


def test_the_first_lines_of_many_are_a_batch_of_their_own() -> None:
    lines = [b"%d" % number for number in range(5_000)]
    first, rest, last = split_lines(iter([b"\n".join(lines) + b"\n", b"a\nb\n"]), 100)
    assert ([*first.rows], first.line) == (lines[:FIRST_ROWS], 1)
    assert ([*rest.rows], rest.line) == (lines[FIRST_ROWS:], FIRST_ROWS + 1)
    assert ([*last.rows], last.line) == ([b"a", b"b"], 5_001)
    (few,) = split_lines(iter([b"\n".join(lines[: 2 * FIRST_ROWS]) + b"\n"]), 100)
    assert [*few.rows] == lines[: 2 * FIRST_ROWS]
    assert FIRST_ROWS >= ENOUGH_ROWS


@given(st.lists(st.sampled_from([b"", b" ", b"\r", b"\t ", b"a", b" a", b"\x1f"]), max_size=5))
def test_filled_rows_are_those_that_a_strip_leaves(rows: list[bytes]) -> None:
    assert [*Rows([*rows], 1).filled()] == [number for number, row in enumerate(rows) if row.strip()]


def test_rows_of_blanks_are_told_from_others() -> None:
    (batch,) = split_lines(iter([b'\n {"a": 1}\n \t\n\r\nxxxxxxxxxxxx\n\t\n']), 10)
    assert (batch.filled(), batch.filled(b"\t")) == ([1, 4], [1, 2, 4, 5])
    only = batch.only([1, 4])
    assert ([*only.rows], only.heads) == ([b' {"a": 1}', None], {1: (b"xxxxxxxxxxxx", 12)})


@pytest.mark.parametrize("csv_records", [False, True])
def test_very_many_blank_lines_cost_no_call_each(csv_records: bool) -> None:
    def batches() -> int:
        lines = split_lines(iter([b"\n" * (1 << 16)] * 16), 100)
        found = list(join_records(lines, 100) if csv_records else lines)
        assert not any(batch.filled() for batch in found)
        return sum(len(batch.rows) for batch in found)

    assert batches() == 1 << 20
    assert calls_made(batches) < 1000
