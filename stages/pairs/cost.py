"""What each scheme of search costs a message, when n messages are kept: look-ups, candidates, bytes, time.

Look-ups and candidates are expected values for random fingerprints. Fingerprints of real posts share blocks
more often than random ones, so they have more candidates; `python -m bench.classics_searches` counts both.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.contract import MAX_DISTANCE, MAX_SCAN_DISTANCE
from twinsieve.stages.errors import UsageError
from twinsieve.stages.near.hamming import FINGERPRINT_BITS, block_edges, table_bytes
from twinsieve.stages.pairs.variants import variant_count

SCAN_NS, LOOKUP_NS, CANDIDATE_NS = 0.11, 325.0, 245.0
"""Nanoseconds of one comparison of a scan, of one look-up in a table (with the link that a kept message adds
to it), and of one candidate that a look-up finds.

Measured by `python -m bench.classics_searches` with 1,000,000 kept on an AMD EPYC of 2 cores; it prints those
of the machine that it runs on.
"""

MAX_ENUMERATE, MAX_EXPAND = 3, 2
MAX_COMPARISONS = 10**13
MAX_LOOKUPS = 10**10
MAX_EXPANDED_BYTES = 2 << 30
_ENTRY_BYTES = 8


class Cost(NamedTuple):
    """Of one message, with n kept.

    lookups: look-ups in tables; candidates: kept fingerprints that it is compared with, one that stands in
        several tables counts in each; bytes: of a kept message, its fingerprint included
    """

    lookups: float
    candidates: float
    bytes: float

    @property
    def ns(self) -> float:
        """Time of a search in tables, by the measured constants."""
        return self.lookups * LOOKUP_NS + self.candidates * CANDIDATE_NS


def costs(kept: int, distance: int, masks: NDArray[np.uint64] | None) -> dict[str, Cost]:
    """Cost of each scheme by name, also where `refuse` would not let it work.

    masks: keys of the tables, None where there are none

    >>> found = costs(2**34, 3, None)
    >>> found["sorted"].candidates, found["sorted"].lookups, found["enumerate"].lookups
    (1048576.0, 4, 43745)
    """
    variants = variant_count(distance)
    matches = kept * variants / 2**FINGERPRINT_BITS
    sizes = np.diff(block_edges(distance + 1)).astype(np.float64)
    found = {}
    if masks is not None:
        tables = _ENTRY_BYTES + table_bytes(len(masks), kept) / kept
        found["tables"] = Cost(len(masks), candidates_of(masks, kept), tables)
    return found | {
        # Each copy holds the fingerprint and the number of its row.
        "sorted": Cost(len(sizes), float((kept / 2**sizes).sum()), 2 * _ENTRY_BYTES * len(sizes)),
        "enumerate": Cost(variants, matches, _ENTRY_BYTES + table_bytes(1, kept) / kept),
        "expand": Cost(1, matches, _ENTRY_BYTES * (1 + variants)),
        "scan": Cost(0, kept, _ENTRY_BYTES),
    }


def candidates_of(masks: NDArray[np.uint64], kept: int) -> float:
    """Expected number of kept random fingerprints with the key of another one, over all tables."""
    return float((kept / 2 ** np.bitwise_count(masks).astype(np.float64)).sum())


def scan_ns(kept: int) -> float:
    """Time of a scan, by the measured constant."""
    return kept * SCAN_NS


def scan_is_faster_below(masks: NDArray[np.uint64]) -> int | None:
    """Number of kept messages below which a scan is faster than these tables; None: it is at any number.

    >>> from twinsieve.stages.near.hamming import table_masks
    >>> scan_is_faster_below(table_masks(4, 0)), scan_is_faster_below(table_masks(12, 10))
    (2955, None)
    """
    per_kept = candidates_of(masks, 1) * CANDIDATE_NS
    if per_kept >= SCAN_NS:
        return None
    return round(len(masks) * LOOKUP_NS / (SCAN_NS - per_kept))


def refuse(search: str, distance: int, rows: int) -> None:
    """raises: UsageError with the arithmetic where a scheme cannot find all pairs of so many fingerprints"""
    limits = {"scan": MAX_SCAN_DISTANCE, "enumerate": MAX_ENUMERATE, "expand": MAX_EXPAND}
    most = limits.get(search, MAX_DISTANCE)
    if not 0 <= distance <= most:
        raise UsageError(f"k is {distance}; {_reach(search, distance, most)}")
    work = f"search={search!r} with k {distance}"
    if search == "scan":
        _check(rows * (rows - 1) // 2, MAX_COMPARISONS, f"{work} makes", "comparisons", rows)
    elif search == "sorted":
        sizes = np.diff(block_edges(distance + 1)).astype(np.float64)
        candidates = int(rows * rows / 2 * float((1 / 2**sizes).sum()))
        _check(candidates, MAX_COMPARISONS, f"{work} makes", "comparisons", rows)
    elif search == "enumerate":
        each = variant_count(distance)
        _check(rows * each, MAX_LOOKUPS, f"{work} makes {each:,} look-ups a row:", "look-ups", rows)
    elif search == "expand":
        each = variant_count(distance)
        said = f"{work} stores {each:,} entries of {_ENTRY_BYTES} bytes a row:"
        _check(rows * each * _ENTRY_BYTES, MAX_EXPANDED_BYTES, said, "bytes", rows)


def _reach(search: str, distance: int, most: int) -> str:
    if distance < 0 or search in ("tables", "sorted", "scan"):
        more = (
            ""
            if distance < 0 or search == "scan"
            else f", or search='scan', which goes to {MAX_SCAN_DISTANCE}"
        )
        return f"use 0..{most}{more}"
    each = variant_count(min(distance, FINGERPRINT_BITS))
    what = "look-ups" if search == "enumerate" else f"entries of {_ENTRY_BYTES} bytes"
    return f"search={search!r} would take {each:,} {what} a row; use 0..{most}, or search='tables'"


def _check(needed: int, most: int, said: str, unit: str, rows: int) -> None:
    if needed > most:
        advice = "use search='tables', or fewer rows"
        raise UsageError(f"{said} {needed:,} {unit} for {rows:,} rows, at most {most:,}; {advice}")
