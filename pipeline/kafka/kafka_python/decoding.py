"""Record batches as kafka-python decodes them, without its traps."""

from __future__ import annotations

import gzip
import io
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import lz4.frame
import snappy
import zstandard
from kafka import KafkaConsumer, TopicPartition, errors
from kafka.consumer.fetcher import Fetcher
from kafka.record.default_records import DefaultRecordBatch
from kafka.record.legacy_records import LegacyRecordBatch

from twinsieve.pipeline.broker.ports import Partition
from twinsieve.pipeline.kafka.decoding import undecodable


def decode_safely(consumer: KafkaConsumer, max_bytes: int) -> None:
    """A batch that cannot be decoded is an error of one poll, and header names need not be UTF-8.

    max_bytes: a batch that unpacks to more cannot be decoded

    kafka-python 3.0 keeps the batch that failed as the one to go on with, and the poll after the next seek
    turns in a circle for ever. It unpacks a batch whatever comes out.
    """
    # There is no public way in: the fetcher makes what holds a partition's batches by this name.
    consumer._fetcher.PartitionRecords = partial(_PartitionRecords, max_bytes)


class _PartitionRecords(Fetcher.PartitionRecords):  # type: ignore[misc]
    def __init__(self, max_bytes: int, *given: Any, **named: Any) -> None:
        self._max_bytes = max_bytes
        super().__init__(*given, **named)

    def _unpack_records(self, at: TopicPartition, records: Any, *more: Any) -> Iterator[Any]:
        batches = _Batches(records, self._max_bytes)
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

    def __init__(self, records: Any, max_bytes: int) -> None:
        self._records = records
        self._max_bytes = max_bytes
        self.last: Any = None

    def next_batch(self) -> Any:
        self.last = None
        batch = self._records.next_batch()
        if type(batch) is DefaultRecordBatch:
            batch = _Batch(batch._buffer, self._max_bytes)
        elif type(batch) is LegacyRecordBatch:
            batch = _OldBatch(batch._buffer, batch.magic, self._max_bytes)
        self.last = batch
        return batch


class _OldBatch(LegacyRecordBatch):  # type: ignore[misc]
    """One of a format before Kafka 0.11, which has no headers, unpacked up to a limit."""

    def __init__(self, buffer: memoryview, magic: int, max_bytes: int) -> None:
        super().__init__(buffer, magic)
        self._max_bytes = max_bytes

    def _decompress(self, key_offset: int) -> bytes:
        codec = self.compression_type
        if self.magic == 0 and codec == LZ4:
            # Its frames have a wrong checksum; no broker since 0.10 writes them.
            raise errors.UnsupportedCodecError("lz4 as Kafka wrote it before 0.10")
        self._assert_has_codec(codec)
        _, packed = self._read_key_value(key_offset)
        if packed is None:
            raise errors.CorruptRecordError("a compressed message without a value")
        return unpack(codec, packed, self._max_bytes)


class _Batch(DefaultRecordBatch):  # type: ignore[misc]
    """One whose header names may be any bytes, unpacked up to a limit."""

    _buffer: memoryview | bytes | bytearray
    _pos: int
    _decompressed: bool

    def __init__(self, buffer: memoryview, max_bytes: int) -> None:
        super().__init__(buffer)
        self._max_bytes = max_bytes

    def _maybe_uncompress(self) -> None:
        codec = self.compression_type
        if not self._decompressed and codec != self.CODEC_NONE:
            self._assert_has_codec(codec)
            packed = memoryview(self._buffer)[self._pos :].tobytes()
            self._buffer = unpack(codec, packed, self._max_bytes)
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


GZIP, SNAPPY, LZ4, ZSTD = 1, 2, 3, 4
"""Codecs, by their numbers in a record batch."""

_PIECE_BYTES = 1 << 20
_LEAST_WINDOW_BITS, _MAX_WINDOW_BITS = 10, 31
_XERIAL = b"\x82SNAPPY\x00"
_XERIAL_HEADER_BYTES = 16


class TooLargeError(ValueError):
    """What was packed is larger than the limit."""

    def __init__(self, max_bytes: int) -> None:
        super().__init__(
            f"it unpacks to more than kafka.max_unpacked_bytes, {max_bytes}; raise that if it is meant to"
        )


def unpack(codec: int, packed: bytes, max_bytes: int) -> bytes:
    """Content of a record batch, at most `max_bytes` of it.

    codec: 1…4, as in the attributes of a batch. Memory grows by no more than twice the limit on the way.

    raises: TooLargeError beyond the limit; for damage whatever the decompressor raises, each has its own

    >>> unpack(GZIP, gzip.compress(b"rain"), 4)
    b'rain'
    """
    whole: bytes | bytearray = b""
    for piece in _PIECES[codec](packed, max_bytes):
        if len(whole) + len(piece) > max_bytes:
            raise TooLargeError(max_bytes)
        if not whole:
            # Most batches are one piece, which is not copied.
            whole = piece
            continue
        # A buffer that grows where it is: freed pieces by the dozen would stay in the heap.
        if isinstance(whole, bytes):
            whole = bytearray(whole)
        whole += piece
    return bytes(whole)


def _gzip(packed: bytes, max_bytes: int) -> Iterator[bytes]:  # noqa: ARG001 - one of many
    with gzip.GzipFile(fileobj=io.BytesIO(packed)) as stream:
        while piece := stream.read(_PIECE_BYTES):
            yield piece


def _zstd(packed: bytes, max_bytes: int) -> Iterator[bytes]:
    said = zstandard.frame_content_size(packed)
    if said > max_bytes:
        raise TooLargeError(max_bytes)
    # The window is memory too, beside what comes out. Half the limit is more than producers use; a frame that
    # says its size, and gets the room for it at once, needs none.
    window = 1 << max(_LEAST_WINDOW_BITS, (max_bytes // 2).bit_length() - 1)
    decompressor = zstandard.ZstdDecompressor(max_window_size=min(window, 1 << _MAX_WINDOW_BITS))
    with decompressor.stream_reader(packed, read_across_frames=True) as stream:
        size = max(said, _PIECE_BYTES)
        while piece := stream.read(size):
            yield piece
            size = _PIECE_BYTES


def _lz4(packed: bytes, max_bytes: int) -> Iterator[bytes]:  # noqa: ARG001 - one of many
    decompressor = lz4.frame.LZ4FrameDecompressor()
    yield decompressor.decompress(packed, max_length=_PIECE_BYTES)
    while not decompressor.eof:
        if decompressor.needs_input:
            raise EOFError("the lz4 frame is cut off")
        yield decompressor.decompress(b"", max_length=_PIECE_BYTES)


def _snappy(packed: bytes, max_bytes: int) -> Iterator[bytes]:
    if not packed.startswith(_XERIAL) or len(packed) <= _XERIAL_HEADER_BYTES:
        yield _snappy_block(packed, max_bytes)
        return
    at = _XERIAL_HEADER_BYTES
    while at < len(packed):
        length = int.from_bytes(packed[at : at + 4], "big", signed=True)
        at += 4
        if not 0 <= length <= len(packed) - at:
            raise ValueError(f"a snappy block of {length} bytes, but {len(packed) - at} are left")
        yield _snappy_block(packed[at : at + length], max_bytes)
        at += length


def _snappy_block(packed: bytes, max_bytes: int) -> bytes:
    said = 0
    # The length in front, seven bits a byte, is what the decompressor believes and makes room for.
    for place, byte in enumerate(packed[:5]):
        said |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            break
    if said > max_bytes:
        raise TooLargeError(max_bytes)
    return bytes(snappy.decompress(packed))


_PIECES: Mapping[int, Callable[[bytes, int], Iterator[bytes]]] = {
    GZIP: _gzip,
    SNAPPY: _snappy,
    LZ4: _lz4,
    ZSTD: _zstd,
}
