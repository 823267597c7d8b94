"""Records of answers: a decoder returns what was encoded, and so does a plain one that follows WIRE.md. A record
that is too large is split, and a forged one is refused."""

from __future__ import annotations

import struct
import tracemalloc
from contextlib import suppress
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import lz4.block
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.examples import examples
from tests.golden.make import FOLDER, SCHEME, golden_answers
from twinsieve.pipeline.wire.frame import (
    ENVELOPE_BYTES,
    SEGMENTS_VERSION,
    ForeignSchemeError,
    ForeignVersionError,
    What,
    scheme_hash,
    seal,
)
from twinsieve.pipeline.wire.segment_answers import (
    MOST_BLOCKS,
    MOST_SEGMENTS,
    AnswersRecord,
    BlockAnswer,
    SegmentPart,
    decode_answers,
    encode_answers,
)
from twinsieve.stages.contract import NO_TIME
from twinsieve.stages.differ.rules import Rule
from twinsieve.stages.errors import StateError
from twinsieve.stages.near.answers import COPIES, ENTRIES, MOST_ENTRIES, Answer
from twinsieve.stages.near.verify import ALIKE, REASON_SHIFT
from twinsieve.stages.window.segments import SegmentId

_MOST = 1 << 20
_SPAN = 400


@st.composite
def _answers(draw: st.DrawFn, rows: int, first: int) -> Answer:
    entries: list[tuple[int, ...]] = []
    for row in range(rows):
        kept = draw(st.lists(st.integers(first, first + _SPAN - 1), max_size=3, unique=True))
        for each in sorted(kept, reverse=True):
            compared = draw(st.integers(1, 2_000))
            status = ALIKE | draw(st.sampled_from([Rule.NONE, Rule.NUMBER, Rule.SAME_ID])) << REASON_SHIFT
            time = draw(st.one_of(st.just(NO_TIME), st.integers(-5, 2**45)))
            entries.append((row, each, draw(st.integers(0, 2**63 - 1)), time, 1, compared, status))
    taken = {entry[0] for entry in entries}
    copied = draw(st.lists(st.integers(0, rows - 1), unique=True, max_size=4)) if rows else []
    left = [row for row in range(rows) if row not in taken and draw(st.booleans())]
    copies = [(row, first + row, row, 7, row % 2) for row in sorted(copied)]
    dtypes = ("i4", "i8", "i8", "i8", "i4", "i4", "u1", "i4", "i8", "i8", "i8", "?", "i4")
    columns = [*_columns(entries, 7), *_columns(copies, 5), left]
    return Answer._make(np.array(column, dtype) for column, dtype in zip(columns, dtypes, strict=True))


def _columns(rows: list[tuple[int, ...]], count: int) -> list[list[int]]:
    return [[row[number] for row in rows] for number in range(count)]


@st.composite
def _parts(draw: st.DrawFn) -> SegmentPart:
    first, offset, blocks = draw(st.sampled_from([0, 5_000_000_000])), draw(st.integers(0, 2**40)), []
    for _ in range(draw(st.integers(0, 3))):
        rows = draw(st.integers(0, 5))
        answer = draw(st.one_of(st.none(), _answers(rows, first)))
        blocks.append(BlockAnswer(offset, draw(st.integers(0, 2**32 - 1)), rows, answer))
        offset += draw(st.integers(1, 2**31))
    segment = SegmentId(first, first + _SPAN, 500, draw(st.binary(min_size=16, max_size=16)))
    return SegmentPart(segment, blocks, offset + draw(st.integers(0, 2**31)))


@st.composite
def _records(draw: st.DrawFn) -> AnswersRecord:
    name = draw(st.sampled_from(["host-1", "机-2", ""]))
    return AnswersRecord(bytes(range(16)), bytes(16), name, draw(st.lists(_parts(), min_size=1, max_size=3)))


def _shown(record: AnswersRecord) -> list[Any]:
    """The record as plain values, with the dtypes of its columns."""
    parts = [(part.segment, _shown_blocks(part), part.read_to) for part in record.parts]
    return [record.log_id, record.question, record.shard, parts]


def _shown_blocks(part: SegmentPart) -> list[tuple[Any, ...]]:
    return [
        (
            *block[:3],
            None
            if block.answer is None
            else [(column.dtype.str, column.tolist()) for column in block.answer],
        )
        for block in part.blocks
    ]


def _plain(data: bytes) -> list[Any]:
    """What WIRE.md says of the bytes of a record, read byte by byte."""
    content = data[ENVELOPE_BYTES:]
    head = struct.Struct("<16s16sHHB")
    log_id, question, segments, count, size = head.unpack_from(content)
    at = head.size + size
    name = content[head.size : at].decode()
    method, packed, plain = struct.unpack_from("<BII", content, at)
    body = content[at + 9 :]
    assert len(body) == packed
    section = lz4.block.decompress(body, uncompressed_size=plain) if method else body
    place = 0

    def columns(*wanted: tuple[str, int]) -> list[list[Any]]:
        nonlocal place
        found = []
        for code, length in wanted:
            found.append(list(struct.unpack_from("<" + length * code, section, place)))
            place += struct.calcsize("<" + length * code)
        return found

    named = columns(*((code, segments) for code in ("q", "q", "q", "16s", "q", "q", "I")))
    table = columns(*((code, count) for code in "III?III"))
    totals = [sum(table[number]) for number in (4, 5, 6)]
    values = columns(
        *((code, totals[0]) for code in "IIqqiiB"),
        *((code, totals[1]) for code in "IIqq?"),
        ("I", totals[2]),
    )
    assert place == len(section)
    rows = iter(zip(*table, strict=True))
    groups = [iter(list(zip(*group, strict=True))) for group in (values[:7], values[7:12], values[12:])]
    parts = []
    for first, end, messages, digest, read_to, offset, number in zip(*named, strict=True):
        blocks = []
        for _ in range(number):
            gap, checksum, readable, declined, *counts = next(rows)
            offset += gap
            answer = []
            for group, length, width in zip(groups, counts, (7, 5, 1), strict=True):
                taken = [list(next(group)) for _ in range(length)]
                for each in taken if width > 1 else ():
                    each[1] += first
                answer += [[each[column] for each in taken] for column in range(width)]
            blocks.append((offset, checksum, readable, None if declined else answer))
        parts.append((SegmentId(first, end, messages, digest), blocks, read_to))
    return [log_id, question, name, parts]


@settings(max_examples=examples(100))
@given(_records())
def test_what_is_written_is_read_also_by_a_plain_reader(record: AnswersRecord) -> None:
    (data,) = encode_answers(SCHEME, record, _MOST)
    assert _shown(decode_answers(SCHEME, data, "here")) == _shown(record)
    *named, parts = _shown(record)
    plain = [
        (
            segment,
            [
                (*block, None if answer is None else [values for _, values in answer])
                for *block, answer in blocks
            ],
            read_to,
        )
        for segment, blocks, read_to in parts
    ]
    assert _plain(data) == [*named, plain]


def test_the_golden_record_is_read() -> None:
    data = (FOLDER / "answers.bin").read_bytes()
    assert _shown(decode_answers(SCHEME, data, "golden")) == _shown(golden_answers())


@settings(max_examples=examples(50))
@given(_records(), st.integers(200, 500))
def test_a_record_that_is_too_large_is_split_and_a_block_that_is_too_large_is_declined(
    record: AnswersRecord, most: int
) -> None:
    records = encode_answers(SCHEME, record, most)
    assert all(len(each) <= most for each in records)
    read = [decode_answers(SCHEME, each, "here") for each in records]
    assert all(_shown(each)[:3] == _shown(record)[:3] for each in read)
    found = [(part.segment, block) for each in read for part in each.parts for block in _shown_blocks(part)]
    expected = [(part.segment, block) for part in record.parts for block in part.blocks]
    assert {part.segment for each in read for part in each.parts} == {part.segment for part in record.parts}
    assert [(segment, block[:3]) for segment, block in found] == [
        (segment, block[:3]) for segment, block in expected
    ]
    for (segment, block), (_, whole) in zip(found, expected, strict=True):
        part = SegmentPart(segment, [whole], 0)
        if block != _shown_blocks(part)[0]:
            assert block[3] is None
            # How well it packs is known only behind the choice, so one that would just have fitted may be declined.
            assert len(encode_answers(SCHEME, replace(record, parts=[part]), _MOST)[0]) > most - 16


def test_a_run_of_blocks_without_anything_takes_few_bytes() -> None:
    nothing = _nothing()
    checksums = np.random.default_rng(1).integers(0, 2**32, 64).tolist()
    blocks = [BlockAnswer(900 + number, checksums[number], 300, nothing) for number in range(64)]
    (data,) = encode_answers(SCHEME, _with(blocks), _MOST)
    (empty,) = encode_answers(SCHEME, _with([]), _MOST)
    assert len(data) - len(empty) < 6 * 64


def test_many_segments_without_anything_take_few_bytes() -> None:
    blocks = [BlockAnswer(900, 7, 1_000, _nothing())]
    segments = [SegmentId(10 * number, 10 * number + 10, 10, number.to_bytes(16)) for number in range(60)]
    parts = [SegmentPart(segment, blocks, 901) for segment in segments]
    (data,) = encode_answers(SCHEME, replace(golden_answers(), parts=parts), _MOST)
    assert len(data) < 20 * len(segments)


def _golden_answer() -> Answer:
    answer = golden_answers().parts[0].blocks[0].answer
    assert answer is not None
    return answer


def _nothing() -> Answer:
    return Answer._make(column[:0] for column in _golden_answer())


def _with(blocks: list[BlockAnswer]) -> AnswersRecord:
    """A record of one segment."""
    golden = golden_answers()
    return replace(golden, parts=[golden.parts[0]._replace(blocks=blocks)])


def test_records_of_others_are_told_apart() -> None:
    (data,) = encode_answers(SCHEME, golden_answers(), _MOST)
    with pytest.raises(ForeignSchemeError):
        decode_answers(scheme_hash("other"), data, "here")
    later = bytearray(seal(What.ANSWERS, SCHEME, b""))
    later[4:6] = struct.pack("<H", SEGMENTS_VERSION + 1)
    with pytest.raises((ForeignVersionError, StateError)):
        decode_answers(SCHEME, bytes(later), "here")
    for what in set(What) - {What.ANSWERS}:
        with pytest.raises(StateError):
            decode_answers(SCHEME, seal(what, SCHEME, data[ENVELOPE_BYTES:]), "here")


def _changed(name: str, values: list[int] | NDArray[Any]) -> Answer:
    answer = _golden_answer()
    return answer._replace(**{name: np.array(values, getattr(answer, name).dtype)})


_FORGED = [
    ("rows", [0, 2, 0]),
    ("rows", [0, 0, 4]),
    ("rows", [0, 0, 3]),
    ("rows", [-1, 0, 2]),
    ("kept", [1_002, 1_009, 1_000]),
    ("kept", [1_002, 1_002, 1_000]),
    ("kept", [1_010, 1_002, 1_000]),
    ("positions", [-1, 2, 0]),
    ("times", [2**62, 0, 0]),
    ("matched", [0, 190, 200]),
    ("matched", [-7, 190, 200]),
    ("compared", [179, 200, 200]),
    ("status", [0, ALIKE, ALIKE]),
    ("status", [ALIKE, 255, ALIKE]),
    ("copy_rows", [4]),
    ("copy_kept", [1_010]),
    ("copy_positions", [-1]),
    ("copy_times", [-(2**62)]),
    ("unanswered", [3, 1]),
    ("unanswered", [1, 1]),
    ("unanswered", [1, 4]),
    ("unanswered", [0, 3]),
]


@pytest.mark.parametrize(("name", "values"), _FORGED)
def test_forged_values_are_refused(name: str, values: list[int]) -> None:
    forged = BlockAnswer(17, 5, 4, _changed(name, values))
    (data,) = encode_answers(SCHEME, _with([forged]), _MOST)
    with pytest.raises(StateError, match=r"^here: "):
        decode_answers(SCHEME, data, "here")


@pytest.mark.parametrize("rows", [[1, 1], [1, 0]])
def test_two_copies_of_a_row_and_rows_out_of_order_are_refused(rows: list[int]) -> None:
    twice = {name: np.repeat(getattr(_changed("rows", [0, 0, 2]), name), 2) for name in COPIES}
    forged = _changed("rows", [0, 0, 2])._replace(**{**twice, "copy_rows": np.array(rows, np.int32)})
    (data,) = encode_answers(SCHEME, _with([BlockAnswer(17, 5, 4, forged)]), _MOST)
    with pytest.raises(StateError, match=r"^here: its values"):
        decode_answers(SCHEME, data, "here")


@pytest.mark.parametrize(
    "segment", [(10, 10, 10), (10, 5, 10), (0, 20, 10), (2**62, 2**62 + 5, 10), (0, 2**28, 2**28)]
)
def test_forged_segments_are_refused(segment: tuple[int, int, int]) -> None:
    record = replace(golden_answers(), parts=[SegmentPart(SegmentId(*segment, bytes(16)), [], 0)])
    with pytest.raises(StateError):
        decode_answers(SCHEME, encode_answers(SCHEME, record, _MOST)[0], "here")


def test_too_many_entries_of_a_row_are_refused() -> None:
    for count in (MOST_ENTRIES, MOST_ENTRIES + 1):
        ones = np.ones(count, np.int64)
        kept = np.arange(2_000, 2_000 - count, -1)
        columns = (0 * ones, kept, ones, ones, ones, ones, ALIKE * ones)
        answer = _nothing()
        entries = {
            name: column.astype(getattr(answer, name).dtype)
            for name, column in zip(ENTRIES, columns, strict=True)
        }
        segment = SegmentId(1_000, 2_001, 1_001, bytes(16))
        blocks = [BlockAnswer(1, 2, 1, answer._replace(**entries))]
        record = AnswersRecord(bytes(16), bytes(16), "host-1", [SegmentPart(segment, blocks, 2)])
        (data,) = encode_answers(SCHEME, record, _MOST)
        if count == MOST_ENTRIES:
            assert _shown(decode_answers(SCHEME, data, "here")) == _shown(record)
        else:
            with pytest.raises(StateError):
                decode_answers(SCHEME, data, "here")


def test_every_column_is_an_entry_a_copy_or_a_row_left_out() -> None:
    assert (*ENTRIES, *COPIES, "unanswered") == Answer._fields


def _peak_of(data: bytes) -> int:
    """The most memory that reading takes, refused or not."""
    tracemalloc.start()
    try:
        with suppress(StateError):
            decode_answers(SCHEME, data, "here")
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_the_number_of_a_row_takes_no_memory() -> None:
    last = 2**31 - 1
    answer = _golden_answer()
    one = Answer._make(column[:1] for column in answer)._replace(
        rows=np.array([last], np.int32),
        copy_rows=np.array([last], np.int32),
        unanswered=answer.unanswered[:0],
    )
    (data,) = encode_answers(SCHEME, _with([BlockAnswer(17, 5, last + 1, one)]), _MOST)
    assert decode_answers(SCHEME, data, "here").parts[0].blocks[0].rows == last + 1
    assert _peak_of(data) < 1 << 20


def test_a_record_has_a_bounded_number_of_blocks() -> None:
    nothing = _nothing()
    blocks = [BlockAnswer(offset, 0, 1, nothing) for offset in range(2 * MOST_BLOCKS + 1)]
    read = [decode_answers(SCHEME, each, "here") for each in encode_answers(SCHEME, _with(blocks), _MOST)]
    assert max(len(part.blocks) for record in read for part in record.parts) <= MOST_BLOCKS
    offsets = [block.offset for record in read for part in record.parts for block in part.blocks]
    assert offsets == list(range(2 * MOST_BLOCKS + 1))
    with patch("twinsieve.pipeline.wire.segment_answers.MOST_BLOCKS", len(blocks)):
        (data,) = encode_answers(SCHEME, _with(blocks), _MOST)
    with pytest.raises(StateError):
        decode_answers(SCHEME, data, "here")


def test_a_record_has_a_bounded_number_of_segments() -> None:
    part = golden_answers().parts[2]
    many = replace(golden_answers(), parts=[part] * (MOST_SEGMENTS + 1))
    read = [decode_answers(SCHEME, each, "here") for each in encode_answers(SCHEME, many, _MOST)]
    assert [len(record.parts) for record in read] == [MOST_SEGMENTS // 2, MOST_SEGMENTS // 2 + 1]
    with patch("twinsieve.pipeline.wire.segment_answers.MOST_SEGMENTS", MOST_SEGMENTS + 1):
        (data,) = encode_answers(SCHEME, many, _MOST)
    with pytest.raises(StateError):
        decode_answers(SCHEME, data, "here")


def _section(record: AnswersRecord) -> tuple[bytes, bytearray]:
    """The head of a record, and its columns, one after the other."""
    (data,) = encode_answers(SCHEME, record, _MOST)
    content = data[ENVELOPE_BYTES:]
    at = struct.calcsize("<16s16sHHB") + len(record.shard)
    method, _, plain = struct.unpack_from("<BII", content, at)
    body = content[at + 9 :]
    return content[:at], bytearray(lz4.block.decompress(body, uncompressed_size=plain) if method else body)


def _sealed(head: bytes, section: bytes) -> bytes:
    return seal(What.ANSWERS, SCHEME, head + struct.pack("<BII", 0, len(section), len(section)) + section)


_SEGMENTS, _BLOCKS = 3, 4
_READ_AT, _OFFSETS_AT, _NUMBERS_AT, _GAPS_AT = (each * _SEGMENTS for each in (40, 48, 56, 60))


@pytest.mark.parametrize(
    ("at", "code", "values"),
    [
        (_READ_AT, "q", [-1]),
        (_READ_AT, "q", [22, 2**62 + 1]),
        (_OFFSETS_AT, "q", [-1]),
        (_OFFSETS_AT, "q", [2**62 + 1]),
        (_NUMBERS_AT, "I", [2]),
        (_NUMBERS_AT, "I", [4, 1]),
        (_NUMBERS_AT, "I", [2**32 - 1, 1, 4]),
        (_GAPS_AT, "I", [1]),
        (_GAPS_AT, "I", [0, 0]),
        (_GAPS_AT, "I", [0, 1, 3, 1]),
    ],
)
def test_forged_places_of_blocks_are_refused(at: int, code: str, values: list[int]) -> None:
    head, section = _section(golden_answers())
    assert decode_answers(SCHEME, _sealed(head, bytes(section)), "here").shard == "host-1"
    struct.pack_into(f"<{len(values)}{code}", section, at, *values)
    with pytest.raises(StateError, match=r"^here: its values"):
        decode_answers(SCHEME, _sealed(head, bytes(section)), "here")


def test_the_answers_of_a_segment_are_checked_against_its_own_messages() -> None:
    golden = golden_answers()
    parts = [golden.parts[0], golden.parts[1]]
    data = encode_answers(SCHEME, replace(golden, parts=parts), _MOST)[0]
    decode_answers(SCHEME, data, "here")
    kept = _golden_answer().kept + 4_999_999_000
    outside = _golden_answer()._replace(kept=kept + np.array([2, 0, 0]), copy_kept=kept[:1])
    parts[1] = parts[1]._replace(blocks=[BlockAnswer(18, 5, 4, outside)])
    data = encode_answers(SCHEME, replace(golden, parts=parts), _MOST)[0]
    with pytest.raises(StateError, match=r"^here: its values"):
        decode_answers(SCHEME, data, "here")


def test_a_section_that_claims_more_than_it_can_hold_takes_no_memory() -> None:
    (data,) = encode_answers(SCHEME, _with([]), _MOST)
    content = data[ENVELOPE_BYTES:]
    head = content[: struct.calcsize("<16s16sHHB") + len(golden_answers().shard)]
    forged = seal(What.ANSWERS, SCHEME, head + struct.pack("<BII", 1, 4, 2**28) + bytes(4))
    assert _peak_of(forged) < 1 << 20
