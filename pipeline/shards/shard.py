"""The shard role: answers what sealed segments have for the blocks of the log. Nothing is owed: whatever it
does not answer, the index looks up itself."""

from __future__ import annotations

import math
import zlib
from collections import Counter, deque
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from twinsieve.pipeline.broker.clock_watch import ClockWatch
from twinsieve.pipeline.broker.names import Names
from twinsieve.pipeline.broker.ports import Broker, Clock, GroupConsumer, Hook, no_hook
from twinsieve.pipeline.broker.records import (
    AbortableError,
    BrokerError,
    FatalError,
    Messages,
    Partition,
    UnreadableError,
)
from twinsieve.pipeline.index.answers_topic import READS, WRITES, AnswersTopic
from twinsieve.pipeline.index.watched_topics import InternalTopics
from twinsieve.pipeline.shards.config import (
    MOST_BYTES_AHEAD,
    MOST_RECORD_BYTES,
    Problem,
    ShardConfig,
    ShardStep,
)
from twinsieve.pipeline.shards.holdings import Held, Holdings, Wanted
from twinsieve.pipeline.shards.rendezvous import Span, first_of
from twinsieve.pipeline.wire.block import Block, decode_block
from twinsieve.pipeline.wire.frame import checksum_of
from twinsieve.pipeline.wire.segment_answers import (
    MOST_BLOCKS_AHEAD,
    AnswersRecord,
    BlockAnswer,
    SegmentPart,
    asked_of,
    decode_answers,
    encode_answers,
)
from twinsieve.stages.contract import Batch
from twinsieve.stages.errors import StateError
from twinsieve.stages.near.answers import Answer, part_of
from twinsieve.stages.window.segments import Segment

JOB = "shard"
_COMMITTED_S = 0.5
_COMMITTED_AT_BOUND_S = 0.05
"""Time between two questions for the committed offset; at the bound, small blocks would wait for it."""
_MEMBERS_S = 2.0
_SNAPSHOTS = 2
"""Without a snapshot after the time in which the index writes this number, the shard reads another store."""
_UNTOUCHED_S = 1_800.0
"""If nothing was committed for this long, answers are written again: retention may have deleted them."""
_POLLED = 16
_AT_ONCE_S = 0.05
"""After this long the answers that are there are written: the first block does not wait for all others."""
_ROWS_AT_ONCE = 512
"""A shard gathers blocks until they have this number of rows, and looks all of them up in one call."""
_UNCONFIRMED = 1_000
_TELL_S = 60.0
"""Time between two notices that blocks cannot be read."""
_RECORD_OVERHEAD = 1_024


class Answers(Protocol):
    """Looks rows up in sealed segments; `stages.judge.segment_reader.SegmentReader` does."""

    @property
    def question(self) -> bytes:
        """What is asked of a segment, 16 bytes."""

    def answer(self, batch: Batch, segment: Segment, /) -> Answer:
        """What a segment has for the rows of a batch."""


@dataclass(slots=True)
class _Progress:
    """How far a segment is answered.

    next: offset of the next block to answer; all before were read, or were judged before it began
    leaving_s: since when this member is no longer first for it; None: it is
    heard: other members that have answered for it since then
    blocks: answers that are not written yet
    """

    held: Held
    next: int
    leaving_s: float | None = None
    heard: set[str] = field(default_factory=set)
    blocks: list[BlockAnswer] = field(default_factory=list)


class _ToAnswer(NamedTuple):
    """A block with rows. checksum: of its bytes"""

    offset: int
    checksum: int
    batch: Batch


class Shard:
    """A member of the group of shards. It belongs to one thread.

    holdings_of: takes the topic id of the log
    notices: lines for an operator, which the caller removes
    counts: what was written: blocks (once for each segment), rows, bytes; problems: those of the log and of
        answers by kind
    raises: BrokerError, StateError
    """

    def __init__(
        self,
        broker: Broker,
        clock: Clock,
        config: ShardConfig,
        answers: Answers,
        holdings_of: Callable[[bytes], Holdings],
        hook: Hook = no_hook,
    ) -> None:
        self._clock = clock
        self._config = config
        self._answers = answers
        self._asked = asked_of(answers.question)
        self._hook = hook
        self.notices: list[str] = []
        self.counts: Counter[str] = Counter()
        self.problems: Counter[Problem] = Counter()
        with ExitStack() as stack:
            stack.callback(broker.close)
            self._admin = broker.admin()
            self._topics = InternalTopics(self._admin, clock, [config.log.topic], config.check_s)
            does = frozenset({READS, WRITES})
            self._topic = AnswersTopic(self._admin, clock, config.answers, does, config.check_s)
            self._require_topic()
            self._topic_id = self._topic.topic_id
            self._most_bytes = self._limit()
            self._log_id = self._topics.infos[config.log.topic].topic_id
            self.holdings = holdings_of(self._log_id)
            self._reader = broker.reader()
            self._appender = broker.appender([config.answers])
            self._consumer: GroupConsumer | None = broker.group_consumer(
                config.group, [config.answers], config.member
            )
            self._open = stack.pop_all()
        self.clocks = ClockWatch(broker.clock, clock)
        self._has_failed = False
        """Whether something was refused or lost since the limit of the topic of the answers was read."""
        self._epoch = -1
        self._has_joined = False
        self._members: frozenset[str] = frozenset()
        self._members_s = self._committed_s = clock.monotonic_s()
        self._is_leaving = False
        self._committed: int | None = None
        self._moved_s = clock.monotonic_s()
        self._answering: dict[Span, _Progress] = {}
        self._missing_s: float | None = None
        """Since when there is no snapshot; None: there is one, or nothing is judged; never: it is told."""
        self._shown_s = -math.inf
        """When something was written last; long ago if a segment was not named yet."""
        self._unreadable = ""
        """Why the last block of the log could not be read; empty if it could."""
        self._unreadable_told_s = -math.inf
        self._begin()
        hook(ShardStep.MADE)

    def _require_topic(self) -> None:
        """raises: AbortableError if the topic of the answers cannot be used: it is waited for"""
        self._topic.look()
        if self._topic.problem:
            raise AbortableError(f"{self._topic.problem}; waiting for it, and nothing is lost")

    def _limit(self) -> int:
        """The most bytes of a record that the topic of the answers takes. raises: AbortableError if it is too
        small, or does not tell"""
        name = self._config.answers
        try:
            topic = self._admin.topics([name], settings=True)[name]
        except BrokerError as error:
            raise AbortableError(str(error)) from error
        most = topic.message_bytes if topic is not None else MOST_RECORD_BYTES
        if most <= _RECORD_OVERHEAD:
            raise AbortableError(f"{name}: takes messages of {most} bytes; raise max.message.bytes")
        return min(MOST_RECORD_BYTES, most - _RECORD_OVERHEAD)

    def _check_limit(self) -> None:
        """raises: FatalError if the topic takes less than before: the same records, and the batches of this
        client, would be refused for ever; AbortableError"""
        if self._limit() < self._most_bytes:
            raise FatalError(
                f"{self._config.answers}: max.message.bytes was lowered; going on with smaller records"
            )
        self._has_failed = False

    def _begin(self) -> None:
        """Read the log again, and answer again from the committed offset: what was written may be lost."""
        self._blocks: deque[tuple[int, bytes]] = deque()
        self._from: int | None = None
        """All blocks from here on are in `_blocks` or not polled yet; None: seek first."""
        self._written: deque[tuple[int, int]] = deque()
        """Last block and bytes of the records of answers that are ahead of the committed offset."""
        self._listens: list[Partition] = []
        for each in self._answering.values():
            # What it has not read it does not say that it has read, wherever the index is.
            each.next = min(each.next, self._committed or 0)
            each.blocks.clear()

    @property
    def is_member(self) -> bool:
        """Whether the group of shards has this member."""
        return self._config.member in self._members

    @property
    def ready(self) -> bool:
        """Whether it answers for all that it should answer for, but for what cannot be read."""
        is_ready = self.is_member and self._committed is not None and not self.holdings.is_fetching
        return is_ready and not self._unreadable

    @property
    def answered(self) -> int:
        """Number of segments that it answers for."""
        return len(self._answering)

    @property
    def remark(self) -> str:
        """What it waits for; empty if for nothing."""
        if not self.is_member:
            return "joins its group"
        if self._unreadable:
            return f"cannot read the log: {self._unreadable}"
        waiting = self.holdings.waiting
        if self.holdings.named is None:
            return "reads which segments there are"
        if self._has_no_snapshot:
            return (
                f"{self.holdings.misses_snapshots} has no snapshot of this log, though the index has judged "
                f"{self._committed} blocks"
            )
        return f"waits for {len(waiting)} of {len(self.holdings.named)} segments" if waiting else ""

    @property
    def _has_no_snapshot(self) -> bool:
        """Whether there is no snapshot in the store, though there is something to write one of."""
        return bool(self.holdings.misses_snapshots and self._committed)

    def _tell_no_snapshot(self) -> None:
        """Add a notice once the index should have written a snapshot that this shard can see."""
        now_s = self._clock.monotonic_s()
        if not self._has_no_snapshot:
            self._missing_s = None
        elif self._missing_s is None:
            self._missing_s = now_s
        elif now_s - self._missing_s >= _SNAPSHOTS * self._config.snapshot_every_s:
            self._missing_s = math.inf
            self.notices.append(
                f"{self.remark}: this shard answers for nothing; let state.dir be the folder or address of "
                "the index"
            )

    def lag(self) -> int:
        """Blocks of the log that it should have answered for some segment, and has not; 0 without segments.
        What is too far ahead of the index does not count. raises: AbortableError"""
        read_to, end = self.progress()
        return 0 if self.waits else max(0, min(end, (self._committed or 0) + MOST_BLOCKS_AHEAD) - read_to)

    def progress(self) -> tuple[int, int]:
        """Up to which offset it has read the log, and where that ends. raises: AbortableError"""
        end = self._reader.end_offsets([self._config.log])[self._config.log]
        return min((each.next for each in self._answering.values()), default=end), end

    @property
    def log(self) -> Partition:
        """The partition with the blocks."""
        return self._config.log

    @property
    def waits(self) -> bool:
        """Whether it may answer nothing more until the index has judged what is answered."""
        return self._is_at_bound

    def step(self, timeout_s: float) -> None:
        """Do one round: answer the blocks that have arrived.

        raises: AbortableError (call again); FatalError or StateError if this object cannot continue
        """
        self._topics.check()
        self.notices += self.clocks.look()
        try:
            self._require_topic()
            if self._topic.topic_id != self._topic_id:
                raise FatalError(f"{self._config.answers}: was made again; going on with new clients")
            if self._has_failed:
                self._check_limit()
            if self._consumer is not None:
                # Nothing is read through it. A client that has not joined needs some time for that.
                polled = self._consumer.poll(0.0 if self._has_joined else timeout_s, 1)
                self._has_joined = polled.membership.generation >= 0
                if polled.epoch != self._epoch:
                    self._epoch, self._members_s = polled.epoch, self._clock.monotonic_s()
            self._round(timeout_s)
        except AbortableError:
            self._has_failed = True
            self._begin()
            raise
        except FatalError as error:
            if error.denied:
                # Perhaps to the answers: that ends no process, as nothing depends on them.
                self._topic.look(at_once=True)
                if self._topic.problem:
                    raise FatalError(self._topic.problem) from error
            raise

    def finish(self, timeout_s: float) -> bool:
        """Do one round of leaving: answer until others do, `grace_s` long. returns: whether that is done.
        raises: as `step`"""
        if self._consumer is not None:
            consumer, self._consumer = self._consumer, None
            consumer.leave()
            self._is_leaving, self._members_s = True, self._clock.monotonic_s()
        self.step(timeout_s)
        return not self._answering or not self._members

    def close(self, *, leaves: bool = False) -> None:
        """Close all clients. leaves: leave the group, so that others answer at once"""
        if self._consumer is not None and leaves:
            self._consumer.leave()
        self._open.close()

    def _round(self, timeout_s: float) -> None:
        self._ask()
        self._hook(ShardStep.ASKED)
        self._share()
        self._tell_no_snapshot()
        self._listen()
        self._poll(timeout_s)
        self._hook(ShardStep.POLLED)
        self._answer()
        self._write()
        self._hook(ShardStep.WRITTEN)

    def _ask(self) -> None:
        """Ask who is there, and what the index has committed, if it is time. raises: BrokerError"""
        now_s = self._clock.monotonic_s()
        if now_s >= self._members_s:
            self._members_s = now_s + _MEMBERS_S
            members = self._admin.members(self._config.group).values()
            names = {one.name for one in members if one.name is not None and Names.does(JOB, one.name)}
            self._members = frozenset(names - {self._config.member} if self._is_leaving else names)
        if now_s < self._committed_s:
            return
        self._committed_s = now_s + (_COMMITTED_AT_BOUND_S if self._is_at_bound else _COMMITTED_S)
        log = self._config.log
        found = self._admin.group_offsets(self._config.index, [log], stable=False).get(log)
        committed = found.offset if found is not None else 0
        if committed != self._committed:
            if committed < (self._committed or 0):
                self._answer_again(committed)
            self._committed, self._moved_s = committed, now_s
        elif now_s - self._moved_s >= _UNTOUCHED_S:
            self._moved_s = now_s
            self._answer_again(committed)
        while self._written and self._written[0][0] < committed:
            self._written.popleft()

    def _answer_again(self, offset: int) -> None:
        self._written.clear()
        for each in self._answering.values():
            each.next = offset

    def _share(self) -> None:
        """Find out what this member answers for, and what it is next for."""
        config, now_s = self._config, self._clock.monotonic_s()
        spans = (self.holdings.named or {}).keys() | self._answering.keys()
        if not (self.is_member or self._is_leaving) or self._committed is None:
            self.holdings.step(Wanted(frozenset(self._answering)))
            return
        orders = {span: first_of(span, self._members, config.replicas + 1) for span in spans}
        first = {span for span in spans if config.member in orders[span][: config.replicas]}
        for span, each in list(self._answering.items()):
            if span in first:
                each.leaving_s = None
                each.heard.clear()
                continue
            if each.leaving_s is None:
                each.leaving_s = now_s
            successors = orders[span][: config.replicas]
            is_answered = bool(successors) and each.heard.issuperset(successors)
            if is_answered or now_s - each.leaving_s >= config.grace_s:
                del self._answering[span]
        kept = {span for span in spans if config.member in orders[span]} - first
        self.holdings.step(Wanted(frozenset(first | self._answering.keys()), frozenset(kept)))
        for span in list(self._answering):
            held = self.holdings.held.get(span)
            if held is None or held.id != self._answering[span].held.id:
                del self._answering[span]
            else:
                self._answering[span].held = held
        for span in first - self._answering.keys():
            if self.holdings.is_ready(span):
                held = self.holdings.held[span]
                self._answering[span] = _Progress(held, self._committed)
                self._shown_s = -math.inf

    def _with_leaders(self) -> list[Partition]:
        """The partitions of the answers that can be read and written."""
        return [Partition(self._config.answers, number) for number in sorted(self._topic.numbers)]

    def _listen(self) -> None:
        """Read the answers of others to segments that this member is no longer first for, from now on."""
        is_leaving = any(each.leaving_s is not None for each in self._answering.values())
        listens = self._with_leaders() if is_leaving else []
        if listens == self._listens and self._from is not None:
            return
        self._reader.assign([self._config.log, *listens])
        new = [partition for partition in listens if partition not in self._listens]
        for partition, end in self._reader.end_offsets(new).items() if new else ():
            self._reader.seek(partition, end)
        self._listens = listens

    def _poll(self, timeout_s: float) -> None:
        log, committed = self._config.log, self._committed or 0
        low = min((max(each.next, committed) for each in self._answering.values()), default=None)
        if low is None:
            self._blocks.clear()
            self._from = None
        elif self._from is None or not self._from - 1 < low <= self._from + MOST_BLOCKS_AHEAD:
            self._seek(low)
        reads_log = low is not None and not self._blocks and not self._is_at_bound
        if not (reads_log or self._listens):
            if not self._blocks or self._is_at_bound:
                self._clock.sleep(min(timeout_s, _COMMITTED_AT_BOUND_S))
            return
        if self._from is not None:
            (self._reader.resume if reads_log else self._reader.pause)([log])
        try:
            polled = self._reader.poll(timeout_s if not self._blocks else 0.0, _POLLED)
        except UnreadableError as error:
            self._pass_over(error)
            return
        for records in polled:
            for offset, value in zip(records.offsets, records.values, strict=True):
                if records.partition == log:
                    self._blocks.append((offset, value or b""))
                else:
                    self._hear(value or b"", f"{records.partition}@{offset}")

    def _seek(self, low: int) -> None:
        """Read the log from here on, or from the beginning or end that it has. raises: AbortableError"""
        log = self._config.log
        begin = self._reader.beginning_offsets([log])[log]
        end = self._reader.end_offsets([log])[log]
        position = min(max(low, begin), max(begin, end))
        self._reader.seek(log, position)
        self._blocks.clear()
        self._from = low
        if position >= end:
            # The index has judged all that there is, and nothing is left to read.
            for each in self._answering.values():
                each.next = max(each.next, position)

    def _pass_over(self, error: UnreadableError) -> None:
        after = error.behind
        self._reader.seek(error.partition, after)
        if error.partition != self._config.log:
            self.problems[Problem.ANSWER] += 1
            return
        self.problems[Problem.BLOCK] += 1
        self._from = max(self._from or 0, after)
        for each in self._answering.values():
            each.next = max(each.next, after)

    def _hear(self, data: bytes, where: str) -> None:
        try:
            record = decode_answers(self._config.scheme, data, where)
        except StateError:
            self.problems[Problem.ANSWER] += 1
            return
        is_asked = (record.log_id, record.question) == (self._log_id, self._asked)
        if not is_asked or record.shard == self._config.member:
            return
        said = {part.segment for part in record.parts if part.read_to >= (self._committed or 0)}
        for each in self._answering.values():
            if each.leaving_s is not None and each.held.id in said:
                each.heard.add(record.shard)

    @property
    def _is_at_bound(self) -> bool:
        """Whether the next block is too far ahead of the index."""
        if sum(size for _, size in self._written) >= MOST_BYTES_AHEAD:
            return True
        at = self._blocks[0][0] if self._blocks else self._from
        return at is not None and at >= (self._committed or 0) + MOST_BLOCKS_AHEAD

    def _answer(self) -> None:
        committed, began_s = self._committed or 0, self._clock.monotonic_s()
        while self._blocks and not self._is_at_bound:
            first = min((max(each.next, committed) for each in self._answering.values()), default=None)
            blocks = self._next_blocks(first)
            batches = [block.batch for block in blocks]
            rows = Batch.concat(batches) if batches else None
            for each in self._answering.values():
                # The first blocks may be answered for this segment already, or committed.
                low = sum(block.offset < max(each.next, committed) for block in blocks)
                if rows is not None and low < len(blocks):
                    self._answer_in(each, blocks[low:], rows)
                each.next = max(each.next, self._from or 0)
            if self._clock.monotonic_s() - began_s >= _AT_ONCE_S:
                return

    def _next_blocks(self, first: int | None) -> list[_ToAnswer]:
        """Take the next blocks of the log that have rows, several small ones, because each call of the
        look-up has a fixed cost. first: blocks before this offset need no answer; None: no block needs one"""
        blocks: list[_ToAnswer] = []
        rows = 0
        while self._blocks and not self._is_at_bound and rows < _ROWS_AT_ONCE:
            offset, data = self._blocks.popleft()
            self._from = max(self._from or 0, offset + 1)
            block = self._decoded(data, offset) if first is not None and offset >= first else None
            if block is not None and len(block.batch):
                blocks.append(_ToAnswer(offset, checksum_of(data), block.batch))
                rows += len(block.batch)
        return blocks

    def _answer_in(self, each: _Progress, blocks: Sequence[_ToAnswer], rows: Batch) -> None:
        """Look the rows of blocks up in a segment. rows: those of these blocks are its last ones"""
        count = sum(len(block.batch) for block in blocks)
        answer = self._answers.answer(rows.slice(len(rows) - count, len(rows)), each.held.segment)
        low = 0
        for block in blocks:
            high = low + len(block.batch)
            part = part_of(answer, low, high)
            each.blocks.append(BlockAnswer(block.offset, block.checksum, high - low, part))
            low = high

    def _decoded(self, data: bytes, offset: int) -> Block | None:
        """The block; None if it cannot be read: the index refuses it, or stops."""
        try:
            block = decode_block(data, self._config.scheme, f"{self._config.log}@{offset}")
        except StateError as error:
            self.problems[Problem.BLOCK] += 1
            self._unreadable, now_s = str(error), self._clock.monotonic_s()
            if now_s - self._unreadable_told_s >= _TELL_S:
                self._unreadable_told_s = now_s
                self.notices.append(
                    f"{error}; until it can read a block, this shard does not say that it is there"
                )
            return None
        self._unreadable = ""
        return block

    def _write(self) -> None:
        """Write the answers that are made, of all segments together; now and then without new ones, so that
        the index goes on to wait for this member, unless it cannot read the blocks. raises: AbortableError"""
        now_s = self._clock.monotonic_s()
        told = list(self._answering.values())
        is_shown = bool(self._unreadable) or now_s - self._shown_s < self._config.patience_s / 4
        is_due = not is_shown or any(each.blocks for each in told)
        partitions = self._with_leaders() if told and is_due else []
        if partitions:
            # Any partition does, as nothing depends on the order of records; the members take different ones.
            at = partitions[zlib.crc32(self._config.member.encode()) % len(partitions)]
            self._append(at, [SegmentPart(each.held.id, each.blocks, each.next) for each in told])
            self._shown_s = now_s
        for each in told:
            # Without a leader they are not written: nothing is owed.
            each.blocks = []
        if self._appender.confirm(0.0) > _UNCONFIRMED:
            self._appender.confirm(_COMMITTED_S)

    def _append(self, at: Partition, parts: list[SegmentPart]) -> None:
        record = AnswersRecord(self._log_id, self._asked, self._config.member, parts)
        size = 0
        for value in encode_answers(self._config.scheme, record, self._most_bytes):
            # One by one: records that are appended together may become one batch, which has a limit.
            messages = Messages()
            messages.add(None, value)
            self._appender.append(at, messages)
            size += len(value)
        blocks = [block for part in parts for block in part.blocks]
        if blocks:
            self._written.append((max(block.offset for block in blocks), size))
        self.counts += Counter(blocks=len(blocks), rows=sum(block.rows for block in blocks), bytes=size)
