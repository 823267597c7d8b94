"""Values and errors of the broker interface (`pipeline/broker/ports.py`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.errors import SieveError
from twinsieve.stages.rows.byte_column import ByteColumn
from twinsieve.stages.rows.listed_records import headers_in, laid_out
from twinsieve.stages.rows.record_columns import RecordColumns
from twinsieve.stages.rows.record_copies import AddedHeaders, CopiedRecords

Header = tuple[str, bytes | None]
"""Name and value of a header. Order and repetitions are kept; a null value differs from an empty one."""

NO_TIMESTAMP = -1
"""A value of `timestamps_ms`. In a message that was read, it means that the message has no timestamp. In a
message to write, it means that the broker sets the timestamp."""

NO_EPOCH = -1
"""Leader epoch of a message or position, if it is unknown."""

OWN_HEADERS = "twinsieve-"
"""Prefix of the names of all headers that this app adds. An input header with this prefix would look like a
verdict of this app, so it is removed; `RecordColumns.marked` finds them."""

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

    The messages stay the bytes that the broker sent. What they hold becomes objects of Python only where
    somebody asks for it, each time anew.

    content: uint8[], in which key, value and headers of all messages lie, as `columns` say; other messages
        may lie in it too
    stamped_by_broker: the timestamps are the times at which the broker wrote the messages (LogAppendTime)
    origins: for dead letters that are redriven: where each message was first, as `str(InputPosition)`; empty
        for all others, which are where they were first
    """

    partition: Partition
    content: NDArray[np.uint8]
    columns: RecordColumns
    stamped_by_broker: bool = False
    origins: list[bytes] = field(default_factory=list)

    @classmethod
    def none(cls, partition: Partition) -> Records:
        """No message."""
        return cls(partition, _NO_CONTENT, _NO_COLUMNS)

    @classmethod
    def of(
        cls,
        partition: Partition,
        offsets: Sequence[int],
        timestamps_ms: Sequence[int] = (),
        keys: Sequence[bytes | None] = (),
        values: Sequence[bytes | None] = (),
        headers: Sequence[Sequence[Header]] = (),
        epochs: Sequence[int] = (),
        *,
        stamped_by_broker: bool = False,
        origins: Sequence[bytes] = (),
    ) -> Records:
        """Messages given by their parts; a column that is empty counts as one without times, keys, values,
        headers or epochs.

        >>> records = Records.of(Partition("posts", 0), [4, 9], keys=[None, b"k"], values=[b"rain", None])
        >>> records.offsets, [*records.keys], [*records.values], records.timestamps_ms
        ([4, 9], [None, b'k'], [b'rain', None], [-1, -1])
        """
        none: list[None] = [None] * len(offsets)
        rows = keys or none, values or none, headers or [()] * len(offsets)
        content, columns = laid_out(*rows, OWN_HEADERS)
        columns.offsets[:] = offsets
        columns.times_ms[:] = timestamps_ms or NO_TIMESTAMP
        columns.epochs[:] = epochs or NO_EPOCH
        return cls(partition, content, columns, stamped_by_broker, [*origins])

    def __len__(self) -> int:
        return len(self.columns.offsets)

    @property
    def offsets(self) -> list[int]:
        """The offset of each message."""
        listed: list[int] = self.columns.offsets.tolist()
        return listed

    @property
    def timestamps_ms(self) -> list[int]:
        """The timestamp of each message, or NO_TIMESTAMP."""
        listed: list[int] = self.columns.times_ms.tolist()
        return listed

    @property
    def epochs(self) -> list[int]:
        """The leader epoch of each message, or NO_EPOCH."""
        listed: list[int] = self.columns.epochs.tolist()
        return listed

    @property
    def keys(self) -> ByteColumn:
        """The key of each message, or None."""
        return ByteColumn(self.content, self.columns.key_at, self.columns.key_sizes)

    @property
    def values(self) -> ByteColumn:
        """The value of each message, or None."""
        return ByteColumn(self.content, self.columns.value_at, self.columns.value_sizes)

    @property
    def headers(self) -> list[Sequence[Header]]:
        """The headers of each message."""
        columns = self.columns
        places = (columns.header_counts, columns.headers_at, columns.headers_sizes)
        raw = self.content.data
        return [
            headers_in(raw[at : at + size], count) if count else ()
            for count, at, size in zip(*(column.tolist() for column in places), strict=True)
        ]

    @property
    def next_offset(self) -> int:
        """The offset after the last message; there must be at least one message."""
        return int(self.columns.offsets[-1]) + 1

    def offset(self, row: int) -> int:
        """The offset of one message."""
        return int(self.columns.offsets[row])

    def epoch(self, row: int) -> int:
        """The leader epoch of one message, or NO_EPOCH."""
        return int(self.columns.epochs[row])

    def slice(self, low: int, high: int) -> Records:
        """The rows [low, high), in the same content; this object itself if these are all rows."""
        if high - low == len(self):
            return self
        columns = self.columns.part(slice(low, high))
        return replace(self, columns=columns, origins=self.origins[low:high])

    def with_headers(self, headers: Sequence[Sequence[Header]]) -> Records:
        """The same messages with other headers."""
        columns = self.offsets, self.timestamps_ms, [*self.keys], [*self.values], headers, self.epochs
        stamped, origins = self.stamped_by_broker, self.origins
        return Records.of(self.partition, *columns, stamped_by_broker=stamped, origins=origins)

    @property
    def span(self) -> tuple[int, int]:
        """Where the first message begins in the content, and where the last one ends."""
        if not len(self):
            return 0, 0
        columns = self.columns
        return int(columns.key_at[0]), int(columns.headers_at[-1]) + int(columns.headers_sizes[-1])

    @classmethod
    def joined(cls, partition: Partition, parts: Sequence[Records], content: NDArray[np.uint8]) -> Records:
        """The messages of all parts, at least one, copied into `content`, which holds their spans."""
        columns, at = [], 0
        for part in parts:
            begin, end = part.span
            content[at : at + end - begin] = part.content[begin:end]
            columns.append(part.columns.moved(at - begin))
            at += end - begin
        whole = columns[0]
        if len(columns) > 1:
            whole = RecordColumns(*map(np.concatenate, zip(*columns, strict=True)))
        stamped = parts[0].stamped_by_broker and parts[-1].stamped_by_broker
        return cls(partition, content, whole, stamped, [*chain.from_iterable(each.origins for each in parts)])


_NO_CONTENT = np.empty(0, np.uint8)
_NO_COLUMNS = RecordColumns.blank(0)


@dataclass(slots=True)
class Messages:
    """n messages to write, in order, given by their parts."""

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

    def only(self, places: NDArray[np.int64]) -> Messages:
        """The messages at these places."""
        columns = self.keys, self.values, self.headers, self.timestamps_ms
        return Messages(*([column[place] for place in places.tolist()] for column in columns))

    def copied(self, now_ms: int) -> CopiedRecords:
        """The messages in the form that `copy_records` writes. A message without a time gets `now_ms`."""
        content, columns = laid_out(self.keys, self.values, self.headers, OWN_HEADERS)
        columns.times_ms[:] = [now_ms if stamp < 0 else stamp for stamp in self.timestamps_ms]
        return CopiedRecords(content, columns, columns.times_ms, AddedHeaders.none(len(self)))


@dataclass(frozen=True, slots=True)
class Copies:
    """m messages to write, in order: messages that were read, unchanged, with headers behind their own.

    records: which hold them; rows: int64[m], which of them; added: the headers, of each of the m
    """

    records: Records
    rows: NDArray[np.int64]
    added: AddedHeaders

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def keys(self) -> ByteColumn:
        """The key of each message, or None."""
        return self.records.keys.only(self.rows)

    def only(self, places: NDArray[np.int64]) -> Copies:
        """The messages at these places among the m."""
        return Copies(self.records, self.rows[places], self.added.only(places))

    def copied(self, now_ms: int) -> CopiedRecords:
        """The messages in the form that `copy_records` writes. A message without a time gets `now_ms`."""
        columns = self.records.columns.part(self.rows)
        times_ms = np.where(columns.times_ms < 0, now_ms, columns.times_ms)
        return CopiedRecords(self.records.content, columns, times_ms, self.added)

    def listed(self) -> Messages:
        """The messages by their parts."""
        records = replace(self.records, columns=self.records.columns.part(self.rows), origins=[])
        pairs = zip(records.headers, self.added.listed(), strict=True)
        headers: list[Sequence[Header]] = [(*own, *added) for own, added in pairs]
        return Messages([*records.keys], [*records.values], headers, records.timestamps_ms)


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


def row_spans(row_bytes: Sequence[int] | NDArray[np.int64], max_bytes: int, max_rows: int) -> Iterator[slice]:
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
