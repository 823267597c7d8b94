"""Record batches as a broker sends them: what the header of one says, and its records as columns."""

from __future__ import annotations

import struct
from typing import NamedTuple

import numpy as np
from crc32c import crc32c

from twinsieve.pipeline.broker.records import NO_TIMESTAMP, OWN_HEADERS, Partition, Records
from twinsieve.pipeline.kafka.unpack_batches import UnpackError, unpack
from twinsieve.stages.rows.record_columns import LEAST_BYTES, BatchFacts, scan_records
from twinsieve.stages.rows.record_copies import BATCH_HEADER_BYTES

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
    def is_stamped_by_broker(self) -> bool:
        """Whether the time of all messages is that at which the broker wrote them (LogAppendTime)."""
        return bool(self.attributes & _BY_BROKER)

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


class BatchGroup:
    """Batches of one partition that are decoded together: a call for each costs as much as a hundred records.

    packed: the batches; rows: records of all; size: their bytes, unpacked
    """

    def __init__(self, partition: Partition, max_bytes: int) -> None:
        """max_bytes: the most bytes that one batch may unpack to"""
        self._partition = partition
        self._max_bytes = max_bytes
        self._contents: list[memoryview | bytes] = []
        self._facts: list[BatchFacts] = []
        self.packed: list[memoryview] = []
        self.rows = self.size = 0

    def has_room(self, header: BatchHeader, most: int, most_bytes: int) -> bool:
        """Whether a batch may be added. most, most_bytes: wanted of all; the first batch may be larger"""
        if header.is_control or not self._facts:
            return True
        is_alike = header.is_stamped_by_broker == self._facts[0].stamped_by_broker
        return is_alike and self.rows + header.records <= most and self.size < most_bytes

    def add(self, packed: memoryview, header: BatchHeader) -> bool:
        """Add a batch whose checksum is right; returns False if it cannot be unpacked, or if its bytes are
        too few for its records."""
        content: memoryview | bytes = packed[BATCH_HEADER_BYTES:]
        codec = header.attributes & _CODEC
        if codec:
            try:
                content = unpack(codec, bytes(content), self._max_bytes)
            except UnpackError:
                return False
        size, records = len(content), header.records
        if not 0 <= records * LEAST_BYTES <= size:
            return False
        times = header.first_ms, header.latest_ms, header.is_stamped_by_broker
        self._facts.append(BatchFacts(size, header.base_offset, header.epoch, records, *times))
        self._contents.append(content)
        self.packed.append(packed)
        self.rows += records
        self.size += size
        return True

    def decode(self) -> Records | None:
        """The messages of all batches, of which there is at least one; None if the records of one are damaged
        or unusual (`scan_records`)."""
        contents, self._contents = self._contents, []
        whole = np.frombuffer(contents[0] if len(contents) == 1 else b"".join(contents), np.uint8)
        columns = scan_records(whole, self._facts, OWN_HEADERS.encode())
        if columns is None:
            return None
        np.maximum(columns.times_ms, NO_TIMESTAMP, out=columns.times_ms)
        return Records(self._partition, whole, columns, self._facts[0].stamped_by_broker)
