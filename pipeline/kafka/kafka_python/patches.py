"""Every reach into what kafka-python keeps private; no other file has one (`tests/house`).

All of them were made for kafka-python 3.0 from 3.0.12 on, and they are untested with other versions:
`require_version` refuses those. Each says what goes wrong without it, and the upstream issue.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterator, Mapping
from functools import partial
from typing import Any

import kafka
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition, errors
from kafka.consumer.fetcher import Fetcher
from kafka.record.default_records import DefaultRecordBatch
from kafka.record.legacy_records import LegacyRecordBatch
from kafka.structs import OffsetAndMetadata

from twinsieve.pipeline.broker.records import Partition
from twinsieve.pipeline.kafka.errors import undecodable
from twinsieve.pipeline.kafka.kafka_python.unpack import LZ4, unpack
from twinsieve.pipeline.settings import ConfigError

_FIRST_PATCH = 12
"""Of 3.0."""


def require_version() -> None:
    """Check that this kafka-python is one that the patches fit. raises: ConfigError"""
    version = re.match(r"3\.0\.(\d+)", kafka.__version__)
    if version is None or int(version[1]) < _FIRST_PATCH:
        raise ConfigError(
            [
                f"twinsieve: kafka-python {kafka.__version__} is installed, whose insides are unknown here; "
                "install 'kafka-python>=3.0.12,<3.1'"
            ]
        )


def keep_finished_joins(consumer: KafkaConsumer) -> None:
    """A join that ends between two polls counts.

    kafka-python throws the answer of such a join away and joins again; if the member leads the group,
    everybody must join again. Members that poll briefly, or in turn, may then never come to rest. A leader
    that joined because a topic has changed does not even do that: having shared the topic out it sees no
    change any more, and stays without its share. Upstream issue: none found.
    """
    # The next poll looks only at whether the join it left behind is done.
    coordinator = consumer._coordinator
    join = coordinator.join_group_async

    async def join_or_take(timeout_ms: float | None = None) -> Any:
        task = coordinator._join_task
        # Whoever fell out of the group meanwhile is no longer rebalancing, and the answer is void.
        if task is not None and task.succeeded() and coordinator.rebalance_in_progress():
            coordinator._join_task = _Answered(task.value)
        return await join(timeout_ms)

    needs = coordinator.need_rejoin

    def needs_or_has_begun() -> bool:
        return bool(needs() or coordinator.rejoining)

    coordinator.join_group_async = join_or_take
    coordinator.need_rejoin = needs_or_has_begun


class _Answered:
    """A future that has its value and does not say so, as a join must that the next poll is to wait for."""

    is_done = False

    def __init__(self, value: bytes) -> None:
        self.value = value

    def add_callback(self, call: Callable[[bytes], object]) -> None:
        call(self.value)

    def add_errback(self, call: Callable[[BaseException], object]) -> None:
        """Never called: the join succeeded."""

    def succeeded(self) -> bool:
        return True

    def __await__(self) -> Generator[None, None, bytes]:
        yield from ()
        return self.value


def watch_fencing(consumer: KafkaConsumer) -> Callable[[], bool]:
    """Whether a heartbeat of this consumer found that another process has its member name.

    kafka-python logs that and sends no more heartbeats, but poll() continues to return records and later
    returns nothing, forever. Upstream issue: none found (pull request 2625 says that the error is raised).
    """
    coordinator = consumer._coordinator
    send = coordinator._send_heartbeat_request
    fenced: list[Exception] = []

    async def send_and_note() -> Any:
        try:
            return await send()
        except errors.FencedInstanceIdError as error:
            fenced.append(error)
            raise

    coordinator._send_heartbeat_request = send_and_note
    return lambda: bool(fenced)


def seek_with_epoch(consumer: KafkaConsumer, partition: TopicPartition, offset: int, epoch: int) -> None:
    """Have the client ask the leader, before it fetches, where that epoch ends; seek() takes no epoch.

    Upstream issue: none found.
    """
    consumer._subscription.assignment[partition].seek(OffsetAndMetadata(offset, "", epoch))


def free_paused_fetches(consumer: KafkaConsumer, aside_bytes: int) -> None:
    """Let the rest of a fetch be delivered that was put aside when its partition was paused.

    The partition gets that rest back only while this slot is None. Once used the slot holds an exhausted
    object instead, so that the partition stays silent after resume(). Upstream issue: none found
    (pull request 2981 put the fetch aside).

    aside_bytes: a rest that is in the midst of a batch of more, unpacked, is given up and fetched again; else
        each paused partition might keep as much as `kafka.max_unpacked_bytes`
    """
    fetcher = consumer._fetcher
    aside = fetcher._paused_partition_records
    for partition, records in list(aside.items()):
        if records.unpacked_bytes > aside_bytes:
            records.drain()
            del aside[partition]
    records = fetcher._next_partition_records
    if (
        records
        and records.unpacked_bytes > aside_bytes
        and fetcher._subscriptions.is_paused(records.topic_partition)
    ):
        records.drain()
    if not records:
        fetcher._next_partition_records = None


def bound_polls(consumer: KafkaConsumer, max_bytes: int) -> Callable[[], None]:
    """Have a poll end once it has taken `max_bytes`, unpacked.

    It has one message beyond; where a batch begins with small ones and goes on with large ones, at worst the
    rest of that batch.

    Returns what is to be called before each poll. kafka-python counts messages alone, and unpacks batch after
    batch until it has enough of them: 20 batches that take some KB each may be a gigabyte. What is left stays
    packed. Upstream issue: none found.
    """
    fetcher = consumer._fetcher
    append = fetcher._append
    left = 0

    def begin() -> None:
        nonlocal left
        left = max_bytes

    def append_some(drained: Any, part: Any, max_records: int, *more: Any) -> int:
        nonlocal left
        before = part.bytes_read
        count: int = append(drained, part, min(max_records, part.records_of(left)), *more)
        left -= part.bytes_read - before
        # As many as may come end the poll.
        return count if left > 0 else max_records

    fetcher._append = append_some
    return begin


def forget_brokers(client: KafkaAdminClient) -> None:
    """Have an admin client ask again which brokers there are.

    It asks who leads, but keeps its list of brokers for five minutes: one that was away and is back would be
    unknown for as long. Upstream issue: none found.
    """
    client._manager.cluster.request_update()


def forget_coordinators(client: KafkaAdminClient) -> None:
    """Have an admin client ask again which broker coordinates a group, and which one makes topics.

    It remembers the first answers for good: a group whose coordinator moved, or died, would never be answered
    for again, and no topic made while the broker is away that was once named. Upstream issue: none found.
    """
    client._manager.cluster._coordinators.clear()
    client._controller_id = None


def raise_refused_settings(client: KafkaAdminClient) -> None:
    """Have a question for settings fail where the broker refuses one of its topics.

    kafka-python hands out no settings for that topic, as if all of them were unknown to the broker. Upstream
    issue: none found.
    """
    process = client._describe_configs_process_responses

    def checked(responses: list[Any], *more: Any) -> Any:
        for row in (row for response in responses for row in response.results):
            if row.error_code:
                raise errors.for_code(row.error_code)(row.resource_name)
        return process(responses, *more)

    client._describe_configs_process_responses = checked


def ask_for_stable_offsets(client: KafkaAdminClient, *, stable: bool) -> None:
    """With `stable`, an offset that an open transaction is about to move is an error that passes, not the one
    before it. kafka-python asks so for consumers alone. Upstream issue: none found."""

    def requests(groups: Mapping[str, Any]) -> Iterator[tuple[str | None, Any]]:
        for group, request in KafkaAdminClient._list_group_offsets_requests(client, groups):
            request.require_stable = stable
            yield group, request

    client._list_group_offsets_requests = requests


def cut_off(producer: KafkaProducer) -> None:
    """Ends a producer at once; what it has not sent yet is never sent.

    close(timeout=0) waits for waiting batches first and raises when there are any, which leaves its
    thread running and sending. Upstream issue: none found (1052 was the same of version 1).
    """
    producer._sender.force_close()


def first_error(producer: KafkaProducer) -> Exception | None:
    """What failed the transaction; later calls tell it in text alone. Upstream issue: none found."""
    error: Exception | None = producer._transaction_manager.last_error
    return error


def never_split(producer: KafkaProducer) -> None:
    """A batch that its topic refuses for its size fails, and so does its transaction.

    kafka-python would cut it in two and go on, but flush() takes the first batch for unfinished ("Future not
    done") and raises; what comes next is put into batches of the old size again. Upstream issue: none found.
    """
    producer._sender._can_split = lambda *_: False


def append_time(future: Any) -> int | None:
    """The time at which the broker wrote a message that it has acknowledged, ms since 1970; None where the
    topic keeps the time of whoever sent it.

    What kafka-python hands out is either of the two, and does not say which. Upstream issue: none found.
    """
    _, stamp, _ = future._produce_future.value
    return None if stamp is None or stamp < 0 else int(stamp)


def decode_safely(consumer: KafkaConsumer, max_bytes: int) -> None:
    """A batch that cannot be decoded is an error of one poll, and header names need not be UTF-8.

    max_bytes: a batch that unpacks to more cannot be decoded

    kafka-python keeps the batch that failed as the one to go on with, and the poll after the next seek
    turns in a circle forever. It unpacks a batch whatever comes out. Upstream issue: none found.
    """
    # The fetcher makes what holds a partition's batches by this name.
    consumer._fetcher.PartitionRecords = partial(_PartitionRecords, max_bytes)


class _PartitionRecords(Fetcher.PartitionRecords):  # type: ignore[misc]
    def __init__(
        self, max_bytes: int, offset: int, partition: TopicPartition, records: Any, **named: Any
    ) -> None:
        self._batches = _Batches(records, max_bytes)
        super().__init__(offset, partition, self._batches, **named)

    @property
    def unpacked_bytes(self) -> int:
        """Of the batch that it is in the midst of; 0 between two."""
        return self._batches.bytes_held

    def records_of(self, size: int) -> int:
        """How many records have this many bytes, as the rest of the batch goes; 1 where it is packed."""
        left, bytes_left = self._batches.records_left, self._batches.bytes_left
        return max(1, left * size // bytes_left) if bytes_left else 1

    def take(self, n: int | None = None) -> list[Any]:
        """The next records, at most n and all of one batch, so that no other one is unpacked unasked."""
        rows: list[Any] = []
        if not self._batches.records_left:
            # Unpacks the next batch, which tells how many it has.
            rows = super().take(1)
        more = self._batches.records_left
        if n is not None:
            more = min(more, n - len(rows))
        if more > 0 and self:
            try:
                rows += super().take(more)
            except Exception as error:
                if not rows:
                    raise
                self._next_inline_exception = error
        self._batches.free_if_read()
        return rows

    def _unpack_records(self, partition: TopicPartition, batches: _Batches, *more: Any) -> Iterator[Any]:
        try:
            yield from super()._unpack_records(partition, batches, *more)
        except MemoryError:
            self.drain()
            raise
        except Exception as error:
            # Anything at all: each decompressor has errors of its own.
            self.drain()
            batch = batches.last
            first, after = (0, None) if batch is None else (batch.base_offset, batch.next_offset)
            offset = max(self.next_fetch_offset, first)
            raise undecodable(Partition(*partition), offset, _why(error), after) from error


def _why(error: Exception) -> str:
    message = " ".join(str(error.args[0]).split())[:200] if error.args else type(error).__name__
    return f"{message}; install it" if isinstance(error, errors.UnsupportedCodecError) else message


class _Batches:
    """Record batches of one fetch; `last` is the one that was begun last."""

    def __init__(self, records: Any, max_bytes: int) -> None:
        self._records = records
        self._max_bytes = max_bytes
        self.last: Any = None

    @property
    def records_left(self) -> int:
        """Records of the last batch that are still to come; 0 where that is not known."""
        return self.last.records_left if type(self.last) is _Batch else 0

    @property
    def bytes_left(self) -> int:
        """Bytes of these records."""
        return self.last.bytes_left if type(self.last) is _Batch else 0

    @property
    def bytes_held(self) -> int:
        """Bytes that the last batch holds unpacked, until all of it was read."""
        return self.last.unpacked_bytes if type(self.last) is _Batch else 0

    def free_if_read(self) -> None:
        """Forget what the last batch holds once all of it was read."""
        if type(self.last) is _Batch:
            self.last.free_if_read()

    def next_batch(self) -> Any:
        self.last = None
        batch = self._records.next_batch()
        if type(batch) is DefaultRecordBatch:
            batch = _Batch(batch._buffer, self._max_bytes)
        elif type(batch) is LegacyRecordBatch:
            batch = _OldBatch(batch._buffer, batch.magic, self._max_bytes)
        self.last = batch
        return batch


class _OldBatch(LegacyRecordBatch):  # type: ignore[misc]
    """One of a format before Kafka 0.11, which has no headers, unpacked up to a limit."""

    def __init__(self, buffer: memoryview, magic: int, max_bytes: int) -> None:
        super().__init__(buffer, magic)
        self._max_bytes = max_bytes

    def _decompress(self, key_offset: int) -> bytes:
        codec = self.compression_type
        if self.magic == 0 and codec == LZ4:
            # Its frames have a wrong checksum; no broker since 0.10 writes them.
            raise errors.UnsupportedCodecError("lz4 as Kafka wrote it before 0.10")
        self._assert_has_codec(codec)
        _, packed = self._read_key_value(key_offset)
        if packed is None:
            raise errors.CorruptRecordError("a compressed message without a value")
        return unpack(codec, packed, self._max_bytes)


class _Batch(DefaultRecordBatch):  # type: ignore[misc]
    """One whose header names may be any bytes, unpacked up to a limit."""

    _buffer: memoryview | bytes | bytearray
    _pos: int
    _decompressed: bool
    _num_records: int
    _next_record_index: int

    def __init__(self, buffer: memoryview, max_bytes: int) -> None:
        super().__init__(buffer)
        self._max_bytes = max_bytes

    def _maybe_uncompress(self) -> None:
        codec = self.compression_type
        if not self._decompressed and codec != self.CODEC_NONE:
            self._assert_has_codec(codec)
            packed = memoryview(self._buffer)[self._pos :].tobytes()
            self._buffer = unpack(codec, packed, self._max_bytes)
            self._pos = 0
        self._decompressed = True

    @property
    def records_left(self) -> int:
        """Records still to come of a batch that was begun."""
        return self._num_records - self._next_record_index if self._decompressed else 0

    @property
    def bytes_left(self) -> int:
        """Bytes of these records."""
        return len(self._buffer) - self._pos if self._decompressed else 0

    @property
    def unpacked_bytes(self) -> int:
        """Bytes of a batch that was begun."""
        return len(self._buffer) if self._decompressed else 0

    def free_if_read(self) -> None:
        """Forget the content once all of it was read; it would stay until the next batch is asked for."""
        if self._decompressed and not self.records_left and self._pos == len(self._buffer):
            self._buffer, self._pos = b"", 0

    def _read_msg(self) -> Any:
        try:
            return super()._read_msg()
        except UnicodeDecodeError:
            # Slower, so only for the rest of a batch that needs it. Nothing was consumed of this message.
            self._buffer = _Buffer(self._buffer)
            return super()._read_msg()


class _Buffer(bytearray):
    """Bytes whose parts decode whatever they hold."""

    def __getitem__(self, key: Any) -> Any:
        part = super().__getitem__(key)
        return _Buffer(part) if isinstance(part, bytearray) else part

    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:  # noqa: ARG002
        try:
            return super().decode(encoding)
        except UnicodeDecodeError:
            return _Name(super().decode(encoding, "surrogateescape"))


class _Name(str):
    """A header name that is not UTF-8, and is written as the bytes that it came as."""

    __slots__ = ()

    def encode(self, encoding: str = "utf-8", errors: str = "strict") -> bytes:  # noqa: ARG002
        return super().encode(encoding, "surrogateescape")
