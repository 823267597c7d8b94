"""Judge pairs of messages of a sample each by itself, to measure how similar they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.contract import NO_TIME, OFF, SIMILARITY_SCALE, Batch, Kind, SieveConfig, Window
from twinsieve.stages.judge.batch_sieve import BatchSieve


def similarities_of(
    batches: Sequence[Batch],
    later: NDArray[np.int64],
    earlier: NDArray[np.int64],
    config: SieveConfig,
) -> NDArray[np.int64]:
    """int64[n]: similarity of each pair out of SIMILARITY_SCALE, or -1 where the sieve does not compare them.

    later, earlier: int64[n], positions of both messages
    """
    if not len(later):
        return np.zeros(0, np.int64)
    both = np.column_stack([earlier, later]).ravel()
    rows, places = np.unique(both, return_inverse=True)
    parts = [batch.take(np.isin(batch.positions, rows)) for batch in batches]
    pairs = Batch.concat(parts).take(places.ravel())
    count = len(both)
    pairs = replace(
        pairs,
        positions=np.arange(count, dtype=np.int64),
        times_ms=np.full(count, NO_TIME, np.int64),
        ids=np.zeros(count, np.uint64),
        # A pair has a scope of its own, so that it is compared with no other pair.
        scopes=(1 + np.arange(count) // 2).astype(np.uint64),
    )
    window = Window(count)
    near = replace(
        config.near, window=window, differences=config.near.differences._replace(level=OFF), threads=1
    )
    exact = replace(config.exact, window=window)
    judged = BatchSieve(replace(config, near=near, exact=exact, scoped=True)).judge(pairs)
    kinds, compared = judged.kinds[1::2], judged.compared[1::2].astype(np.int64)
    found = np.full(len(kinds), -1, np.int64)
    found[kinds == Kind.EXACT] = SIMILARITY_SCALE
    near_rows = kinds == Kind.NEAR
    matched = judged.matched[1::2].astype(np.int64)
    found[near_rows] = matched[near_rows] * SIMILARITY_SCALE // compared[near_rows]
    return found
