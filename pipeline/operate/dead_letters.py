"""What the dead letter topic holds: messages by reason, and how many of them `twinsieve redrive` has read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field

from twinsieve.pipeline.basics.dead_letter_reasons import DeadLetterReason
from twinsieve.pipeline.broker.admin import TopicInfo
from twinsieve.pipeline.broker.committed_offsets import read_recorded
from twinsieve.pipeline.broker.excerpts import Excerpts, Row
from twinsieve.pipeline.broker.mark import Mark, read_mark
from twinsieve.pipeline.broker.names import Names
from twinsieve.pipeline.broker.ports import Broker, Clock
from twinsieve.pipeline.broker.records import NO_TIMESTAMP, BrokerError, Committed, Header, Partition
from twinsieve.pipeline.broker.redriven import RedrivenTopic, input_id
from twinsieve.pipeline.messages.reader import MessageReader
from twinsieve.pipeline.settings.model import Settings
from twinsieve.pipeline.wire.headers import reason_of
from twinsieve.stages.errors import UsageError

_ALL = 1 << 62
_ROWS, _BYTES = 1_000, 4 << 20
"""The most messages, and bytes of them, that are read together; a single message may be larger."""


@dataclass(frozen=True, slots=True)
class LetterTopic:
    """The dead letter topic when a redrive begins.

    first: first offset that each partition still has; begins: where reading begins; ends: where it ends
    """

    info: TopicInfo
    first: Mapping[Partition, int]
    begins: Mapping[Partition, int]
    ends: Mapping[Partition, int]


@dataclass(slots=True)
class Letters:
    """The dead letters of one reason.

    recorded: whether its consumer group has offsets. Kafka forgets those of a group that was idle for long
    count: all of them; redriven: those that the group has read for certain
    readable: of the others, those that can be read under the settings; 0 if nobody asked
    since_ms: earliest timestamp, ms since 1970; None if no message has one
    """

    recorded: bool = False
    count: int = 0
    redriven: int = 0
    readable: int = 0
    since_ms: int | None = None

    @property
    def left(self) -> int:
        """Number of messages that no redrive has read for certain."""
        return self.count - self.redriven


@dataclass(slots=True)
class Survey:
    """What is in the dead letter topic.

    others: number of messages without a reason that a worker writes
    unreadable: number of offsets of batches that could not be read and were passed over
    """

    letters: dict[DeadLetterReason, Letters] = field(default_factory=dict)
    others: int = 0
    unreadable: int = 0


def letter_topic(settings: Settings, broker: Broker, since_ms: int | None = None) -> LetterTopic:
    """The dead letter topic of these settings, as it is now.

    since_ms: begin at the first message with this timestamp or a later one
    raises: UsageError if the settings name none; BrokerError
    """
    name = settings.output.dead_letter
    if name is None:
        raise UsageError("output.dead_letter is none: no topic holds dead letters; name it to redrive them")
    with closing(broker.admin()) as admin, closing(broker.reader()) as reader:
        info = admin.topics([name])[name]
        if info is None:
            raise BrokerError(
                f"{name} does not exist; create it, or correct output.dead_letter", retryable=False
            )
        partitions = [Partition(name, number) for number in range(info.partitions)]
        first, ends = reader.beginning_offsets(partitions), reader.end_offsets(partitions)
        begins = dict(first)
        if since_ms is not None:
            for at, offset in admin.offsets_at(dict.fromkeys(partitions, since_ms)).items():
                begins[at] = max(first[at], min(offset, ends[at]))
    return LetterTopic(info, first, begins, ends)


def redrive_marks(
    topic: LetterTopic, reason: DeadLetterReason, committed: Mapping[Partition, Committed]
) -> dict[Partition, Mark]:
    """The marks among offsets that the group of one reason has committed, if they are of this very topic."""
    topic_id = input_id(topic.info, RedrivenTopic(topic.info.name, reason))
    marks = {at: read_mark(entry.metadata) for at, entry in committed.items()}
    return {at: mark for at, mark in marks.items() if mark and mark.topic_id == topic_id and not mark.fresh}


def survey(
    settings: Settings,
    broker: Broker,
    clock: Clock,
    topic: LetterTopic,
    reason: DeadLetterReason | None = None,
    *,
    read: bool = False,
) -> Survey:
    """Count the dead letters by reason. Joins no group and changes nothing.

    reason: count this one alone; read: find out which messages can be read now
    raises: BrokerError
    """
    found = Survey()
    skips = settings.input.on_unreadable_batch == "skip"
    with closing(broker.admin()) as admin, closing(Excerpts(broker, clock, _ALL, skips=skips)) as excerpts:
        marks: dict[DeadLetterReason, dict[Partition, Mark]] = {}
        reading = _Reading(settings) if read else None
        for at in topic.ends:
            for row in excerpts.rows(at, topic.begins[at], topic.ends[at]):
                own = reason_of(row.headers)
                if own is None:
                    found.others += 1
                    continue
                if reason is not None and own is not reason:
                    continue
                if own not in marks:
                    group = Names(settings.app).redrive(own)
                    marks[own] = redrive_marks(topic, own, read_recorded(admin, group, stable=False))
                letters = found.letters.setdefault(own, Letters(recorded=bool(marks[own])))
                letters.count += 1
                if row.time_ms != NO_TIMESTAMP:
                    earliest = letters.since_ms
                    letters.since_ms = row.time_ms if earliest is None else min(row.time_ms, earliest)
                mark = marks[own].get(at)
                if mark is not None and mark.first <= row.offset < mark.end:
                    letters.redriven += 1
                elif reading is not None:
                    reading.add(own, row)
        for own, readable in reading.finish().items() if reading is not None else ():
            found.letters[own].readable = readable
        found.unreadable = excerpts.skipped
    return found


class _Reading:
    """Counts by reason the messages that can be read under the settings."""

    def __init__(self, settings: Settings) -> None:
        self._reader = MessageReader(settings, passes_null=settings.passes_null_text(on_files=False))
        self._source = settings.input
        self._rows: list[tuple[DeadLetterReason, bytes | None, Sequence[Header]]] = []
        self._bytes = 0
        self._readable: Counter[DeadLetterReason] = Counter()

    def add(self, reason: DeadLetterReason, row: Row) -> None:
        if row.value is None:
            self._readable[reason] += self._source.null_value != "dead_letter"
            return
        text = row.value if self._source.part == "value" else row.key
        self._rows.append((reason, text, row.headers))
        self._bytes += len(text or b"")
        if len(self._rows) >= _ROWS or self._bytes >= _BYTES:
            self._read()

    def finish(self) -> Mapping[DeadLetterReason, int]:
        """The counts, when everything was added."""
        self._read()
        return self._readable

    def _read(self) -> None:
        headers = [headers for _, _, headers in self._rows]
        columns = self._reader.read([text for _, text, _ in self._rows], headers=headers)
        bad = {one.row for one in columns.unreadable}
        self._readable.update(reason for row, (reason, _, _) in enumerate(self._rows) if row not in bad)
        self._rows, self._bytes = [], 0
