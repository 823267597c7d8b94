"""A worker's session: which blocks of one input partition were sent, answered and emitted, and whether it has
expired.

No other file changes the state of a session (tests/house/test_owners.py).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import islice, takewhile

import numpy as np

from twinsieve.pipeline.basics.dead_letter_reasons import DeadLetterReason
from twinsieve.pipeline.basics.state_machine import Machine
from twinsieve.pipeline.broker.mark import Mark
from twinsieve.pipeline.broker.records import NO_EPOCH, AbortableError, Partition, Records
from twinsieve.pipeline.wire.ruling import Ruling

_GAP_S = 0.2
"""While a topic is deleted, created again and filled, its clients get no message for longer than this."""

ROW_BYTES = 192
"""Bytes of memory for one waiting original in addition to its key, value and headers: columns and answer."""
_ALIVE_PART = 4
"""An arena of which less than 1 / _ALIVE_PART is used by waiting originals is given back."""

UNBOUNDED = 1 << 62
"""No limit for `window`: used unless the partition's previous session got no answer."""


class SessionPhase(StrEnum):
    """Phases of a session, which decide what it sends to the index; docs/DESIGN.md shows the transitions."""

    OPENING = "opening"
    """no offset is committed yet: the session sends only its start block until the index accepts it"""
    PROBING = "probing"
    """the previous session got no answer: the session sends only its start block until an index answers.
    If each minute asked for everything again, an hour without an index would put sixty copies into the log"""
    READING = "reading"
    """the session sends every message of its partition, as many at a time as `window` allows"""


SESSION_WAYS: dict[SessionPhase, set[SessionPhase]] = {
    SessionPhase.OPENING: {SessionPhase.READING},
    SessionPhase.PROBING: {SessionPhase.READING},
    SessionPhase.READING: set(),
}


@dataclass(slots=True)
class PendingBlock:
    """A block that was sent and is not emitted yet: its offsets [first, end), and the originals of its rows.

    reasons: by row, why unreadable rows become dead letters; refused: the same for rows that the output does
        not accept
    bytes_held: memory of the originals alone; other messages may lie in the same arena
    foreign: number of headers that were removed from the originals because they look like ours
    no_text: rows without a text, ascending; tombstones are among them
    """

    first: int
    end: int
    records: Records
    reasons: dict[int, DeadLetterReason] = field(default_factory=dict)
    bytes_held: int = 0
    refused: dict[int, DeadLetterReason] = field(default_factory=dict)
    foreign: int = 0
    no_text: Sequence[int] = ()

    @property
    def row_bytes(self) -> int:
        """Memory that the originals take beside their arena."""
        return len(self.records) * ROW_BYTES

    def lies_beside(self, other: PendingBlock) -> bool:
        """Whether the originals lie in the same arena as those of another block."""
        return self.records.content is other.records.content


@dataclass(slots=True)
class Session:
    """The blocks that a worker sends for one input partition, from a start block on, and what became of them.

    number: random number that identifies the session
    reply: partition of the verdicts topic that receives its answers
    mark: which offsets were emitted, without a gap; reported: the offset up to which the index knows that
    window: number of rows that may wait for answers; grows with each answer
    trimmed: number of offsets that retention deleted before the session began; 0 once they were counted
    skipped: offsets [first, end) of batches that could not be read, until they were counted
    undated_s: for the first session of a topic: when it was planned, if the mark holds that time by a clock
        that may be wrong; else None
    settled: whether the index has answered, so that it knows the mark with which this session began
    covered: first offset of the next block
    pending: blocks that were sent and are not emitted; ready: the first of them, which have an answer
    pending_bytes: memory of their originals, with all of each arena in which one lies
    asked_s: time since which an answer is awaited; active_s: time when a block was last sent or emitted
    """

    partition: Partition
    number: int
    reply: Partition
    phase: Machine[SessionPhase]
    mark: Mark
    covered: int
    reported: int
    asked_s: float
    active_s: float
    window: int
    trimmed: int
    pending: deque[PendingBlock] = field(default_factory=deque)
    ready: deque[tuple[PendingBlock, Ruling]] = field(default_factory=deque)
    pending_rows: int = 0
    pending_bytes: int = 0
    settled: bool = False
    undated_s: float | None = None
    skipped: list[range] = field(default_factory=list)

    @property
    def reads(self) -> bool:
        """Whether the session sends messages, and not only its start block."""
        return self.phase.now is SessionPhase.READING

    @property
    def emitted(self) -> int:
        """Everything below this offset is emitted."""
        return self.mark.end

    @property
    def start(self) -> tuple[int, int]:
        """The offset at which reading begins, and the leader epoch of the message before it.

        If that epoch is known, reading begins right after the last emitted message. No message that lies
        between that and the committed offset is judged, see `count_skipped`.
        """
        mark = self.mark
        return (self.covered, NO_EPOCH) if mark.epoch == NO_EPOCH else (mark.read, mark.epoch)

    @property
    def epoch(self) -> int:
        """Leader epoch of the last message that was sent in a block; NO_EPOCH if it is unknown."""
        sent = (block.records for block in reversed(self.pending))
        last = next(filter(len, sent), None)
        return self.mark.epoch if last is None else last.epoch(-1)

    def doubts(self, records: Records, now_s: float) -> bool:
        """Whether the topic may have been deleted and created again since the last message: no message came
        for a while, or the leader epoch is lower than before (within one topic it only grows)."""
        return now_s - self.active_s >= _GAP_S or (len(records) > 0 and records.epoch(0) < self.epoch)

    def date(self, since_ms: int) -> None:
        """Set the time at which the app began with the topic."""
        self.mark, self.undated_s = self.mark._replace(since_ms=since_ms), None

    def is_full(self, max_rows: int, max_bytes: int) -> bool:
        """Whether the rows or the bytes that wait for answers have reached their limit."""
        return self.pending_rows >= max_rows or self.pending_bytes >= max(1, max_bytes)

    def ask(self, blocks: Sequence[PendingBlock], now_s: float, *, starts: bool) -> None:
        """Add these sent blocks to those that wait for answers. starts: one of them is the start block, which
        does not count as a report of what was emitted"""
        if not self.pending:
            self.asked_s = now_s
        for block in blocks:
            if not (self.pending and self.pending[-1].lies_beside(block)):
                self.pending_bytes += len(block.records.content)
            self.pending.append(block)
            self.pending_rows += len(block.records)
            self.pending_bytes += block.row_bytes
            self.covered = block.end
        if not starts:
            self.reported = self.emitted
        self.active_s = now_s

    def answer(self, ruling: Ruling, where: str) -> None:
        """Store the ruling on the oldest block without an answer.

        raises: AbortableError naming `where` if the ruling is on anything else
        """
        place = len(self.ready)
        block = self.pending[place] if place < len(self.pending) else None
        if (
            block is None
            or (block.first, block.end) != (ruling.first, ruling.end)
            or len(block.records) != len(ruling)
        ):
            raise AbortableError(
                f"{where}: this answer is about offsets [{ruling.first}, {ruling.end}), which is not what "
                "was asked; asking again"
            )
        self.ready.append((block, ruling))

    def emit(self, count: int, now_s: float) -> bool:
        """Remove the first `count` answered blocks, which are committed; returns whether the session begins
        to read messages now."""
        self.mark = self.mark_with(count)
        for _ in range(count):
            block, _ = self.ready.popleft()
            self.pending.popleft()
            self.pending_rows -= len(block.records)
            self.window += len(block.records)
            self.pending_bytes -= block.row_bytes
            self._let_go(block)
        self.settled = True
        self.asked_s = self.active_s = now_s
        begins = not self.reads
        self.phase.go(SessionPhase.READING)
        return begins

    def _let_go(self, emitted: PendingBlock) -> None:
        """Give back the arena of a block that was emitted. If others wait in it and use less than a quarter,
        copy them out."""
        arena = emitted.records.content
        others = [*takewhile(emitted.lies_beside, self.pending)]
        alive_bytes = sum(end - begin for begin, end in (block.records.span for block in others))
        if others and alive_bytes * _ALIVE_PART >= len(arena):
            return
        self.pending_bytes -= len(arena)
        copies = np.empty(alive_bytes, np.uint8)
        self.pending_bytes += alive_bytes
        for block in others:
            begin, end = block.records.span
            own, copies = copies[: end - begin], copies[end - begin :]
            block.records = Records.joined(self.partition, [block.records], own)

    def expired(self, now_s: float, patience_s: float) -> bool:
        """Whether the session has waited at least `patience_s` seconds for an answer without getting one."""
        return bool(self.pending) and not self.ready and now_s - self.asked_s >= patience_s

    def take_trimmed(self) -> int:
        """Number of offsets that retention deleted before the session began; 0 from the second call on."""
        trimmed, self.trimmed = self.trimmed, 0
        return trimmed

    def skip(self, first: int, end: int) -> None:
        """Note that the messages at the offsets [first, end) cannot be read, and are not sent."""
        self.skipped.append(range(first, end))

    def count_skipped(self, records: Records) -> int:
        """Number of these records, from the first on, that lie between the last emitted message and the
        committed offset. None of them could be read when that offset was committed: their batch was skipped,
        and can be read again since, for example from another replica."""
        if not len(records) or self.mark.epoch == NO_EPOCH or records.offset(0) < self.mark.read:
            return 0
        return int(np.searchsorted(records.columns.offsets, self.mark.end))

    def take_skipped(self, committed: int) -> int:
        """Number of skipped offsets below the committed one, each counted once."""
        passed = [offsets for offsets in self.skipped if offsets.stop <= committed]
        self.skipped = self.skipped[len(passed) :]
        return sum(map(len, passed))

    def mark_with(self, count: int) -> Mark:
        """The mark as it will be when the first `count` answered blocks are emitted, too."""
        mark = self.mark._replace(fresh=False)
        for place, (block, _) in enumerate(islice(self.ready, count)):
            # With the block after the start block the index passes over what `reset` left out.
            mark = mark._replace(end=block.end, reset=mark.reset and not (self.settled or place))
            if len(block.records):
                mark = mark._replace(read=block.records.next_offset, epoch=block.records.epoch(-1))
        return mark


SPARE_PART = 4
"""The originals of all partitions may exceed `kafka.pending_bytes` by 1 / SPARE_PART of it. Within this spare
part, messages are read one by one."""


class Room:
    """Limits for the originals that wait for answers: of each session, and of all sessions of a worker.

    A partition reads until it holds its share; one poll may bring more than that. Once all bytes are used,
    each partition with waiting rows is full, and the others read one message at a time. Once the spare part
    is used as well, no partition reads.

    max_rows: limit for each partition; max_bytes: limit for all partitions together
    """

    def __init__(self, sessions: Mapping[Partition, Session], max_rows: int, max_bytes: int) -> None:
        self._sessions = sessions
        self._max_rows, self._max_bytes = max_rows, max_bytes
        self._crowded = False

    @property
    def used_bytes(self) -> int:
        """Bytes of memory of all waiting originals."""
        return sum(session.pending_bytes for session in self._sessions.values())

    @property
    def is_left(self) -> bool:
        """Whether less than `max_bytes` are used."""
        return self.used_bytes < self._max_bytes

    def is_full(self, session: Session, partitions: int, part: int) -> bool:
        """Whether a session has reached 1 / `part` of its limits. partitions: number of partitions that share
        the bytes"""
        if self._crowded or (session.pending_rows and not self.is_left):
            return True
        rows = min(session.window, self._max_rows) // part
        return session.is_full(max(1, rows), self._max_bytes // max(1, partitions) // part)

    def opens(self) -> bool:
        """Note whether the spare part is used up; returns whether this has just ended, so that sessions which
        waited only because of other sessions may read again."""
        was, most = self._crowded, self._max_bytes + self._max_bytes // SPARE_PART
        self._crowded = self.used_bytes >= most > 0
        return was and not self._crowded
