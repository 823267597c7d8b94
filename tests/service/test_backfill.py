"""Old messages under new offsets, and stamps from the future: what they may do to what is remembered."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.service.stepped import Stepped, edited, unlike
from twinsieve.pipeline.broker.records import Partition
from twinsieve.pipeline.settings.model import Settings
from twinsieve.stages.judge.scheme import Scheme

LIVE, BACKFILL = Partition("posts", 0), Partition("posts", 1)
UNIQUE, DUPLICATES = "posts.unique", "posts.duplicates"
WINDOW = 10
MINUTE_MS, HOUR_MS = 60_000, 3_600_000
YEAR_2099_MS = 4_070_908_800_000


def settings(
    folder: Path, time: dict[str, str], near: dict[str, object], exact: dict[str, object]
) -> Settings:
    return Settings.model_validate(
        {
            "app": "t",
            "time": time,
            "near": {"window": near},
            "exact": exact,
            "state": {"dir": str(folder)},
        }
    )


def backfilled(folder: Path, scheme: Scheme, late: str) -> Stepped:
    """Three live posts, then many times the window's worth of posts that are two days old."""
    small = {"messages": WINDOW, "age": "24h"}
    made = settings(folder, {"late": late, "late_after": "1h"}, small, {"window": small})
    process = Stepped(made, scheme, {"posts": 2})
    process.posts(LIVE, map(unlike, range(3)))
    process.clock.sleep(60.0)
    old_ms = process.clock.now_ms() - 48 * HOUR_MS
    process.posts(BACKFILL, map(unlike, range(100, 100 + 20 * WINDOW)), old_ms)
    return process


def test_a_backfill_that_only_is_judged_leaves_live_leaders_where_they_are(
    scheme: Scheme, tmp_path: Path
) -> None:
    process = backfilled(tmp_path, scheme, "judge")
    copies = [unlike(0), edited(unlike(1)), unlike(2)]
    process.posts(LIVE, copies)
    assert process.texts(DUPLICATES) == copies
    assert process.texts(UNIQUE) == [*map(unlike, range(3)), *map(unlike, range(100, 100 + 20 * WINDOW))]


def test_a_backfill_that_is_inserted_pushes_live_leaders_out(scheme: Scheme, tmp_path: Path) -> None:
    process = backfilled(tmp_path, scheme, "insert")
    copies = [unlike(0), edited(unlike(1)), unlike(2)]
    process.posts(LIVE, copies)
    assert process.texts(DUPLICATES) == []
    assert process.texts(UNIQUE)[:6] == [*map(unlike, range(3)), *copies]


def test_a_late_copy_is_dropped_for_a_live_leader_and_never_leads(scheme: Scheme, tmp_path: Path) -> None:
    process = backfilled(tmp_path, scheme, "judge")
    old_ms = process.clock.now_ms() - 48 * HOUR_MS
    process.posts(BACKFILL, [edited(unlike(1)), unlike(7), unlike(7)], old_ms)
    assert process.texts(DUPLICATES) == [edited(unlike(1))]
    assert process.texts(UNIQUE)[-2:] == [unlike(7), unlike(7)]


def test_a_restore_remembers_no_late_message_either(scheme: Scheme, tmp_path: Path) -> None:
    process = backfilled(tmp_path, scheme, "judge")
    process.again()
    process.posts(LIVE, [unlike(0), edited(unlike(1)), unlike(100)])
    assert process.texts(DUPLICATES) == [unlike(0), edited(unlike(1))]
    assert process.texts(UNIQUE)[3] == unlike(100)
    assert process.sieve.stats().held == 4


@pytest.mark.parametrize(("ahead_ms", "dropped"), [(5 * MINUTE_MS, [14]), (24 * HOUR_MS, [])])
def test_a_stamp_from_the_future_moves_stream_time_no_further_than_allowed(
    ahead_ms: int, dropped: list[int], scheme: Scheme, tmp_path: Path
) -> None:
    """Of leaders 16 and 14 minutes old, a step of five minutes leaves one in a window of twenty, a day none."""
    near = {"messages": 1_000, "age": "20m"}
    made = settings(tmp_path, {"max_ahead": f"{ahead_ms}ms"}, near, {"method": "none"})
    process = Stepped(made, scheme, {"posts": 2})
    process.post(LIVE, unlike(16))
    process.clock.sleep(120.0)
    process.post(LIVE, unlike(14))
    process.clock.sleep(14 * 60.0)
    before_ms = process.clock.now_ms()
    process.post(BACKFILL, unlike(2099), YEAR_2099_MS)
    after_ms = process.clock.now_ms()
    stream_time_ms = process.sieve.stats().stream_time_ms
    assert stream_time_ms is not None
    assert before_ms + ahead_ms <= stream_time_ms <= after_ms + ahead_ms
    process.posts(LIVE, [unlike(16), unlike(14)])
    assert process.texts(DUPLICATES) == [unlike(age) for age in dropped]


def test_what_arrives_after_a_stamp_from_the_future_is_not_late(scheme: Scheme, tmp_path: Path) -> None:
    time = {"max_ahead": "5m", "late": "judge", "late_after": "1h"}
    made = settings(tmp_path, time, {"messages": 1_000, "age": "24h"}, {"method": "none"})
    process = Stepped(made, scheme, {"posts": 2})
    process.post(BACKFILL, unlike(2099), YEAR_2099_MS)
    process.posts(LIVE, [unlike(1), edited(unlike(1))])
    assert process.texts(DUPLICATES) == [edited(unlike(1))]
