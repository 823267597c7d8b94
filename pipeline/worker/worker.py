"""The worker role: asks the index about every input message in sessions, and emits what it answers.

A worker's only durable state is the committed input offset. Steps of `Worker.step`:

1. POLLED: input records, with the membership of that moment. Another epoch than before: every session is
   dropped and begins anew from the committed offset.
2. OPENED: sessions for partitions that have none: committed offset read, end of the verdict partition noted,
   start block appended. A partition without a committed offset asks for leave first, then commits one.
3. FINGERPRINTED, APPENDED: what was polled goes to the log as blocks; the originals wait in `pending`.
4. ANSWERED: answers of our sessions, which pair with the head of `pending`.
5. BEGUN, SENT, OFFSETS_SENT, COMMITTED: one transaction holds uniques, duplicates, dead letters and the input
   offset with its mark.
6. REPORTED: an idle partition tells how far it has emitted, in an empty block.

A crash before COMMITTED costs the session: the next one begins at the same offset, asks again and gets the
same verdicts. A crash after it costs nothing: the next one begins behind it, and the mark tells the index
what was emitted. Emitting without the offset in the same transaction, or asking from anywhere but the
committed offset, is never allowed. A failed append, a mismatch, an abort, a rebalance, no answer: a new
session.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum

from twinsieve.pipeline.broker.ports import (
    AbortableError,
    Broker,
    BrokerError,
    Clock,
    Committed,
    Hook,
    Membership,
    Partition,
    Polled,
    Records,
    TruncatedError,
    no_hook,
)
from twinsieve.pipeline.worker.answers import Answered, Answers, take_answered
from twinsieve.pipeline.worker.asks import Asks
from twinsieve.pipeline.worker.config import WorkerConfig
from twinsieve.pipeline.worker.emit import Emission, Emitter, unsendable
from twinsieve.pipeline.worker.openings import Openings, Waiting
from twinsieve.pipeline.worker.pace import Pace
from twinsieve.pipeline.worker.records import RecordReader
from twinsieve.pipeline.worker.session import NewSession, RefusedError, Session, truncated
from twinsieve.pipeline.worker.targets import Targets
from twinsieve.pipeline.worker.topics import Ends, KnownTopics


class WorkerStep(StrEnum):
    """Where a hook is called, in order."""

    POLLED = "worker.polled"
    OPENED = "worker.opened"
    FINGERPRINTED = "worker.fingerprinted"
    APPENDED = "worker.appended"
    ANSWERED = "worker.answered"
    BEGUN = "worker.begun"
    SENT = "worker.sent"
    OFFSETS_SENT = "worker.offsets_sent"
    COMMITTED = "worker.committed"
    REPORTED = "worker.reported"


_HOLD_S = 1.0
"""A worker looks this often whether what an input partition needs has a leader again."""

_REFUSED_S = 60.0
"""A partition whose transactions are refused asks again after ever longer pauses, this long at most."""

_PATIENCE_S = 600.0
"""An index that comes back answers the last session that has begun; it need not be asked often."""

_LOOK_CHECKS = 6
"""A busy worker checks its topics' ids once in this many `check_s`."""


class Worker:
    """One worker, with a broker of its own. `step` does one round; errors end it, but for AbortableError."""

    def __init__(
        self,
        broker: Broker,
        clock: Clock,
        config: WorkerConfig,
        reader: RecordReader,
        new_session: NewSession,
        hook: Hook = no_hook,
    ) -> None:
        self._broker = broker
        self._clock = clock
        self._config = config
        self._hook = hook
        self._transactor = broker.transactor(config.transactional_id)
        self._consumer = broker.group_consumer(config.group, config.topics, config.member)
        self._appender = broker.appender()
        self._admin = broker.admin()
        self._answers = Answers(broker.reader(), config.verdicts, config.verdict_partitions, config.scheme)
        self.notices: list[str] = []
        reader.notices = self.notices
        self._topics = KnownTopics(self._admin, self.notices)
        self._openings = Openings(
            self._consumer, self._transactor, clock, config, new_session, self._topics.ends
        )
        self._ends = Ends(self._consumer.end_offsets, clock)
        self._asks = Asks(
            self._appender,
            clock,
            config,
            reader,
            self._answers.reply,
            lambda records: unsendable(config.emit, records, self._transactor),
            lambda: hook(WorkerStep.FINGERPRINTED),
        )
        self._sessions: dict[Partition, Session] = {}
        self._waiting = Waiting(clock)
        self._held: set[Partition] = set()
        self._doubted: set[Partition] = set()
        self._blocked: set[Partition] = set()
        self._refused: dict[Partition, int] = {}
        self._dead: Mapping[str, frozenset[int]] = {}
        self._outputs_s = 0.0
        self._emitted = Emission()
        self._attempts: dict[Partition, int] = {}
        self._epoch = -1
        self._open_s = 0.0
        self._pace = Pace(clock, config.ask_again_s)
        self._polled = Polled(Membership(-1), frozenset(), -1)
        self._failures = 0
        self._checked_s = self._looked_s = clock.monotonic_s()
        self._stopping = False
        self.resyncs = 0
        self.trimmed = 0

    @property
    def pending_rows(self) -> dict[Partition, int]:
        """Rows that wait for answers, by partition."""
        return {partition: session.pending_rows for partition, session in self._sessions.items()}

    @property
    def pending_bytes(self) -> int:
        """Memory of the rows that wait for answers, of all partitions."""
        return sum(session.pending_bytes for session in self._sessions.values())

    @property
    def unanswered(self) -> int:
        """Blocks that wait for answers."""
        return sum(len(session.pending) for session in self._sessions.values())

    @property
    def ready(self) -> bool:
        """It is a member of its group, and every partition it has was opened, but for those that wait for a
        leader."""
        return self._epoch >= 0 and self._held.issuperset(self._waiting)

    @property
    def held(self) -> int:
        """Input partitions that wait for a partition without a leader."""
        return len(self._held | self._blocked)

    @property
    def refused(self) -> dict[Partition, int]:
        """How often in a row transactions of a partition failed; whoever takes over from this worker goes on
        from there."""
        return self._refused

    def progress(self) -> dict[Partition, tuple[int, int]]:
        """Each partition's offset up to which it is emitted, and its end, where the end can be told.

        raises: BrokerError when no broker answers, also without any partition
        """
        self._topics.refresh(self._needed({*self._sessions, *self._waiting}))
        asked = [at for at in (*self._sessions, self._config.log) if self._topics.led(at)]
        ends = self._ends.of(asked)
        if asked and not ends:
            raise AbortableError(f"ends of {', '.join(map(str, asked))}: no broker tells")
        return {at: (self._sessions[at].emitted, end) for at, end in ends.items() if at in self._sessions}

    def unread(self, ends: Mapping[Partition, int]) -> dict[Partition, tuple[int, int]]:
        """Each partition's position and end. A position passes control markers and aborted messages, so that
        one below the end means records that did not arrive."""
        return {at: (self._consumer.position(at), ends[at]) for at in self._sessions if at in ends}

    @property
    def idle(self) -> bool:
        """Nothing waits, but for what needs a partition without a leader, and all that was emitted is
        reported."""
        return not self._waiting and not any(
            (session.pending and session.partition not in self._blocked) or session.reported < session.emitted
            for session in self._sessions.values()
        )

    def step(self, timeout_s: float) -> Emission:
        """One round; returns what was committed."""
        self._emitted = Emission()
        try:
            self._step(timeout_s)
        except AbortableError as error:
            if isinstance(error, TruncatedError) and error.partition.topic in self._config.topics:
                raise truncated(error.partition, error) from error
            self._transactor.abort()
            self._resync(str(error))
        return self._emitted

    def finish(self, timeout_s: float) -> Emission:
        """One round of a clean stop: nothing new is asked, what waits is emitted and reported; see `idle`."""
        if not self._stopping:
            self._stopping = True
            self._waiting.replace(())
            self._held.clear()
            self._consumer.pause(list(self._sessions))
        return self.step(timeout_s)

    def leave(self) -> None:
        """The end of a clean stop: the others have its partitions at once. Only `close` may follow."""
        self._consumer.leave()

    def close(self) -> None:
        """Give up everything; the slot stays taken until the session times out."""
        self._transactor.close()
        self._appender.close()
        self._answers.close()
        self._consumer.close()
        self._admin.close()
        self._broker.close()

    def _step(self, timeout_s: float) -> None:
        polled = self._poll(timeout_s)
        self._hook(WorkerStep.POLLED)
        if polled.epoch != self._epoch:
            self._epoch = polled.epoch
            self._sessions.clear()
            self._held.clear()
            self._doubted.clear()
            self._blocked.clear()
            self._waiting.replace(() if self._stopping else polled.assignment)
        elif not self._stopping:
            for records in polled.records:
                self._ask(records)
        due = self._waiting.due(polled.assignment)
        if due and self._clock.monotonic_s() >= self._open_s:
            self._open(due, polled.membership)
            self._hook(WorkerStep.OPENED)
        self._appender.confirm(0)
        waits = self.unanswered and not any(session.ready for session in self._sessions.values())
        wait_s = min(timeout_s, self._pace.left_s()) if waits else 0
        try:
            self._answers.poll(wait_s, self._config.poll_messages, self._sessions)
        except RefusedError as error:
            self._doubt(error, polled.membership)
        self._hook(WorkerStep.ANSWERED)
        self._emit(polled.membership)
        self._look_after(polled)

    def _poll(self, timeout_s: float) -> Polled:
        """Input that has arrived; while answers are awaited, only now and then."""
        unanswered = self.unanswered
        if unanswered and self._pace.left_s():
            return replace(self._polled, records=[])
        self._pace.looked(unanswered, len(self._sessions))
        self._polled = self._consumer.poll(0 if unanswered else timeout_s, self._config.poll_messages)
        return self._polled

    def _resync(self, why: str) -> None:
        """Forget all sessions; they begin anew from the committed offsets, after a pause that grows."""
        self.notices.append(why)
        self.resyncs += 1
        # A position that the broker refuses would fail every poll until its session begins anew.
        self._consumer.pause(list(self._sessions))
        self._answers.forget()
        self._waiting.add(() if self._stopping else self._sessions)
        self._blocked.clear()
        self._sessions.clear()
        self._open_s = self._clock.monotonic_s() + min(5.0, 0.05 * 2**self._failures)
        self._failures = min(self._failures + 1, 10)

    def _needed(self, partitions: Collection[Partition]) -> set[str]:
        """Topics that these input partitions need."""
        config = self._config
        # The outputs with them: where messages go depends on both counts of partitions, and either may grow.
        return {at.topic for at in partitions} | config.emit.topics | {config.log.topic, config.verdicts}

    def _open(self, partitions: Sequence[Partition], membership: Membership) -> None:
        """Sessions for those of these partitions that can begin one; the others wait, each by itself."""
        self._waiting.hold(partitions, _HOLD_S)
        infos = self._topics.look(self._needed(partitions))
        able = [at for at in partitions if self._topics.led(at, self._answers.reply(at), self._config.log)]
        self._held = self._held.union(partitions).difference(able)
        if not able:
            return
        try:
            planned, waiting = self._openings.plan(able, infos, membership, self._attempts)
            begins = {s.partition: opening.commits for s, opening in planned if opening.commits is not None}
            if begins:
                self._transact(Emission(), begins, membership)
            self._answers.watch({*self._sessions, *able} - waiting.keys())
        except AbortableError as error:
            self._transactor.abort()
            self._waiting.postpone(able)
            self.notices.append(f"{', '.join(map(str, able))}: not opened ({error})")
            self.resyncs += 1
            return
        for at, why in waiting.items():
            self._waiting.postpone([at])
            self.notices.append(f"{at}: not opened ({why})")
        for session, opening in planned:
            self._asks.start(session, opening)
            self._sessions[session.partition] = session
            self._waiting.opened(session.partition)
            if self._attempts.get(session.partition):
                # What was asked before is in the log still: nothing more until an index answers, and then
                # little at first.
                session.window = self._config.poll_messages
            if session.reads:
                self._begin_reading(session)

    def _begin_reading(self, session: Session) -> None:
        self._consumer.seek(session.partition, *session.start)
        self._consumer.resume([session.partition])

    def _ask(self, records: Records) -> None:
        session = self._sessions.get(records.partition)
        if session is None or not session.reads:
            return
        self._ends.heard(records.partition)
        self._asks.ask(session, records)
        self._hook(WorkerStep.APPENDED)
        if self._asks.is_full(session, len(self._polled.assignment)):
            self._consumer.pause([records.partition])

    def _doubt(self, error: RefusedError, membership: Membership) -> None:
        """Believe a refusal from the second time on, and only as a member of the group.

        A process that was frozen between the look at its partition and its start block says what was true
        then; others have gone on since. Whoever still is the member that read the offsets was not replaced.

        raises: the refusal; AbortableError to begin anew
        """
        self._transactor.begin()
        self._transactor.send_offsets({error.partition: Committed(0)}, membership)
        self._transactor.abort()
        if error.partition in self._doubted:
            raise error
        self._doubted.add(error.partition)
        raise AbortableError(f"{error}; making sure") from error

    def _emit(self, membership: Membership) -> None:
        """What is answered goes out, with the offsets behind it.

        One transaction holds everything; but sessions of which one was refused go alone, each in its turn,
        so that a refusal holds up nobody else.
        """
        config = self._config
        self._see_outputs()
        ready = [session for session in self._sessions.values() if session.partition not in self._blocked]
        alone = [session for session in ready if session.ready and session.partition in self._refused]
        together = [session for session in ready if session.partition not in self._refused]
        for sessions in (together, sorted(alone, key=lambda each: each.active_s)[:1]):
            self._emit_of(take_answered(sessions, config.max_emitted, config.max_emitted_bytes), membership)

    def _see_outputs(self) -> None:
        """Look now and then whether output partitions without a leader have one again."""
        names = self._config.emit.topics
        if not self._blocked:
            return
        if self._clock.monotonic_s() - self._outputs_s >= _HOLD_S:
            self._outputs_s = self._clock.monotonic_s()
            self._topics.refresh(names)
        if self._topics.leaderless(names) != self._dead:
            self._blocked.clear()

    def _emit_of(self, taken: Sequence[Answered], membership: Membership) -> None:
        """One transaction for what is taken, without what has to go to a partition without a leader."""
        if not taken:
            return
        names = self._config.emit.topics
        counts = self._topics.partitions(names)
        self._dead = self._topics.leaderless(names)
        emitter, targets = Emitter(self._config.emit, counts), Targets(counts, self._dead)
        emission = Emission()
        offsets: dict[Partition, Committed] = {}
        sent: list[tuple[Session, int]] = []
        for session, blocks in taken:
            out = 0
            for asked, ruling in blocks:
                block = Emission()
                emitter.add(block, asked, ruling, self._transactor)
                reachable = targets.reachable(block)
                if reachable is None:
                    self._blocked.add(session.partition)
                    break
                emission.add(reachable)
                out += 1
            if not out:
                continue
            sent.append((session, out))
            end = blocks[out - 1][0].end
            if session.fresh or end > session.emitted:
                offsets[session.partition] = session.mark(out)
        try:
            if offsets:
                self._transact(emission, offsets, membership)
        except BrokerError as error:
            self._refuse([session.partition for session, _ in sent], error)
            return
        for partition in offsets:
            self._refused.pop(partition, None)
            self._failures = 0
        self._emitted.count(emission)
        self._are_out(sent)

    def _refuse(self, partitions: Sequence[Partition], error: BrokerError) -> None:
        """The transaction of these failed: new sessions for them, and from now on each goes by itself.

        raises: the error, unless it is an AbortableError
        """
        for partition in partitions:
            refused = self._refused[partition] = min(20, self._refused.get(partition, 0) + 1)
            if partition in self._sessions and isinstance(error, AbortableError):
                del self._sessions[partition]
                if not self._stopping:
                    self._waiting.hold([partition], min(_REFUSED_S, 0.05 * 2**refused))
        if not isinstance(error, AbortableError):
            raise error
        self._transactor.abort()
        self._consumer.pause(partitions)
        self.notices.append(str(error))
        self.resyncs += 1

    def _are_out(self, sent: Sequence[tuple[Session, int]]) -> None:
        """So many blocks of these sessions are out."""
        now_s = self._clock.monotonic_s()
        for session, count in sent:
            begins = session.emitted_blocks(count)
            session.asked_s = session.active_s = now_s
            self._attempts.pop(session.partition, None)
            self._doubted.discard(session.partition)
            if begins:
                self._begin_reading(session)
            elif not self._asks.is_full(session, len(self._polled.assignment), 2) and not self._stopping:
                self._consumer.resume([session.partition])

    def _transact(
        self, emission: Emission, offsets: dict[Partition, Committed], membership: Membership
    ) -> None:
        self._transactor.begin()
        self._hook(WorkerStep.BEGUN)
        for (topic, number), messages in emission.outgoing.items():
            if len(messages):
                self._transactor.send(topic, number, messages)
        self._hook(WorkerStep.SENT)
        self._transactor.send_offsets(offsets, membership)
        self._hook(WorkerStep.OFFSETS_SENT)
        self._transactor.commit()
        self._hook(WorkerStep.COMMITTED)
        # Counted and said here and not before: who begins anew before this commit finds them missing again.
        for session in filter(None, map(self._sessions.get, offsets)):
            if session.trimmed:
                self.trimmed += session.trimmed
                self.notices.append(
                    f"{session.partition}: retention took {session.trimmed} messages never judged"
                )
                session.trimmed = 0
        self._checked_s = self._clock.monotonic_s()

    def _look_after(self, polled: Polled) -> None:
        """New sessions where answers fail to come, reports where nothing moves, a look at who we are."""
        now_s, answer_s = self._clock.monotonic_s(), self._config.answer_s
        for partition, session in list(self._sessions.items()):
            patience_s = max(answer_s, min(_PATIENCE_S, answer_s * 2 ** self._attempts.get(partition, 0)))
            if session.pending and not session.ready and now_s - session.asked_s >= patience_s:
                self._attempts[partition] = min(20, self._attempts.get(partition, 0) + 1)
                self.notices.append(f"{partition}: no answer for {patience_s:.0f} s; asking again")
                self.resyncs += 1
                del self._sessions[partition]
                self._consumer.pause([partition])
                self._waiting.add([partition])
            elif not session.pending and not session.fresh:
                self._report(session, now_s)
        idle = now_s - self._checked_s >= self._config.check_s
        if idle or now_s - self._looked_s >= _LOOK_CHECKS * self._config.check_s:
            self._check(polled.membership)

    def _report(self, session: Session, now_s: float) -> None:
        # A stopping worker polls nothing more: what it may have passed over since was never asked for.
        passed = session.covered if self._stopping else self._consumer.position(session.partition)
        position = max(session.covered, passed)
        news = session.emitted > session.reported or position > session.covered
        if news and (self._stopping or now_s - session.active_s >= self._config.report_s):
            self._asks.report(session, position)
            self._hook(WorkerStep.REPORTED)

    def _check(self, membership: Membership) -> None:
        """An idle worker asks the broker whether it still is who it was, and its topics what they were.

        A session without an answer yet commits nothing: the mark it began from may not be judged so far.
        """
        idle = self._clock.monotonic_s() - self._checked_s >= self._config.check_s
        self._looked_s = self._checked_s = self._clock.monotonic_s()
        settled = {p: s.mark() for p, s in self._sessions.items() if s.settled}
        if not settled:
            return
        if idle:
            self._transact(Emission(), settled, membership)
        self._topics.same([self._sessions[partition] for partition in settled])
