"""Columns of the readable rows of a block: what a `Batch` needs beside positions, and back."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from twinsieve.pipeline.wire.frame import Columns, pack_columns
from twinsieve.stages.contract import STORED_LENGTH, Bodies, Fingerprints
from twinsieve.stages.errors import StateError

_SHAPE = struct.Struct("<IIIBBHBB")
ROW_BYTES = 8
"""Most bytes of a row that is not readable."""

_DIGEST_COLUMNS = ("digests", "simhashes", "weak_bits", "band_keys", "bags", "signatures", "sketches")


@dataclass(slots=True)
class Readable:
    """m readable rows: what `Batch` holds, without positions and arrival."""

    times_ms: NDArray[np.int64]
    ids: NDArray[np.uint64]
    scopes: NDArray[np.uint64]
    bodies: Bodies
    fingerprints: Fingerprints

    def __len__(self) -> int:
        return len(self.times_ms)

    def row_bytes(self) -> NDArray[np.int64]:
        """Bytes that each row takes on the wire, at most and before compression."""
        prints = self.fingerprints
        fixed = 80 + prints.weak_bits[:1].nbytes + prints.band_keys[:1].nbytes + prints.bags[:1].nbytes
        lengths = np.minimum(np.diff(self.bodies.starts), STORED_LENGTH)
        sketch = (prints.sketch_rows >= 0) * prints.sketches.shape[1]
        return cast("NDArray[np.int64]", fixed + 4 * lengths + sketch)


def no_readable() -> Readable:
    """No row; dimensions as small as can be."""
    bodies = Bodies(
        np.empty(0, np.uint32), np.zeros(1, np.int64), np.empty(0, np.uint8),
        np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0, np.bool_),
    )  # fmt: skip
    prints = Fingerprints(
        np.empty((0, 2), np.uint64), np.empty((0, 2), np.uint64), np.empty(0, np.bool_),
        np.empty((0, 0, 0), np.uint8), np.empty((0, 0), np.uint32), np.empty((0, 32), np.uint8),
        np.empty(0, np.uint32), np.empty((0, 64), np.uint8), np.empty(0, np.int32),
    )  # fmt: skip
    empty = np.empty(0, np.uint64)
    return Readable(np.empty(0, np.int64), empty, empty, bodies, prints)


def pack_readable(rows: Readable) -> bytes:
    """Rows as bytes: a shape, a compressed section (texts, times, lengths), a plain one (hashes)."""
    bodies, prints = rows.bodies, rows.fingerprints
    lengths, chars = _stored(bodies)
    wide = bool(len(chars)) and int(chars.max()) > 0xFFFF
    sketch_rows, sketches = _sketches(prints)
    shape = _SHAPE.pack(
        len(rows),
        len(chars),
        len(sketches),
        prints.weak_bits.shape[1],
        prints.weak_bits.shape[2],
        prints.band_keys.shape[1],
        prints.bags.shape[1],
        4 if wide else 2,
    )
    texts: list[NDArray[Any]] = [
        rows.times_ms,
        rows.scopes,
        lengths.astype("<u2"),
        bodies.body_lengths,
        bodies.own_lengths,
        bodies.exact_only.view(np.uint8),
        prints.has_simhash.view(np.uint8),
        sketch_rows,
        chars.astype("<u4" if wide else "<u2"),
    ]
    hashes: list[NDArray[Any]] = [
        rows.ids,
        *(getattr(prints, name) for name in _DIGEST_COLUMNS[:-1]),
        sketches,
    ]
    return b"".join((shape, pack_columns(texts, compress=True), pack_columns(hashes, compress=False)))


def unpack_readable(content: memoryview, at: int, where: str) -> Readable:
    """Rows of some bytes; StateError when they are damaged."""
    if len(content) < at + _SHAPE.size:
        raise StateError(f"{where}: ends early; nothing else may write to this topic")
    count, total, sketched, tables, weak, bands, bag, width = _SHAPE.unpack_from(content, at)
    texts = Columns(content, at + _SHAPE.size, where)
    times_ms = cast("NDArray[np.int64]", texts.take("<i8", count))
    scopes = cast("NDArray[np.uint64]", texts.take("<u8", count))
    starts = np.zeros(count + 1, np.int64)
    np.cumsum(texts.take("<u2", count), out=starts[1:])
    body_lengths = cast("NDArray[np.int32]", texts.take("<i4", count))
    own_lengths = cast("NDArray[np.int32]", texts.take("<i4", count))
    exact_only = texts.take("u1", count).astype(np.bool_)
    has_simhash = texts.take("u1", count).astype(np.bool_)
    sketch_rows = cast("NDArray[np.int32]", texts.take("<i4", count))
    chars = texts.take("<u4" if width == 4 else "<u2", total).astype(np.uint32)
    texts.finish()
    hashes = Columns(content, texts.end, where)
    ids = cast("NDArray[np.uint64]", hashes.take("<u8", count))
    digests = cast("NDArray[np.uint64]", hashes.take("<u8", count, 2))
    simhashes = cast("NDArray[np.uint64]", hashes.take("<u8", count, 2))
    weak_bits = cast("NDArray[np.uint8]", hashes.take("u1", count, tables, weak))
    band_keys = cast("NDArray[np.uint32]", hashes.take("<u4", count, bands))
    bags = cast("NDArray[np.uint8]", hashes.take("u1", count, bag))
    signatures = cast("NDArray[np.uint32]", hashes.take("<u4", count))
    sketches = cast("NDArray[np.uint8]", hashes.take("u1", sketched, 64))
    hashes.finish()
    if int(starts[-1]) != total or (
        count and not -1 <= int(sketch_rows.min()) <= int(sketch_rows.max()) < sketched
    ):
        texts.contradiction()
    bodies = Bodies(chars, starts, np.zeros(total, np.uint8), body_lengths, own_lengths, exact_only)
    prints = Fingerprints(
        digests, simhashes, has_simhash, weak_bits, band_keys, bags, signatures, sketches, sketch_rows
    )
    return Readable(times_ms, ids, scopes, bodies, prints)


def slice_readable(rows: Readable, low: int, high: int) -> Readable:
    """Rows low…high."""
    bodies, prints = rows.bodies, rows.fingerprints
    first, last = int(bodies.starts[low]), int(bodies.starts[high])
    part = slice(low, high)
    return Readable(
        rows.times_ms[part],
        rows.ids[part],
        rows.scopes[part],
        Bodies(
            bodies.chars[first:last],
            bodies.starts[low : high + 1] - first,
            bodies.word_starts[first:last],
            bodies.body_lengths[part],
            bodies.own_lengths[part],
            bodies.exact_only[part],
        ),
        _print_rows(prints, part),
    )


def take_readable(rows: Readable, wanted: NDArray[np.bool_]) -> Readable:
    """The rows that are wanted, in order."""
    bodies = rows.bodies
    lengths = np.diff(bodies.starts)
    chars_wanted = np.repeat(wanted, lengths)
    starts = np.zeros(int(np.count_nonzero(wanted)) + 1, np.int64)
    np.cumsum(lengths[wanted], out=starts[1:])
    return Readable(
        rows.times_ms[wanted],
        rows.ids[wanted],
        rows.scopes[wanted],
        Bodies(
            bodies.chars[chars_wanted],
            starts,
            bodies.word_starts[chars_wanted],
            bodies.body_lengths[wanted],
            bodies.own_lengths[wanted],
            bodies.exact_only[wanted],
        ),
        _print_rows(rows.fingerprints, wanted),
    )


def _print_rows(prints: Fingerprints, part: slice | NDArray[np.bool_]) -> Fingerprints:
    chosen = Fingerprints(
        prints.digests[part], prints.simhashes[part], prints.has_simhash[part], prints.weak_bits[part],
        prints.band_keys[part], prints.bags[part], prints.signatures[part], prints.sketches,
        prints.sketch_rows[part],
    )  # fmt: skip
    chosen.sketch_rows, chosen.sketches = _sketches(chosen)
    return chosen


def _sketches(prints: Fingerprints) -> tuple[NDArray[np.int32], NDArray[np.uint8]]:
    """Sketches of these rows alone, in row order, and each row's number among them."""
    wanted = prints.sketch_rows >= 0
    renumbered = np.where(wanted, np.cumsum(wanted) - 1, -1).astype(np.int32)
    return renumbered, prints.sketches[prints.sketch_rows[wanted]]


def _stored(bodies: Bodies) -> tuple[NDArray[np.int64], NDArray[np.uint32]]:
    """Lengths and characters, each row cut to what the ring stores: no verdict reads beyond."""
    lengths = np.diff(bodies.starts)
    if not len(lengths) or int(lengths.max()) <= STORED_LENGTH:
        return lengths, bodies.chars[: int(bodies.starts[-1])]
    kept = np.minimum(lengths, STORED_LENGTH)
    within = np.arange(int(bodies.starts[-1])) - np.repeat(bodies.starts[:-1], lengths)
    return kept, bodies.chars[: int(bodies.starts[-1])][within < STORED_LENGTH]
