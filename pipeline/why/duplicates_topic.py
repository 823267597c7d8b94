"""The drops in the duplicates topic of an app on Kafka, as records like those of a file of duplicates.

Only the app writes headers that begin with `twinsieve-` there (docs/WIRE.md), so what they say of the leader
is taken as it is. A message that has no such headers is not a drop of this app, and is only counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import replace
from itertools import islice

from twinsieve.pipeline.broker.excerpts import Excerpts, Reach, Row
from twinsieve.pipeline.broker.input_position import InputPosition
from twinsieve.pipeline.broker.ports import Broker, Clock
from twinsieve.pipeline.broker.records import NO_TIMESTAMP, BrokerError, Partition
from twinsieve.pipeline.messages.fields import id_text
from twinsieve.pipeline.messages.reader import MessageReader
from twinsieve.pipeline.settings.model import Settings
from twinsieve.pipeline.why.drops import Drop, Place
from twinsieve.pipeline.wire.headers import DuplicateHeaders, read_duplicate
from twinsieve.stages.contract import NO_TIME
from twinsieve.stages.errors import UsageError

MOST_DROPS = 100_000
_CHUNK = 500
_BACK = 1_000
"""Offsets that a search from the newest message goes back in one step."""
_CLOSE = 200
"""Two leaders that are no farther apart are read in one go."""
_NO_LIMIT = 1 << 62


class TopicDrops:
    """The drops of a duplicates topic that are read: the same ones at each reading.

    since_ms: only messages from the first one on whose timestamp is not earlier; None: all
    most: the number of newest messages to read, about
    tell: called with the number of records that were read, now and then
    raises: UsageError if the app has no such topic; BrokerError if it does not exist, or no broker answers
    """

    def __init__(
        self,
        settings: Settings,
        broker: Broker,
        clock: Clock,
        *,
        since_ms: int | None = None,
        most: int = MOST_DROPS,
        tell: Callable[[int], None] = lambda _: None,
    ) -> None:
        topic = settings.output.duplicates
        if topic is None:
            raise UsageError(
                "output.duplicates is none, so this app keeps no dropped messages; name a topic there"
            )
        self.name = topic
        self.missing = "(not in the input any more)"
        """Stands for the text of a leader that `leader_texts` does not find."""
        self.settings = settings
        self._reader = MessageReader(settings, passes_null=True)
        self._part = settings.input.part
        self._inputs = broker, clock
        self._excerpts = Excerpts(broker, clock, _NO_LIMIT, tell)
        with closing(broker.admin()) as admin:
            info = admin.topics([topic])[topic]
            if info is None:
                raise BrokerError(
                    f"topic {topic} does not exist; correct output.duplicates, or start `twinsieve run`",
                    retryable=False,
                )
            partitions = [Partition(topic, number) for number in range(info.partitions)]
            self._excerpts.look(partitions)
            bounds = {at: self._excerpts.bounds(at) for at in partitions}
            if since_ms is not None:
                starts = admin.offsets_at(dict.fromkeys(partitions, since_ms))
                bounds = {at: (max(begin, min(end, starts[at])), end) for at, (begin, end) in bounds.items()}
        self.ranges = _newest(bounds, most)
        self.left_out = sum(self.ranges[at][0] - begin for at, (begin, _) in bounds.items())
        """Offsets that are not read, as there are more than `most`."""
        self.foreign = 0
        """Messages of the last reading that are no drops of this app."""

    def read(self) -> Iterator[Drop]:
        """The drops, partition after partition in their order. Texts of leaders are None.

        raises: BrokerError
        """
        self.foreign = 0
        for partition, (first, end) in self.ranges.items():
            rows = self._excerpts.rows(partition, first, end)
            while chunk := list(islice(rows, _CHUNK)):
                yield from self._drops(chunk)

    def newest(self, id_: str) -> Drop | None:
        """The drop with this id that was read first from the end of the topic on; None if there is none.

        raises: BrokerError
        """
        left = dict(self.ranges)
        while left:
            for partition, (first, end) in list(left.items()):
                start = max(first, end - _BACK)
                rows = list(self._excerpts.rows(partition, start, end))
                for drop in reversed(list(self._drops(rows))):
                    if drop.message.id == id_:
                        return drop
                left[partition] = (first, start)
                if start == first:
                    del left[partition]
        return None

    @property
    def reached(self) -> dict[Partition, Reach]:
        """What was read so far; a record counts as often as it was read."""
        return self._excerpts.reached

    def _drops(self, rows: list[Row]) -> Iterator[Drop]:
        said = [(row, headers) for row in rows if (headers := read_duplicate(row.headers)) is not None]
        self.foreign += len(rows) - len(said)
        if not said:
            return
        payloads = [row.value if self._part == "value" else row.key for row, _ in said]
        columns = self._reader.read(payloads, headers=[row.headers for row, _ in said])
        places = {row: place for place, row in enumerate(columns.rows)}
        times = columns.times_ms.tolist()
        for number, (row, headers) in enumerate(said):
            place = places.get(number)
            time_ms = row.time_ms if row.time_ms != NO_TIMESTAMP else None
            if place is not None and times[place] != NO_TIME:
                time_ms = times[place]
            message = _place(
                headers.origin,
                id_text(columns.ids[place]) if place is not None else None,
                columns.texts[place] if place is not None else None,
            )
            yield _drop(headers, message, time_ms)

    def leader_texts(self, leaders: Iterable[Place]) -> dict[tuple[str, int], str]:
        """Texts of these leaders by source and line, as far as their topics still have them.

        Headers name a topic, not its id: where it was created again, another message may stand there.

        raises: BrokerError
        """
        wanted: dict[str, set[int]] = {}
        for leader in leaders:
            if leader.source is not None and leader.line is not None:
                wanted.setdefault(leader.source, set()).add(leader.line)
        broker, clock = self._inputs
        found: dict[tuple[str, int], str] = {}
        with closing(Excerpts(broker, clock, _NO_LIMIT)) as excerpts, closing(broker.admin()) as admin:
            names = sorted({source.rpartition("[")[0] for source in wanted})
            infos = admin.topics(names) if names else {}
            for source, offsets in sorted(wanted.items()):
                topic, _, number = source.removesuffix("]").rpartition("[")
                info, partition = infos[topic], Partition(topic, int(number))
                if info is None or partition.number >= info.partitions:
                    continue
                for row in _rows_at(excerpts, partition, sorted(offsets)):
                    payload = row.value if self._part == "value" else row.key
                    columns = self._reader.read([payload], headers=[row.headers])
                    if len(columns):
                        found[source, row.offset] = columns.texts[0]
        return found

    def told(self, drops: list[Drop]) -> list[Drop]:
        """These drops with the texts of their leaders. raises: BrokerError"""
        texts = self.leader_texts(drop.leader for drop in drops if drop.leader is not None)
        return [_with_leader(drop, texts) for drop in drops]

    def close(self) -> None:
        """Close the connections."""
        self._excerpts.close()


def _newest(bounds: dict[Partition, tuple[int, int]], most: int) -> dict[Partition, tuple[int, int]]:
    """Parts of these ranges that have about `most` offsets together, up to the end of each.

    A partition that has less than its share leaves the rest to others.
    """
    chosen: dict[Partition, tuple[int, int]] = {}
    sizes = sorted(bounds.items(), key=lambda item: item[1][1] - item[1][0])
    for nth, (partition, (begin, end)) in enumerate(sizes):
        share = min(end - begin, -(-most // (len(sizes) - nth)))
        chosen[partition] = (end - share, end)
        most -= share
    return dict(sorted(chosen.items()))


def _rows_at(excerpts: Excerpts, partition: Partition, offsets: list[int]) -> Iterator[Row]:
    """The records at these ascending offsets that the partition still has."""
    low = 0
    while low < len(offsets):
        high = low + 1
        while high < len(offsets) and offsets[high] - offsets[high - 1] <= _CLOSE:
            high += 1
        wanted = set(offsets[low:high])
        for row in excerpts.rows(partition, offsets[low], offsets[high - 1] + 1):
            if row.offset in wanted:
                yield row
        low = high


def _place(position: InputPosition, id_: str | None, text: str | None) -> Place:
    return Place(None, id_, str(position.partition), position.offset, text)


def _drop(headers: DuplicateHeaders, message: Place, time_ms: int | None) -> Drop:
    leader = None if headers.leader is None else _place(headers.leader, None, None)
    return Drop(message, leader, headers.stage, headers.measure, headers.likeness, headers.flags, time_ms)


def _with_leader(drop: Drop, texts: dict[tuple[str, int], str]) -> Drop:
    return drop if drop.leader is None else replace(drop, leader=_named(drop.leader, texts))


def _named(leader: Place, texts: dict[tuple[str, int], str]) -> Place:
    if leader.source is None or leader.line is None:
        return leader
    return replace(leader, text=texts.get((leader.source, leader.line)))
