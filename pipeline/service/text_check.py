"""Check of `run` and `seed` before they join a group: do the messages that they will read have a text?

A wrong `input.text_field` would send a whole topic to the dead letters, and the app would never judge it
again. So a start looks at the first messages with a plain reader, unless a process has found a text under
the same settings of the input: that is on record beside the committed offset of the index.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from types import MappingProxyType

from twinsieve.pipeline.broker.admin import Admin
from twinsieve.pipeline.broker.committed_offsets import read_recorded
from twinsieve.pipeline.broker.ports import Broker, Clock, Reader
from twinsieve.pipeline.broker.records import BrokerError, Committed, Partition, Records
from twinsieve.pipeline.index.ends import recorded_under
from twinsieve.pipeline.messages.other_field import OtherField
from twinsieve.pipeline.operate.committed_index import committed_by_index
from twinsieve.pipeline.settings.fixed import reading_digest
from twinsieve.pipeline.settings.model import Settings

_MESSAGES = 200
"""Messages of each topic that are looked at."""
_WAIT_S = 5.0
"""Longest time for that, also for messages that are still to come."""
_AT_ONCE = 16
_POLL_S = 0.2
_BYTES = 16 << 20
"""Bytes of a topic's messages that are looked at: strangers may have made each as large as they can be."""


@dataclass(slots=True)
class _Topic:
    """What was seen of one topic. first: where its first message is; waits: nothing is there yet, so look at
    what comes"""

    other: OtherField
    waits: bool
    left: set[Partition]
    first: str = ""
    bytes_seen: int = 0
    starts: dict[Partition, int] = field(default_factory=dict)

    @property
    def done(self) -> bool:
        other = self.other
        return other.has_text or other.count >= _MESSAGES or self.bytes_seen >= _BYTES or not self.left

    def look(self, records: Records, part: str) -> None:
        payloads = records.values if part == "value" else records.keys
        rows = zip(records.offsets, records.values, payloads, records.headers, strict=True)
        for offset, value, payload, headers in rows:
            if self.done:
                return
            # A message without a value is a tombstone, and no text is expected of it.
            if value is not None and payload is not None:
                self.first = self.first or f"{records.partition}@{offset}"
                self.bytes_seen += len(payload)
                self.other.look(payload, headers)


def require_texts(
    settings: Settings,
    broker: Broker,
    clock: Clock,
    *,
    group: str,
    moved: Mapping[Partition, Committed] = MappingProxyType({}),
    refuses: bool = True,
) -> bool:
    """Whether a message with a text was seen. Check that messages of each input topic have one, then close
    the connection.

    No check if `input.expect_text` is false, if nothing needs a text, if a schema registry tells what a
    message is (another field cannot be proposed, and a start waits for no registry), or if these settings of
    the input are on record. In doubt the start continues: if a topic has no message, if no other field holds
    strings, or if a message cannot be fetched, which the worker will report.

    settings: `input.topics` are read; group: the consumer group whose committed offsets are continued
    moved: offsets that are committed for this group after the check
    refuses: False for a process that judges and does not read the input: it raises no such error, and does
        not wait for messages
    raises: BrokerError with a line for each topic whose text is in another field; a retryable one if no
        broker answers
    """
    with closing(broker):
        needs_text = not (settings.exact.fields and settings.near.method == "none")
        needs_text = needs_text and settings.input.encoding not in ("avro", "protobuf")
        if not settings.input.expect_text or not needs_text:
            return False
        admin = broker.admin()
        if recorded_under(committed_by_index(settings.app, admin)).reading == reading_digest(settings.input):
            return False
        reader = broker.reader()
        continued = {**read_recorded(admin, group, stable=False), **moved}
        topics = _topics(settings, admin, reader, continued, may_wait=refuses)
        if topics:
            _look(topics, reader, clock, settings.input.part)
    lines = [f"{topic.first}: {line}" for topic in topics.values() if (line := topic.other.line())]
    if lines and refuses:
        raise BrokerError("\n".join(lines), retryable=False)
    return any(topic.other.has_text for topic in topics.values())


def _topics(
    settings: Settings,
    admin: Admin,
    reader: Reader,
    continued: Mapping[Partition, Committed],
    *,
    may_wait: bool,
) -> dict[str, _Topic]:
    """Each topic that has, or has had, messages; its partitions begin where the workers would continue."""
    source = settings.input
    infos = admin.topics(source.topics)
    partitions = [
        Partition(name, number)
        for name, info in infos.items()
        for number in range(info.partitions if info is not None else 0)
        if info is not None and number not in info.leaderless
    ]
    if not partitions:
        return {}
    begins, ends = reader.beginning_offsets(partitions), reader.end_offsets(partitions)
    topics: dict[str, _Topic] = {}
    for name in infos:
        starts = {}
        for partition in partitions:
            if partition.topic == name:
                new = ends[partition] if source.start == "latest" else begins[partition]
                start = continued[partition].offset if partition in continued else new
                starts[partition] = min(max(start, begins[partition]), ends[partition])
        behind = {partition for partition, start in starts.items() if start < ends[partition]}
        waits = may_wait and not behind and any(ends[partition] for partition in starts)
        if behind or waits:
            topics[name] = _Topic(OtherField(settings), waits, behind or set(starts), starts=starts)
    return topics


def _look(topics: Mapping[str, _Topic], reader: Reader, clock: Clock, part: str) -> None:
    """Look at messages until each topic is done, or for `_WAIT_S`."""
    read = [partition for topic in topics.values() for partition in topic.left]
    ends = reader.end_offsets(read)
    reader.assign(read)
    for topic in topics.values():
        for partition in topic.left:
            reader.seek(partition, topic.starts[partition])
    until_s = clock.monotonic_s() + _WAIT_S
    while (left_s := until_s - clock.monotonic_s()) > 0 and not all(topic.done for topic in topics.values()):
        try:
            polled = reader.poll(min(_POLL_S, left_s), _AT_ONCE)
        except BrokerError as error:
            if error.retryable:
                raise
            return
        for records in polled:
            topics[records.partition.topic].look(records, part)
        for topic in topics.values():
            if not topic.waits:
                topic.left = {at for at in topic.left if reader.position(at) < ends[at]}
        done = [at for at in read if topics[at.topic].done or at not in topics[at.topic].left]
        reader.pause(done)
