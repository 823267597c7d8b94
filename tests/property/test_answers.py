"""Answers change no verdict: whoever computed them, for any of the segments, and whatever was forgotten since.

A second reader builds his segments from the arrays of a file, as a shard does. The tests also take the entries of
some rows out of an answer, as a reader does for rows with more than 64.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.property.streams import DIFFERENCES, ROWS, Row, Rows, batch_of, table
from twinsieve.stages.contract import (
    Batch,
    ExactConfig,
    NearConfig,
    SieveConfig,
    TimeConfig,
    Verdicts,
    Window,
)
from twinsieve.stages.errors import UsageError
from twinsieve.stages.judge.batch_sieve import BatchSieve
from twinsieve.stages.judge.segment_reader import SegmentReader
from twinsieve.stages.near.answers import Answer, chosen_of, joined, part_of
from twinsieve.stages.window.segments import SealedSegment, Segment, SegmentId

_AGES = st.one_of(st.none(), st.integers(0, 60_000))


@st.composite
def _configs(draw: st.DrawFn) -> SieveConfig:
    return SieveConfig(
        ExactConfig(
            draw(st.sampled_from(["trie", "bloom", "none"])),  # type: ignore[arg-type]
            1e-9,
            Window(draw(st.integers(1, 60)), draw(_AGES)),
        ),
        NearConfig(
            similarity=draw(st.sampled_from([7_000, 8_500])),
            window=Window(draw(st.integers(10, 50)), draw(_AGES)),
            differences=draw(DIFFERENCES),
            same_id=draw(st.sampled_from(["drop", "pass"])),
            candidates=draw(st.sampled_from(["scan", "index"])),
            segment=draw(st.integers(2, 9)),
            details=True,
            threads=draw(st.sampled_from([1, 2])),
        ),
        TimeConfig(late=draw(st.sampled_from(["insert", "judge"])), late_after_ms=20_000),
        scoped=draw(st.booleans()),
    )


def sealed_of(segment: Segment) -> SealedSegment:
    """A sealed segment as its file has it."""
    written: list[SealedSegment] = []

    def note(sealed: SealedSegment) -> None:
        copies = {name: array.copy() for name, array in sealed.arrays.items()}
        written.append(sealed._replace(arrays=copies))

    copy = Segment(segment.ring, segment.table, segment.messages)
    copy.positions = segment.positions
    copy.into_file(note, hot_stay=False)  # type: ignore[arg-type]
    return written[0]


class _Shards:
    """Answers for some segments of a sieve, some rows left out."""

    def __init__(self, config: SieveConfig, rng: random.Random) -> None:
        self._reader = SegmentReader(config)
        self._rng = rng
        self._held: dict[SegmentId, Segment] = {}
        self.answered = 0

    def answers(self, sieve: BatchSieve, batch: Batch) -> Mapping[SegmentId, Answer]:
        found = {}
        for segment in sieve.near.segments.sealed:
            if self._rng.random() < 0.7:
                held = self._held.setdefault(segment.id, self._reader.add(sealed_of(segment)))
                assert held.id == segment.id
                found[segment.id] = self._less(self._reader.answer(batch, held), len(batch))
                self.answered += 1
        return found

    def _less(self, answer: Answer, count: int) -> Answer:
        """The answer without the entries of some rows, which it leaves to whoever judges."""
        left = np.array([self._rng.random() < 0.2 for _ in range(count)], np.bool_)
        stays = ~left[answer.rows]
        names = ("rows", "kept", "positions", "times", "matched", "compared", "status")
        unanswered = np.union1d(answer.unanswered, np.flatnonzero(left)).astype(np.int32)
        return answer._replace(
            **{name: getattr(answer, name)[stays] for name in names}, unanswered=unanswered
        )


def _shown(sieve: BatchSieve, part: Batch, answers: Mapping[SegmentId, Answer]) -> list[object]:
    verdicts = sieve.judge(part, answers=answers)
    details = [verdicts.details[row].tolist() if row >= 0 else [] for row in verdicts.detail_rows]
    return [table(verdicts), details]


@settings(max_examples=examples(100))
@given(ROWS, _configs(), st.integers(0, 2**32), st.lists(st.integers(0, 20), max_size=6))
def test_answers_change_no_verdict(rows: Rows, config: SieveConfig, seed: int, picks: list[int]) -> None:
    rng = random.Random(seed)
    batch = batch_of(rows * 2, scoped=config.scoped)
    tags = batch.fingerprints.digests[:, 0] ^ batch.scopes
    sieve, alone, shards = BatchSieve(config), BatchSieve(config), _Shards(config, rng)
    kept: list[int] = []
    low = 0
    while low < len(batch):
        high = min(low + rng.choice([1, 3, 20]), len(batch))
        part = batch.slice(low, high)
        assert _shown(sieve, part, shards.answers(sieve, part)) == _shown(alone, part, {})
        kept += list(range(low, high))
        if rng.random() < 0.3:
            gone = np.array([kept[-1 - pick] for pick in picks if pick < len(kept)], np.int64)
            for each in (sieve, alone):
                each.forget(batch.positions[gone], tags[gone])
        low = high
    assert sieve.stats() == alone.stats()


def _counted(count: int) -> Rows:
    """Posts with a counter: each has entries that a rule keeps apart in every segment."""
    return [(f"第{number}天打卡坚持早起读书学习加油努力", number, 0, 0) for number in range(count)]


@pytest.mark.parametrize("segment", [5, 40])
def test_posts_with_a_counter_are_answered_whole(segment: int) -> None:
    near = NearConfig(window=Window(200), segment=segment, candidates="scan", details=True)
    config = SieveConfig(near=near)
    batch = batch_of(_counted(300))
    sieve, alone, reader = BatchSieve(config), BatchSieve(config), SegmentReader(config)
    for low in range(0, len(batch), 50):
        part = batch.slice(low, low + 50)
        held = [reader.add(sealed_of(each)) for each in sieve.near.segments.sealed]
        answers = {each.id: reader.answer(part, each) for each in held}
        assert not any(len(answer.unanswered) for answer in answers.values())
        assert _shown(sieve, part, answers) == _shown(alone, part, {})
    assert sieve.near.answered_rows
    assert not sieve.near.left_rows


def test_an_entry_that_leads_no_more_is_looked_up_again() -> None:
    """The segment has an older match, which the forgotten one exceeded."""
    posts = [
        ("今天天气很好我们一起出去玩吧去吧", None, 0, 0),
        ("今天天气很好我们一起出去玩吧好哦", None, 1, 0),
    ]
    more = [(f"第{number}条{chr(0x4E00 + 97 * number) * 9}各不相同", None, 0, 0) for number in range(4)]
    late = [("今天天气很好我们一起出去玩吧好哦啊", None, 0, 0)]
    near = NearConfig(similarity=7_000, window=Window(100), segment=3, candidates="scan", same_id="pass")
    config = SieveConfig(ExactConfig("none"), near)
    batch = batch_of([posts[0], posts[0], *more, *late])
    sieve, alone = BatchSieve(config), BatchSieve(config)
    for each in (sieve, alone):
        # Both posts are kept, the second one as if a rule had kept it apart.
        each.apply(batch.slice(0, 6), _all_kept(6))
    reader = SegmentReader(config)
    held = [reader.add(sealed_of(each)) for each in sieve.near.segments.sealed]
    answers = {each.id: reader.answer(batch.slice(6, 7), each) for each in held}
    newest = answers[held[0].id]._replace()
    for each in (sieve, alone):
        each.forget(newest.positions[:1], np.zeros(0, np.uint64))
    assert _shown(sieve, batch.slice(6, 7), answers) == _shown(alone, batch.slice(6, 7), {})
    assert sieve.near.left_rows == 1


def _all_kept(count: int) -> Verdicts:
    return Verdicts.blank(count)


def test_other_rules_ask_another_question_and_the_size_of_the_window_does_not() -> None:
    near = NearConfig(window=Window(100), segment=10)
    config = SieveConfig(near=near)
    asked = SegmentReader(config).question
    others = [
        replace(config, near=replace(near, similarity=8_000)),
        replace(config, near=replace(near, same_id="pass")),
        replace(config, near=replace(near, bucket_load=20.0)),
        replace(config, near=replace(near, candidates="scan")),
        replace(config, scoped=True),
        replace(config, scheme_id="another"),
    ]
    assert len({asked, *(SegmentReader(each).question for each in others)}) == 1 + len(others)
    for same in (
        replace(near, window=Window(300, 5_000)),
        replace(near, threads=3),
        replace(near, memory=1 << 30),
    ):
        assert SegmentReader(replace(config, near=same)).question == asked
    with pytest.raises(UsageError):
        SegmentReader(replace(config, near=replace(near, method="hamming")))


def test_equal_messages_in_equal_order_are_one_segment_and_others_are_not() -> None:
    rows: Rows = [
        (f"第{number}条{chr(0x4E00 + 97 * number) * 9}各不相同", number, 0, 0) for number in range(12)
    ]
    config = SieveConfig(near=NearConfig(window=Window(100), segment=5))

    def ids(batch: Batch, size: int) -> list[SegmentId]:
        sieve = BatchSieve(config)
        for low in range(0, len(batch), size):
            sieve.judge(batch.slice(low, min(low + size, len(batch))))
        return sieve.sealed_ids()

    batch = batch_of(rows)
    assert ids(batch, 1) == ids(batch, 12)
    assert [(each.first, each.end, each.messages) for each in ids(batch, 12)] == [(0, 5, 5), (5, 10, 5)]
    moved = batch_of(rows)
    moved.positions[7] += 1
    later = batch_of([*rows[:3], (rows[3][0], 50, 0, 0), *rows[4:]])
    assert ids(moved, 12)[0] == ids(batch, 12)[0] != ids(later, 12)[0]
    assert ids(moved, 12)[1] != ids(batch, 12)[1]


@given(st.integers(0, 2**32))
def test_answers_are_cut_chosen_and_joined_by_row(seed: int) -> None:
    rng = np.random.default_rng(seed)
    count = int(rng.integers(1, 9))
    answer = _made_up(rng, count)
    at = int(rng.integers(0, count + 1))
    parts = [(part_of(answer, 0, at), at), (part_of(answer, at, count), count - at)]
    assert _by_row(joined(parts), count) == _by_row(answer, count)
    wanted = rng.random(count) < 0.5
    expected = [
        own for own, is_wanted in zip(_by_row(answer, count), wanted.tolist(), strict=True) if is_wanted
    ]
    assert _by_row(chosen_of(answer, wanted), int(wanted.sum())) == expected


def _made_up(rng: np.random.Generator, count: int) -> Answer:
    rows = np.sort(rng.integers(0, count, int(rng.integers(0, 12)))).astype(np.int32)
    copied = np.flatnonzero(rng.random(count) < 0.4).astype(np.int32)
    numbers, copies = np.arange(len(rows)), np.arange(len(copied))
    return Answer(
        *(rows, numbers, numbers + 100, numbers + 200),
        *(numbers.astype(np.int32), numbers.astype(np.int32), numbers.astype(np.uint8)),
        *(copied, copies, copies + 100, copies + 200, copies % 2 == 0),
        np.flatnonzero(rng.random(count) < 0.3).astype(np.int32),
    )


def _by_row(answer: Answer, count: int) -> list[list[Row]]:
    """All that an answer has of each row, by the numbers of the entries and copies."""
    found: list[list[Row]] = [[] for _ in range(count)]
    for row, *values in zip(*(column.tolist() for column in answer[:7]), strict=True):
        found[row].append((0, *values))
    for row, *values in zip(*(column.tolist() for column in answer[7:12]), strict=True):
        found[row].append((1, *values))
    for row in answer.unanswered.tolist():
        found[row].append((2,))
    return found


def test_an_answer_that_names_what_the_segment_cannot_have_does_not_fit() -> None:
    rows: Rows = [
        (f"第{number}条{chr(0x4E00 + 97 * number) * 9}各不相同", number, 0, 0) for number in range(12)
    ]
    config = SieveConfig(near=NearConfig(window=Window(100), segment=5, candidates="scan"))
    batch = batch_of(rows)
    sieve, reader = BatchSieve(config), SegmentReader(config)
    sieve.judge(batch)
    held = reader.add(sealed_of(sieve.near.segments.sealed[1]))
    answer = reader.answer(batch, held)
    assert len(answer.kept)
    assert len(answer.copy_kept)
    assert sieve.fitting({held.id: answer}) == {held.id: answer}
    assert not sieve.fitting({held.id._replace(end=9): answer})
    assert not sieve.fitting({held.id._replace(digest=bytes(16)): answer})
    for name in ("kept", "positions", "copy_kept", "copy_positions"):
        for by in (-5, 5):
            forged = getattr(answer, name) + by
            assert not sieve.fitting({held.id: answer._replace(**{name: forged})})
