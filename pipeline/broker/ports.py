"""The interface to the message broker: consume, append, write in transactions, administer topics.

The rest of the program uses a broker only through this interface. It has two implementations, which pass the
same tests (tests/broker/): kafka-python (pipeline/kafka/), and a broker in memory (tests/memory/). A `Broker`
is built once per process and makes the clients that the roles hold:

| client | made by | held by | for |
|---|---|---|---|
| `GroupConsumer` | `group_consumer` | worker (input), index (log) | partitions that a rebalance assigns |
| `Reader` | `reader` | worker (answers), index (restore: log, decisions) | partitions that the role chooses |
| `IdempotentProducer` | `appender` | worker (blocks) | idempotent appends outside any transaction |
| `TransactionalProducer` | `transactor` | worker (output), index (decisions, answers) | transactions |
| `Admin` | `admin` | start-up checks, `topics`, `reset`, session starts | topics, ids, offsets |

**Threads.** A client belongs to the thread that made it. Nothing here calls back into a role.

**Errors.** Apart from bad arguments, calls raise only these errors, and no call blocks without a time limit:
`AbortableError`: abort the open transaction, resync (drop what is pending, seek to what is committed, begin
new sessions), continue. `FatalError`: this client cannot be used any more; close everything, and exit if
`fenced`, or if `denied` before anything worked, else build new clients. `UnreadableError` (from a poll): one
partition has a batch that cannot be read. `BrokerError` itself (from `Admin`, and while connecting): one line
that says what is wrong, where, and what to do.

**Batches.** Messages are passed in columns (`Records`, `Messages`, `Copies`), so that there is no call per
message.

The values that calls take and return are in `records.py`, the protocol `Admin` is in `admin.py`.
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
    Copies,
    Membership,
    Messages,
    Partition,
    PollResult,
    Records,
)

Hook = Callable[[str], None]
"""Called at every named step of a role or of the memory broker; an error that it raises occurs at that
step."""


def no_hook(step: str) -> None:
    """A hook that does nothing."""


class Clock(Protocol):
    """The only source of time. Tests inject one that stands still until it is moved."""

    def now_ms(self) -> int:
        """Wall clock, ms since 1970."""

    def monotonic_s(self) -> float:
        """Seconds since some start, never going back; for timeouts and durations."""

    def sleep(self, seconds: float) -> None:
        """Wait for this time."""


class PartitionReader(Protocol):
    """Reads partitions with read-committed isolation: no record past the last stable offset or of an aborted
    transaction, and no control marker.

    `seek`, `pause` and `resume` ignore partitions that a rebalance has taken from a `GroupConsumer`; its next
    poll shows that they are gone. A rebalance ends all pauses.
    """

    def seek(self, partition: Partition, offset: int, epoch: int = NO_EPOCH) -> None:
        """Deliver `partition` from `offset` on; records fetched before are discarded, and so is an
        `UnreadableError` of the partition that no poll has raised yet. Reading begins only after the first
        `seek`.

        If the offset is out of the partition's range, a later poll raises `AbortableError`; the position
        never jumps silently.

        epoch: leader epoch of the message at `offset - 1`. If the partition has lost that message since, a
            later poll raises `TruncatedError` before it delivers anything of the partition.
        """

    def position(self, partition: Partition) -> int:
        """Offset of the next record to deliver; it is past control markers and aborted records already
        skipped.

        To find out whether everything was read, compare it with an earlier result of `end_offsets`. The last
        record does not show that, because control markers may follow it.
        """

    def pause(self, partitions: Collection[Partition]) -> None:
        """Deliver nothing of these partitions until `resume`; their positions stay."""

    def resume(self, partitions: Collection[Partition]) -> None:
        """Undo `pause`; harmless for partitions that are not paused."""

    def beginning_offsets(self, partitions: Collection[Partition]) -> dict[Partition, int]:
        """Offset of the first record that each partition still has. raises: AbortableError for a missing
        topic"""

    def end_offsets(self, partitions: Collection[Partition]) -> dict[Partition, int]:
        """Last stable offset of each partition: a read-committed reader waits there. raises: AbortableError
        for a missing topic"""


class Reader(PartitionReader, Protocol):
    """Reads partitions that its owner names, outside any group."""

    def assign(self, partitions: Collection[Partition]) -> None:
        """Read exactly these partitions from now on. A partition that was read before keeps its position; a
        new one delivers nothing until `seek`."""

    def poll(self, timeout_s: float, max_records: int) -> list[Records]:
        """Records that have arrived: waits up to `timeout_s` for the first record, then returns without
        waiting for more.

        At most about `max_records` in all, and at most one `Records` per partition, which is not empty.
        Partitions are served in turn, so that none starves. While the broker is away, the result is empty.
        raises: TruncatedError, once, if a new leader does not have messages that were read before
        """

    def close(self) -> None:
        """Close all connections; raises no error even if the broker is away."""


class GroupConsumer(PartitionReader, Protocol):
    """A member of a consumer group: rebalances assign and revoke its partitions. It never commits by itself.

    A partition that was just assigned delivers nothing until its owner has called `seek` on it (the role
    reads the committed offset and decides; there is no automatic reset). Heartbeats continue without `poll`,
    up to the client's limit; after that, or when another process joins as the same member, polls and
    `send_offsets` fail.
    """

    def poll(self, timeout_s: float, max_records: int) -> PollResult:
        """Records that have arrived, as for a `Reader`, with the membership and assignment of that moment.

        raises: AbortableError for a position out of range; FatalError(fenced=True) if another process has
            this member name
        """

    def prefetch(self) -> bool:
        """Ask the broker for what the next poll returns, without waiting. Returns whether records are here
        already, so that a poll returns at once; else it takes the broker a moment."""

    def committed(self, partitions: Collection[Partition]) -> dict[Partition, Committed | None]:
        """Committed offset of this group for each partition, None if there is none.

        Waits for open transactions that commit such offsets. raises: UnstableError if that takes too long
        """

    def leave(self) -> None:
        """Close, and let the other members have this member's partitions at once. Call it after the last
        commit. The only member of a group stays known until its session times out. Never fails: if leaving
        does not work, the session times out."""

    def close(self) -> None:
        """Leave the group and close all connections. A static member stays known to the group until its
        session times out."""


class IdempotentProducer(Protocol):
    """Idempotent producer, acks=all, outside any transaction.

    Each partition gets messages in order and without gaps: once an append has failed, no later one is written
    until the caller has received the failure.
    """

    def append(self, partition: Partition, messages: Messages) -> None:
        """Hand over messages in order; returns before they are acknowledged.

        raises: AbortableError if a message is larger than the client or topic accepts, or if the client's
            queue stays full
        """

    def confirm(self, timeout_s: float) -> int:
        """Number of messages that are not acknowledged yet; waits up to `timeout_s` for it to become 0.

        raises: AbortableError if any message has failed since the last call. The failed messages and all
            waiting ones are dropped (they may or may not have been written); new ones can be appended
        """

    def close(self) -> None:
        """Wait briefly for messages that are not acknowledged, then close all connections."""


class TransactionalProducer(Protocol):
    """Writes messages and offsets in transactions.

    Making it fences every earlier producer of the same transactional id and ends the open transaction of that
    producer.
    """

    def begin(self) -> None:
        """Open a transaction; exactly one is open between this and commit or abort."""

    def unsendable(self, topic: str, messages: Messages | Copies) -> dict[int, DeadLetterReason]:
        """Rows that this client or the topic would refuse, with the reason.

        Nearly always there are none. The worker makes dead letters of these rows instead of sending them.
        """

    def send(self, topic: str, partition: int | None, messages: Messages | Copies) -> None:
        """Write messages in order to a partition.

        partition: if None, the key of each message chooses it, as with Kafka's default partitioner (murmur2);
            a message without a key may go to any partition
        raises: RuntimeError without an open transaction
        """

    def send_offsets(
        self, offsets: Mapping[Partition, Committed], membership: Membership, record: str = ""
    ) -> None:
        """Commit these offsets of the membership's group with the transaction.

        record: a group without members, for which the transaction commits them too
        raises: MovedOnError if the group has rebalanced since `membership` was taken (other generation,
            unknown member, generation < 0); FatalError(fenced=True) if another process is this member now
        """

    def commit(self) -> None:
        """Commit the transaction: all of it is visible when this returns.

        raises: AbortableError if, after an `abort`, certainly none of it will ever be visible; FatalError if
            that is not certain, or if another process has the transactional id (`fenced`): build new clients
            and resync from what is committed
        """

    def abort(self) -> None:
        """Abort the transaction: none of it will ever be visible. Without an open one nothing happens.

        raises: FatalError if even that fails
        """

    def close(self) -> None:
        """Close all connections; abort an open transaction first, if that is quick."""


class Broker(Protocol):
    """Makes clients that share one set of connection settings; the service builds one per process."""

    def group_consumer(self, group: str, topics: Sequence[str], member: str | None = None) -> GroupConsumer:
        """A consumer that joins `group` for all partitions of `topics`, also for those that are added later.

        member: static member name
        raises: BrokerError at once with a clear text for an unknown topic or missing permission
        """

    def reader(self) -> Reader:
        """A reader without partitions."""

    def appender(self, topics: Collection[str] = ()) -> IdempotentProducer:
        """An idempotent producer, which does not compress.

        topics: topics that it will write to; its batches are no larger than any of them accepts
        """

    def transactor(self, transactional_id: str, topics: Collection[str] = ()) -> TransactionalProducer:
        """A transactional producer, initialised: its predecessor is fenced, and that one's transaction ended.

        topics: as for `appender`. If the limit of a topic is lowered later, or if no topic is named, a
            transaction that is refused for its size makes the batches of the next ones smaller
        raises: AbortableError while the broker is not ready for it (try again); FatalError if it
            never will be
        """

    def admin(self) -> Admin:
        """An administration client."""

    @property
    def clock(self) -> BrokerClock:
        """The broker's clock, as far as its answers to the clients made here show it."""

    def close(self) -> None:
        """Close all clients made here that are still open."""
