"""`KeptMessages`: all that the near stage stored of kept messages, so that a restore can keep them again.

A restored sieve keeps them in the same order with the same kernels, so its ring, its buckets and its table of
tags answer as those of the sieve that judged them.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, fields
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.columns import Columns, Dim, Packed, PerRow, Places, Pooled, Sent, Starts
from twinsieve.stages.contract import NO_TIME, SKETCH_FROM, STORED_LENGTH, BandLayout
from twinsieve.stages.errors import DamagedError
from twinsieve.stages.window.chunk import Chunk, length_codes_of, probes_of

_BAG_WORDS = 4
"""uint64 that a char bag has."""


@dataclass(slots=True)
class KeptMessages(Columns):
    """n kept messages in the order of keeping. A column that says nothing else is that of `Chunk`."""

    positions: Annotated[NDArray[np.int64], PerRow("<i8")]
    times_ms: Annotated[NDArray[np.int64], PerRow("<i8", fill=NO_TIME)]
    """stream time at which each message was kept, or NO_TIME"""
    lengths: Annotated[NDArray[np.int32], PerRow("<i4")]
    owns: Annotated[NDArray[np.int32], PerRow("<i4", fill=-1)]
    ids: Annotated[NDArray[np.uint64], PerRow("<u8")]
    scopes: Annotated[NDArray[np.uint64], PerRow("<u8")]
    tallies: Annotated[NDArray[np.uint64], PerRow("<u8")]
    is_near: Annotated[NDArray[np.bool_], PerRow("?")]
    """False for exact-only messages"""
    has_simhash: Annotated[NDArray[np.bool_], PerRow("?")]
    simhashes: Annotated[NDArray[np.uint64], PerRow("<u8", (2,))]
    """zeros for a message that no SimHash table holds"""
    bags: Annotated[NDArray[np.uint64], PerRow("<u8", (_BAG_WORDS,))]
    digests: Annotated[NDArray[np.uint64], PerRow("<u8", (2,), sent=Sent.PLAIN)]
    signatures: Annotated[NDArray[np.uint32], PerRow("<u4", sent=Sent.PLAIN)]
    band_keys: Annotated[NDArray[np.uint32], PerRow("<u4", (Dim("bands", "H"),), sent=Sent.PLAIN)]
    part_hashes: Annotated[NDArray[np.uint64], PerRow("<u8", (Dim("parts", "B"),), sent=Sent.PLAIN)]
    starts: Annotated[NDArray[np.int64], Starts("<u2", max_sent=STORED_LENGTH)]
    chars: Annotated[NDArray[np.uint32], Packed("<u4", by="starts")]
    word_starts: Annotated[NDArray[np.uint8], Packed("u1", by="starts")]
    sketches: Annotated[NDArray[np.uint8], Pooled("u1", (64,), by="sketch_rows", sent=Sent.PLAIN)]
    sketch_rows: Annotated[NDArray[np.int32], Places("<i4", of="sketches")]


_OWN = {"times_ms", "is_near"}
"""Columns that a chunk has not, or has with another meaning."""
_SHARED = [field.name for field in fields(KeptMessages) if field.name not in _OWN]


def kept_messages(
    chunk: Chunk, rows: NDArray[np.int32], times_ms: NDArray[np.int64], layout: BandLayout, *, text: bool
) -> KeptMessages:
    """These rows of a chunk, as copies.

    rows: in the order of keeping; times_ms: int64[n], stream time of each
    text: whether the near stage compares texts; then only long bodies have SimHashes in tables
    """
    columns = {name: getattr(chunk, name) for name in _SHARED}
    if not columns["bags"].shape[1]:
        # Without a near stage there are none. A file has a fixed number of them.
        columns["bags"] = np.zeros((len(chunk.lengths), _BAG_WORDS), np.uint64)
    kept = KeptMessages(**columns, times_ms=chunk.times, is_near=chunk.probes > 0).take(rows)
    kept.times_ms = times_ms
    if text:
        kept.simhashes[chunk.probes[rows] <= layout.bands] = 0
    return kept


def check_kept(kept: KeptMessages, layout: BandLayout, *, text: bool) -> None:
    """Check messages from a file before they are kept again: kernels read what they stored by lengths alone.

    text: whether the near stage compares texts
    raises: DamagedError
    """
    lengths, sizes = kept.lengths.astype(np.int64), np.diff(kept.starts)
    stored = np.minimum(np.abs(lengths), STORED_LENGTH)
    if text and (
        kept.band_keys.shape[1] != layout.bands
        # A file has what a window stores of a text; a sieve hands over whole texts.
        or not ((sizes == stored) | (sizes == np.abs(lengths))).all()
        or not (kept.sketch_rows >= 0)[lengths >= SKETCH_FROM].all()
        or not (kept.owns <= stored).all()
    ):
        raise DamagedError("lengths of kept messages contradict their texts")
    if lengths.min(initial=0) == np.iinfo(np.int32).min or kept.chars.max(initial=0) > sys.maxunicode:
        raise DamagedError("kept messages have lengths or characters that none has")


def as_chunk(kept: KeptMessages, layout: BandLayout) -> Chunk:
    """The messages as a chunk that can be kept again, but not looked up. Its times are stream times."""
    kept = kept.for_kernels()
    count = len(kept)
    columns = {name: getattr(kept, name) for name in _SHARED}
    return Chunk(
        **columns,
        times=kept.times_ms,
        arrivals=np.full(count, NO_TIME, np.int64),
        streams=np.full(count, NO_TIME, np.int64),
        codes=length_codes_of(kept.lengths),
        probes=probes_of(kept.is_near, kept.lengths, kept.has_simhash, layout),
        weak_bits=np.zeros((count, layout.tables, layout.weak), np.uint8),
    )
