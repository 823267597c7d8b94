"""A file of named arrays that can be mapped: each array begins at a page, so it is used where it lies.

    head: `stages/formats.py`, magic "twinsieve arrays\\n", JSON {"scheme", "about", "arrays": [{name, dtype,
        shape, offset, bytes, checksum}]}; the head ends with zeros up to a whole page
    each array at its offset, a multiple of a page; zeros between them

A checksum is the 128-bit MurmurHash3 of an array's bytes, or keyed (`signing`). A process that has never seen
the app can read the file: the head says what is in it.
"""

from __future__ import annotations

import io
import mmap
import platform
from collections.abc import Callable, Collection, Mapping
from hmac import compare_digest
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import orjson
from numpy.typing import NDArray

from twinsieve.pipeline.basics.printable import printable
from twinsieve.pipeline.saved import UnreadableError
from twinsieve.pipeline.saved.signing import Hashes
from twinsieve.pipeline.saved.signing import plain as plain_hashes
from twinsieve.stages.errors import StateError
from twinsieve.stages.formats import ARRAYS

Arrays = Mapping[str, NDArray[Any]]

_PAGE = 4096
_IS_GENERIC = platform.system() == "Linux" and platform.machine() in ("x86_64", "aarch64", "riscv64")
_NO_RESERVE: int = getattr(mmap, "MAP_NORESERVE", 0x4000 if _IS_GENERIC else 0)
"""A private map counts in full as memory that the process may write to, so the system could refuse a map that
is larger than its memory. With this flag only pages that are written to count. Python names it from 3.13 on;
before that, Linux has this number on these machines."""
_RANDOM: int | None = getattr(mmap, "MADV_RANDOM", None)
"""Without this advice, a read of a record that is not in memory brings its neighbours along, and these push
out what is in use. But pages with the advice are also the first that the system gives up (Linux from 6.3 on
does not note their use), so it is not for arrays of which every page is in use."""
_MAX_HEAD = 1 << 20
_COPIED_AT_ONCE = _READ_AT_ONCE = 1 << 24


class MappedArrays(NamedTuple):
    """What a file holds.

    about: what the writer says of the arrays; arrays: private maps of the file, so that a write to one
        changes only this process's memory
    places: where in the file each array is, in bytes
    digest: of the head
    """

    about: dict[str, Any]
    arrays: dict[str, NDArray[Any]]
    places: dict[str, range]
    digest: str


def write_arrays(
    stream: BinaryIO,
    scheme_id: str,
    about: Mapping[str, object],
    arrays: Arrays,
    hashes: Hashes = plain_hashes,
) -> str:
    """Write the arrays to a stream that can seek; returns the digest of the head, which identifies the file.

    about: JSON. At most 16 MiB are copied at a time. An array may change meanwhile: the file then has some
    of the changes, and checksums of what it has.
    raises: errors of the stream
    """
    entries: list[dict[str, Any]] = [
        {
            "name": name,
            "dtype": np.dtype(array.dtype).descr if array.dtype.names else array.dtype.str,
            "shape": list(array.shape),
            "offset": 0,
            "bytes": array.nbytes,
            "checksum": bytes(16).hex(),
        }
        for name, array in arrays.items()
    ]
    # The offsets stand in the head, whose length depends on them: leave room for the longest.
    room = _whole_pages(len(_head(scheme_id, about, entries)) + 20 * len(entries))
    stream.write(bytes(room))
    end = room
    for entry, array in zip(entries, arrays.values(), strict=True):
        hashed = hashes()
        plain = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        for start in range(0, len(plain), _COPIED_AT_ONCE):
            data = plain[start : start + _COPIED_AT_ONCE].tobytes()
            hashed.update(data)
            stream.write(data)
        stream.write(bytes(_whole_pages(len(plain)) - len(plain)))
        entry |= {"offset": end, "checksum": hashed.digest().hex()}
        end += _whole_pages(len(plain))
    head = _head(scheme_id, about, entries)
    stream.seek(0)
    stream.write(head)
    stream.seek(end)
    return _digest(hashes, head)


def map_arrays(
    descriptor: int,
    name: str,
    scheme_id: str,
    checked: Callable[[int], None] | None,
    *,
    hot: Collection[str] = (),
    hashes: Hashes = plain_hashes,
    digest: str | None = None,
) -> MappedArrays:
    """Map the arrays of an open file, which may be closed then.

    name: of the file, for errors; scheme_id: fingerprint scheme that it must have
    checked: read all of the file once, and compare the checksums; called now and then with the number of
        bytes read since the last call. None: nothing is read
    hot: names of arrays of which every page is in use; of the others, single pages are read
    hashes: those with which it was written; digest: that of its head, if it is known; nothing in the head is
        looked at before it is compared
    raises: UnreadableError if the file is cut, damaged or of another scheme, or cannot be mapped
    """
    try:
        flags = mmap.MAP_PRIVATE | _NO_RESERVE
        whole = mmap.mmap(descriptor, 0, flags=flags, prot=mmap.PROT_READ | mmap.PROT_WRITE)
    except (OSError, ValueError) as error:
        kind = error.strerror if isinstance(error, OSError) else "it is empty"
        raise UnreadableError(f"{name}: cannot be mapped ({kind}); restore it from a copy") from None
    try:
        stream = io.BytesIO(whole[:_MAX_HEAD])
        described = ARRAYS.read(stream)
        found = _digest(hashes, whole[: stream.tell()])
        if digest is not None and not compare_digest(found, digest):
            raise ValueError("it is another file than was written")
        head = orjson.loads(described)
        entries, about, scheme = head["arrays"], head["about"], head["scheme"]
        memory = np.frombuffer(whole, np.uint8)
        arrays = {entry["name"]: _array(memory, entry, checked, hashes) for entry in entries}
        if sum(entry["bytes"] for entry in entries) > len(memory) or len(arrays) < len(entries):
            raise ValueError("arrays lie across each other")
        if _RANDOM is not None:
            for entry in entries:
                if entry["name"] not in hot and entry["bytes"]:
                    whole.madvise(_RANDOM, entry["offset"], entry["bytes"])
    except Exception as error:  # noqa: BLE001 (what somebody else wrote may raise anything)
        said = error if isinstance(error, StateError | ValueError) else type(error).__name__
        raise UnreadableError(
            f"{name}: is damaged or cut ({printable(str(said))}); restore it from a copy"
        ) from None
    if scheme != scheme_id:
        raise UnreadableError(
            f"{name}: was written under fingerprint scheme {printable(str(scheme))}, not {scheme_id}; "
            "restore the right file"
        )
    places = {entry["name"]: range(entry["offset"], entry["offset"] + entry["bytes"]) for entry in entries}
    return MappedArrays(about, arrays, places, found)


def _array(
    memory: NDArray[np.uint8],
    entry: Mapping[str, Any],
    checked: Callable[[int], None] | None,
    hashes: Hashes,
) -> NDArray[Any]:
    """The array of an entry of the head. raises: ValueError if it is not what the entry says"""
    numbers = [entry["offset"], entry["bytes"], *entry["shape"]]
    start, end = entry["offset"], entry["offset"] + entry["bytes"]
    if {type(number) for number in numbers} != {int} or not 0 <= start <= end <= len(memory) or start % _PAGE:
        raise ValueError(f"array {entry['name']!r} is not inside the file")
    plain = memory[start:end]
    if checked is not None:
        hashed = hashes()
        for at in range(0, len(plain), _READ_AT_ONCE):
            part = plain[at : at + _READ_AT_ONCE]
            hashed.update(part.data)
            checked(len(part))
        if hashed.digest().hex() != entry["checksum"]:
            raise ValueError(f"array {entry['name']!r} has another checksum")
    names = entry["dtype"]
    dtype = (
        np.dtype([tuple(_field(field)) for field in names]) if isinstance(names, list) else np.dtype(names)
    )
    return plain.view(dtype).reshape(entry["shape"])


def _digest(hashes: Hashes, head: bytes) -> str:
    hashed = hashes()
    hashed.update(head)
    return hashed.digest().hex()


def _field(field: list[Any]) -> list[Any]:
    """A field of a record, as NumPy takes it: JSON has no tuples."""
    name, kind, *shape = field
    return [name, kind, *map(tuple, shape)]


def _head(scheme_id: str, about: Mapping[str, object], entries: list[dict[str, Any]]) -> bytes:
    head: list[bytes] = []
    described = {"scheme": scheme_id, "about": dict(about), "arrays": entries}
    ARRAYS.write(head.append, orjson.dumps(described))
    return b"".join(head)


def _whole_pages(size: int) -> int:
    return -(-size // _PAGE) * _PAGE
