"""Turns each original message into what its verdict requires: a unique message, a duplicate, a dead letter,
or nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from twinsieve.pipeline.basics.dead_letter_reasons import DeadLetterReason
from twinsieve.pipeline.broker.input_position import read_position
from twinsieve.pipeline.broker.ports import TransactionalProducer
from twinsieve.pipeline.broker.records import (
    NO_TIMESTAMP,
    OWN_HEADERS,
    Copies,
    Header,
    Messages,
    Partition,
    Records,
)
from twinsieve.pipeline.wire.headers import ORIGIN, REASON, REFUSAL
from twinsieve.pipeline.wire.ruling import Ruling
from twinsieve.pipeline.worker.added_headers import HeaderTable
from twinsieve.pipeline.worker.session import PendingBlock
from twinsieve.pipeline.worker.suspects import Suspects
from twinsieve.pipeline.worker.verdict_headers import add_apart, add_explanation
from twinsieve.stages.contract import Kind, Verdicts
from twinsieve.stages.errors import StateError
from twinsieve.stages.rows.record_copies import NONE


@dataclass(frozen=True, slots=True)
class EmitConfig:
    """The topics that messages are written to. No field has a default.

    duplicates, dead_letter: None if such messages are not written
    on_refused: what becomes of a message that the dead letter topic refuses, too
    inputs: topics in which redriven messages were first; empty if the worker reads the input itself
    emit: False in a dry run, which writes no message
    """

    output: str
    duplicates: str | None
    dead_letter: str | None
    inputs: tuple[str, ...]
    origin_header: bool
    kept_apart_header: bool
    null_value: Literal["pass", "drop", "dead_letter"]
    on_refused: Literal["hold", "skip"]
    emit: bool

    @property
    def topics(self) -> set[str]:
        """Names of the topics that messages are written to; empty in a dry run."""
        names = (self.output, self.duplicates, self.dead_letter)
        return {name for name in names if name is not None and self.emit}


class HeldError(StateError):
    """The dead letter topic refuses this message, too, and the configuration says to hold its partition."""

    def __init__(self, offset: int, message: str) -> None:
        super().__init__(message)
        self.offset = offset


@dataclass(slots=True)
class Emission:
    """The messages that one transaction writes, and counts of them.

    outgoing: messages by topic and partition number; without a number their keys choose the partition
    kinds: number of input messages by verdict; dead: number of dead letters by reason
    no_text: number of unique messages without a text; they are never leaders
    skipped: number of messages that no topic takes, by reason; losses: a line for the operator on each
    foreign: number of input headers that were removed because they look like ours
    stamps: int64 arrays with the timestamps of input messages that were not emitted before, as far as they
        have one
    """

    outgoing: dict[tuple[str, int | None], list[Messages | Copies]] = field(default_factory=dict)
    kinds: Counter[Kind] = field(default_factory=Counter)
    no_text: int = 0
    dead: Counter[DeadLetterReason] = field(default_factory=Counter)
    skipped: Counter[DeadLetterReason] = field(default_factory=Counter)
    losses: list[str] = field(default_factory=list)
    foreign: int = 0
    stamps: list[NDArray[np.int64]] = field(default_factory=list)

    def to(self, topic: str, partition: int | None) -> list[Messages | Copies]:
        """The messages for this topic and partition so far; the caller may add to them."""
        return self.outgoing.setdefault((topic, partition), [])

    def add(self, other: Emission) -> None:
        """Add the messages and counts of another emission."""
        for (topic, partition), messages in other.outgoing.items():
            self.to(topic, partition).extend(messages)
        self.count(other)

    def count(self, other: Emission) -> None:
        """Add the counts of another emission, without its messages."""
        self.kinds.update(other.kinds)
        self.no_text += other.no_text
        self.dead.update(other.dead)
        self.skipped.update(other.skipped)
        self.losses += other.losses
        self.stamps += other.stamps
        self.foreign += other.foreign


def without_foreign(records: Records) -> tuple[Records, dict[int, int]]:
    """The records without headers that look like ours, and by row how many were removed (rows without such
    headers are left out).

    >>> from twinsieve.pipeline.broker.records import Partition
    >>> headers = (("twinsieve-leader", b"x"), ("trace", b"1"))
    >>> own, foreign = without_foreign(Records.of(Partition("posts", 0), [7], headers=[headers]))
    >>> own.headers, foreign
    ([(('trace', b'1'),)], {0: 1})
    """
    if not records.columns.marked.any():
        return records, {}
    headers = [[each for each in own if not each[0].startswith(OWN_HEADERS)] for own in records.headers]
    pairs = enumerate(zip(records.columns.header_counts.tolist(), headers, strict=True))
    foreign = {row: count - len(kept) for row, (count, kept) in pairs if count != len(kept)}
    return records.with_headers(headers), foreign


def unsendable(
    config: EmitConfig, records: Records, transactor: TransactionalProducer
) -> dict[int, DeadLetterReason]:
    """Rows of these records that the output topic would refuse, with the reason; none in a dry run."""
    if not config.emit or not len(records):
        return {}
    return transactor.unsendable(config.output, _uniques(config, records, np.arange(len(records))))


@dataclass(frozen=True, slots=True)
class Emitter:
    """Adds the messages of answered blocks to an emission.

    counts: number of partitions of each input and output topic
    transactor: its `unsendable` finds messages that a topic refuses
    suspects: knows the messages that a topic has refused, although `unsendable` did not find them
    """

    config: EmitConfig
    counts: Mapping[str, int]
    transactor: TransactionalProducer
    suspects: Suspects

    def add(self, emission: Emission, block: PendingBlock, ruling: Ruling) -> None:
        """Add the messages of one answered block, in input order.

        raises: HeldError for a message that no topic takes
        """
        records, kinds = block.records, ruling.verdicts.kinds
        emission.kinds.update(
            {Kind(kind): count for kind, count in enumerate(np.bincount(kinds).tolist()) if count}
        )
        emission.foreign += block.foreign
        emission.no_text += sum(kinds[row] == Kind.UNIQUE for row in block.no_text)
        stamps = records.columns.times_ms
        emission.stamps.append(stamps[(kinds != Kind.REPLAYED) & (stamps != NO_TIMESTAMP)])
        if not self.config.emit:
            return
        dead, held_back = self._held_back(block, kinds)
        if held_back:
            kinds = kinds.copy()
            kinds[list(held_back)] = Kind.REPLAYED
        rows = np.flatnonzero(kinds == Kind.UNIQUE)
        if len(rows):
            # No check with `unsendable` here: it ran before the block was sent, because a message that the
            # output refuses must not become a leader.
            unique = _uniques(self.config, records, rows)
            if self.config.kept_apart_header:
                unique = self._with_kept_apart(unique, ruling.verdicts.take(rows))
            self._send(emission, self.config.output, records, rows, unique)
        rows = np.flatnonzero((kinds == Kind.EXACT) | (kinds == Kind.NEAR))
        if len(rows) and self.config.duplicates is not None:
            dead |= self._add_duplicates(emission, self.config.duplicates, records, rows, ruling)
        for row in sorted(dead):
            self._bury(emission, records, row, dead[row])

    def _with_kept_apart(self, unique: Copies, verdicts: Verdicts) -> Copies:
        """The same messages with the header `twinsieve-kept-apart` on those that have a difference to report,
        unless the output would then refuse the message."""
        told = _uniques(self.config, unique.records, unique.rows, verdicts)
        refused = self.transactor.unsendable(self.config.output, told)
        if refused:
            told.added.names[list(refused), -1] = NONE
        return told

    def _held_back(
        self, block: PendingBlock, kinds: NDArray[np.uint8]
    ) -> tuple[dict[int, DeadLetterReason], set[int]]:
        """Rows that become dead letters, with the reason; and the set of all rows that go neither to the
        output nor to the duplicates topic."""
        unreadable = np.flatnonzero(kinds == Kind.UNREADABLE).tolist()
        # A row that this worker can read was judged for a worker that found it refused, and did not live to
        # write the dead letter.
        dead = {row: block.reasons.get(row, DeadLetterReason.REFUSED) for row in unreadable}
        # The output refuses these rows although they are unique: they are tombstones, or they were judged
        # when the output still accepted them.
        dead |= {row: reason for row, reason in block.refused.items() if kinds[row] == Kind.UNIQUE}
        nulls: set[int] = set()
        if self.config.null_value != "pass":
            sizes = block.records.columns.value_sizes
            nulls = {row for row in block.no_text if sizes[row] < 0 and kinds[row] != Kind.REPLAYED}
        for row in nulls:
            dead.pop(row, None)
            if self.config.null_value == "dead_letter":
                dead[row] = DeadLetterReason.NULL
        return dead, nulls | dead.keys()

    def _add_duplicates(
        self, emission: Emission, topic: str, records: Records, rows: NDArray[np.int64], ruling: Ruling
    ) -> dict[int, DeadLetterReason]:
        """Add these rows to the messages for the duplicates topic; returns the rows that the topic refuses,
        with the reason."""
        table = HeaderTable(len(rows))
        add_explanation(table, ruling, rows)
        _add_origins(table, records, rows)
        dropped = Copies(records, rows, table.headers())
        refused = self.transactor.unsendable(topic, dropped)
        found = self.suspects.of(records.partition)
        for place, row in enumerate(rows.tolist() if found else ()):
            if topic in found.get(records.offset(row), {}):
                refused.setdefault(place, DeadLetterReason.REFUSED)
        sent = rows
        if refused:
            kept = np.delete(np.arange(len(rows)), list(refused))
            sent, dropped = rows[kept], dropped.only(kept)
        self._send(emission, topic, records, sent, dropped)
        return {int(rows[place]): reason for place, reason in refused.items()}

    def _send(
        self,
        emission: Emission,
        topic: str,
        records: Records,
        rows: NDArray[np.int64],
        messages: Messages | Copies,
    ) -> None:
        """Add the messages that these rows became. A redriven one goes where it would have gone from its
        first place."""
        if not records.origins:
            emission.to(topic, self._number(topic, records.partition)).append(messages)
            return
        places: dict[int | None, list[int]] = {}
        for place, row in enumerate(rows.tolist()):
            first = read_position(records.origins[row].decode())
            number = self._number(topic, first.partition) if first is not None else None
            places.setdefault(number, []).append(place)
        for number, own in places.items():
            emission.to(topic, number).append(messages.only(np.array(own)))

    def _number(self, topic: str, source: Partition) -> int | None:
        """The partition for messages of this input partition: the one with the same number if both topics
        have equally many partitions; otherwise None, and keys choose."""
        count = self.counts.get(topic, 0)
        # The number of a redriven message is from a header, so it may be one that no partition has.
        same = count == self.counts.get(source.topic) and source.number < count
        return source.number if same else None

    def _bury(self, emission: Emission, records: Records, row: int, reason: DeadLetterReason) -> None:
        """Add one dead letter: the original message with headers for reason and origin.

        If the client or the topic refuses that, leave out the original headers, then also the timestamp, the
        key and the value, until the rest is accepted. A topic that needs keys gets the origin as key.

        raises: HeldError if not even that can be written
        """
        topic = self.config.dead_letter
        if topic is None:
            emission.dead[reason] += 1
            return
        refusals = self.suspects.of(records.partition).get(records.offset(row), {})
        said = [words for name, each in refusals.items() if name != topic for words in each]
        origin = _origin(records, row)
        why: list[Header] = [(REASON, reason.encode()), (ORIGIN, origin)]
        why += [(REFUSAL, words.encode()) for words in said[:1]]
        key, value = records.keys[row], records.values[row]
        (own,), stamp = records.slice(row, row + 1).headers, int(records.columns.times_ms[row])
        tries: list[tuple[bytes | None, bytes | None, Sequence[Header], int]] = [
            (key, value, (*own, *why), stamp),
            (key, value, why, stamp),
            (key, value, why, NO_TIMESTAMP),
            (None, value, why, NO_TIMESTAMP),
            (None, b"", why, NO_TIMESTAMP),
        ]
        answers = refusals.get(topic, ())
        if answers:
            # Nobody knows which part the topic refuses. Leave out what is not needed, but not the value.
            tries = [(key or origin, value, why, NO_TIMESTAMP)] if len(answers) == 1 else []
        for own_key, *rest in tries:
            for attempt_key in (own_key,) if own_key is not None else (None, origin):
                message = Messages([attempt_key], *([column] for column in rest))  # type: ignore[arg-type]
                if not self.transactor.unsendable(topic, message):
                    emission.dead[reason] += 1
                    self._send(emission, topic, records, np.array([row]), message)
                    return
        words = f" ({answers[-1]})" if answers else ": it is too large even without key and value"
        lost = f"{origin.decode()}: {reason}, and {topic} refuses the dead letter{words}"
        if self.config.on_refused == "hold":
            raise HeldError(
                records.offset(row),
                f"{lost}; the partition waits: have the topic take it, or set output.on_refused: skip",
            )
        emission.skipped[reason] += 1
        emission.losses.append(f"{lost}; skipped, it is in no topic")


def _origin(records: Records, row: int) -> bytes:
    if records.origins:
        return records.origins[row]
    return f"{records.partition}@{records.offset(row)}".encode()


def _add_origins(table: HeaderTable, records: Records, rows: NDArray[np.int64]) -> None:
    """Add the header that says where a message was first, to each of these rows."""
    if records.origins:
        table.add(ORIGIN, texts=table.numbers_of([records.origins[row] for row in rows.tolist()]))
    else:
        source = table.number_of(f"{records.partition}@".encode())
        table.add(ORIGIN, texts=source, numbers=records.columns.offsets[rows])


def _uniques(
    config: EmitConfig, records: Records, rows: NDArray[np.int64], verdicts: Verdicts | None = None
) -> Copies:
    """These rows as messages for the output topic. verdicts: on the rows, if they say what kept them apart"""
    table = HeaderTable(len(rows))
    if config.origin_header:
        _add_origins(table, records, rows)
    if verdicts is not None:
        add_apart(table, verdicts)
    return Copies(records, rows, table.headers())
