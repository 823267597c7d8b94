"""Records of kept messages: one cache line each, without holes, also after a load."""

from __future__ import annotations

import numpy as np
import pytest

from tests.generated_posts import generate
from tests.property.streams import PARTS, batch_of
from tests.whole_state import from_bytes, to_bytes
from twinsieve.stages.contract import NearConfig, SieveConfig, Window
from twinsieve.stages.judge.batch_sieve import BatchSieve
from twinsieve.stages.window.record import RECORD, record_type

CACHE_LINE = 64


@pytest.mark.parametrize(
    ("text", "lengths", "size"), [(True, True, 64), (False, True, 24), (False, False, 16)]
)
def test_a_record_has_no_holes(text: bool, lengths: bool, size: int) -> None:
    """A copy of an array leaves out holes, and then two equal states would differ in their bytes."""
    record = record_type(text, lengths)
    assert record.itemsize == sum(field[0].itemsize for field in (record.fields or {}).values()) == size


@pytest.mark.parametrize("window", [1, 2, 50])
def test_records_lie_in_whole_cache_lines_and_kernels_see_one_type_of_column(window: int) -> None:
    config = SieveConfig(near=NearConfig(window=Window(window)))
    sieve = BatchSieve(config)
    sieve.judge(batch_of([(post["text"], None, 0, 0) for post in generate(30, 1)]))
    loaded = from_bytes(to_bytes(sieve), config)
    for ring in (sieve.near.ring, loaded.near.ring):
        assert ring.records.itemsize == RECORD.itemsize == CACHE_LINE
        assert ring.records.ctypes.data % CACHE_LINE == 0
        # Numba takes a contiguous column for another type, and would compile every kernel again.
        assert not ring.columns.times.flags.c_contiguous
        assert not ring.columns.bags.flags.c_contiguous
    assert np.array_equal(sieve.near.ring.records, loaded.near.ring.records)


@pytest.mark.parametrize("method", ["hamming", "signatures", "none"])
@pytest.mark.parametrize("window", [1, 2, 50])
def test_columns_that_are_not_in_use_are_never_taken_for_columns_of_slots(method: str, window: int) -> None:
    near = NearConfig(method=method, window=Window(window), parts=PARTS)  # type: ignore[arg-type]
    ring = BatchSieve(SieveConfig(near=near)).near.ring
    assert len(ring.columns.offsets) != ring.capacity
    assert len(ring.columns.times) == ring.capacity
