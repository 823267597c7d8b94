"""The seam to the message broker: consume, append, transact, look after topics.

Nothing else of the program touches a broker. Three implementations answer to one contract suite
(tests/broker/): kafka-python and confluent (pipeline/kafka/), and a broker in memory (tests/memory/).
A `Broker` is built once per process and makes the clients that the roles hold:

| client | made by | held by | for |
|---|---|---|---|
| `GroupConsumer` | `group_consumer` | worker (input), index (log) | shares of topics, by rebalance |
| `Reader` | `reader` | worker (answers), index (restore: log, decisions) | partitions it names itself |
| `IdempotentProducer` | `appender` | worker (blocks) | idempotent appends outside any transaction |
| `TransactionalProducer` | `transactor` | worker (emission), index (decisions and answers) | all or nothing |
| `Admin` | `admin` | start-up checks, `topics`, `reset`, session starts | topics, ids, offsets |

**Threads.** A client belongs to the thread that made it. Nothing here calls back into a role.

**Errors.** Every call raises only these (bad arguments apart), and none blocks without limit:
`AbortableError`: abort the open transaction, resync (drop what is pending, seek to what is committed, begin
new sessions), continue. `FatalError`: this client is finished; close everything, and exit if `fenced`, or if
`denied` before anything worked, else build new clients. `BrokerError` (plain, from `Admin` and while
connecting, and from a poll that met a batch that cannot be decoded): one line saying what, where, what to do.

**Batches.** Messages cross in columns (`Records`, `Messages`), so that no row costs a call.

What crosses the seam is in `records.py`, the protocol `Admin` in `admin.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Protocol

from twinsieve.pipeline.basics.dead_letter_reasons import DeadLetterReason
from twinsieve.pipeline.broker.admin import Admin
from twinsieve.pipeline.broker.clocks import BrokerClock
from twinsieve.pipeline.broker.records import (
    NO_EPOCH,
    Committed,
    Membership,
    Messages,
    Partition,
    PollResult,
    Records,
)

Hook = Callable[[str], None]
"""Called at every named step of a role or of the memory broker; whatever it raises happens there."""


def no_hook(step: str) -> None:
    """The hook that lets everything pass."""


class Clock(Protocol):
    """The only source of time. Tests inject one that stands still until it is moved."""

    def now_ms(self) -> int:
        """Wall clock, ms since 1970."""

    def monotonic_s(self) -> float:
        """Seconds since some start, never going back; for timeouts and durations."""

    def sleep(self, seconds: float) -> None:
        """Let that much time pass."""


class PartitionReader(Protocol):
    """Reads partitions, read-committed: nothing past the last stable offset, nothing of aborted transactions,
    never a control marker.

    What a group has taken from a `GroupConsumer` is ignored in `seek`, `pause` and `resume`: the next poll
    tells. A rebalance forgets pauses.
    """

    def seek(self, partition: Partition, offset: int, epoch: int = NO_EPOCH) -> None:
        """Deliver `partition` from `offset` on; what was fetched ahead is forgotten. Also needed to begin.

        An offset out of the partition's range shows as `AbortableError` at a later poll, never as a silent
        jump.

        epoch: of the leader that wrote the message at `offset - 1`. If the partition has lost that message
            since, a later poll raises `TruncatedError` before it delivers anything of the partition.
        """

    def position(self, partition: Partition) -> int:
        """Offset of the next record to come: past control markers and aborted records already skipped.

        Reading "to the end" means `position >= end_offsets` of before, not a last record seen.
        """

    def pause(self, partitions: Collection[Partition]) -> None:
        """Deliver none of these until `resume`; positions stay."""

    def resume(self, partitions: Collection[Partition]) -> None:
        """Undo `pause`; harmless for partitions that are not paused."""

    def beginning_offsets(self, partitions: Collection[Partition]) -> dict[Partition, int]:
        """First offset still held of each. A missing topic: AbortableError."""

    def end_offsets(self, partitions: Collection[Partition]) -> dict[Partition, int]:
        """Last stable offset of each: where a read-committed reader would wait. A missing topic:
        AbortableError."""


class Reader(PartitionReader, Protocol):
    """Reads partitions that its owner names, outside any group."""

    def assign(self, partitions: Collection[Partition]) -> None:
        """Read exactly these from now on. One that stays keeps its position; a new one is silent until
        `seek`."""

    def poll(self, timeout_s: float, max_records: int) -> list[Records]:
        """What has arrived: waits up to `timeout_s` for the first record, then returns without waiting for
        more.

        At most about `max_records` in all, at most one `Records` per partition, none empty, several
        partitions served in turn so that none starves. Broker away: empty, for as long as it is away.
        raises: TruncatedError, once, where a new leader does not have what was read before
        """

    def close(self) -> None:
        """Give up everything; no error even when the broker is away."""


class GroupConsumer(PartitionReader, Protocol):
    """A member of a consumer group: partitions come and go by rebalance. Never commits itself.

    A partition that was just assigned is silent until its owner has called `seek` on it (the role reads the
    committed offset and decides; there is no automatic reset). Heartbeats continue without `poll`, up to the
    client's limit; after that, or when another process joins as the same member, polls and `send_offsets`
    fail.
    """

    def poll(self, timeout_s: float, max_records: int) -> PollResult:
        """What has arrived, as for a `Reader`, with the membership and assignment of that very moment.

        raises: AbortableError for a position out of range; FatalError(fenced=True) when another process holds
            this member name (where the client cannot notice, `TransactionalProducer.send_offsets` does).
        """

    def committed(self, partitions: Collection[Partition]) -> dict[Partition, Committed | None]:
        """Committed offset of each for this group, None where there is none.

        Waits (bounded) for transactional commits still open; UnstableError when that takes too long.
        """

    def leave(self) -> None:
        """`close`, and the others have this member's share at once (after the last commit). One that is alone
        stays known until the session times out. Never fails: in doubt the session ends by itself."""

    def close(self) -> None:
        """Leave the group (a static member: stay known until the session times out) and give up
        everything."""


class IdempotentProducer(Protocol):
    """Idempotent producer, acks=all, outside any transaction.

    Each partition gets messages in order and without gaps: once an append has failed, no later one is written
    until the caller has received the failure.
    """

    def append(self, partition: Partition, messages: Messages) -> None:
        """Hand over messages in order; returns before they are acknowledged.

        raises: AbortableError when one is larger than the client or topic accepts, or its queue stays full.
        """

    def confirm(self, timeout_s: float) -> int:
        """Messages not acknowledged yet, after waiting up to `timeout_s` for there to be none.

        raises: AbortableError if any since the last call failed; the failed and all waiting ones are given up
            (they may or may not have been written), and the appender is good for new ones.
        """

    def close(self) -> None:
        """Wait briefly for what is on its way, then give up."""


class TransactionalProducer(Protocol):
    """Transactional producer of one slot.

    Making it fences every earlier one of the same transactional id and ends that one's open transaction.
    """

    def begin(self) -> None:
        """Open a transaction; exactly one is open between this and commit or abort."""

    def unsendable(self, topic: str, messages: Messages) -> dict[int, DeadLetterReason]:
        """Rows that this client or the topic's limits cannot take, with the reason.

        Empty nearly always; the worker turns these rows into dead letters instead of
        sending them.
        """

    def send(self, topic: str, partition: int | None, messages: Messages) -> None:
        """Write messages in order to a partition; None: by key as Kafka's default partitioner does (murmur2;
        keyless ones anywhere). No open transaction: RuntimeError."""

    def send_offsets(self, offsets: Mapping[Partition, Committed], membership: Membership) -> None:
        """Commit these offsets of the membership's group with the transaction.

        raises: MovedOnError when the group has moved on since `membership` was taken (other generation,
            unknown member, generation < 0); FatalError(fenced=True) when another process is this member now.
        """

    def commit(self) -> None:
        """All of the transaction is visible when this returns.

        raises: AbortableError, certain that none of it ever will be, after an `abort`; FatalError when that
            is not certain or the slot is another's (`fenced`): build new clients, resync from what is
            committed.
        """

    def abort(self) -> None:
        """None of the transaction will ever be visible; without an open one nothing happens.

        raises: FatalError if even that fails
        """

    def close(self) -> None:
        """Give up; an open transaction is aborted if that is quick."""


class Broker(Protocol):
    """Makes clients that share one set of connection settings; the service builds one per process."""

    def group_consumer(self, group: str, topics: Sequence[str], member: str | None = None) -> GroupConsumer:
        """Join `group` for all partitions of `topics` (new ones are picked up); `member`: static member name.

        raises: BrokerError at once with a clear text for an unknown topic or missing permission.
        """

    def reader(self) -> Reader:
        """A reader without partitions."""

    def appender(self, topics: Collection[str] = ()) -> IdempotentProducer:
        """An idempotent producer, which does not compress.

        topics: those that it will write to; its batches are no larger than any of them takes
        """

    def transactor(self, transactional_id: str, topics: Collection[str] = ()) -> TransactionalProducer:
        """A transactional producer, initialised: its predecessor is fenced and its transaction ended.

        topics: as for `appender`. Where one of them takes less later on, or none is named, a transaction
            that was refused for it makes the batches of the next ones smaller.
        raises: AbortableError while the broker is not ready for it (try again); FatalError if it
            never will be
        """

    def admin(self) -> Admin:
        """An administration client."""

    @property
    def clock(self) -> BrokerClock:
        """The broker's clock, as far as its answers to the clients made here show it."""

    def close(self) -> None:
        """Close what this made and is still open."""
