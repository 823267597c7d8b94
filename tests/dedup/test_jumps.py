"""One row with a wrong year on files does not move the windows; a second one does."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.calling import SMALL, Run, setting
from tests.row_files import read_lines, write_rows
from twinsieve.pipeline.dedup.jumps import WITHIN_ROWS, Jumps
from twinsieve.pipeline.dedup.progress import Progress
from twinsieve.stages.contract import NO_TIME, Batch, ExactConfig, NearConfig, SieveConfig, SieveStats, Window
from twinsieve.stages.formats import RUN, StateHeader

_NOTHING = SieveStats(0, 0, 10, None, None, 0)
_DAY = ("--set", "near.window.age=24h", "--set", "exact.window.age=24h")
_TEXT = "Der Markt am Hafen bleibt am Samstag wegen des Sturms geschlossen"
_OTHER = "Niemand wusste gestern, warum die alte Fähre so lange am Steg lag"
_START = 1_583_020_800_000


def _stamped(path: Path, rows: Sequence[tuple[str, float | None]]) -> Path:
    """Rows of a text and a time: hours after 2020-03-01, or None."""
    written: list[dict[str, Any]] = []
    for number, (text, hours) in enumerate(rows):
        row = {"id": number, "text": text}
        if hours is not None:
            row["created_at"] = datetime.fromtimestamp(_START / 1000 + hours * 3600, UTC).isoformat()
        written.append(row)
    return write_rows(path, written)


def _ids(path: Path) -> list[int]:
    return [row["id"] for row in read_lines(path)]


def _fillers(count: int) -> list[tuple[str, float | None]]:
    return [(" ".join(chr(97 + n // 26**k % 26) * 4 for k in range(4)), 0.1) for n in range(count)]


_YEARS = 5 * 365 * 24.0
_IN_9300, _IN_YEAR_20 = 64_000_000.0, -17_532_000.0

RUNS: dict[str, tuple[list[tuple[str, float | None]], list[int], list[int]]] = {
    "one wrong year": ([(_TEXT, 0), (_OTHER, _YEARS), (_TEXT, 0.1)], [0, 1], [2]),
    "a year far from now": ([(_TEXT, 0), (_OTHER, _IN_9300), (_TEXT, 0.1)], [0, 1], [2]),
    "a year long ago": ([(_TEXT, 0), (_OTHER, _IN_YEAR_20), (_TEXT, 0.1)], [0, 1], []),
    "a wrong year last": ([(_TEXT, 0), (_TEXT, 0.1), (_OTHER, _YEARS)], [0, 2], [3]),
    # Nothing before it says that it is wrong; rows behind it are late, and lead as late ones do.
    "a wrong year first": ([(_OTHER, _YEARS), (_TEXT, 0), (_TEXT, 0.1)], [0, 1], []),
    "two alike, two days apart": ([(_TEXT, 0), (_TEXT + "!", 48)], [0, 1], [2]),
    "two wrong rows of one time": (
        [(_TEXT, 0), (_OTHER, _YEARS), (_OTHER, _YEARS), (_TEXT, 0.1)], [0, 1, 2, 3], [2]
    ),
    "two wrong rows of far times": (
        [(_TEXT, 0), (_OTHER, 2 * _YEARS), ("x" * 9, _YEARS), (_TEXT, 0.1)], [0, 1, 2], [2, 3]
    ),
    "a real gap": ([(_TEXT, 0), (_OTHER, 72), ("x" * 9, 73), (_TEXT, 74), (_TEXT, 75)], [0, 1, 2, 3], [2]),
    "rows that are sparse": ([(_TEXT, 48.0 * day) for day in range(4)], [0, 1, 2, 3], [2, 3, 4]),
    "rows without a time between": (
        [(_TEXT, 0), (_OTHER, _YEARS), ("x" * 9, None), (_TEXT, None)], [0, 1, 2], [2]
    ),
}  # fmt: skip
"""Rows; the ids of those that come out; the lines of those that did not move the windows."""


@pytest.mark.parametrize(("rows", "kept", "jumps"), RUNS.values(), ids=list(RUNS))
@pytest.mark.parametrize("method", ["bloom", "trie"])
def test_a_row_far_ahead_moves_the_windows_with_a_second_one_only(
    tmp_path: Path,
    run: Run,
    rows: list[tuple[str, float | None]],
    kept: list[int],
    jumps: list[int],
    method: str,
) -> None:
    source, out, stats = _stamped(tmp_path / "in.jsonl", rows), tmp_path / "out.jsonl", tmp_path / "stats"
    files = (source, "-o", out, "--stats", stats)
    ran = run("dedup", *files, *SMALL, *_DAY, *setting(f"exact.method={method}"))
    assert (ran.code, _ids(out)) == (0, kept)
    assert json.loads(stats.read_text())["jumps"] == len(jumps)
    named = [line for line in range(1, len(rows) + 1) if f"{source}:{line} at " in ran.err]
    assert named == jumps[:1]


@pytest.mark.parametrize(("apart", "kept_again"), [(WITHIN_ROWS, True), (WITHIN_ROWS + 1, False)])
def test_the_second_row_is_one_of_the_next_thousand(
    tmp_path: Path, run: Run, apart: int, kept_again: bool
) -> None:
    rows = [(_TEXT, 0), (_OTHER, _YEARS), *_fillers(apart - 1), ("x" * 9, _YEARS), (_TEXT, 0.2)]
    source, out = _stamped(tmp_path / "in.jsonl", rows), tmp_path / "out.jsonl"
    assert run("dedup", source, "-o", out, *SMALL, *_DAY).code == 0
    assert (len(rows) - 1 in _ids(out)) == kept_again


def test_a_jump_matches_in_the_longer_window_what_its_own_time_leaves_there(tmp_path: Path, run: Run) -> None:
    rows = [(_TEXT, 0), (_TEXT, 48), (_TEXT, 0.1), (_OTHER, 0.2), (_OTHER, 24 * 8)]
    source, out = _stamped(tmp_path / "in.jsonl", rows), tmp_path / "out.jsonl"
    ages = setting("near.window.age=24h", "exact.window.age=7d")
    assert run("dedup", source, "-o", out, *SMALL, *ages).code == 0
    assert _ids(out) == [0, 3, 4]


def test_a_jump_does_not_lead_where_late_rows_do_not(tmp_path: Path, run: Run) -> None:
    rows = [(_OTHER, 0), (_TEXT, _YEARS), (_TEXT, 0.1)]
    source, out = _stamped(tmp_path / "in.jsonl", rows), tmp_path / "out.jsonl"
    for late, kept in (("insert", [0, 1]), ("judge", [0, 1, 2])):
        assert run("dedup", source, "-o", out, *SMALL, *_DAY, *setting(f"time.late={late}")).code == 0
        assert _ids(out) == kept


def test_without_an_age_no_row_is_a_jump(tmp_path: Path, run: Run) -> None:
    source = _stamped(tmp_path / "in.jsonl", [(_TEXT, 0), (_OTHER, _YEARS), (_TEXT, 0.1)])
    ran = run("dedup", source, "-o", tmp_path / "out", "--stats", tmp_path / "stats", *SMALL)
    assert "ahead of the rows" not in ran.err
    assert json.loads((tmp_path / "stats").read_text())["jumps"] == 0


_TIMES = st.lists(st.none() | st.integers(0, 12) | st.integers(0, 400), max_size=80)


def _config(age_ms: int, other: int | None = None) -> SieveConfig:
    return SieveConfig(ExactConfig(window=Window(100, other)), NearConfig(window=Window(100, age_ms)))


def _batch(times: Sequence[int | None], positions: Sequence[int]) -> Batch:
    batch = Batch.blank(len(times))
    batch.times_ms[:] = [NO_TIME if time is None else time for time in times]
    batch.positions[:] = positions
    return batch


def _plain(times: Sequence[int | None], positions: Sequence[int], reach: int) -> tuple[list[int], list[int]]:
    """(stream time after each row, jumps): for each row all rows before it are looked at once more."""
    stream: int | None = None
    streams, jumps, open_jumps = [], [], list[int]()
    for row, time in enumerate(times):
        if time is not None:
            near = [one for one in open_jumps if positions[row] - positions[one] <= 1_000]
            confirmed = [one for one in near if time >= (times[one] or 0) - reach]
            for one in confirmed:
                stream = max(stream or 0, times[one] or 0)
            open_jumps = [one for one in near if one not in confirmed]
            if stream is None or time - stream <= reach:
                stream = time if stream is None else max(stream, time)
            else:
                jumps.append(row)
                open_jumps.append(row)
        streams.append(NO_TIME if stream is None else stream)
    return streams, jumps


@given(
    _TIMES,
    st.lists(st.sampled_from([1, 1, 1, 2, 40, 499, 1000, 1001]), min_size=80, max_size=80),
    st.integers(0, 30),
    st.none() | st.integers(0, 30),
    st.integers(1, 9),
)
def test_stream_times_are_those_of_a_plain_loop(
    times: list[int | None], steps: list[int], reach: int, other: int | None, cut: int
) -> None:
    positions = np.cumsum(steps)[: len(times)].tolist()
    jumps = Jumps(_config(reach, other), _NOTHING)
    streams, found = [], []
    for low in range(0, len(times), cut):
        decided, rows = jumps.over(_batch(times[low : low + cut], positions[low : low + cut]))
        streams += decided.stream_ms.tolist()
        found += [low + row for row in rows]
        # A run that goes on from here, with what a state has, says the same.
        last = None if streams[-1] == NO_TIME else streams[-1]
        jumps = Jumps(_config(reach, other), SieveStats(0, 0, 10, last, None, 0), jumps.waiting)
    least = reach if other is None else min(reach, other)
    assert (streams, found) == _plain(times, positions, least)


def test_a_file_of_jumps_alone_keeps_no_more_of_them_than_may_be_confirmed() -> None:
    rows = 5_000
    times = [0, *(10_000_000 - 100 * row for row in range(1, rows))]
    jumps = Jumps(_config(10), _NOTHING)
    found = jumps.over(_batch(times, range(rows)))[1]
    assert len(found) == rows - 1
    assert len(jumps.waiting) <= WITHIN_ROWS + 1


def _stream(seed: int) -> list[tuple[str, float | None]]:
    dice = np.random.default_rng(seed)
    texts = [_TEXT, _OTHER, _TEXT[:-12], "Der Zug nach Norden fährt heute nicht, der Bus fährt statt seiner"]
    hours = np.cumsum(dice.exponential(3.0, 240)) + dice.choice([0, 0, 0, 0, 0, 60, 900, 20_000], 240)
    return [(texts[dice.integers(4)], None if dice.random() < 0.1 else round(float(at), 3)) for at in hours]


@pytest.mark.parametrize("late", ["insert", "judge"])
@pytest.mark.parametrize("method", ["bloom", "trie"])
def test_any_split_into_runs_and_any_threads_say_the_same(
    tmp_path: Path, run: Run, method: str, late: str
) -> None:
    rows = _stream(3)
    windows = setting("near.window.age=24h", "exact.window.age=7d", f"time.late={late}")
    options = (*SMALL, *windows, *setting(f"exact.method={method}"))
    two_threads = [word.replace("near.threads=1", "near.threads=2") for word in options]
    whole = tmp_path / "whole.jsonl"
    ran = run("dedup", _stamped(tmp_path / "in.jsonl", rows), "-o", whole, *options)
    assert "ahead of the rows before" in ran.err
    kept = [json.dumps({**row, "id": 0}) for row in read_lines(whole)]
    assert 0 < len(kept) < len(rows)
    run("dedup", tmp_path / "in.jsonl", "-o", tmp_path / "two", *two_threads)
    assert (tmp_path / "two").read_bytes() == whole.read_bytes()
    for number, cuts in enumerate([[0, 120, 240], [0, 7, 90, 91, 92, 200, 240]]):
        parts = []
        for low, high in pairwise(cuts):
            part = _stamped(tmp_path / f"{number}-{low}.jsonl", rows[low:high])
            state = ("--state", tmp_path / f"state{number}")
            assert run("dedup", part, "-o", f"{part}.out", *state, *options).code == 0
            parts += [json.dumps({**row, "id": 0}) for row in read_lines(Path(f"{part}.out"))]
        assert parts == kept


def test_a_state_of_the_version_before_is_read_and_rows_that_wait_are_checked(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = _stamped(tmp_path / "in.jsonl", [(_TEXT, 0)])
    call = ("dedup", source, "-o", tmp_path / "out", "--state", tmp_path / "state", *SMALL, *_DAY)
    before = StateHeader(RUN.magic, RUN.versions[:-1], RUN.kind, RUN.new_start)
    with monkeypatch.context() as patch:
        patch.setattr("twinsieve.pipeline.dedup.saved_run.RUN", before)
        assert run(*call).code == 0
    (tmp_path / "out").unlink()
    assert run(*call).code == 0
    for waiting in ([[0, 5]], [[3, 5]], [[2, 5], [1, 5]], [[1, 1 << 62]], [[1]], [[1, True]], [["1", 5]]):
        with pytest.raises((ValueError, TypeError)):
            Progress({}, rows=2, waiting=waiting).check()  # type: ignore[arg-type]
    Progress({}, rows=2, waiting=[[1, -5], [2, 5]]).check()
