"""Records of several partitions that are read together are read as each would be alone."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from twinsieve.pipeline.basics.dead_letter_reasons import DeadLetterReason
from twinsieve.pipeline.broker.records import NO_TIMESTAMP, Partition, Records
from twinsieve.pipeline.messages.reader import MessageReader
from twinsieve.pipeline.settings.model import Settings
from twinsieve.pipeline.worker.record_reader import RecordReader
from twinsieve.stages.judge.scheme import Scheme, SchemeConfig

_SCHEME = Scheme(SchemeConfig())
_VALUES = st.none() | st.sampled_from(
    [b'{"id":"%d","text":"\xe4\xbb\x8a\xe5\xa4\xa9 %d"}' % (number, number) for number in range(40)]
    + [b"no json", b'{"text":null}', b'{"text":7}', b'{"id":"1","created_at":"2024-01-01","text":"a b"}']
)
_ROWS = st.lists(st.tuples(_VALUES, st.sampled_from([NO_TIMESTAMP, 0, 1_700_000_000_000]), st.booleans()))


def _part(number: int, rows: list[Any]) -> tuple[Records, dict[int, DeadLetterReason]]:
    count = len(rows)
    records = Records.of(
        Partition("in", number),
        list(range(count)),
        [stamp for _, stamp, _ in rows],
        [None] * count,
        [value for value, _, _ in rows],
        [()] * count,
        [0] * count,
    )
    refused = {row: DeadLetterReason.BAD_HEADER for row, (_, _, is_refused) in enumerate(rows) if is_refused}
    return records, refused


def _reader() -> RecordReader:
    settings = Settings()
    return RecordReader(MessageReader(settings, passes_null=True), _SCHEME, part="value", stamped=True)


def _columns(batch: Any) -> list[Any]:
    found = []
    for name in batch.__dataclass_fields__:
        value = getattr(batch, name)
        found += _columns(value) if hasattr(value, "__dataclass_fields__") else [(name, value.tolist())]
    return found


@given(st.lists(_ROWS, min_size=1, max_size=4))
def test_each_part_is_read_as_alone(parts: list[Any]) -> None:
    asked = [_part(number, rows) for number, rows in enumerate(parts)]
    before = [list(records.values) for records, _ in asked]
    together = _reader().read_all(asked)
    for (records, refused), (kinds, batch, reasons) in zip(asked, together, strict=True):
        alone_kinds, alone_batch, alone_reasons = _reader().read(records, refused)
        assert kinds.tolist() == alone_kinds.tolist()
        assert reasons == alone_reasons
        assert _columns(batch.take(np.arange(len(batch)))) == _columns(
            alone_batch.take(np.arange(len(alone_batch)))
        )
    assert [list(records.values) for records, _ in asked] == before, "the records are not changed"
