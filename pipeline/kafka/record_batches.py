"""Record batches as a broker sends them: what the header of one says, and its records as columns."""

from __future__ import annotations

import struct
from typing import NamedTuple

import numpy as np
from crc32c import crc32c

from twinsieve.pipeline.broker.records import NO_TIMESTAMP, OWN_HEADERS, Partition, Records
from twinsieve.pipeline.kafka.unpack_batches import UnpackError, unpack
from twinsieve.stages.rows.record_batch import BATCH_HEADER_BYTES
from twinsieve.stages.rows.record_columns import BatchFacts, scan_records

_HEADER = struct.Struct(">qiibIhiqqqhii")
_FORMAT = 2
_CHECKED_FROM = 21
"""The checksum is over the bytes from here on."""
_CODEC, _BY_BROKER, _TRANSACTIONAL, _CONTROL = 7, 8, 16, 32


class BatchHeader(NamedTuple):
    """The header of a batch in format version 2, field by field.

    source: https://kafka.apache.org/documentation/#recordbatch
    """

    base_offset: int
    length: int
    epoch: int
    version: int
    checksum: int
    attributes: int
    last_delta: int
    first_ms: int
    latest_ms: int
    producer_id: int
    producer_epoch: int
    sequence: int
    records: int

    @property
    def is_control(self) -> bool:
        """Whether the batch marks the end of a transaction, and holds no message."""
        return bool(self.attributes & _CONTROL)

    @property
    def is_transactional(self) -> bool:
        """Whether the batch is part of a transaction."""
        return bool(self.attributes & _TRANSACTIONAL)

    @property
    def last_offset(self) -> int:
        """The last offset of the batch, whose message may be gone."""
        return self.base_offset + self.last_delta


def header_of(packed: memoryview) -> BatchHeader | None:
    """The header of a batch; None for one of an older format, or one that is cut off."""
    if len(packed) < BATCH_HEADER_BYTES:
        return None
    header = BatchHeader(*_HEADER.unpack_from(packed))
    return header if header.version == _FORMAT else None


def is_whole(packed: memoryview, header: BatchHeader) -> bool:
    """Whether the checksum of a batch is right."""
    return bool(crc32c(packed[_CHECKED_FROM:]) == header.checksum)


def decode_batch(
    partition: Partition, packed: memoryview, header: BatchHeader, max_bytes: int
) -> Records | None:
    """The messages of a batch whose checksum is right; None if it cannot be unpacked, or if its records are
    damaged or unusual (`scan_records`).

    max_bytes: the most bytes that it may unpack to
    """
    content: memoryview | bytes = packed[BATCH_HEADER_BYTES:]
    codec = header.attributes & _CODEC
    if codec:
        try:
            content = unpack(codec, bytes(content), max_bytes)
        except UnpackError:
            return None
    by_broker = bool(header.attributes & _BY_BROKER)
    times = header.first_ms, header.latest_ms
    facts = BatchFacts(header.base_offset, header.epoch, header.records, *times, by_broker)
    whole = np.frombuffer(content, np.uint8)
    columns = scan_records(whole, facts, OWN_HEADERS.encode())
    if columns is None:
        return None
    np.maximum(columns.times_ms, NO_TIMESTAMP, out=columns.times_ms)
    return Records(partition, whole, columns, by_broker)
