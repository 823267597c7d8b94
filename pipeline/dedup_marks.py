"""What a run says of every row: marks made of verdicts."""

from __future__ import annotations

from twinsieve.pipeline.dedup_entries import similarity_of
from twinsieve.pipeline.files_input import Chunk
from twinsieve.pipeline.files_marked import Mark
from twinsieve.stages.contract import NO_LEADER, Kind, Verdicts

_UNREADABLE = Mark("unreadable")


def marks_of(chunk: Chunk, verdicts: Verdicts, first: int, *, in_bits: bool) -> list[Mark | None]:
    """One mark a row of the chunk, None for blank rows.

    verdicts: of the readable rows; first: position of the chunk's first row
    in_bits: likeness is a distance (hamming), which a mark does not tell
    """
    marks: list[Mark | None] = [None] * len(chunk.rows.rows)
    for bad in chunk.columns.unreadable:
        marks[bad.row] = _UNREADABLE
    kinds, leaders = verdicts.kinds.tolist(), verdicts.leaders.tolist()
    for index, row in enumerate(chunk.columns.rows):
        if kinds[index] == Kind.UNIQUE:
            marks[row] = Mark("unique", cluster=first + row)
            continue
        leader = None if leaders[index] == NO_LEADER else leaders[index]
        verdict = "exact" if kinds[index] == Kind.EXACT else "near"
        marks[row] = Mark(verdict, leader, similarity_of(verdicts, index, in_bits=in_bits), leader)
    return marks
