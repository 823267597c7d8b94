"""A worker's session: what is asked, answered, emitted, expired in one input partition.

No other file changes the state of a session (tests/house/test_owners.py).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import islice

from twinsieve.pipeline.broker.mark import Mark
from twinsieve.pipeline.broker.ports import NO_EPOCH, AbortableError, Committed, Partition, Records
from twinsieve.pipeline.wire.ruling import Ruling
from twinsieve.stages.dead_letter_reasons import Reason
from twinsieve.stages.states import Machine

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
    """

    first: int
    end: int
    records: Records
    reasons: dict[int, Reason] = field(default_factory=dict)
    tombstones: frozenset[int] = frozenset()
    bytes_held: int = 0
    refused: dict[int, Reason] = field(default_factory=dict)


@dataclass(slots=True)
class Session:
    """One run of asking for one partition.

    chain: emitted without gap from here to `emitted`; reported: how far the index has heard of that
    window: rows that may wait for answers; grows with each answer
    partitions: as in its mark; trimmed: offsets that retention took before it began, until that is committed
    settled: the index has answered, so that it knows the mark that this session began from
    covered: the next block's first offset; ready: answered blocks, the head of `pending`
    asked_s: since when an answer is awaited; active_s: of the last block that was asked or came out
    read, epoch: as in the mark, of the last message emitted
    """

    partition: Partition
    topic_id: bytes
    number: int
    phase: Machine[SessionPhase]
    chain: int
    emitted: int
    covered: int
    reported: int
    asked_s: float
    pending: deque[PendingBlock] = field(default_factory=deque)
    ready: deque[tuple[PendingBlock, Ruling]] = field(default_factory=deque)
    pending_rows: int = 0
    pending_bytes: int = 0
    active_s: float = 0.0
    settled: bool = False
    window: int = UNBOUNDED
    partitions: int = 0
    trimmed: int = 0
    read: int = 0
    epoch: int = NO_EPOCH

    @property
    def reads(self) -> bool:
        """Whether messages are asked for, beyond the start block."""
        return self.phase.now is SessionPhase.READING

    @property
    def fresh(self) -> bool:
        """Whether no offset is committed yet."""
        return self.phase.now is SessionPhase.OPENING

    @property
    def start(self) -> tuple[int, int]:
        """Where to begin reading, and the epoch of the message before that.

        Nothing that anybody may read lies between the last message emitted and the committed offset.
        """
        return (self.covered, NO_EPOCH) if self.epoch == NO_EPOCH else (self.read, self.epoch)

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
        """Let go of the first answered blocks, which are out; returns whether reading begins with that."""
        for _ in range(count):
            block, _ = self.ready.popleft()
            self.pending.popleft()
            self.pending_rows -= len(block.records)
            self.window += len(block.records)
            self.pending_bytes -= block.bytes_held
            self.emitted = block.end
            self.read, self.epoch = self._read_with([block])
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

    def mark(self, blocks: int = 0) -> Committed:
        """What to commit when the first `blocks` answered blocks are out."""
        out = [block for block, _ in islice(self.ready, blocks)]
        emitted = out[-1].end if out else self.emitted
        read, epoch = self._read_with(out)
        mark = Mark(self.topic_id, self.chain, emitted, self.partitions, read=read, epoch=epoch)
        return Committed(emitted, mark.text())

    def _read_with(self, blocks: Iterable[PendingBlock]) -> tuple[int, int]:
        """`read` and `epoch` once these blocks are out, too."""
        read, epoch = self.read, self.epoch
        for records in (block.records for block in blocks if len(block.records)):
            read, epoch = records.next_offset, records.epochs[-1] if records.epochs else NO_EPOCH
        return read, epoch
