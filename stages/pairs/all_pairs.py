"""All pairs of a column of fingerprints that differ in at most k bits, by any of five schemes.

Equal fingerprints are put together first; a scheme finds the pairs of distinct ones. Every scheme finds all
pairs, each once. They differ in what they cost, and `cost.refuse` says so where one cannot work.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.columns import starts_of
from twinsieve.stages.errors import UsageError
from twinsieve.stages.kernel import kernel
from twinsieve.stages.pairs import enumeration, expansion, scan, sorted_copies, tables
from twinsieve.stages.pairs.cost import refuse
from twinsieve.stages.pairs.found import Found, check_count

Search = Literal["tables", "sorted", "enumerate", "expand", "scan"]

_SCHEMES: dict[str, Callable[[NDArray[np.uint64], int, Found], None]] = {
    "tables": tables.find,
    "sorted": sorted_copies.find,
    "enumerate": enumeration.find,
    "expand": expansion.find,
    "scan": scan.find,
}


def all_pairs(
    fingerprints: NDArray[np.uint64], distance: int, max_pairs: int, search: Search = "tables"
) -> NDArray[np.int64]:
    """int64[m, 2]: rows of every pair within the distance, the earlier row first, sorted.

    fingerprints: uint64[n]; distance: bits
    raises: UsageError for a distance or a number of fingerprints for which the scheme cannot work, or if
        there are more than `max_pairs` pairs

    >>> all_pairs(np.array([7, 0, 6, 7], dtype=np.uint64), 1, 100).tolist()
    [[0, 2], [0, 3], [2, 3]]
    """
    if not isinstance(search, str) or search not in _SCHEMES:
        raise UsageError(f"search is {search!r}; choose {', '.join(get_args(Search))}")
    distinct, group = np.unique(fingerprints, return_inverse=True)
    refuse(search, distance, len(distinct))
    order = np.argsort(group, kind="stable")
    sizes = np.bincount(group, minlength=len(distinct)).astype(np.int64)
    starts = starts_of(sizes)
    found = Found(max_pairs)
    if distance:
        _SCHEMES[search](distinct, distance, found)
    alike = found.pairs
    inside = int((sizes * (sizes - 1) // 2).sum())
    across = int((sizes[alike[:, 0]] * sizes[alike[:, 1]]).sum())
    check_count(inside + across, max_pairs)
    pairs = np.empty((inside + across, 2), np.int64)
    _of_rows(alike, order, starts, pairs)
    pairs.sort(axis=1)
    return pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]


@kernel
def _of_rows(
    alike: NDArray[np.int64], order: NDArray[np.int64], starts: NDArray[np.int64], pairs: NDArray[np.int64]
) -> None:
    """Write the pairs of rows: of equal fingerprints, and of each two distinct ones that are alike.

    order: int64[n], rows by group; starts: int64[groups + 1], group g is order[starts[g]:starts[g + 1]]
    """
    place = 0
    for group in range(len(starts) - 1):
        for left in range(starts[group], starts[group + 1]):
            for right in range(left + 1, starts[group + 1]):
                pairs[place, 0] = order[left]
                pairs[place, 1] = order[right]
                place += 1
    for pair in range(len(alike)):
        first, second = alike[pair, 0], alike[pair, 1]
        for left in range(starts[first], starts[first + 1]):
            for right in range(starts[second], starts[second + 1]):
                pairs[place, 0] = order[left]
                pairs[place, 1] = order[right]
                place += 1
