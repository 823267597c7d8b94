"""The index role: reads the fingerprint log in order, judges, records decisions, answers.

Steps of `Index.step`, once the log's partition is ours and every recorded decision has been applied:

1. POLLED: blocks, with the membership of that moment.
2. JUDGED: a ruling for each block; the state is now ahead of what is recorded.
3. BEGUN, DECIDED, ANSWERED, OFFSETS_SENT, COMMITTED: one transaction holds one decision a block, the answers,
   and the log offset. Its transactional id is the deployment's: a new index fences the old one.
4. SNAPSHOT_WRITTEN: now and then, of the committed state; it was frozen some steps before, and written in
   the background.

A crash before COMMITTED leaves nothing that counts: the next index follows the decisions up to there and
judges the same blocks from the same state. After it everything is on record. Judging again (steps in another
order, a decision without its answer) is never allowed. An error after POLLED leaves this object's state ahead
of the record: it ends the role (FatalError), and a new one restores.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from enum import StrEnum

from pipeline.blocks import decode_block
from pipeline.blocks_verdicts import Ruling, encode_ruling
from pipeline.committed_offsets import committed_offsets
from pipeline.index_restore import Follower, Progress
from pipeline.index_snapshots import SnapshotWriter, restore_point
from pipeline.index_state import Judge
from pipeline.ports import (
    AbortableError,
    Broker,
    Clock,
    Committed,
    FatalError,
    Hook,
    Membership,
    Messages,
    Partition,
    Polled,
    Transactor,
    no_hook,
)
from pipeline.snapshots import SnapshotStore
from stages.errors import BrokerError, StateError


class IndexStep(StrEnum):
    """Where a hook is called, in order."""

    RESTORED = "index.restored"
    POLLED = "index.polled"
    JUDGED = "index.judged"
    BEGUN = "index.begun"
    DECIDED = "index.decided"
    ANSWERED = "index.answered"
    OFFSETS_SENT = "index.offsets_sent"
    COMMITTED = "index.committed"
    SNAPSHOT_WRITTEN = "index.snapshot_written"


_STAND_BY_S = 0.02
"""A poll while nothing is to be judged: long enough for a client to take part in its group."""

_WAIT_EVERY_S = 0.5
"""While a restore is busy, so often: a group waits for a member that never takes part."""


@dataclass(frozen=True, slots=True)
class IndexConfig:
    """What the index needs to know beside the sieve's own configuration.

    scheme: hash of the fingerprint scheme; group, member: of the consumer; most_blocks: in one transaction
    check_s: an idle index makes sure this often that it was not displaced
    trim_log: delete the log behind the oldest snapshot (they are on shared storage)
    """

    scheme: bytes
    log: Partition
    decisions: Partition
    verdicts: str
    group: str
    transactional_id: str
    member: str | None = None
    most_blocks: int = 64
    snapshot_every_s: float = 300.0
    check_s: float = 5.0
    trim_log: bool = False


class Index:
    """One index, standing by until the log is its own.

    broker: its own; closed with it
    fresh: makes an empty sieve; load: a sieve of a snapshot's bytes (StateError when it does not fit)
    store, background: where snapshots go, and what writes them beside the index; no store: none
    """

    def __init__(
        self,
        broker: Broker,
        clock: Clock,
        config: IndexConfig,
        fresh: Callable[[], Judge],
        load: Callable[[bytes], Judge],
        store: SnapshotStore | None,
        background: Executor,
        hook: Hook = no_hook,
    ) -> None:
        self._broker = broker
        self._clock = clock
        self._config = config
        self._store = store
        self._hook = hook
        self._consumer = broker.group_consumer(config.group, [config.log.topic], config.member)
        self._reader = broker.reader()
        self._admin = broker.admin()
        self._ids = self._topic_ids()
        self._snapshots = SnapshotWriter(
            store, self._ids, config.scheme, background, clock, config.snapshot_every_s
        )
        self.notices: list[str] = []
        self.state, self._decisions_from = restore_point(
            store, self._ids, config.scheme, fresh, load, self.notices
        )
        self._follower = Follower(self._reader, self.state, config.log, config.decisions, config.scheme)
        self._begin_following = True
        self._followed = False
        self._applied = 0
        self._waited_s = 0.0
        self._transactor: Transactor | None = None
        self._target = 0
        self._epoch = -1
        self._live = False
        self._assigned = False
        self._checked_s = clock.monotonic_s()

    @property
    def live(self) -> bool:
        """Whether this one judges; else it restores or stands by."""
        return self._live

    @property
    def ready(self) -> bool:
        """It judges, or stands by for the one that does; not while it restores what is its own."""
        return self._live or (self._epoch >= 0 and not self._assigned)

    @property
    def holes(self) -> int:
        """Blocks or decisions that retention took before they could be followed."""
        return self._follower.holes

    @property
    def snapshot_age_s(self) -> float:
        """Seconds of the log that a restore would have to follow, as far as this process knows."""
        return self._snapshots.age_s

    def progress(self) -> Progress:
        """Where a restore stands."""
        return self._follower.progress()

    def step(self, timeout_s: float) -> list[Ruling]:
        """One round: follow, or judge what has arrived; returns the committed rulings.

        raises: AbortableError when nothing was judged (call again); FatalError or StateError when this object
            is finished
        """
        try:
            return self._step(timeout_s)
        except AbortableError:
            # What was polled is gone with it: follow and read again from where the state is.
            self._stand_by()
            raise

    def _step(self, timeout_s: float) -> list[Ruling]:
        polled = self._consumer.poll(
            timeout_s if self._live else self._stand_by_s(timeout_s), self._config.most_blocks
        )
        self._hook(IndexStep.POLLED)
        if polled.epoch != self._epoch:
            self._epoch = polled.epoch
            self._assigned = self._config.log in polled.assignment
            self._stand_by()
        self._see_snapshot()
        if not self._live:
            self._follow(polled, timeout_s)
            return []
        blocks = [
            (offset, value or b"")
            for records in polled.records
            for offset, value in zip(records.offsets, records.values, strict=True)
        ]
        if blocks:
            return self._judge(blocks, polled.membership)
        if self._clock.monotonic_s() - self._checked_s >= self._config.check_s:
            self._commit([], polled.membership)
        return []

    def close(self) -> None:
        """Leave: a standby has the log at once; then a last snapshot of what is committed."""
        self._consumer.leave()
        if self._live:
            self._see_snapshot(wait=True)
            self._snapshots.begin(self.state, self._decisions_from)
            self._see_snapshot(wait=True)
        self.abandon()

    def abandon(self) -> None:
        """Give up everything, as after an error: this state may be ahead of the record."""
        if self._transactor is not None:
            self._transactor.close()
        self._reader.close()
        self._consumer.close()
        self._admin.close()
        self._broker.close()

    def _stand_by(self) -> None:
        """The assignment may have changed: what is committed is followed again before anything is judged."""
        if self._transactor is not None:
            self._transactor.close()
            self._transactor = None
        self._live = False
        self._begin_following = True

    def _stand_by_s(self, timeout_s: float) -> float:
        """How long a poll may wait that will find nothing: now and then, while there is much to follow."""
        now_s = self._clock.monotonic_s()
        if self._applied and now_s - self._waited_s < _WAIT_EVERY_S:
            return 0.0
        self._waited_s = now_s
        return min(timeout_s, _STAND_BY_S)

    def _follow(self, polled: Polled, timeout_s: float) -> None:
        if self._begin_following:
            log = self._config.log
            newest = self._store.newest_at() if self._store is not None and self._followed else None
            self._followed = True
            if newest is not None and newest > self.state.at < self._reader.beginning_offsets([log])[log]:
                raise FatalError(f"{log}: retention has overtaken block {self.state.at}; restoring")
            self._follower.begin(self._decisions_from)
            self._begin_following = False
        if self._config.log in polled.assignment and self._transactor is None:
            try:
                self._transactor = self._broker.transactor(self._config.transactional_id)
                self._target = self._reader.end_offsets([self._config.decisions])[self._config.decisions]
            except AbortableError:
                self._transactor = None
        self._applied = self._follower.step(timeout_s, 4 * self._config.most_blocks)
        if self._transactor is not None and self._follower.caught_up(self._target):
            self._go_live(self._transactor, polled.membership)

    def _go_live(self, transactor: Transactor, membership: Membership) -> None:
        log = self._config.log
        beginning, end = self._reader.beginning_offsets([log])[log], self._reader.end_offsets([log])[log]
        committed = committed_offsets(self._consumer, transactor, membership, [log])[log]
        if end < self.state.at:
            raise StateError(
                f"{log} ends at {end}, but decisions were recorded up to {self.state.at}: it lost blocks "
                "or was created again; restore it, or start a new app"
            )
        if committed is not None and committed.offset > self.state.at:
            raise StateError(
                f"{self._config.decisions}: decisions end at block {self.state.at}, but {committed.offset} "
                "were judged: it lost records or was created again; restore it, or start a new app"
            )
        if beginning > self.state.at:
            self.notices.append(
                f"{log}: retention took {beginning - self.state.at} blocks that were never judged; "
                "workers will ask again"
            )
            self.state.at = beginning
        self._consumer.seek(log, self.state.at)
        self._snapshots.live(self._follower.since_ms)
        self._follower.stop()
        self._decisions_from = self._target
        self._live = True
        self._hook(IndexStep.RESTORED)

    def _judge(self, blocks: list[tuple[int, bytes]], membership: Membership) -> list[Ruling]:
        rulings = []
        for offset, data in blocks:
            block = decode_block(data, self._config.scheme, f"{self._config.log}@{offset}")
            rulings.append((self.state.rule(block, offset), block.reply))
        due = self._snapshots.due
        try:
            self._hook(IndexStep.JUDGED)
            if due:
                decisions = self._config.decisions
                self._decisions_from = self._reader.end_offsets([decisions])[decisions]
            self._commit(rulings, membership)
        except AbortableError as error:
            raise FatalError(f"index: decisions were not recorded ({error}); restoring") from error
        if due:
            self._snapshots.begin(self.state, self._decisions_from)
        return [ruling for ruling, _ in rulings]

    def _commit(self, rulings: list[tuple[Ruling, int]], membership: Membership) -> None:
        transactor = self._transactor
        if transactor is None:
            raise StateError("index: no transaction without the log's partition")
        decisions = Messages()
        answers: dict[int, Messages] = {}
        for ruling, reply in rulings:
            decision, answer = encode_ruling(ruling, self._config.scheme)
            decisions.add(None, decision)
            answers.setdefault(reply, Messages()).add(None, answer)
        try:
            transactor.begin()
            self._hook(IndexStep.BEGUN)
            if rulings:
                transactor.send(self._config.decisions.topic, self._config.decisions.number, decisions)
            self._hook(IndexStep.DECIDED)
            for reply, messages in answers.items():
                transactor.send(self._config.verdicts, reply, messages)
            self._hook(IndexStep.ANSWERED)
            transactor.send_offsets({self._config.log: Committed(self.state.at)}, membership)
            self._hook(IndexStep.OFFSETS_SENT)
            transactor.commit()
        except AbortableError:
            transactor.abort()
            raise
        self._hook(IndexStep.COMMITTED)
        self._checked_s = self._clock.monotonic_s()

    def _see_snapshot(self, *, wait: bool = False) -> None:
        """What became of the last one; a failure is a notice, the index goes on."""
        found = self._snapshots.finished(wait=wait)
        if found is None:
            return
        if isinstance(found, StateError):
            self.notices.append(str(found))
            return
        self._hook(IndexStep.SNAPSHOT_WRITTEN)
        if self._config.trim_log and found.oldest_at is not None:
            try:
                self._admin.delete_records({self._config.log: found.oldest_at})
            except BrokerError as error:
                self.notices.append(f"{self._config.log}: not trimmed behind snapshots ({error})")

    def _topic_ids(self) -> tuple[bytes, bytes]:
        names = (self._config.log.topic, self._config.decisions.topic)
        infos = self._admin.topics(names)
        log, decisions = (infos[name] for name in names)
        if log is None or decisions is None:
            missing = " and ".join(name for name in names if infos[name] is None)
            raise StateError(f"topic {missing} does not exist; `twinsieve topics create` makes it")
        return log.topic_id, decisions.topic_id
