"""The table at the end of a run over files."""

from __future__ import annotations

from rich.table import Table

from twinsieve.pipeline.dedup_report import STEPS, Summary
from twinsieve.pipeline.dedup_windows import Reach
from twinsieve.pipeline.settings_types import duration_text
from twinsieve.stages.sieve import SieveStats

_TELLING_S = 1.0
"""Seconds of work from which on speed and memory are shown."""


def summary_table(summary: Summary, sieve: SieveStats) -> Table:
    """Counts, shares and windows; memory and speed of a run that took long enough to tell them."""
    table = Table(show_header=False, box=None, padding=(0, 2))
    table.add_column(style="bold")
    table.add_column(justify="right")
    table.add_column(justify="right")
    table.add_column()
    rows = max(summary.rows, 1)
    unreadable = sum(summary.unreadable.values())
    for name, count in (
        ("rows", summary.rows),
        ("unique", summary.kinds["unique"]),
        ("exact", summary.kinds["exact"]),
        ("near", summary.kinds["near"]),
        ("unreadable", unreadable),
    ):
        table.add_row(
            name, f"{count:,}", f"{count / rows:.1%}" if summary.rows else "", _remark(name, summary)
        )
    table.add_row("remembered", f"{sieve.held:,}", "", "")
    for stage, reach in summary.windows.items():
        table.add_row(f"{stage} window", f"{reach.messages:,}", "", window_line(reach))
    busy = sum(summary.seconds[step] for step in STEPS)
    # Under a second it is the first touch of fresh memory that is measured, and windows made for more rows.
    if busy >= _TELLING_S:
        table.add_row("memory", f"{sieve.bytes_used / 2**20:,.0f} MiB", "", "of the windows")
        steps = ", ".join(
            f"{STEPS[step]} {micros:.1f}" for step, micros in summary.micros().items() if micros >= 0.05
        )
        table.add_row("speed", f"{summary.rows / busy:,.0f} rows/s", "", f"µs a row: {steps}")
    table.add_row("start-up", f"{summary.seconds['start']:.1f} s", "", "")
    return table


def window_line(reach: Reach) -> str:
    """What the window holds, and how many rows came too late to meet its first row.

    >>> window_line(Reach(messages=1000, age_ms=None))
    'kept rows, of any age'
    >>> window_line(Reach(messages=1000, age_ms=86_400_000, rows_after=20))
    'kept rows, none older than 24h; the first kept rows were out of it for the last 20 rows'
    """
    age = "of any age" if reach.age_ms is None else f"none older than {duration_text(reach.age_ms)}"
    if not reach.rows_after:
        return f"kept rows, {age}"
    return f"kept rows, {age}; the first kept rows were out of it for the last {reach.rows_after:,} rows"


def _remark(name: str, summary: Summary) -> str:
    flags = summary.flags
    said = {
        "unique": [
            (flags["number_guard"], "kept apart by the number guard"),
            (flags["card_guard"], "kept apart by the card guard"),
            (flags["same_id"], "edits of one id"),
            (flags["late"], "too late to lead"),
        ],
        "exact": [(flags["at_word"], "taken at the filter's word")],
        "near": [(flags["estimated"], "estimated (over 512 characters)")],
        "rows": [
            (summary.bad_times, "with a time that could not be read"),
            (summary.blank, "blank ones passed over"),
        ],
    }
    return ", ".join(f"{count:,} {what}" for count, what in said.get(name, []) if count)
