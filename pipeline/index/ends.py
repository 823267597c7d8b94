"""The log offset at which an index begins to judge after it has applied every decision. The index skips
records that retention deleted, and stops if records were lost.

Decisions and the group's log offset are committed together, so they agree unless records are gone. Retention
deletes the oldest records of a topic and never moves its end back. Whatever else is missing was lost.

- The log begins after the last judged block: retention deleted blocks that no index judged. Judge from the
  log's beginning; workers ask again.
- The group's offset lies after the last applied decision, and the next decisions are deleted: retention
  deleted them. Judge from the group's offset, because no block is judged twice.
- The group's offset lies after the last applied decision, no decision is deleted, and the log before the
  group's offset is deleted: an index of an older version skipped blocks that retention had deleted, and
  committed the offset after them. Judge from the log's beginning.
- The next decisions are deleted, and the group has no offset: it is unknown which blocks were judged. Judge
  from the log's end; workers ask again.
- A topic ends before an offset that is recorded for it: it lost records, or is another topic. Stop.
- The group's offset lies after the last decision for any other reason: decisions are missing. Stop.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple
from urllib.parse import quote, unquote

from twinsieve.pipeline.broker.records import Committed, Partition
from twinsieve.stages.errors import StateError


class JudgedUnder(NamedTuple):
    """The settings under which an app has judged; each field is empty if that is not recorded.

    reading: digest of the `input` settings under which a process has found a text
    scheme: hash of the fingerprint scheme of the decisions, as hex digits; fixed: its settings, as JSON
    settings: the settings that all processes of the app should have in common (`settings.common`)
    """

    reading: str = ""
    scheme: str = ""
    fixed: str = ""
    settings: str = ""


@dataclass(frozen=True, slots=True)
class Unanswered:
    """A segment for which no shard answers. first, end: its kept messages; since_ms: ms since 1970"""

    first: int
    end: int
    since_ms: int


@dataclass(frozen=True, slots=True)
class Late:
    """A shard that is there, and answers too late for some segments. since_ms: ms since 1970"""

    shard: str
    segments: int
    since_ms: int


@dataclass(frozen=True, slots=True)
class Alone:
    """In how many segments the index looks up itself because no shard answers, and some of them, the oldest
    first; and the shards for whose segments it does because they are late."""

    count: int = 0
    segments: tuple[Unanswered, ...] = ()
    late: tuple[Late, ...] = ()


NOT_ALONE = Alone()
SHOWN_ALONE = 3
"""Segments and shards that are recorded, as the broker limits metadata, and that a line names."""
_PAUSED = re.compile(r"full@([0-9]{1,14})", re.ASCII)
_ALONE = re.compile(r"[0-9]{1,9}(:[0-9]{1,18}-[0-9]{1,18}@[0-9]{1,14}){1,9}", re.ASCII)
_LATE = re.compile(r"[\w.~%-]{1,999}:[0-9]{1,9}@[0-9]{1,14}", re.ASCII)


def alone_text(count: int, shown: Sequence[str]) -> str:
    """A line about segments for which no shard answers.

    count: number of these segments
    shown: the kept messages of the first of them, and for how long or since when nobody answers

    >>> alone_text(2, ["0 to 50 for 9 s"])
    'no shard answers for 2 segments (0 to 50 for 9 s, …)'
    """
    more = ", …" if count > len(shown) else ""
    return f"no shard answers for {count} segments ({', '.join(shown)}{more})"


def late_text(shown: Sequence[tuple[str, int, str]]) -> str:
    """A line about shards that are late. shown: name, number of segments, and for how long or since when

    >>> late_text([("host-2-shard", 4, "for 75 s")])
    'shards that answer too late, or do not read: host-2-shard for 4 segments for 75 s'
    """
    each = ", ".join(f"{name} for {count} segments {since}" for name, count, since in shown)
    return f"shards that answer too late, or do not read: {each}"


def committed_record(
    log_offset: int,
    decisions_end: int,
    output: str = "",
    *,
    behind_snapshots: bool = False,
    under: JudgedUnder = JudgedUnder(),  # noqa: B008 - a constant
    alone: Alone = NOT_ALONE,
    paused_ms: int | None = None,
) -> Committed:
    """What the index commits: the log offset. Its metadata contain the least end of the decisions, whether
    the part of the log that snapshots contain is deleted, the output topic (empty if nothing is emitted),
    under which settings the app has judged, in which segments no shard answers and which shards are late, if
    there are any, and since when a full disk lets the index judge nothing, if so. An older program of version
    2 reads the first three and ignores what follows them; an empty text keeps its place between two spaces.

    >>> committed_record(7, 12, "unique", under=JudgedUnder("1f", "2e", '{"profile":"plain"}', "scope:b5"))
    Committed(offset=7, metadata='2 12 0 unique 1f 2e scope:b5 {"profile":"plain"}')
    """
    reading, scheme, fixed, settings = under
    head = (str(decisions_end), str(int(behind_snapshots)), output, reading, scheme, settings)
    shown = [f"{each.first}-{each.end}@{each.since_ms}" for each in alone.segments[:SHOWN_ALONE]]
    late = ",".join(f"{quote(each.shard, safe='')}:{each.segments}@{each.since_ms}" for each in alone.late)
    said = ":".join((str(alone.count), *shown)) if shown else ""
    full = [] if paused_ms is None else [f"full@{paused_ms}"]
    fields = (*head, *([said] if said or late else []), *([late] if late else []), *full, fixed)
    return Committed(log_offset, f"2 {' '.join(fields)}".rstrip())


def recorded_decisions_end(committed: Committed | None) -> int:
    """The offset to which the decisions reached at least when this was committed; 0 if it is not recorded.

    >>> recorded_decisions_end(committed_record(7, 12)), recorded_decisions_end(Committed(7))
    (12, 0)
    """
    end = _recorded(committed)[0]
    return int(end) if end.isascii() and end.isdigit() else 0


def recorded_behind_snapshots(committed: Committed | None) -> bool:
    """Whether the index that committed this deletes the part of the log that snapshots contain. If so, a
    restore needs a snapshot.

    >>> recorded_behind_snapshots(committed_record(7, 12, behind_snapshots=True))
    True
    >>> recorded_behind_snapshots(committed_record(7, 12, "1"))
    False
    """
    return _recorded(committed)[1] == "1"


def recorded_output(committed: Committed | None) -> str:
    """The output topic of the index that committed this; empty if it is not recorded.

    >>> recorded_output(committed_record(7, 12, "posts-unique")), recorded_output(Committed(7))
    ('posts-unique', '')
    >>> [recorded_output(Committed(7, metadata)) for metadata in ("1 12 unique", "2 12 0 unique")]
    ['unique', 'unique']
    """
    return _recorded(committed)[2]


def recorded_under(committed: Committed | None) -> JudgedUnder:
    """The settings under which the app of this index has judged.

    >>> recorded_under(committed_record(7, 12, under=JudgedUnder("1f", "2e", '{"scope":"[a, b]"}'))).fixed
    '{"scope":"[a, b]"}'
    >>> recorded_under(Committed(7, "2 12 0 posts-unique"))
    JudgedUnder(reading='', scheme='', fixed='', settings='')
    """
    reading, scheme, settings, _, _, fixed = _recorded(committed)[3:]
    return JudgedUnder(reading, scheme, fixed, settings)


def recorded_alone(committed: Committed | None) -> Alone:
    """In which segments the index that committed this looks up itself.

    >>> recorded_alone(committed_record(7, 12, alone=Alone(2, (Unanswered(0, 50, 99),))))
    Alone(count=2, segments=(Unanswered(first=0, end=50, since_ms=99),), late=())
    >>> recorded_alone(committed_record(7, 12, alone=Alone(late=(Late("host 2-shard", 3, 99),)))).late
    (Late(shard='host 2-shard', segments=3, since_ms=99),)
    """
    said, written = _recorded(committed)[6:8]
    late = []
    for each in filter(_LATE.fullmatch, written.split(",")):
        name, segments, since_ms = re.split("[:@]", each)
        late.append(Late(unquote(name), int(segments), int(since_ms)))
    if not _ALONE.fullmatch(said):
        return Alone(late=tuple(late))
    count, *shown = said.split(":")
    numbers = [map(int, re.split("[-@]", each)) for each in shown]
    return Alone(int(count), tuple(Unanswered(*each) for each in numbers), tuple(late))


def recorded_pause(committed: Committed | None) -> int | None:
    """Since when the index that committed this judges nothing, because its disk is full (ms since 1970); None
    if it judges.

    >>> recorded_pause(committed_record(7, 12, paused_ms=99)), recorded_pause(committed_record(7, 12))
    (99, None)
    """
    parts = committed.metadata.partition(" {")[0].split(" ") if committed is not None else []
    said = [found for found in map(_PAUSED.fullmatch, parts[-1:]) if found]
    return int(said[0][1]) if said else None


def _recorded(committed: Committed | None) -> tuple[str, ...]:
    """The nine metadata fields of `committed_record`, as text; empty texts for those that are missing."""
    metadata = committed.metadata if committed is not None else ""
    head, brace, fixed = metadata.partition(" {")
    version, *parts = head.split(" ")
    if version == "1":
        parts[1:1] = ["0"]
    if version not in ("1", "2"):
        return ("",) * 9
    return (*[*parts, *[""] * 8][:8], brace.strip() + fixed)


@dataclass(frozen=True, slots=True)
class Ends:
    """The offsets that an index finds before it begins to judge.

    followed: log offset up to which decisions were applied
    cut: whether the next decisions are deleted, and no later decision was applied
    log_begin, log_end, decisions_end: where the log begins and ends, and where the decisions end
    committed: what the index group has committed, None if nothing
    """

    log: Partition
    decisions: Partition
    followed: int
    cut: bool
    log_begin: int
    log_end: int
    decisions_end: int
    committed: Committed | None

    @property
    def recorded(self) -> int:
        """Log offset up to which blocks were judged, or may have been."""
        if self.committed is not None:
            return max(self.followed, self.committed.offset)
        return max(self.followed, self.log_end) if self.cut else self.followed

    @property
    def go_on(self) -> int:
        """Log offset of the next block to judge. No index judged the blocks between `recorded` and this
        one."""
        return max(self.recorded, self.log_begin)

    @property
    def lost(self) -> str:
        """Error text: which records are lost, and what to do; empty if none are."""
        if self.log_end < self.recorded:
            return ends_early(self.log, self.log_end, self.recorded, "blocks")
        wanted = recorded_decisions_end(self.committed)
        if self.decisions_end < wanted:
            return ends_early(self.decisions, self.decisions_end, wanted, "records")
        if self.recorded > self.followed and not self.cut and self.recorded > self.log_begin:
            return (
                f"{self.decisions}: decisions end at block {self.followed}, but the app had decided on "
                f"blocks up to {self.recorded}: the topic lost records or was created again; restore the "
                "topic, or start a new app"
            )
        return ""

    def check(self, prove: Callable[[], None]) -> None:
        """Check that no records were lost, so that the index may judge.

        prove: proves that no other index judges, or raises. It is called before an error is raised and before
            blocks are skipped, because an index that was frozen would mistake the records of its successor
            for a loss
        raises: StateError if records were lost
        """
        lost = self.lost
        if lost or self.go_on > self.followed:
            prove()
        if lost:
            raise StateError(lost)


def ends_early(partition: Partition, end: int, recorded: int, lost: Literal["blocks", "records"]) -> str:
    """Error text for a log, or a decisions topic, that ends before an offset that was recorded."""
    return (
        f"{partition} ends at {end}, but the app had already reached offset {recorded}: the topic lost "
        f"{lost} or was created again; restore the topic, or start a new app"
    )


def snapshots_missing(log: Partition, log_begins: int, foreign: Collection[str]) -> str:
    """Error text for a log whose beginning was deleted because snapshots contained it, if no snapshot is
    left. foreign: a line for each that is there and does not belong to the log"""
    return "".join(f"{line}; " for line in foreign) + (
        f"{log}: blocks below {log_begins} were deleted because snapshots hold them, but state.dir has no "
        "snapshot of this log; correct state.dir, or restore a snapshot; or start the first process with "
        "`twinsieve run --without-snapshots`: then windows begin empty, and copies of earlier messages are "
        "emitted again"
    )
