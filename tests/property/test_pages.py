"""How the index lies in memory changes nothing: verdicts and states are those of a table from the start."""

from __future__ import annotations

import mmap
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.generated_posts import generate
from tests.property.streams import PARTS, batch_of, table
from tests.whole_state import from_bytes, to_bytes
from twinsieve.stages.contract import Batch, ExactConfig, NearConfig, SieveConfig, Window
from twinsieve.stages.judge.batch_sieve import BatchSieve
from twinsieve.stages.window import bucket_table, tags
from twinsieve.stages.window.buckets import entry_count

ROWS = 400
_PAGE = mmap.PAGESIZE


@contextmanager
def _full_at(config: SieveConfig, entries: int) -> Iterator[None]:
    """A sparse index has room for about `entries` entries, and a new table of tags for as many."""
    near = config.near
    count = entry_count(config.layout, near.window.messages, near.bucket_load)
    with (
        patch.object(bucket_table, "SPARSE_SHARE", max(1, count // entries)),
        patch.object(tags, "_FIRST_CELLS", 2 << entries.bit_length()),
    ):
        yield


@cache
def _stream() -> Batch:
    """Copies and edits among new posts, of all lengths."""
    posts = [post["text"] for post in generate(ROWS - 100, 11)]
    posts += [text[: 9 + n % 40] + "好" * (n % 3) for n, text in enumerate(posts[:100])]
    return batch_of([(text, None if n % 11 == 3 else n // 20, n % 3, 0) for n, text in enumerate(posts)])


_PARTS = st.lists(st.integers(1, 90), min_size=1, max_size=6)


@settings(max_examples=examples(60), deadline=None)
@given(
    window=st.sampled_from([1, 40, 300, 4_000]),
    room=st.sampled_from([1, 30, 400, 2_500, 1 << 24]),
    parts=_PARTS,
    saved=st.sets(st.integers(0, 5)),
    method=st.sampled_from(["text", "hamming", "signatures", "none"]),
)
def test_verdicts_and_states_do_not_depend_on_the_room(
    window: int, room: int, parts: list[int], saved: set[int], method: str
) -> None:
    near = NearConfig(method=method, window=Window(window), parts=PARTS, share=2)  # type: ignore[arg-type]
    config = SieveConfig(near=near, exact=ExactConfig(window=Window(500)))
    with _full_at(config, 1):
        table_alone = BatchSieve(config)
    with _full_at(config, room):
        sparse = BatchSieve(config)
    low = 0
    for number, rows in enumerate(parts):
        part = _stream().slice(low, min(low + rows, ROWS))
        low = min(low + rows, ROWS)
        assert table(sparse.judge(part)) == table(table_alone.judge(part))
        assert sparse.pushed_out(config.layout.bands) == table_alone.pushed_out(config.layout.bands)
        state = to_bytes(sparse)
        assert state == to_bytes(table_alone)
        if number in saved:
            with _full_at(config, room):
                sparse = from_bytes(state, config)
            with _full_at(config, 1):
                table_alone = from_bytes(state, config)


@pytest.mark.parametrize("room", [30, 900, 4_000, 1 << 24])
@pytest.mark.parametrize("window", [80, 4_000])
@pytest.mark.parametrize("segment", [16_000_000, 50])
def test_a_restored_index_goes_on_like_the_saved_one(room: int, window: int, segment: int) -> None:
    config = SieveConfig(near=NearConfig(window=Window(window), segment=segment))
    with _full_at(config, 1):
        never_saved = BatchSieve(config)
    with _full_at(config, room):
        saved = BatchSieve(config)
        for low in range(0, ROWS, 40):
            part = _stream().slice(low, low + 40)
            assert table(saved.judge(part)) == table(never_saved.judge(part))
            state = to_bytes(saved)
            assert state == to_bytes(never_saved)
            saved = from_bytes(state, config)
            sealed = saved.near.segments.sealed
            assert not any(each.table.is_sparse for each in sealed), "files hold tables"


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
    assert int(done.stdout) < 32 << 20
