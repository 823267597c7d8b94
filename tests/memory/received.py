"""What a producer sends, as its broker gets it: copies of records are written as batches, and read from these."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from twinsieve.pipeline.broker.records import Copies, Messages, Partition, Records
from twinsieve.stages.rows.record_columns import BatchFacts, scan_records
from twinsieve.stages.rows.record_copies import EncodedBatch, copy_records

_BATCH_BYTES = 1 << 12
"""So small that most calls make several batches."""


def received(messages: Messages | Copies, now_ms: int) -> Messages:
    """The messages, each with a time. now_ms: time of one without"""
    if isinstance(messages, Messages):
        stamps = [now_ms if stamp < 0 else stamp for stamp in messages.timestamps_ms]
        return Messages(messages.keys, messages.values, messages.headers, stamps)
    whole = Messages()
    for batch in copy_records([messages.copied(now_ms)], _BATCH_BYTES):
        records = read_batch(batch)
        columns = records.keys, records.values, records.headers, records.timestamps_ms
        for row in zip(*columns, strict=True):
            whole.add(*row)
    return whole


def read_batch(batch: EncodedBatch) -> Records:
    """The records of a batch, from offset 0 on."""
    content = np.frombuffer(batch.records, np.uint8)
    facts = BatchFacts(len(content), 0, 0, batch.rows, batch.first_ms, batch.latest_ms, False)
    columns = scan_records(content, [facts], b"twinsieve-")
    assert columns is not None
    return Records(Partition("", 0), content, columns)


def listed(parts: Sequence[Messages | Copies]) -> Messages:
    """All messages of an emission for one partition."""
    whole = Messages()
    for part in parts:
        messages = part.listed() if isinstance(part, Copies) else part
        columns = messages.keys, messages.values, messages.headers, messages.timestamps_ms
        for row in zip(*columns, strict=True):
            whole.add(*row)
    return whole
