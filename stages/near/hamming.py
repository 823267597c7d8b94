"""The method hamming: tables, or a scan, find every kept fingerprint within k bits, without exception.

A 64-bit fingerprint is cut into `blocks` parts. If two fingerprints differ in at most k bits, at least
blocks - k parts are equal. There is one table for each choice of blocks - k parts, and these parts are its
key; so in at least one table both fingerprints have the same key.
A table is a hash table of chains. A chain lists the kept messages with one hash, newest first: each entry
holds the kept index of the entry before it. A chain has no greatest length, so a frequent key costs time but
no recall.
A scan compares a message with all fingerprints in the ring and needs no table. It is the faster way for
large k, where a table's key is so short that each chain holds many.
source: Manku, Jain, Das Sarma 2007, section 3
"""

from __future__ import annotations

from itertools import combinations, pairwise
from math import comb

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.contract import MAX_DISTANCE, MAX_SCAN_DISTANCE, MAX_TABLES, NearConfig
from twinsieve.stages.errors import UsageError
from twinsieve.stages.intrinsics import GOLDEN, popcount
from twinsieve.stages.kernel import kernel
from twinsieve.stages.near.matches import NOT_PROPOSED, Matches, add_match
from twinsieve.stages.near.propose import NearIndex, is_within, kept_message
from twinsieve.stages.near.verify import ALIKE, SAME_ID, Scratch, first_meeting, same_id
from twinsieve.stages.window.chains import Chains
from twinsieve.stages.window.chunk import Chunk
from twinsieve.stages.window.ring import ring_capacity

FINGERPRINT_BITS = 64
SCAN_BLOCK = 256
"""Fingerprints that a scan compares at a time. Few blocks hold a match, and only these are looked through."""


def table_masks(blocks: int, distance: int) -> NDArray[np.uint64]:
    """uint64[C(blocks, distance)]: for each table, a mask of the fingerprint bits that are its key.

    raises: UsageError if this number of blocks cannot give full recall at the distance, or needs too many
        tables
    """
    if not distance < blocks <= FINGERPRINT_BITS:
        raise UsageError(
            f"near.blocks is {blocks}: with {distance} differing bits some block must stay equal; "
            f"use {distance + 1}..{FINGERPRINT_BITS}"
        )
    if comb(blocks, distance) > MAX_TABLES:
        raise UsageError(
            f"near.blocks {blocks} at distance {distance} needs {comb(blocks, distance)} tables; "
            f"use fewer blocks (at most {MAX_TABLES} tables)"
        )
    edges = block_edges(blocks)
    parts = [(1 << high) - (1 << low) for low, high in pairwise(edges)]
    return np.array([sum(kept) for kept in combinations(parts, blocks - distance)], dtype=np.uint64)


def block_edges(blocks: int) -> list[int]:
    """First bit of each block, and 64 behind the last. Sizes differ by one bit at most.

    >>> block_edges(5)
    [0, 12, 25, 38, 51, 64]
    """
    return [block * FINGERPRINT_BITS // blocks for block in range(blocks + 1)]


def table_bytes(tables: int, messages: int) -> int:
    """Bytes of this many tables for a window of this many messages."""
    return tables * 4 * (messages + _cells_for(messages))


def _cells_for(messages: int) -> int:
    return 1 << max(4, messages.bit_length())


def blocks_of(near: NearConfig) -> int:
    """Number of blocks of this configuration; the setting 0 means the largest distance plus 2."""
    return near.blocks or search_distance(near) + 2


def search_distance(near: NearConfig) -> int:
    """The largest distance of the SimHash that is searched; of two fields that of the first."""
    return near.distances_by_field[0] if near.distances_by_field else max(k for _, k in near.distances)


def masks_of(near: NearConfig) -> NDArray[np.uint64]:
    """`table_masks` of this configuration. raises: UsageError"""
    distance = search_distance(near)
    if distance > MAX_DISTANCE:
        raise UsageError(
            f"near.distances: k {distance} needs near.candidates: scan; tables go to {MAX_DISTANCE}"
        )
    return table_masks(blocks_of(near), distance)


def distance_table(steps: tuple[tuple[int, int], ...]) -> NDArray[np.int8]:
    """int8[length of the last step + 1]: k by the length of the shorter body; -1 below the first step.

    raises: UsageError unless lengths ascend and every k is 0..12
    """
    lengths = [length for length, _ in steps]
    if not steps or lengths != sorted(set(lengths)) or lengths[0] < 0:
        raise UsageError(f"near.distances {steps}: give steps [from_length, k] with ascending lengths")
    if not all(0 <= k <= MAX_SCAN_DISTANCE for _, k in steps):
        raise UsageError(f"near.distances {steps}: k must be 0..{MAX_SCAN_DISTANCE}")
    table = np.full(lengths[-1] + 1, -1, np.int8)
    for length, k in steps:
        table[length:] = k
    return table


def distances_of(near: NearConfig) -> NDArray[np.int8]:
    """`distance_table` of this configuration; distances by field hold for bodies of any length."""
    if near.distances_by_field:
        return distance_table(((0, near.distances_by_field[0]),))
    return distance_table(near.distances)


def new_chains(near: NearConfig) -> Chains:
    """Empty tables for this configuration, none for a scan. raises: UsageError"""
    distances = distances_of(near)
    second = np.array(near.distances_by_field[1:] or [-1], np.int8)
    if near.candidates == "scan":
        return no_chains()._replace(distances=distances, second=second)
    masks = masks_of(near)
    return Chains(
        masks,
        np.zeros((len(masks), _cells_for(near.window.messages)), np.uint32),
        np.zeros((len(masks), ring_capacity(near.window.messages)), np.uint32),
        distances,
        second,
    )


def no_chains() -> Chains:
    """Placeholder of the same type, for configurations with another method."""
    none = np.zeros((1, 1), np.uint32)
    return Chains(np.zeros(0, np.uint64), none, none, np.zeros(1, np.int8), np.full(1, -1, np.int8))


@kernel(callee=True)
def _cell(fingerprint: np.uint64, mask: np.uint64, cells: int) -> np.int64:
    # A multiplication moves bits only upwards. After one round, keys that differ in their high bits alone
    # would reach only a few cells.
    hashed = (fingerprint & mask) * GOLDEN
    hashed = (hashed ^ (hashed >> np.uint64(32))) * GOLDEN
    return np.int64((hashed ^ (hashed >> np.uint64(32))) & np.uint64(cells - 1))


@kernel
def count_close(fingerprints: NDArray[np.uint64], fingerprint: np.uint64, distance: np.uint64) -> np.int64:
    """How many of the fingerprints differ from `fingerprint` in at most `distance` bits.

    fingerprints: uint64[n], contiguous
    The loop has no branch and one sum, so that a processor with vector instructions compares four or eight
    fingerprints at a time. The type of `distance` matters for this: it must be that of the bits.

    >>> int(count_close(np.array([7, 0, 6], np.uint64), np.uint64(6), np.uint64(1)))
    2
    """
    count = 0
    for i in range(len(fingerprints)):
        count += popcount(fingerprints[i] ^ fingerprint) <= distance
    return np.int64(count)


@kernel(callee=True)
def allowed_distance(chains: Chains, length: int, other: int) -> np.int64:
    """The allowed distance k for two body lengths; -1 if the shorter body is exact-only."""
    shorter = min(length, other)
    return np.int64(chains.distances[min(shorter, len(chains.distances) - 1)])


@kernel(callee=True)
def compare_bits(chunk: Chunk, row: int, index: NearIndex, slot: int) -> tuple[int, int, int]:
    """(status, equal bits, compared bits) of a row and a ring entry.

    64 bits are compared, or 128 of two fields.
    status: 0 if they are not alike; else ALIKE, plus SAME_ID if both have one id and such pairs are kept
        apart
    """
    ring, rules = index.ring, index.verify
    if not chunk.has_simhash[row] or ring.lengths[slot] <= 0:
        return 0, 0, 0
    if rules.scoped and chunk.scopes[row] != ring.scopes[slot]:
        return 0, 0, 0
    bits = np.int64(popcount(chunk.simhashes[row, 0] ^ ring.simhashes[slot]))
    if bits > allowed_distance(index.chains, np.int64(chunk.lengths[row]), np.int64(ring.lengths[slot])):
        return 0, 0, 0
    compared = FINGERPRINT_BITS
    if index.chains.second[0] >= 0:
        more = np.int64(popcount(chunk.simhashes[row, 1] ^ ring.second_simhashes[slot]))
        if more > index.chains.second[0]:
            return 0, 0, 0
        bits += more
        compared = 2 * FINGERPRINT_BITS
    status = ALIKE
    if rules.pass_same_id and same_id(chunk, row, ring, slot):
        status |= SAME_ID
    return status, compared - bits, compared


@kernel(callee=True)
def _propose_row(
    chunk: Chunk,
    row: int,
    index: NearIndex,
    scratch: Scratch,
    matches: Matches,
    place: int,
    end: int,
) -> int:
    """Add the matches of one row to `matches`, from `place` on.

    returns: place of the next match; NOT_PROPOSED if the room up to `end` is too small, and then the row is
        NOT_PROPOSED
    """
    if index.candidates.scan:
        return _scan_row(chunk, row, index, matches, place, end)
    ring, chains = index.ring, index.chains
    capacity = len(ring.positions)
    cells = chains.heads.shape[1]
    for table in range(len(chains.masks)):
        link = chains.heads[table, _cell(chunk.simhashes[row, 0], chains.masks[table], cells)]
        while link != np.uint32(0):
            age = np.int64(np.uint32(np.uint32(index.before) - np.uint32(link - np.uint32(1))))
            if age > capacity or age == 0:
                break
            kept_index = index.before - age
            slot = kept_index % capacity
            link = chains.next[table, slot]
            if not first_meeting(scratch.seen, row, kept_index) or not is_within(
                index.begin, kept_index, ring.times[slot]
            ):
                continue
            compared_as = compare_bits(chunk, row, index, slot)
            place = add_match(matches, row, place, end, kept_message(ring, kept_index), compared_as)
            if place == NOT_PROPOSED:
                return NOT_PROPOSED
    return place


@kernel(callee=True)
def _scan_row(chunk: Chunk, row: int, index: NearIndex, matches: Matches, place: int, end: int) -> int:
    """`_propose_row` without tables: compare the row with the whole ring, block by block."""
    ring = index.ring
    fingerprint = chunk.simhashes[row, 0]
    # A pair may have the k of any shorter body, and nothing says that k falls with the length.
    greatest = np.int64(-1)
    for step in range(len(index.chains.distances)):
        greatest = max(greatest, np.int64(index.chains.distances[step]))
    if greatest < 0:
        return place
    distance = np.uint64(greatest)
    capacity = len(ring.positions)
    before = index.before
    low = index.begin.kept
    while low < before:
        slot = low % capacity
        size = min(before - low, SCAN_BLOCK, capacity - slot)
        if count_close(ring.simhashes[slot : slot + size], fingerprint, distance):
            for kept_index in range(low, low + size):
                if popcount(ring.simhashes[kept_index % capacity] ^ fingerprint) > distance:
                    continue
                if not is_within(index.begin, kept_index, ring.times[kept_index % capacity]):
                    continue
                compared_as = compare_bits(chunk, row, index, kept_index % capacity)
                place = add_match(matches, row, place, end, kept_message(ring, kept_index), compared_as)
                if place == NOT_PROPOSED:
                    return NOT_PROPOSED
        low += size
    return place


@kernel(callee=True)
def propose_bits(
    low: int,
    high: int,
    chunk: Chunk,
    index: NearIndex,
    scratch: Scratch,
    matches: Matches,
    place: int,
    end: int,
) -> int:
    """`propose` under the method hamming."""
    scratch.seen[:] = 0
    for row in range(low, high):
        if chunk.probes[row] == 0 or not chunk.has_simhash[row] or matches.heads[row] == NOT_PROPOSED:
            continue
        following = _propose_row(chunk, row, index, scratch, matches, place, end)
        if following != NOT_PROPOSED:
            place = following
    return place


@kernel
def link_kept(
    chunk: Chunk,
    rows: NDArray[np.int32],
    kept_indices: NDArray[np.int64],
    count: int,
    first_table: int,
    end_table: int,
    chains: Chains,
) -> None:
    """Insert the first `count` of `rows` at the heads of their chains, in tables first_table to end_table."""
    capacity = chains.next.shape[1]
    cells = chains.heads.shape[1]
    for table in range(first_table, end_table):
        mask = chains.masks[table]
        for i in range(count):
            row = rows[i]
            if chunk.probes[row] == 0 or not chunk.has_simhash[row]:
                continue
            cell = _cell(chunk.simhashes[row, 0], mask, cells)
            chains.next[table, kept_indices[i] % capacity] = chains.heads[table, cell]
            chains.heads[table, cell] = np.uint32(kept_indices[i] + 1)
