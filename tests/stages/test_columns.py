"""Rows selected, joined, written and read back equal a plain list of rows, whatever columns a set declares."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from twinsieve.pipeline.wire.column_bytes import (
    arrays_of,
    decode_columns,
    encode_columns,
    row_bytes,
)
from twinsieve.stages.columns import (
    Columns,
    Dim,
    Packed,
    PerRow,
    Places,
    Pooled,
    Sent,
    Starts,
    declared,
    starts_of,
)
from twinsieve.stages.contract import Verdicts
from twinsieve.stages.errors import StateError


@dataclass(slots=True)
class Inner(Columns):
    letters: Annotated[NDArray[np.uint32], Packed("<u4")]
    starts: Annotated[NDArray[np.int64], Starts("<u2", max_sent=5)]
    marks: Annotated[NDArray[np.uint8], Packed("u1", fill=3, sent=Sent.NOT)]
    is_odd: Annotated[NDArray[np.bool_], PerRow("?")]


@dataclass(slots=True)
class Outer(Columns):
    numbers: Annotated[NDArray[np.int64], PerRow("<i8", sent=Sent.PLAIN)]
    pairs: Annotated[NDArray[np.uint16], PerRow("<u2", (Dim("width", "B", usual=2),))]
    inner: Inner
    pool: Annotated[NDArray[np.uint8], Pooled("u1", (3,), by="places", sent=Sent.PLAIN)]
    places: Annotated[NDArray[np.int32], Places("<i4", of="pool")]
    unsent: Annotated[NDArray[np.int16], PerRow("<i2", fill=-4, sent=Sent.NOT)]


Row = tuple[int, str, bool]
"""(number, letters, has an entry in the pool)"""

rows = st.lists(
    st.tuples(st.integers(-(2**63), 2**63 - 1), st.text("ab汉👍", max_size=9), st.booleans()), max_size=12
)


def columns_of(given: list[Row]) -> Outer:
    letters = [ord(letter) for _, text, _ in given for letter in text]
    has = np.array([held for *_, held in given], np.bool_)
    numbers = np.array([number for number, *_ in given], np.int64)
    inner = Inner(
        letters=np.array(letters, np.uint32),
        starts=starts_of(np.array([len(text) for _, text, _ in given], np.int64)),
        marks=np.array([letter % 7 for letter in letters], np.uint8),
        is_odd=numbers % 2 == 1,
    )
    return Outer(
        numbers=numbers,
        pairs=np.array([[number & 0xFFFF, number >> 16 & 0xFFFF] for number, *_ in given], np.uint16).reshape(
            -1, 2
        ),
        inner=inner,
        pool=np.array([[number & 0xFF] * 3 for number, _, held in given if held], np.uint8).reshape(-1, 3),
        places=np.where(has, np.cumsum(has) - 1, -1).astype(np.int32),
        unsent=(numbers % 100).astype(np.int16),
    )


def listed(columns: Outer) -> list[Any]:
    """Each row as plain values, with what its places lead to."""
    columns.check()
    inner = columns.inner
    found = []
    for row in range(len(columns)):
        part = slice(int(inner.starts[row]), int(inner.starts[row + 1]))
        place = int(columns.places[row])
        found.append(
            (
                int(columns.numbers[row]),
                columns.pairs[row].tolist(),
                inner.letters[part].tolist(),
                inner.marks[part].tolist(),
                bool(inner.is_odd[row]),
                columns.pool[place].tolist() if place >= 0 else None,
                int(columns.unsent[row]),
            )
        )
    return found


@given(rows, st.data())
def test_selected_rows_equal_those_of_a_list(given: list[Row], data: st.DataObject) -> None:
    columns, plain = columns_of(given), listed(columns_of(given))
    low = data.draw(st.integers(0, len(given)))
    high = data.draw(st.integers(low, len(given)))
    assert listed(columns.slice(low, high)) == plain[low:high]
    mask = data.draw(st.lists(st.booleans(), min_size=len(given), max_size=len(given)))
    assert listed(columns.take(np.array(mask, np.bool_))) == [
        row for row, wanted in zip(plain, mask, strict=True) if wanted
    ]
    order = data.draw(st.permutations(range(len(given))))
    assert listed(columns.take(np.array(order, np.int64))) == [plain[row] for row in order]


@given(st.lists(rows, min_size=1, max_size=4))
def test_joined_rows_equal_joined_lists(parts: list[list[Row]]) -> None:
    joined = Outer.concat([columns_of(part) for part in parts])
    assert listed(joined) == [row for part in parts for row in listed(columns_of(part))]


@given(rows)
def test_what_is_written_is_read(given: list[Row]) -> None:
    columns = columns_of(given)
    data = encode_columns(columns)
    read, end = decode_columns(Outer, memoryview(b"front" + data + b"behind"), 5, "here")
    assert end == 5 + len(data)
    cut = columns_of([(number, text[:5], held) for number, text, held in given])
    cut.unsent[:], cut.inner.marks[:] = -4, 3
    assert listed(read) == listed(cut)
    sent = sum(array.nbytes for how in (Sent.COMPRESSED, Sent.PLAIN) for array in arrays_of(columns, how))
    assert sent <= int(row_bytes(columns).sum())


@given(rows, st.data())
def test_damage_is_refused_or_reads_as_rows_of_the_declared_shape(
    given: list[Row], data: st.DataObject
) -> None:
    whole = bytearray(encode_columns(columns_of(given)))
    for _ in range(data.draw(st.integers(1, 4))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    with suppress(StateError):
        read, _ = decode_columns(Outer, memoryview(bytes(whole)), 0, "here")
        read.check()


def test_rows_are_written_over_others() -> None:
    verdicts = Verdicts.blank(4, fill={"kinds": 3})
    others = Verdicts.blank(2, fill={"kinds": 1, "leaders": 9})
    verdicts.put(np.array([False, True, False, True]), others)
    assert verdicts.kinds.tolist() == [3, 1, 3, 1]
    assert verdicts.leaders.tolist() == [-(2**63), 9, -(2**63), 9]
    with pytest.raises(TypeError, match="letters has no room of its own for each row"):
        columns_of([]).inner.put(slice(0, 0), columns_of([]).inner)


def test_pooled_entries_go_with_rows_that_are_written_over_others() -> None:
    verdicts, others = Verdicts.blank(4), Verdicts.blank(2)
    room = verdicts.details.shape[1:]
    verdicts.details, verdicts.detail_rows[:2] = np.full((2, *room), 7, np.uint32), [1, 0]
    others.details, others.detail_rows[1] = np.full((1, *room), 9, np.uint32), 0
    verdicts.put(np.array([False, True, False, True]), others)
    verdicts.check()
    assert verdicts.detail_rows.tolist() == [1, -1, -1, 2]
    assert verdicts.details[:, 0, 0].tolist() == [7, 7, 9]
    assert verdicts.take(np.array([0, 3])).details[:, 0, 0].tolist() == [7, 9]


@pytest.mark.parametrize(
    ("column", "value", "said"),
    [
        ("numbers", np.zeros(2, np.int32), "numbers is int32, not int64"),
        ("numbers", np.zeros(3, np.int64), "pairs has 2 rows, not 3"),
        ("pairs", np.zeros(2, np.uint16), r"pairs has the shape \(2,\)"),
        ("pool", np.zeros((1, 4), np.uint8), r"pool has the shape \(1, 4\)"),
        ("pool", np.zeros((0, 3), np.uint8), "pool has 0 entries, and places name others"),
        ("starts", np.array([0, 2, 1]), "starts goes back"),
        ("starts", np.array([0, 1]), r"starts is int64\[2\], not int64\[3\]"),
        ("letters", np.zeros(9, np.uint32), "letters has 9 values, and starts end at 2"),
    ],
)
def test_a_column_that_contradicts_its_declaration_is_named(column: str, value: Any, said: str) -> None:
    columns = columns_of([(1, "a", True), (2, "b", False)])
    setattr(columns if hasattr(columns, column) else columns.inner, column, value)
    with pytest.raises(ValueError, match=said):
        columns.check()


def test_a_field_that_does_not_say_what_it_holds_is_refused() -> None:
    with pytest.raises(TypeError, match=r"Silent\.numbers has no column as its annotation"):
        declared(Silent)


@dataclass(slots=True)
class Silent(Columns):
    numbers: NDArray[np.int64]
