"""The formats of saved states: how each file begins, and which versions of it are written and read.

Files begin with a type, a format version, and a JSON header with a checksum:

magic · format version (u16) · header length (u32) · header CRC-32 (u32), little-endian · header: JSON
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import BinaryIO

from twinsieve.stages.errors import NEW_STATE, StateError

_NUMBERS = struct.Struct("<HII")
_MAX_HEADER_BYTES = 1 << 20


class VersionError(StateError):
    """A file has a format version that this program does not read. is_newer: a newer program wrote it"""

    def __init__(self, message: str, *, is_newer: bool) -> None:
        super().__init__(message)
        self.is_newer = is_newer


@dataclass(frozen=True, slots=True)
class StateHeader:
    """Reads and writes the first bytes of one type of state file.

    magic: the first bytes, which identify the type; versions: formats that can be read; the last one is
        written
    kind: the type as error messages name it, such as "a twinsieve state"
    new_start: advice in error messages, after "or": how to begin without the file
    """

    magic: bytes
    versions: tuple[int, ...]
    kind: str
    new_start: str

    def write(self, write: Callable[[bytes], object], header: bytes) -> None:
        """Write magic, numbers and header. header: JSON"""
        write(self.magic + _NUMBERS.pack(self.versions[-1], len(header), zlib.crc32(header)) + header)

    def read(self, stream: BinaryIO) -> bytes:
        """The JSON header.

        raises: StateError if the file is of another type or format, or if the header is damaged or cut
        """
        head = stream.read(len(self.magic) + _NUMBERS.size)
        if len(head) < len(self.magic) + _NUMBERS.size or not head.startswith(self.magic):
            raise StateError(f"is not {self.kind}; name the right file, or {self.new_start}")
        version, length, checksum = _NUMBERS.unpack(head[len(self.magic) :])
        if version not in self.versions:
            raise VersionError(
                f"has format version {version}, this program reads {' and '.join(map(str, self.versions))}; "
                f"use the program that wrote it, or {self.new_start}",
                is_newer=version > self.versions[-1],
            )
        header = stream.read(min(length, _MAX_HEADER_BYTES))
        if len(header) != length or zlib.crc32(header) != checksum:
            raise self.damaged()
        return header

    def damaged(self, problem: object = "") -> StateError:
        """The error for a file that is damaged or cut. problem: what is wrong, if that is known"""
        what = f"is damaged ({str(problem)!r:.200})" if problem else "is damaged or cut"
        return StateError(f"{what}; restore it from a copy, or {self.new_start}")


_OLDER = "delete it if there is an older one or the whole log"

# Manifests: they name the other files of a state (`pipeline/saved/manifest.py`).
SNAPSHOT = StateHeader(b"TSVS", (7,), "a snapshot of an index", _OLDER)
"""Versions 4 to 6 could name an image of the near window."""
RUN = StateHeader(b"twinsieve files\n", (5, 6), "a state of `twinsieve dedup`", NEW_STATE)
"""In version 5 no row waits (`pipeline/dedup/jumps.py`). Version 4 could name an image; versions 2 and 3 were
single files."""
SIEVE = StateHeader(b"twinsieve sieve\n", (3,), "what Sieve.save wrote", "start with a new Sieve")
"""Version 2 could name an image; version 1 was a single file."""

# The files that they name, and what is small in themselves.
SECTIONS = StateHeader(b"TWINSIEV", (7,), "a twinsieve state", NEW_STATE)
"""Named arrays (`stages/judge/state_bytes.py`)."""
PIECE = StateHeader(b"twinsieve piece\n", (1,), "a piece of a twinsieve state", NEW_STATE)
"""Kept messages (`pipeline/saved/kept_file.py`)."""
ARRAYS = StateHeader(b"twinsieve arrays\n", (2,), "a file of arrays of a twinsieve state", NEW_STATE)
"""A segment, which is mapped (`pipeline/saved/mapped_file.py`)."""
