"""Pages of memory change nothing: verdicts and states are those of tables in large pages from the start."""

from __future__ import annotations

import mmap
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from unittest.mock import patch

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.property.streams import PARTS, batch_of, table
from twinsieve.pipeline.generate.stream import generate
from twinsieve.stages.contract import Batch, ExactConfig, NearConfig, SieveConfig, Window
from twinsieve.stages.judge.batch_sieve import BatchSieve
from twinsieve.stages.pages import LARGE_PAGE_BYTES, zeros
from twinsieve.stages.window import bucket_table, tags
from twinsieve.stages.window.buckets import entry_count

ROWS = 400
_PAGE = mmap.PAGESIZE


@contextmanager
def _moving_at(config: SieveConfig, filled: int) -> Iterator[None]:
    """Tables move once more than about `filled` of their places hold something."""
    near = config.near
    count = entry_count(config.layout, near.window.messages, near.bucket_load)
    cells = tags.TagIndex.bytes_for(near.window.messages)
    with (
        patch.object(bucket_table, "SMALL_SHARE", count * 8 / (filled * _PAGE)),
        patch.object(tags, "_SMALL_SHARE", cells / (filled * _PAGE)),
    ):
        yield


@cache
def _stream() -> Batch:
    """Copies and edits among new posts, of all lengths."""
    posts = [post["text"] for post in generate(ROWS - 100, 11)]
    posts += [text[: 9 + n % 40] + "好" * (n % 3) for n, text in enumerate(posts[:100])]
    return batch_of([(text, None if n % 11 == 3 else n // 20, n % 3, 0) for n, text in enumerate(posts)])


_PARTS = st.lists(st.integers(1, 90), min_size=1, max_size=6)


@settings(max_examples=60, deadline=None)
@given(
    window=st.sampled_from([1, 40, 300, 4_000]),
    filled=st.sampled_from([1, 30, 400, 2_500, 1 << 40]),
    parts=_PARTS,
    saved=st.sets(st.integers(0, 5)),
    resized=st.sampled_from([None, 30, 600]),
    method=st.sampled_from(["text", "hamming", "signatures", "none"]),
)
def test_verdicts_and_states_do_not_depend_on_pages(
    window: int, filled: int, parts: list[int], saved: set[int], resized: int | None, method: str
) -> None:
    near = NearConfig(method=method, window=Window(window), parts=PARTS, share=2)  # type: ignore[arg-type]
    config = SieveConfig(near=near, exact=ExactConfig(window=Window(500)))
    with _moving_at(config, 1):
        large = BatchSieve(config)
    moving = BatchSieve(config)
    low = 0
    for number, rows in enumerate(parts):
        part = _stream().slice(low, min(low + rows, ROWS))
        low = min(low + rows, ROWS)
        with _moving_at(config, 1):
            expected = table(large.judge(part))
        with _moving_at(config, filled):
            assert table(moving.judge(part)) == expected
            state = moving.to_bytes()
            assert state == large.to_bytes()
            if number in saved:
                if resized is not None:
                    config = replace(config, near=replace(config.near, window=Window(resized)))
                moving = BatchSieve.from_bytes(state, config)
        if number in saved:
            with _moving_at(config, 1):
                large = BatchSieve.from_bytes(state, config)


def test_a_full_table_has_large_pages_and_a_nearly_empty_one_small_ones() -> None:
    config = SieveConfig(near=NearConfig(window=Window(100_000)), exact=ExactConfig("none"))
    sieve = BatchSieve(config)
    sieve.judge(_stream().slice(0, 10))
    few = sieve._chunk_judge.buckets.entries
    sieve.judge(_stream().slice(10, 15))
    assert sieve._chunk_judge.buckets.entries is few
    sieve.judge(_stream().slice(15, ROWS))
    many = sieve._chunk_judge.buckets.entries
    assert many is not few
    assert len(many) == len(few)
    assert many.ctypes.data % LARGE_PAGE_BYTES == 0


def test_pages_behind_the_small_ones_are_whole_large_ones() -> None:
    for count, small in ((1, 0), (5, 8), (1 << 20, 0), (1 << 20, 1 << 16), (1 << 20, 100), (3_000, 1 << 30)):
        array = zeros(count, np.uint64, small_bytes=small)
        assert len(array) == count
        assert not array.any()
        assert array.ctypes.data % _PAGE == 0
        assert array.flags.writeable
        behind = -(-min(small, 8 * count) // _PAGE) * _PAGE
        assert (array.ctypes.data + behind) % LARGE_PAGE_BYTES == 0


_TEN_KEPT = """
from tests.property.test_pages import _stream, resident_bytes
from twinsieve.stages.contract import SieveConfig
from twinsieve.stages.judge.batch_sieve import BatchSieve
first, second = _stream().slice(0, 10), _stream().slice(10, 20)
BatchSieve(SieveConfig()).judge(first)
before = resident_bytes()
sieve = BatchSieve(SieveConfig())
sieve.judge(first)
sieve.judge(second)
print(resident_bytes() - before)
"""


def resident_bytes() -> int:
    """Memory of this process that is in use."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE


def test_twenty_messages_take_little_of_a_large_window(root: Path) -> None:
    """Default settings, whose tables have 300 MB: nothing is filled, and no page is large."""
    done = subprocess.run(
        [sys.executable, "-c", _TEN_KEPT], cwd=root, stdout=subprocess.PIPE, text=True, check=True
    )
    assert int(done.stdout) < 24 << 20
