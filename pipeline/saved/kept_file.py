"""The format of a file with a run of kept messages (a *piece*): records of a few thousand messages each.

    head: `stages/formats.py`, magic "twinsieve piece\\n", JSON {"scheme"}
    record: bytes (u32), messages (u32), number of the first message (u64), checksum, columns
    end: a record without messages, with the number behind the last one; its checksum is that of all records

Little-endian; a checksum is the 128-bit MurmurHash3 of the rest of its record, or keyed (`signing`). The
columns are written as those of a block on the wire (docs/WIRE.md). Records are complete in themselves, so
files are joined without decoding them.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

import orjson

from twinsieve.pipeline.basics.printable import printable
from twinsieve.pipeline.saved import UnreadableError
from twinsieve.pipeline.saved.signing import Hashes, checksum_in, plain
from twinsieve.pipeline.wire.column_bytes import decode_columns, encode_columns
from twinsieve.stages.errors import StateError
from twinsieve.stages.formats import PIECE
from twinsieve.stages.judge.kept_messages import KeptMessages

_RECORD = struct.Struct("<IIQ16s")
_NUMBERS = struct.Struct("<IIQ")
MAX_RECORD_BYTES = 1 << 30
"""A record that claims to be larger counts as damaged; no memory is allocated for it."""


class Record(NamedTuple):
    """Some kept messages. first: number of the first one; messages: how many; data: their columns"""

    first: int
    messages: int
    data: bytes


class KeptFile:
    """Writes one run of kept messages.

    first, end: numbers of its messages, `end` exclusive; size: bytes so far
    digest: of all checksums so far
    """

    def __init__(self, stream: BinaryIO, scheme_id: str, first: int, hashes: Hashes = plain) -> None:
        self._hashes = hashes
        self._stream = stream
        self.first = self.end = first
        self.size = 0
        self._records = hashes()
        PIECE.write(self._write, orjson.dumps({"scheme": scheme_id}))

    def add(self, record: Record) -> None:
        """Append a record. raises: errors of the stream"""
        checksum = _checksum(record, self._hashes)
        self._records.update(checksum)
        self._write(_RECORD.pack(len(record.data), record.messages, record.first, checksum))
        self._write(record.data)
        self.end = record.first + record.messages

    def finish(self) -> None:
        """Append the end. raises: errors of the stream"""
        self._write(_RECORD.pack(0, 0, self.end, self._records.digest()))

    @property
    def digest(self) -> str:
        return self._records.digest().hex()

    def _write(self, data: bytes) -> None:
        self._stream.write(data)
        self.size += len(data)


def record_of(first: int, messages: KeptMessages) -> Record:
    """A record of these messages. first: number of the first one"""
    return Record(first, len(messages), encode_columns(messages))


def messages_of(record: Record, name: str) -> KeptMessages:
    """The messages of a record. name: of the file, for errors. raises: UnreadableError"""
    try:
        messages, end = decode_columns(KeptMessages, memoryview(record.data), 0, name)
        if len(messages) != record.messages or end != len(record.data):
            raise StateError(name)
    except (StateError, MemoryError, ValueError):
        raise damaged(name) from None
    return messages


def read_records(
    stream: BinaryIO, name: str, scheme_id: str, digest: str, hashes: Hashes = plain
) -> Iterator[Record]:
    """The records of a file in order; their checksums are right.

    name: of the file, for errors; scheme_id: its fingerprint scheme; digest: as in `StateFile`
    hashes: those with which it was written
    raises: UnreadableError if the file is damaged, cut, no such file, or of another scheme; errors of the
        stream
    """
    try:
        found = orjson.loads(PIECE.read(stream))["scheme"]
    except (StateError, KeyError, TypeError, ValueError) as error:
        raise UnreadableError(f"{name}: {printable(str(error))}") from error
    if found != scheme_id:
        raise UnreadableError(
            f"{name}: was written under fingerprint scheme {printable(str(found))}, not {scheme_id}; restore "
            "the right file"
        )
    records = hashes()
    end: int | None = None
    while True:
        head = stream.read(_RECORD.size)
        if len(head) < _RECORD.size:
            raise damaged(name)
        size, count, first, checksum = _RECORD.unpack(head)
        if not count:
            is_whole = records.digest().hex() == checksum_in(digest) and end in (None, first) and not size
            if checksum != records.digest() or not is_whole or stream.read(1):
                raise damaged(name)
            return
        data = stream.read(size) if size <= MAX_RECORD_BYTES else b""
        record = Record(first, count, data)
        if len(data) != size or _checksum(record, hashes) != checksum:
            raise damaged(name)
        records.update(checksum)
        end = first + count
        yield record


def damaged(name: str) -> UnreadableError:
    """The error for a file that is damaged or cut."""
    return UnreadableError(f"{name}: is damaged or cut; restore it from a copy")


def _checksum(record: Record, hashes: Hashes) -> bytes:
    hashed = hashes()
    hashed.update(_NUMBERS.pack(len(record.data), record.messages, record.first))
    hashed.update(record.data)
    return hashed.digest()
