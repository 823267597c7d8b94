"""The report of a run over files: counts, time by step, example pairs, and the reach of the windows."""

from __future__ import annotations

import resource
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson
from numpy.typing import NDArray

from twinsieve.pipeline.basics.program import program_version
from twinsieve.pipeline.basics.shown_amounts import share, span
from twinsieve.pipeline.basics.shown_time import shown_time
from twinsieve.pipeline.dedup.jumps import WITHIN_ROWS
from twinsieve.pipeline.files.format import RowChunk
from twinsieve.pipeline.files.unreadable_rows import FirstUnreadable
from twinsieve.pipeline.messages.verdict_values import MEANINGS
from twinsieve.pipeline.settings.values import duration_text
from twinsieve.stages.contract import (
    NO_TIME,
    Batch,
    Flag,
    Kind,
    SieveConfig,
    SieveStats,
    Verdicts,
)
from twinsieve.stages.differ.rules import counts_by_name
from twinsieve.stages.near.signatures import MAX_LINKS

if TYPE_CHECKING:
    from rich.table import Table

STEPS = {
    "read": "read",
    "text": "text",
    "fingerprints": "fingerprints",
    "judge": "exact and near",
    "write": "write",
    "state": "state",
}
"""The steps of a run, with their names in the summary."""


@dataclass(slots=True)
class Reach:
    """One window, and how many rows were not compared with the first kept row because of its limits.

    messages: number of kept rows that the window holds
    age_ms: greatest age of a kept row in the window; None for no limit
    rows_after: number of readable rows that came after the first kept row had left this window; these are the
        last rows of the input, because a row that has left a window never returns
    rows_after_age: number of readable rows that came after the first kept row had exceeded the age limit
    """

    messages: int
    age_ms: int | None
    rows_after: int = 0
    rows_after_age: int = 0


class Reaches:
    """Computes the `Reach` of every window in use, by stage, in the order `near`, `exact`.

    begun: statistics of the sieve before the first row of this run; earlier runs may have filled it
    """

    def __init__(self, config: SieveConfig, begun: SieveStats) -> None:
        self.by_stage = {
            stage: Reach(kept.window.messages, kept.window.age_ms)
            for stage, kept in (("near", config.near), ("exact", config.exact))
            if kept.method != "none"
        }
        self._kept = begun.kept
        self._first_time = NO_TIME if begun.oldest_time_ms is None else begun.oldest_time_ms

    def count(self, stream: NDArray[np.int64], verdicts: Verdicts) -> None:
        """Add one chunk; chunks must come in the order in which they were judged.

        stream: int64[n], stream time after each row, or NO_TIME
        """
        kept = (verdicts.kinds == Kind.UNIQUE) & ((verdicts.flags & Flag.LATE) == 0)
        before = self._kept + np.cumsum(kept) - kept
        timed = stream != NO_TIME
        if self._first_time == NO_TIME and timed.any():
            self._first_time = int(stream[timed][0])
        for reach in self.by_stage.values():
            outside = before > reach.messages
            if reach.age_ms is not None:
                old = timed & (stream > self._first_time + reach.age_ms)
                reach.rows_after_age += int(np.count_nonzero(old))
                outside |= old
            reach.rows_after += int(np.count_nonzero(outside))
        self._kept += int(np.count_nonzero(kept))


class Examples:
    """Collects example pairs, preferring pairs that are alike in different ways (see `_kind`).

    An example has the same fields as a line of the duplicates, or of --kept-apart.
    wanted: greatest number of examples of dropped rows
    """

    def __init__(self, wanted: int = 0) -> None:
        self._first: dict[tuple[str, int], dict[str, Any]] = {}
        self._others: list[dict[str, Any]] = []
        self._copies: list[dict[str, Any]] = []
        self._apart: dict[str, dict[str, Any]] = {}
        self.wanted = wanted

    def offer(self, entry: dict[str, Any]) -> None:
        """Take an example if it may be shown. Exact copies of the leader show least, so they come last."""
        if entry["text"] == entry["leader_text"]:
            if len(self._copies) < self.wanted:
                self._copies.append(entry)
        elif (kind := _kind(entry)) not in self._first:
            if self.wanted:
                self._first[kind] = entry
        elif len(self._others) < self.wanted:
            self._others.append(entry)

    def offer_apart(self, entry: dict[str, Any]) -> None:
        """Take the first pair that was kept apart for each reason."""
        self._apart.setdefault(entry["reason"], entry)

    def apart(self, reasons: Counter[str]) -> list[dict[str, Any]]:
        """The pair that was kept apart for the most frequent of these reasons; empty if there is none."""
        return [self._apart[reason] for reason, _ in reasons.most_common(1) if reason in self._apart]

    def chosen(self) -> list[dict[str, Any]]:
        """The examples to show, at most `wanted`: first one of each kind, then others, then exact copies.

        Within a stage, kinds are sorted by descending similarity (or distance).
        """
        first = [self._first[kind] for kind in sorted(self._first, key=lambda kind: (kind[0], -kind[1]))]
        return (first + self._others + self._copies)[: self.wanted]


def _kind(entry: dict[str, Any]) -> tuple[str, int]:
    """The kind of an example: its stage, and similarity in steps of 0.05, distance or shared hashes.

    Examples of the same kind look alike, so one of them is enough.
    """
    if "similarity" in entry:
        return entry["stage"], int(entry["similarity"] * 20)
    return entry["stage"], entry["distance"] if "distance" in entry else entry["shared"]


@dataclass(slots=True)
class Summary:
    """Counts of one run.

    rows: number of rows read, without blank ones and repeated headers
    blank: number of blank rows; headers: number of rows that were the header of their input once more
    kinds: number of readable rows by verdict; unreadable: number of unreadable rows by reason
    no_text: number of rows that were kept without a text, and not compared
    left_out: number of unique rows that are not written, because a later one is a duplicate (--keep none)
    flags: number of rows by flag of the verdict
    kept_apart: number of rows that were kept although a leader is similar, by reason
    near: the rules of near duplicates that apply, as lines of text
    inputs: names of the inputs; settings: those that decide, by key
    bad_times: number of times that could not be parsed; first_bad_time: input and line of the first one
    keyless, first_keyless: the same of readable rows with an empty key
    jumps: number of rows so far ahead that they did not move stream time (`Jumps`); first_jump: place, time
        and distance of the first one
    explained: number of dropped rows written to the duplicates or offered as examples
    leaders_unknown: number of those whose leader is no longer in the leader book
    first_unreadable: the first unreadable row
    seconds: seconds by step; also `start`, before the first row, and `wait`, waiting for streams. Steps
        overlap, so their sum is more than `ran_s`, the seconds of the run without these two
    pushed_out: number of kept rows that the index hardly finds any more, at the end
    proposal: a line that proposes another profile, "" for none
    examples: example pairs; windows: the reach of each window, by stage
    """

    rows: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    unreadable: Counter[str] = field(default_factory=Counter)
    no_text: int = 0
    left_out: int = 0
    flags: Counter[str] = field(default_factory=Counter)
    kept_apart: Counter[str] = field(default_factory=Counter)
    near: list[str] = field(default_factory=list)
    inputs: list[str] = field(default_factory=list)
    settings: dict[str, str] = field(default_factory=dict)
    bad_times: int = 0
    first_bad_time: str = ""
    keyless: int = 0
    first_keyless: str = ""
    jumps: int = 0
    first_jump: str = ""
    explained: int = 0
    pushed_out: int = 0
    proposal: str = ""
    leaders_unknown: int = 0
    first_unreadable: FirstUnreadable | None = None
    blank: int = 0
    headers: int = 0
    seconds: dict[str, float] = field(default_factory=lambda: dict.fromkeys(["start", "wait", *STEPS], 0.0))
    ran_s: float = 0.0
    examples: Examples = field(default_factory=Examples)
    windows: dict[str, Reach] = field(default_factory=dict)

    @property
    def dropped(self) -> int:
        """Number of rows that were dropped as exact or near duplicates."""
        return self.kinds["exact"] + self.kinds["near"]

    def count(self, chunk: RowChunk, verdicts: Verdicts) -> None:
        """Add the counts of one chunk."""
        columns = chunk.columns
        self.blank += chunk.blank
        self.headers += chunk.headers
        self.rows += len(columns) + len(columns.unreadable) + len(columns.no_text)
        self.no_text += len(columns.no_text)
        for kind, number in enumerate(np.bincount(verdicts.kinds, minlength=len(Kind)).tolist()):
            if number:
                self.kinds[Kind(kind).name.lower()] += number
        for flag in Flag:
            number = int(np.count_nonzero(verdicts.flags & flag.value))
            if number and flag.name:
                self.flags[flag.name.lower()] += number
        self.kept_apart.update(counts_by_name(verdicts.reasons))
        self.unreadable.update(bad.reason for bad in columns.unreadable)
        self.bad_times += len(columns.bad_times)
        self.first_bad_time = self.first_bad_time or _first_place(chunk, columns.bad_times)
        self.keyless += len(columns.keyless)
        self.first_keyless = self.first_keyless or _first_place(chunk, columns.keyless)

    def count_jumps(self, chunk: RowChunk, batch: Batch, jumps: Sequence[int]) -> None:
        """Add the jumps of one chunk. batch: its messages, with stream times; jumps: indices of messages"""
        self.jumps += len(jumps)
        if jumps and not self.first_jump:
            time_ms, stream_ms = int(batch.times_ms[jumps[0]]), int(batch.stream_ms[jumps[0]])
            ahead = span((time_ms - stream_ms) / 1000)
            self.first_jump = f"{_first_place(chunk, jumps)} at {shown_time(time_ms)}, is {ahead} ahead"

    def micros(self) -> dict[str, float]:
        """Microseconds per row, by step, without the time of the start-up."""
        return {step: self.seconds[step] / max(self.rows, 1) * 1e6 for step in STEPS}

    def as_json(self, sieve: SieveStats) -> bytes:
        """The counts as one JSON object and a newline; sieve: how full the sieve is at the end."""
        micros = self.micros()
        report = {
            "rows": self.rows,
            "unique": self.kinds["unique"],
            "exact": self.kinds["exact"],
            "near": self.kinds["near"],
            "no_text": self.no_text,
            "left_out": self.left_out,
            "unreadable": {str(reason): count for reason, count in self.unreadable.items()},
            "flags": dict(self.flags),
            "kept_apart": dict(self.kept_apart),
            "bad_times": self.bad_times,
            "keyless": self.keyless,
            "jumps": self.jumps,
            "blank": self.blank,
            "headers": self.headers,
            "pushed_out": self.pushed_out,
            "windows": {stage: asdict(reach) for stage, reach in self.windows.items()},
            "start_seconds": round(self.seconds["start"], 3),
            "wait_seconds": round(self.seconds["wait"], 3),
            "seconds": round(self.ran_s, 3),
            "rows_per_second": round(self.rows / self.ran_s) if self.ran_s else 0,
            "micros_per_row": {step: round(value, 3) for step, value in micros.items()},
            "sieve": asdict(sieve),
            "version": program_version(),
            "inputs": self.inputs,
            "settings": self.settings,
        }
        return orjson.dumps(report, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def _first_place(chunk: RowChunk, messages: Sequence[int]) -> str:
    """The place of the first of these messages of a chunk; "" for none."""
    return chunk.place_of(chunk.columns.rows[messages[0]]) if messages else ""


_REASONS = 4
"""Reasons that the summary shows."""
_TELLING_S = 1.0
"""Speed and memory are shown only if the run took this many seconds, waiting only if it took as many."""


def summary_table(summary: Summary, sieve: SieveStats) -> Table:
    """A table of counts, shares and windows; with memory and speed if the run was long enough for that."""
    from rich.table import Table

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
        *([("no text", summary.no_text)] if summary.no_text else []),
        ("unreadable", unreadable),
    ):
        table.add_row(name, f"{count:,}", share(count / rows) if summary.rows else "", _remark(name, summary))
        if name == "unique":
            for reason, number, meaning in _reasons(summary.kept_apart):
                table.add_row(f"  {reason}", f"{number:,}", "", meaning)
    for line in summary.near:
        table.add_row("near rule", "", "", line)
    table.add_row("remembered", f"{sieve.held:,}", "", pushed_out_remark(summary.pushed_out, sieve.held))
    if summary.proposal:
        table.add_row("profile", "", "", summary.proposal)
    for stage, reach in summary.windows.items():
        table.add_row(f"{stage} window", f"{reach.messages:,}", "", window_line(reach))
    # A shorter run would mainly measure the first access to new memory, and windows sized for more rows.
    if summary.ran_s >= _TELLING_S:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
        room = f"of the process at most; its windows have room of {sieve.bytes_used / 2**20:,.0f} MiB"
        table.add_row("memory", f"{peak:,.0f} MiB", "", room)
        steps = ", ".join(
            f"{STEPS[step]} {micros:.1f}" for step, micros in summary.micros().items() if micros >= 0.05
        )
        table.add_row("speed", f"{summary.rows / summary.ran_s:,.0f} rows/s", "", f"µs a row: {steps}")
    if summary.seconds["wait"] >= _TELLING_S:
        table.add_row("waited", f"{summary.seconds['wait']:.1f} s", "", "for input")
    table.add_row("start-up", f"{summary.seconds['start']:.1f} s", "", "")
    return table


def window_line(reach: Reach) -> str:
    """A text for one window: what it holds, and how many rows came after its first kept row had left it.

    >>> window_line(Reach(messages=1000, age_ms=None))
    'kept rows, of any age'
    >>> window_line(Reach(messages=1000, age_ms=86_400_000, rows_after=20))
    'kept rows, none older than 24h; the last 20 rows were not compared with the first kept ones'
    """
    age = "of any age" if reach.age_ms is None else f"none older than {duration_text(reach.age_ms)}"
    if not reach.rows_after:
        return f"kept rows, {age}"
    return f"kept rows, {age}; the last {reach.rows_after:,} rows were not compared with the first kept ones"


def age_lines(summary: Summary) -> list[str]:
    """One line for each window whose age limit prevented comparisons.

    >>> age_lines(Summary(rows=40, windows={"near": Reach(1000, age_ms=86_400_000, rows_after_age=38)}))
    ['near.window.age is 24h: the last 38 of 40 rows met no kept row older than that; none lifts the limit']
    """
    return [
        f"{stage}.window.age is {duration_text(reach.age_ms)}: the last {reach.rows_after_age:,} of "
        f"{summary.rows:,} rows met no kept row older than that; none lifts the limit"
        for stage, reach in summary.windows.items()
        if reach.age_ms is not None and reach.rows_after_age
    ]


def bad_times_line(summary: Summary) -> str:
    """The line about times that could not be parsed, for a run that has some.

    >>> bad_times_line(Summary(rows=40, bad_times=3, first_bad_time="posts.csv:7"))
    '3 of 40 rows have a time that could not be read and are judged without one; the first, posts.csv:7'
    """
    have, are = ("has", "is") if summary.bad_times == 1 else ("have", "are")
    return (
        f"{summary.bad_times:,} of {summary.rows:,} rows {have} a time that could not be read "
        f"and {are} judged without one; the first, {summary.first_bad_time}"
    )


def keyless_line(summary: Summary, fields: Sequence[str]) -> str:
    """The line about rows with an empty key, for a run that has some. fields: `exact.fields`

    >>> keyless_line(Summary(rows=40, keyless=3, first_keyless="posts.csv:7"), ["a", "b"])
    '3 of 40 rows have an empty key (exact.fields: a, b) and are no exact copies; the first, posts.csv:7'
    """
    have, are = ("has", "is no exact copy") if summary.keyless == 1 else ("have", "are no exact copies")
    return (
        f"{summary.keyless:,} of {summary.rows:,} rows {have} an empty key "
        f"(exact.fields: {', '.join(fields)}) and {are}; the first, {summary.first_keyless}"
    )


def jumps_line(summary: Summary, reach_ms: int) -> str:
    """The line about rows that are far ahead of those before them, for a run that has some.

    reach_ms: `Jumps.reach_ms`

    >>> jump = "posts.csv:7 at 2025-06-01 10:00:00 UTC, is 5.41 years ahead"
    >>> print(jumps_line(Summary(rows=40, jumps=1, first_jump=jump), 86_400_000)[:57])
    1 of 40 rows is over 24h ahead of the rows before and did
    """
    are, they_count = ("is", "it counts") if summary.jumps == 1 else ("are", "they count")
    return (
        f"{summary.jumps:,} of {summary.rows:,} rows {are} over {duration_text(reach_ms)} ahead of the rows "
        f"before and did not move the windows: that takes a second row as late among the next "
        f"{WITHIN_ROWS:,}; until then {they_count} as late; the first, {summary.first_jump}"
    )


PUSHED_OUT_SHARE = 0.01
"""The summary speaks of rows that were pushed out of the index from this share of the kept ones on."""


def pushed_out_remark(pushed_out: int, held: int) -> str:
    """A text about kept rows that the index rarely finds; "" if they are few.

    pushed_out: number of these rows; held: number of kept rows in the window

    >>> pushed_out_remark(20, 1000)[:46]
    '20 (2.0%) are rarely found, because newer rows'
    >>> pushed_out_remark(9, 1000)
    ''
    """
    if not pushed_out or pushed_out < held * PUSHED_OUT_SHARE:
        return ""
    return (
        f"{pushed_out:,} ({share(pushed_out / held)}) are rarely found, because newer rows with the same "
        "letters replaced them in the index; near.layout.grams: by_script or a smaller near.bucket_load "
        "finds more"
    )


def _reasons(kept_apart: Counter[str]) -> Iterator[tuple[str, int, str]]:
    """The most frequent reasons, each with its count and its meaning, and all others together."""
    most = kept_apart.most_common(_REASONS)
    yield from ((reason, count, MEANINGS[reason]) for reason, count in most)
    others = kept_apart.most_common()[_REASONS:]
    if others:
        yield "others", sum(count for _, count in others), ", ".join(reason for reason, _ in others)


def _remark(name: str, summary: Summary) -> str:
    flags = summary.flags
    remarks = {
        "unique": [
            (summary.left_out, "not written: a later row is a duplicate (--keep none)"),
            (flags["late"], "too late to lead"),
            (flags["no_features"], "with no features: compared with nothing"),
            (flags["cut_short"], f"searched in part: over {MAX_LINKS:,} kept rows share a hash"),
            (sum(summary.kept_apart.values()), "kept apart: like a kept row, but"),
        ],
        "exact": [(flags["unconfirmed"], "that only the Bloom filter found")],
        "near": [(flags["estimated"], "estimated (over 512 characters)")],
        "no text": [(summary.no_text, "kept, compared with nothing")],
        "rows": [
            (summary.bad_times, "with a time that could not be read"),
            (summary.keyless, "without a key"),
            (summary.jumps, "too far ahead to move the windows"),
            (summary.blank, "blank line passed over" if summary.blank == 1 else "blank lines passed over"),
            (summary.headers, "left out: the header once more"),
        ],
    }
    return ", ".join(f"{count:,} {remark}" for count, remark in remarks.get(name, []) if count)
