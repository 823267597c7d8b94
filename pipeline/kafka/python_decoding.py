"""Record batches as kafka-python decodes them, without its traps."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from kafka import KafkaConsumer, TopicPartition, errors
from kafka.consumer.fetcher import Fetcher
from kafka.record.default_records import DefaultRecordBatch
from kafka.record.legacy_records import LegacyRecordBatch

from twinsieve.pipeline.kafka.decoding import undecodable
from twinsieve.pipeline.kafka.unpacking import LZ4, unpack
from twinsieve.pipeline.ports import Partition


def decode_safely(consumer: KafkaConsumer, most_bytes: int) -> None:
    """A batch that cannot be decoded is an error of one poll, and header names need not be UTF-8.

    most_bytes: a batch that unpacks to more cannot be decoded

    kafka-python 3.0 keeps the batch that failed as the one to go on with, and the poll after the next seek
    turns in a circle for ever. It unpacks a batch whatever comes out.
    """
    # There is no public way in: the fetcher makes what holds a partition's batches by this name.
    consumer._fetcher.PartitionRecords = partial(_PartitionRecords, most_bytes)


class _PartitionRecords(Fetcher.PartitionRecords):  # type: ignore[misc]
    def __init__(self, most_bytes: int, *given: Any, **named: Any) -> None:
        self._most_bytes = most_bytes
        super().__init__(*given, **named)

    def _unpack_records(self, at: TopicPartition, records: Any, *more: Any) -> Iterator[Any]:
        batches = _Batches(records, self._most_bytes)
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

    def __init__(self, records: Any, most_bytes: int) -> None:
        self._records = records
        self._most_bytes = most_bytes
        self.last: Any = None

    def next_batch(self) -> Any:
        self.last = None
        batch = self._records.next_batch()
        if type(batch) is DefaultRecordBatch:
            batch = _Batch(batch._buffer, self._most_bytes)
        elif type(batch) is LegacyRecordBatch:
            batch = _OldBatch(batch._buffer, batch.magic, self._most_bytes)
        self.last = batch
        return batch


class _OldBatch(LegacyRecordBatch):  # type: ignore[misc]
    """One of a format before Kafka 0.11, which has no headers, unpacked up to a limit."""

    def __init__(self, buffer: memoryview, magic: int, most_bytes: int) -> None:
        super().__init__(buffer, magic)
        self._most_bytes = most_bytes

    def _decompress(self, key_offset: int) -> bytes:
        codec = self.compression_type
        if self.magic == 0 and codec == LZ4:
            # Its frames have a wrong checksum; no broker since 0.10 writes them.
            raise errors.UnsupportedCodecError("lz4 as Kafka wrote it before 0.10")
        self._assert_has_codec(codec)
        _, packed = self._read_key_value(key_offset)
        if packed is None:
            raise errors.CorruptRecordError("a compressed message without a value")
        return unpack(codec, packed, self._most_bytes)


class _Batch(DefaultRecordBatch):  # type: ignore[misc]
    """One whose header names may be any bytes, unpacked up to a limit."""

    _buffer: memoryview | bytes | bytearray
    _pos: int
    _decompressed: bool

    def __init__(self, buffer: memoryview, most_bytes: int) -> None:
        super().__init__(buffer)
        self._most_bytes = most_bytes

    def _maybe_uncompress(self) -> None:
        codec = self.compression_type
        if not self._decompressed and codec != self.CODEC_NONE:
            self._assert_has_codec(codec)
            packed = memoryview(self._buffer)[self._pos :].tobytes()
            self._buffer = unpack(codec, packed, self._most_bytes)
            self._pos = 0
        self._decompressed = True

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
