"""The method signatures: finds the kept messages that have enough part hashes in common with a row.

A part hash is the hash of one part of a message, for instance of a sentence (`fingerprint/signature.py`).
The index of the kept messages is a hash table with chaining. Each part hash of a kept message is one link of
a chain. A cell of the table holds the newest link of all hashes that fall into this cell, and each link
holds the link before it. For each of its own hashes, a row follows the chain from the newest link on. It
counts the hashes that it has in common with the message of each link.

If 100,000 messages contain the same sentence, its chain has 100,000 links. So a row follows at most MAX_LINKS
links of a chain. A match has at least `share` hashes in common with the row. So if fewer than `share` chains
of the row are longer than MAX_LINKS, the row follows the whole chain of at least one common hash, and misses
no match. Otherwise a match may be missed, and the verdict gets `Flag.CUT_SHORT`.

Rows are judged one after the other, and the links of a kept row are added at once. So the sizes of chunks
and the number of threads do not change the result.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.contract import MAX_PARTS
from twinsieve.stages.intrinsics import GOLDEN
from twinsieve.stages.kernel import kernel
from twinsieve.stages.memory_pages import zeros
from twinsieve.stages.near.verify import ALIKE, SAME_ID, VerifyParams, same_id
from twinsieve.stages.window.chains import PartChains
from twinsieve.stages.window.chunk import Chunk
from twinsieve.stages.window.ring import KEPT, OLDEST, RingColumns

MAX_LINKS = 1024
"""Greatest number of links that one row follows in one chain."""

_PART_BITS = (MAX_PARTS - 1).bit_length()
"""Number of bits of a link that hold the number of the part in its message."""
_SMALL_BYTES = 1 << 16


def new_part_chains(window: int, parts: int) -> PartChains:
    """Empty chains for a window of `window` messages with up to `parts` part hashes each."""
    links = window * parts
    return PartChains(
        zeros(_cells(links), np.uint64, small_bytes=_SMALL_BYTES),
        zeros(links, np.uint64, small_bytes=_SMALL_BYTES),
    )


def part_chain_bytes(window: int, parts: int) -> int:
    """Memory of the chains in bytes, when the window is full."""
    links = window * parts
    return 8 * (links + _cells(links))


def _cells(links: int) -> int:
    return 1 << max(4, (links - 1).bit_length())


@kernel(callee=True)
def _cell(part_hash: np.uint64, cells: int) -> np.int64:
    return np.int64(((part_hash * GOLDEN) >> np.uint64(16)) & np.uint64(cells - 1))


@kernel(callee=True)
def common_parts(parts: NDArray[np.uint64], row: int, others: NDArray[np.uint64], other: int) -> np.int64:
    """Number of part hashes that row `row` of `parts` and row `other` of `others` have in common.

    parts, others: uint64[…, H], the hashes of a row in ascending order, then zeros
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
    """(status, number of common part hashes, MAX_PARTS) of a row and a ring entry.

    status: 0 if they have too few hashes in common or different scopes, or if the near stage skips the
        entry. Else ALIKE, plus SAME_ID if both are kept because they have the same id
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
    """The newest link in the cell of this part hash; 0 if the cell is empty."""
    return chains.heads[_cell(part_hash, len(chains.heads))]


@kernel(callee=True)
def kept_of(ring: RingColumns, link: np.uint64) -> np.int64:
    """Kept index of the message to which a link belongs (its number among all kept messages).

    It is -1 if `link` is 0 (end of a chain), or if the message has left the ring.
    """
    if link == np.uint64(0):
        return np.int64(-1)
    kept_index = np.int64((link - np.uint64(1)) >> np.uint64(_PART_BITS))
    kept = ring.counters[KEPT]
    if kept_index < ring.counters[OLDEST] or kept - kept_index > len(ring.positions):
        return np.int64(-1)
    return kept_index


@kernel(callee=True)
def next_link(chains: PartChains, ring: RingColumns, link: np.uint64) -> np.uint64:
    """The link before `link` in its chain, or 0. The message of `link` must still be in the ring."""
    kept_index = np.int64((link - np.uint64(1)) >> np.uint64(_PART_BITS))
    part = np.int64((link - np.uint64(1)) & np.uint64((1 << _PART_BITS) - 1))
    return chains.next[kept_index % len(ring.positions) * ring.part_hashes.shape[1] + part]


@kernel(callee=True)
def link_parts(chains: PartChains, ring: RingColumns, kept_index: int) -> None:
    """Add the message with this kept index to the front of the chain of each of its part hashes."""
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
    """Number of part hashes that two rows of `Fingerprints.part_hashes` have in common."""
    return len(set(parts[row].tolist()) & set(parts[other].tolist()) - {0})


@kernel
def link_all(chains: PartChains, ring: RingColumns) -> None:
    """Fill empty chains with all messages of the ring, oldest first; used after the ring was restored."""
    first = max(ring.counters[OLDEST], ring.counters[KEPT] - len(ring.positions))
    for kept_index in range(first, ring.counters[KEPT]):
        link_parts(chains, ring, kept_index)
