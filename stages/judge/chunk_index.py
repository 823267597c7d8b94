"""The rows kept so far in the current chunk, by bucket: the entries that are not in the candidate index yet.

Phase two looks up which of these rows belong to a bucket, newest first, and how many there are: each of them
will push one of the eight older entries out of the bucket.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.intrinsics import cell_of
from twinsieve.stages.kernel import kernel
from twinsieve.stages.window.buckets import Buckets, bucket_of, own_probe
from twinsieve.stages.window.chunk import Chunk

NONE = -1


class ChunkIndex(NamedTuple):
    """Memory for one chunk of at most n rows, with t bands and tables: a hash table of linked lists.

    kept_rows: int32[n], kept_indices: int64[n]: rows and kept indices of the kept rows, in order
    counts: int64[2], (number of kept rows, number of cells in use)
    keys: uint64[cells], bucket + 1, or 0 for an empty cell; used: int32[n * t], the cells in use
    heads, sizes: int32[cells], newest node and number of nodes of a bucket
    next: int32[n * t], the node kept before a node in its bucket, or NONE. Node i * t + table stands for the
        kept row number i in one band or table
    """

    kept_rows: NDArray[np.int32]
    kept_indices: NDArray[np.int64]
    counts: NDArray[np.int64]
    keys: NDArray[np.uint64]
    heads: NDArray[np.int32]
    sizes: NDArray[np.int32]
    used: NDArray[np.int32]
    next: NDArray[np.int32]


def new_chunk_index(rows: int, tables: int) -> ChunkIndex:
    """Memory for chunks of at most `rows` rows. tables: number of bands and tables"""
    cells = 1 << (2 * rows * tables).bit_length()
    return ChunkIndex(
        np.zeros(rows, np.int32),
        np.zeros(rows, np.int64),
        np.zeros(2, np.int64),
        np.zeros(cells, np.uint64),
        np.zeros(cells, np.int32),
        np.zeros(cells, np.int32),
        np.zeros(rows * tables, np.int32),
        np.zeros(rows * tables, np.int32),
    )


@kernel
def clear(index: ChunkIndex) -> None:
    """Empty the index for the next chunk."""
    for i in range(index.counts[1]):
        index.keys[index.used[i]] = np.uint64(0)
    index.counts[0] = 0
    index.counts[1] = 0


def filled_buckets(index: ChunkIndex) -> NDArray[np.int64]:
    """int64[m]: the buckets of the kept rows, in any order."""
    return index.keys[index.used[: index.counts[1]]].astype(np.int64) - 1


@kernel(callee=True)
def cell_of_bucket(index: ChunkIndex, bucket: int) -> np.int64:
    """The cell of a bucket; keys[cell] is 0 if no kept row belongs to the bucket."""
    return cell_of(index.keys, np.uint64(bucket + 1))


@kernel(callee=True, inlined=True)
def add_kept(
    index: ChunkIndex, chunk: Chunk, row: int, kept_index: int, buckets: Buckets, indexed: bool
) -> None:
    """Add a kept row. indexed: also insert it into its buckets"""
    number = index.counts[0]
    index.kept_rows[number] = row
    index.kept_indices[number] = kept_index
    index.counts[0] = number + 1
    if not indexed:
        return
    tables = buckets.bands + buckets.tables
    for table in range(tables):
        probe = own_probe(table, buckets)
        if chunk.probes[row] <= probe:
            return
        bucket = bucket_of(chunk, row, probe, buckets)
        cell = cell_of_bucket(index, bucket)
        node = number * tables + table
        if index.keys[cell] == np.uint64(0):
            index.keys[cell] = np.uint64(bucket + 1)
            index.sizes[cell] = 0
            index.heads[cell] = NONE
            index.used[index.counts[1]] = cell
            index.counts[1] += 1
        index.next[node] = index.heads[cell]
        index.heads[cell] = node
        index.sizes[cell] += 1
