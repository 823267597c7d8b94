"""Rows cut from blocks equal what a plain split gives, however the blocks fall."""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Iterator
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from tests.call_count import calls_made
from twinsieve.pipeline.files import FileError
from twinsieve.pipeline.files.rows import Rows, join_records, split_lines
from twinsieve.pipeline.files.source import InputSource

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
    assert batch.rows == [None, b"short"]
    assert batch.heads == {0: (b"x" * 256, 1_000_000)}
    assert seen == 1000


_FIELD = st.text(st.sampled_from('ab",\n\r你'), max_size=6)


@given(st.lists(st.lists(_FIELD, min_size=2, max_size=2), max_size=6), st.data())
def test_csv_records_are_those_that_were_written(table: list[list[str]], data: st.DataObject) -> None:
    written = io.StringIO()
    csv.writer(written, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows(table)
    content = written.getvalue().encode()
    cut = data.draw(st.integers(0, len(content)))
    rows, _ = _rows(join_records(split_lines(iter([content[:cut], content[cut:]]), 1000), 1000))
    assert all(row is not None for row in rows)
    read = [next(csv.reader(io.StringIO((row or b"").decode(), newline=""), strict=True)) for row in rows]
    assert read == table


def test_a_lost_quote_costs_one_record() -> None:
    lines = [b'a,"lost', *[b"x" * 10] * 20, b"good,row", b'"also, good",row']
    rows, _ = _rows(join_records(split_lines(iter([b"\n".join(lines) + b"\n"]), 100), 100))
    assert rows.count(None) == 1
    assert rows[-2:] == [b"good,row", b'"also, good",row']


_PIECES = st.lists(st.sampled_from([b'"', b",", b"a", b"\n"]), max_size=40).map(b"".join)


@given(_PIECES)
def test_csv_records_end_where_the_reader_of_csv_ends_them(content: bytes) -> None:
    batches = join_records(split_lines(iter([content + b"\n"]), 1000), 1000)
    found = [row.decode() for batch in batches for row in batch.rows if row is not None]
    records = [list(csv.reader(io.StringIO(f"{one}\n", newline=""))) for one in found]
    whole = list(csv.reader(io.StringIO("".join(f"{one}\n" for one in found), newline="")))
    assert all(len(record) == 1 for record in records)
    assert [record[0] for record in records[:-1]] == whole[: len(records) - 1]


def test_a_quote_inside_a_field_swallows_no_rows() -> None:
    lines = [b'1,a 5" pipe,x', b"2,b,y", b'3,"c, ""d""",z', b"4,e,w"]
    (batch,) = join_records(split_lines(iter([b"\n".join(lines) + b"\n"]), 100), 100)
    assert batch.rows == lines


def test_csv_records_know_their_lines() -> None:
    content = b'h,t\n1,"a\nb"\n2,c\n'
    (batch,) = join_records(split_lines(iter([content]), 100), 100)
    assert batch.rows == [b"h,t", b'1,"a\nb"', b"2,c"]
    assert batch.lines_of == [1, 2, 1]


def test_rows_of_blanks_are_told_from_others() -> None:
    (batch,) = split_lines(iter([b'\n {"a": 1}\n \t\n\r\nxxxxxxxxxxxx\n\t\n']), 10)
    assert (batch.filled(), batch.filled(b"\t")) == ([1, 4], [1, 2, 4, 5])
    only = batch.only([1, 4])
    assert (only.rows, only.heads) == ([b' {"a": 1}', None], {1: (b"xxxxxxxxxxxx", 12)})


@pytest.mark.parametrize("csv_records", [False, True])
def test_very_many_blank_lines_cost_no_call_each(csv_records: bool) -> None:
    def batches() -> int:
        lines = split_lines(iter([b"\n" * (1 << 16)] * 16), 100)
        found = list(join_records(lines, 100) if csv_records else lines)
        assert [batch.filled() for batch in found] == [[]] * 16
        return sum(len(batch.rows) for batch in found)

    assert batches() == 1 << 20
    assert calls_made(batches) < 1000


def _content(path: Path) -> bytes:
    with InputSource(str(path)) as source:
        return b"".join(source.blocks())


def test_compression_is_told_by_the_first_bytes(tmp_path: Path) -> None:
    content = b"line\n" * 500_000
    for packed in (
        content,
        gzip.compress(content[:1000]) + gzip.compress(content[1000:]),
        zstandard.compress(content[:1000]) + zstandard.compress(content[1000:]),
    ):
        path = tmp_path / "no-ending"
        path.write_bytes(packed)
        assert _content(path) == content


def test_a_byte_order_mark_is_no_content(tmp_path: Path) -> None:
    path = tmp_path / "f"
    for packed in (b"\xef\xbb\xbfa\n", gzip.compress(b"\xef\xbb\xbfa\n")):
        path.write_bytes(packed)
        assert _content(path) == b"a\n"
    path.write_bytes(b"")
    assert _content(path) == b""


@pytest.mark.parametrize(
    "pack", [gzip.compress, zstandard.ZstdCompressor(write_checksum=True).compress], ids=["gzip", "zstd"]
)
def test_cut_off_or_damaged_compression_is_an_error(tmp_path: Path, pack: object) -> None:
    assert callable(pack)
    packed = pack(bytes(range(256)) * 1000)
    path = tmp_path / "f"
    for at in (len(packed) - 1, len(packed) // 2, 12):
        path.write_bytes(packed[:at])
        with pytest.raises(FileError, match="ends in the middle of its compressed data"):
            _content(path)
    path.write_bytes(packed[:20] + b"\xff" * 40 + packed[60:])
    with pytest.raises(FileError, match=r"compressed data is damaged|ends in the middle"):
        _content(path)


@pytest.mark.parametrize(("name", "magic"), [("f.gz", b"\x1f\x8b"), ("f.zst", b"\x28\xb5\x2f\xfd")])
def test_a_compressed_file_cut_off_in_its_first_bytes_is_an_error(
    tmp_path: Path, name: str, magic: bytes
) -> None:
    path = tmp_path / name
    for kept in range(len(magic) + 1):
        path.write_bytes(magic[:kept])
        with pytest.raises(FileError, match="ends in the middle of its compressed data"):
            _content(path)
    path.write_bytes(b"a\n")
    assert _content(path) == b"a\n"


def test_a_packed_bomb_does_not_come_out_at_once(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(zstandard.compress(b"\0" * (256 << 20)))
    with InputSource(str(path)) as source:
        sizes = [len(block) for block in source.blocks()]
    assert sum(sizes) == 256 << 20
    assert max(sizes) <= 33 << 20
