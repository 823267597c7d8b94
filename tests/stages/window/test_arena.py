"""The arena of the texts grows in place while the window fills for the first time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.generated_posts import generate
from tests.property.streams import batch_of, table
from twinsieve.stages.contract import Batch, NearConfig, SieveConfig, Window
from twinsieve.stages.judge.batch_sieve import BatchSieve
from twinsieve.stages.memory_pages import zeros
from twinsieve.stages.window import ring

_CONFIG = SieveConfig(near=NearConfig(window=Window(2_000)))


def _batches() -> list[Batch]:
    posts = batch_of([(post["text"], None, 0, 0) for post in generate(9_000, 1)])
    return [posts.slice(low, low + 100) for low in range(0, len(posts), 100)]


def _judged(sieve: BatchSieve) -> tuple[list[Any], set[int]]:
    """(verdicts, addresses that the arena had)"""
    told, places = [], set()
    for batch in _batches():
        told.append(table(sieve.judge(batch)))
        places.add(sieve.near.ring.columns.texts.ctypes.data)
    return told, places


def _stored(sieve: BatchSieve) -> list[str]:
    """The texts in the arena, oldest first."""
    columns, slots = sieve.near.ring.columns, sieve.near.ring.live_slots()
    starts, lengths = columns.offsets[slots].astype(int) * ring.GRANULE, columns.lengths[slots]
    return [
        "".join(map(chr, columns.texts[start : start + length]))
        for start, length in zip(starts, lengths, strict=True)
    ]


@pytest.mark.parametrize("short", range(800, 2_000, 60))
def test_texts_stay_what_they_are_when_longer_ones_come(short: int) -> None:
    """The first ones are long, so there is room to grow. Then short ones go around in the arena, and for some
    of these numbers of them, it begins anew among the held ones when it grows."""
    window = 200
    sieve = BatchSieve(SieveConfig(near=NearConfig(window=Window(window))))
    lengths = [300] * 20 + [9] * short + [300] * 120
    texts = [chr(0x4E00 + 7 * number) * length for number, length in enumerate(lengths)]
    for low in range(0, len(texts), 20):
        sieve.judge(batch_of([(text, None, 0, 0) for text in texts[low : low + 20]]))
        if low >= short:
            assert _stored(sieve) == texts[max(0, low + 20 - window) : low + 20]


def test_texts_are_hardly_ever_moved() -> None:
    _, places = _judged(BatchSieve(_CONFIG))
    assert len(places) <= 3


def test_a_system_that_grants_no_more_than_is_needed_changes_no_verdict(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    expected, _ = _judged(BatchSieve(_CONFIG))
    asked: list[int] = []

    def scarce(count: int, dtype: Any, *, small_bytes: int) -> Any:
        """Refuses what is asked for first each time."""
        if dtype == np.uint16:
            asked.append(count)
            if len(asked) % 2:
                raise MemoryError
        return zeros(count, dtype, small_bytes=small_bytes)

    sieve = BatchSieve(_CONFIG)
    monkeypatch.setattr(ring, "zeros", scarce)
    told, _ = _judged(sieve)
    assert told == expected
    assert len(asked) > 6
