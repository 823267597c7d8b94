"""The pairs for a reader: spread over similarity and length, few of a cluster, the same each time."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from twinsieve.pipeline.tools.tune.label_pairs import BANDS, MOST_OF_A_CLUSTER, Candidate, draw

CANDIDATES = st.lists(
    st.builds(
        Candidate,
        later=st.integers(100, 999),
        earlier=st.integers(1, 12),
        similarity=st.integers(7_000, 9_999),
        length=st.integers(0, 4),
        body=st.tuples(st.integers(0, 40), st.just(0)),
    ),
    max_size=60,
)


@given(CANDIDATES, st.integers(0, 40), st.integers(0, 40))
def test_draw_obeys_its_limits_and_a_longer_draw_begins_with_a_shorter_one(
    candidates: list[Candidate], few: int, more: int
) -> None:
    few, more = min(few, more), max(few, more)
    drawn = draw(candidates, more)
    assert draw(candidates, few) == drawn[:few]
    assert all(pair in candidates for pair in drawn)
    assert max(Counter(pair.earlier for pair in drawn).values(), default=0) <= MOST_OF_A_CLUSTER
    assert max(Counter(pair.body for pair in drawn).values(), default=0) <= 1
    if len(drawn) < more:
        # Nothing that may be drawn is left.
        taken, bodies = Counter(pair.earlier for pair in drawn), {pair.body for pair in drawn}
        assert all(pair.body in bodies or taken[pair.earlier] == MOST_OF_A_CLUSTER for pair in candidates)


def grid(a_cell: int) -> list[Candidate]:
    """`a_cell` pairs of each band and length, each of a cluster of its own."""
    cells = [(low + 250, length) for low, _ in BANDS for length in range(5)] * a_cell
    return [
        Candidate(later=1_000 + number, earlier=number, similarity=at, length=length, body=(number, 0))
        for number, (at, length) in enumerate(cells)
    ]


def test_bands_and_lengths_have_equal_shares_where_they_can() -> None:
    drawn = draw(grid(4), 60)
    assert Counter(pair.band for pair in drawn) == dict.fromkeys(range(6), 10)
    assert Counter((pair.band, pair.length) for pair in drawn) == {
        (band, length): 2 for band in range(6) for length in range(5)
    }
    for number in range(0, 60, 6):
        assert sorted(pair.band for pair in drawn[number : number + 6]) == list(range(6))
    assert len({tuple(pair.band for pair in drawn[number : number + 6]) for number in range(0, 60, 6)}) > 3


def test_other_bands_fill_what_a_band_lacks() -> None:
    lacking = [pair for pair in grid(4) if pair.band != 2 or pair.length == 0]
    drawn = draw(lacking, 60)
    counts = Counter(pair.band for pair in drawn)
    assert (len(drawn), counts[2]) == (60, 4)
    assert all(11 <= counts[band] <= 12 for band in (0, 1, 3, 4, 5))


def test_clusters_give_a_second_pair_only_when_no_new_cluster_is_left() -> None:
    twice = [
        Candidate(later=number, earlier=number // 3, similarity=8_100, length=0, body=(number, 0))
        for number in range(30)
    ]
    drawn = draw(twice, 15)
    assert sorted(pair.earlier for pair in drawn[:10]) == list(range(10))
    assert Counter(Counter(pair.earlier for pair in drawn).values()) == {1: 5, 2: 5}
