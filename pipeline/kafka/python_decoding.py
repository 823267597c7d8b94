"""Record batches as kafka-python decodes them, without its two traps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kafka import KafkaConsumer, TopicPartition, errors
from kafka.consumer.fetcher import Fetcher
from kafka.record.default_records import DefaultRecordBatch

from twinsieve.pipeline.kafka.decoding import undecodable
from twinsieve.pipeline.ports import Partition


def decode_safely(consumer: KafkaConsumer) -> None:
    """A batch that cannot be decoded is an error of one poll, and header names need not be UTF-8.

    kafka-python 3.0 keeps the batch that failed as the one to go on with, and the poll after the next seek
    turns in a circle for ever.
    """
    # There is no public way in: the fetcher makes what holds a partition's batches by this name.
    consumer._fetcher.PartitionRecords = _PartitionRecords


class _PartitionRecords(Fetcher.PartitionRecords):  # type: ignore[misc]
    def _unpack_records(self, at: TopicPartition, records: Any, *more: Any) -> Iterator[Any]:
        batches = _Batches(records)
        try:
            yield from super()._unpack_records(at, batches, *more)
        except MemoryError:
            self.drain()
            raise
        except Exception as error:
            # Anything at all: each decompressor has errors of its own.
            self.drain()
            batch = batches.last
            first, after = (0, None) if batch is None else (batch.base_offset, batch.next_offset)
            offset = max(self.next_fetch_offset, first)
            raise undecodable(Partition(*at), offset, _why(error), after) from error


def _why(error: Exception) -> str:
    said = " ".join(str(error.args[0]).split())[:200] if error.args else type(error).__name__
    return f"{said}; install it" if isinstance(error, errors.UnsupportedCodecError) else said


class _Batches:
    """Record batches of one fetch; `last` is the one that was begun last."""

    def __init__(self, records: Any) -> None:
        self._records = records
        self.last: Any = None

    def next_batch(self) -> Any:
        self.last = None
        batch = self._records.next_batch()
        # Older formats have no headers.
        self.last = _Batch(batch._buffer) if type(batch) is DefaultRecordBatch else batch
        return self.last


class _Batch(DefaultRecordBatch):  # type: ignore[misc]
    """One whose header names may be any bytes."""

    _buffer: bytearray

    def _read_msg(self) -> Any:
        try:
            return super()._read_msg()
        except UnicodeDecodeError:
            # Slower, so only for the rest of a batch that needs it. Nothing was consumed of this message.
            self._buffer = _Buffer(self._buffer)
            return super()._read_msg()


class _Buffer(bytearray):
    """Bytes whose parts decode whatever they hold."""

    def __getitem__(self, key: Any) -> Any:
        part = super().__getitem__(key)
        return _Buffer(part) if isinstance(part, bytearray) else part

    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:  # noqa: ARG002
        try:
            return super().decode(encoding)
        except UnicodeDecodeError:
            return _Name(super().decode(encoding, "surrogateescape"))


class _Name(str):
    """A header name that is not UTF-8, and is written as the bytes that it came as."""

    __slots__ = ()

    def encode(self, encoding: str = "utf-8", errors: str = "strict") -> bytes:  # noqa: ARG002
        return super().encode(encoding, "surrogateescape")
