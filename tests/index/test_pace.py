"""How many rows are judged together follows from how long that took."""

from __future__ import annotations

from twinsieve.pipeline.index.transaction import Pace


def test_rows_grow_while_judging_is_quick_and_fall_at_once_where_it_is_slow() -> None:
    pace = Pace(32)
    seen = []
    for _ in range(12):
        seen.append(pace.rows)
        pace.judged(pace.rows, pace.rows * 1e-6)
    assert seen == [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048]
    pace.judged(2_048, 4.0)
    assert pace.rows == 51, "a tenth of a second of these rows"
    pace.judged(51, 60.0)
    assert pace.rows == 1, "one block at least"


def test_blocks_without_rows_say_nothing() -> None:
    pace = Pace(32)
    pace.judged(0, 0.0)
    assert pace.rows == 1
