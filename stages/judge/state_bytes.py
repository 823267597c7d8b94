"""A saved state as bytes: named arrays (sections) after a header with their types and sizes.

    head: `stages/formats.py`, magic "TWINSIEV"
    header: JSON {"scheme", "parameters", "sections": [{name, dtype, shape, bytes}]}
    each section: zstd frames of 2 MiB of it each: frame length (u64), frame with its own content checksum

A reader refuses unknown content; each error says what to do.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, BinaryIO

import numpy as np
import zstandard
from numpy.typing import NDArray

from twinsieve.stages.contract import BandLayout
from twinsieve.stages.errors import NEW_STATE, DamagedError, StateError
from twinsieve.stages.exact.sections import Sections
from twinsieve.stages.formats import SECTIONS

_LENGTH = struct.Struct("<Q")
_FRAME_BYTES = 1 << 21
_START_ANEW = f"{NEW_STATE}, or restore the file from a copy"


def write_state(
    stream: BinaryIO, scheme_id: str, parameters: Mapping[str, object], sections: Mapping[str, NDArray[Any]]
) -> None:
    """Write the state to the stream. A compressed copy of 2 MiB at most is held in memory."""
    entries = [
        {"name": name, "dtype": array.dtype.str, "shape": list(array.shape), "bytes": array.nbytes}
        for name, array in sections.items()
    ]
    header = json.dumps({"scheme": scheme_id, "parameters": dict(parameters), "sections": entries}).encode()
    SECTIONS.write(stream.write, header)
    compressor = zstandard.ZstdCompressor(level=1, write_checksum=True, threads=0)
    for array in sections.values():
        plain = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        for start in range(0, max(1, len(plain)), _FRAME_BYTES):
            frame = compressor.compress(plain[start : start + _FRAME_BYTES].data)
            stream.write(_LENGTH.pack(len(frame)))
            stream.write(frame)


def read_state(
    stream: BinaryIO, scheme_id: str, parameters: Mapping[str, object], most: int | None = None
) -> Sections:
    """The sections by name, each a writable array.

    most: bytes of all sections together; None: any number
    raises: StateError if the stream is no state, was cut or altered, or has another scheme or other
        parameters; the message names the first difference and says what to do
    """
    try:
        described = json.loads(SECTIONS.read(stream))
    except StateError as error:
        raise StateError(f"state {error}") from error
    _check_origin(described, scheme_id, parameters)
    sizes = [entry["bytes"] for entry in described["sections"]]
    if min(sizes, default=0) < 0 or (most is not None and sum(sizes) > most):
        raise DamagedError(f"a state says that it has {sum(sizes)} bytes, where {most} are possible")
    return {entry["name"]: _read_section(stream, entry) for entry in described["sections"]}


def _check_origin(described: Mapping[str, Any], scheme_id: str, parameters: Mapping[str, object]) -> None:
    for name, wanted in parameters.items():
        saved = described["parameters"].get(name)
        if saved != wanted:
            raise StateError(
                f"state was written with {_as_set(name, saved)}, the configuration says "
                f"{_as_set(name, wanted)}; set it as it was, or {NEW_STATE}"
            )
    if described["scheme"] != scheme_id:
        raise StateError(
            f"state was written under fingerprint scheme {described['scheme']}, this configuration has "
            f"{scheme_id} (profile, features, seed or dictionaries differ, or another version of twinsieve, "
            f"jieba or OpenCC wrote it); restore what differs, or {NEW_STATE}"
        )


def _as_set(name: str, value: object) -> str:
    """Setting and value as a user writes them, so that they can be copied from the error message.

    >>> _as_set("exact.window.age_ms", 5000), _as_set("exact.window.age_ms", None), _as_set("scope", False)
    ('exact.window.age=5000ms', 'exact.window.age=none', 'scope=False')
    >>> _as_set("layout", [24, 4, 6, 24, 2, 64, "chars"])
    'near.layout={bands: 24, rows: 4, tables: 6, key_bits: 24, weak: 2, simhash_from: 64, grams: chars}'
    """
    if name == "layout" and isinstance(value, list):
        parts = zip((part.name for part in fields(BandLayout)), value, strict=True)
        return f"near.layout={{{', '.join(f'{part}: {size}' for part, size in parts)}}}"
    unit = "ms" if name.endswith("_ms") else ""
    shown = "none" if value is None else f"{value}{unit}"
    return f"{name.removesuffix('_ms')}={shown}"


def _read_section(stream: BinaryIO, entry: Mapping[str, Any]) -> NDArray[Any]:
    where = f"state section {entry['name']!r}"
    array: NDArray[Any] = np.empty(entry["bytes"], np.uint8)
    for start in range(0, max(1, len(array)), _FRAME_BYTES):
        _read_frame(stream, array[start : start + _FRAME_BYTES], where)
    whole: NDArray[Any] = array.view(np.dtype(entry["dtype"])).reshape(entry["shape"])
    return whole


def _read_frame(stream: BinaryIO, array: NDArray[Any], where: str) -> None:
    """Fill the array with the content of the next frame. raises: StateError"""
    raw_length = stream.read(_LENGTH.size)
    if len(raw_length) < _LENGTH.size:
        raise StateError(f"{where} is missing: the file was cut; {_START_ANEW}")
    (length,) = _LENGTH.unpack(raw_length)
    packed: Any = _Limited(stream, length)
    try:
        reader = zstandard.ZstdDecompressor().stream_reader(packed)
        filled = _fill(reader, array)
        more = reader.read(1)
    except zstandard.ZstdError as error:
        raise StateError(f"{where} is damaged ({error}); {_START_ANEW}") from error
    if packed.left:
        # zstandard takes the end of the stream as the end of the frame, and then does not check the sum.
        raise StateError(f"{where} is missing its end: the file was cut; {_START_ANEW}")
    if filled != len(array) or more:
        raise StateError(f"{where} is damaged: it holds another number of bytes than stated; {_START_ANEW}")


def _fill(reader: Any, array: NDArray[Any]) -> int:
    view = array.data
    filled = 0
    while filled < len(array):
        count = reader.readinto(view[filled : filled + (1 << 22)])
        if count == 0:
            break
        filled += count
    return filled


class _Limited:
    """A stream of the next `left` bytes of another stream."""

    def __init__(self, stream: BinaryIO, left: int) -> None:
        self._stream = stream
        self.left = left

    def read(self, size: int = -1) -> bytes:
        wanted = self.left if size < 0 else min(size, self.left)
        data = self._stream.read(wanted)
        self.left -= len(data)
        return data
