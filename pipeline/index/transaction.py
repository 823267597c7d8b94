"""What an index writes at once: decisions, answers and the log offset, together or not at all."""

from __future__ import annotations

from collections.abc import Collection

from twinsieve.pipeline.broker.ports import Broker, Hook, Reader
from twinsieve.pipeline.broker.records import (
    AbortableError,
    BrokerError,
    Committed,
    FatalError,
    Membership,
    Messages,
)
from twinsieve.pipeline.index.config import IndexConfig, IndexStep
from twinsieve.pipeline.index.ends import committed_record
from twinsieve.pipeline.wire.ruling import Ruling, encode_ruling

_MAX_STEPS = 16


class Pace:
    """How many blocks an index judges for one transaction.

    Fewer after one that was refused, and as many as time allowed where judging takes long; more again with
    those that are recorded. It outlives the index, which ends with a refused transaction.

    blocks: of the next step, at most

    >>> pace = Pace(32)
    >>> pace.refused(20)
    >>> pace.blocks
    10
    """

    def __init__(self, max_blocks: int) -> None:
        self._max_blocks = max_blocks
        self.blocks = max_blocks
        self._steps = 0
        """Recorded since the last change."""
        self._steps_needed = 1
        """Steps to record before more is tried; doubled by each refusal, for that costs a restore."""

    def recorded(self, count: int, *, in_time: bool, cut: bool) -> None:
        """A step of `count` blocks is on record.

        in_time: more would have been possible; cut: more was there
        """
        self._steps += 1
        if cut:
            self.blocks, self._steps = max(1, count), 0
        elif in_time and self._steps >= self._steps_needed:
            self.blocks, self._steps = min(self._max_blocks, 2 * self.blocks), 0
            if self.blocks == self._max_blocks:
                self._steps_needed = 1

    def refused(self, count: int) -> None:
        """A transaction for `count` blocks was refused."""
        self.blocks, self._steps = max(1, min(self.blocks, count) // 2), 0
        self._steps_needed = min(_MAX_STEPS, 2 * self._steps_needed)


class DecisionWriter:
    """The right to record decisions. A new one takes it from all others of the app.

    decisions_end: the decisions reach at least to here. When this is made, no other index records any more:
        those on record then are all there is to follow.
    behind_snapshots: the log is deleted behind snapshots; on record from the next commit on
    """

    def __init__(self, broker: Broker, config: IndexConfig, hook: Hook, reader: Reader) -> None:
        self._config = config
        self._hook = hook
        self.behind_snapshots = False
        topics = (config.decisions.topic, config.verdicts)
        self.transactor = broker.transactor(config.transactional_id, topics)
        try:
            self.decisions_end = reader.end_offsets([config.decisions])[config.decisions]
        except BrokerError:
            self.transactor.close()
            raise

    def commit(
        self,
        rulings: list[tuple[Ruling, int]],
        log_offset: int,
        membership: Membership,
        unreachable: Collection[int],
    ) -> None:
        """One transaction.

        rulings: each with the partition its answer goes to; log_offset: log offset behind them
        unreachable: verdict partitions that get no answers; workers ask again for theirs
        raises: AbortableError when nothing of it counts
        """
        config = self._config
        decisions = Messages()
        answers: dict[int, Messages] = {}
        for ruling, reply in rulings:
            decision, answer = encode_ruling(ruling, config.scheme)
            decisions.add(None, decision)
            # One that cannot be written would fail the whole transaction.
            if reply not in unreachable:
                answers.setdefault(reply, Messages()).add(None, answer)
        # The marker of the transaction takes an offset too.
        decisions_end = self.decisions_end + len(rulings) + (1 if rulings else 0)
        record = committed_record(
            log_offset, decisions_end, config.output, behind_snapshots=self.behind_snapshots
        )
        self._transact(decisions, answers, record, membership)
        self.decisions_end = decisions_end

    def prove(self, committed: Committed, membership: Membership) -> None:
        """Commit an empty transaction: it succeeds only while no other index has taken the right to write.

        committed: what the group has committed, which is committed again
        raises: AbortableError when somebody else has the right, or the log's partition, by now
        """
        try:
            self._transact(Messages(), {}, committed, membership)
        except FatalError as error:
            if not error.fenced:
                raise
            raise AbortableError(f"another index has taken over ({error})") from error

    def _transact(
        self, decisions: Messages, answers: dict[int, Messages], committed: Committed, membership: Membership
    ) -> None:
        config, transactor = self._config, self.transactor
        try:
            transactor.begin()
            self._hook(IndexStep.BEGUN)
            if len(decisions):
                transactor.send(config.decisions.topic, config.decisions.number, decisions)
            self._hook(IndexStep.DECIDED)
            for reply, messages in answers.items():
                transactor.send(config.verdicts, reply, messages)
            self._hook(IndexStep.ANSWERED)
            transactor.send_offsets({config.log: committed}, membership)
            self._hook(IndexStep.OFFSETS_SENT)
            transactor.commit()
        except AbortableError:
            transactor.abort()
            raise
        self._hook(IndexStep.COMMITTED)
