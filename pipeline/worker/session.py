"""A worker's session: what is asked, answered, emitted, expired in one input partition.

No other file changes the state of a session (tests/house/test_owners.py).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import islice

from twinsieve.pipeline.basics.dead_letter_reasons import DeadLetterReason
from twinsieve.pipeline.basics.states import Machine
from twinsieve.pipeline.broker.mark import Mark
from twinsieve.pipeline.broker.records import NO_EPOCH, AbortableError, Partition, Records
from twinsieve.pipeline.wire.ruling import Ruling

_GAP_S = 0.2
"""To delete, create and fill a topic takes longer than this, as its clients see it."""

UNBOUNDED = 1 << 62
"""The window of a session whose predecessor was answered."""


class SessionPhase(StrEnum):
    """What a session asks for; docs/DESIGN.md draws the ways."""

    OPENING = "opening"
    """no offset is committed yet: its start block alone, until the index has let it begin"""
    PROBING = "probing"
    """the session before had no answer: its start block alone, until an index answers"""
    READING = "reading"
    """every message of its partition, as many as `window` allows"""


SESSION_WAYS: dict[SessionPhase, set[SessionPhase]] = {
    SessionPhase.OPENING: {SessionPhase.READING},
    SessionPhase.PROBING: {SessionPhase.READING},
    SessionPhase.READING: set(),
}


@dataclass(slots=True)
class PendingBlock:
    """One block that was sent: its range, and the originals of its rows.

    reasons: of rows that are unreadable; refused: of rows that the output does not take
    foreign: headers that its rows came with and that look like ours; the originals are without them
    no_text: rows without a text, tombstones among them, ascending
    """

    first: int
    end: int
    records: Records
    reasons: dict[int, DeadLetterReason] = field(default_factory=dict)
    bytes_held: int = 0
    refused: dict[int, DeadLetterReason] = field(default_factory=dict)
    foreign: int = 0
    no_text: Sequence[int] = ()


@dataclass(slots=True)
class Session:
    """One run of asking for one partition.

    reply: partition of the verdicts topic where its answers come
    mark: what was emitted, without a gap; reported: how far that was reported to the index
    window: rows that may wait for answers; grows with each answer
    trimmed: offsets that retention took before it began, until that is committed
    undated_s: for the first session of a topic: when it was planned, if the mark holds that time by a clock
        that may be wrong
    settled: the index has answered, so that it knows the mark that this session began from
    covered: the next block's first offset; ready: answered blocks, the head of `pending`
    asked_s: since when an answer is awaited; active_s: of the last block that was asked or came out
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

    @property
    def reads(self) -> bool:
        """Whether messages are asked for, beyond the start block."""
        return self.phase.now is SessionPhase.READING

    @property
    def emitted(self) -> int:
        """Everything below this offset is emitted."""
        return self.mark.end

    @property
    def start(self) -> tuple[int, int]:
        """Where to begin reading, and the epoch of the message before that.

        No readable message lies between the last emitted message and the committed offset.
        """
        mark = self.mark
        return (self.covered, NO_EPOCH) if mark.epoch == NO_EPOCH else (mark.read, mark.epoch)

    @property
    def epoch(self) -> int:
        """Of the leader that wrote the last message that was asked for; NO_EPOCH where it is not known."""
        records = (block.records for block in reversed(self.pending))
        last = next((block_records.epochs for block_records in records if block_records.epochs), None)
        return self.mark.epoch if last is None else last[-1]

    def doubts(self, records: Records, now_s: float) -> bool:
        """Whether the topic may be another one since the last message: nothing came for a while, as when it
        was made again, or the epochs of leaders go back, which count up within one topic."""
        return now_s - self.active_s >= _GAP_S or (bool(records.epochs) and records.epochs[0] < self.epoch)

    def date(self, since_ms: int) -> None:
        """Note when the app began with the topic."""
        self.mark, self.undated_s = self.mark._replace(since_ms=since_ms), None

    def is_full(self, max_rows: int, max_bytes: int) -> bool:
        """Whether as many rows or bytes wait for answers as may."""
        return self.pending_rows >= max_rows or self.pending_bytes >= max(1, max_bytes)

    def ask(self, blocks: Sequence[PendingBlock], now_s: float, *, starts: bool) -> None:
        """Wait for answers to these blocks. starts: one is the start block, which reports nothing"""
        if not self.pending:
            self.asked_s = now_s
        for block in blocks:
            self.pending.append(block)
            self.pending_rows += len(block.records)
            self.pending_bytes += block.bytes_held
            self.covered = block.end
        if not starts:
            self.reported = self.emitted
        self.active_s = now_s

    def answer(self, ruling: Ruling, where: str) -> None:
        """Take the ruling on the first block without one.

        raises: AbortableError naming `where` for a ruling on anything else
        """
        place = len(self.ready)
        block = self.pending[place] if place < len(self.pending) else None
        if (
            block is None
            or (block.first, block.end) != (ruling.first, ruling.end)
            or len(block.records) != len(ruling)
        ):
            raise AbortableError(
                f"{where}: answers [{ruling.first}, {ruling.end}), which is not what was asked"
            )
        self.ready.append((block, ruling))

    def emit(self, count: int, now_s: float) -> bool:
        """Remove the first answered blocks, which are committed; returns whether reading begins now."""
        self.mark = self.mark_with(count)
        for _ in range(count):
            block, _ = self.ready.popleft()
            self.pending.popleft()
            self.pending_rows -= len(block.records)
            self.window += len(block.records)
            self.pending_bytes -= block.bytes_held
        self.settled = True
        self.asked_s = self.active_s = now_s
        begins = not self.reads
        self.phase.go(SessionPhase.READING)
        return begins

    def expired(self, now_s: float, patience_s: float) -> bool:
        """Whether no answer has come for this long."""
        return bool(self.pending) and not self.ready and now_s - self.asked_s >= patience_s

    def take_trimmed(self) -> int:
        """Offsets that retention took before the session began; 0 from the second time on."""
        trimmed, self.trimmed = self.trimmed, 0
        return trimmed

    def mark_with(self, count: int) -> Mark:
        """The mark once the first `count` answered blocks are out, too."""
        mark = self.mark._replace(fresh=False)
        for block, _ in islice(self.ready, count):
            mark = mark._replace(end=block.end)
            if len(block.records):
                epochs = block.records.epochs
                epoch = epochs[-1] if epochs else NO_EPOCH
                mark = mark._replace(read=block.records.next_offset, epoch=epoch)
        return mark


SPARE_PART = 4
"""The originals of all partitions may exceed `kafka.pending_bytes` by this part of it, message by message."""


class Room:
    """How much the sessions of a worker may hold until it is answered, each by itself and all together.

    A partition reads until it holds its share. A poll may bring more than that. Once all bytes are taken,
    each partition that holds rows is full, and the others read one message at a time. Beyond the spare part
    no partition reads.

    max_rows: of one partition; max_bytes: of all of them
    """

    def __init__(self, sessions: Mapping[Partition, Session], max_rows: int, max_bytes: int) -> None:
        self._sessions = sessions
        self._max_rows, self._max_bytes = max_rows, max_bytes
        self._crowded = False

    @property
    def used_bytes(self) -> int:
        """Bytes of memory of all that waits."""
        return sum(session.pending_bytes for session in self._sessions.values())

    @property
    def is_left(self) -> bool:
        """Whether bytes are left."""
        return self.used_bytes < self._max_bytes

    def is_full(self, session: Session, partitions: int, part: int) -> bool:
        """Whether a session holds its limits / part. partitions: that share the bytes"""
        if self._crowded or (session.pending_rows and not self.is_left):
            return True
        rows = min(session.window, self._max_rows) // part
        return session.is_full(max(1, rows), self._max_bytes // max(1, partitions) // part)

    def opens(self) -> bool:
        """Note the used bytes; returns whether sessions that waited only for other sessions may read
        again."""
        was, most = self._crowded, self._max_bytes + self._max_bytes // SPARE_PART
        self._crowded = self.used_bytes >= most > 0
        return was and not self._crowded
