"""What strangers write is held within bounds that are counted."""

from __future__ import annotations

from tests.driver import LOG
from twinsieve.pipeline.broker.records import Records
from twinsieve.pipeline.worker.asks import bytes_held
from twinsieve.pipeline.worker.session import ROW_BYTES


def test_headers_count_as_bytes_held() -> None:
    headers = [("a" * 7, b"b" * 1_000), ("empty", None)]
    records = Records.of(
        LOG, [1, 2, 3], [0, 0, 0], [b"key", None, None], [b"value", None, b"v"], [headers, [], []]
    )
    assert bytes_held(records) == 3 + 5 + 1 + 1 + 7 + 2 + 1_000 + 1 + 5 + 1 + 3 * ROW_BYTES
