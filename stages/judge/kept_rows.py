"""The rows of the current chunk that were kept so far, in order."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.kernel import kernel


class KeptRows(NamedTuple):
    """Memory for one chunk of at most n rows.

    rows: int32[n], the kept rows; their kept indices follow each other
    counts: int64[1], how many they are
    """

    rows: NDArray[np.int32]
    counts: NDArray[np.int64]


def new_kept_rows(rows: int) -> KeptRows:
    """Memory for chunks of at most `rows` rows."""
    return KeptRows(np.zeros(rows, np.int32), np.zeros(1, np.int64))


@kernel(callee=True, inlined=True)
def add_kept(kept: KeptRows, row: int) -> None:
    """Add a kept row."""
    kept.rows[kept.counts[0]] = row
    kept.counts[0] += 1
