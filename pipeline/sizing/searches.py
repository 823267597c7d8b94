"""What each search by Hamming distance takes under these settings: for `lint --at`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from twinsieve.pipeline.settings.model import Settings
from twinsieve.pipeline.settings.stage_config import sieve_config
from twinsieve.stages.contract import MAX_DISTANCE, MAX_RING
from twinsieve.stages.near.hamming import blocks_of, masks_of, search_distance, table_masks
from twinsieve.stages.pairs.cost import (
    candidates_of,
    costs,
    scan_is_faster_below,
    scan_ns,
)


@dataclass(frozen=True, slots=True)
class Searches:
    """distance: the greatest k of the settings; rows: search, look-ups, candidates, bytes a kept message

    notes: lines about where a scan is faster
    """

    distance: int
    rows: list[tuple[str, str, str, str]]
    notes: list[str]


def searches_at(settings: Settings, kept: int) -> Searches:
    """What each search takes with this number of messages kept."""
    near = sieve_config(settings, "").near
    distance = search_distance(near)
    masks = masks_of(near) if near.candidates == "index" else None
    if masks is None and distance <= MAX_DISTANCE:
        masks = table_masks(distance + 2, distance)
    names = {"sorted": f"sorted, {distance + 1} blocks"}
    notes = []
    if masks is not None:
        blocks = blocks_of(near) if near.candidates == "index" else distance + 2
        names["tables"] = f"tables, {blocks} blocks"
        notes = [_a_table(masks, kept), *_scan_or_tables(masks, distance, kept)]
    else:
        notes = [f"tables go to k {MAX_DISTANCE}; beyond that a scan is the faster way at any number"]
    if kept > MAX_RING:
        notes.append(f"the window of a sieve goes to {MAX_RING:,}")
    rows = [
        (names.get(name, name), f"{cost.lookups:,.0f}", _number(cost.candidates), f"{cost.bytes:,.0f}")
        for name, cost in costs(kept, distance, masks).items()
    ]
    return Searches(distance, rows, notes)


def _number(value: float) -> str:
    """The number in digits that matter.

    >>> _number(1048576.0), _number(0.2086), _number(4e-05)
    ('1,048,576', '0.21', '4e-05')
    """
    if value >= 10:
        return f"{value:,.0f}"
    return f"{value:.2g}" if value < 0.1 else f"{value:.2f}"


def _a_table(masks: NDArray[np.uint64], kept: int) -> str:
    """How large the tables' keys are, and the candidates of one table."""
    bits = np.bitwise_count(masks)
    low, high = int(bits.min()), int(bits.max())
    size = f"{low} bits" if low == high else f"{low} to {high} bits"
    each = [candidates_of(masks[table : table + 1], kept) for table in range(len(masks))]
    found = _number(min(each))
    if low != high:
        found += f" to {_number(max(each))}"
    return f"tables: {len(masks)} with keys of {size}: {found} candidates a table"


def _scan_or_tables(masks: NDArray[np.uint64], distance: int, kept: int) -> list[str]:
    """From how many messages and from which k on a scan is faster."""
    tables_us = costs(kept, distance, masks)["tables"].ns / 1000
    times = f"about {_number(tables_us)} µs by tables, {_number(scan_ns(kept) / 1000)} µs by a scan"
    until = scan_is_faster_below(masks)
    where = "at any number" if until is None else f"below {until:,} kept messages"
    lines = [f"a message takes {times}; a scan is faster {where}"]
    for k in range(distance, MAX_DISTANCE + 1):
        larger = table_masks(k + 2, k)
        if scan_ns(kept) <= costs(kept, k, larger)["tables"].ns:
            lines.append(f"with {kept:,} kept a scan is faster from k {k} on (tables of {k + 2} blocks)")
            return lines
    lines.append(
        f"with {kept:,} kept a scan is faster from k {MAX_DISTANCE + 1} on, where there are no tables"
    )
    return lines
