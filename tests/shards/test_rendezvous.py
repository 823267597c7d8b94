"""A member that joins or leaves moves the segments that it gets or had, and no other."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from twinsieve.pipeline.shards.rendezvous import Span, first_of

_SEGMENTS = [Span(number * 1_000, number * 1_000 + 1_000) for number in range(800)]
_MEMBERS = st.sets(st.text(min_size=1, max_size=6), min_size=2, max_size=9).map(sorted)


@given(_MEMBERS, st.integers(1, 3))
def test_who_leaves_moves_only_what_it_had(members: list[str], n: int) -> None:
    leaver, stay = members[0], members[1:]
    for segment in _SEGMENTS[:60]:
        before, after = first_of(segment, members, n), first_of(segment, stay, n)
        assert [member for member in before if member != leaver] == after[: len(before) - (leaver in before)]
        if leaver not in before:
            assert before == after


@given(_MEMBERS, st.integers(1, 10))
def test_the_order_needs_no_order_of_members_and_names_each_once(members: list[str], n: int) -> None:
    for segment in _SEGMENTS[:20]:
        order = first_of(segment, members, n)
        assert order == first_of(segment, [*reversed(members), *members], n)
        assert len(order) == len(set(order)) == min(n, len(members))
        assert set(order) <= set(members)


def test_one_of_eight_has_about_an_eighth_and_what_moves_is_what_must() -> None:
    members = [f"host{number}-shard" for number in range(8)]
    had = {segment: first_of(segment, members, 1)[0] for segment in _SEGMENTS}
    shares = Counter(had.values())
    assert len(shares) == 8
    assert all(60 <= count <= 145 for count in shares.values()), shares
    joined = {segment: first_of(segment, [*members, "new-shard"], 1)[0] for segment in _SEGMENTS}
    moved = {segment for segment in _SEGMENTS if had[segment] != joined[segment]}
    assert {joined[segment] for segment in moved} == {"new-shard"}
    assert len(moved) <= 1.3 * len(_SEGMENTS) / 9


def test_nobody_is_first_without_members() -> None:
    assert first_of(Span(0, 1), [], 1) == []
