"""Blocks, the requests of a worker to the index, and their encoding (docs/WIRE.md describes each byte)."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field, replace
from enum import IntEnum, IntFlag
from operator import attrgetter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from twinsieve.pipeline.wire.column_bytes import (
    WireSection,
    decode_columns,
    encode_columns,
    pack_section,
    row_bytes,
)
from twinsieve.pipeline.wire.frame import ENVELOPE_BYTES, What, scheme_in, seal, unseal
from twinsieve.stages.contract import Batch
from twinsieve.stages.errors import StateError

_ROW_BYTES = 8
"""Upper limit for the bytes of a row in a block; a readable row takes the bytes of its columns in
addition."""

_ADVICE = "only twinsieve may write to this topic"

MAX_SPAN = (1 << 32) - 1
"""Largest distance from a block's `first` to its last row, because each row is sent as its distance from
`first`, in 4 bytes."""

_HEADER = struct.Struct("<16sQiiIIqqqqqqqHH")
"""The fields of `_BEFORE_COUNT`, the number of rows, the fields of `_BEHIND_COUNT`, and the lengths of topic
and program in bytes."""
_BEFORE_COUNT = attrgetter("topic_id", "session", "number", "reply", "flags")
_BEHIND_COUNT = attrgetter(
    "first", "end", "emitted_from", "emitted_to", "beginning", "stable_end", "arrival_ms"
)
_ASK = struct.Struct("<16sQiiIIqq")
"""The first part of the header, which has the same layout in every version."""


class RowKind(IntEnum):
    """What sort of message a row of a block is."""

    READABLE = 0
    UNREADABLE = 1
    NO_TEXT = 2
    """a tombstone, or a message whose text is null or missing: it is kept, and is never a leader"""
    REFUSED = 3
    """the output topic refuses it: it is treated as unreadable, even if an earlier verdict says unique"""


class BlockFlag(IntFlag):
    """Facts about a block that do not concern single rows."""

    NONE = 0
    START = 1
    """opens its session"""
    FRESH = 2
    """with START: the group has no committed offset for this partition"""
    CERTIFIED = 4
    """with START: the metadata of the committed offset (`Mark`) contains the id of this very topic"""
    FIRST = 8
    """with FRESH: the session skips the existing messages, because the group has no offset for any partition
    of this topic"""
    RESET = 16
    """with START: `twinsieve reset` may have moved the offset, so messages before it may never be emitted"""


@dataclass(slots=True)
class Block:
    """One request to the index: it asks for verdicts on the rows in [first, end) of one input partition.

    topic_id, number: the input partition; reply: partition of the verdicts topic for the answer
    session: random number, never 0; each block of a session begins where the one before ended
    emitted_from, emitted_to: range of input offsets whose messages are known to be emitted; may be empty
    beginning, stable_end: only with START: first offset and last stable offset of the input partition at
        that time
    arrival_ms: the worker's clock when it read the rows
    topic: name of the input topic; program: only with START: program version of the worker, and its settings
        (`settings.common`) behind a space
    offsets: int64[n], ascending, in [first, end); kinds: uint8[n], `RowKind`
    batch: the rows of kind READABLE, in their order; positions and arrivals are not sent
    """

    topic_id: bytes
    number: int
    reply: int
    session: int
    flags: BlockFlag
    first: int
    end: int
    emitted_from: int
    emitted_to: int
    beginning: int = 0
    stable_end: int = 0
    arrival_ms: int = 0
    topic: str = ""
    program: str = ""
    offsets: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    kinds: NDArray[np.uint8] = field(default_factory=lambda: np.empty(0, np.uint8))
    batch: Batch = field(default_factory=lambda: Batch.blank(0))

    def __len__(self) -> int:
        return len(self.offsets)

    @property
    def settings(self) -> str:
        """The settings of the worker, as `settings.common` writes them; empty if they are unknown."""
        return self.program.partition(" ")[2]


def encode_block(block: Block, scheme: bytes) -> bytes:
    """A block as bytes. raises: ValueError for a row before `first`, or more than `MAX_SPAN` after it"""
    places = block.offsets - block.first
    if len(block) and not 0 <= int(places[0]) <= int(places[-1]) <= MAX_SPAN:
        raise ValueError(
            f"{block.topic}[{block.number}]: rows {block.offsets[0]}..{block.offsets[-1]} do not fit "
            f"from {block.first} on into one block; split it"
        )
    topic, program = block.topic.encode(), block.program.encode()
    header = _HEADER.pack(*_BEFORE_COUNT(block), len(block), *_BEHIND_COUNT(block), len(topic), len(program))
    rows = pack_section([places.astype("<u4"), block.kinds], compress=True)
    return seal(What.BLOCK, scheme, b"".join((header, topic, program, rows, encode_columns(block.batch))))


def decode_block(data: bytes, scheme: bytes, where: str) -> Block:
    """The block that these bytes encode.

    where: names the record in errors, as in `weibo.fingerprints[0]@17`
    raises: StateError if the block is damaged or contradicts itself; ForeignVersionError; ForeignSchemeError
    """
    content = unseal(What.BLOCK, scheme, data, where)
    if len(content) < _HEADER.size:
        raise StateError(f"{where}: its header ends early; {_ADVICE}")
    header = _HEADER.unpack_from(content)
    topic_id, session, number, reply, flags, count, *behind, topic_size, program_size = header
    first, end, emitted_from, emitted_to, beginning, stable_end, arrival_ms = behind
    position = _HEADER.size
    try:
        topic = str(content[position : position + topic_size], "utf-8")
        program = str(content[position + topic_size : position + topic_size + program_size], "utf-8")
    except UnicodeDecodeError as error:
        raise StateError(f"{where}: its topic name is damaged; {_ADVICE}") from error
    rows = WireSection(content, position + topic_size + program_size, where)
    offsets = rows.take("<u4", count).astype(np.int64) + first
    kinds = rows.take("u1", count)
    rows.finish()
    inside = bool(np.all(np.diff(offsets) > 0)) and (not count or int(offsets[-1]) < end)
    if end < first or not inside or (count and int(kinds.max()) > max(RowKind)):
        raise StateError(f"{where}: its offsets contradict each other; {_ADVICE}")
    batch, _ = decode_columns(Batch, content, rows.end, where)
    if len(batch) != int(np.count_nonzero(kinds == RowKind.READABLE)):
        raise StateError(f"{where}: its rows contradict each other; {_ADVICE}")
    return Block(
        topic_id, number, reply, session, BlockFlag(flags), first, end, emitted_from, emitted_to,
        beginning, stable_end, arrival_ms, topic, program, offsets, kinds, batch,
    )  # fmt: skip


class Ask(NamedTuple):
    """The fields of a block's header that can be read in every version and scheme: the session that asked,
    the partition for the answer, and the offsets."""

    session: int
    reply: int
    first: int
    end: int


def asked_by(data: bytes) -> Ask:
    """The `Ask` of an undamaged block, which may be of another version or fingerprint scheme.

    All fields are 0 if the content is too short.
    """
    if len(data) < ENVELOPE_BYTES + _ASK.size:
        return Ask(0, 0, 0, 0)
    _, session, _, reply, _, _, first, end = _ASK.unpack_from(data, ENVELOPE_BYTES)
    return Ask(session, reply, first, end)


class Outline(NamedTuple):
    """Which offsets a block asks for, and which it reports as emitted; the fields are those of `Block`."""

    topic_id: bytes
    number: int
    flags: BlockFlag
    first: int
    end: int
    emitted_from: int
    emitted_to: int


def outline_of(data: bytes) -> Outline | None:
    """The outline of a block of any scheme, without decoding its rows; None for a block of another version.

    Not checked for damage: decode the block before you rely on it.
    """
    if not scheme_in(data) or len(data) < ENVELOPE_BYTES + _HEADER.size:
        return None
    topic_id, _, number, _, flags, _, *behind = _HEADER.unpack_from(data, ENVELOPE_BYTES)[:10]
    return Outline(topic_id, number, BlockFlag(flags), *behind)


def split_block(block: Block, max_bytes: int) -> list[Block]:
    """The same rows as blocks of at most `max_bytes` each, before compression. A single row may be larger,
    but has at most a few kilobytes, because its text is cut to the part that is ever compared.

    A compacted topic may have gaps of any length. No block spans more than `MAX_SPAN`; over a longer gap, a
    block without rows is added.
    """
    sizes = row_bytes(block.batch)
    per_row = np.full(len(block), _ROW_BYTES, np.int64)
    is_readable = block.kinds == RowKind.READABLE
    per_row[is_readable] += sizes
    upto = np.cumsum(per_row)
    if not len(block) or (upto[-1] <= max_bytes and block.offsets[-1] - block.first <= MAX_SPAN):
        return [block]
    parts: list[Block] = []
    low = readable_low = 0
    readable_upto = np.cumsum(is_readable)
    while low < len(block):
        spent = int(upto[low - 1]) if low else 0
        first = parts[-1].end if parts else block.first
        high = max(low + 1, int(np.searchsorted(upto, spent + max_bytes, "right")))
        high = min(high, int(np.searchsorted(block.offsets, first + MAX_SPAN, "right")))
        readable_high = int(readable_upto[high - 1]) if high else 0
        parts.append(
            replace(
                block,
                flags=block.flags if not parts else BlockFlag.NONE,
                first=first,
                end=block.end if high >= len(block) else int(block.offsets[high]),
                offsets=block.offsets[low:high],
                kinds=block.kinds[low:high],
                batch=block.batch.slice(readable_low, readable_high),
            )
        )
        low, readable_low = high, readable_high
    return parts
