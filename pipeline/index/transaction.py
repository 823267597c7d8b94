"""Writes the decisions, the answers and the log offset of an index in one transaction."""

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
from twinsieve.pipeline.index.config import TOGETHER_ROWS, IndexConfig, IndexStep
from twinsieve.pipeline.index.ends import NOT_ALONE, Alone, JudgedUnder, committed_record
from twinsieve.pipeline.wire.chain import link_after, link_header
from twinsieve.pipeline.wire.judged_by import rules_header
from twinsieve.pipeline.wire.ruling import Ruling, encode_ruling

_MAX_STEPS = 16
_CALL_S = 0.1
"""The index chooses the number of rows that it judges in one call so that the call takes about this time."""


class Pace:
    """How many blocks an index judges for one transaction.

    The limit is halved after a refused transaction. If judging takes long, it falls to the number of blocks
    for which there was time. It grows again with recorded transactions. A refused transaction ends the index,
    so this object is handed to the next one.

    blocks: limit for the next step
    mends_from_s: before this time no index of this process restores to make its snapshots whole again
    rows: number of rows after which the index judges the blocks that it has collected, in one call. It
        follows from the time of the last call, and is at most `TOGETHER_ROWS`

    >>> pace = Pace(32)
    >>> pace.refused(20)
    >>> pace.blocks
    10
    """

    def __init__(self, max_blocks: int) -> None:
        self._max_blocks = max_blocks
        self.blocks = max_blocks
        self.rows = 1
        self.mends_from_s = 0.0
        self._steps = 0
        """Number of steps recorded since `blocks` last changed."""
        self._steps_needed = 1
        """Number of steps to record before `blocks` grows. Each refusal doubles it, because a refusal costs a
        restore."""

    def recorded(self, count: int, *, in_time: bool, cut: bool) -> None:
        """Note that a step of `count` blocks was recorded.

        in_time: whether there was time for more blocks; cut: whether the step left out blocks that were read
        """
        self._steps += 1
        if cut:
            self.blocks, self._steps = max(1, count), 0
        elif in_time and self._steps >= self._steps_needed:
            self.blocks, self._steps = min(self._max_blocks, 2 * self.blocks), 0
            if self.blocks == self._max_blocks:
                self._steps_needed = 1

    def judged(self, rows: int, took_s: float) -> None:
        """Note that one call judged `rows` rows in `took_s` seconds; adapts `self.rows`."""
        if rows:
            fitting = int(rows * _CALL_S / took_s) if took_s else TOGETHER_ROWS
            self.rows = max(1, min(fitting, 2 * self.rows, TOGETHER_ROWS))

    def refused(self, count: int) -> None:
        """Note that a transaction for `count` blocks was refused."""
        self.blocks, self._steps = max(1, min(self.blocks, count) // 2), 0
        self._steps_needed = min(_MAX_STEPS, 2 * self._steps_needed)


class DecisionWriter:
    """Records decisions. Only the newest writer of an app can do so: making one fences all earlier ones.

    decisions_end: the decisions topic reaches at least to this offset. Once this object is made, no other
        index can record decisions, so that it is enough to follow them up to here.
    behind_snapshots: whether the part of the log that snapshots contain is deleted; each commit records this
    under: the settings under which the app has judged, as they are on record; each commit records them again
    """

    def __init__(self, broker: Broker, config: IndexConfig, hook: Hook, reader: Reader) -> None:
        self._config = config
        self._hook = hook
        self.behind_snapshots = False
        self.under = JudgedUnder()
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
        link: bytes,
        rules: str,
        alone: Alone = NOT_ALONE,
        paused_ms: int | None = None,
    ) -> bytes:
        """Write one transaction with decisions, answers and the log offset; returns the link after them.

        rulings: each with the number of the verdicts partition for its answer
        log_offset: log offset after the blocks of the rulings
        unreachable: verdicts partitions that cannot be written; workers ask again for those answers
        link: the link before the first decision; rules: `rules_digest` of this index
        alone: in which segments it looks up itself; paused_ms: since when its disk lets it judge nothing
        raises: AbortableError if the transaction failed, so that nothing in it counts
        """
        config = self._config
        decisions = Messages()
        answers: dict[int, Messages] = {}
        for ruling, reply in rulings:
            decision, answer = encode_ruling(ruling, config.scheme)
            decisions.add(None, decision, [link_header(link), rules_header(rules)])
            link = link_after(link, decision)
            # An answer that cannot be written would make the whole transaction fail.
            if reply not in unreachable:
                answers.setdefault(reply, Messages()).add(None, answer)
        # The transaction's commit marker takes one offset, too.
        decisions_end = self.decisions_end + len(rulings) + (1 if rulings else 0)
        if rulings:
            reading = config.under.reading if config.has_text.is_set() else self.under.reading
            self.under = config.under._replace(reading=reading)
        record = committed_record(
            log_offset,
            decisions_end,
            config.output,
            behind_snapshots=self.behind_snapshots,
            under=self.under,
            alone=alone,
            paused_ms=paused_ms,
        )
        self._transact(decisions, answers, record, membership)
        self.decisions_end = decisions_end
        return link

    def prove(self, committed: Committed, membership: Membership) -> None:
        """Commit an empty transaction: it succeeds only while no other index has taken the right to write.

        committed: what the group has committed; the same is committed again
        raises: AbortableError if another index has taken that right, or the log's partition
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
