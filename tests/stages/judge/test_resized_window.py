"""A saved sieve goes on under a near window of another size: what it still holds, and nothing else, counts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.generated_posts import generate
from tests.oracle import Oracle, rows_of
from tests.property.streams import PARTS, ROWS, Row, Rows, as_row, batch_of, table
from tests.stages.judge.test_frozen import Shelf
from tests.whole_state import from_bytes, to_bytes
from twinsieve.stages.contract import ExactConfig, NearConfig, SieveConfig, Window
from twinsieve.stages.errors import StateError
from twinsieve.stages.judge.batch_sieve import BatchSieve


def _windowed(config: SieveConfig, messages: int) -> SieveConfig:
    return replace(config, near=replace(config.near, window=Window(messages)))


def _told(config: SieveConfig, rows: Rows, windows: list[int]) -> list[Row]:
    """The plain loop; at each change of the window, what is beyond the smaller one is near nothing any more."""
    batch = rows_of(batch_of(rows))
    oracle = Oracle(_windowed(config, windows[0]))
    said = []
    for part, window in enumerate(windows):
        held = min(window, oracle.config.near.window.messages)
        oracle.config = _windowed(config, window)
        for kept in oracle.kept[: max(0, len(oracle.kept) - held)]:
            oracle.kept[kept.index] = replace(kept, row=replace(kept.row, exact_only=True))
        for row in batch[len(batch) * part // len(windows) : len(batch) * (part + 1) // len(windows)]:
            said.append(oracle.judge(row))
    return list(map(as_row, said))


def _judged(config: SieveConfig, rows: Rows, windows: list[int]) -> list[Row]:
    batch, shelf = batch_of(rows), Shelf()
    sieve = BatchSieve(_windowed(config, windows[0]))
    sieve.on_kept = shelf.take
    said: list[Row] = []
    for part, window in enumerate(windows):
        shelf.save(sieve)
        sieve = shelf.restored(_windowed(config, window))
        ends = (len(batch) * part // len(windows), len(batch) * (part + 1) // len(windows))
        said += table(sieve.judge(batch.slice(*ends)))
    return said


_WINDOWS = st.lists(st.integers(1, 40), min_size=2, max_size=4)


@settings(max_examples=examples(60))
@given(
    ROWS,
    _WINDOWS,
    st.sampled_from([3, 7, 20, 1_000]),
    st.sampled_from(
        [("text", "scan", 3), ("hamming", "scan", 12), ("hamming", "index", 5), ("signatures", "scan", 3)]
    ),
)
def test_a_resized_window_equals_the_plain_loop(
    rows: Rows, windows: list[int], segment: int, how: tuple[Any, Any, int]
) -> None:
    method, candidates, k = how
    near = NearConfig(
        method=method, candidates=candidates, segment=segment, distances=((8, k),), parts=PARTS, share=2
    )
    config = SieveConfig(ExactConfig("trie", window=Window(1_000)), near)
    assert _judged(config, rows, windows) == _told(config, rows, windows)


@settings(max_examples=examples(25))
@given(ROWS, _WINDOWS)
def test_a_bloom_hit_beyond_a_resized_ring_is_taken_at_its_word(rows: Rows, windows: list[int]) -> None:
    config = SieveConfig(ExactConfig("bloom", window=Window(1_000)), NearConfig(method="none"))
    # No leader is known of what has left the ring; what is exact stays exact.
    assert [row[0] for row in _judged(config, rows, windows)] == [
        row[0] for row in _told(config, rows, windows)
    ]


def _posts(count: int, seed: int) -> Rows:
    return [(post["text"], None, 0, 0) for post in generate(count, seed)]


def test_an_enlarged_window_finds_what_it_found_and_holds_more() -> None:
    config = SieveConfig()
    first, again = _posts(3_000, 5), _posts(3_000, 5)[2_000:]
    plain, shelf = BatchSieve(_windowed(config, 1_000)), Shelf()
    plain.on_kept = shelf.take
    plain.judge(batch_of(first))
    shelf.save(plain)
    enlarged = shelf.restored(_windowed(config, 2_777))
    assert enlarged.stats().held == plain.stats().held == 1_000
    edits = [(text + "啊", *rest) for text, *rest in again]
    before, after = plain.judge(batch_of(edits)), enlarged.judge(batch_of(edits))
    missed = (before.leaders != after.leaders) & (after.kinds == 0)
    assert not missed.any()
    enlarged.judge(batch_of(_posts(2_000, 6)))
    assert enlarged.stats().held > 1_000
    assert table(from_bytes(to_bytes(enlarged), enlarged.config).judge(batch_of(first))) == table(
        enlarged.judge(batch_of(first))
    )


def test_the_exact_stage_may_be_forgotten_and_the_near_stage_goes_on() -> None:
    saved = SieveConfig(ExactConfig("bloom", window=Window(5_000)), NearConfig(window=Window(500)))
    sieve = BatchSieve(saved)
    texts = _posts(300, 8)
    edited = batch_of([(text + "哈", *rest) for text, *rest in texts])
    sieve.judge(batch_of(texts))
    for method in ("bloom", "trie", "none"):
        config = replace(saved, exact=ExactConfig(method, window=Window(9_000)))  # type: ignore[arg-type]
        went_on = from_bytes(to_bytes(sieve), config, forget_exact=True)
        dropped = np.count_nonzero(went_on.judge(edited).kinds)
        assert dropped > 0.8 * np.count_nonzero(sieve.judge(edited).kinds)
        assert table(from_bytes(to_bytes(went_on), config).judge(batch_of(texts))) == table(
            went_on.judge(batch_of(texts))
        )


def test_the_memory_of_a_window_of_another_size_is_refused_with_what_to_do() -> None:
    saved = to_bytes(_judged_once(BatchSieve(_windowed(SieveConfig(), 50))))
    with pytest.raises(StateError, match=r"near window of 50 messages, the configuration says 60; set near"):
        from_bytes(saved, _windowed(SieveConfig(), 60))


def _judged_once(sieve: BatchSieve) -> BatchSieve:
    sieve.judge(batch_of(_posts(9, 1)))
    return sieve
