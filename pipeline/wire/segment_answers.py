"""Records of answers: what sealed segments have for the rows of runs of blocks (docs/WIRE.md).

A record names the log, the question that was asked, the segments, and of each segment the blocks by offset
and checksum, so whoever reads it knows whether it fits. A segment without blocks is one that is answered for,
and of each the record says up to which block the log is read.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import islice
from typing import NamedTuple, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from twinsieve.pipeline.wire.column_bytes import WireSection, pack_section
from twinsieve.pipeline.wire.frame import What, seal, unseal, version_of
from twinsieve.stages.columns import Array
from twinsieve.stages.contract import MAX_SEGMENT
from twinsieve.stages.errors import StateError
from twinsieve.stages.near.answers import Answer, selected
from twinsieve.stages.near.sound_answers import STATUSES, is_sound
from twinsieve.stages.window.segments import SegmentId
from twinsieve.stages.window.soundness import MOST_KEPT

_HEAD = struct.Struct("<16s16sHHB")
"""Topic id of the log, question, number of segments, number of their blocks, bytes of the shard's name."""
MOST_SEGMENTS = 1_024
MOST_BLOCKS = 1_024
"""Most segments of a record, and most blocks of all of them together. Those without anything take few bytes,
and each takes time to read."""
MOST_BLOCKS_AHEAD = 64
"""Blocks are answered at most so far ahead of what the index has committed."""
_MAX_OFFSET = 1 << 62
_SEGMENT = ("<i8", "<i8", "<i8", "u1", "<i8", "<i8", "<u4")
"""First kept index, end, messages, 16 bytes of digest, offset up to which the log is read, offset of the
first block, number of blocks."""
_BLOCK = ("<u4", "<u4", "<u4", "?", "<u4", "<u4", "<u4")
"""Offset behind that of the segment's block before, checksum, rows, whether the answer is left out, and how
many entries, copies and unanswered rows it has."""
_ENTRY = ("<u4", "<u4", "<i8", "<i8", "<i4", "<i4", "u1")
_COPY = ("<u4", "<u4", "<i8", "<i8", "?")
_LEFT = "<u4"
_ADVICE = "only twinsieve may write to this topic; delete the app's internal topics or start a new app"


class BlockAnswer(NamedTuple):
    """What a segment has for a block.

    offset: of the block in the log; checksum: of its envelope; rows: number of its readable rows
    answer: for these rows; None if it is too large for a record, so that whoever judges looks the block up
    """

    offset: int
    checksum: int
    rows: int
    answer: Answer | None

    @property
    def bytes_used(self) -> int:
        """Bytes that it takes in memory, about."""
        columns = () if self.answer is None else self.answer
        return 500 + sum(column.nbytes for column in columns)

    def agrees(self, other: BlockAnswer) -> bool:
        """Whether two say the same of a block; one without an answer says nothing."""
        if self.answer is None or other.answer is None:
            return True
        return self.rows == other.rows and all(
            np.array_equal(getattr(self.answer, name), getattr(other.answer, name)) for name in Answer._fields
        )


class SegmentPart(NamedTuple):
    """What a record says of one segment.

    blocks: ascending offsets
    read_to: the shard has read the log up to this offset, so earlier blocks are answered, or passed over. It
        moves with what was read, and with nothing else
    """

    segment: SegmentId
    blocks: Sequence[BlockAnswer]
    read_to: int


@dataclass(frozen=True, slots=True)
class AnswersRecord:
    """A record of answers.

    log_id: topic id of the log; question: what was asked, and how (`asked_of`), 16 bytes
    shard: name of the member that answers, for logs alone
    """

    log_id: bytes
    question: bytes
    shard: str
    parts: Sequence[SegmentPart]


def asked_of(question: bytes) -> bytes:
    """16 bytes that a shard and an index must have in common, so that one waits for the other: what is asked
    of a segment, and in which formats blocks and answers are written.

    question: `NearRules.question`
    """
    versions = b"".join(version_of(each.value).to_bytes(2, "little") for each in (What.BLOCK, What.ANSWERS))
    return blake2b(question + versions, digest_size=len(question), person=b"twinsieve-shards").digest()


def encode_answers(scheme: bytes, record: AnswersRecord, most_bytes: int) -> list[bytes]:
    """The record as bytes, or several that together say the same, none larger than `most_bytes` or with more
    than MOST_SEGMENTS segments or MOST_BLOCKS blocks.

    A block whose answer alone is larger is declined. raises: ValueError if not even that fits
    """
    parts = record.parts
    is_bounded = len(parts) <= MOST_SEGMENTS and sum(len(part.blocks) for part in parts) <= MOST_BLOCKS
    if is_bounded and len(encoded := _encode(scheme, record)) <= most_bytes:
        return [encoded]
    halves = [replace(record, parts=half) for half in _halves(parts)]
    if not halves:
        raise ValueError(f"a record of answers does not fit into {most_bytes} bytes")
    return [one for half in halves for one in encode_answers(scheme, half, most_bytes)]


def _halves(parts: Sequence[SegmentPart]) -> list[list[SegmentPart]]:
    """Two halves of these parts; of a single one, of its blocks; a single block without its answer. Empty if
    there is nothing to leave out."""
    middle = len(parts) // 2
    if middle:
        return [list(parts[:middle]), list(parts[middle:])]
    part = parts[0]
    blocks = part.blocks
    middle = len(blocks) // 2
    if middle:
        # Whoever reads the first half does not know of the other one yet.
        first = SegmentPart(part.segment, blocks[:middle], blocks[middle].offset)
        return [[first], [part._replace(blocks=blocks[middle:])]]
    if not blocks or blocks[0].answer is None:
        return []
    return [[part._replace(blocks=[blocks[0]._replace(answer=None)])]]


def _encode(scheme: bytes, record: AnswersRecord) -> bytes:
    parts, name = record.parts, record.shard.encode()
    blocks = [block for part in parts for block in part.blocks]
    offsets = [np.array([block.offset for block in part.blocks], np.int64) for part in parts]
    firsts = [int(each[0]) if len(each) else 0 for each in offsets]
    head = _HEAD.pack(record.log_id, record.question, len(parts), len(blocks), len(name))
    segments = [part.segment for part in parts]
    per_segment: list[ArrayLike] = [
        [segment.first for segment in segments],
        [segment.end for segment in segments],
        [segment.messages for segment in segments],
        np.frombuffer(b"".join(segment.digest for segment in segments), np.uint8),
        [part.read_to for part in parts],
        firsts,
        [len(part.blocks) for part in parts],
    ]
    answers = [NOTHING if block.answer is None else block.answer for block in blocks]
    gaps = [np.diff(each, prepend=first) for each, first in zip(offsets, firsts, strict=True)]
    per_block: list[ArrayLike] = [
        np.concatenate([*gaps, _NO_ROWS]),
        [block.checksum for block in blocks],
        [block.rows for block in blocks],
        [block.answer is None for block in blocks],
        [len(answer.rows) for answer in answers],
        [len(answer.copy_rows) for answer in answers],
        [len(answer.unanswered) for answer in answers],
    ]
    columns = [
        np.array(column, dtype)
        for column, dtype in zip([*per_segment, *per_block], (*_SEGMENT, *_BLOCK), strict=True)
    ]
    of_blocks = [part.segment.first for part in parts for _ in part.blocks]
    for column, dtype in zip(Answer._fields, (*_ENTRY, *_COPY, _LEFT), strict=True):
        each = [getattr(answer, column) for answer in answers]
        if column.endswith("kept"):
            each = [kept - first for kept, first in zip(each, of_blocks, strict=True)]
        columns.append(np.concatenate([getattr(NOTHING, column), *each]).astype(dtype))
    return seal(What.ANSWERS, scheme, head + name + pack_section(columns, compress=True))


def decode_answers(scheme: bytes, data: bytes, where: str) -> AnswersRecord:
    """The record in these bytes, of which every value is checked: a stranger may have written them.

    where: names the record in errors
    raises: StateError if it is damaged or contradicts itself; ForeignVersionError; ForeignSchemeError
    """
    content = unseal(What.ANSWERS, scheme, data, where)
    if len(content) < _HEAD.size:
        raise StateError(f"{where}: ends early; {_ADVICE}")
    log_id, question, segments, count, size = _HEAD.unpack_from(content)
    body = _HEAD.size + size
    name = bytes(content[_HEAD.size : body]).decode("utf-8", "replace")
    if len(content) < body or not name.isprintable() or segments > MOST_SEGMENTS or count > MOST_BLOCKS:
        _contradicts(where)
    section = WireSection(content, body, where)
    named = [section.take(dtype, segments) for dtype in _SEGMENT[:3]]
    digests = section.take("u1", segments, 16)
    ends, starts, numbers = (section.take(dtype, segments) for dtype in _SEGMENT[4:])
    table = [section.take(dtype, count) for dtype in _BLOCK]
    totals = [int(counts.sum(dtype=np.int64)) for counts in table[4:]]
    groups = zip((_ENTRY, _COPY, (_LEFT,)), totals, strict=True)
    taken = [section.take(dtype, total) for group, total in groups for dtype in group]
    section.finish()
    ids = [
        SegmentId(int(begin), int(end), int(messages), digest.tobytes())
        for begin, end, messages, digest in zip(*named, digests, strict=True)
    ]
    if (
        section.end != len(content)
        or not all(map(_is_segment, ids))
        or (ends < 0).any()
        or (ends > _MAX_OFFSET).any()
        or int(numbers.sum(dtype=np.int64)) != count
    ):
        _contradicts(where)
    gaps, checksums, rows, declined, *lengths = table
    counts = np.array(lengths, np.int64)
    spans = np.repeat(np.array(named[:2]), numbers, axis=1)
    whole = _native(taken, spans[0], counts)
    offsets = _offsets(gaps, starts, numbers)
    if (
        offsets is None
        or counts[:, declined].any()
        or not is_sound(whole, counts, rows.astype(np.int64), spans, STATUSES)
    ):
        _contradicts(where)
    highs = np.cumsum(counts, axis=1)
    lows = (highs - counts).T.tolist()
    blocks = [
        BlockAnswer(
            offset, checksum, number, None if is_left else selected(whole, list(map(slice, low, high)))
        )
        for offset, checksum, number, is_left, low, high in zip(
            offsets.tolist(),
            checksums.tolist(),
            rows.tolist(),
            declined.tolist(),
            lows,
            highs.T.tolist(),
            strict=True,
        )
    ]
    each = iter(blocks)
    parts = [
        SegmentPart(segment, list(islice(each, number)), end)
        for segment, number, end in zip(ids, numbers.tolist(), ends.tolist(), strict=True)
    ]
    return AnswersRecord(log_id, question, name, parts)


def _is_segment(segment: SegmentId) -> bool:
    """Whether there can be such a segment."""
    first, end, messages, _ = segment
    return 0 <= first < end <= MOST_KEPT and end - first <= messages <= MAX_SEGMENT


def _offsets(gaps: Array, starts: Array, numbers: Array) -> Array | None:
    """Offsets of the blocks; None if those of a segment do not ascend from its first one.

    gaps: uint32[n]; starts: int64[m], the first of each segment, which has `numbers` blocks
    """
    if (starts < 0).any() or (starts > _MAX_OFFSET).any():
        return None
    ends = np.cumsum(numbers, dtype=np.int64)
    firsts = (ends - numbers)[numbers > 0]
    is_first = np.zeros(len(gaps), np.bool_)
    is_first[firsts] = True
    if ((gaps == 0) != is_first).any():
        return None
    behind = np.cumsum(gaps, dtype=np.int64)
    begins = starts[numbers > 0] - behind[firsts]
    return behind + np.repeat(begins, numbers[numbers > 0])


def _contradicts(where: str) -> NoReturn:
    raise StateError(f"{where}: its values contradict each other; {_ADVICE}")


def _native(taken: list[Array], firsts: NDArray[np.int64], counts: NDArray[np.int64]) -> Answer:
    """The columns of all blocks, as an answer has them. firsts: of the segment of each block"""
    dtypes = [column.dtype for column in NOTHING]
    answer = Answer._make(column.astype(dtype) for column, dtype in zip(taken, dtypes, strict=True))
    entries, copies = np.repeat(firsts, counts[0]), np.repeat(firsts, counts[1])
    return answer._replace(kept=answer.kept + entries, copy_kept=answer.copy_kept + copies)


NOTHING = Answer._make(
    np.zeros(0, dtype)
    for dtype in ("i4", "i8", "i8", "i8", "i4", "i4", "u1", "i4", "i8", "i8", "i8", "?", "i4")
)
"""An answer without anything."""
_NO_ROWS = np.zeros(0, np.int64)
