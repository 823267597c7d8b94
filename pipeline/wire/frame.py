"""The envelope of every record on the internal topics: magic, version, scheme, checksum (docs/WIRE.md)."""

from __future__ import annotations

import hashlib
import struct
import zlib
from enum import Enum

from twinsieve.stages.errors import StateError

VERSION = 7
"""Format version of blocks, answers and decisions: their shape alone. The scheme says what fingerprints are;
the rules have a digest of their own (`judged_by.py`). Records of other versions are not used for judging."""
SEGMENTS_VERSION = 9
"""Format version of `What.ANSWERS`, which nothing depends on, so it changes alone."""

_ENVELOPE = struct.Struct("<4sHH16sI")
ENVELOPE_BYTES = _ENVELOPE.size
_SUMMED = ENVELOPE_BYTES - 4


class What(Enum):
    """The types of records; the value is the magic with which such a record begins."""

    BLOCK = b"TSVB"
    ANSWER = b"TSVA"
    DECISION = b"TSVD"
    ANSWERS = b"TSVS"
    """what a sealed segment has for a run of blocks; `ANSWER` is one of the index to a worker"""


class ForeignSchemeError(StateError):
    """A block was made with another fingerprint scheme than this process has."""


class ForeignVersionError(StateError):
    """A record is undamaged, but its format version is one that this program does not read."""


def scheme_hash(scheme_id: str) -> bytes:
    """A hash of 16 bytes that identifies a fingerprint scheme."""
    return hashlib.blake2b(scheme_id.encode(), digest_size=16).digest()


def version_of(magic: bytes) -> int:
    """The version that this program writes and reads of records that begin so."""
    return SEGMENTS_VERSION if magic == What.ANSWERS.value else VERSION


def seal(what: What, scheme: bytes, content: bytes) -> bytes:
    """The content with its envelope in front."""
    head = _ENVELOPE.pack(what.value, version_of(what.value), 0, scheme, 0)[:_SUMMED]
    return head + struct.pack("<I", zlib.crc32(content, zlib.crc32(head))) + content


def checksum_of(data: bytes) -> int:
    """The checksum in the envelope of a record, which identifies its content; -1 if there is no envelope."""
    return int(_ENVELOPE.unpack_from(data)[4]) if len(data) >= ENVELOPE_BYTES else -1


def scheme_in(data: bytes) -> bytes:
    """The scheme in the envelope of a record of this version; empty for other records."""
    if len(data) < ENVELOPE_BYTES:
        return b""
    magic, version, _, scheme, _ = _ENVELOPE.unpack_from(data)
    return bytes(scheme) if version == version_of(magic) else b""


def unseal(what: What, scheme: bytes, data: bytes, where: str) -> memoryview:
    """The content of a record, without its envelope.

    where: names the record in errors, as in `weibo.fingerprints[0]@17`
    raises: StateError if it is damaged or of another type; ForeignVersionError; ForeignSchemeError
    """
    if len(data) < _ENVELOPE.size:
        raise StateError(f"{where}: {len(data)} bytes are not a {what.name.lower()}; {_ADVICE}")
    magic, version, _, record_scheme, checksum = _ENVELOPE.unpack_from(data)
    if magic != what.value:
        raise StateError(f"{where}: begins with {magic!r} instead of {what.value!r}; {_ADVICE}")
    content = memoryview(data)[_ENVELOPE.size :]
    # In version 1 the checksum covers the content alone.
    if zlib.crc32(content, zlib.crc32(data[:_SUMMED]) if version > 1 else 0) != checksum:
        raise StateError(f"{where}: checksum differs, the {what.name.lower()} is damaged; {_ADVICE}")
    if version != version_of(magic):
        raise ForeignVersionError(
            f"{where}: format version {version}, this program reads {version_of(magic)}; run the program "
            "version that wrote it in all processes of the app, or start a new app and seed it"
        )
    if record_scheme != scheme:
        raise ForeignSchemeError(
            f"{where}: fingerprint scheme is {record_scheme.hex()[:12]}, this process has "
            f"{scheme.hex()[:12]}; restore profile, text, features, near.layout and digest as set, "
            "and the program version, or start a new app and seed it"
        )
    return content


_ADVICE = "only twinsieve may write to this topic; delete the app's internal topics or start a new app"
