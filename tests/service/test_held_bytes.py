"""What strangers write is held within bounds that are counted."""

from __future__ import annotations

import gc
import tracemalloc

import orjson

from tests.driver import LOG
from twinsieve.pipeline.broker.records import Records
from twinsieve.pipeline.messages import reader
from twinsieve.pipeline.settings.model import Settings
from twinsieve.pipeline.worker.asks import HEADER_BYTES, ROW_BYTES, bytes_held


def test_long_times_are_read_and_not_remembered() -> None:
    reader._known_time_ms.cache_clear()
    long = " " * 5_000 + "2024-05-01T12:00:00Z"
    messages = [
        orjson.dumps({"text": "今天天气很好", "created_at": time}) for time in (long, "2024-05-01T12:00:00Z")
    ]
    columns = reader.MessageReader(Settings()).read(messages)
    assert columns.times_ms[1] == 1_714_564_800_000
    assert reader._known_time_ms.cache_info().currsize == 1


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
