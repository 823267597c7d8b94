"""The worker role: asks the index for a verdict on every input message, and emits the answered messages.

A worker's only durable state is the committed input offset. For each input partition it has a *session*: a
sequence of blocks, each of which asks for verdicts on the next messages. Steps of `Worker.step`:

1. Poll input records, together with the current group membership. Hook: POLLED. If the epoch has changed
   (a rebalance), drop every session; the partitions begin again from their committed offsets.
2. Make the fingerprints of the polled messages and append them to the log as blocks. The originals wait in
   `Session.pending`. A partition is read only up to its first message that waits for a schema registry.
   Hooks: FINGERPRINTED, APPENDED.
3. Open a session for each partition that has none: read the committed offset, note the end of the partition
   for the answers, append a start block. A partition without a committed offset first waits until the index
   accepts the session, and then commits an offset. Hook: OPENED.
4. Read the answers to our sessions. Answers come in the order of `pending`. Hook: ANSWERED.
5. Write unique messages, duplicates, dead letters and the input offset with its mark in one transaction.
   Hooks: BEGUN, SENT, OFFSETS_SENT, COMMITTED.
6. Report to the index, in an empty block, how far an idle partition has emitted. Hook: REPORTED.

If the worker crashes before COMMITTED, the next session begins at the same offset, asks again and gets the
same verdicts. If it crashes later, the next session begins after the emitted messages, and the mark tells
the index what was emitted. Two things are never allowed: to emit without the offset in the same
transaction, and to ask from anywhere but the committed offset. A failed append, an answer that does not fit,
an aborted transaction, a rebalance or a missing answer leads to a new session.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace

from twinsieve.pipeline.basics.printable import printable
from twinsieve.pipeline.broker.admin import TopicInfo
from twinsieve.pipeline.broker.clock_watch import ClockWatch
from twinsieve.pipeline.broker.committed_offsets import Recorded
from twinsieve.pipeline.broker.ports import Broker, Clock, Hook, no_hook
from twinsieve.pipeline.broker.records import (
    AbortableError,
    BrokerError,
    Committed,
    Membership,
    Partition,
    PollResult,
    Records,
    RefusedRecordError,
    TruncatedError,
    UnreadableError,
)
from twinsieve.pipeline.worker.answers import (
    Answered,
    Answers,
    NotUnderstoodError,
    RefusedError,
    take_answered,
)
from twinsieve.pipeline.worker.asks import Asked, Asks
from twinsieve.pipeline.worker.backoff import FETCH_S, Patience, PollBackoff, Refusals
from twinsieve.pipeline.worker.config import (
    ASK_AGAIN_S,
    COMMIT_AGAIN_S,
    MAX_EMITTED_BYTES,
    WorkerConfig,
    WorkerStep,
)
from twinsieve.pipeline.worker.emit import Emission, HeldError
from twinsieve.pipeline.worker.openings import NewSession, OpeningQueue, Openings, truncated
from twinsieve.pipeline.worker.outbox import Outbox, Outgoing
from twinsieve.pipeline.worker.partitions import EndOffsets, WorkerTopics
from twinsieve.pipeline.worker.record_reader import RecordReader
from twinsieve.pipeline.worker.schema_holds import SchemaHolds
from twinsieve.pipeline.worker.session import Room, Session
from twinsieve.pipeline.worker.suspects import Suspects
from twinsieve.pipeline.worker.unreadable_batches import UnreadableBatches
from twinsieve.pipeline.worker.waiting import WaitReason, Waits

WhoHad = Callable[[Partition], str]
"""Returns, for the log, which client other than twinsieve's has had the partition; empty if none is known."""


def no_one(partition: Partition) -> str:  # noqa: ARG001 - no such client is known
    """A `WhoHad` that knows no client."""
    return ""


_IDS_S = 1.0
"""While messages are emitted, the ids of their input topics are checked once in this time."""


class Worker:
    """One worker. `step` does one round; it handles AbortableError itself, any other error ends the worker.

    broker: used by this worker alone, and closed with it
    """

    def __init__(
        self,
        broker: Broker,
        clock: Clock,
        config: WorkerConfig,
        reader: RecordReader,
        new_session: NewSession,
        hook: Hook = no_hook,
        who_had: WhoHad = no_one,
    ) -> None:
        self._broker = broker
        self._clock = clock
        self._config = config
        self._hook = hook
        self._who_had = who_had
        self._transactor = broker.transactor(config.transactional_id, config.emit.topics)
        self._consumer = broker.group_consumer(config.group, config.topics, config.member)
        self._appender = broker.appender([config.log.topic])
        self._admin = broker.admin()
        self.notices: list[str] = []
        self.clocks = ClockWatch(broker.clock, clock)
        self.reader = reader
        reader.notices = self.notices
        self._topics = WorkerTopics(self._admin, self.notices)
        self._ends = EndOffsets(self._consumer, clock)
        clients = self._consumer, self._transactor, self._admin, self._topics
        self._openings = Openings(*clients, clock, broker.clock, config, new_session)
        self._queue = OpeningQueue(clock)
        self._suspects = Suspects()
        self._asks = Asks(self._appender, self._transactor, clock, config, reader, hook, self._suspects)
        self._answers = Answers(broker.reader(), config)
        self._outbox = Outbox(config.emit, self._topics, self._transactor, clock, self._suspects)
        self._backoff = PollBackoff(clock, ASK_AGAIN_S)
        self._sessions: dict[Partition, Session] = {}
        self._room = Room(self._sessions, config.max_pending, config.max_pending_bytes)
        self._patience = Patience(clock, config.answer_s, config.poll_messages)
        self._refusals = Refusals(config.max_emitted, MAX_EMITTED_BYTES, config.transaction_s)
        self.refused = self._refusals.of  # the worker that replaces this one takes them over
        self.waits = Waits(clock)
        self._unreadable = UnreadableBatches(clock)
        self._holds = SchemaHolds(reader.schemas, clock, self.notices)
        self._doubted: set[Partition] = set()
        self._noted: set[Partition] = set()
        """Partitions that cannot begin yet, and for which the time when they were first seen is committed."""
        self._polled = PollResult(Membership(-1), frozenset(), -1)
        self._fetches = False
        """Whether the records of the next poll are on their way."""
        self._epoch = -1
        self._emitted = Emission()
        self._committed_s = self._checked_s = clock.monotonic_s()
        self._offset_s: dict[Partition, float] = {}
        """When this worker last committed the offset of a partition."""
        self._compare_s = 0.0
        """When to check the ids of the input topics next."""
        self._stopping = False
        self.not_understood = ""
        """Why the index and this worker do not understand each other; empty if that is not known."""
        # The caller adds these to its counters and sets them to 0.
        self.resyncs = 0
        self.trimmed = 0
        self.skipped = 0
        self.read = 0
        self.rebalances = 0
        self.foreign_offsets = 0

    @property
    def pending_rows(self) -> dict[Partition, int]:
        """Number of rows that wait for an answer or for emission, by partition."""
        return {partition: session.pending_rows for partition, session in self._sessions.items()}

    @property
    def pending_bytes(self) -> int:
        """Memory of the rows that wait for an answer or for emission, in all partitions."""
        return self._room.used_bytes

    @property
    def unanswered(self) -> int:
        """Number of blocks that wait for an answer or for emission."""
        return sum(len(session.pending) for session in self._sessions.values())

    @property
    def ready(self) -> bool:
        """Whether the worker is a member of its group and has a session for each of its partitions, except
        for partitions that wait for a leader, for an index, or for a topic to take a message."""
        held = self.waits.because(WaitReason.REFUSED)
        waits = self._queue.leaderless | self._patience.expired.keys() | held
        return self._epoch >= 0 and waits.issuperset(self._queue)

    @property
    def is_member(self) -> bool:
        """Whether the worker has joined its group."""
        return self._epoch >= 0

    @property
    def assigned(self) -> int:
        """Number of input partitions that the group has assigned to this worker."""
        return len(self._polled.assignment)

    def ends(self) -> dict[Partition, int]:
        """End offset of each partition that has a session and whose end is known.

        raises: BrokerError when no broker answers, even if the worker has no partition
        """
        self._topics.refresh(self._needed({*self._sessions, *self._queue}))
        queried = [part for part in (*self._sessions, self._config.log) if self._topics.led(part)]
        ends = self._ends.of(queried)
        if queried and not ends:
            raise AbortableError(f"ends of {', '.join(map(str, queried))}: no broker answers")
        return {part: end for part, end in ends.items() if part in self._sessions}

    def members(self) -> set[str]:
        """Names of the members of its group, safe to print. raises: BrokerError"""
        members = self._admin.members(self._config.group)
        return {printable(member.name or key) for key, member in members.items()}

    def unread(self, ends: Mapping[Partition, int]) -> dict[Partition, tuple[int, int]]:
        """Read position and end of each partition that is being read. A position skips control markers and
        aborted messages, so a position below the end means that records have not arrived."""
        read = [
            part
            for part, session in self._sessions.items()
            if session.reads and part in ends and self._may_read(part)
        ]
        return {part: (self._consumer.position(part), ends[part]) for part in read}

    @property
    def idle(self) -> bool:
        """Whether no block waits for an answer or for emission, and everything emitted is reported. Blocks
        that need a partition without a leader do not count."""
        return not self._queue and not any(
            (session.pending and session.partition not in self._outbox.blocked)
            or session.reported < session.emitted
            for session in self._sessions.values()
        )

    def step(self, timeout_s: float) -> Emission:
        """Do one round; returns the counts of the messages that it committed."""
        self._emitted = Emission()
        self.notices += self.clocks.look()
        try:
            self._step(timeout_s)
        except AbortableError as error:
            if isinstance(error, TruncatedError) and error.partition.topic in self._config.topics:
                raise truncated(error.partition, error) from error
            if isinstance(error, NotUnderstoodError):
                self.not_understood = str(error)
            self._transactor.abort()
            self._resync(str(error))
        return self._emitted

    def finish(self, timeout_s: float) -> Emission:
        """Do one round of a clean stop: send no new messages to the index, emit and report those that wait.
        Call it until `idle`."""
        if not self._stopping:
            self._stopping = True
            self._queue.replace(())
            self._consumer.pause(list(self._sessions))
        return self.step(timeout_s)

    def close(self, *, leaves: bool = False) -> None:
        """Close all clients. An open transaction is aborted first.

        leaves: also leave the group, so that other members get the partitions at once; else the group keeps
            the member until its session times out
        """
        with ExitStack() as closing:  # calls them in reverse order, and the others if one of them fails
            closing.callback(self._broker.close)
            closing.callback(self._holds.close)
            closing.callback(self._admin.close)
            closing.callback(self._consumer.leave if leaves else self._consumer.close)
            closing.callback(self._answers.close)
            closing.callback(self._appender.close)
            closing.callback(self._transactor.close)

    def _step(self, timeout_s: float) -> None:
        # Step 1: poll.
        polled = self._poll(timeout_s)
        self._hook(WorkerStep.POLLED)
        if polled.epoch != self._epoch:
            self._epoch = polled.epoch
            self.rebalances += 1
            self._noted.clear()
            self._offset_s.clear()
            self._sessions.clear()
            self._doubted.clear()
            self._outbox.blocked.clear()
            self.waits.keep(polled.assignment)
            self._suspects.keep(polled.assignment)
            self._unreadable.keep(polled.assignment)
            self._holds.keep(polled.assignment)
            self._queue.replace(() if self._stopping else polled.assignment)
        elif not self._stopping:
            # Step 2: make fingerprints and append them to the log.
            self._resume(self._holds.step(self._ends.of))
            self._ask(polled.records)
            self._read_again()
            self._backoff.asked(len(polled.records))
        # Step 3: open sessions.
        due = self._queue.due(polled.assignment)
        if due:
            self._open(due, polled.membership)
            self._hook(WorkerStep.OPENED)
        # Step 4: read answers.
        self._appender.confirm(0)
        waits = self.unanswered and not any(session.ready for session in self._sessions.values())
        wait_s = min(timeout_s, self._backoff.left_s()) if waits else 0
        try:
            self._answers.poll(wait_s, self._config.poll_messages, self._sessions)
        except RefusedError as error:
            self._doubt(error, polled.membership)
        self._hook(WorkerStep.ANSWERED)
        # Step 5: write the output and the offset in one transaction.
        self._compare_ids()
        self._emit(polled.membership)
        self._make_room()
        # Step 6: report how far idle partitions have emitted.
        self._expire_or_report()
        self._check(polled.membership)

    def _poll(self, timeout_s: float) -> PollResult:
        """Poll the input. While blocks are unanswered, poll only as often as the backoff allows; in between,
        return the last result without its records."""
        unanswered = self.unanswered
        if unanswered and self._backoff.left_s():
            return self._polled
        if unanswered and not self._fetches and not self._consumer.prefetch():
            # The broker's answer takes a moment, in which this worker reads answers of the index.
            self._fetches = True
            self._backoff.fetches()
            return self._polled
        self._fetches = False
        self._backoff.polled(unanswered, len(self._sessions))
        most = self._config.poll_messages if self._room.is_left else 1
        try:
            polled = self._consumer.poll(min(timeout_s, FETCH_S) if unanswered else timeout_s, most)
        except UnreadableError as error:
            self._stop_at_batch(error)
            return self._polled
        self._polled = replace(polled, records=[])
        return polled

    def _stop_at_batch(self, error: UnreadableError) -> None:
        """Skip a batch of the input that cannot be read, or pause its partition alone and try again later."""
        session = self._sessions.get(error.partition)
        self._consumer.pause([error.partition])
        if session is None or not session.reads:
            return  # reading begins again with the next session
        position = self._consumer.position(error.partition)
        if self._unreadable.doubts(error, position):
            self._consumer.seek(error.partition, position)
            self._resume([error.partition])
            return
        first, after = max(error.offset, session.covered), error.after
        if after is not None and (after <= first or self._may_skip(error.partition, after)):
            # A session reads from its last message on, so it may meet a batch that is passed already.
            if after > first:
                what = f"skipped offsets {first} to {after - 1} (input.on_unreadable_batch: skip)"
                self.notices.append(f"{error}; {what}")
                session.skip(first, after)
            self._consumer.seek(error.partition, max(first, after))
            self._resume([error.partition])
        elif self._unreadable.hold(error):
            self.notices.append(f"{error}; this partition waits, the others go on")

    def _may_skip(self, partition: Partition, after: int) -> bool:
        """Whether a batch that ends there may be skipped; a damaged header may name an offset beyond the
        end."""
        if self._config.on_unreadable == "hold":
            return False
        return after <= self._consumer.end_offsets([partition])[partition]

    def _read_again(self) -> None:
        """Read again what could not be read, and note what keeps its partition waiting."""
        for partition, why in self._holds:
            wait = self.waits.of.get(partition)
            if wait is None or wait.reason is WaitReason.SCHEMA:
                self.waits.wait([partition], WaitReason.SCHEMA, why)
        for partition, offset in list(self._unreadable.due()):
            if partition in self._sessions and self._sessions[partition].reads:
                self._unreadable.trying(partition)
                self._consumer.seek(partition, offset)
                self._resume([partition])
        for partition, why in list(self._unreadable):
            reads = partition in self._sessions and self._sessions[partition].reads
            if reads and self._unreadable.passed(partition, self._consumer.position(partition)):
                self.waits.ended([partition], WaitReason.UNREADABLE)
                self.notices.append(f"{partition}: the batch that could not be read is passed")
            elif partition not in self.waits.of:
                self.waits.wait([partition], WaitReason.UNREADABLE, why)

    def _resume(self, partitions: Collection[Partition]) -> None:
        """Read these partitions again, except for those that are full or must not be read."""
        sessions = [self._sessions[part] for part in partitions if part in self._sessions]
        reads = [session for session in sessions if session.reads and self._may_read(session.partition)]
        self._consumer.resume([session.partition for session in reads if not self._is_full(session, 2)])

    def _may_read(self, partition: Partition) -> bool:
        return not (self._unreadable.holds(partition) or self._holds.holds(partition))

    def _resync(self, why: str) -> None:
        """Drop all sessions; they begin again from the committed offsets, after a pause that grows."""
        self._answers.forget()
        self.waits.wait(self._sessions, WaitReason.FAILED, why)
        self._queue.add(() if self._stopping else self._sessions)
        self._queue.pause()
        self._outbox.blocked.clear()
        self._drop(list(self._sessions), why)

    def _drop(self, partitions: Collection[Partition], why: str) -> None:
        """Drop the sessions of these partitions. why: line for the operator"""
        self.notices.append(why)
        self.resyncs += 1
        # Pause them, because a position that the broker refuses would make every poll fail until the
        # partition has a new session.
        self._consumer.pause(partitions)
        for partition in partitions:
            self._sessions.pop(partition, None)

    def _needed(self, partitions: Collection[Partition]) -> set[str]:
        """Names of the topics that sessions of these input partitions need.

        The output topics are included, because the number of their partitions matters: if input and output
        have equally many, a message keeps its partition number. Either number may grow.
        """
        config = self._config
        return {part.topic for part in partitions} | config.emit.topics | {config.log.topic, config.verdicts}

    def _ask(self, polled: Sequence[Records]) -> None:
        asked = []
        for records in polled:
            session = self._sessions.get(records.partition)
            if session is None or not session.reads:
                continue
            self._ends.query_again(records.partition)
            if session.doubts(records, self._clock.monotonic_s()):
                self._compare_s = 0.0
            records = self._known(self._few(session, self._without_skipped(session, records)))
            if not len(records):
                continue
            self.read += len(records)
            max_rows, max_bytes = self._refusals.at_once([session.partition])
            asked.append(Asked(session, records, min(max_rows, self._patience.rows), max_bytes))
        self._asks.ask(asked)
        self._consumer.pause([each.session.partition for each in asked if self._is_full(each.session)])

    def _without_skipped(self, session: Session, records: Records) -> Records:
        """These records without those of a batch that was skipped, and which can be read again."""
        count = session.count_skipped(records)
        if count:
            first, last = records.offset(0), records.offset(count - 1)
            self.notices.append(
                f"{records.partition}: offsets {first} to {last} can be read again; they were skipped before "
                "(input.on_unreadable_batch: skip) and stay so"
            )
        return records.slice(count, len(records))

    def _few(self, session: Session, records: Records) -> Records:
        """Of these records as many as the session may send, so that no more messages are judged while one
        before them may not come out; the others are polled again."""
        return self._first(records, max(0, self._suspects.rows(session.partition) - session.pending_rows))

    def _known(self, records: Records) -> Records:
        """Of these records those before the first one that waits for a schema registry."""
        if self.reader.schemas is None or not len(records):
            return records
        count = self._holds.goes_on(records, self.reader.schemas_of(records))
        if count:
            self.waits.ended([records.partition], WaitReason.SCHEMA)
        return self._first(records, count)

    def _first(self, records: Records, count: int) -> Records:
        """The first `count` of these records; the partition is paused before the others."""
        if count >= len(records):
            return records
        self._consumer.seek(records.partition, records.offset(count))
        self._consumer.pause([records.partition])
        return records.slice(0, count)

    def _is_full(self, session: Session, part: int = 1) -> bool:
        if session.pending_rows >= self._suspects.rows(session.partition):
            return True
        halvings = self._refusals.halvings([session.partition])
        return self._room.is_full(session, len(self._polled.assignment), part << halvings)

    def _make_room(self) -> None:
        """Pause full partitions when all bytes are taken; resume them when there is room."""
        ours = self._sessions.items()
        if self._room.opens() and not self._stopping:
            self._resume([part for part, session in ours if session.reads])
        if not self._room.is_left:
            self._consumer.pause([part for part, session in ours if self._is_full(session)])

    def _open(self, partitions: Sequence[Partition], membership: Membership) -> None:
        """Begin a session for each of these partitions that is able to; postpone the others."""
        self._queue.delay(partitions)
        try:
            infos = self._topics.fetch(self._needed(partitions))
        except AbortableError as error:
            self.waits.wait(partitions, WaitReason.BEGIN, str(error))
            raise
        replies = {part: self._topics.reply(self._config.verdicts, part) for part in partitions}
        able = [part for part, reply in replies.items() if self._topics.led(part, reply, self._config.log)]
        self._queue.await_leaders(partitions, able)
        leaderless = [part for part in partitions if part not in able]
        self.waits.wait(leaderless, WaitReason.LEADER, "it, its verdict partition or the log has no leader")
        self._note_unplaced(leaderless, infos, membership)
        if not able:
            return
        try:
            planned, waiting = self._openings.plan(able, infos, membership, self._patience.expired)
            begins = {s.partition: opening.commits for s, opening in planned if opening.commits is not None}
            if begins:
                self._transact(Emission(), begins, membership)
            watched = {session.reply for session in self._sessions.values()}
            self._answers.watch(watched.union(session.reply for session, _ in planned))
        except AbortableError as error:
            self._transactor.abort()
            self._queue.postpone(able)
            self.waits.wait(able, WaitReason.BEGIN, str(error))
            self.notices.append(f"{', '.join(map(str, able))}: reading cannot start yet ({error})")
            self.resyncs += 1
            self._note_unplaced(able, infos, membership)
            return
        self._queue.postpone(waiting)
        for part, why in waiting.items():
            self.waits.wait([part], WaitReason.BEGIN, why)
        self.notices += [f"{part}: reading cannot start yet ({why})" for part, why in waiting.items()]
        for session, opening in planned:
            if opening.foreign is not None:
                self._note_foreign(session.partition, opening.foreign)
            self._asks.start(session, opening)
            self._sessions[session.partition] = session
            self._queue.opened(session.partition)
            if session.reads:
                self._begin_reading(session)

    def _note_unplaced(
        self, partitions: Sequence[Partition], infos: Mapping[str, TopicInfo], membership: Membership
    ) -> None:
        """Commit, once per partition, when these partitions that cannot begin yet were first seen."""
        new = [part for part in partitions if part not in self._noted]
        try:
            marks = self._openings.unplaced(new, infos, membership)
            if marks:
                self._transact(Emission(), marks, membership)
        except AbortableError as error:
            self._transactor.abort()
            self.notices.append(
                f"{', '.join(map(str, new))}: cannot record yet when the app first saw it ({error})"
            )
            return
        self._noted.update(new)

    def _note_foreign(self, partition: Partition, offsets: Recorded) -> None:
        """Count and say that somebody else has committed or deleted the group's offset of a partition."""
        committed, found, _ = offsets
        self.foreign_offsets += 1
        what = (
            f"offset {found.offset} was not committed" if found is not None else "its offset was not deleted"
        )
        line = f"{partition}: {what} by twinsieve in group {self._config.group}"
        if committed is None:
            line += "; no offset is on record, so it begins as a new partition"
        else:
            line += f"; continuing at offset {committed.offset}, which is on record"
            by = found.offset - committed.offset if found is not None else 0
            if by:
                line += f"; {abs(by)} offsets would have been {'skipped' if by > 0 else 'repeated'}"
        who = self._who_had(partition)
        self.notices.append(f"{line}{f' ({who})' if who else ''}")

    def _begin_reading(self, session: Session) -> None:
        self._unreadable.trying(session.partition)
        self._holds.trying(session.partition)
        self._consumer.seek(session.partition, *session.start)
        self._consumer.resume([session.partition])

    def _doubt(self, error: RefusedError, membership: Membership) -> None:
        """Accept a refusal by the index only the second time, and only as a member of the group.

        If a process is frozen after it has read the offsets of its partition, other processes may continue
        meanwhile. Its start block is then out of date, and the refusal proves nothing. The transaction here
        succeeds only if this process is still the member that read the offsets, so that it was not replaced.

        raises: the refusal; AbortableError if the partition should begin again
        """
        self._transactor.begin()
        self._transactor.send_offsets({error.partition: Committed(0)}, membership)
        self._transactor.abort()
        if error.partition in self._doubted:
            raise error
        self._doubted.add(error.partition)
        raise AbortableError(f"{error}; checking once more before this process stops") from error

    def _emit(self, membership: Membership) -> None:
        """Emit the answered messages, and commit the offsets after them.

        One transaction holds the messages of all partitions, except for those whose last transaction failed,
        and those with a message that a topic refuses. Each of these gets a transaction of its own, one of
        them in each round, so that a further failure delays no other partition.
        """
        self._outbox.see_leaders()
        blocked, failed_last = self._outbox.blocked, self._refusals.failed_last
        self.waits.wait(blocked, WaitReason.LEADER, "a partition of an output has no leader")
        ready = [
            session
            for session in self._sessions.values()
            if session.ready and session.partition not in blocked
        ]
        alone: list[Session] = []
        together: list[Session] = []
        for session in ready:
            is_parted = failed_last(session.partition) or session.partition in self._suspects
            (alone if is_parted else together).append(session)
        for sessions in (together, sorted(alone, key=lambda session: session.active_s)[:1]):
            partitions = [session.partition for session in sessions]
            max_rows, max_bytes = self._refusals.at_once(partitions)
            max_rows = min([max_rows, *map(self._suspects.rows, partitions)])
            self._emit_of(take_answered(sessions, max_rows, max_bytes), membership)

    def _emit_of(self, taken: Sequence[Answered], membership: Membership) -> None:
        """Commit one transaction with these blocks, except for blocks that need a partition without a
        leader, or that have a message which no topic takes."""
        if not taken:
            return
        self._openings.date(session for session, _ in taken)
        outgoing = self._outbox.prepare(taken)
        began_s = self._clock.monotonic_s()
        try:
            if outgoing.offsets:
                self._transact(outgoing.emission, outgoing.offsets, membership)
        except BrokerError as error:
            self._refuse(outgoing, error)
            return
        self._suspects.passed(outgoing.offsets)
        self._refusals.passed(outgoing.offsets, self._clock.monotonic_s() - began_s)
        self.waits.ended(outgoing.offsets)
        if outgoing.offsets:
            self._queue.recovered()
        self._emitted.count(outgoing.emission)
        self.notices += outgoing.emission.losses
        for session, count in outgoing.sent:
            self._let_go(session, count)
        for partition, held in outgoing.held.items():
            self._hold(partition, held)

    def _hold(self, partition: Partition, held: HeldError) -> None:
        """Let a partition wait, because no topic takes its next message; try again after a growing pause."""
        dead_letter = self._config.emit.dead_letter
        self._suspects.hold(partition, held.offset, dead_letter or "")
        self._refusals.again([partition])
        self.waits.wait([partition], WaitReason.REFUSED, str(held))
        if not self._stopping:
            self._queue.delay([partition], self.refused[partition].pause_s)
        self._drop([partition], str(held))

    def _search(self, outgoing: Outgoing, error: RefusedRecordError) -> None:
        """Find out which message of a transaction a topic refuses, or make the next transactions smaller."""
        rows = outgoing.rows
        sent = [topic for (topic, _), parts in outgoing.emission.outgoing.items() if any(map(len, parts))]
        is_alone = len(sent) == 1 and sum(map(len, rows.values())) == 1
        topic = sent[0] if is_alone else ""
        for partition, offsets in rows.items():
            if self._suspects.refused(partition, offsets, topic, str(error), is_alone=is_alone):
                words = self._suspects.of(partition)[offsets[0]][topic][-1]
                self.notices.append(
                    f"{partition}@{offsets[0]}: {topic} refuses this message ({words}); no message is "
                    "dropped for it any more, but those that were do not come out"
                )

    def _refuse(self, outgoing: Outgoing, error: BrokerError) -> None:
        """Drop the sessions of these partitions after a failed transaction; open new ones after a pause.

        raises: the error, unless it is an AbortableError
        """
        partitions = outgoing.partitions
        if isinstance(error, RefusedRecordError):
            self._search(outgoing, error)
            self._refusals.soon(partitions)
        else:
            self._refusals.again(partitions)
        held = self.waits.because(WaitReason.REFUSED)
        self.waits.wait([part for part in partitions if part not in held], WaitReason.FAILED, str(error))
        if not isinstance(error, AbortableError):
            raise error
        self._transactor.abort()
        if not self._stopping:
            for partition in partitions:
                self._queue.delay([partition], self.refused[partition].pause_s)
        self._drop(partitions, str(error))

    def _let_go(self, session: Session, count: int) -> None:
        """Remove the first `count` blocks of this session, which are committed; resume reading if there is
        room."""
        now_s = self._clock.monotonic_s()
        self.not_understood = ""
        waited_s = now_s - session.asked_s
        self._patience.answered(session.partition, waited_s)
        self._backoff.answered(waited_s)
        begins = session.emit(count, now_s)
        self._doubted.discard(session.partition)
        # An answer alone does not prove that the output takes the messages of a failed transaction.
        answered = WaitReason.LEADER, WaitReason.BEGIN, WaitReason.INDEX
        self.waits.ended([session.partition], *answered)
        if begins:
            self._begin_reading(session)
        elif not self._stopping:
            self._resume([session.partition])

    def _transact(
        self, emission: Emission, offsets: dict[Partition, Committed], membership: Membership
    ) -> None:
        self._transactor.begin()
        self._hook(WorkerStep.BEGUN)
        for (topic, number), parts in emission.outgoing.items():
            for messages in parts:
                self._transactor.send(topic, number, messages)
        self._hook(WorkerStep.SENT)
        self._transactor.send_offsets(offsets, membership, self._config.record)
        self._hook(WorkerStep.OFFSETS_SENT)
        self._transactor.commit()
        self._hook(WorkerStep.COMMITTED)
        # Count them only after the commit: if the session is dropped earlier, the next one finds the same
        # messages missing and counts them.
        for session in filter(None, map(self._sessions.get, offsets)):
            self.skipped += session.take_skipped(offsets[session.partition].offset)
            trimmed = session.take_trimmed()
            if trimmed:
                self.trimmed += trimmed
                self.notices.append(
                    f"{session.partition}: retention deleted {trimmed} messages before they were judged"
                )
        self._committed_s = self._clock.monotonic_s()
        self._offset_s.update(dict.fromkeys(offsets, self._committed_s))

    def _expire_or_report(self) -> None:
        """Drop sessions that got no answer in time; report how far idle ones have emitted."""
        now_s = self._clock.monotonic_s()
        for partition, session in list(self._sessions.items()):
            if session.expired(now_s, self._patience.of(partition)):
                waited_s = self._patience.expire(partition)
                why = f"{partition}: no answer from the index for {waited_s:.0f} s; asking again"
                self.waits.wait([partition], WaitReason.INDEX, why)
                self._drop([partition], why)
                self._queue.add([partition])
            elif not session.pending and not session.mark.fresh:
                if now_s - session.active_s >= self._config.report_s:
                    self.waits.ended([partition])  # it has nothing to emit
                self._report(session, now_s)

    def _report(self, session: Session, now_s: float) -> None:
        if not self._stopping and now_s - session.active_s < self._config.report_s:
            return
        # A stopping worker does not send what it polls: the records between `covered` and the read position
        # were not sent to the index, so the report must not include them.
        passed = session.covered if self._stopping else self._consumer.position(session.partition)
        position = max(session.covered, passed)
        if session.emitted > session.reported or position > session.covered:
            self._asks.report(session, position)
            self._hook(WorkerStep.REPORTED)

    def _compare_ids(self) -> None:
        """Before messages are emitted, check that their input topics are still the topics that were read, and
        that the outputs exist: a client would wait for a missing one for half a minute or longer. Do so at
        most once per `_IDS_S` seconds, but at once if a session doubts its topic.

        raises: StateError if a topic was created again; AbortableError if one is gone
        """
        now_s = self._clock.monotonic_s()
        if now_s < self._compare_s or not any(session.ready for session in self._sessions.values()):
            return
        self._compare_s = now_s + _IDS_S
        try:
            self._topics.check_ids(self._sessions.values(), self._config.emit.topics)
        except BrokerError as error:
            if isinstance(error, AbortableError) or not error.retryable:
                raise
            # The answered messages may be emitted without this check. The next check waits longer, because
            # each request may take its whole timeout.
            self._compare_s = self._clock.monotonic_s() + self._config.check_s

    def _check(self, membership: Membership) -> None:
        """If nothing was committed for a while, commit the same offsets again, which shows that this member
        was not fenced, and check that topic ids are unchanged. While other partitions commit, do so for
        those whose offset is old.

        A session without any answer commits nothing, because the index may not know its first mark yet.
        """
        now_s = self._clock.monotonic_s()
        if now_s - self._committed_s >= self._config.check_s:
            self._committed_s, due = now_s, set(self._sessions)
        elif now_s - self._checked_s >= self._config.check_s:
            before_s = now_s - COMMIT_AGAIN_S
            due = {part for part in self._sessions if self._offset_s.get(part, before_s) <= before_s}
        else:
            return
        self._checked_s = now_s
        settled = {p: s.mark.committed() for p, s in self._sessions.items() if s.settled and p in due}
        if settled:
            self._transact(Emission(), settled, membership)
            self._topics.check_ids([self._sessions[partition] for partition in settled])
