"""A column of byte strings is the list of these strings."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.partitioner.default import murmur2

from twinsieve.stages.rows.byte_column import ByteColumn, as_column
from twinsieve.stages.rows.key_partitions import partitions_of

_STRINGS = st.lists(st.none() | st.binary(max_size=9), max_size=9)


@given(_STRINGS, _STRINGS, st.data())
def test_a_column_is_what_its_list_is(
    first: list[bytes | None], second: list[bytes | None], data: st.DataObject
) -> None:
    column = ByteColumn.of(first)
    assert column == first
    assert [column[place] for place in range(len(first))] == first
    assert column.longest == max((len(each or b"") for each in first), default=0)
    whole = column.joined(ByteColumn.of(second))
    assert whole == first + second
    assert whole.packed() is whole
    low = data.draw(st.integers(0, len(whole)))
    assert whole[low:] == (first + second)[low:]
    rows = sorted(data.draw(st.sets(st.integers(0, len(whole) - 1)))) if len(whole) else []
    some = whole.only(np.array(rows, np.int64))
    packed = some.packed()
    assert packed == some == [(first + second)[row] for row in rows]
    assert bytes(packed.content) == b"".join(filter(None, some))
    assert as_column(some) is some
    assert as_column(first) == first


@pytest.mark.parametrize("partitions", [1, 3, 4, 65_536])
def test_each_key_has_the_partition_that_kafka_python_gives_it(partitions: int) -> None:
    dice = Random(1)
    keys: list[bytes | None] = [dice.randbytes(place % 65) for place in range(10_000)]
    keys[7::1_000] = [None] * len(keys[7::1_000])
    expected = [-1 if key is None else (murmur2(key) & 0x7FFFFFFF) % partitions for key in keys]
    assert partitions_of(ByteColumn.of(keys), partitions).tolist() == expected
