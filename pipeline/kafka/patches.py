"""All uses of private attributes of kafka-python; no other file uses one (`tests/house` checks this).

They were made for kafka-python 3.0 from 3.0.12 on. Other versions are untested, so `require_version` refuses
them. Each docstring says what goes wrong without the patch, names the upstream issue, and says whether it is
for a bug or the library just gives no access, and with which version it was last needed.
"""

from __future__ import annotations

import re
import struct
import threading
import time
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any

import kafka
import numpy as np
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition, errors
from kafka.consumer.fetcher import Fetcher, IsolationLevel
from kafka.net.compat import KafkaNetClient
from kafka.producer.future import FutureRecordMetadata
from kafka.producer.producer_batch import ProducerBatch
from kafka.record.default_records import DefaultRecordBatch
from kafka.record.legacy_records import LegacyRecordBatch
from kafka.record.memory_records import MemoryRecords, MemoryRecordsBuilder
from kafka.structs import ConsumerGroupMetadata, OffsetAndMetadata

from twinsieve.pipeline.broker.records import NO_TIMESTAMP, Copies, Partition, Records, UnreadableError
from twinsieve.pipeline.kafka.deadline import UNKNOWN_S
from twinsieve.pipeline.kafka.record_batches import BatchGroup, BatchHeader, header_of, is_whole
from twinsieve.pipeline.kafka.unpack_batches import LZ4, unpack
from twinsieve.pipeline.settings import ConfigError
from twinsieve.stages.rows.record_copies import AddedHeaders, EncodedBatch, copy_records

_LOG_APPEND_TIME = 1
_MAX_INT64 = (1 << 63) - 1
_NO_MARK = (errors.KafkaError, struct.error, ValueError, TypeError, IndexError, StopIteration)
"""What kafka-python raises of a mark at the end of a transaction that it cannot read."""
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


def check_batches() -> None:
    """Write a record batch with kafka-python's producer, read it with its consumer, and compare.

    So a kafka-python whose private parts are others than those that are used here is an error of the start,
    and of no message. raises: ConfigError
    """
    at = Partition("check", 0)
    given = Records.of(at, [0, 1], [7, 8], [b"key", None], [b"value", None], [(("name", b"text"),), ()])
    copies = Copies(given, np.arange(2), AddedHeaders.none(2))
    config = {"message_version": 2, "compression_attrs": LZ4, "batch_size": 1 << 10}
    try:
        (encoded,) = copy_records([copies.copied(0)], 1 << 10)
        written = _batch_of(SimpleNamespace(config=config), TopicPartition(*at), encoded).records
        written.close()
        consumer: Any = SimpleNamespace(_fetcher=SimpleNamespace())
        read_in_columns(consumer, 1 << 10)
        part = consumer._fetcher.PartitionRecords(
            0, TopicPartition(*at), MemoryRecords(bytes(written.buffer())), on_drain=lambda _: None
        )
        (found,) = part.take()
        why = "" if Copies(found, copies.rows, copies.added).listed() == copies.listed() else "it is another"
    except Exception as error:  # noqa: BLE001 - whatever the library does instead
        why = f"{type(error).__name__}: {error}"
    if why:
        raise ConfigError(
            [
                f"twinsieve: kafka-python {kafka.__version__} does not read a record batch as it was written "
                f"({why}); install 'kafka-python==3.0.12'"
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


def fetch_late(consumer: KafkaConsumer) -> Callable[[], bool]:
    """Make a poll that returns all that the broker had ask for nothing more, so that the next poll does.

    returns: a function that sends the next request without waiting for its answer, and says whether records
        lie in the client already

    Without this patch kafka-python asks for the next records when it returns some, and gets what the broker
    has then: often one or two. All that come later wait at the broker until these are polled, so they come
    out one round late. If more is there than was returned, it asks at once. Upstream issue: none found.

    Access; last needed with 3.0.12.
    """
    fetcher, states = consumer._fetcher, consumer._subscription.assignment
    fetched, send = fetcher.fetched_records, fetcher.send_fetches
    drained: Collection[TopicPartition] = ()

    def fetched_and_noted(*given: Any, **named: Any) -> Any:
        nonlocal drained
        drained = ()
        records, is_partial = fetched(*given, **named)
        drained = records.keys()
        return records, is_partial

    def is_more_there(partition: TopicPartition) -> bool:
        state = states.get(partition)
        # A rebalance or a seek on another thread takes the position away.
        position = None if state is None else state.position
        return position is None or state.highwater is None or position.offset < state.highwater

    def send_if_more_is_there() -> None:
        if not drained or any(map(is_more_there, drained)):
            send()

    def send_now() -> bool:
        send()
        return bool(fetcher._completed_fetches or fetcher._next_partition_records)

    fetcher.fetched_records, fetcher.send_fetches = fetched_and_noted, send_if_more_is_there
    return send_now


def bound_polls(consumer: KafkaConsumer, max_bytes: int) -> Callable[[], None]:
    """Make a poll end when its messages have `max_bytes`, unpacked.

    consumer: after `read_in_columns`
    returns: a function that must be called before each poll

    A poll may exceed the limit by one message.

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
        part.room = left
        before = part.bytes_read, part.records_read
        append(drained, part, max_records, *more)
        left -= part.bytes_read - before[0]
        # Reporting the maximum number of messages makes kafka-python end the poll.
        return part.records_read - before[1] if left > 0 else max_records

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


def send_offsets(
    producer: KafkaProducer,
    offsets: Mapping[TopicPartition, OffsetAndMetadata],
    metadata: ConsumerGroupMetadata,
    coordinators: dict[str, int | None],
) -> None:
    """Send offsets with the open transaction, to the coordinator of their group.

    kafka-python keeps one coordinator for all groups. Without this patch offsets of a second group go to the
    coordinator of the first one. Unless one broker has both, it refuses them, and kafka-python looks for the
    right one after a pause: for both groups, in each transaction. Upstream issue: none found.

    coordinators: brokers by group, as far as earlier calls have found them; filled here

    Bug; last needed with 3.0.12.
    raises: what `send_offsets_to_transaction` raises
    """
    manager = producer._transaction_manager
    manager._consumer_group_coordinator = coordinators.get(metadata.group_id)
    producer.send_offsets_to_transaction(offsets, metadata)
    coordinators[metadata.group_id] = manager._consumer_group_coordinator


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


def partitions_to_choose(producer: KafkaProducer, topic: str) -> list[int]:
    """The partitions of a topic that have a leader, as far as the producer knows; all if none has one.

    Access; last needed with 3.0.12.
    """
    cluster = producer._metadata
    return sorted(cluster.available_partitions_for_topic(topic) or cluster.partitions_for_topic(topic))


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


def read_in_columns(consumer: KafkaConsumer, max_bytes: int) -> None:
    """Make the polls of a consumer return `Records` in place of a list of objects for each partition.

    max_bytes: a batch that unpacks to more counts as one that cannot be decoded

    kafka-python makes an object of each record, with 4 µs; here a kernel finds the records where they lie
    (`BatchGroup`). A batch that the kernel refuses, and one of an old format, is read by kafka-python. If
    that fails, too, it is an error of one poll, and header names that are not UTF-8 are accepted. Otherwise
    kafka-python would keep the failed batch as its current one, and the poll after the next seek would loop
    forever; it also unpacks a batch without a size limit. Upstream issue: none found.

    Access and bug; last needed with 3.0.12.
    """
    # The fetcher uses this attribute as the class of the object that holds a partition's batches.
    consumer._fetcher.PartitionRecords = partial(_PartitionRecords, max_bytes)


class _PartitionRecords(Fetcher.PartitionRecords):  # type: ignore[misc]
    """The record batches of one fetch. room: the most bytes that `take` returns; one record may be larger"""

    bytes_read: int
    records_read: int
    aborted_producer_ids: set[int]

    def __init__(
        self, max_bytes: int, offset: int, partition: TopicPartition, records: MemoryRecords, **named: Any
    ) -> None:
        self._max_bytes = max_bytes
        self._rest: Records | None = None
        self._most = _MAX_INT64
        self.room = max_bytes
        super().__init__(offset, partition, records, **named)

    @property
    def unpacked_bytes(self) -> int:
        """Bytes of the batches that are being read, unpacked; 0 between two takes that ended with a batch."""
        return 0 if self._rest is None else len(self._rest.content)

    def take(self, n: int | None = None) -> list[Records]:
        """The next records, at most n: those of one batch, or of several that are wanted whole, so that no
        batch is unpacked needlessly."""
        if self._rest is None:
            self._most = _MAX_INT64 if n is None else n
            self._rest = next(self.record_iterator, None)
            if self._rest is None:
                return []
        rest = self._rest
        upto = np.cumsum(rest.columns.content_sizes)
        count = max(1, int(np.searchsorted(upto, self.room, "right")))
        count = min(count, len(rest), len(rest) if n is None else n)
        self._rest = rest.slice(count, len(rest)) if count < len(rest) else None
        self.next_fetch_offset = rest.offset(count - 1) + 1
        self.leader_epoch = rest.epoch(count - 1)
        self.bytes_read += int(upto[count - 1])
        self.records_read += count
        return [rest.slice(0, count)]

    def drain(self) -> None:
        self._rest = None
        super().drain()

    def _maybe_skip_record(self, _records: Records) -> bool:
        # `_unpack_records` leaves out what lies before the offset that was asked for.
        return False

    def _unpack_records(self, at: TopicPartition, batches: MemoryRecords, *more: Any) -> Iterator[Records]:
        """The records of the batches, those of several together."""
        group, after = self._group(at), None
        while (packed := batches._next_slice) is not None:
            header = header_of(packed)
            if header is not None and not is_whole(packed, header):
                header = None
            if header is not None and not group.has_room(header, self._most, self.room):
                yield from self._decoded(at, group, *more)
                group = self._group(at)
            batches._cache_next()
            if header is not None:
                after = header.last_offset + 1
                if self._passes_over(packed, header):
                    if not group.packed:
                        self.next_fetch_offset = after
                    continue
                if not header.is_control and group.add(packed, header):
                    continue
            yield from self._decoded(at, group, *more)
            group = self._group(at)
            after = yield from self._unpack_safely(at, packed, *more)
        yield from self._decoded(at, group, *more)
        if after is not None:
            # The last messages of a batch may be gone by compaction.
            self.next_fetch_offset = after
        self.drain()

    def _group(self, at: TopicPartition) -> BatchGroup:
        return BatchGroup(Partition(*at), self._max_bytes)

    def _decoded(self, at: TopicPartition, group: BatchGroup, *more: Any) -> Iterator[Records]:
        """The records of these batches. If the kernel refuses one of them, it gets them one by one."""
        found = group.decode() if group.packed else Records.none(Partition(*at))
        if found is not None:
            yield from self._wanted(found)
            return
        # None of them is of an aborted transaction. Of which ones later batches are has been noted meanwhile.
        aborted = self.aborted_producer_ids
        self.aborted_producer_ids = set()
        for packed in group.packed:
            one, header = self._group(at), header_of(packed)
            found = one.decode() if header is not None and one.add(packed, header) else None
            if found is not None:
                yield from self._wanted(found)
            else:
                yield from self._unpack_safely(at, packed, *more)
        self.aborted_producer_ids = aborted

    def _passes_over(self, packed: memoryview, header: BatchHeader) -> bool:
        """Whether a batch holds no message to deliver: it is part of an aborted transaction, or it is the
        mark at the end of one, of which this takes note."""
        if self.isolation_level == IsolationLevel.READ_COMMITTED and header.producer_id >= 0:
            self._consume_aborted_transactions_up_to(header.last_offset)
            if not header.is_control:
                return bool(self._is_batch_aborted(header))
            try:
                is_aborted = self._contains_abort_marker(DefaultRecordBatch(packed))
            except _NO_MARK:
                return False
            if is_aborted:
                self.aborted_producer_ids.discard(header.producer_id)
        return header.is_control

    def _wanted(self, found: Records) -> Iterator[Records]:
        """These records from the offset on that was asked for, unless there are none."""
        low = int(np.searchsorted(found.columns.offsets, self.fetch_offset))
        if low < len(found):
            yield found.slice(low, len(found))

    def _unpack_safely(
        self, at: TopicPartition, packed: memoryview, *more: Any
    ) -> Generator[Records, None, int | None]:
        """The records of one batch as kafka-python reads them, up to the first one that it cannot read.

        returns: the offset after the batch; None if its format does not say it
        raises: UnreadableError
        """
        one = _OneBatch(packed, self._max_bytes)
        counts: tuple[int, int] = self.bytes_read, self.records_read
        rows: list[Any] = []
        failure: Exception | None = None
        try:
            for row in super()._unpack_records(at, one, *more):
                if row.offset > _MAX_INT64 or (rows and row.offset <= rows[-1].offset):
                    raise errors.CorruptRecordError(f"a record with the offset {row.offset}")
                rows.append(row)
        except _ReadError:
            pass
        except MemoryError:
            self.drain()
            raise
        except Exception as error:  # noqa: BLE001 - each decompressor raises errors of its own
            failure = error
        offset = max(self.next_fetch_offset, self.fetch_offset)
        self.bytes_read, self.records_read = counts
        if rows:
            offset = max(offset, rows[-1].offset + 1)
            yield from self._wanted(_records_of(Partition(*at), rows))
        if failure is not None:
            self.drain()
            if one.last is not None:
                offset = max(offset, one.last.base_offset)
            raise UnreadableError(Partition(*at), offset, _why(failure), one.after) from failure
        return one.after if type(one.last) is _Batch else None


class _ReadError(Exception):
    """The batch was read, and no further one is given."""


class _OneBatch:
    """One batch in the place of those of a fetch; `last` is the batch, once it was given."""

    def __init__(self, packed: memoryview, max_bytes: int) -> None:
        self._batches = MemoryRecords(packed)
        self._max_bytes = max_bytes
        self._is_given = False
        self.last: Any = None

    @property
    def after(self) -> int | None:
        """The offset after the batch, from its header. That of an old compressed batch is its last one."""
        return (
            None if self.last is None else int(getattr(self.last, "next_offset", self.last.base_offset + 1))
        )

    def next_batch(self) -> Any:
        if self._is_given:
            raise _ReadError
        self._is_given = True
        batch = self._batches.next_batch()
        if batch is None:
            raise errors.CorruptRecordError("a batch that is smaller than it says")
        if type(batch) is DefaultRecordBatch:
            batch = _Batch(batch._buffer, self._max_bytes)
        elif type(batch) is LegacyRecordBatch:
            batch = _OldBatch(batch._buffer, batch.magic, self._max_bytes)
        self.last = batch
        return batch


def _records_of(partition: Partition, rows: Sequence[Any]) -> Records:
    """Records that kafka-python has read, in the form of the port."""
    return Records.of(
        partition,
        [row.offset for row in rows],
        [
            NO_TIMESTAMP if row.timestamp is None else min(max(row.timestamp, NO_TIMESTAMP), _MAX_INT64)
            for row in rows
        ],
        [row.key for row in rows],
        [row.value for row in rows],
        [row.headers for row in rows],
        [row.leader_epoch for row in rows],
        stamped_by_broker=rows[0].timestamp_type == _LOG_APPEND_TIME,
    )


def _why(error: Exception) -> str:
    message = " ".join(str(error.args[0]).split())[:200] if error.args else type(error).__name__
    return f"{message}; install it" if isinstance(error, errors.UnsupportedCodecError) else message


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
