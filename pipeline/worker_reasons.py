"""The headers that say why a message was dropped: stage, leader, similarity or distance, notes."""

from __future__ import annotations

from twinsieve.pipeline.blocks_positions import unpack_position
from twinsieve.pipeline.blocks_verdicts import Ruling
from twinsieve.pipeline.ports import Header
from twinsieve.stages.contract import NO_LEADER, SIMILARITY_SCALE, Flag, Kind

STAGE = "twinsieve-stage"
LEADER = "twinsieve-leader"
SIMILARITY = "twinsieve-similarity"
DISTANCE = "twinsieve-distance"
NOTE = "twinsieve-note"

_STAGES = {int(Kind.EXACT): b"exact", int(Kind.NEAR): b"near"}
_NOTED = (Flag.AT_WORD, Flag.ESTIMATED)
_NOTES = {
    flags: b",".join((flag.name or "").lower().encode() for flag in _NOTED if flags & flag)
    for flags in range(256)
}


def explain_rows(ruling: Ruling) -> list[list[Header]]:
    """Headers for each row of a block; an empty list where nothing was dropped."""
    verdicts = ruling.verdicts
    columns = zip(
        verdicts.kinds.tolist(),
        verdicts.flags.tolist(),
        verdicts.leaders.tolist(),
        verdicts.matched.tolist(),
        verdicts.compared.tolist(),
        verdicts.distances.tolist(),
        strict=True,
    )
    rows: list[list[Header]] = []
    for kind, flags, leader, matched, compared, distance in columns:
        headers: list[Header] = []
        rows.append(headers)
        stage = _STAGES.get(kind)
        if stage is None:
            continue
        headers.append((STAGE, stage))
        if leader != NO_LEADER:
            headers.append((LEADER, _place(leader, ruling.topics)))
        if compared:
            share = matched * SIMILARITY_SCALE // compared
            headers.append((SIMILARITY, b"%d.%04d" % divmod(share, SIMILARITY_SCALE)))
        if distance >= 0 and kind == Kind.NEAR:
            headers.append((DISTANCE, b"%d" % distance))
        if _NOTES[flags]:
            headers.append((NOTE, _NOTES[flags]))
    return rows


def _place(packed: int, topics: dict[int, str]) -> bytes:
    at = unpack_position(packed)
    name = topics.get(at.topic_number, f"topic-{at.topic_number}")
    return f"{name}[{at.partition}]@{at.offset}".encode()
