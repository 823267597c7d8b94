"""What a verdict makes of an original message: unique, duplicate, dead letter, or nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from pipeline.blocks_positions import unpack_position
from pipeline.blocks_verdicts import Ruling
from pipeline.ports import NO_TIMESTAMP, Header, Messages, Partition, Records, Transactor
from pipeline.worker_sessions import Asked
from stages.contract import NO_LEADER, SIMILARITY_SCALE, Flag, Kind
from stages.errors import StateError

ORIGIN = "twinsieve-origin"
REASON = "twinsieve-reason"
STAGE = "twinsieve-stage"
LEADER = "twinsieve-leader"
SIMILARITY = "twinsieve-similarity"
DISTANCE = "twinsieve-distance"
NOTE = "twinsieve-note"


@dataclass(frozen=True, slots=True)
class EmitConfig:
    """Where messages go; None switches duplicates or dead letters off. `emit` False: nowhere (shadow mode).

    same_number: input topics with as many partitions as the output; others go by key
    """

    output: str
    duplicates: str | None = None
    dead_letter: str | None = None
    origin_header: bool = True
    null_value: Literal["pass", "drop", "dead_letter"] = "pass"
    emit: bool = True


@dataclass(slots=True)
class Emission:
    """Messages of one transaction by topic and partition, and what they were counted as."""

    outgoing: dict[tuple[str, int | None], Messages] = field(default_factory=dict)
    kinds: dict[Kind, int] = field(default_factory=dict)
    dead: dict[str, int] = field(default_factory=dict)

    def to(self, topic: str, partition: int | None) -> Messages:
        """The messages for there so far."""
        return self.outgoing.setdefault((topic, partition), Messages())


class Emitter:
    """Sorts answered messages into an emission.

    counts: partitions of the input and output topics
    """

    def __init__(self, config: EmitConfig, counts: Mapping[str, int]) -> None:
        self._config = config
        self._counts = counts

    def add(self, emission: Emission, asked: Asked, ruling: Ruling, transactor: Transactor) -> None:
        """One answered block. Order is that of the input."""
        records, kinds = asked.records, ruling.verdicts.kinds.tolist()
        for kind in set(kinds):
            emission.kinds[Kind(kind)] = emission.kinds.get(Kind(kind), 0) + kinds.count(kind)
        if not self._config.emit:
            return
        uniques = Messages()
        rows: list[int] = []
        for row, kind in enumerate(kinds):
            if row in asked.tombstones and kind != Kind.REPLAYED and self._config.null_value != "pass":
                if self._config.null_value == "dead_letter":
                    self._bury(emission, records, row, "null", transactor)
            elif kind == Kind.UNIQUE:
                headers = records.headers[row]
                if self._config.origin_header:
                    headers = (*headers, (ORIGIN, _origin(records, row)))
                uniques.add(records.keys[row], records.values[row], headers, records.timestamps_ms[row])
                rows.append(row)
            elif kind in (Kind.EXACT, Kind.NEAR):
                self._duplicate(emission, records, row, ruling, transactor)
            elif kind == Kind.UNREADABLE:
                self._bury(emission, records, row, asked.reasons.get(row, "unreadable"), transactor)
        self._place(emission, self._config.output, records, rows, uniques, transactor)

    def _place(
        self,
        emission: Emission,
        topic: str,
        records: Records,
        rows: Sequence[int],
        messages: Messages,
        transactor: Transactor,
    ) -> None:
        refused = transactor.unsendable(topic, messages)
        for place, reason in refused.items():
            self._bury(emission, records, rows[place], reason, transactor)
        into = emission.to(topic, self._partition(topic, records.partition)) if len(messages) else messages
        for place in range(len(messages)):
            if place not in refused:
                into.keys.append(messages.keys[place])
                into.values.append(messages.values[place])
                into.headers.append(messages.headers[place])
                into.timestamps_ms.append(messages.timestamps_ms[place])

    def _partition(self, topic: str, source: Partition) -> int | None:
        same = self._counts.get(topic) == self._counts.get(source.topic)
        return source.number if same else None

    def _duplicate(
        self, emission: Emission, records: Records, row: int, ruling: Ruling, transactor: Transactor
    ) -> None:
        topic = self._config.duplicates
        if topic is None:
            return
        message = Messages()
        headers = (*records.headers[row], *_why(ruling, row), (ORIGIN, _origin(records, row)))
        message.add(records.keys[row], records.values[row], headers, records.timestamps_ms[row])
        self._place(emission, topic, records, [row], message, transactor)

    def _bury(
        self, emission: Emission, records: Records, row: int, reason: str, transactor: Transactor
    ) -> None:
        """Original bytes plus the reason; without its headers, its time, its key, or origin only, where the
        client or a limit forbids more.

        raises: StateError if not even that can be written: going on would lose the message
        """
        emission.dead[reason] = emission.dead.get(reason, 0) + 1
        topic = self._config.dead_letter
        if topic is None:
            return
        why: list[Header] = [(REASON, reason.encode()), (ORIGIN, _origin(records, row))]
        key, value = records.keys[row], records.values[row]
        stamp = records.timestamps_ms[row]
        tries: list[tuple[bytes | None, bytes | None, Sequence[Header], int]] = [
            (key, value, (*records.headers[row], *why), stamp),
            (key, value, why, stamp),
            (key, value, why, NO_TIMESTAMP),
            (None, value, why, NO_TIMESTAMP),
            (None, b"", why, NO_TIMESTAMP),
        ]
        for attempt in tries:
            message = Messages()
            message.add(*attempt)
            if not transactor.unsendable(topic, message):
                emission.to(topic, self._partition(topic, records.partition)).add(*attempt)
                return
        raise StateError(
            f"{_origin(records, row).decode()}: {reason}, and {topic} does not even take its origin; "
            "raise max.message.bytes of that topic"
        )


def _origin(records: Records, row: int) -> bytes:
    return f"{records.partition}@{records.offsets[row]}".encode()


def _why(ruling: Ruling, row: int) -> list[Header]:
    verdicts = ruling.verdicts
    near = verdicts.kinds[row] == Kind.NEAR
    headers: list[Header] = [(STAGE, b"near" if near else b"exact")]
    leader = int(verdicts.leaders[row])
    if leader != NO_LEADER:
        at = unpack_position(leader)
        name = ruling.topics.get(at.topic_number, f"topic-{at.topic_number}")
        headers.append((LEADER, f"{name}[{at.partition}]@{at.offset}".encode()))
    compared = int(verdicts.compared[row])
    if compared:
        share = int(verdicts.matched[row]) * SIMILARITY_SCALE // compared
        headers.append((SIMILARITY, b"%d.%04d" % divmod(share, SIMILARITY_SCALE)))
    if int(verdicts.distances[row]) >= 0 and near:
        headers.append((DISTANCE, b"%d" % int(verdicts.distances[row])))
    flags = Flag(int(verdicts.flags[row]))
    notes = [
        flag.name.lower().encode() for flag in (Flag.AT_WORD, Flag.ESTIMATED) if flag & flags and flag.name
    ]
    if notes:
        headers.append((NOTE, b",".join(notes)))
    return headers
