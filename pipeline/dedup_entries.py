"""Lines of the duplicates and of the dead letters."""

from __future__ import annotations

from functools import cache
from typing import Any

from twinsieve.pipeline.batches import Columns, Unreadable
from twinsieve.pipeline.files_input import Chunk
from twinsieve.pipeline.files_rows import shown_bytes
from twinsieve.pipeline.leaders import Leader
from twinsieve.stages.contract import NO_LEADER, Flag, Kind, Verdicts


def dropped_entry(
    columns: Columns, verdicts: Verdicts, row: int, position: int, leader: Leader | None, *, in_bits: bool
) -> dict[str, Any]:
    """Who was dropped for whom, and how alike the two are.

    row: of `columns` and `verdicts`; leader: None where nobody knows it any more
    in_bits: likeness is a distance (hamming)
    """
    exact = verdicts.kinds[row] == Kind.EXACT
    duplicate_of = int(verdicts.leaders[row])
    entry: dict[str, Any] = {
        "position": position,
        "id": columns.ids[row],
        "duplicate_of": None if duplicate_of == NO_LEADER else duplicate_of,
        "duplicate_of_id": None if leader is None else leader.id,
        "stage": "exact" if exact else "near",
    }
    similarity = similarity_of(verdicts, row, in_bits=in_bits)
    if similarity is None:
        entry["distance"] = int(verdicts.distances[row])
    else:
        entry["similarity"] = similarity
    entry["text"] = columns.texts[row]
    entry["leader_text"] = None if leader is None else leader.text
    if verdicts.flags[row]:
        entry["flags"] = _flag_names(int(verdicts.flags[row]))
    return entry


def dead_entry(chunk: Chunk, bad: Unreadable, position: int, codec: str) -> dict[str, Any]:
    """What could not be read, where it stands and why; its bytes as text in `codec`, or else as base64."""
    raw, size = chunk.raw(bad.row)
    entry: dict[str, Any] = {
        "position": position,
        "source": chunk.source,
        "line": chunk.line_of(bad.row),
        "reason": bad.reason,
        "detail": bad.detail,
        "bytes": size,
    }
    return entry | shown_bytes("raw", raw, codec)


def similarity_of(verdicts: Verdicts, row: int, *, in_bits: bool) -> float | None:
    """How alike a dropped row and its leader are, 0 to 1; None where a distance says that."""
    if verdicts.kinds[row] == Kind.EXACT:
        return 1.0
    return None if in_bits else round(verdicts.similarity(row), 4)


@cache
def _flag_names(flags: int) -> list[str]:
    return [flag.name.lower() for flag in Flag(flags) if flag.name]
