"""The index's book of sessions against sets and dicts of single offsets."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from twinsieve.pipeline.index.ledger import Book, Ledger, NumberedTopic, ledger_from_bytes, ledger_to_bytes
from twinsieve.pipeline.index.ranges import OpenRows, OpenVerdicts, Ranges
from twinsieve.pipeline.wire.block import Block, BlockFlag
from twinsieve.pipeline.wire.ruling import Result
from twinsieve.stages.contract import Kind
from twinsieve.stages.errors import StateError

spans = st.tuples(st.integers(0, 40), st.integers(0, 12)).map(lambda span: (span[0], span[0] + span[1]))


@settings(max_examples=examples(200))
@given(
    changes=st.lists(st.one_of(spans, st.sets(st.integers(0, 60), max_size=12)), max_size=12),
    asked=st.sets(st.integers(0, 60), max_size=20),
)
def test_ranges_equal_a_set_of_offsets(changes: list[tuple[int, int] | set[int]], asked: set[int]) -> None:
    ranges, plain = Ranges(), set[int]()
    for change in changes:
        if isinstance(change, set):
            ranges.remove(np.array(sorted(change), np.int64))
            plain -= change
        else:
            ranges.add(*change)
            plain |= set(range(*change))
    offsets = np.array(sorted(asked), np.int64)
    assert ranges.contain(offsets).tolist() == [offset in plain for offset in sorted(asked)]
    assert {offset for first, end in ranges for offset in range(first, end)} == plain
    assert ranges.end == max(plain, default=-1) + 1
    assert all(one[1] < other[0] for one, other in zip(list(ranges), list(ranges)[1:], strict=False))


@settings(max_examples=examples(100))
@given(
    steps=st.lists(st.tuples(st.booleans(), spans), max_size=12),
    asked=st.sets(st.integers(0, 60), max_size=20),
)
def test_open_verdicts_equal_a_dict(steps: list[tuple[bool, tuple[int, int]]], asked: set[int]) -> None:
    opened, plain = OpenVerdicts(), dict[int, int]()
    for number, (is_drop, (first, end)) in enumerate(steps):
        if is_drop:
            gone = [offset for offset in plain if first <= offset < end]
            dropped = opened.drop(first, end).offsets.tolist()
            assert dropped == sorted(gone)
            for offset in gone:
                del plain[offset]
        else:
            new = [offset for offset in range(first, end) if offset not in plain]
            rows = OpenRows.blank(len(new), fill={"kinds": Kind.EXACT, "leaders": number})
            rows.offsets[:] = new
            opened.add(rows)
            plain.update(dict.fromkeys(new, number))
    check_open(opened, plain, asked)
    ledger = Ledger()
    ledger.topics.append(NumberedTopic(bytes(16), "in"))
    ledger.books[0, 0] = Book(open=opened)
    check_open(ledger_from_bytes(ledger_to_bytes(ledger), "here").books[0, 0].open, plain, asked)


def check_open(opened: OpenVerdicts, plain: dict[int, int], asked: set[int]) -> None:
    """The verdicts at these offsets, and their number."""
    wanted = sorted(asked)
    found, verdicts = opened.find(np.array(wanted, np.int64))
    assert found.tolist() == [offset in plain for offset in wanted]
    for row, offset in enumerate(wanted):
        kind = Kind.EXACT if offset in plain else Kind.REPLAYED
        assert verdicts.kinds[row] == kind
        if offset in plain:
            assert verdicts.leaders[row] == plain[offset]
    assert sum(map(len, opened.chunks)) == len(plain)


def ask(session: int, first: int, end: int, flags: BlockFlag = BlockFlag.NONE) -> Block:
    offsets = np.arange(first, end, dtype=np.int64)
    return Block(
        b"t" * 16, 0, 0, session, flags, first, end, first, first, stable_end=100, topic="in",
        offsets=offsets, kinds=np.ones(len(offsets), np.uint8),
    )  # fmt: skip


def take(ledger: Ledger, block: Block) -> Result:
    result = ledger.check(block)
    if result is Result.JUDGED:
        ledger.enter(block)
        sources, verdicts = ledger.sources(block)
        ledger.cover(block)
        ledger.open(block, sources, verdicts)
    return result


def test_a_block_that_has_lost_its_predecessor_is_superseded() -> None:
    ledger = Ledger()
    assert take(ledger, ask(1, 0, 0, BlockFlag.START)) is Result.JUDGED
    assert take(ledger, ask(1, 0, 5)) is Result.JUDGED
    assert take(ledger, ask(1, 7, 9)) is Result.SUPERSEDED
    assert take(ledger, ask(1, 4, 9)) is Result.SUPERSEDED
    assert take(ledger, ask(1, 5, 9)) is Result.JUDGED


def test_only_the_last_session_that_began_is_answered() -> None:
    ledger = Ledger()
    take(ledger, ask(1, 0, 0, BlockFlag.START))
    take(ledger, ask(2, 0, 0, BlockFlag.START))
    assert take(ledger, ask(1, 0, 5)) is Result.SUPERSEDED
    assert take(ledger, ask(2, 0, 5)) is Result.JUDGED
    assert take(ledger, replace(ask(2, 5, 9), number=1)) is Result.SUPERSEDED


def test_a_message_with_two_open_verdicts_is_damage() -> None:
    ledger = Ledger()
    ledger.topics.append(NumberedTopic(bytes(16), "in"))
    book = ledger.books[0, 0] = Book()
    for offsets in ([1, 4, 7], [2, 4]):
        rows = OpenRows.blank(len(offsets), fill={"kinds": Kind.EXACT})
        rows.offsets[:] = offsets
        book.open.add(rows)
    with pytest.raises(StateError, match="a message has two open verdicts"):
        ledger_from_bytes(ledger_to_bytes(ledger), "here")


def test_a_ledger_survives_its_bytes() -> None:
    ledger = Ledger()
    take(ledger, ask(1, 0, 0, BlockFlag.START))
    take(ledger, ask(1, 0, 50))
    take(ledger, replace(ask(2, 20, 20, BlockFlag.START), emitted_from=3, emitted_to=20))
    again = ledger_from_bytes(ledger_to_bytes(ledger), "here")
    assert ledger_to_bytes(again) == ledger_to_bytes(ledger)
    for block in (ask(1, 50, 60), ask(2, 20, 60), replace(ask(3, 0, 0, BlockFlag.START), stable_end=10)):
        assert take(again, block) is take(ledger, block)
