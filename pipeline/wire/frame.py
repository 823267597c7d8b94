"""The envelope of everything on the internal topics: magic, version, scheme, checksum (docs/WIRE.md)."""

from __future__ import annotations

import hashlib
import struct
import zlib
from enum import Enum

from twinsieve.stages.errors import StateError

VERSION = 2
"""Of the format of all three, as this program writes it."""

OLDEST_VERSION = 1
"""The oldest format that this program still reads."""

_ENVELOPE = struct.Struct("<4sHH16sI")
ENVELOPE_BYTES = _ENVELOPE.size
_SUMMED = ENVELOPE_BYTES - 4


class What(Enum):
    """Which of the three it is; the value is its magic."""

    BLOCK = b"TSVB"
    ANSWER = b"TSVA"
    DECISION = b"TSVD"


class ForeignSchemeError(StateError):
    """A block was made with another fingerprint scheme than this process has."""


class ForeignVersionError(StateError):
    """A record is whole, but in a format that this program does not read."""


def scheme_hash(scheme_id: str) -> bytes:
    """16 bytes that stand for a fingerprint scheme."""
    return hashlib.blake2b(scheme_id.encode(), digest_size=16).digest()


def seal(what: What, scheme: bytes, content: bytes, version: int = VERSION) -> bytes:
    """Content in its envelope."""
    head = _ENVELOPE.pack(what.value, version, 0, scheme, 0)[:_SUMMED]
    return head + struct.pack("<I", _checksum(version, head, content)) + content


def _checksum(version: int, head: bytes, content: bytes | memoryview) -> int:
    """Version 1 sums the content alone: a changed version or scheme went unseen."""
    return zlib.crc32(content, zlib.crc32(head) if version > 1 else 0)


def version_of(data: bytes) -> int:
    """The format version that an envelope names; 0 without an envelope."""
    return int(_ENVELOPE.unpack_from(data)[1]) if len(data) >= ENVELOPE_BYTES else 0


def checksum_of(data: bytes) -> int:
    """The checksum that an envelope names, which tells its content from others; -1 without an envelope."""
    return int(_ENVELOPE.unpack_from(data)[4]) if len(data) >= ENVELOPE_BYTES else -1


def unseal(what: What, scheme: bytes, data: bytes, where: str) -> memoryview:
    """Content of an envelope.

    where: names the record in errors, as in `weibo.fingerprints[0]@17`
    raises: StateError when it is damaged or of another kind; ForeignVersionError; ForeignSchemeError
    """
    if len(data) < _ENVELOPE.size:
        raise StateError(f"{where}: {len(data)} bytes are no {what.name.lower()}; {_ADVICE}")
    magic, version, _, found, checksum = _ENVELOPE.unpack_from(data)
    if magic != what.value:
        raise StateError(f"{where}: begins with {magic!r} instead of {what.value!r}; {_ADVICE}")
    content = memoryview(data)[_ENVELOPE.size :]
    if _checksum(version, data[:_SUMMED], content) != checksum:
        raise StateError(f"{where}: checksum differs, the {what.name.lower()} is damaged; {_ADVICE}")
    if not OLDEST_VERSION <= version <= VERSION:
        raise ForeignVersionError(
            f"{where}: format version {version}, this program reads {OLDEST_VERSION} to {VERSION}; "
            "run the program version that wrote it, in all processes of the app"
        )
    if found != scheme:
        raise ForeignSchemeError(
            f"{where}: fingerprint scheme is {found.hex()[:12]}, this process has {scheme.hex()[:12]}; "
            "restore the settings of text, features, layout and digest and the program version, "
            "or start a new app and seed it"
        )
    return content


_ADVICE = "nothing else may write to this topic; delete the app's internal topics or start a new app"
