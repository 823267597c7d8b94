"""Values and errors of the broker interface (`pipeline/broker/ports.py`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from twinsieve.stages.errors import SieveError

Header = tuple[str, bytes | None]
"""Name and value of a header. Order and repetitions are kept; a null value differs from an empty one."""

NO_TIMESTAMP = -1
"""A value of `timestamps_ms`. In a message that was read, it means that the message has no timestamp. In a
message to write, it means that the broker sets the timestamp."""

NO_EPOCH = -1
"""Leader epoch of a message or position, if it is unknown."""

NO_TOPIC_ID = bytes(16)
"""Topic id of a broker or client that has none."""


class BrokerError(SieveError):
    """The broker failed; `retryable` says whether waiting can help."""

    def __init__(self, message: str, *, retryable: bool) -> None:
        super().__init__(message)
        self.retryable = retryable
        self.lasting = not retryable

    def lines(self) -> list[str]:
        """Lines for the log: one for each topic, if several topics are wrong."""
        return [f"twinsieve: {line}" for line in str(self).splitlines()]


class AbortableError(BrokerError):
    """This attempt failed, and no consumer will ever see any of its messages. The caller aborts, resyncs from
    the committed offsets, and continues."""

    def __init__(self, message: str) -> None:
        super().__init__(message, retryable=True)


class MovedOnError(AbortableError):
    """The group has rebalanced since this attempt began, so its `Membership` is no longer valid. This is not
    a fault."""


class UnstableError(AbortableError):
    """A request for committed offsets timed out.

    The usual cause: while a transaction that commits an offset is open, the broker does not return the
    committed offset of that partition (UNSTABLE_OFFSET_COMMIT).
    """


class RefusedRecordError(AbortableError):
    """A topic refuses a record of this attempt for what the record is (no key, its size, its time, a check of
    the broker), so the same record is refused again. Which record it is, is not known."""


class TruncatedError(AbortableError):
    """A partition has lost messages that were read, or that come before a read position, through an unclean
    leader election or a power cut. Other messages may have taken their offsets."""

    def __init__(self, partition: Partition, message: str) -> None:
        super().__init__(message)
        self.partition = partition


class UnreadableError(BrokerError):
    """A batch cannot be read: it is damaged, in an unknown compression, or too large when unpacked.

    Reading it again fails again, and reading on after it loses it, so the caller decides. The partition
    delivers nothing until its next `seek`; others go on.

    offset: the first one that cannot be read; after: the first one after the batch, None if it is not known
    """

    def __init__(self, partition: Partition, offset: int, why: str, after: int | None) -> None:
        super().__init__(
            f"{partition}@{offset}: cannot be decoded ({why}); repair the topic", retryable=False
        )
        self.partition = partition
        self.offset = offset
        self.why = why
        self.after = after

    @property
    def behind(self) -> int:
        """Where to read on, for a caller who may lose the batch."""
        return self.offset + 1 if self.after is None else self.after

    def at(self, partition: Partition) -> UnreadableError:
        """The same error with another name for its partition."""
        return UnreadableError(partition, self.offset, self.why, self.after)


class FatalError(BrokerError):
    """The client cannot be used any more; a new one may work.

    fenced: another process runs under the same member name or transactional id, so this process must exit
    denied: a permission is missing; a new client fails again until somebody grants it

    If a transaction outlives the transaction timeout, the broker calls its producer fenced, too. In that case
    `fenced` is False here.
    """

    def __init__(self, message: str, *, fenced: bool = False, denied: bool = False) -> None:
        super().__init__(message, retryable=False)
        self.fenced = fenced
        self.denied = denied
        self.lasting = denied


class Partition(NamedTuple):
    """One partition of a topic."""

    topic: str
    number: int

    def __str__(self) -> str:
        return f"{self.topic}[{self.number}]"


class GroupMember(NamedTuple):
    """One live member of a group.

    name: its static name; partitions: none during a rebalance
    client_id, host: of its client, as the broker saw them
    """

    name: str | None
    partitions: frozenset[Partition] = frozenset()
    client_id: str = ""
    host: str = ""


class Committed(NamedTuple):
    """A committed offset (of the next message to read) and the text that was committed with it."""

    offset: int
    metadata: str = ""


@dataclass(slots=True)
class Records:
    """n messages of one partition in offset order, as read. Offsets may have gaps.

    offsets: int[n]; timestamps_ms: int[n] or NO_TIMESTAMP; keys, values: bytes or None; headers: per message
        a sequence of (name, value), empty without any; epochs: int[n], leader epoch of each message, or
        NO_EPOCH.
    stamped_by_broker: the timestamps are the times at which the broker wrote the messages (LogAppendTime)
    origins: for dead letters that are redriven: where each message was first, as `str(InputPosition)`; empty
        for all others, which are where they were first
    """

    partition: Partition
    offsets: list[int] = field(default_factory=list)
    timestamps_ms: list[int] = field(default_factory=list)
    keys: list[bytes | None] = field(default_factory=list)
    values: list[bytes | None] = field(default_factory=list)
    headers: list[Sequence[Header]] = field(default_factory=list)
    epochs: list[int] = field(default_factory=list)
    stamped_by_broker: bool = False
    origins: list[bytes] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.offsets)

    @property
    def next_offset(self) -> int:
        """The offset after the last message; there must be at least one message."""
        return self.offsets[-1] + 1

    def extend(self, others: Records) -> None:
        """Append the rows of others, which may be of another partition; that of this object stays."""
        self.offsets += others.offsets
        self.timestamps_ms += others.timestamps_ms
        self.keys += others.keys
        self.values += others.values
        self.headers += others.headers
        self.epochs += others.epochs
        self.origins += others.origins

    def slice(self, low: int, high: int) -> Records:
        """The rows [low, high); this object itself if these are all rows."""
        if high - low == len(self):
            return self
        columns = (self.offsets, self.timestamps_ms, self.keys, self.values, self.headers, self.epochs)
        cut = Records(self.partition, *(column[low:high] for column in columns))  # type: ignore[arg-type]
        cut.stamped_by_broker = self.stamped_by_broker
        cut.origins = self.origins[low:high]
        return cut


@dataclass(slots=True)
class Messages:
    """n messages to write, in order; the columns are those of `Records`."""

    keys: list[bytes | None] = field(default_factory=list)
    values: list[bytes | None] = field(default_factory=list)
    headers: list[Sequence[Header]] = field(default_factory=list)
    timestamps_ms: list[int] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.values)

    def add(
        self,
        key: bytes | None,
        value: bytes | None,
        headers: Sequence[Header] = (),
        timestamp_ms: int = NO_TIMESTAMP,
    ) -> None:
        """Append one message."""
        self.keys.append(key)
        self.values.append(value)
        self.headers.append(headers)
        self.timestamps_ms.append(timestamp_ms)

    def extend(self, others: Messages) -> None:
        """Append all messages of another object."""
        self.keys.extend(others.keys)
        self.values.extend(others.values)
        self.headers.extend(others.headers)
        self.timestamps_ms.extend(others.timestamps_ms)


@dataclass(frozen=True, slots=True)
class Membership:
    """Membership of a group consumer at one moment. `TransactionalProducer.send_offsets` fails if it is no
    longer valid.

    A broker has a subclass with the data that its producer needs. Worker and index use only the fields of
    this class.

    generation: -1 outside a group; `TransactionalProducer.send_offsets` refuses a negative one.
    """

    generation: int


@dataclass(slots=True)
class PollResult:
    """Result of one `GroupConsumer.poll`, valid for that moment.

    membership: taken during the poll, together with the records, because a later one may be of another
        generation.
    assignment: the partitions that are assigned to us now; `records` holds only records of these.
    epoch: grows by one with every rebalance of this member (partitions are revoked, lost or assigned, even if
        the same ones come back). A worker or index that sees a new epoch resyncs.
    """

    membership: Membership
    assignment: frozenset[Partition]
    epoch: int
    records: list[Records] = field(default_factory=list)


def row_spans(row_bytes: Sequence[int], max_bytes: int, max_rows: int) -> Iterator[slice]:
    """All rows in spans of at most `max_bytes` and `max_rows`, in order; a single row may be larger.

    row_bytes: bytes of each row

    >>> list(row_spans([5, 5, 90, 1], 10, 9))
    [slice(0, 2, None), slice(2, 3, None), slice(3, 4, None)]
    """
    upto = np.cumsum(row_bytes)
    low = 0
    while low < len(row_bytes):
        spent = int(upto[low - 1]) if low else 0
        high = int(np.searchsorted(upto, spent + max_bytes, "right"))
        high = max(low + 1, min(high, low + max_rows))
        yield slice(low, high)
        low = high
