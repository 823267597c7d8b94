"""A session counts the arenas of its waiting originals as a whole, and gives each back with its last message."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinsieve.pipeline.basics.state_machine import Machine
from twinsieve.pipeline.broker.arenas import Arenas
from twinsieve.pipeline.broker.mark import Mark
from twinsieve.pipeline.broker.records import Partition, Records
from twinsieve.pipeline.wire.ruling import Result, Ruling
from twinsieve.pipeline.worker.session import (
    ROW_BYTES,
    SESSION_WAYS,
    PendingBlock,
    Session,
    SessionPhase,
)
from twinsieve.stages.contract import Verdicts

_AT = Partition("in", 0)


def _session() -> Session:
    """A session that reads."""
    phase = Machine(SESSION_WAYS, SessionPhase.READING)
    return Session(
        _AT, 1, Partition("answers", 0), phase, Mark(bytes(16), 0, 0),
        covered=0, reported=0, asked_s=0.0, active_s=0.0, window=100, trimmed=0,
    )  # fmt: skip


def _polled(arenas: Arenas, first: int, sizes: list[int]) -> Records:
    """Records whose values have these sizes, in an arena."""
    offsets = range(first, first + len(sizes))
    values = [bytes([offset % 251]) * size for offset, size in zip(offsets, sizes, strict=True)]
    records = Records.of(_AT, offsets, values=values)
    begin, end = records.span
    return Records.joined(_AT, [records], arenas.take(end - begin))


def _ask(session: Session, records: Records, cuts: list[int]) -> None:
    """Send the records as one block for each span between two cuts."""
    blocks = []
    for low, high in pairwise(cuts):
        part = records.slice(low, high)
        blocks.append(PendingBlock(part.offset(0), part.next_offset, part))
    session.ask(blocks, 0.0, starts=False)


def _answer(session: Session) -> None:
    block = session.pending[len(session.ready)]
    count = len(block.records)
    verdicts = Verdicts.blank(count)
    ruling = Ruling(7, 1, Result.JUDGED, block.first, block.end, np.zeros(count, np.uint8), verdicts)
    session.answer(ruling, "here")


def _check(session: Session, arenas: Arenas) -> None:
    held = {id(block.records.content): block.records.content for block in session.pending}
    rows = sum(len(block.records) for block in session.pending)
    assert session.pending_bytes == sum(map(len, held.values())) + rows * ROW_BYTES
    assert arenas.alive_bytes <= session.pending_bytes
    for block in session.pending:
        for offset, value in zip(block.records.offsets, block.records.values, strict=True):
            assert value is not None
            assert set(value) <= {offset % 251}


@given(
    st.lists(st.lists(st.integers(0, 3_000), min_size=1, max_size=9), min_size=1, max_size=5),
    st.data(),
)
def test_an_arena_counts_until_its_last_block_is_out(polls: list[list[int]], data: st.DataObject) -> None:
    arenas, session = Arenas(0), _session()
    first = 0
    for sizes in polls:
        records = _polled(arenas, first, sizes)
        inner = data.draw(st.sets(st.integers(1, len(sizes) - 1))) if len(sizes) > 1 else set()
        _ask(session, records, [0, *sorted(inner), len(sizes)])
        first += len(sizes)
        del records
    while session.pending:
        _answer(session)
        if data.draw(st.booleans()) or len(session.ready) == len(session.pending):
            session.emit(len(session.ready), 0.0)
        _check(session, arenas)
    assert session.pending_bytes == 0
    assert arenas.alive == 0


@pytest.mark.parametrize(("last", "is_copied"), [(300, False), (200, True)])
def test_what_still_waits_in_less_than_a_quarter_is_copied_out(last: int, is_copied: bool) -> None:
    arenas, session = Arenas(0), _session()
    records = _polled(arenas, 0, [700 if not is_copied else 800, last])
    _ask(session, records, [0, 1, 2])
    del records
    _answer(session)
    session.emit(1, 0.0)
    assert arenas.alive == (0 if is_copied else 1)
    assert [*session.pending[0].records.values] == [bytes([1]) * last]
