"""The table at the end of a run over files."""

from __future__ import annotations

from rich.table import Table

from twinsieve.pipeline.dedup_report import STEPS, Summary
from twinsieve.stages.sieve import SieveStats


def summary_table(summary: Summary, sieve: SieveStats) -> Table:
    """Counts, shares, and microseconds a row by step."""
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
    table.add_row("remembered", f"{sieve.held:,}", "", f"{sieve.bytes_used / 2**20:,.0f} MiB")
    busy = sum(summary.seconds[step] for step in STEPS)
    rate = f"{summary.rows / busy:,.0f} rows/s" if busy else ""
    steps = ", ".join(
        f"{STEPS[step]} {micros:.1f}" for step, micros in summary.micros().items() if micros >= 0.05
    )
    table.add_row("speed", rate, "", f"µs a row: {steps}" if steps else "")
    table.add_row("start-up", f"{summary.seconds['start']:.1f} s", "", "")
    return table


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
        "rows": [(summary.bad_times, "with a time that could not be read")],
    }
    return ", ".join(f"{count:,} {what}" for count, what in said.get(name, []) if count)
