"""`marks_of`: the verdicts of a chunk as `--mark` adds them to its rows."""

from __future__ import annotations

from twinsieve.pipeline.dedup.leaders import Leader
from twinsieve.pipeline.dedup.sinks import Judged, flag_names
from twinsieve.pipeline.files.marks import RowMark
from twinsieve.pipeline.messages.verdict_values import differing_words, likeness_of
from twinsieve.stages.contract import NO_LEADER, Kind
from twinsieve.stages.differ.rules import Rule


def marks_of(judged: Judged) -> list[RowMark | None]:
    """The mark (verdict) that is to be added to each row of the chunk; None for a blank row."""
    chunk, verdicts = judged.chunk, judged.verdicts
    source, lines = chunk.source, chunk.lines().tolist()
    marks: list[RowMark | None] = [None] * len(chunk.rows)
    for bad in chunk.columns.unreadable:
        marks[bad.row] = RowMark("unreadable", reason=str(bad.reason), source=source, line=lines[bad.row])
    for bad in chunk.columns.no_text:
        marks[bad.row] = RowMark("no_text", source=source, line=lines[bad.row])
    kinds, leaders, flags = verdicts.kinds.tolist(), verdicts.leaders.tolist(), verdicts.flags.tolist()
    reasons, apart = verdicts.reasons.tolist(), verdicts.apart_from.tolist()
    for index, row in enumerate(chunk.columns.rows):
        mark = RowMark(
            _VERDICTS[kinds[index]],
            flags=flag_names(flags[index]) if flags[index] else (),
            source=source,
            line=lines[row],
        )
        if kinds[index] != Kind.UNIQUE:
            number = None if leaders[index] == NO_LEADER else leaders[index]
            leader = judged.leaders.get(leaders[index], _UNKNOWN)
            mark = mark._replace(
                leader=number,
                leader_id=leader.id,
                leader_source=leader.source,
                leader_line=leader.line,
                cluster=number,
            )
            mark = _with_likeness(mark, *likeness_of(verdicts, index))
        else:
            mark = mark._replace(cluster=judged.first + row)
            if reasons[index]:
                earlier, later = differing_words(verdicts, index) or (None, None)
                mark = mark._replace(
                    reason=Rule(reasons[index]).words,
                    apart_from=apart[index],
                    apart_from_id=judged.leaders.get(apart[index], _UNKNOWN).id,
                    says=later,
                    apart_from_says=earlier,
                )
        marks[row] = mark
    return marks


def _with_likeness(mark: RowMark, name: str, likeness: float) -> RowMark:
    return RowMark(**(mark._asdict() | {name: likeness}))


_VERDICTS = {Kind.UNIQUE: "unique", Kind.EXACT: "exact", Kind.NEAR: "near"}
_UNKNOWN = Leader(None, "")
