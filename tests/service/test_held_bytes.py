"""What strangers write is held within bounds that are counted."""

from __future__ import annotations

import gc
import tracemalloc

from tests.driver import LOG
from twinsieve.pipeline.broker.records import Records
from twinsieve.pipeline.worker.asks import HEADER_BYTES, ROW_BYTES, bytes_held


def test_headers_count_as_bytes_held() -> None:
    headers = [("a" * 7, b"b" * 1_000), ("empty", None)]
    records = Records(
        LOG, [1, 2, 3], [0, 0, 0], [b"key", None, None], [b"value", None, b"v"], [headers, [], []]
    )
    assert bytes_held(records) == 3 + 5 + 1 + 7 + 1_000 + 5 + 2 * HEADER_BYTES + 3 * ROW_BYTES


def test_empty_headers_cost_what_their_objects_take() -> None:
    n = 20_000
    gc.collect()
    tracemalloc.start()
    try:
        headers = [[(f"h{row}", b"v%d" % row)] for row in range(n)]
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    named = sum(len(name) + len(value) for ((name, value),) in headers)
    # Beside the list around them, which every message with headers has once.
    assert HEADER_BYTES / 2 < (taken - named) / n - 64 < HEADER_BYTES + 32
