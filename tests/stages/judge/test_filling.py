"""A restore fills the candidate index as judging did: the same entries in the same order, in every bucket."""

from __future__ import annotations

from collections.abc import Iterator
from time import sleep
from typing import Any

import numpy as np
import pytest

from tests.generated_posts import generate
from tests.property.streams import batch_of
from twinsieve.stages.contract import NearConfig, SieveConfig, Window
from twinsieve.stages.judge import near_window
from twinsieve.stages.judge.batch_sieve import BatchSieve
from twinsieve.stages.judge.kept_messages import KeptMessages, as_chunk
from twinsieve.stages.window import bucket_table
from twinsieve.stages.window.chunk import Chunk

_POSTS = 3_000


@pytest.mark.parametrize("method", ["text", "hamming"])
@pytest.mark.parametrize("moves", [False, True])
@pytest.mark.parametrize("segment", [16_000_000, 700])
def test_the_index_is_that_of_judging(
    method: str, moves: bool, segment: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """moves: the index becomes a table meanwhile"""
    near = NearConfig(method=method, window=Window(2_000), bucket_load=20, segment=segment)  # type: ignore[arg-type]
    config = SieveConfig(near=near)
    judged = BatchSieve(config)
    runs: list[tuple[int, KeptMessages]] = []
    judged.on_kept = lambda first, messages: runs.append((first, messages))
    batch = batch_of([(post["text"], None, 0, 0) for post in generate(_POSTS, 5)])
    for low in range(0, len(batch), 130):
        judged.judge(batch.slice(low, min(low + 130, len(batch))))

    # It has room for some hundred messages, or for none.
    monkeypatch.setattr(bucket_table, "SPARSE_SHARE", 1 if moves else 1 << 40)
    if moves:
        insert = near_window.insert_kept

        def late(*arguments: Any) -> None:
            sleep(0.01)
            insert(*arguments)

        monkeypatch.setattr(near_window, "insert_kept", late)
    restored = near_window.NearWindow(config)

    def chunks() -> Iterator[Chunk]:
        for _, messages in runs:
            yield as_chunk(messages, config.layout)
            restored.segments.expect(1_000)

    restored.keep_again(chunks())
    kept = judged.near
    assert restored.segments.kept == kept.segments.kept > 700
    assert len(restored.segments.all) == len(kept.segments.all)
    for one, other in zip(restored.segments.all, kept.segments.all, strict=True):
        assert one.ring.kept == other.ring.kept
        assert np.array_equal(one.table.entries(), other.table.entries())
    assert all(np.array_equal(*two) for two in zip(restored.chains, kept.chains, strict=True))
    assert any(each.any() for each in kept.chains) or kept.segments.open.table.entries().any()
