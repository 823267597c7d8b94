"""A chunk: consecutive rows of a batch, as a tuple of arrays for kernels."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.contract import BandLayout, Batch
from twinsieve.stages.window.lengths import MAX_CODED_LENGTH, length_codes

CHUNK_ROWS = 1024
"""Rows of a chunk; they are judged with one state of the index. The number is so small that the data of all
rows stays in the processor's cache."""

SHARED_CHUNK_ROWS = 4_096
"""The same where threads share the rows: with fewer, their work is done before the system has moved one of
them to another core."""

EXACT_CHUNK_ROWS = 16_384
"""The same without a near stage, which has no pairs: more rows share the time of a kernel's call."""

_CODES = length_codes()


class Chunk(NamedTuple):
    """n rows of a batch as C-contiguous columns; meanings as in `Batch`, `Bodies` and `Fingerprints`.

    times, arrivals, streams: int64[n], ms or NO_TIME; positions: int64[n]; ids, scopes: uint64[n]
    digests: uint64[n, 2], with the scope mixed in if messages have scopes
    chars: uint32[…], word_starts: uint8[…], starts: int64[n + 1]
    lengths: int32[n], body length; for an exact-only row -(key length)
    owns: int32[n], body characters before a shared card, or -1 without a card
    codes: uint8[n], length codes; probes: int32[n], number of look-ups in buckets, 0 for exact-only rows
    bags: uint64[n, 4]; signatures: uint32[n]; band_keys: uint32[n, bands]
    simhashes: uint64[n, 2]; weak_bits: uint8[n, tables, weak]; has_simhash: bool[n]
    part_hashes: uint64[n, H]
    sketches: uint8[m, 64]; sketch_rows: int32[n]; tallies: uint64[n]
    """

    positions: NDArray[np.int64]
    times: NDArray[np.int64]
    arrivals: NDArray[np.int64]
    streams: NDArray[np.int64]
    ids: NDArray[np.uint64]
    scopes: NDArray[np.uint64]
    digests: NDArray[np.uint64]
    chars: NDArray[np.uint32]
    word_starts: NDArray[np.uint8]
    starts: NDArray[np.int64]
    lengths: NDArray[np.int32]
    owns: NDArray[np.int32]
    codes: NDArray[np.uint8]
    probes: NDArray[np.int32]
    bags: NDArray[np.uint64]
    signatures: NDArray[np.uint32]
    band_keys: NDArray[np.uint32]
    simhashes: NDArray[np.uint64]
    weak_bits: NDArray[np.uint8]
    has_simhash: NDArray[np.bool_]
    part_hashes: NDArray[np.uint64]
    sketches: NDArray[np.uint8]
    sketch_rows: NDArray[np.int32]
    tallies: NDArray[np.uint64]


def whole_batch(batch: Batch, layout: BandLayout, scoped: bool) -> Chunk:
    """All rows of a batch as one chunk. `rows` then takes parts of it without copying."""
    batch = batch.for_kernels()
    bodies, prints = batch.bodies, batch.fingerprints
    key_lengths = np.diff(bodies.starts).astype(np.int32)
    lengths = np.where(bodies.exact_only, -key_lengths, bodies.body_lengths).astype(np.int32)
    own = np.where(bodies.own_lengths < bodies.body_lengths, bodies.own_lengths, -1).astype(np.int32)
    digests = prints.digests
    if scoped:
        digests = digests ^ batch.scopes[:, None]
    return Chunk(
        batch.positions,
        batch.times_ms,
        batch.arrivals_ms,
        batch.stream_ms,
        batch.ids,
        batch.scopes,
        digests,
        bodies.chars,
        bodies.word_starts,
        bodies.starts,
        lengths,
        own,
        length_codes_of(lengths),
        probes_of(~bodies.exact_only, lengths, prints.has_simhash, layout),
        prints.bags.view(np.uint64),
        prints.signatures,
        prints.band_keys,
        prints.simhashes,
        prints.weak_bits,
        prints.has_simhash,
        prints.part_hashes,
        prints.sketches,
        prints.sketch_rows,
        prints.tallies,
    )


def length_codes_of(lengths: NDArray[np.int32]) -> NDArray[np.uint8]:
    """uint8[n]: the length code of each length; 0 for exact-only rows. lengths: as in `Chunk`"""
    return _CODES[np.clip(lengths, 0, MAX_CODED_LENGTH)]


def probes_of(
    is_near: NDArray[np.bool_],
    lengths: NDArray[np.int32],
    has_simhash: NDArray[np.bool_],
    layout: BandLayout,
) -> NDArray[np.int32]:
    """int32[n]: number of look-ups of each row in the buckets.

    is_near: False for exact-only rows, which have no look-ups; lengths: as in `Chunk`
    """
    by_simhash = has_simhash & (lengths >= layout.simhash_from)
    probes = layout.bands + by_simhash * (layout.tables << layout.weak)
    return np.where(is_near, probes, 0).astype(np.int32)


def rows(chunk: Chunk, low: int, high: int) -> Chunk:
    """Rows low to high (exclusive) of a chunk; they share its memory."""
    whole = {"chars", "word_starts", "sketches"}
    parts = {
        name: column if name in whole else column[low : high + (name == "starts")]
        for name, column in chunk._asdict().items()
    }
    return Chunk(**parts)
