"""Copied records are those that are written from their parts, byte for byte."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from kafka.record.memory_records import MemoryRecords, MemoryRecordsBuilder

from tests.stages.rows.library_batches import written_by_library
from twinsieve.pipeline.broker.records import Copies, Messages, Partition, Records
from twinsieve.pipeline.worker.added_headers import HeaderTable
from twinsieve.stages.rows.record_copies import AddedHeaders, copy_records

_BYTES = st.none() | st.binary(max_size=20) | st.sampled_from([b"x" * 63, b"x" * 64, b"y" * 9_000])
_HEADERS = st.lists(st.tuples(st.sampled_from(["n", "é", "\udcff"]), _BYTES), max_size=2)
_TIMES = st.just(-1) | st.integers(0, 2**41)
_NUMBERS = st.sampled_from([-1, 0, 9, 10, 9_999, 10_000, 10_001, 2**40, 2**63 - 1])
_TEXTS = st.none() | st.sampled_from([b"", b"near", b"posts[3]@", b"z" * 70])
_ADDED = st.lists(st.tuples(_TEXTS, _NUMBERS), min_size=3, max_size=3)
_ROWS = st.lists(st.tuples(_TIMES, _BYTES, _BYTES, _HEADERS, _ADDED), max_size=12)
_NOW_MS = 1_700_000_000_000
_DECIMALS = (0, 4, 1)


def _copies(rows: list[Any], chosen: list[int]) -> Copies:
    """Some of these rows with what is added to them."""
    columns = [[row[place] for row in rows] for place in range(5)]
    records = Records.of(Partition("in", 0), range(len(rows)), *columns[:4])
    table = HeaderTable(len(chosen))
    for place, decimals in enumerate(_DECIMALS):
        added = [rows[row][4][place] for row in chosen]
        texts = table.numbers_of([text for text, _ in added])
        numbers = np.array([number for _, number in added], np.int64)
        table.add(f"name-{place}", texts=texts, numbers=numbers, decimals=decimals)
    return Copies(records, np.array(chosen, np.int64), table.headers())


def _written(text: bytes | None, number: int, decimals: int) -> bytes:
    if number < 0:
        return text or b""
    whole, rest = divmod(number, 10**decimals)
    digits = f"{whole}.{rest:0{decimals}}" if decimals else str(whole)
    return (text or b"") + digits.encode()


def _by_row(rows: list[Any], chosen: list[int]) -> list[tuple[Any, ...]]:
    """Time, key, value and all headers of each."""
    written = []
    for row in chosen:
        stamp, key, value, headers, added = rows[row]
        more = [
            (f"name-{place}", _written(text, number, decimals))
            for place, ((text, number), decimals) in enumerate(zip(added, _DECIMALS, strict=True))
            if text is not None or number >= 0
        ]
        written.append((_NOW_MS if stamp < 0 else stamp, key, value, [*headers, *more]))
    return written


@given(_ROWS, st.data(), st.sampled_from([62, 100, 300, 10_000, 1 << 20]))
@example([(-1, None, None, [("n", None)], [(None, -1), (b"", 0), (b"a", 15)])] * 3, None, 100)
def test_copies_are_what_their_parts_would_be_written_as(
    rows: list[Any], data: Any, batch_bytes: int
) -> None:
    chosen = [*range(len(rows))]
    if data is not None:
        chosen = sorted(data.draw(st.sets(st.sampled_from(chosen)))) if rows else []
    copies = _copies(rows, chosen)
    wanted = _by_row(rows, chosen)
    listed = copies.listed()
    headers = [[*each] for each in listed.headers]
    assert [*zip(listed.keys, listed.values, headers, strict=True)] == [each[1:] for each in wanted]
    expected = written_by_library(wanted, batch_bytes)
    half = len(chosen) // 2
    parts = [copies.only(np.arange(half)), copies.only(np.arange(half, len(chosen)))]
    made = copy_records([part.copied(_NOW_MS) for part in parts], batch_bytes)
    assert [each._replace(records=bytes(each.records)) for each in made] == expected


@given(_ROWS, st.sampled_from([62, 100, 150, 300, 10_000, 1 << 20]))
@example([(5, None, None, [], [])], 61)
@example([(2**41, b"", b"", [], []), (0, b"k", b"v" * 63, [("é", None)], [])] * 2, 1 << 20)
def test_messages_are_written_as_the_library_writes_them(rows: list[Any], batch_bytes: int) -> None:
    messages = Messages()
    for stamp, key, value, headers, _ in rows:
        messages.add(key, value, headers, stamp)
    wanted = [(_NOW_MS if row[0] < 0 else row[0], *row[1:4]) for row in rows]
    made = copy_records([messages.copied(_NOW_MS)], batch_bytes)
    assert [each._replace(records=bytes(each.records)) for each in made] == written_by_library(
        wanted, batch_bytes
    )


def test_more_records_than_a_byte_counts_are_read_back_as_they_were() -> None:
    count, messages = 300, Messages()
    for row in range(count):
        messages.add(None, b"%d" % row, [("n", b"")], _NOW_MS - row)
    (batch,) = copy_records([messages.copied(0)], 1 << 20)
    builder = MemoryRecordsBuilder(2, 0, 1 << 20)
    inner = builder._builder
    inner._buffer += batch.records
    inner._num_records, inner._last_offset = batch.rows, batch.rows - 1
    inner._first_timestamp, inner._max_timestamp = batch.first_ms, batch.latest_ms
    builder.close()
    records = [record for each in MemoryRecords(builder.buffer()) for record in each]
    assert [(record.offset, record.timestamp, record.value) for record in records] == [
        (row, _NOW_MS - row, b"%d" % row) for row in range(count)
    ]


def test_no_copies_are_no_batches() -> None:
    assert copy_records([], 100) == []
    assert copy_records([_copies([], []).copied(0)], 100) == []


@pytest.mark.parametrize("spare", [0, 1])
def test_a_batch_ends_before_the_record_that_does_not_fit(spare: int) -> None:
    records = Records.of(Partition("in", 0), range(2), [0, 0], values=[b"v" * 50] * 2)
    copies = Copies(records, np.arange(2), AddedHeaders.none(2)).copied(0)
    one = copy_records([copies], 1)[0]
    made = copy_records([copies], 61 + 2 * len(one.records) - spare)
    assert len(made) == 1 + spare
