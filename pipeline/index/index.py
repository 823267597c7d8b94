"""The index role: reads the fingerprint log in order, judges its blocks, records decisions, answers workers.

Steps of `Index.step`, once the log's partition is ours and every recorded decision has been applied:

1. Poll blocks, together with the current group membership. Hook: POLLED.
2. Judge as many blocks as there is time for, and as need not wait for answers of shards; the next step goes
   on with the others. The state is then ahead of what is recorded. Hook: JUDGED.
3. Write one decision per block, the answers and the log offset in one transaction. All indexes of a
   deployment share one transactional id, so that a new index fences the old one. Hooks: BEGUN, DECIDED,
   ANSWERED, OFFSETS_SENT, COMMITTED.
4. Now and then, store a snapshot of the committed state, which was frozen some steps before and written in
   the background. Hook: SNAPSHOT_WRITTEN.

A crash before COMMITTED leaves nothing that counts: the next index applies the earlier decisions and judges
the same blocks from the same state. After COMMITTED everything is recorded. A recorded block must never be
judged again, so the order of the steps is fixed, and a decision and its answer share a transaction. An error
after step 1 may leave the state of this object ahead of the record: then the role ends (FatalError), and a
new index restores.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from contextlib import ExitStack, suppress
from functools import partial
from itertools import islice
from typing import NamedTuple

from twinsieve.pipeline.basics.state_machine import Machine
from twinsieve.pipeline.broker.clock_watch import ClockWatch
from twinsieve.pipeline.broker.committed_offsets import committed_offsets
from twinsieve.pipeline.broker.names import Names
from twinsieve.pipeline.broker.ports import Broker, Clock, GroupConsumer, Hook, no_hook
from twinsieve.pipeline.broker.records import (
    AbortableError,
    BrokerError,
    Committed,
    FatalError,
    Membership,
    Partition,
)
from twinsieve.pipeline.index.answers_topic import READS, AnswersTopic
from twinsieve.pipeline.index.config import INDEX_WAYS, IndexConfig, IndexPhase, IndexStep
from twinsieve.pipeline.index.ends import (
    SHOWN_ALONE,
    Alone,
    Ends,
    Late,
    Unanswered,
    recorded_behind_snapshots,
    recorded_under,
    snapshots_missing,
)
from twinsieve.pipeline.index.follower import Follower, FollowerPhase
from twinsieve.pipeline.index.full_disk import FullDisk
from twinsieve.pipeline.index.held_blocks import HeldBlocks, ReadBlock
from twinsieve.pipeline.index.history import History
from twinsieve.pipeline.index.joining import Joining
from twinsieve.pipeline.index.ledger import GivenUp
from twinsieve.pipeline.index.other_settings import OtherSettings
from twinsieve.pipeline.index.segment_answers import SegmentAnswers
from twinsieve.pipeline.index.segment_memory import SegmentMemory
from twinsieve.pipeline.index.snapshot_store import SnapshotStore
from twinsieve.pipeline.index.snapshot_writer import Sieves, SnapshotWriter, restore_point
from twinsieve.pipeline.index.state import Asked
from twinsieve.pipeline.index.transaction import DecisionWriter, Pace
from twinsieve.pipeline.index.watched_topics import InputTopics, InternalTopics
from twinsieve.pipeline.saved import Watch, no_watch
from twinsieve.pipeline.saved.journal import Journal, MissingError
from twinsieve.pipeline.saved.patience import PATIENCE_S
from twinsieve.pipeline.wire.block import Block, asked_by
from twinsieve.pipeline.wire.frame import checksum_of
from twinsieve.pipeline.wire.ruling import Ruling
from twinsieve.pipeline.wire.segment_answers import asked_of
from twinsieve.stages.errors import StateError
from twinsieve.stages.near.answers import NO_ANSWERS
from twinsieve.stages.window.segments import SegmentId

_STAND_BY_S = 0.02
"""Timeout of a poll while this index does not judge: long enough for its client to take part in the group."""

_WAIT_EVERY_S = 0.5
"""During a busy restore, one poll in this time uses that timeout; the polls in between do not wait."""

_AT_ONCE = 4
"""A step that applies decisions polls this many times as many records as a step that judges blocks."""

_MOST_AT_ONCE = 512
"""But at most this number of records. A step that applies them reaches no group and hears no stop, and it has
no limit of its own for the time that it takes."""

_MEND_EVERY_S = 3600.0
"""At least this time is between two restores of one process that are for whole snapshots alone. A restore
may take minutes, and a disk that is too slow may lose kept messages again in it."""

_LOOK_S = 5.0
"""An index whose disk is full asks this often who else is in the group."""

_FULL_FOLLOWED = 8
_FULL_ROWS = 4_096
"""While segments cannot be written, a step applies this many decisions at most, and none if there is room for
fewer messages than this before a segment that does not fit."""

_LIST_S = 5.0
"""How long an index that must know whether there is a newer snapshot waits for the folder."""

_NAME, _MOST_LATE = 64, 8
"""Characters of a shard's name that are shown, and how many shards: records may be of strangers."""

_CLOCKS_DIFFER_MS = 60_000
"""If the log does not say when the broker wrote a block, the block's arrival time may be at most this far
ahead of the index's clock; a later time is reduced to that."""


class LateShard(NamedTuple):
    """For how many segments a shard answers too late, and since when (monotonic)."""

    segments: int
    since_s: float


class Index:
    """One index. It stands by until its group assigns it the log.

    broker: used by this index alone, and closed with it
    sieves: functions that make its sieve or restore it
    store, background: where snapshots are stored, and what writes them in the background; without a store
        there are no snapshots
    watch: called while the index restores from a snapshot, and while it waits for its last snapshot to be
        written; both may take minutes
    pace: the pace of the previous index in the same process
    """

    def __init__(
        self,
        broker: Broker,
        clock: Clock,
        config: IndexConfig,
        sieves: Sieves,
        store: SnapshotStore | None,
        background: Executor,
        hook: Hook = no_hook,
        watch: Watch = no_watch,
        pace: Pace | None = None,
    ) -> None:
        self._broker = broker
        self._clock = clock
        self._config = config
        self._pace = pace or Pace(config.max_blocks)
        self._followed = min(_AT_ONCE * config.max_blocks, _MOST_AT_ONCE)
        self.judges = False
        """Whether this index is judging at this moment. That may take seconds without a request to a
        broker."""
        self.waits_since_ms: int | None = None
        """When the oldest block without a recorded decision was appended to the log, as far as this index has
        read; None if there is none."""
        self._store = store
        self._background = background
        self._hook = hook
        self._consumer: GroupConsumer | None = None
        self._reader = broker.reader()
        self._admin = broker.admin()
        names = [config.log.topic, config.decisions.topic, config.verdicts]
        self._topics = InternalTopics(self._admin, clock, names, config.check_s / 2)
        infos = self._topics.infos
        self._ids = (infos[config.log.topic].topic_id, infos[config.decisions.topic].topic_id)
        self.notices: list[str] = []
        """Problems for the operator; the caller logs and removes them."""
        self.other_settings = OtherSettings(config.under.settings, self.notices)
        self.clocks = ClockWatch(broker.clock, clock)
        self.log_lines: list[str] = []
        """Successes that are worth a line in the log; the caller logs and removes them."""
        # The caller adds these to its counters and sets them to 0.
        self.unjudged = 0
        """Number of blocks that retention deleted before they were judged."""
        self.sessions = 0
        """Number of sessions that began in blocks that this index has judged."""
        self.given_up: Counter[GivenUp] = Counter()
        """Number of judged messages that were passed over because they never come out, by reason."""
        self.rebalances = 0
        self.rules_changes = 0
        """Number of times that this index judged on after decisions by other rules."""
        self._inputs = InputTopics(self._admin, clock, config, self.notices)
        log_begins = self._reader.beginning_offsets([config.log])[config.log]
        journals = None if store is None else partial(_journal, store, sieves, self.notices.append)
        restored = restore_point(
            store,
            self._ids,
            config.scheme,
            config.under.fixed,
            sieves,
            log_begins,
            self.notices,
            journals,
            History(self._reader, clock, config.log, config.decisions, self._committed),
            watch,
        )
        self.state = restored.state
        self._journal = restored.journal
        if self._journal is not None:
            self.state.sieve.on_kept = self._journal.take
            self.state.sieve.seal_into(self._journal.write_segment)
        self.snapshots = SnapshotWriter(
            *(store, self._journal, self._ids, config.scheme, background, clock),
            *(config.snapshot_every_s, watch, config.under.fixed),
            (self.state.next_offset, restored.decisions_from),
            announces=config.answers is not None,
        )
        if log_begins and not self.state.next_offset:
            self._miss_snapshots(log_begins)
        self.follower = Follower(self._reader, self.state, config, self._ids[0], restored.decisions_from)
        self._joining = Joining(clock, config.join_s, self._may_have_others, self.notices)
        self._applied = 0
        self._waited_s = 0.0
        self.answers: SegmentAnswers | None = None
        self.answers_topic: AnswersTopic | None = None
        if config.answers is not None:
            asked = asked_of(self.state.sieve.question)
            self.answers = SegmentAnswers(
                *(broker.reader, config.answers, config.scheme, self._ids[0], asked, clock, self.notices)
            )
            self.answers_topic = AnswersTopic(
                *(self._admin, clock, config.answers.topic, frozenset({READS}), config.check_s / 2)
            )
            self.state.sieve.time_look_ups(clock.monotonic_s)
        self.unanswered: dict[SegmentId, float] | None = None
        """The sealed segments in which this index looks up itself, because no shard answers for them, and
        since when (monotonic). None if it does not judge or uses no answers, and until it has heard all who
        answer."""
        self.late: dict[str, LateShard] = {}
        """The shards that say that they are there, and for whose segments this index looks up itself because
        they are slower, or do not read; by name."""
        self._held = HeldBlocks(config.log, config.scheme, self.answers_topic, self.answers)
        self._sealed: list[SegmentId] = []
        self._memory = SegmentMemory(self.state, background, self.notices)
        segments = self._journal.segments if self._journal is not None else None
        self.disk = FullDisk(
            self.state.sieve,
            segments,
            config.memory,
            config.spare_bytes,
            clock,
            self.notices,
            self.log_lines,
        )
        self.stays_out = False
        """Whether it joins no group for now, because its disk is full, and another index is there."""
        self._look_s = clock.monotonic_s()
        self._writer: DecisionWriter | None = None
        self._to_trim: dict[Partition, int] = {}
        self._recorded = 0
        self._reported_gaps = self._taken_gaps = 0
        self._epoch = 0
        """Number of the group's last rebalance; the first one ends the restoring phase."""
        self.phase = Machine(INDEX_WAYS, IndexPhase.RESTORING)
        self._checked_s = clock.monotonic_s()
        self._other_rules = ""
        """The rules that judged before this index became live, if they are others, until that is reported."""

    def _miss_snapshots(self, log_begins: int) -> None:
        """Stop if part of the log was deleted because snapshots contain it, for without them the windows
        would begin empty. raises: StateError in that case"""
        if self._config.needs_snapshots and recorded_behind_snapshots(self._committed()):
            foreign = self._store.foreign.values() if self._store is not None else ()
            raise StateError(snapshots_missing(self._config.log, log_begins, foreign))

    def _committed(self) -> Committed | None:
        """What the group has committed for the log, before this index is a member of it."""
        # stable=False, because a request for stable offsets fails while a transaction of the previous index
        # is open; if that index died inside it, it stays open until this index takes over.
        return self._admin.group_offsets(self._config.group, stable=False).get(self._config.log)

    @property
    def live(self) -> bool:
        """Whether this index judges; otherwise it restores, stands by or catches up."""
        return self.phase.now is IndexPhase.LIVE

    @property
    def behind_s(self) -> float:
        """Seconds for which the oldest block that is known to wait has been in the log; 0 if none waits."""
        since_ms = self.waits_since_ms
        if since_ms is None:
            return 0.0
        # The broker sets the timestamps in the log, so the time is taken by the broker's clock.
        return max(0.0, (self._clock.now_ms() - since_ms) / 1000 - (self.clocks.ahead_s or 0.0))

    @property
    def ready(self) -> bool:
        """Whether this index judges, or stands by for the one that does; False in the other phases, and while
        its disk lets it do nothing."""
        return self.phase.now in (IndexPhase.LIVE, IndexPhase.STANDBY) and self.disk.paused_ms is None

    @property
    def holds_log(self) -> bool:
        """Whether the group has assigned it the log, so that no other index judges."""
        return self.phase.now in (IndexPhase.LIVE, IndexPhase.CATCHING_UP)

    def step_aside(self) -> bool:
        """Leave the group if another index is in it, which then gets the log; returns whether it left.

        After leaving, only `abandon` may be called. An index that is alone stays, because no other index
        would judge.
        """
        if self._consumer is None:
            return False
        try:
            others = self._has_others()
        except BrokerError:
            return False
        if others:
            self._consumer.leave()
        return others

    def _has_others(self) -> bool:
        """Whether another index is in the group. raises: BrokerError"""
        members = self._admin.members(self._config.group).values()
        return any(Names.does("index", one.name) and one.name != self._config.member for one in members)

    def _may_have_others(self) -> bool:
        """Whether other indexes are in the group; True, too, if the broker does not answer."""
        try:
            return self._has_others()
        except BrokerError:
            return True

    def _stay_out(self) -> bool:
        """Whether to stay out of the group, or to leave it, because segments cannot be written and another
        index is there. So those in the group are the ones whose disks have room, and one that judges nothing
        hands over to one of them.

        The one that judges leaves only when it has to pause, and once: else two with full disks would take
        turns.
        """
        disk, now_s = self.disk, self._clock.monotonic_s()
        leaves = not self.holds_log or (disk.paused_ms is not None and not disk.has_handed_over)
        if not (disk.is_full and leaves):
            self.stays_out = False
        elif now_s >= self._look_s:
            self._look_s = now_s + _LOOK_S
            try:
                self.stays_out = self._has_others()
            except BrokerError:
                return self.stays_out
        return self.stays_out

    def _leave(self, consumer: GroupConsumer) -> None:
        """Leave the group, and follow whoever judges now."""
        self.disk.has_handed_over |= self.holds_log
        self._consumer, self._epoch = None, 0
        consumer.leave()
        self._follow_again(IndexPhase.RESTORING)
        self.notices.append(
            f"left the group {self._config.group}, because the disk does not take {self.disk.unwritten} "
            "segments, so that an index whose disk has room judges; it comes back when this disk has room, "
            "or when no index is there"
        )

    def take_gaps(self) -> int:
        """Number of blocks or decisions that retention deleted before they were applied, since the last
        call."""
        before, self._taken_gaps = self._taken_gaps, self.follower.gaps
        return self._taken_gaps - before

    def step(self, timeout_s: float) -> list[Ruling]:
        """Do one round: apply decisions, or judge the blocks that have arrived; returns the committed
        rulings.

        raises: AbortableError if nothing was judged (call again); FatalError or StateError if this object
            cannot continue
        """
        self._topics.check()
        self.notices += self.clocks.look()
        try:
            return self._step(timeout_s)
        except AbortableError:
            # The polled records are lost with this error: follow, and read again from the state's offset.
            self._follow_again(IndexPhase.CATCHING_UP if self.live else self.phase.now)
            raise

    def _step(self, timeout_s: float) -> list[Ruling]:
        consumer = self._consumer or self._join()
        if consumer is None:
            self._finish_snapshot()
            at, began_s = self.follower.decisions_at, self._clock.monotonic_s()
            self._apply(timeout_s)
            self._joining.applied(self.follower.decisions_at - at, self._clock.monotonic_s() - began_s)
            return []
        # Step 1: poll blocks.
        most = self._pace.blocks
        if self.live:
            # While blocks wait for answers, others are read, and judged in the same transaction.
            most = self._held.room(consumer, most, self._config.max_step_bytes // 2)
        polled = consumer.poll(self._poll_s(timeout_s), most)
        self._hook(IndexStep.POLLED)
        if polled.epoch != self._epoch:
            self._epoch = polled.epoch
            self.rebalances += 1
            own = self._config.log in polled.assignment
            self._follow_again(IndexPhase.CATCHING_UP if own else IndexPhase.STANDBY)
        self._finish_snapshot()
        if self.disk.is_full and self._stay_out():
            self._leave(consumer)
            return []
        if not self.live:
            self._follow(consumer, polled.membership, timeout_s)
            return []
        self._inputs.look(self.state.ledger)
        self._held.add(polled.records)
        self.waits_since_ms = self._held.since_ms
        if self.answers is not None:
            self._look_at_shards(self.answers)
        blocks = self._held.answered(timeout_s, self.behind_s, self._sealed, self.state.asks)
        if blocks:
            fitting = self._fitting(blocks[: self._pace.blocks])
            if fitting:
                self.disk.go_on()
                return self._judge(fitting, polled.membership)
            if self.disk.pause():
                # `status` reads it from there.
                self._commit([], polled.membership)
        if self._held and self.disk.paused_ms is None:
            return []
        if self._clock.monotonic_s() - self._checked_s >= self._config.check_s:
            self._check_idle(polled.membership)
        return []

    def _poll_s(self, timeout_s: float) -> float:
        """Timeout of a poll of the log."""
        if not self.live:
            return self._stand_by_s(timeout_s)
        return 0.0 if self._held and self.disk.paused_ms is None else timeout_s

    def _fitting(self, blocks: list[ReadBlock]) -> list[ReadBlock]:
        """Those of these blocks, from the first on, that can be judged without a segment that does not fit.

        While segments cannot be written, a step begins no second segment, so that each one is looked at.
        """
        room = self.disk.look()
        if room is None:
            return blocks
        rows = 0
        for number, read in enumerate(blocks):
            block = self._held.decoded(read)
            rows += len(block.batch) if isinstance(block, Block) else 0
            if rows > room.messages and (number or room.is_last):
                return blocks[:number]
        return blocks

    def _apply(self, timeout_s: float) -> int:
        """Let the follower apply decisions, unless that might begin a segment that does not fit; returns how
        many."""
        room = self.disk.look()
        if room is None:
            return self.follower.step(timeout_s, self._followed)
        if room.is_last and room.messages < _FULL_ROWS:
            self.disk.pause()
            self._clock.sleep(timeout_s)
            return 0
        self.disk.go_on()
        return self.follower.step(timeout_s, min(_FULL_FOLLOWED, self._followed))

    def _look_at_shards(self, answers: SegmentAnswers) -> None:
        """Note in which segments this index looks up itself, and take them into memory."""
        answered = {each for each in self._sealed if answers.waits.is_answered(each)}
        self._memory.step(answered, takes=answers.is_settled)
        if not answers.is_settled:
            return
        known, late, now_s = (
            self.unanswered or {},
            answers.waits.late(self._sealed),
            self._clock.monotonic_s(),
        )
        alone = [each for each in self._sealed if each not in answered and each not in late]
        self.unanswered = {each: known.get(each, now_s) for each in alone}
        before, counts = self.late, Counter(name[:_NAME] for name in late.values())
        self.late = {
            name: LateShard(count, before[name].since_s if name in before else now_s)
            for name, count in counts.most_common(_MOST_LATE)
        }

    @property
    def _alone(self) -> Alone:
        """The segments in which this index looks up itself, as a commit records them."""
        now_s, now_ms = self._clock.monotonic_s(), self._clock.now_ms()
        alone = self.unanswered or {}
        shown = [
            Unanswered(each.first, each.end, now_ms - round(1000 * (now_s - since_s)))
            for each, since_s in islice(alone.items(), SHOWN_ALONE)
        ]
        late = [
            Late(name, each.segments, now_ms - round(1000 * (now_s - each.since_s)))
            for name, each in islice(self.late.items(), SHOWN_ALONE)
        ]
        return Alone(len(alone), tuple(shown), tuple(late))

    def _note_sealed(self) -> None:
        """Note which segments are sealed, after blocks were judged or followed."""
        if self.answers is not None:
            self._sealed = self.state.sieve.sealed_ids()
            self.answers.pass_over(self.state.next_offset)
            self.answers.waits.keep(self._sealed)

    def _check_idle(self, membership: Membership) -> None:
        """Check, with an empty commit, that no other index has taken over; begin a snapshot if one is due."""
        self._commit([], membership)
        if self.snapshots.is_due():
            self.snapshots.begin(self.state, self.follower.decisions_at)

    def close(self) -> None:
        """Leave the group, so that a standby gets the log at once, then write a last snapshot. If that fails,
        add a notice: nothing is lost, because the next start follows the log from the previous snapshot."""
        try:
            if self._consumer is not None:
                self._consumer.leave()
            if self.live:
                self._finish_snapshot(wait=True)
                self.snapshots.begin(self.state, self.follower.decisions_at)
                self._finish_snapshot(wait=True, last=True)
        finally:
            self.abandon()

    def abandon(self, *, leaves: bool = False) -> None:
        """Close everything, without a snapshot, because after an error the state may be ahead of the record.

        leaves: also leave the group, so that a standby gets the log at once; else the group keeps the member
            until its session times out
        """
        with ExitStack() as closing:  # calls them in reverse order, and the others if one of them fails
            closing.callback(self._broker.close)
            closing.callback(self._admin.close)
            if self._consumer is not None:
                closing.callback(self._consumer.leave if leaves else self._consumer.close)
            closing.callback(self._reader.close)
            if self.answers is not None:
                closing.callback(self.answers.close)
            if self._writer is not None:
                closing.callback(self._writer.transactor.close)
            if self._journal is not None:
                closing.callback(self._journal.close)

    def _join(self) -> GroupConsumer | None:
        """Join the group, unless much remains to be done first (`Joining`). Returns None if it does not
        join."""
        config = self._config
        self._begin()
        if self._stay_out():
            return None
        left = self.follower.left(self._reader.end_offsets([config.decisions])[config.decisions])
        unwritten = 0 if self._journal is None else len(self._journal.segments.being_written)
        if self._joining.is_due(left, unwritten):
            self._consumer = self._broker.group_consumer(config.group, [config.log.topic], config.member)
        return self._consumer

    def _follow_again(self, phase: IndexPhase) -> None:
        """Return to following: all committed decisions are applied before anything is judged, because the
        assignment may have changed."""
        if self._writer is not None:
            self._writer.transactor.close()
            self._writer = None
        if self._consumer is not None:
            # Another process judges now, so this consumer reads nothing. Pause it: if retention deletes the
            # record at its position, each poll would fail.
            self._consumer.pause([self._config.log])
        self._held.clear()
        self._hold_segments(are_held=True)
        if self.answers is not None:
            self.answers.end()
            self.unanswered, self.late = None, {}
        self.phase.go(phase)
        self.follower.stop()
        self._joining.begin()

    def _hold_segments(self, *, are_held: bool) -> None:
        """Say whether sealed segments are held back from the store: only the index that judges writes them
        there."""
        if self._journal is not None:
            self._journal.segments.holds_back = are_held

    def _stand_by_s(self, timeout_s: float) -> float:
        """Timeout of a poll that will find nothing: mostly 0 while decisions are being applied."""
        now_s = self._clock.monotonic_s()
        if self._applied and now_s - self._waited_s < _WAIT_EVERY_S:
            return 0.0
        self._waited_s = now_s
        return min(timeout_s, _STAND_BY_S)

    def _begin(self) -> None:
        """Let the follower read from the state's offset on, unless it reads already.

        raises: FatalError if the log is deleted at that offset, and a newer snapshot can be restored
        """
        phase = self.follower.phase
        if phase is FollowerPhase.READING:
            return
        log = self._config.log
        is_deleted = self.state.next_offset < self._reader.beginning_offsets([log])[log]
        if phase is FollowerPhase.STOPPED and is_deleted and self._has_newer_snapshot():
            raise FatalError(
                f"{log}: retention deleted block {self.state.next_offset} before this process read it; "
                "restoring from a newer snapshot"
            )
        # Check the topic ids: a topic that was created again just now looks like one that lost its records.
        self._topics.check(at_once=True)
        self.follower.begin()

    def _has_newer_snapshot(self) -> bool:
        """Whether a snapshot is newer than the state. One may be, if the folder does not answer in time: the
        restore waits for it, and meanwhile another process may judge."""
        if self._store is None:
            return False
        listed = self._background.submit(self._store.kept_offsets, self._ids[0])
        try:
            return max(listed.result(_LIST_S), default=0) > self.state.next_offset
        except TimeoutError:
            return True

    def _follow(self, consumer: GroupConsumer, membership: Membership, timeout_s: float) -> None:
        self._begin()
        if self.phase.now is IndexPhase.CATCHING_UP and self._writer is None:
            with suppress(AbortableError):
                self._writer = DecisionWriter(self._broker, self._config, self._hook, self._reader)
        self._applied = self._apply(timeout_s)
        if self._writer is not None and self.follower.caught_up(self._writer.decisions_end):
            self._go_live(consumer, self._writer, membership)

    def _go_live(self, consumer: GroupConsumer, writer: DecisionWriter, membership: Membership) -> None:
        log, decisions = self._config.log, self._config.decisions
        end_offsets = self._reader.end_offsets([log, decisions])
        committed = committed_offsets(consumer, writer.transactor, membership, [log])[log]
        begin = self._reader.beginning_offsets([log])[log]
        cut, log_end, decisions_end = self.follower.cut, end_offsets[log], end_offsets[decisions]
        ends = Ends(log, decisions, self.state.next_offset, cut, begin, log_end, decisions_end, committed)
        self.follower.confirm(committed.offset if committed is not None else None)
        ends.check(lambda: writer.prove(committed or Committed(ends.recorded), membership))
        self.follower.pass_over(ends.recorded)
        self._report_passed_over(ends.go_on - ends.recorded)
        self.state.pass_over(ends.go_on)
        self._recorded = ends.recorded
        writer.behind_snapshots = self._config.needs_snapshots and recorded_behind_snapshots(committed)
        writer.under = recorded_under(committed)
        consumer.seek(log, self.state.next_offset)
        consumer.resume([log])
        self._hold_segments(are_held=False)
        self.snapshots.live(self.state, self.follower.since_ms)
        sieve = self.state.sieve
        self._other_rules = sieve.judged_by if sieve.judged_by != sieve.rules else ""
        self._inputs.begin()
        self._note_sealed()
        if self.answers is not None:
            self.answers.begin(self.state.next_offset)
        self.follower.end()
        self.phase.go(IndexPhase.LIVE)
        self._hook(IndexStep.RESTORED)

    def _report_passed_over(self, unjudged: int) -> None:
        """Add notices about what retention deleted since the last such notice. unjudged: blocks that were
        deleted before they were judged"""
        log, gaps = self._config.log, self.follower.gaps - self._reported_gaps
        if gaps:
            self.notices.append(
                f"{log}: retention deleted {gaps} blocks, or the decisions on them, before this process read "
                "them; copies of messages in these blocks may be emitted again"
            )
            self._reported_gaps = self.follower.gaps
        if unjudged:
            self.notices.append(
                f"{log}: retention deleted {unjudged} blocks before they were judged; workers send them again"
            )
            self.unjudged += unjudged

    def _judge(self, blocks: list[ReadBlock], membership: Membership) -> list[Ruling]:
        # Step 2: judge.
        ledger = self.state.ledger
        sessions, given_up = ledger.sessions_started, ledger.given_up.copy()
        began_s, max_s = self._clock.monotonic_s(), self._config.max_step_s
        self.waits_since_ms = blocks[0].stamp_ms
        self.judges = True
        rulings: list[tuple[Ruling, int]] = []
        waiting: list[tuple[ReadBlock, Asked]] = []
        step_bytes = rows = 0
        for read in blocks:
            step_bytes += len(read.data)
            is_late = self._clock.monotonic_s() - began_s >= max_s or step_bytes > self._config.max_step_bytes
            if (rulings or waiting) and is_late:
                break
            block = self._held.decoded(read)
            if not isinstance(block, Block):
                if waiting:
                    rulings += self._rule(waiting)
                    waiting, rows = [], 0
                rulings.append(self._refuse(read, block))
                continue
            asked = self._asked(read, block)
            waiting.append((read, asked))
            rows += len(asked.block)
            if asked.given_up or rows >= self._pace.rows:
                rulings += self._rule(waiting)
                waiting, rows = [], 0
        if waiting:
            rulings += self._rule(waiting)
        self.judges = False
        took_s = self._clock.monotonic_s() - began_s
        cut = len(rulings) < len(blocks)
        self._held.drop(len(rulings))
        due = self.snapshots.is_due()
        try:
            self._hook(IndexStep.JUDGED)
            # Step 3: write decisions, answers and the log offset in one transaction.
            self._commit(rulings, membership)
        except AbortableError as error:
            self._pace.refused(len(rulings))
            # Check the topic ids before the restore: a new index would take a topic that was created again
            # just now for the right one.
            self._topics.check(at_once=True)
            raise FatalError(f"decisions could not be written ({error}); restoring") from error
        self.sessions += ledger.sessions_started - sessions
        self.given_up += ledger.given_up - given_up
        self._pace.recorded(len(rulings), in_time=2 * took_s < max_s, cut=cut)
        self.waits_since_ms = blocks[min(len(rulings), len(blocks) - 1)].stamp_ms
        self.snapshots.judged()
        self._note_sealed()
        if due:
            # Step 4: begin a snapshot; some steps later `_finish_snapshot` calls the hook SNAPSHOT_WRITTEN.
            self.snapshots.begin(self.state, self.follower.decisions_at)
        return [ruling for ruling, _ in rulings]

    def _asked(self, read: ReadBlock, block: Block) -> Asked:
        self.other_settings.see(block)
        # A worker reads the topic of this block, so that topic is not given up.
        given_up = tuple(sorted(self._inputs.abandoned - {block.topic_id}))
        answers = NO_ANSWERS
        if self.answers is not None:
            rows, fitting = len(block.batch), self.state.sieve.fitting
            answers = self.answers.of(read.offset, checksum_of(read.data), rows, fitting)
        return Asked(block, read.offset, self._arrival_ms(block, read), given_up, answers)

    def _rule(self, asked: Sequence[tuple[ReadBlock, Asked]]) -> list[tuple[Ruling, int]]:
        """The rulings on blocks, each with the number of the verdicts partition for its answer."""
        began_s = self._clock.monotonic_s()
        rulings = self.state.rule([each for _, each in asked])
        if self.answers is not None:
            for segment, rows, took_s in self.state.sieve.take_look_ups():
                self.answers.waits.looked_up(segment, rows, took_s)
        self._pace.judged(sum(map(len, rulings)), self._clock.monotonic_s() - began_s)
        for ruling, (read, _) in zip(rulings, asked, strict=True):
            self._inputs.record(ruling.given_up, self.state.ledger)
            self._identify(ruling, read)
        return [(ruling, each.block.reply) for ruling, (_, each) in zip(rulings, asked, strict=True)]

    def _refuse(self, read: ReadBlock, error: Exception) -> tuple[Ruling, int]:
        """The ruling on a block that cannot be decoded. The index does not stop here: the block stays in the
        log, so it would stop every later index too."""
        self.notices.append(f"{error}; the process that wrote it is refused")
        session, reply, first, end = asked_by(read.data)
        ruling = self.state.refuse(read.offset, session, first, end)
        self._identify(ruling, read)
        return ruling, reply

    def _identify(self, ruling: Ruling, read: ReadBlock) -> None:
        ruling.log_id = self._ids[0]
        ruling.checksum = checksum_of(read.data)

    def _arrival_ms(self, block: Block, read: ReadBlock) -> int:
        """The arrival time of a block's messages, which bounds their own times: when the broker wrote the
        block.

        If that is unknown, it is the time at which the worker read them by its own clock. This time is
        limited, because a clock that runs ahead would expire the windows.
        """
        if read.stamped_by_broker:
            return read.stamp_ms
        return min(block.arrival_ms, self._clock.now_ms() + _CLOCKS_DIFFER_MS)

    def _commit(self, rulings: list[tuple[Ruling, int]], membership: Membership) -> None:
        if self._writer is None:
            raise StateError(
                f"{self._config.log}: not assigned to this process, so it cannot write decisions"
            )
        if rulings:
            self._recorded = self.state.next_offset
            # The decisions of this transaction begin there, or later.
            self.follower.mark(self._writer.decisions_end)
        # Without rulings, commit the same offset as before, even if blocks were skipped since: an offset
        # without decisions would look to the next index as if decisions were lost. The first decision after
        # the skipped blocks records that they were skipped.
        replies = {reply for _, reply in rulings}
        unreachable = self._topics.unreachable(self._config.verdicts, replies)
        link, rules = self.state.link, self.state.sieve.rules
        said = self._alone, self.disk.paused_ms
        link = self._writer.commit(rulings, self._recorded, membership, unreachable, link, rules, *said)
        if rulings:
            self.state.reach(link, rules)
            self._report_other_rules(rulings[0][0].log_offset)
        if self._writer.behind_snapshots:
            self._trim()
        self._checked_s = self._clock.monotonic_s()

    def _report_other_rules(self, log_offset: int) -> None:
        """Report once if the decisions before this block were made by other rules than the one on it."""
        other, self._other_rules = self._other_rules, ""
        if other:
            self.rules_changes += 1
            self.notices.append(
                f"{self._config.log}: judged by other rules from block {log_offset} on "
                f"({self.state.sieve.rules}, before {other}): near settings, lists of words or the program "
                "version differ; earlier verdicts stay; if this was not intended, give all processes of the "
                "app the same settings and version"
            )

    def _finish_snapshot(self, *, wait: bool = False, last: bool = False) -> None:
        """Collect the result of the last snapshot write. After a failure the index continues, and adds a
        notice now and then.

        wait: wait for a write that is running; last: no other write follows, so always report its failure
        """
        try:
            result = self.snapshots.finished(wait=wait)
        except StateError as error:
            if isinstance(error, MissingError) and not wait:
                self._mend(error)
            notice = str(error) if last else self.snapshots.notice_of(error)
            self.notices += [notice] if notice is not None else []
            return
        if result is None:
            return
        self.log_lines.append(result.log_line)
        self.notices += [result.undeleted] if result.undeleted is not None else []
        self._hook(IndexStep.SNAPSHOT_WRITTEN)
        needed_from = {self._config.log: result.oldest_offset, self._config.decisions: result.decisions_from}
        if self._config.trim_log:
            self._to_trim = {part: offset for part, offset in needed_from.items() if offset is not None}
        if self._writer is not None and self._to_trim:
            is_on_record, self._writer.behind_snapshots = self._writer.behind_snapshots, True
            if is_on_record:
                self._trim()

    def _mend(self, error: MissingError) -> None:
        """Begin again from the last snapshot and the log, if that makes snapshots whole again.

        raises: FatalError if so. Nothing is lost: all that was judged is recorded.
        """
        now_s, topics = self._clock.monotonic_s(), [self._config.log, self._config.decisions]
        if not error.is_over or now_s < self._pace.mends_from_s:
            return
        needed = self.snapshots.newest if error.in_state else (0, 0)
        try:
            begins = self._reader.beginning_offsets(topics)
        except BrokerError:
            return
        if all(begins[topic] <= offset for topic, offset in zip(topics, needed, strict=True)):
            self._pace.mends_from_s = now_s + _MEND_EVERY_S
            raise FatalError(f"{error}; restoring from the last snapshot and the log, which have them")

    def _trim(self) -> None:
        """Delete the records that a restore from the oldest snapshot does not need. Before that, a commit
        must have recorded that this is done, so that an index without a snapshot knows that one is
        missing."""
        before, self._to_trim = self._to_trim, {}
        if not before:
            return
        try:
            self._admin.delete_records(before)
        except BrokerError as error:
            self.notices.append(
                f"{' and '.join(map(str, before))}: records that snapshots hold could not be deleted "
                f"({error}); tried again after the next snapshot"
            )


def _journal(store: SnapshotStore, sieves: Sieves, report: Callable[[str], None]) -> Journal:
    """The journal of a sieve that has kept nothing, and does not judge yet."""
    journal = Journal(
        store.storage,
        sieves.scheme_id,
        sieves.window,
        noun="snapshot",
        scratch=sieves.scratch,
        report=report,
        patience_s=PATIENCE_S,
    )
    journal.segments.holds_back = True
    return journal
