"""A file of named arrays that can be mapped: each array begins at a page, so it is used where it lies.

    head: `stages/header.py`, magic "twinsieve arrays\\n", JSON {"scheme", "about", "arrays": [{name, dtype,
        shape, offset, bytes, checksum}]}; the head ends with zeros up to a whole page
    each array at its offset, a multiple of a page; zeros between them

A checksum is the 128-bit MurmurHash3 of an array's bytes. A process that has never seen the app can read the
file: the head says what is in it.
"""

from __future__ import annotations

import io
import mmap
import os
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any, BinaryIO, NamedTuple

import mmh3
import numpy as np
import orjson
from numpy.typing import NDArray

from twinsieve.pipeline.pieces import UnreadableError
from twinsieve.stages.errors import NEW_STATE, StateError
from twinsieve.stages.header import StateHeader

Arrays = Mapping[str, NDArray[Any]]

_HEADER = StateHeader(b"twinsieve arrays\n", (1,), "a file of arrays of a twinsieve state", NEW_STATE)
_PAGE = 4096
_WRITTEN_AT_ONCE = 1 << 24
"""Bytes handed over in one call, so that a watch is called often enough."""


class MappedArrays(NamedTuple):
    """What a file holds.

    about: what the writer says of the arrays; arrays: private maps of the file, so that a write to one
        changes only this process's memory
    mapped_bytes: bytes of all arrays
    """

    about: dict[str, Any]
    arrays: dict[str, NDArray[Any]]
    mapped_bytes: int


def write_arrays(stream: BinaryIO, scheme_id: str, about: Mapping[str, object], arrays: Arrays) -> None:
    """Write the arrays. Nothing is copied. about: JSON; raises: errors of the stream"""
    plain = {name: np.ascontiguousarray(array).reshape(-1).view(np.uint8) for name, array in arrays.items()}
    entries: list[dict[str, Any]] = [
        {
            "name": name,
            "dtype": np.dtype(array.dtype).descr if array.dtype.names else array.dtype.str,
            "shape": list(array.shape),
            "offset": 0,
            "bytes": array.nbytes,
            "checksum": mmh3.mmh3_x64_128_digest(plain[name].data).hex(),
        }
        for name, array in arrays.items()
    ]
    # The offsets stand in the head, whose length depends on them: leave room for the longest.
    room = _whole_pages(len(_head(scheme_id, about, entries)) + 20 * len(entries))
    end = room
    for entry in entries:
        entry["offset"] = end
        end += _whole_pages(entry["bytes"])
    _pad(stream, _head(scheme_id, about, entries), room)
    for entry in entries:
        data = plain[entry["name"]]
        for start in range(0, len(data), _WRITTEN_AT_ONCE):
            stream.write(data[start : start + _WRITTEN_AT_ONCE].data)
        stream.write(bytes(_whole_pages(len(data)) - len(data)))


def map_arrays(path: str, scheme_id: str, *, check: bool = True) -> MappedArrays:
    """Map the arrays of a file.

    scheme_id: fingerprint scheme that it must have; check: read all of it once, and compare the checksums
    raises: UnreadableError if the file is missing, cut, damaged or of another scheme, or cannot be mapped
    """
    try:
        with ExitStack() as stack:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            stack.callback(os.close, descriptor)
            whole = mmap.mmap(descriptor, 0, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_WRITE)
    except FileNotFoundError:
        raise UnreadableError(f"{path}: is missing; restore it from a copy") from None
    except (OSError, ValueError) as error:
        kind = error.strerror if isinstance(error, OSError) else "it is empty"
        raise UnreadableError(f"{path}: cannot be mapped ({kind}); restore it from a copy") from None
    try:
        head = orjson.loads(_HEADER.read(io.BytesIO(whole[: 1 << 20])))
        entries, about, scheme = head["arrays"], head["about"], head["scheme"]
        memory = np.frombuffer(whole, np.uint8)
        arrays = {entry["name"]: _array(memory, entry, check=check) for entry in entries}
    except (StateError, KeyError, TypeError, ValueError) as error:
        raise UnreadableError(f"{path}: is damaged or cut ({error}); restore it from a copy") from None
    if scheme != scheme_id:
        raise UnreadableError(
            f"{path}: was written under fingerprint scheme {scheme}, not {scheme_id}; restore the right file"
        )
    return MappedArrays(about, arrays, sum(array.nbytes for array in arrays.values()))


def _array(memory: NDArray[np.uint8], entry: Mapping[str, Any], *, check: bool) -> NDArray[Any]:
    """The array of an entry of the head. raises: ValueError if it is not what the entry says"""
    start, end = entry["offset"], entry["offset"] + entry["bytes"]
    if not 0 <= start <= end <= len(memory) or start % _PAGE:
        raise ValueError(f"array {entry['name']!r} is not inside the file")
    plain = memory[start:end]
    if check and mmh3.mmh3_x64_128_digest(plain.data).hex() != entry["checksum"]:
        raise ValueError(f"array {entry['name']!r} has another checksum")
    names = entry["dtype"]
    dtype = (
        np.dtype([tuple(_field(field)) for field in names]) if isinstance(names, list) else np.dtype(names)
    )
    return plain.view(dtype).reshape(entry["shape"])


def _field(field: list[Any]) -> list[Any]:
    """A field of a record, as NumPy takes it: JSON has no tuples."""
    name, kind, *shape = field
    return [name, kind, *map(tuple, shape)]


def _head(scheme_id: str, about: Mapping[str, object], entries: list[dict[str, Any]]) -> bytes:
    head: list[bytes] = []
    described = {"scheme": scheme_id, "about": dict(about), "arrays": entries}
    _HEADER.write(head.append, orjson.dumps(described))
    return b"".join(head)


def _whole_pages(size: int) -> int:
    return -(-size // _PAGE) * _PAGE


def _pad(stream: BinaryIO, head: bytes, room: int) -> None:
    stream.write(head)
    stream.write(bytes(room - len(head)))
