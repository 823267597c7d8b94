"""All uses of private attributes of kafka-python; no other file uses one (`tests/house` checks this).

They were made for kafka-python 3.0 from 3.0.12 on. Other versions are untested, so `require_version` refuses
them. Each docstring says what goes wrong without the patch, names the upstream issue, and says whether it is
for a bug or the library just gives no access, and with which version it was last needed.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import kafka
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition, errors
from kafka.consumer.fetcher import Fetcher
from kafka.net.compat import KafkaNetClient
from kafka.producer.future import FutureRecordMetadata
from kafka.producer.producer_batch import ProducerBatch
from kafka.record.default_records import DefaultRecordBatch
from kafka.record.legacy_records import LegacyRecordBatch
from kafka.record.memory_records import MemoryRecordsBuilder
from kafka.structs import OffsetAndMetadata

from twinsieve.pipeline.broker.records import Partition, UnreadableError
from twinsieve.pipeline.kafka.deadline import UNKNOWN_S
from twinsieve.pipeline.kafka.unpack_batches import LZ4, unpack
from twinsieve.pipeline.settings import ConfigError
from twinsieve.stages.rows.record_batch import EncodedBatch

_FIRST_PATCH = 12
"""Lowest patch release of kafka-python 3.0 that is accepted."""


def require_version() -> None:
    """Check that the patches fit the installed version of kafka-python. raises: ConfigError"""
    version = re.match(r"3\.0\.(\d+)", kafka.__version__)
    if version is None or int(version[1]) < _FIRST_PATCH:
        raise ConfigError(
            [
                f"twinsieve: kafka-python {kafka.__version__} is installed, which is not supported; "
                "install 'kafka-python>=3.0.12,<3.1'"
            ]
        )


def network_thread(client: KafkaNetClient) -> int | None:
    """The id of the thread in which this client sends and receives; None if it has no thread of its own.

    Access; last needed with 3.0.12.
    """
    thread = client._net._io_thread
    return None if thread is None else thread.ident


def keep_finished_joins(consumer: KafkaConsumer) -> None:
    """Make the consumer accept the answer to a group join that arrives between two polls.

    Without this patch kafka-python drops such an answer and joins again. If the member leads the group, all
    other members must join again too, so members with short polls may rejoin forever. If the leader joined
    because a topic has changed, it does not even join again: it has already assigned the partitions, sees no
    further change, and keeps running without its own partitions. Upstream issue: none found.

    Bug; last needed with 3.0.12.
    """
    # The next poll of kafka-python only checks whether the earlier join is done.
    coordinator = consumer._coordinator
    join = coordinator.join_group_async

    async def join_or_take(timeout_ms: float | None = None) -> Any:
        task = coordinator._join_task
        # If the member lost its place in the group meanwhile, it is no longer rebalancing, and the answer to
        # its join is invalid.
        if task is not None and task.succeeded() and coordinator.rebalance_in_progress():
            coordinator._join_task = _Answered(task.value)
        return await join(timeout_ms)

    needs = coordinator.need_rejoin

    def needs_or_has_begun() -> bool:
        return bool(needs() or coordinator.rejoining)

    coordinator.join_group_async = join_or_take
    coordinator.need_rejoin = needs_or_has_begun


class _Answered:
    """A future that has its value, but whose `is_done` is False, so that the next poll still waits for it."""

    is_done = False

    def __init__(self, value: bytes) -> None:
        self.value = value

    def add_callback(self, call: Callable[[bytes], object]) -> None:
        call(self.value)

    def add_errback(self, call: Callable[[BaseException], object]) -> None:
        """Ignored, because the join succeeded."""

    def succeeded(self) -> bool:
        return True

    def __await__(self) -> Generator[None, None, bytes]:
        yield from ()
        return self.value


def watch_fencing(consumer: KafkaConsumer) -> Callable[[], bool]:
    """A function that returns whether another process has this consumer's member name, by its heartbeats.

    Without this patch kafka-python only logs that and stops its heartbeats. poll() still returns records for
    a while, later nothing, forever. Upstream issue: none found (pull request 2625 claims that the error is
    raised).

    Bug; last needed with 3.0.12.
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
    """Seek, and make the client ask the partition's leader where `epoch` ends before it fetches.

    The answer shows whether the partition has lost messages. The public seek() takes no epoch. Upstream
    issue: none found.

    Access; last needed with 3.0.12.
    """
    consumer._subscription.assignment[partition].seek(OffsetAndMetadata(offset, "", epoch))


def free_paused_fetches(consumer: KafkaConsumer, aside_bytes: int) -> None:
    """Make the consumer deliver, after resume(), the rest of a fetch kept while its partition was paused.

    kafka-python returns to a kept rest only while `_next_partition_records` is None. After the first fetch
    that attribute holds an exhausted object instead, so the partition would deliver nothing after resume().
    Upstream issue: none found (pull request 2981 introduced the keeping).

    aside_bytes: a kept rest whose current batch is larger than this, unpacked, is dropped and fetched again.
        Otherwise each paused partition might keep as much as `kafka.max_unpacked_bytes`

    Bug; last needed with 3.0.12.
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


def has_fetched(consumer: KafkaConsumer) -> bool:
    """Whether records lie in the client, so that the next poll returns these and asks for others later.

    Access; last needed with 3.0.12.
    """
    fetcher = consumer._fetcher
    return bool(fetcher._completed_fetches or fetcher._next_partition_records)


def bound_polls(consumer: KafkaConsumer, max_bytes: int) -> Callable[[], None]:
    """Make a poll end when its messages have `max_bytes`, unpacked.

    returns: a function that must be called before each poll

    A poll may exceed the limit by one message. If a batch begins with small messages and continues with large
    ones, the poll may exceed it by the rest of that batch.

    Without this patch kafka-python counts only messages, and unpacks batches until it has enough messages: 20
    batches of some KB each may unpack to a gigabyte. With it the batches after the limit stay packed.
    Upstream issue: none found.

    Bug; last needed with 3.0.12.
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
        # Reporting the maximum number of messages makes kafka-python end the poll.
        return count if left > 0 else max_records

    fetcher._append = append_some
    return begin


def forget_brokers(client: KafkaAdminClient) -> None:
    """Make an admin client request the list of brokers again.

    The client requests partition leaders each time, but keeps its list of brokers for five minutes. Without
    this patch a broker that was away and is back could be unknown for that long. Upstream issue: none found.

    Bug; last needed with 3.0.12.
    """
    client._manager.cluster.request_update()


def forget_coordinators(client: KafkaAdminClient) -> None:
    """Make an admin client look up again the coordinator of each group, and the controller.

    kafka-python keeps the first answers forever. Without this patch, requests for a group fail forever after
    its coordinator has changed, and topics cannot be created while the broker that was the controller is
    away. Upstream issue: none found.

    Bug; last needed with 3.0.12.
    """
    client._manager.cluster._coordinators.clear()
    client._controller_id = None


def raise_refused_settings(client: KafkaAdminClient) -> None:
    """Make a request for settings raise an error if the broker refuses one of its topics.

    Without this patch kafka-python returns no settings for that topic, as if it had none. Upstream issue:
    none found.

    Bug; last needed with 3.0.12.
    """
    process = client._describe_configs_process_responses

    def checked(responses: list[Any], *more: Any) -> Any:
        for row in (row for response in responses for row in response.results):
            if row.error_code:
                raise errors.for_code(row.error_code)(row.resource_name)
        return process(responses, *more)

    client._describe_configs_process_responses = checked


def ask_for_stable_offsets(client: KafkaAdminClient, *, stable: bool) -> None:
    """Set whether an admin client requests only stable offsets of a group.

    With `stable`, if an open transaction holds a newer offset, the request fails with a retryable error.
    Without it, the broker returns the offset before that transaction. kafka-python sets this only for
    consumers. Upstream issue: none found.

    Access; last needed with 3.0.12.
    """

    def requests(groups: Mapping[str, Any]) -> Iterator[tuple[str | None, Any]]:
        for group, request in KafkaAdminClient._list_group_offsets_requests(client, groups):
            request.require_stable = stable
            yield group, request

    client._list_group_offsets_requests = requests


def cut_off(producer: KafkaProducer) -> None:
    """End a producer at once; messages that it has not sent yet are never sent.

    close(timeout=0) raises an error if batches are queued, and leaves the producer's thread running and
    sending. Upstream issue: none found (issue 1052 was the same in version 1).

    Bug; last needed with 3.0.12.
    """
    producer._sender.force_close()


def first_error(producer: KafkaProducer) -> Exception | None:
    """The error that made the transaction fail, or None; later calls contain it only as text.

    Upstream issue: none found.

    Access; last needed with 3.0.12.
    """
    error: Exception | None = producer._transaction_manager.last_error
    return error


def never_split(producer: KafkaProducer) -> None:
    """Make a batch that its topic refuses for its size fail, together with its transaction.

    Without this patch kafka-python splits the batch and continues. But flush() considers the original batch
    unfinished and raises ("Future not done"), and later batches have the old size again. Upstream issue: none
    found.

    Bug; last needed with 3.0.12.
    """
    producer._sender._can_split = lambda *_: False


def know_partition(producer: KafkaProducer, partition: TopicPartition) -> None:
    """Make a producer ask for metadata until they have this partition, for `UNKNOWN_S` at most.

    Otherwise a producer refuses messages for a partition that was added after its last metadata, and does not
    ask for new ones. Upstream issue: none found.

    Bug; last needed with 3.0.12.
    raises: KafkaTimeoutError or AuthorizationError if the metadata of an unknown topic do not arrive
    """
    known = producer._metadata.partitions_for_topic(partition.topic)
    if known is None:
        known = producer._wait_on_metadata(partition.topic, producer.config["max_block_ms"])
    deadline_s = time.monotonic() + UNKNOWN_S
    while partition.partition not in known and time.monotonic() < deadline_s:
        answered = threading.Event()
        producer._metadata.request_update().add_both(lambda *_, answered=answered: answered.set())
        producer._sender.wakeup()
        answered.wait(max(0.0, deadline_s - time.monotonic()))
        known = producer._metadata.partitions_for_topic(partition.topic) or ()


def require_partition(producer: KafkaProducer, partition: TopicPartition) -> None:
    """Check that the producer can send to this partition, as `send` does. raises: what `send` raises

    Access; last needed with 3.0.12.
    """
    if producer._closed or producer._accumulator._closed:
        raise errors.IllegalStateError("KafkaProducer already closed!")
    know_partition(producer, partition)
    producer._partition(partition.topic, partition.partition, None, None, None, None)


def append_batches(
    producer: KafkaProducer, batches: Sequence[tuple[TopicPartition, EncodedBatch]]
) -> list[Any]:
    """Queue record batches for sending, as `send` does row by row; returns a future of each.

    `send` takes locks and makes a future for each row, and encodes a row with a call for each byte of a
    number. It also adds each partition to the transaction by itself: while the broker adds one, it refuses
    the batches of another, each of which then waits before it is sent again. Here all partitions are added
    with one request. With `send` 14,900 messages a second came through, with batches 27,200 (`bench.peers`).
    Upstream issue: none found.

    Access; last needed with 3.0.12.
    raises: what `send` raises
    """
    accumulator, transaction = producer._accumulator, producer._transaction_manager
    if transaction is not None and transaction.is_transactional():
        # The sending thread takes the same lock before it looks for partitions to add.
        with transaction._lock:
            for partition in {partition for partition, _ in batches}:
                transaction.maybe_add_partition_to_transaction(partition)
    made = [_batch_of(accumulator, partition, encoded) for partition, encoded in batches]
    accumulator._appends_in_progress.increment()
    try:
        for batch in made:
            with accumulator._tp_lock(batch.topic_partition):
                accumulator._batches[batch.topic_partition].append(batch)
                accumulator._incomplete.add(batch)
    finally:
        accumulator._appends_in_progress.decrement()
    producer._sender.wakeup()
    return [batch._record_futures[0] for batch in made]


def _batch_of(accumulator: Any, partition: TopicPartition, encoded: EncodedBatch) -> ProducerBatch:
    """A batch as the producer itself makes one; its only future is that of its first record."""
    config = accumulator.config
    records = MemoryRecordsBuilder(
        config["message_version"], config["compression_attrs"], config["batch_size"]
    )
    builder = records._builder
    builder._buffer += encoded.records
    builder._num_records, builder._last_offset = encoded.rows, encoded.rows - 1
    builder._first_timestamp, builder._max_timestamp = encoded.first_ms, encoded.latest_ms
    records._next_offset = encoded.rows
    batch = ProducerBatch(partition, records)
    batch.max_record_size = len(encoded.records)
    future = FutureRecordMetadata(batch.produce_future, 0, encoded.first_ms, None, -1, -1, -1)
    batch._record_futures.append(future)
    return batch


def append_time(future: Any) -> int | None:
    """Time at which the broker wrote an acknowledged message, ms since 1970; None if the topic keeps the
    producer's time.

    kafka-python's public result is either of the two times, without saying which. Upstream issue: none found.

    Access; last needed with 3.0.12.
    """
    _, stamp, _ = future._produce_future.value
    return None if stamp is None or stamp < 0 else int(stamp)


def decode_safely(consumer: KafkaConsumer, max_bytes: int) -> None:
    """Make a batch that cannot be decoded an error of one poll, and accept header names that are not UTF-8.

    max_bytes: a batch that unpacks to more counts as one that cannot be decoded

    Without this patch kafka-python keeps the failed batch as its current one, and the poll after the next
    seek loops forever. It also unpacks a batch without a size limit. Upstream issue: none found.

    Bug; last needed with 3.0.12.
    """
    # The fetcher uses this attribute as the class of the object that holds a partition's batches.
    consumer._fetcher.PartitionRecords = partial(_PartitionRecords, max_bytes)


class _PartitionRecords(Fetcher.PartitionRecords):  # type: ignore[misc]
    def __init__(
        self, max_bytes: int, offset: int, partition: TopicPartition, records: Any, **named: Any
    ) -> None:
        self._batches = _Batches(records, max_bytes)
        super().__init__(offset, partition, self._batches, **named)

    @property
    def unpacked_bytes(self) -> int:
        """Unpacked bytes of the batch that is being read; 0 between two batches."""
        return self._batches.bytes_held

    def records_of(self, size: int) -> int:
        """Estimate of how many of the next records fit into `size` bytes, at least 1.

        Uses the mean size of the records left in the batch; 1 if the batch is not unpacked yet.
        """
        left, bytes_left = self._batches.records_left, self._batches.bytes_left
        return max(1, left * size // bytes_left) if bytes_left else 1

    def take(self, n: int | None = None) -> list[Any]:
        """The next records, at most n, all of one batch, so that no further batch is unpacked needlessly."""
        rows: list[Any] = []
        if not self._batches.records_left:
            # Taking one record unpacks the next batch; afterwards its number of records is known.
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
            # Catch every class: each decompressor raises its own errors.
            self.drain()
            batch = batches.last
            offset, after = self.next_fetch_offset, None
            if batch is not None:
                offset, after = max(offset, batch.base_offset), _end_of(batch)
            raise UnreadableError(Partition(*partition), offset, _why(error), after) from error


def _end_of(batch: Any) -> int:
    """The offset after a batch, from its header. That of an old compressed batch is its last one."""
    return int(getattr(batch, "next_offset", batch.base_offset + 1))


def _why(error: Exception) -> str:
    message = " ".join(str(error.args[0]).split())[:200] if error.args else type(error).__name__
    return f"{message}; install it" if isinstance(error, errors.UnsupportedCodecError) else message


class _Batches:
    """The record batches of one fetch; `last` is the batch that `next_batch` returned last."""

    def __init__(self, records: Any, max_bytes: int) -> None:
        self._records = records
        self._max_bytes = max_bytes
        self.last: Any = None

    @property
    def records_left(self) -> int:
        """Number of unread records in the last batch; 0 if it is not known."""
        return self.last.records_left if type(self.last) is _Batch else 0

    @property
    def bytes_left(self) -> int:
        """Bytes of the unread records in the last batch; 0 if it is not known."""
        return self.last.bytes_left if type(self.last) is _Batch else 0

    @property
    def bytes_held(self) -> int:
        """Unpacked bytes that the last batch keeps in memory; `free_if_read` frees them."""
        return self.last.unpacked_bytes if type(self.last) is _Batch else 0

    def free_if_read(self) -> None:
        """Free the content of the last batch if all of it was read."""
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
    """A record batch in a format from before Kafka 0.11, which has no headers; unpacked up to a limit."""

    def __init__(self, buffer: memoryview, magic: int, max_bytes: int) -> None:
        super().__init__(buffer, magic)
        self._max_bytes = max_bytes

    def _decompress(self, key_offset: int) -> bytes:
        codec = self.compression_type
        if self.magic == 0 and codec == LZ4:
            # The lz4 frames of this format have a wrong checksum; no broker since 0.10 writes them.
            raise errors.UnsupportedCodecError("lz4 as Kafka wrote it before 0.10")
        self._assert_has_codec(codec)
        _, packed = self._read_key_value(key_offset)
        if packed is None:
            raise errors.CorruptRecordError("a compressed message without a value")
        return unpack(codec, packed, self._max_bytes)


class _Batch(DefaultRecordBatch):  # type: ignore[misc]
    """A record batch whose header names may be any bytes; unpacked up to a limit."""

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
        """Number of unread records; 0 before the batch is unpacked."""
        return self._num_records - self._next_record_index if self._decompressed else 0

    @property
    def bytes_left(self) -> int:
        """Bytes of the unread records; 0 before the batch is unpacked."""
        return len(self._buffer) - self._pos if self._decompressed else 0

    @property
    def unpacked_bytes(self) -> int:
        """Bytes of the unpacked content; 0 before the batch is unpacked."""
        return len(self._buffer) if self._decompressed else 0

    def free_if_read(self) -> None:
        """Free the content if all of it was read; otherwise it would stay until the next batch is read."""
        if self._decompressed and not self.records_left and self._pos == len(self._buffer):
            self._buffer, self._pos = b"", 0

    def _read_msg(self) -> Any:
        try:
            return super()._read_msg()
        except UnicodeDecodeError:
            # `_Buffer` is slower, so use it only for the rest of a batch that needs it. The failed call has
            # not advanced `_pos`, so it can be repeated.
            self._buffer = _Buffer(self._buffer)
            return super()._read_msg()


class _Buffer(bytearray):
    """A byte buffer whose slices decode any bytes as a string, also bytes that are not UTF-8."""

    def __getitem__(self, key: Any) -> Any:
        part = super().__getitem__(key)
        return _Buffer(part) if isinstance(part, bytearray) else part

    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:  # noqa: ARG002
        try:
            return super().decode(encoding)
        except UnicodeDecodeError:
            return _Name(super().decode(encoding, "surrogateescape"))


class _Name(str):
    """A header name that is not UTF-8; `encode` returns the original bytes."""

    __slots__ = ()

    def encode(self, encoding: str = "utf-8", errors: str = "strict") -> bytes:  # noqa: ARG002
        return super().encode(encoding, "surrogateescape")
