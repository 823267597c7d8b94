"""What a worker writes on a duplicate is read again as it was ruled; other headers are no duplicate's."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from twinsieve.pipeline.broker.input_position import InputPosition, read_position
from twinsieve.pipeline.broker.records import Header, Partition
from twinsieve.pipeline.broker.redriven import held_by
from twinsieve.pipeline.messages.verdict_values import likeness_of
from twinsieve.pipeline.wire.headers import (
    DISTANCE,
    LEADER,
    NOTE,
    SHARED,
    SIMILARITY,
    STAGE,
    read_duplicate,
)
from twinsieve.pipeline.wire.positions import (
    MAX_OFFSETS,
    MAX_PARTITIONS,
    MAX_TOPICS,
    pack_positions,
    unpack_position,
)
from twinsieve.pipeline.wire.ruling import Result, Ruling
from twinsieve.pipeline.worker.added_headers import HeaderTable
from twinsieve.pipeline.worker.verdict_headers import add_explanation
from twinsieve.stages.contract import NO_LEADER, SIMILARITY_SCALE, Flag, Kind, Verdicts

NAMES = st.sampled_from(
    [f"twinsieve-{name}" for name in ("stage", "leader", "origin", "similarity", "distance", "note")]
)
VALUES = (
    st.none()
    | st.binary(max_size=20)
    | st.sampled_from([b"near", b"exact", b"posts[0]@1", b"1e9", b"0.5", b"-1"])
)


def explained(ruling: Ruling) -> list[list[tuple[str, bytes]]]:
    """The headers of all rows."""
    table = HeaderTable(len(ruling))
    add_explanation(table, ruling, np.arange(len(ruling)))
    return table.headers().listed()


@given(
    kind=st.sampled_from([Kind.EXACT, Kind.NEAR]),
    matched=st.integers(0, 500),
    compared=st.integers(1, 500),
    measure=st.sampled_from(["similarity", "distance", "shared"]),
    flags=st.integers(0, 31),
    leader=st.none() | st.tuples(st.integers(0, 99), st.integers(0, MAX_OFFSETS - 1)),
)
def test_a_duplicate_says_what_was_ruled(
    kind: Kind, matched: int, compared: int, measure: str, flags: int, leader: tuple[int, int] | None
) -> None:
    verdicts = Verdicts.blank(1, fill={"kinds": kind, "flags": flags})
    if kind is Kind.NEAR and measure == "similarity":
        verdicts.matched[0], verdicts.compared[0] = min(matched, compared), compared
    elif kind is Kind.NEAR:
        column = verdicts.distances if measure == "distance" else verdicts.shared
        column[0] = matched
    led_by = None
    if leader is not None:
        verdicts.leaders[0] = pack_positions(3, leader[0], np.array([leader[1]]))[0]
        led_by = InputPosition(Partition("old.posts", leader[0]), leader[1])
    assert (verdicts.leaders[0] == NO_LEADER) == (leader is None)
    ruling = Ruling(0, 1, Result.JUDGED, 0, 1, np.zeros(1, np.uint8), verdicts, {3: "old.posts"})
    (headers,) = explained(ruling)
    origin = InputPosition(Partition("posts", 2), 17)
    said = read_duplicate([("trace", b"x"), *headers, ("twinsieve-origin", str(origin).encode())])
    assert said is not None
    assert (said.origin, said.leader, said.stage) == (origin, led_by, kind.name.lower())
    assert (said.measure, said.likeness) == likeness_of(verdicts, 0)
    shown = Flag.UNCONFIRMED | Flag.ESTIMATED | Flag.CUT_SHORT
    assert {Flag[name.upper()] for name in said.flags} == {flag for flag in Flag if flag & flags & shown}
    assert (NOTE in dict(headers)) == bool(said.flags)


@given(
    kinds=st.lists(st.sampled_from([Kind.EXACT, Kind.NEAR]), min_size=1, max_size=4),
    numbers=st.lists(st.integers(-1, 2**31 - 1), min_size=4, max_size=4),
    flags=st.integers(0, 255),
    leader=st.none() | st.tuples(st.integers(0, MAX_PARTITIONS - 1), st.integers(0, MAX_OFFSETS - 1)),
    topics=st.sampled_from([{}, {MAX_TOPICS - 1: "p"}, {0: "posts", MAX_TOPICS - 1: "posts.dead:empty"}]),
)
def test_all_rows_are_explained_as_each_would_be_alone(
    kinds: list[Kind],
    numbers: list[int],
    flags: int,
    leader: tuple[int, int] | None,
    topics: dict[int, str],
) -> None:
    names = ("matched", "compared", "distances", "shared")
    fill = {
        name: min(number, np.iinfo(getattr(Verdicts.blank(0), name).dtype).max)
        for name, number in zip(names, numbers, strict=True)
    }
    fill["compared"] = max(0, fill["compared"])
    fill["matched"] = max(0, min(fill["matched"], fill["compared"]))
    verdicts = Verdicts.blank(len(kinds), fill={"flags": flags, **fill})
    verdicts.kinds[:] = kinds
    if leader is not None:
        verdicts.leaders[:] = pack_positions(MAX_TOPICS - 1, leader[0], np.array([leader[1]]))[0]
    ruling = Ruling(0, 1, Result.JUDGED, 0, len(kinds), np.zeros(len(kinds), np.uint8), verdicts, topics)
    assert explained(ruling) == [_by_row(verdicts, row, topics) for row in range(len(kinds))]


def _by_row(verdicts: Verdicts, row: int, topics: dict[int, str]) -> list[tuple[str, bytes]]:
    """The headers of one row, one after the other."""
    is_near = verdicts.kinds[row] == Kind.NEAR
    headers = [(STAGE, b"near" if is_near else b"exact")]
    leader = int(verdicts.leaders[row])
    if leader != NO_LEADER:
        at = unpack_position(leader)
        topic = held_by(topics.get(at.topic_number, f"topic-{at.topic_number}"))
        headers.append((LEADER, f"{topic}[{at.partition}]@{at.offset}".encode()))
    if verdicts.compared[row]:
        share = int(verdicts.matched[row]) * SIMILARITY_SCALE // int(verdicts.compared[row])
        headers.append((SIMILARITY, b"%d.%04d" % divmod(share, SIMILARITY_SCALE)))
    if is_near and verdicts.distances[row] >= 0:
        headers.append((DISTANCE, b"%d" % verdicts.distances[row]))
    if is_near and verdicts.shared[row] >= 0:
        headers.append((SHARED, b"%d" % verdicts.shared[row]))
    noted = [
        flag for flag in (Flag.UNCONFIRMED, Flag.ESTIMATED, Flag.CUT_SHORT) if verdicts.flags[row] & flag
    ]
    if noted:
        headers.append((NOTE, ",".join((flag.name or "").lower() for flag in noted).encode()))
    return headers


@given(st.lists(st.tuples(NAMES | st.text(max_size=9), VALUES), max_size=7))
def test_any_headers_are_read_without_an_error(headers: list[Header]) -> None:
    said = read_duplicate(headers)
    assert said is None or 0 <= said.likeness < 1e12


@given(st.text(max_size=40) | st.from_regex(r"\A[a-z.]{1,9}\[[0-9]{1,12}\]@[0-9]{1,22}\Z"))
def test_a_position_that_is_read_is_written_the_same_but_for_leading_zeros(text: str) -> None:
    position = read_position(text)
    if position is not None:
        assert read_position(str(position)) == position
        assert position.partition.topic == text.partition("[")[0]
        assert text.endswith(str(position.offset))
