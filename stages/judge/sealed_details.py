"""Writes what differs between a row and an entry of a sealed segment, after the row was judged."""

from __future__ import annotations

from twinsieve.stages.judge.params import Outcome
from twinsieve.stages.kernel import kernel
from twinsieve.stages.near.verify import Scratch, VerifyParams, write_detail
from twinsieve.stages.window.chunk import Chunk
from twinsieve.stages.window.ring import RingColumns


@kernel
def write_sealed_detail(
    chunk: Chunk,
    row: int,
    ring: RingColumns,
    kept_index: int,
    rules: VerifyParams,
    scratch: Scratch,
    outcome: Outcome,
) -> None:
    """Write the detail of a row that a rule kept apart from an entry. ring: of the entry's segment"""
    slot = kept_index % len(ring.positions)
    write_detail(chunk, row, ring, slot, rules.limits, scratch, outcome.details[row])
