"""Records of answers: what a sealed segment has for the rows of a run of blocks (docs/WIRE.md).

A record is of one segment. It names the log, the blocks by offset and checksum, the segment, and the question
that was asked, so whoever reads it knows whether it fits. A record without blocks says that somebody answers
for the segment.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from twinsieve.pipeline.wire.column_bytes import WireSection, pack_section
from twinsieve.pipeline.wire.frame import What, seal, unseal
from twinsieve.stages.contract import MAX_SEGMENT
from twinsieve.stages.errors import StateError
from twinsieve.stages.near.answers import Answer, selected
from twinsieve.stages.near.sound_answers import STATUSES, is_sound
from twinsieve.stages.window.segments import SegmentId
from twinsieve.stages.window.soundness import MOST_KEPT

_HEAD = struct.Struct("<16s16sQQI16sQIB")
"""Topic id of the log, question, segment (first, end, messages, digest), offset of the first block, number of
blocks, bytes of the name of the shard."""
MOST_BLOCKS = 1_024
"""Most blocks of a record. Blocks without anything take few bytes, and each takes time to read."""
_MAX_OFFSET = 1 << 62
_BLOCK = ("<u4", "<u4", "<u4", "?", "<u4", "<u4", "<u4")
"""Offset behind that of the block before, checksum, rows, whether the answer is left out, and how many
entries, copies and unanswered rows it has."""
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


@dataclass(frozen=True, slots=True)
class AnswersRecord:
    """A record of answers.

    log_id: topic id of the log; question: what was asked (`NearRules.question`), 16 bytes
    shard: name of the member that answers, for logs alone; blocks: ascending offsets
    """

    log_id: bytes
    question: bytes
    segment: SegmentId
    shard: str
    blocks: Sequence[BlockAnswer]


def encode_answers(scheme: bytes, record: AnswersRecord, most_bytes: int) -> list[bytes]:
    """The record as bytes, or several that together say the same, none larger than `most_bytes` or with more
    than MOST_BLOCKS blocks.

    A block whose answer alone is larger is declined. raises: ValueError if not even that fits
    """
    blocks = record.blocks
    if len(blocks) <= MOST_BLOCKS and len(encoded := _encode(scheme, record)) <= most_bytes:
        return [encoded]
    if len(blocks) > 1:
        halves = blocks[: len(blocks) // 2], blocks[len(blocks) // 2 :]
        return [
            one for half in halves for one in encode_answers(scheme, replace(record, blocks=half), most_bytes)
        ]
    if not blocks or blocks[0].answer is None:
        raise ValueError(f"a record of answers does not fit into {most_bytes} bytes")
    return encode_answers(scheme, replace(record, blocks=[blocks[0]._replace(answer=None)]), most_bytes)


def _encode(scheme: bytes, record: AnswersRecord) -> bytes:
    segment, blocks, name = record.segment, record.blocks, record.shard.encode()
    offsets = np.array([block.offset for block in blocks], np.int64)
    first = int(offsets[0]) if blocks else 0
    answers = [_NOTHING if block.answer is None else block.answer for block in blocks]
    head = _HEAD.pack(
        record.log_id, record.question, *segment[:3], segment.digest, first, len(blocks), len(name)
    )
    table: list[ArrayLike] = [
        np.diff(offsets, prepend=first),
        [block.checksum for block in blocks],
        [block.rows for block in blocks],
        [block.answer is None for block in blocks],
        [len(answer.rows) for answer in answers],
        [len(answer.copy_rows) for answer in answers],
        [len(answer.unanswered) for answer in answers],
    ]
    per_block = [np.array(column, dtype) for column, dtype in zip(table, _BLOCK, strict=True)]
    columns = []
    for column, dtype in zip(Answer._fields, (*_ENTRY, *_COPY, _LEFT), strict=True):
        joined = np.concatenate([getattr(answer, column) for answer in (_NOTHING, *answers)])
        if column.endswith("kept"):
            joined = joined - segment.first
        columns.append(joined.astype(dtype))
    body = pack_section(per_block, compress=True) + pack_section(columns, compress=True)
    return seal(What.ANSWERS, scheme, head + name + body)


def decode_answers(scheme: bytes, data: bytes, where: str) -> AnswersRecord:
    """The record in these bytes, of which every value is checked: a stranger may have written them.

    where: names the record in errors
    raises: StateError if it is damaged or contradicts itself; ForeignVersionError; ForeignSchemeError
    """
    content = unseal(What.ANSWERS, scheme, data, where)
    if len(content) < _HEAD.size:
        raise StateError(f"{where}: ends early; {_ADVICE}")
    log_id, question, first, end, messages, digest, offset, count, size = _HEAD.unpack_from(content)
    body = _HEAD.size + size
    name = bytes(content[_HEAD.size : body]).decode("utf-8", "replace")
    segment = SegmentId(first, end, messages, digest)
    is_segment = 0 <= first < end <= MOST_KEPT and end - first <= messages <= MAX_SEGMENT
    is_bounded = offset <= _MAX_OFFSET and count <= MOST_BLOCKS
    if len(content) < body or not name.isprintable() or not (is_segment and is_bounded):
        _contradicts(where)
    table = WireSection(content, body, where)
    gaps, checksums, rows, declined, entries, copies, unanswered = (
        table.take(dtype, count) for dtype in _BLOCK
    )
    table.finish()
    columns = WireSection(content, table.end, where)
    totals = [int(counts.sum(dtype=np.int64)) for counts in (entries, copies, unanswered)]
    dtypes = zip((_ENTRY, _COPY, (_LEFT,)), totals, strict=True)
    taken = [columns.take(dtype, total) for group, total in dtypes for dtype in group]
    columns.finish()
    whole = _native(taken, first)
    offsets = offset + np.cumsum(gaps, dtype=np.int64)
    counts = np.array([entries, copies, unanswered], np.int64)
    is_run = count == 0 or (gaps[0] == 0 and gaps[1:].all())
    is_empty = not counts[:, declined].any()
    if columns.end != len(content) or not (
        is_run and is_empty and is_sound(whole, counts, rows.astype(np.int64), first, end, STATUSES)
    ):
        _contradicts(where)
    ends = np.cumsum(counts, axis=1, dtype=np.int64)
    begins = ends - counts
    blocks = []
    for number in range(count):
        spans = zip(begins[:, number].tolist(), ends[:, number].tolist(), strict=True)
        answer = None if declined[number] else selected(whole, [slice(*span) for span in spans])
        blocks.append(BlockAnswer(int(offsets[number]), int(checksums[number]), int(rows[number]), answer))
    return AnswersRecord(log_id, question, segment, name, blocks)


def _contradicts(where: str) -> NoReturn:
    raise StateError(f"{where}: its values contradict each other; {_ADVICE}")


def _native(taken: list[NDArray[np.generic]], first: int) -> Answer:
    """The columns of all blocks, as an answer has them."""
    dtypes = [column.dtype for column in _NOTHING]
    answer = Answer._make(column.astype(dtype) for column, dtype in zip(taken, dtypes, strict=True))
    return answer._replace(kept=answer.kept + first, copy_kept=answer.copy_kept + first)


_NOTHING = Answer._make(
    np.zeros(0, dtype)
    for dtype in ("i4", "i8", "i8", "i8", "i4", "i4", "u1", "i4", "i8", "i8", "i8", "?", "i4")
)
"""An answer without anything."""
