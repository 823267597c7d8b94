"""Blocks, decisions and answers: what is written is read back, damage stops, and old records stay
readable."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.golden.make import FOLDER, SCHEME, golden_block, golden_ruling, records
from tests.twins import HashSieve, TinyScheme, batch_of, ruled
from twinsieve.pipeline.index.ledger import ledger_from_bytes, ledger_to_bytes
from twinsieve.pipeline.index.state import IndexState
from twinsieve.pipeline.wire.block import (
    MAX_SPAN,
    Block,
    BlockFlag,
    RowKind,
    decode_block,
    encode_block,
    split_block,
)
from twinsieve.pipeline.wire.frame import (
    VERSION,
    ForeignSchemeError,
    ForeignVersionError,
    What,
    scheme_hash,
    seal,
)
from twinsieve.pipeline.wire.positions import (
    MAX_OFFSETS,
    MAX_PARTITIONS,
    MAX_TOPICS,
    pack_positions,
    renumber,
    unpack_position,
)
from twinsieve.pipeline.wire.ruling import decode_ruling, encode_ruling, session_of
from twinsieve.pipeline.wire.segment_answers import decode_answers
from twinsieve.pipeline.worker.added_headers import HeaderTable
from twinsieve.pipeline.worker.verdict_headers import add_apart
from twinsieve.stages.columns import PerRow, declared
from twinsieve.stages.contract import DETAIL_LENGTH, STORED_LENGTH, Batch, Verdicts
from twinsieve.stages.errors import StateError
from twinsieve.stages.near.answers import NO_ANSWERS, Answer
from twinsieve.stages.window.segments import SegmentId


def same(one: object, other: object) -> bool:
    if is_dataclass(one):
        return all(same(getattr(one, each.name), getattr(other, each.name)) for each in fields(one))
    if isinstance(one, np.ndarray):
        assert isinstance(other, np.ndarray)
        return one.dtype == other.dtype and np.array_equal(one, other)
    return one == other


def block_of(texts: list[str], kinds: list[int]) -> Block:
    bodies, prints = TinyScheme().read(texts)
    n = len(texts)
    rows = batch_of(bodies, prints, times=np.arange(n), ids=np.arange(n))
    offsets = np.arange(len(kinds), dtype=np.int64) * 3 + 50
    end = 50 + 3 * len(kinds)
    return Block(
        bytes(16), 0, 0, 9, BlockFlag.START, 50, end, 50, 50,
        offsets=offsets, kinds=np.array(kinds, np.uint8), batch=rows,
    )  # fmt: skip


def test_golden_records_are_written_byte_for_byte() -> None:
    for name, content in records().items():
        assert (FOLDER / name).read_bytes() == content, name


def test_golden_records_are_read() -> None:
    assert same(decode_block((FOLDER / "block.bin").read_bytes(), SCHEME, "golden"), golden_block())
    for what, name in ((What.DECISION, "decision.bin"), (What.ANSWER, "answer.bin")):
        assert same(decode_ruling(what, (FOLDER / name).read_bytes(), SCHEME, "golden"), golden_ruling())
    assert session_of((FOLDER / "answer.bin").read_bytes()) == golden_ruling().session


def test_the_number_of_a_rule_of_a_newer_program_is_read_and_shown() -> None:
    ruling = golden_ruling()
    ruling.verdicts.reasons[0] = 200
    decision, _ = encode_ruling(ruling, SCHEME)
    verdicts = decode_ruling(What.DECISION, decision, SCHEME, "here").verdicts
    table = HeaderTable(len(verdicts))
    add_apart(table, verdicts)
    assert table.headers().listed()[0] == [("twinsieve-kept-apart", "rule 200 9/万".encode())]


class FullSieve(HashSieve):
    """No column of its verdicts is blank."""

    def judge(self, batch: Batch, *, answers: Mapping[SegmentId, Answer] = NO_ANSWERS) -> Verdicts:
        verdicts, rows = super().judge(batch, answers=answers), np.arange(len(batch))
        for name, column in declared(Verdicts).items():
            if isinstance(column, PerRow) and name not in ("kinds", "leaders"):
                getattr(verdicts, name)[:] = rows + 1
        verdicts.apart_from[:] = batch.positions[0]
        verdicts.details = np.full((len(batch), 2, DETAIL_LENGTH), ord("x"), np.uint32)
        verdicts.detail_rows[:] = rows
        return verdicts


def test_all_that_was_said_of_a_message_is_in_the_answer_to_whoever_asks_again() -> None:
    """Though the index that judged it has died, and the next one began with its snapshot."""
    asked = replace(block_of(["one", "two", "one"], [0, 0, 0]), stable_end=1_000, topic="in")
    index = IndexState(FullSieve())
    judged = ruled(index, asked, 0, 0).verdicts
    blank = Verdicts.blank(3)
    assert all(
        (getattr(judged, name) != getattr(blank, name)).any()
        for name in declared(Verdicts)
        if name != "details"
    )
    ledger = ledger_from_bytes(ledger_to_bytes(index.ledger), "snapshot")
    again = ruled(IndexState(HashSieve(), ledger, 1), replace(asked, session=asked.session + 1), 1, 0)
    for what, record in zip((What.DECISION, What.ANSWER), encode_ruling(again, SCHEME), strict=True):
        assert same(decode_ruling(what, record, SCHEME, "here").verdicts, judged)


@pytest.mark.parametrize("version", [1, 3, 4, 5])
def test_records_of_older_versions_are_refused_with_what_to_do(version: int) -> None:
    expected = rf"version {version}, this program reads {VERSION}.*start a new app and seed it"
    with pytest.raises(ForeignVersionError, match=expected):
        decode_block((FOLDER / f"version_{version}" / "block.bin").read_bytes(), SCHEME, "golden")


rows = st.lists(
    st.one_of(st.text(max_size=30), st.sampled_from([RowKind.UNREADABLE, RowKind.NO_TEXT, RowKind.REFUSED])),
    max_size=40,
)


@settings(max_examples=examples(60))
@given(rows=rows, limit=st.integers(1, 3_000))
def test_what_is_split_written_and_read_is_the_same_rows(rows: list[str | RowKind], limit: int) -> None:
    texts = [row for row in rows if not isinstance(row, RowKind)]
    kinds = [int(row) if isinstance(row, RowKind) else int(RowKind.READABLE) for row in rows]
    parts = [
        decode_block(encode_block(part, SCHEME), SCHEME, "here")
        for part in split_block(block_of(texts, kinds), limit)
    ]
    assert [part.first for part in parts[1:]] == [part.end for part in parts[:-1]]
    assert (parts[0].first, parts[-1].end) == (50, 50 + 3 * len(rows))
    assert [part.flags for part in parts] == [BlockFlag.START] + [BlockFlag.NONE] * (len(parts) - 1)
    assert [kind for part in parts for kind in part.kinds.tolist()] == kinds
    assert [part.batch.bodies.text(row) for part in parts for row in range(len(part.batch))] == texts
    digests = [value for part in parts for value in part.batch.fingerprints.digests[:, 0].tolist()]
    assert digests == TinyScheme().read(texts)[1].digests[:, 0].tolist()


gaps = st.lists(st.sampled_from([1, 2, MAX_SPAN - 1, MAX_SPAN, MAX_SPAN + 1, 3 * MAX_SPAN]), max_size=8)


@settings(max_examples=examples(100))
@given(gaps=gaps, limit=st.integers(1, 200))
def test_no_block_spans_more_than_its_offsets_can_say(gaps: list[int], limit: int) -> None:
    offsets = 50 - 1 + np.cumsum(np.array(gaps, np.int64))
    whole = replace(
        block_of([], [int(RowKind.UNREADABLE)] * len(gaps)), offsets=offsets, end=int(max([50, *offsets])) + 1
    )
    parts = [decode_block(encode_block(part, SCHEME), SCHEME, "here") for part in split_block(whole, limit)]
    assert [part.first for part in parts[1:]] == [part.end for part in parts[:-1]]
    assert (parts[0].first, parts[-1].end) == (whole.first, whole.end)
    assert [at for part in parts for at in part.offsets.tolist()] == offsets.tolist()
    assert [part.flags for part in parts] == [BlockFlag.START] + [BlockFlag.NONE] * (len(parts) - 1)


@pytest.mark.parametrize("offsets", [[49], [50, 50 + MAX_SPAN + 1], [50 + MAX_SPAN + 1]])
def test_rows_that_a_block_cannot_hold_are_never_written(offsets: list[int]) -> None:
    kinds = [int(RowKind.UNREADABLE)] * len(offsets)
    block = replace(block_of([], kinds), offsets=np.array(offsets), end=max(50, *offsets) + 1)
    with pytest.raises(ValueError, match="split it"):
        encode_block(block, SCHEME)


def test_blocks_keep_to_the_limit_and_long_texts_to_what_is_compared() -> None:
    block = block_of(["长" * 100_000, "x" * 700, "short"], [0, 0, 0])
    parts = split_block(block, 4_000)
    assert all(len(encode_block(part, SCHEME)) <= 4_000 for part in parts)
    read = decode_block(encode_block(block, SCHEME), SCHEME, "here").batch
    assert np.diff(read.bodies.starts).tolist() == [STORED_LENGTH, STORED_LENGTH, 5]
    assert read.bodies.body_lengths.tolist() == [100_000, 700, 5]


@settings(max_examples=examples(150))
@given(data=st.data())
def test_damage_is_an_error_and_never_anything_else(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(records())))
    content = bytearray(records()[name])
    place = data.draw(st.integers(0, len(content) - 1))
    if data.draw(st.booleans()):
        content = content[:place]
    else:
        content[place] ^= data.draw(st.integers(1, 255))
    with pytest.raises(StateError):
        read(name, bytes(content))


@settings(max_examples=examples(150))
@given(data=st.data())
def test_damage_under_a_right_checksum_is_an_error_or_reads(data: st.DataObject) -> None:
    """As a forger or another program could write it: bounded work, no other exception."""
    name = data.draw(st.sampled_from(sorted(records())))
    content = bytearray(records()[name][28:])
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    what = {
        "block.bin": What.BLOCK,
        "decision.bin": What.DECISION,
        "answer.bin": What.ANSWER,
        "answers.bin": What.ANSWERS,
    }[name]
    with contextlib.suppress(StateError):
        read(name, seal(what, SCHEME, bytes(content)))


def read(name: str, content: bytes) -> object:
    if name == "block.bin":
        return decode_block(content, SCHEME, "golden")
    if name == "answers.bin":
        return decode_answers(SCHEME, content, "golden")
    return decode_ruling(What.DECISION if name == "decision.bin" else What.ANSWER, content, SCHEME, "golden")


def test_another_scheme_stops_with_what_to_do() -> None:
    with pytest.raises(ForeignSchemeError, match=r"restore profile, text.* or start a new app"):
        decode_block(encode_block(golden_block(), scheme_hash("other")), SCHEME, "log@7")


def test_positions_keep_their_parts() -> None:
    for parts in [(0, 0, 0), (MAX_TOPICS - 1, MAX_PARTITIONS - 1, MAX_OFFSETS - 1), (5, 3, 50456)]:
        packed = int(pack_positions(parts[0], parts[1], np.array([parts[2]]))[0])
        assert packed >= 0
        assert tuple(unpack_position(packed)) == parts


@given(numbers=st.permutations(range(5)), leaders=st.lists(st.integers(0, 4), max_size=12))
def test_topics_may_change_places(numbers: list[int], leaders: list[int]) -> None:
    """Each number is replaced once, whatever the others become; what is no position stays."""
    packed = np.array([-(2**63), *(int(pack_positions(at, 3, np.array([7]))[0]) for at in leaders)])
    renumber(packed, dict(enumerate(numbers)))
    assert packed[0] == -(2**63)
    assert [unpack_position(int(each)) for each in packed[1:]] == [(numbers[at], 3, 7) for at in leaders]


def test_positions_beyond_their_bits_are_refused() -> None:
    for parts in [(MAX_TOPICS, 0, 0), (0, MAX_PARTITIONS, 0), (0, 0, MAX_OFFSETS)]:
        with pytest.raises(StateError):
            pack_positions(parts[0], parts[1], np.array([parts[2]]))


def test_a_block_whose_rows_leave_its_range_is_refused() -> None:
    block = replace(golden_block(), end=110)
    with pytest.raises(StateError, match="contradict"):
        decode_block(encode_block(block, SCHEME), SCHEME, "here")
