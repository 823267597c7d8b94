"""Follows the log: applies recorded decisions to their blocks, without judging anything.

A restore and a warm standby work in the same way: join every decision with its block by the log offset, in
order. Decisions are read with read-committed isolation, so those of aborted transactions are never applied.
"""

from __future__ import annotations

from collections import deque
from enum import StrEnum

from twinsieve.pipeline.broker.ports import Reader
from twinsieve.pipeline.broker.records import NO_TOPIC_ID, FatalError
from twinsieve.pipeline.index.config import TOGETHER_ROWS, IndexConfig
from twinsieve.pipeline.index.ends import ends_early
from twinsieve.pipeline.index.state import IndexState
from twinsieve.pipeline.wire.block import Block, asked_by, decode_block
from twinsieve.pipeline.wire.frame import What, checksum_of
from twinsieve.pipeline.wire.ruling import Result, Ruling, decode_ruling
from twinsieve.stages.contract import NO_TIME
from twinsieve.stages.errors import StateError

_MAX_WAITING = 256
"""Limit for the blocks, and for the decisions, that wait in memory for their counterpart."""

_START_NEW_APP = "start a new app and seed it from the output"


class FollowerPhase(StrEnum):
    """What a follower reads in each phase."""

    NEW = "new"
    """nothing, because it has not begun yet"""
    READING = "reading"
    """log and decisions, from the offset of the state on"""
    STOPPED = "stopped"
    """nothing; `begin` seeks to the offset of the state again"""


class Follower:
    """Applies the recorded decisions to an index state.

    log_id: current topic id of the log
    """

    def __init__(
        self, reader: Reader, state: IndexState, config: IndexConfig, log_id: bytes, decisions_at: int
    ) -> None:
        self._reader = reader
        self._state = state
        self._log = config.log
        self._log_id = log_id
        self._decisions = config.decisions
        self._scheme = config.scheme
        self.phase = FollowerPhase.NEW
        self._blocks: deque[tuple[int, bytes]] = deque()
        self._rulings: deque[tuple[int, Ruling]] = deque()
        self._ready: list[tuple[Block, Ruling]] = []
        """Blocks with their rulings that are applied next, together."""
        self._ready_rows = 0
        self.cut = False
        """Whether retention deleted the next decisions, and no later decision has arrived yet."""
        self._log_cut = False
        self.gaps = 0
        """Number of blocks or decisions that retention deleted before they could be applied."""
        self.decisions_at = decisions_at
        """Offset in the decisions topic. All decisions below it are on blocks that the state has."""
        self.since_ms: int | None = None
        """Arrival time of the first judged block that was applied since the start or the last `end`."""

    def begin(self) -> None:
        """Begin to follow at the state's offset, or at the first records that retention has left.

        raises: StateError if a topic ends before an offset that it is known to have reached
        """
        self.phase = FollowerPhase.STOPPED
        beginning = self._reader.beginning_offsets([self._log, self._decisions])
        ends = self._reader.end_offsets([self._log, self._decisions])
        if ends[self._log] < self._state.next_offset:
            raise StateError(ends_early(self._log, ends[self._log], self._state.next_offset, "blocks"))
        if ends[self._decisions] < self.decisions_at:
            end, recorded = ends[self._decisions], self.decisions_at
            raise StateError(ends_early(self._decisions, end, recorded, "records"))
        self._blocks.clear()
        self._rulings.clear()
        self._reader.assign([self._log, self._decisions])
        self._reader.seek(self._log, max(self._state.next_offset, beginning[self._log]))
        self._reader.seek(self._decisions, max(self.decisions_at, beginning[self._decisions]))
        self.cut = beginning[self._decisions] > self.decisions_at
        self._log_cut = beginning[self._log] > self._state.next_offset
        self.phase = FollowerPhase.READING

    def step(self, timeout_s: float, max_records: int) -> int:
        """Apply the decisions that have arrived; returns how many were applied or skipped.

        raises: StateError for a decision on a block that is missing in the log
        """
        full = {
            self._log: len(self._blocks) >= _MAX_WAITING,
            self._decisions: len(self._rulings) >= _MAX_WAITING,
        }
        self._reader.pause([partition for partition, is_full in full.items() if is_full])
        self._reader.resume([partition for partition, is_full in full.items() if not is_full])
        polled = self._reader.poll(timeout_s, max_records)
        for records in polled:
            for offset, value in zip(records.offsets, records.values, strict=True):
                if records.partition == self._log:
                    self._blocks.append((offset, value or b""))
                else:
                    self._rulings.append((offset, self._read_decision(offset, value or b"")))
        try:
            done = self._join()
        finally:
            # Their decisions count as read.
            self._flush()
        if self._rulings and not (done or polled):
            self._check_log_end()
        return done

    def _read_decision(self, offset: int, value: bytes) -> Ruling:
        where = f"{self._decisions}@{offset}"
        ruling = decode_ruling(What.DECISION, value, self._scheme, where)
        log_id = ruling.log_id
        if log_id != self._log_id and log_id not in (None, NO_TOPIC_ID) and self._log_id != NO_TOPIC_ID:
            raise StateError(
                f"{where}: belongs to an earlier topic {self._log.topic}, which was deleted and created "
                f"again; no decision fits the new topic; {_START_NEW_APP}"
            )
        return ruling

    def _join(self) -> int:
        done = 0
        while self._rulings:
            decision_offset, ruling = self._rulings[0]
            if ruling.log_offset < self._next_offset:
                # Retention deletes the oldest records first, so all decisions after this one are there.
                self.cut = False
                self._pop(decision_offset)
                done += 1
                continue
            if self.cut:
                # This is the first decision that retention has left. The decisions on the blocks before it
                # are deleted.
                self.pass_over(ruling.log_offset)
            while self._blocks and self._blocks[0][0] < ruling.log_offset:
                offset, _ = self._blocks.popleft()
                if offset >= self._next_offset:
                    self._miss_decision(offset)
            if self._blocks and self._blocks[0][0] == ruling.log_offset:
                offset, data = self._blocks.popleft()
                self._make_ready(offset, data, decision_offset, ruling)
                self._log_cut = False
            elif self._blocks or self._reader.position(self._log) > ruling.log_offset:
                self._miss(ruling.log_offset, f"{self._log}: block {ruling.log_offset}")
                if not self._log_cut:
                    raise FatalError(
                        f"{self._log}: retention deleted block {ruling.log_offset} before this process read "
                        "it; restoring again"
                    )
                self._skip_to(ruling.next_offset)
            else:
                break
            self._pop(decision_offset)
            done += 1
        return done

    def _make_ready(self, offset: int, data: bytes, decision_offset: int, ruling: Ruling) -> None:
        """Make one decision ready to be applied; apply all that are ready once they have `TOGETHER_ROWS`.

        raises: StateError if it was not made for this very block: if the log lost its end, other blocks have
            taken the same offsets
        """
        where = f"{self._log}@{offset}"
        block = None if ruling.result is Result.FOREIGN else decode_block(data, self._scheme, where)
        if not _made_for(ruling, data, block):
            raise StateError(
                f"{where}: is not the block that decision {self._decisions}@{decision_offset} was made "
                f"for: the topic lost blocks, and new blocks got their offsets; restore "
                f"{self._log.topic}, or {_START_NEW_APP}"
            )
        if block is None:
            self._skip_to(ruling.next_offset)
            return
        if self.since_ms is None and ruling.arrival_ms != NO_TIME:
            self.since_ms = ruling.arrival_ms
        self._ready.append((block, ruling))
        self._ready_rows += len(block)
        if self._ready_rows >= TOGETHER_ROWS:
            self._flush()

    @property
    def _next_offset(self) -> int:
        """Offset of the next block, as it will be when those that are ready are applied."""
        return self._ready[-1][1].next_offset if self._ready else self._state.next_offset

    def _flush(self) -> None:
        ready, self._ready, self._ready_rows = self._ready, [], 0
        self._state.follow(ready)

    def _check_log_end(self) -> None:
        """Check that the log reaches to the block of the next waiting decision. raises: StateError if not"""
        decision_offset, ruling = self._rulings[0]
        end = self.log_end()
        if end <= ruling.log_offset:
            raise StateError(
                f"{self._log} ends at {end}, but decision {self._decisions}@{decision_offset} was made for "
                f"block {ruling.log_offset}: the log lost blocks; restore {self._log.topic} as it was, or "
                f"{_START_NEW_APP}"
            )

    def _pop(self, decision_offset: int) -> None:
        self._rulings.popleft()
        self.decisions_at = decision_offset + 1

    def pass_over(self, log_offset: int) -> None:
        """Skip the blocks up to `log_offset`, whose decisions are deleted; each of them counts as a gap."""
        self.gaps += max(0, log_offset - self._next_offset)
        self._skip_to(log_offset)
        self.cut = False

    def _skip_to(self, log_offset: int) -> None:
        """Apply what is ready, then skip the blocks before this offset."""
        self._flush()
        self._state.pass_over(log_offset)

    def _miss_decision(self, log_offset: int) -> None:
        """Count a block without a decision as a gap, if retention explains it.

        Either retention deleted the block after it was read here and before it was judged. Or retention
        deleted decisions, perhaps the one on this block, and an index that began after them skipped the
        block.

        raises: StateError if retention does not explain it
        """
        if self._reader.beginning_offsets([self._decisions])[self._decisions] > self.decisions_at:
            self.gaps += 1
        else:
            self._miss(log_offset, f"{self._decisions}: the decision on block {log_offset}")

    def _miss(self, log_offset: int, what: str) -> None:
        """Count a gap, if retention of the log explains it. raises: StateError if not"""
        if log_offset >= self._reader.beginning_offsets([self._log])[self._log]:
            raise StateError(
                f"{what} is missing, but retention did not delete it; restore the topic, or start a new app"
            )
        self.gaps += 1

    def caught_up(self, decisions_end: int) -> bool:
        """Whether every decision below this offset of the decisions topic is applied."""
        return not self._rulings and self._reader.position(self._decisions) >= decisions_end

    def log_end(self) -> int:
        """End offset of the log, which a restore has to reach."""
        return self._reader.end_offsets([self._log])[self._log]

    def decisions_end(self) -> int:
        """End offset of the decisions topic."""
        return self._reader.end_offsets([self._decisions])[self._decisions]

    def mark(self, decisions_end: int) -> None:
        """Note that every decision below this offset is applied, so that the next `begin` continues there."""
        self.decisions_at = decisions_end

    def stop(self) -> None:
        """Apply nothing more until the next `begin`."""
        if self.phase is FollowerPhase.READING:
            self.phase = FollowerPhase.STOPPED

    def end(self) -> None:
        """Stop, and read no partition any more, because this index judges now."""
        self.stop()
        self.since_ms = None
        self._reader.assign(())


def _made_for(ruling: Ruling, data: bytes, block: Block | None) -> bool:
    """Whether a ruling was made for this block. data: the block as bytes; block: decoded, or None if that is
    not possible"""
    ask = asked_by(data)
    if (ask.session, ask.first, ask.end) != (ruling.session, ruling.first, ruling.end):
        return False
    if ruling.result is Result.JUDGED and (block is None or len(block) != len(ruling)):
        return False
    return ruling.checksum is None or ruling.checksum == checksum_of(data)
