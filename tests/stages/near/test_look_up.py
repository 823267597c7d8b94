"""What a look-up finds in a sealed segment is a function of the rows, the segment and the rules alone."""

from __future__ import annotations

from tests.generated_posts import generate
from tests.property.streams import batch_of
from twinsieve.stages.contract import NO_TIME, NearConfig, SieveConfig, Window
from twinsieve.stages.judge.batch_sieve import BatchSieve
from twinsieve.stages.near.look_up import look_up
from twinsieve.stages.near.matches import NO_MATCH, new_copies, new_matches
from twinsieve.stages.near.propose import Begin
from twinsieve.stages.window.chunk import whole_batch

_POSTS = 2_000
_CONFIG = SieveConfig(near=NearConfig(window=Window(1_500), segment=500))


def _found(sieve: BatchSieve, posts: int) -> list[tuple[int, list[tuple[int, int]]]]:
    """Of each row, what the oldest sealed segment has: kept index of its copy, (kept index, matched) of its
    matches."""
    batch = batch_of([(post["text"], None, 0, 0) for post in generate(posts, 5)])
    chunk = whole_batch(batch, sieve.config.layout, scoped=False)
    segment = sieve.near.segments.sealed[0]
    index = sieve.near.index(segment)._replace(
        begin=Begin(segment.ring.first, NO_TIME), exact=Begin(segment.ring.kept, NO_TIME)
    )
    matches, copies = new_matches(posts, 64 * posts), new_copies(posts)
    matches.heads[:] = NO_MATCH
    look_up(0, posts, chunk, index, sieve.near.scratch[0], matches, copies, 0, 64 * posts)
    found = []
    for row in range(posts):
        place, of_row = int(matches.heads[row]), []
        while place != NO_MATCH:
            of_row.append((int(matches.kept[place]), int(matches.matched[place])))
            place = int(matches.next[place])
        found.append((int(copies.kept[row]), sorted(of_row)))
    return found


def test_neither_later_messages_nor_forgotten_ones_change_a_sealed_segment() -> None:
    sieve = BatchSieve(_CONFIG)
    batch = batch_of([(post["text"], None, 0, 0) for post in generate(_POSTS, 5)])
    sieve.judge(batch.slice(0, 900))
    (sealed,) = sieve.near.segments.sealed
    arrays = sealed.ring.arrays() | {"buckets": sealed.table.buckets.entries}
    before, found = {name: array.tobytes() for name, array in arrays.items()}, _found(sieve, 900)
    assert any(copy >= 0 for copy, _ in found)
    assert any(len(matches) > 1 for _, matches in found)

    sieve.forget(batch.positions[:300], batch.fingerprints.digests[:300, 0])
    sieve.judge(batch.slice(900, 1_200))
    assert {name: array.tobytes() for name, array in arrays.items()} == before
    assert _found(sieve, 900) == found


def test_a_look_up_of_some_rows_finds_what_a_look_up_of_all_finds() -> None:
    sieve = BatchSieve(_CONFIG)
    sieve.judge(batch_of([(post["text"], None, 0, 0) for post in generate(900, 5)]))
    assert _found(sieve, 900)[:70] == _found(sieve, 70)
