"""Follows the log: applies recorded decisions to their blocks, without judging anything.

A restore and a warm standby work in the same way: join every decision with its block by the log offset, in
order. Decisions are read with read-committed isolation, so those of aborted transactions are never applied.

Each decision must continue the chain of those that the state contains (`pipeline/wire/chain.py`). If it does
not, the topics are no longer those that the state was made from: the state cannot be used any more.
"""

from __future__ import annotations

from collections import deque
from enum import StrEnum
from typing import NamedTuple

from twinsieve.pipeline.broker.ports import Reader
from twinsieve.pipeline.broker.records import NO_TOPIC_ID, FatalError
from twinsieve.pipeline.index.config import TOGETHER_ROWS, IndexConfig
from twinsieve.pipeline.index.state import IndexState
from twinsieve.pipeline.wire.block import Block, asked_by, decode_block
from twinsieve.pipeline.wire.chain import UNKNOWN, link_after, link_before
from twinsieve.pipeline.wire.frame import What, checksum_of
from twinsieve.pipeline.wire.judged_by import rules_in
from twinsieve.pipeline.wire.ruling import Result, Ruling, decode_ruling
from twinsieve.stages.contract import NO_TIME
from twinsieve.stages.errors import StateError

_MAX_WAITING = 256
"""Limit for the blocks, and for the decisions, that wait in memory for their counterpart."""

_START_NEW_APP = "start a new app and seed it from the output"


class _Decision(NamedTuple):
    """A decision that was read.

    before, after: the links around it; `before` is None if an older program wrote it
    rules: by which its block was judged, as in `rules_in`
    """

    offset: int
    ruling: Ruling
    before: bytes | None
    after: bytes
    rules: str


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
        self._decided: deque[_Decision] = deque()
        self._seen: bytes | None = None
        """The link after the last decision that was joined since `begin`, None if there was none."""
        self._looked_again = False
        """Whether the last decision was read again, because the next one does not follow it."""
        self._ready: list[tuple[Block, Ruling]] = []
        """Blocks with their rulings that are applied next, together."""
        self._ready_rows = 0
        self.cut = False
        """Whether retention deleted the next decisions, and no later decision has arrived yet."""
        self._log_cut = False
        self.gaps = 0
        """Number of blocks or decisions that retention deleted before they could be applied."""
        self.decisions_at = decisions_at
        """Offset in the decisions topic, at or before the last decision that the state contains. All
        decisions below it are on blocks that the state has."""
        self.since_ms: int | None = None
        """Arrival time of the first judged block that was applied since the start or the last `end`."""

    def begin(self) -> None:
        """Begin to follow at the state's offset, or at the first records that retention has left.

        raises: FatalError if a topic ends before an offset that the state has reached
        """
        self.phase = FollowerPhase.STOPPED
        beginning = self._reader.beginning_offsets([self._log, self._decisions])
        ends = self._reader.end_offsets([self._log, self._decisions])
        needed = {self._log: self._state.next_offset, self._decisions: self.decisions_at}
        for partition, offset in needed.items():
            if ends[partition] < offset:
                raise _other_history(f"{partition} ends at {ends[partition]}, after it had reached {offset}")
        self._blocks.clear()
        self._decided.clear()
        self._seen = None
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
            self._decisions: len(self._decided) >= _MAX_WAITING,
        }
        self._reader.pause([partition for partition, is_full in full.items() if is_full])
        self._reader.resume([partition for partition, is_full in full.items() if not is_full])
        polled = self._reader.poll(timeout_s, max_records)
        for records in polled:
            for offset, value, headers in zip(records.offsets, records.values, records.headers, strict=True):
                if records.partition == self._log:
                    self._blocks.append((offset, value or b""))
                else:
                    before = link_before(headers)
                    ruling = self._read_decision(offset, value or b"")
                    after = link_after(before, value or b"")
                    self._decided.append(_Decision(offset, ruling, before, after, rules_in(headers)))
        try:
            done = self._join()
        finally:
            # Their decisions count as read.
            self._flush()
        if self._decided and not (done or polled):
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
        while self._decided:
            decision = self._decided[0]
            ruling = decision.ruling
            if ruling.log_offset < self._next_offset:
                # Retention deletes the oldest records first, so all decisions after this one are there.
                self.cut = False
                self._pop(decision)
                done += 1
                continue
            if self._is_next(decision):
                self.cut = self._looked_again = False
            elif self._is_other(decision):
                # Read the last decision again: is it still there?
                self._flush()
                self._looked_again = True
                self.begin()
                return done + 1
            elif self.cut:
                # This is the first decision that retention has left. The decisions on the blocks before it
                # are deleted.
                self.pass_over(ruling.log_offset)
            while self._blocks and self._blocks[0][0] < ruling.log_offset:
                offset, _ = self._blocks.popleft()
                if offset >= self._next_offset:
                    self._miss_decision(offset)
            if self._blocks and self._blocks[0][0] == ruling.log_offset:
                offset, data = self._blocks.popleft()
                self._make_ready(offset, data, decision.offset, ruling)
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
            self._state.reach(decision.after, decision.rules)
            self._pop(decision)
            done += 1
        return done

    def _is_next(self, decision: _Decision) -> bool:
        """Whether this decision is known to be the next one of the state's history. That is not known if an
        older program wrote it or the last one, or if the state contains no decision."""
        return self._state.link != UNKNOWN and decision.before == self._state.link

    def _is_other(self, decision: _Decision) -> bool:
        """Whether this decision does not follow the last one that was read; False if that is not known.

        raises: FatalError if it is of another history, or retention deleted those between; StateError if the
            last decision is still there, so that others are missing
        """
        if self._state.link == UNKNOWN or decision.before is None:
            return False
        where = f"{self._decisions}@{decision.offset}"
        if self._seen != self._state.link:
            why = "retention deleted decisions before" if self.cut else "another decision comes before"
            raise _other_history(f"{why} {where}")
        if self._looked_again:
            raise StateError(
                f"{self._decisions}: the decision on block {self._next_offset} is missing, {where} follows "
                f"another one; restore the topic, or {_START_NEW_APP}"
            )
        return True

    def confirm(self, committed: int | None) -> None:
        """Check that the last decision that the state contains is still the last one.

        committed: log offset that the index group has committed, None if there is none
        raises: FatalError if it is not
        """
        link = self._state.link
        if UNKNOWN in (link, self._seen) or self._seen == link:
            return
        if self._seen is None and self.cut and committed == self._state.next_offset:
            # Retention deleted all decisions of an app that has been idle.
            return
        raise _other_history(f"{self._decisions} does not end with the decision that this process read last")

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
        decision_offset, ruling = self._decided[0].offset, self._decided[0].ruling
        end = self.log_end()
        if end <= ruling.log_offset:
            raise StateError(
                f"{self._log} ends at {end}, but decision {self._decisions}@{decision_offset} was made for "
                f"block {ruling.log_offset}: the log lost blocks; restore {self._log.topic} as it was, or "
                f"{_START_NEW_APP}"
            )

    def _pop(self, decision: _Decision) -> None:
        self._decided.popleft()
        self._seen = decision.after
        self.decisions_at = decision.offset

    def pass_over(self, log_offset: int) -> None:
        """Skip the blocks up to `log_offset`, whose decisions are deleted; each of them counts as a gap."""
        if log_offset > self._next_offset:
            self._note_gap(self._next_offset, log_offset)
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
            self._note_gap(log_offset, log_offset + 1)
        else:
            self._miss(log_offset, f"{self._decisions}: the decision on block {log_offset}")

    def _miss(self, log_offset: int, what: str) -> None:
        """Count a gap, if retention of the log explains it. raises: StateError if not"""
        if log_offset >= self._reader.beginning_offsets([self._log])[self._log]:
            raise StateError(
                f"{what} is missing, but retention did not delete it; restore the topic, or start a new app"
            )
        self._note_gap(log_offset, log_offset + 1)

    def _note_gap(self, first: int, end: int) -> None:
        self.gaps += end - first
        self._state.miss(first, end)

    def caught_up(self, decisions_end: int) -> bool:
        """Whether every decision below this offset of the decisions topic is applied."""
        return not self._decided and self._reader.position(self._decisions) >= decisions_end

    def left(self, decisions_end: int) -> int:
        """How many offsets below this offset of the decisions topic hold what is not applied yet."""
        return 0 if self.caught_up(decisions_end) else decisions_end - self.decisions_at

    def log_end(self) -> int:
        """End offset of the log, which a restore has to reach."""
        return self._reader.end_offsets([self._log])[self._log]

    def mark(self, decisions_end: int) -> None:
        """Note that every decision below this offset is applied, and that this index writes the next one, so
        that the next `begin` continues there."""
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


def _other_history(why: str) -> FatalError:
    return FatalError(
        f"{why}: the topics are not those that this process followed; they were restored to an earlier "
        "moment, or lost records; restoring again"
    )


def _made_for(ruling: Ruling, data: bytes, block: Block | None) -> bool:
    """Whether a ruling was made for this block. data: the block as bytes; block: decoded, or None if that is
    not possible"""
    ask = asked_by(data)
    if (ask.session, ask.first, ask.end) != (ruling.session, ruling.first, ruling.end):
        return False
    if ruling.result is Result.JUDGED and (block is None or len(block) != len(ruling)):
        return False
    return ruling.checksum is None or ruling.checksum == checksum_of(data)
