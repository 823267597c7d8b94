"""The first bytes of every file of a state: its type, format version, and a JSON header with a checksum.

magic · format version (u16) · header length (u32) · header CRC-32 (u32), little-endian · header: JSON
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import BinaryIO

from twinsieve.stages.errors import StateError

_NUMBERS = struct.Struct("<HII")
_MAX_HEADER_BYTES = 1 << 20


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
            raise StateError(
                f"has format version {version}, this program reads {' and '.join(map(str, self.versions))}; "
                f"use the program that wrote it, or {self.new_start}"
            )
        header = stream.read(min(length, _MAX_HEADER_BYTES))
        if len(header) != length or zlib.crc32(header) != checksum:
            raise StateError(f"is damaged or cut; restore it from a copy, or {self.new_start}")
        return header
