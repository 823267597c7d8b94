"""Rulings: the index's result for one block, recorded as a decision and sent as an answer (docs/WIRE.md)."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from twinsieve.pipeline.wire.column_bytes import WireSection, decode_columns, encode_columns, pack_section
from twinsieve.pipeline.wire.frame import (
    ENVELOPE_BYTES,
    What,
    scheme_in,
    seal,
    unseal,
)
from twinsieve.stages.contract import NO_TIME, Kind, Verdicts
from twinsieve.stages.errors import StateError

_HEADER = struct.Struct("<qQBBIqq")
_MADE_FOR = struct.Struct("<16sIqB")
"""Follows the header: the log's topic id, the block's checksum, its arrival time, number of topics given
up."""
_TOPIC_ID = struct.Struct("<16s")
_TOPIC = struct.Struct("<BH")


class Result(IntEnum):
    """The result for a whole block: judged, or why not."""

    JUDGED = 0
    SUPERSEDED = 1
    """its session no longer holds the partition, or a block before it is missing: a new session begins"""
    OFFSETS_MISSING = 2
    """the group has no offset for a partition that was judged before"""
    RECREATED = 3
    """a topic of this name was judged before, with another id"""
    SHORTENED = 4
    """the input partition ends before what was judged"""
    FOREIGN = 5
    """it has another fingerprint scheme (its worker cannot read the answer, and stops for that reason) or a
    format version that the index does not read (its worker waits until all processes are upgraded)"""
    BEYOND = 6
    """its topic, partition or offsets do not fit into a position"""
    LEFT_OUT = 7
    """its session begins after messages that were judged and never emitted, and no `reset` moved it there"""


class Source(IntEnum):
    """Where a row's verdict comes from."""

    NEW = 0
    STORED = 1
    """the row was judged before and is not known to be emitted: it gets the same verdict again"""
    REPLAYED = 2
    """the row was judged and emitted before"""


@dataclass(slots=True)
class Ruling:
    """The result for one block, and the verdicts of its rows in their order.

    log_offset: offset of the block in the fingerprint log
    session, first, end: as in the block
    sources: uint8[n], `Source`; verdicts: one per row; its kind is REPLAYED if the source is REPLAYED
    topics: names by topic number: the block's own topic first, then the topics of leaders and of messages
        that rows were kept apart from
    arrival_ms: arrival time of the messages, which bounded their own times
    log_id, checksum: topic id of the log, and the checksum of the block's envelope
    given_up: ids of input topics of which no message will come out any more; the index found this before it
        judged the block
    """

    log_offset: int
    session: int
    result: Result
    first: int
    end: int
    sources: NDArray[np.uint8] = field(default_factory=lambda: np.empty(0, np.uint8))
    verdicts: Verdicts = field(default_factory=lambda: Verdicts.blank(0))
    topics: dict[int, str] = field(default_factory=dict)
    arrival_ms: int = NO_TIME
    log_id: bytes | None = None
    checksum: int | None = None
    given_up: tuple[bytes, ...] = ()

    def __len__(self) -> int:
        return len(self.sources)

    @property
    def next_offset(self) -> int:
        """The log offset after the block."""
        return self.log_offset + 1


def encode_ruling(ruling: Ruling, scheme: bytes) -> tuple[bytes, bytes]:
    """The decision and the answer as bytes: the same content with two magics."""
    names = b"".join(
        _TOPIC.pack(number, len(name.encode())) + name.encode() for number, name in ruling.topics.items()
    )
    counts = (len(ruling.topics), len(ruling))
    header = _HEADER.pack(ruling.log_offset, ruling.session, ruling.result, *counts, ruling.first, ruling.end)
    block_identity = (ruling.log_id or bytes(16), ruling.checksum or 0)
    identity = _MADE_FOR.pack(*block_identity, ruling.arrival_ms, len(ruling.given_up)) + b"".join(
        ruling.given_up
    )
    rows = encode_columns(ruling.verdicts) + pack_section([ruling.sources], compress=True)
    content = b"".join((header, identity, names, rows))
    return seal(What.DECISION, scheme, content), seal(What.ANSWER, scheme, content)


def session_of(data: bytes) -> int:
    """The session that an answer of any version is for, without decoding the rest; 0 if it is too short."""
    if len(data) < ENVELOPE_BYTES + _HEADER.size:
        return 0
    return int(_HEADER.unpack_from(data, ENVELOPE_BYTES)[1])


def block_of(data: bytes) -> int:
    """Log offset of the block that a decision of any version is about; -1 if the record is too short."""
    if len(data) < ENVELOPE_BYTES + _HEADER.size:
        return -1
    return int(_HEADER.unpack_from(data, ENVELOPE_BYTES)[0])


def result_of(data: bytes) -> Result | None:
    """The result that a decision of this version gives its block, without decoding the rest."""
    if not scheme_in(data) or len(data) < ENVELOPE_BYTES + _HEADER.size:
        return None
    number = _HEADER.unpack_from(data, ENVELOPE_BYTES)[2]
    return next((result for result in Result if result == number), None)


def decode_ruling(what: What, data: bytes, scheme: bytes, where: str) -> Ruling:
    """The ruling in a decision or an answer.

    raises: StateError if it is damaged or contradicts itself; ForeignVersionError; ForeignSchemeError
    """
    content = unseal(what, scheme, data, where)
    topics: dict[int, str] = {}
    try:
        log_offset, session, result, named, count, first, end = _HEADER.unpack_from(content)
        position = _HEADER.size
        log_id, checksum, arrival_ms, given_up_count = _MADE_FOR.unpack_from(content, position)
        position += _MADE_FOR.size
        given_up = tuple(
            _TOPIC_ID.unpack_from(content, position + _TOPIC_ID.size * nth)[0]
            for nth in range(given_up_count)
        )
        position += _TOPIC_ID.size * given_up_count
        for _ in range(named):
            number, size = _TOPIC.unpack_from(content, position)
            topics[number] = str(content[position + _TOPIC.size : position + _TOPIC.size + size], "utf-8")
            position += _TOPIC.size + size
        verdicts, position = decode_columns(Verdicts, content, position, where)
        rows = WireSection(content, position, where)
        sources = rows.take("u1", count)
        rows.finish()
        # An index with newer rules may have recorded the number of a rule that this program does not have.
        columns = ((sources, Source), (verdicts.kinds, Kind))
        unknown = count and any(int(np.max(column)) > max(values) for column, values in columns)
        if len(verdicts) != count or unknown:
            rows.contradiction()
        return Ruling(
            log_offset, session, Result(result), first, end, sources, verdicts, topics,
            arrival_ms, log_id, checksum, given_up,
        )  # fmt: skip
    except (struct.error, UnicodeDecodeError, ValueError) as error:
        raise StateError(
            f"{where}: the {what.name.lower()} is damaged ({error}); only twinsieve may write to this topic"
        ) from error
