"""The method signatures: kept messages that share part hashes with a row, found through chains by hash.

Every part hash of a kept message is one link. A cell holds the newest link of all hashes that fall into it,
and each link holds the one before it. A row follows the chain of each of its own hashes, newest first, and
counts the hashes that it has in common with the message of each link.

A sentence that stands in 100,000 messages makes a chain of 100,000 links. So a row follows at most MAX_LINKS
links of a chain. A match shares at least `share` hashes with the row; so as long as fewer than `share` chains
of the row are cut short, one of the shared hashes has a whole chain, and no match is missed. If more chains
are cut short, the verdict gets `Flag.CUT_SHORT`.

Rows are judged one after the other, and a kept row is linked at once, so chunks and threads change nothing.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.contract import MAX_PARTS
from twinsieve.stages.intrinsics import GOLDEN
from twinsieve.stages.kernel import kernel
from twinsieve.stages.near.verify import ALIKE, SAME_ID, VerifyParams, same_id
from twinsieve.stages.pages import zeros
from twinsieve.stages.window.chains import PartChains
from twinsieve.stages.window.chunk import Chunk
from twinsieve.stages.window.ring import KEPT, OLDEST, RingColumns

MAX_LINKS = 1024
"""Most links of a chain that one row follows."""

_PART_BITS = (MAX_PARTS - 1).bit_length()
"""Bits of a link that hold the number of its part."""
_SMALL_BYTES = 1 << 16


def new_part_chains(window: int, parts: int) -> PartChains:
    """Empty chains for a window of that many messages with that many parts each."""
    links = window * parts
    return PartChains(
        zeros(_cells(links), np.uint64, small_bytes=_SMALL_BYTES),
        zeros(links, np.uint64, small_bytes=_SMALL_BYTES),
    )


def part_chain_bytes(window: int, parts: int) -> int:
    """Bytes of the chains of a full window."""
    links = window * parts
    return 8 * (links + _cells(links))


def _cells(links: int) -> int:
    return 1 << max(4, (links - 1).bit_length())


@kernel(callee=True)
def _cell(part_hash: np.uint64, cells: int) -> np.int64:
    return np.int64(((part_hash * GOLDEN) >> np.uint64(16)) & np.uint64(cells - 1))


@kernel(callee=True)
def common_parts(parts: NDArray[np.uint64], row: int, others: NDArray[np.uint64], other: int) -> np.int64:
    """Number of hashes that two rows have in common.

    parts, others: uint64[…, H], each row ascending, with zeros behind its last hash
    """
    count = np.int64(0)
    i = np.int64(0)
    j = np.int64(0)
    width = parts.shape[1]
    while i < width and j < width and parts[row, i] != np.uint64(0) and others[other, j] != np.uint64(0):
        if parts[row, i] == others[other, j]:
            count += 1
            i += 1
            j += 1
        elif parts[row, i] < others[other, j]:
            i += 1
        else:
            j += 1
    return count


@kernel(callee=True)
def compare_parts(
    chunk: Chunk, row: int, ring: RingColumns, slot: int, rules: VerifyParams
) -> tuple[int, int, int]:
    """(status, shared hashes, MAX_PARTS) of a row and a ring entry.

    status: 0 if they are not alike; else ALIKE, with SAME_ID if that keeps them apart
    """
    if ring.lengths[slot] <= 0 or (rules.scoped and chunk.scopes[row] != ring.scopes[slot]):
        return 0, 0, 0
    shared = common_parts(chunk.part_hashes, row, ring.part_hashes, slot)
    if shared < rules.share:
        return 0, 0, 0
    if rules.pass_same_id and same_id(chunk, row, ring, slot):
        return ALIKE | SAME_ID, shared, MAX_PARTS
    return ALIKE, shared, MAX_PARTS


@kernel(callee=True)
def first_link(chains: PartChains, part_hash: np.uint64) -> np.uint64:
    """The newest link of the chain in which a hash stands, 0 for none."""
    return chains.heads[_cell(part_hash, len(chains.heads))]


@kernel(callee=True)
def kept_of(ring: RingColumns, link: np.uint64) -> np.int64:
    """Kept index of a link's message; -1 if the ring no longer holds it, or there is no link."""
    if link == np.uint64(0):
        return np.int64(-1)
    kept_index = np.int64((link - np.uint64(1)) >> np.uint64(_PART_BITS))
    kept = ring.counters[KEPT]
    if kept_index < ring.counters[OLDEST] or kept - kept_index > len(ring.positions):
        return np.int64(-1)
    return kept_index


@kernel(callee=True)
def next_link(chains: PartChains, ring: RingColumns, link: np.uint64) -> np.uint64:
    """The link before this one in its chain; the ring must still hold the message of this one."""
    kept_index = np.int64((link - np.uint64(1)) >> np.uint64(_PART_BITS))
    part = np.int64((link - np.uint64(1)) & np.uint64((1 << _PART_BITS) - 1))
    return chains.next[kept_index % len(ring.positions) * ring.part_hashes.shape[1] + part]


@kernel(callee=True)
def link_parts(chains: PartChains, ring: RingColumns, kept_index: int) -> None:
    """Put the message that was kept under this index at the front of the chains of its hashes."""
    parts = ring.part_hashes.shape[1]
    slot = kept_index % len(ring.positions)
    for part in range(parts):
        part_hash = ring.part_hashes[slot, part]
        if part_hash == np.uint64(0):
            break
        cell = _cell(part_hash, len(chains.heads))
        chains.next[slot * parts + part] = chains.heads[cell]
        chains.heads[cell] = ((np.uint64(kept_index) << np.uint64(_PART_BITS)) | np.uint64(part)) + np.uint64(
            1
        )


def shared_parts(parts: NDArray[np.uint64], row: int, other: int) -> int:
    """Number of hashes that two rows of `Fingerprints.part_hashes` have in common."""
    return len(set(parts[row].tolist()) & set(parts[other].tolist()) - {0})


@kernel
def link_all(chains: PartChains, ring: RingColumns) -> None:
    """Fill empty chains with all messages of the ring, oldest first, as after a restore."""
    first = max(ring.counters[OLDEST], ring.counters[KEPT] - len(ring.positions))
    for kept_index in range(first, ring.counters[KEPT]):
        link_parts(chains, ring, kept_index)
