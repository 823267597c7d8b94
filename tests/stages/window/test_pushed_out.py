"""The messages that the candidate index hardly finds any more, against a count by dictionaries."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from twinsieve.pipeline.tools.evaluate.evaluate import batch_of
from twinsieve.stages.contract import BandLayout, NearConfig, SieveConfig, Window
from twinsieve.stages.judge.batch_sieve import BatchSieve
from twinsieve.stages.judge.scheme import Scheme, SchemeConfig
from twinsieve.stages.text.rules import TextConfig
from twinsieve.stages.window import bucket_table
from twinsieve.stages.window.buckets import INDEX_MASK, WAYS
from twinsieve.stages.window.pushed_out import LEFT_SHARE

WORDS = ["storm", "river", "council", "bridge", "market", "doctor", "school", "garden", "winter", "harbour"]


def filled(window: int, rows: int, grams: str, load: float) -> BatchSieve:
    """A sieve that judged made-up headlines of few words, and some texts that only the exact stage reads."""
    layout = BandLayout(24, 4, grams=grams)  # type: ignore[arg-type]
    rng = random.Random(4)
    texts = [
        "ok" + str(row) if row % 50 == 7 else " ".join(rng.choices(WORDS, k=9)) + f" {row}"
        for row in range(rows)
    ]
    near = NearConfig(window=Window(window), similarity=10_000, bucket_load=load)
    sieve = BatchSieve(SieveConfig(near=near, layout=layout))
    scheme = Scheme(SchemeConfig(text=TextConfig(profile="plain"), layout=layout))
    for first in range(0, rows, 500):
        sieve.judge(batch_of(*scheme.read(texts[first : first + 500])))
    return sieve


def by_dictionaries(sieve: BatchSieve) -> int:
    """The same count from the saved arrays."""
    judge = sieve.near
    buckets, ring, kept = judge.buckets, judge.ring, judge.ring.kept
    entries = judge.segments.open.table.entries()[: buckets.bands * buckets.band_buckets * WAYS]
    left = Counter(
        kept - 1 - ((kept - 1 - (int(entry) & INDEX_MASK)) & INDEX_MASK) for entry in entries if entry
    )
    return sum(
        left[index] * LEFT_SHARE < buckets.bands
        for index in range(kept - ring.size, kept)
        if ring.columns.lengths[index % ring.capacity] > 0
    )


@pytest.mark.parametrize(("window", "rows"), [(2_000, 1_500), (1_000, 3_500)])
@pytest.mark.parametrize("grams", ["chars", "by_script"])
@pytest.mark.parametrize("share", [1, 12])
def test_the_count_is_that_of_the_buckets(
    window: int, rows: int, grams: str, share: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """share: with 1, the index of the smaller number of rows is sparse to the end"""
    monkeypatch.setattr(bucket_table, "SPARSE_SHARE", share)
    sieve = filled(window, rows, grams, 8.4)
    assert sieve.near.segments.open.table.is_sparse == (share == 1 and rows < window)
    expected = by_dictionaries(sieve)
    assert sieve.pushed_out(sieve.config.layout.bands) == expected
    for _ in range(sieve.config.layout.bands - 1):
        assert sieve.pushed_out(1) == expected
    assert sieve.pushed_out(1) == expected
    if grams == "chars":
        assert expected > 0


def test_room_in_the_buckets_leaves_none_behind() -> None:
    sieve = filled(1_000, 900, "by_script", 0.5)
    assert sieve.pushed_out(24) == by_dictionaries(sieve) < filled(1_000, 900, "chars", 8.4).pushed_out(24)


def test_messages_kept_between_two_calls_do_not_count() -> None:
    sieve = filled(2_000, 1_500, "chars", 8.4)
    sieve.pushed_out(12)
    layout = sieve.config.layout
    more = Scheme(SchemeConfig(text=TextConfig(profile="plain"), layout=layout)).read(
        [f"quite another text number {row} of this kind" for row in range(40)]
    )
    sieve.judge(batch_of(*more))
    late = sieve.pushed_out(12)
    assert 0 < late <= by_dictionaries(sieve) + 40
