"""Topics and partition logs of the memory broker: transactions, last stable offset, retention."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum

from twinsieve.pipeline.broker.admin import DEFAULT_MESSAGE_BYTES, TopicInfo
from twinsieve.pipeline.broker.records import NO_EPOCH, Committed, Header, Partition, Records


class Outcome(Enum):
    """What became of a transaction; its records are visible once it is COMMITTED."""

    OPEN = "open"
    COMMITTED = "committed"
    ABORTED = "aborted"


@dataclass(eq=False, slots=True)
class Transaction:
    """One transaction: what it touched, until it ends.

    offsets: (group, partition) → offset to commit with it.
    """

    began_s: float
    outcome: Outcome = Outcome.OPEN
    logs: list[PartitionLog] = field(default_factory=list)
    offsets: dict[tuple[str, Partition], Committed] = field(default_factory=dict)

    def end(self, outcome: Outcome) -> None:
        """Decide it: a control marker in every log it wrote to, as a real broker leaves one."""
        self.outcome = outcome
        for log in self.logs:
            log.mark(self)


@dataclass(slots=True)
class Entry:
    """One stored record; `key`… are empty in a control marker, which takes an offset and is never
    delivered."""

    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[Header]
    transaction: Transaction | None
    control: bool = False
    epoch: int = 0
    stamped_by_broker: bool = False

    @property
    def visible(self) -> bool:
        """Delivered to a read-committed reader below the last stable offset."""
        return not self.control and (
            self.transaction is None or self.transaction.outcome is Outcome.COMMITTED
        )


class PartitionLog:
    """Records of one partition at consecutive offsets from `beginning`.

    epoch: of its leader, who writes it into each record
    """

    def __init__(self) -> None:
        self.beginning = 0
        self.epoch = 0
        self.entries: list[Entry] = []
        self._open: dict[Transaction, int] = {}
        self.taken: dict[int, Entry] = {}
        """What retention took, for whoever judges the broker's clients by what once stood here."""
        self._compacted: list[int] = []

    @property
    def end(self) -> int:
        """Offset that the next record gets."""
        return self.beginning + len(self.entries)

    @property
    def stable_end(self) -> int:
        """Last stable offset: the first record of the oldest open transaction, else the end."""
        return min(self._open.values(), default=self.end)

    def append(self, entry: Entry) -> int:
        """Store one record; returns its offset."""
        offset = self.end
        entry.epoch = self.epoch
        self.entries.append(entry)
        transaction = entry.transaction
        if transaction is not None and transaction not in self._open:
            self._open[transaction] = offset
            transaction.logs.append(self)
        return offset

    def mark(self, transaction: Transaction) -> None:
        """Close a transaction here."""
        del self._open[transaction]
        self.entries.append(Entry(-1, None, None, (), transaction, control=True, epoch=self.epoch))

    def trim(self, before: int) -> None:
        """Forget what lies below an offset, as retention does; never beyond the stable end."""
        before = min(before, self.stable_end)
        if before > self.beginning:
            gone = self.entries[: before - self.beginning]
            self.taken.update(enumerate(gone, self.beginning))
            del self.entries[: before - self.beginning]
            self.beginning = before

    def truncate(self, end: int) -> None:
        """Lose the records from `end` on, as an unclean leader election or a power cut does; the next ones
        get their offsets again."""
        self.elect()
        del self.entries[max(0, end - self.beginning) :]
        del self._compacted[bisect_left(self._compacted, end) :]
        for transaction in [each for each, first in self._open.items() if first >= end]:
            del self._open[transaction]
            transaction.logs.remove(self)

    def elect(self) -> None:
        """Another leader, who has all records."""
        self.epoch += 1

    def epoch_end(self, epoch: int) -> int:
        """Offset behind the last record of this epoch or an older one, as a leader answers it."""
        return self.beginning + bisect_right(self.entries, epoch, key=lambda entry: entry.epoch)

    def epoch_before(self, offset: int) -> int:
        """Epoch of the record before an offset."""
        place = offset - self.beginning - 1
        return self.entries[place].epoch if place >= 0 else NO_EPOCH

    def compact(self, offset: int) -> None:
        """Take one record away and keep its offset unused, as compaction does."""
        place = bisect_left(self._compacted, offset)
        if self._compacted[place : place + 1] != [offset]:
            self._compacted.insert(place, offset)

    def read(
        self, partition: Partition, position: int, most: int, before: int | None = None
    ) -> tuple[Records, int]:
        """Up to `most` visible records from `position` on, below `before` if given, and the position after
        them."""
        end = self.stable_end if before is None else min(before, self.stable_end)
        offset = position
        found: list[tuple[int, Entry]] = []
        while offset < end and most > 0:
            entry = self.entries[offset - self.beginning]
            place = bisect_left(self._compacted, offset)
            if entry.visible and self._compacted[place : place + 1] != [offset]:
                found.append((offset, entry))
                most -= 1
            offset += 1
        entries = [entry for _, entry in found]
        records = Records.of(
            partition,
            [at for at, _ in found],
            [entry.timestamp_ms for entry in entries],
            [entry.key for entry in entries],
            [entry.value for entry in entries],
            [entry.headers for entry in entries],
            [entry.epoch for entry in entries],
            stamped_by_broker=all(entry.stamped_by_broker for entry in entries[:1] + entries[-1:]),
        )
        return records, offset

    def ever(self) -> list[tuple[int, Entry]]:
        """Everything that was committed here, taken by retention or compaction since or not; not what was truncated."""
        held = {**self.taken, **dict(enumerate(self.entries, self.beginning))}
        return [(offset, entry) for offset, entry in held.items() if entry.visible]

    def visible(self) -> list[tuple[int, Entry]]:
        """Everything a read-committed reader gets from the beginning, for checkers."""
        records, _ = self.read(Partition("", 0), self.beginning, len(self.entries))
        return [(offset, self.entries[offset - self.beginning]) for offset in records.offsets]


@dataclass(slots=True)
class Topic:
    """One topic; `topic_id` tells it from another of the same name."""

    name: str
    topic_id: bytes
    settings: dict[str, str]
    replication: int
    logs: list[PartitionLog]

    @property
    def max_message_bytes(self) -> int:
        """Largest key plus value, in bytes."""
        return int(self.settings.get("max.message.bytes", DEFAULT_MESSAGE_BYTES))

    @property
    def stamps(self) -> bool:
        """Whether the broker writes its own time into each record."""
        return self.settings.get("message.timestamp.type") == "LogAppendTime"

    @property
    def info(self) -> TopicInfo:
        """As an admin client shows it, with its settings; all partitions have leaders."""
        return TopicInfo(self.name, self.topic_id, len(self.logs), self.replication, dict(self.settings))
