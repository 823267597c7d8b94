"""A sieve restored from sections, parts and kept messages answers as the one that was never saved."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.generated_posts import generate
from tests.property.streams import PARTS, ROWS, Rows, batch_of, table
from twinsieve.stages.contract import (
    BandLayout,
    ExactConfig,
    NearConfig,
    SieveConfig,
    TimeConfig,
    Window,
)
from twinsieve.stages.errors import StateError
from twinsieve.stages.exact.sections import Sections
from twinsieve.stages.judge.batch_sieve import BatchSieve
from twinsieve.stages.judge.kept_messages import KeptMessages
from twinsieve.stages.window.segments import SealedSegment


class Shelf:
    """What a store keeps of one sieve, in memory: the parts, the runs of kept messages, the last state."""

    def __init__(self) -> None:
        self.parts: dict[str, Sections] = {}
        self.runs: list[tuple[int, KeptMessages]] = []
        self.state = b""
        self._oldest = 0

    def take(self, first: int, messages: KeptMessages) -> None:
        self.runs.append((first, messages))

    def save(self, sieve: BatchSieve) -> None:
        frozen = sieve.freeze(self.parts.keys())
        for name, read in frozen.parts.items():
            if name not in self.parts:
                self.parts[name] = {local: array.copy() for local, array in read().items()}
        for name in self.parts.keys() - frozen.parts.keys():
            del self.parts[name]
        stream = io.BytesIO()
        frozen.write(stream)
        self.state, self._oldest = stream.getvalue(), frozen.oldest

    def restored(self, config: SieveConfig) -> BatchSieve:
        sieve = BatchSieve.load(io.BytesIO(self.state), config, parts=self)
        sieve.on_kept = self.take
        return sieve

    def sections(self, name: str) -> Sections:
        return self.parts[name]

    def segments(self) -> tuple[SealedSegment, ...]:
        return ()

    def kept_messages(self) -> Iterator[tuple[int, KeptMessages]]:
        return ((first, run) for first, run in self.runs if first + len(run) > self._oldest)


_METHODS: list[tuple[Any, Any, Any]] = [
    ("text", "index", "bloom"),
    ("text", "index", "trie"),
    ("text", "scan", "none"),
    ("hamming", "index", "bloom"),
    ("hamming", "scan", "trie"),
    ("signatures", "index", "bloom"),
    ("none", "index", "bloom"),
    ("none", "index", "trie"),
]


@settings(max_examples=examples(150))
@given(
    rows=ROWS,
    how=st.sampled_from(_METHODS),
    windows=st.tuples(st.integers(1, 40), st.integers(1, 60)),
    ages=st.tuples(st.sampled_from([None, 20_000]), st.sampled_from([None, 30_000])),
    same_id=st.sampled_from(["drop", "pass"]),
    late=st.sampled_from(["insert", "judge"]),
    segment=st.sampled_from([3, 8, 16_000_000]),
    scoped=st.booleans(),
    ends=st.lists(st.integers(0, 60), max_size=5),
    forgotten=st.sets(st.integers(0, 60), max_size=4),
)
def test_a_restored_sieve_goes_on_as_if_nothing_had_happened(
    rows: Rows,
    how: tuple[Any, Any, Any],
    windows: tuple[int, int],
    ages: tuple[int | None, int | None],
    same_id: Any,
    late: Any,
    segment: int,
    scoped: bool,
    ends: list[int],
    forgotten: set[int],
) -> None:
    method, candidates, exact = how
    config = SieveConfig(
        ExactConfig(exact, window=Window(windows[1], ages[1]), error_rate=1e-6),
        NearConfig(
            method=method,
            candidates=candidates,
            segment=segment,
            window=Window(windows[0], ages[0]),
            distances=((8, 3),),
            parts=PARTS,
            share=2,
            same_id=same_id,
        ),
        time=TimeConfig(late=late, late_after_ms=10_000),
        scoped=scoped,
    )
    batch = batch_of(rows)
    never_saved, sieve, shelf = BatchSieve(config), BatchSieve(config), Shelf()
    sieve.on_kept = shelf.take
    low = 0
    for high in [*sorted(min(end, len(batch)) for end in ends), len(batch)]:
        part = batch.slice(low, high)
        assert table(sieve.judge(part)) == table(never_saved.judge(part))
        gone = np.array([row for row in sorted(forgotten) if low <= row < high], np.int64)
        tags = batch.fingerprints.digests[gone, 0]
        if scoped:
            tags ^= batch.scopes[gone]
        for each in (sieve, never_saved):
            each.forget(batch.positions[gone], tags)
        shelf.save(sieve)
        sieve = shelf.restored(config)
        # A restore leaves out what the window has passed.
        found = sieve.stats()
        assert found == replace(never_saved.stats(), bytes_used=found.bytes_used, segments=found.segments)
        low = high


def _posts(count: int, seed: int) -> Rows:
    return [(post["text"], None, 0, 0) for post in generate(count, seed)]


def _live_entries(sieve: BatchSieve) -> list[list[int]]:
    """Of each bucket of each segment, the entries whose messages are still in the window."""
    live = []
    for segment in sieve.near.segments.all:
        ring, entries = segment.ring, segment.table.entries()
        ages = (ring.kept - 1 - (entries & np.uint64((1 << 24) - 1)).astype(np.int64)) & ((1 << 24) - 1)
        held = (entries != 0) & (ages < ring.size)
        rows = zip(entries.reshape(-1, 8), held.reshape(-1, 8), strict=True)
        live += [row[mask].tolist() for row, mask in rows]
    return live


@pytest.mark.parametrize("layout", [BandLayout(), BandLayout(24, 4, tables=6, grams="chars")])
@pytest.mark.parametrize("window", [900, 1_500, 4_000])
@pytest.mark.parametrize("segment", [16_000_000, 1_000, 400])
def test_the_index_of_a_restored_sieve_holds_the_same_entries(
    layout: BandLayout, window: int, segment: int
) -> None:
    config = SieveConfig(near=NearConfig(window=Window(1_500), segment=segment), layout=layout)
    posts = [
        (text * 3 if number % 5 == 0 else text, *rest)
        for number, (text, *rest) in enumerate(_posts(4_000, 3))
    ]
    batch = batch_of(posts, layout=layout)  # type: ignore[arg-type]
    sieve, shelf = BatchSieve(config), Shelf()
    sieve.on_kept = shelf.take
    verdicts = sieve.judge(batch)
    shelf.save(sieve)
    other = replace(config, near=replace(config.near, window=Window(window)))
    restored = shelf.restored(other)
    assert restored.stats().held == min(window, 1_500)
    if window <= 1_500:
        of_this_size = BatchSieve(other)
        of_this_size.apply(batch, verdicts)
        assert _live_entries(restored) == _live_entries(of_this_size)
    more = batch_of(_posts(1_000, 4), layout=layout)
    expected = sieve.judge(more) if window >= 1_500 else of_this_size.judge(more)
    assert np.count_nonzero(expected.kinds) > 100
    same = np.array(table(restored.judge(more)), object) == np.array(table(expected), object)
    assert same.all() if window <= 1_500 else same.all(axis=1).mean() > 0.98


def test_a_missing_run_of_kept_messages_is_noticed() -> None:
    config = SieveConfig()
    sieve, shelf = BatchSieve(config), Shelf()
    sieve.on_kept = shelf.take
    posts = batch_of(_posts(300, 3))
    for low in range(0, 300, 100):
        sieve.judge(posts.slice(low, low + 100))
    shelf.save(sieve)
    whole = shelf.runs
    for missing in range(3):
        shelf.runs = [run for number, run in enumerate(whole) if number != missing]
        with pytest.raises(StateError, match=r"kept messages \d+ to \d+ are missing"):
            shelf.restored(config)
    shelf.runs = whole
    assert shelf.restored(config).stats().kept == sieve.stats().kept
