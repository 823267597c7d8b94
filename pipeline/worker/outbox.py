"""Prepares what one transaction writes. Blocks with messages for a partition without a leader wait."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

import numpy as np

from twinsieve.pipeline.broker.ports import Clock, TransactionalProducer
from twinsieve.pipeline.broker.records import Committed, Copies, Messages, Partition
from twinsieve.pipeline.worker.answers import Answered
from twinsieve.pipeline.worker.emit import Emission, EmitConfig, Emitter, HeldError
from twinsieve.pipeline.worker.partitions import WorkerTopics
from twinsieve.pipeline.worker.session import Session
from twinsieve.pipeline.worker.suspects import Suspects
from twinsieve.stages.rows.byte_column import as_column
from twinsieve.stages.rows.key_partitions import NO_KEY, partitions_of

_REFRESH_S = 1.0
"""While a block waits for a leader, descriptions of the output topics are requested once in this time."""


@dataclass(slots=True)
class Outgoing:
    """The content of one transaction.

    offsets: input offsets that it commits
    sent: each session with the number of its answered blocks that are in the transaction
    held: partitions whose next block has a message that no topic takes
    """

    emission: Emission = field(default_factory=Emission)
    offsets: dict[Partition, Committed] = field(default_factory=dict)
    sent: list[tuple[Session, int]] = field(default_factory=list)
    held: dict[Partition, HeldError] = field(default_factory=dict)

    @property
    def partitions(self) -> list[Partition]:
        """The input partitions whose messages are in the transaction."""
        return [session.partition for session, _ in self.sent]

    @property
    def rows(self) -> dict[Partition, list[int]]:
        """Offsets of the messages in the transaction, by input partition."""
        return {
            session.partition: [
                offset for block, _ in islice(session.ready, count) for offset in block.records.offsets
            ]
            for session, count in self.sent
        }


class Outbox:
    """Makes the content of transactions from answered blocks.

    blocked: input partitions whose next block has a message for an output partition without a leader
    """

    def __init__(
        self,
        config: EmitConfig,
        topics: WorkerTopics,
        transactor: TransactionalProducer,
        clock: Clock,
        suspects: Suspects,
    ) -> None:
        self._config = config
        self._topics = topics
        self._transactor = transactor
        self._clock = clock
        self._suspects = suspects
        self._leaderless: Mapping[str, frozenset[int]] = {}
        self._refreshed_s = 0.0
        self.blocked: set[Partition] = set()

    def see_leaders(self) -> None:
        """Unblock all input partitions when the set of output partitions without a leader has changed."""
        if not self.blocked:
            return
        names = self._config.topics
        if self._clock.monotonic_s() - self._refreshed_s >= _REFRESH_S:
            self._refreshed_s = self._clock.monotonic_s()
            self._topics.refresh(names)
        if self._topics.leaderless(names) != self._leaderless:
            self.blocked.clear()

    def prepare(self, taken: Sequence[Answered]) -> Outgoing:
        """The content of one transaction for these answered blocks; of each session only the blocks before
        the first one that has to wait for a leader, or that has a message which no topic takes.

        raises: as `WorkerTopics.partitions`
        """
        names = self._config.topics
        counts = self._topics.partitions(names.union(self._config.inputs))
        self._leaderless = self._topics.leaderless(names)
        emitter = Emitter(self._config, counts, self._transactor, self._suspects)
        outgoing = Outgoing()
        for session, blocks in taken:
            out = 0
            for pending, ruling in blocks:
                block = Emission()
                try:
                    emitter.add(block, pending, ruling)
                except HeldError as error:
                    outgoing.held[session.partition] = error
                    break
                placed = reachable(block, counts, self._leaderless)
                if placed is None:
                    self.blocked.add(session.partition)
                    break
                outgoing.emission.add(placed)
                out += 1
            if not out:
                continue
            outgoing.sent.append((session, out))
            mark = session.mark_with(out)
            if session.mark.fresh or mark.end > session.emitted:
                outgoing.offsets[session.partition] = mark.committed()
        return outgoing


def reachable(
    emission: Emission, counts: Mapping[str, int], leaderless: Mapping[str, frozenset[int]]
) -> Emission | None:
    """The same emission with its keyless messages placed on partitions that have a leader; None if a message
    whose partition is fixed by number or key belongs to a partition without a leader.

    counts: number of partitions of each topic; leaderless: by topic, the partitions without a leader
    """
    if not leaderless:
        return emission
    placed = replace(emission, outgoing={})
    for (topic, number), parts in emission.outgoing.items():
        dead = leaderless.get(topic, frozenset())
        if number is not None or not dead:
            if number in dead and any(map(len, parts)):
                return None
            placed.to(topic, number).extend(parts)
        elif not all(_place_by_key(placed, topic, part, counts[topic], dead) for part in parts):
            return None
    return placed


def _place_by_key(
    placed: Emission, topic: str, messages: Messages | Copies, count: int, dead: frozenset[int]
) -> bool:
    """Place messages by key, keyless ones on partitions with a leader; returns False if that is impossible
    for one of them."""
    numbers = partitions_of(as_column(messages.keys), count)
    keyless = np.flatnonzero(numbers == NO_KEY)
    live = np.array([number for number in range(count) if number not in dead], np.int64)
    if not len(live):
        return not len(messages)
    numbers[keyless] = live[keyless % len(live)]
    chosen = np.unique(numbers).tolist()
    if not dead.isdisjoint(chosen):
        return False
    for number in chosen:
        # Name the partition for keyed messages too: messages that reach one partition both by number and by
        # key are not sent in order.
        placed.to(topic, number).append(messages.only(np.flatnonzero(numbers == number)))
    return True
