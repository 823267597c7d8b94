"""What a verdict makes of an original message: unique, duplicate, dead letter, or nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import compress
from typing import Literal

from twinsieve.pipeline.broker.ports import NO_TIMESTAMP, Header, Messages, Partition, Records, Transactor
from twinsieve.pipeline.wire.positions import unpack_position
from twinsieve.pipeline.wire.ruling import Ruling
from twinsieve.pipeline.worker.session import PendingBlock
from twinsieve.stages.contract import NO_LEADER, SIMILARITY_SCALE, Flag, Kind
from twinsieve.stages.dead_letter_reasons import Reason
from twinsieve.stages.errors import StateError

ORIGIN = "twinsieve-origin"
REASON = "twinsieve-reason"


@dataclass(frozen=True, slots=True)
class EmitConfig:
    """Where messages go; None switches duplicates or dead letters off. Nothing has a default.

    emit: False in shadow mode, in which they go nowhere
    """

    output: str
    duplicates: str | None
    dead_letter: str | None
    origin_header: bool
    null_value: Literal["pass", "drop", "dead_letter"]
    emit: bool

    @property
    def topics(self) -> set[str]:
        """Those that messages are written to."""
        names = (self.output, self.duplicates, self.dead_letter)
        return {name for name in names if name is not None and self.emit}


@dataclass(slots=True)
class Emission:
    """Messages of one transaction by topic and partition, and what they were counted as."""

    outgoing: dict[tuple[str, int | None], Messages] = field(default_factory=dict)
    kinds: dict[Kind, int] = field(default_factory=dict)
    dead: dict[Reason, int] = field(default_factory=dict)

    def to(self, topic: str, partition: int | None) -> Messages:
        """The messages for there so far."""
        return self.outgoing.setdefault((topic, partition), Messages())

    def add(self, other: Emission) -> None:
        """Its messages and counts too."""
        for (topic, partition), messages in other.outgoing.items():
            self.to(topic, partition).extend(messages)
        self.count(other)

    def count(self, other: Emission) -> None:
        """Its counts too."""
        for kind, count in other.kinds.items():
            self.kinds[kind] = self.kinds.get(kind, 0) + count
        for reason, count in other.dead.items():
            self.dead[reason] = self.dead.get(reason, 0) + count


def unsendable(config: EmitConfig, records: Records, transactor: Transactor) -> dict[int, Reason]:
    """Rows of these records that the output does not take as uniques, with the reason."""
    if not config.emit:
        return {}
    headers = records.headers
    if config.origin_header:
        origins = [(ORIGIN, origin) for origin in _origins(records)]
        headers = [(*held, origin) for held, origin in zip(headers, origins, strict=True)]
    messages = Messages(records.keys, records.values, headers, records.timestamps_ms)
    return transactor.unsendable(config.output, messages)


class Emitter:
    """Sorts answered messages into an emission.

    counts: partitions of the input and output topics; transactor: knows what a topic does not take
    """

    def __init__(self, config: EmitConfig, counts: Mapping[str, int], transactor: Transactor) -> None:
        self._config = config
        self._counts = counts
        self._transactor = transactor

    def add(self, emission: Emission, block: PendingBlock, ruling: Ruling) -> None:
        """One answered block. Order is that of the input."""
        records, kinds = block.records, ruling.verdicts.kinds.tolist()
        for kind in set(kinds):
            emission.kinds[Kind(kind)] = emission.kinds.get(Kind(kind), 0) + kinds.count(kind)
        if not self._config.emit:
            return
        uniques, duplicates = Messages(), Messages()
        duplicate_rows: list[int] = []
        origins = [(ORIGIN, origin) for origin in _origins(records)]
        why = explain_rows(ruling) if self._config.duplicates is not None else []
        for row, kind in enumerate(kinds):
            if row in block.tombstones and kind != Kind.REPLAYED and self._config.null_value != "pass":
                if self._config.null_value == "dead_letter":
                    self._bury(emission, records, row, Reason.NULL)
            elif kind == Kind.UNIQUE and row in block.refused:
                # A tombstone, or judged when the output still took it.
                self._bury(emission, records, row, block.refused[row])
            elif kind == Kind.UNIQUE:
                headers = records.headers[row]
                if self._config.origin_header:
                    headers = (*headers, origins[row])
                uniques.add(records.keys[row], records.values[row], headers, records.timestamps_ms[row])
            elif kind in (Kind.EXACT, Kind.NEAR):
                if why:
                    headers = (*records.headers[row], *why[row], origins[row])
                    duplicates.add(
                        records.keys[row], records.values[row], headers, records.timestamps_ms[row]
                    )
                    duplicate_rows.append(row)
            elif kind == Kind.UNREADABLE:
                self._bury(emission, records, row, block.reasons.get(row, Reason.UNREADABLE))
        if len(uniques):
            # The output was asked before the index (`unsendable`): what it refuses must lead nobody.
            output = self._config.output
            emission.to(output, self._partition(output, records.partition)).extend(uniques)
        if self._config.duplicates is not None and duplicate_rows:
            self._place(emission, self._config.duplicates, records, duplicate_rows, duplicates)

    def _place(
        self,
        emission: Emission,
        topic: str,
        records: Records,
        rows: Sequence[int],
        messages: Messages,
    ) -> None:
        refused = self._transactor.unsendable(topic, messages)
        for place, reason in refused.items():
            self._bury(emission, records, rows[place], reason)
        kept = [place not in refused for place in range(len(messages))]
        into = emission.to(topic, self._partition(topic, records.partition))
        into.keys.extend(compress(messages.keys, kept))
        into.values.extend(compress(messages.values, kept))
        into.headers.extend(compress(messages.headers, kept))
        into.timestamps_ms.extend(compress(messages.timestamps_ms, kept))

    def _partition(self, topic: str, source: Partition) -> int | None:
        same = self._counts.get(topic) == self._counts.get(source.topic)
        return source.number if same else None

    def _bury(self, emission: Emission, records: Records, row: int, reason: Reason) -> None:
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
            if not self._transactor.unsendable(topic, message):
                emission.to(topic, self._partition(topic, records.partition)).add(*attempt)
                return
        raise StateError(
            f"{_origin(records, row).decode()}: {reason}, and {topic} does not even take its origin; "
            "raise max.message.bytes of that topic"
        )


def _origin(records: Records, row: int) -> bytes:
    return f"{records.partition}@{records.offsets[row]}".encode()


def _origins(records: Records) -> list[bytes]:
    """`_origin` of every row."""
    source = f"{records.partition}@".encode()
    return [source + b"%d" % offset for offset in records.offsets]


STAGE = "twinsieve-stage"
LEADER = "twinsieve-leader"
SIMILARITY = "twinsieve-similarity"
DISTANCE = "twinsieve-distance"
NOTE = "twinsieve-note"

_STAGES = {int(Kind.EXACT): b"exact", int(Kind.NEAR): b"near"}
_NOTED = (Flag.AT_WORD, Flag.ESTIMATED)
_NOTES = {
    flags: b",".join((flag.name or "").lower().encode() for flag in _NOTED if flags & flag)
    for flags in range(256)
}


def explain_rows(ruling: Ruling) -> list[list[Header]]:
    """Headers for each row of a block; an empty list where nothing was dropped."""
    verdicts = ruling.verdicts
    columns = zip(
        verdicts.kinds.tolist(),
        verdicts.flags.tolist(),
        verdicts.leaders.tolist(),
        verdicts.matched.tolist(),
        verdicts.compared.tolist(),
        verdicts.distances.tolist(),
        strict=True,
    )
    rows: list[list[Header]] = []
    for kind, flags, leader, matched, compared, distance in columns:
        headers: list[Header] = []
        rows.append(headers)
        stage = _STAGES.get(kind)
        if stage is None:
            continue
        headers.append((STAGE, stage))
        if leader != NO_LEADER:
            headers.append((LEADER, _place(leader, ruling.topics)))
        if compared:
            share = matched * SIMILARITY_SCALE // compared
            headers.append((SIMILARITY, b"%d.%04d" % divmod(share, SIMILARITY_SCALE)))
        if distance >= 0 and kind == Kind.NEAR:
            headers.append((DISTANCE, b"%d" % distance))
        if _NOTES[flags]:
            headers.append((NOTE, _NOTES[flags]))
    return rows


def _place(packed: int, topics: dict[int, str]) -> bytes:
    at = unpack_position(packed)
    name = topics.get(at.topic_number, f"topic-{at.topic_number}")
    return f"{name}[{at.partition}]@{at.offset}".encode()
