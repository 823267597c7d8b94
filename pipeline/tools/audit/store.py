"""Drops as a table of DuckDB, which counts, groups and sorts them: in memory, and beyond that on disk."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from twinsieve.pipeline.messages.verdict_values import LIKENESS_WORDS
from twinsieve.pipeline.why.drops import Drop, Place

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

HUNDREDTHS = 100
_MEMORY = "512MB"
_CHUNK = 8_192
_NUMBERS = ("position", "line", "time_ms", "duplicate_of", "leader_line", "element", "leader_element")
_TABLE = """position BIGINT, id VARCHAR, source VARCHAR, line BIGINT, time_ms BIGINT, stage VARCHAR,
measure VARCHAR, likeness DOUBLE, flags VARCHAR, duplicate_of BIGINT, duplicate_of_id VARCHAR,
leader_source VARCHAR, leader_line BIGINT, text VARCHAR, leader_text VARCHAR, element BIGINT,
leader_element BIGINT, place VARCHAR, n BIGINT"""
"""flags: with line breaks between; n: number of the drop
place: source and line of a leader without a position, empty for another leader, missing without a leader"""
_COLUMNS = tuple(column.split()[0] for column in _TABLE.split(",")[:-1])
_SHOWN = ", ".join(f"left({name}, ?)" if name.endswith("text") else name for name in _COLUMNS)
_LED = "place IS NOT NULL AND (duplicate_of IS NOT NULL OR place != '')"
_CLOSENESS = "stage = 'exact', CASE measure WHEN 'distance' THEN -likeness ELSE likeness END, n"
"""Orders the drops of a leader: the least similar first."""
_UNIT = f"""CASE measure WHEN 'similarity'
    THEN least(round(likeness * 10000)::BIGINT // {10_000 // HUNDREDTHS}, {HUNDREDTHS})
    ELSE least(floor(likeness)::BIGINT, 200) END"""
"""A similarity is a multiple of 1/10,000; its product with 100 may lie just below a whole number."""
_TAIL = 0.005
_MINUTE, _HOUR, _DAY = 60_000, 3_600_000, 86_400_000
_SPANS_MS = (
    *(second * 1000 for second in (1, 2, 5, 10, 15, 30)),
    *(minute * _MINUTE for minute in (1, 2, 5, 10, 15, 30)),
    *(hour * _HOUR for hour in (1, 2, 3, 6, 12)),
    *(day * _DAY for day in (1, 2, 7, 14, 28, 91, 182, 364)),
)


@dataclass(frozen=True, slots=True)
class Cluster:
    """A kept message and how many messages were dropped for it.

    samples: some of them with different texts, the least alike to the leader first
    """

    leader: Place
    drops: int
    samples: list[Drop]


@dataclass(frozen=True, slots=True)
class RowPart:
    """Consecutive rows of the run.

    first, last: their positions; drops: how many of them were dropped; rows: their number; share: drops a row
    from_ms, to_ms: earliest and latest time of these drops, without times far outside all others; None if no
        drop has a time
    """

    first: int
    last: int
    drops: int
    from_ms: int | None
    to_ms: int | None
    rows: int
    share: float


@dataclass(frozen=True, slots=True)
class TimeParts:
    """Drops over time.

    parts: begin, ms since 1970, and number of drops of each span of span_ms; empty if no drop has a time
    before, after: drops whose time lies outside these; untimed: drops without a time
    """

    span_ms: int
    parts: list[tuple[int, int]]
    before: int
    after: int
    untimed: int


class DropTable:
    """Drops, to be asked. Texts and names have half a surrogate pair as an escape, for a table is UTF-8.

    drops: number of all; leaders: number of kept messages that they name; unled: drops that name none
    first, last: positions of the first and the last drop; None if the drops do not ascend by position, so
        that the rows between them cannot be counted
    """

    def __init__(self, connection: DuckDBPyConnection) -> None:
        self.connection = connection
        self.drops, self.leaders, led = self._row(
            """SELECT (SELECT count(*) FROM drops), count(*), coalesce(sum(size), 0)::BIGINT FROM leaders"""
        )
        self.unled = self.drops - led
        self.first, self.last = self._row(
            """SELECT CASE WHEN ascends THEN first END, CASE WHEN ascends THEN last END FROM (
                SELECT coalesce(bool_and(position IS NOT NULL AND position > coalesce(before, -1)), false)
                    AS ascends, arg_min(position, n) AS first, arg_max(position, n) AS last
                FROM (SELECT position, n, lag(position) OVER (ORDER BY n) AS before FROM drops))"""
        )

    def ask(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        """The rows of a query."""
        return self.connection.execute(query, values).fetchall()

    def _row(self, query: str, *values: object) -> tuple[Any, ...]:
        return self.ask(query, *values)[0]

    @property
    def rows(self) -> int | None:
        """Number of rows from the first drop to the last one; None if positions do not tell."""
        return None if self.first is None else self.last - self.first + 1

    @property
    def stages(self) -> dict[str, int]:
        """Number of drops by stage, the most first."""
        return dict(self.ask("SELECT stage, count(*) FROM drops GROUP BY stage ORDER BY 2 DESC, min(n)"))

    @property
    def flags(self) -> dict[str, int]:
        """Number of drops by flag, the most first."""
        each = "SELECT unnest(string_split(flags, chr(10))) AS flag, n FROM drops WHERE flags != ''"
        return dict(self.ask(f"SELECT flag, count(*) FROM ({each}) GROUP BY flag ORDER BY 2 DESC, min(n)"))

    @property
    def near(self) -> list[tuple[str, int, int]]:
        """Measure, value and number of near drops: a similarity in hundredths, rounded down, a distance in
        bits, or a number of hashes in common."""
        return self.ask(
            f"""SELECT measure, {_UNIT} AS unit, count(*) FROM drops WHERE stage = 'near'
                GROUP BY measure, unit ORDER BY measure, unit"""
        )

    @property
    def bands(self) -> list[tuple[str, int]]:
        """Near drops by likeness in words: a similarity in twentieths, rounded down, others by value."""
        found: dict[str, int] = {}
        for measure, unit, count in self.near:
            if measure == "similarity":
                name = f"near, from {unit // 5 * 5 / HUNDREDTHS:g}"
            else:
                name = f"near, {unit}{' or more' if unit == 200 else ''} {LIKENESS_WORDS[measure]}"
            found[name] = found.get(name, 0) + count
        return list(found.items())

    @property
    def sizes(self) -> list[tuple[int, int]]:
        """How many leaders have how many drops: (drops, leaders), ascending."""
        return self.ask("SELECT size, count(*) FROM leaders GROUP BY size ORDER BY size")

    def clusters(self, most: int, samples: int, characters: int) -> list[Cluster]:
        """The leaders with the most drops, of equally many the older first.

        samples: drops of each, of different texts; characters: of a text of them, at most
        """
        rows = self.ask(
            f"""WITH largest AS (SELECT *, row_number() OVER (
                    ORDER BY size DESC, duplicate_of, place) AS rank FROM leaders ORDER BY rank LIMIT ?),
                texts AS (SELECT d.*, rank, size, row_number() OVER (
                    PARTITION BY rank, text ORDER BY {_CLOSENESS}) AS nth FROM drops AS d JOIN largest AS l
                    ON d.place = l.place AND d.duplicate_of IS NOT DISTINCT FROM l.duplicate_of)
                SELECT rank, size, {_SHOWN} FROM texts WHERE nth = 1
                QUALIFY row_number() OVER (PARTITION BY rank ORDER BY {_CLOSENESS}) <= ?
                ORDER BY rank, {_CLOSENESS}""",
            most, characters + 1, characters + 1, samples,
        )  # fmt: skip
        found: dict[int, Cluster] = {}
        for rank, size, *row in rows:
            drop = _drop(row).cut(characters)
            assert drop.leader is not None
            found.setdefault(rank, Cluster(drop.leader, size, [])).samples.append(drop)
        return list(found.values())

    def row_parts(self, parts: int) -> list[RowPart]:
        """The run from the first drop to the last one in at most so many parts; none if positions do not
        tell."""
        if self.first is None or self.rows is None:
            return []
        width, step = 1, 0
        while (self.last - 1) // width - (self.first - 1) // width + 1 > parts:
            step += 1
            width = (1, 2, 5)[step % 3] * 10 ** (step // 3)
        low, high = self._time_range() or (0, -1)
        query = """SELECT (position - 1) // ? AS part, count(*),
            min(time_ms) FILTER (time_ms BETWEEN ? AND ?), max(time_ms) FILTER (time_ms BETWEEN ? AND ?)
            FROM drops GROUP BY part"""
        counted = {part: found for part, *found in self.ask(query, width, low, high, low, high)}
        made = []
        for part in range((self.first - 1) // width, (self.last - 1) // width + 1):
            first, last = max(part * width + 1, self.first), min(part * width + width, self.last)
            drops, from_ms, to_ms = counted.get(part, (0, None, None))
            rows = last - first + 1
            made.append(RowPart(first, last, drops, from_ms, to_ms, rows, drops / rows))
        return made

    def times(self, parts: int) -> TimeParts:
        """Drops over time, in at most so many parts."""
        times = self._time_range()
        if times is None:
            return TimeParts(0, [], 0, 0, self.drops)
        low, high = times
        span = next((span for span in _SPANS_MS if high // span - low // span + 1 <= parts), 0)
        if not span:
            span = max(-(-(high - low) // (_SPANS_MS[-1] * max(parts - 2, 1))), 1) * _SPANS_MS[-1]
        before, after, untimed = self._row(
            """SELECT count(*) FILTER (time_ms < ?), count(*) FILTER (time_ms > ?),
                count(*) FILTER (time_ms IS NULL) FROM drops""", low, high,
        )  # fmt: skip
        # The remainder of a number below 0 is below 0 in SQL.
        query = """SELECT time_ms - (time_ms % $1 + $1) % $1 AS start, count(*) FROM drops
            WHERE time_ms BETWEEN $2 AND $3 GROUP BY start"""
        counted = dict(self.ask(query, span, low, high))
        starts = range(min(counted), max(counted) + 1, span)
        return TimeParts(span, [(at, counted.get(at, 0)) for at in starts], before, after, untimed)

    def _time_range(self) -> tuple[int, int] | None:
        """First and last time, ms since 1970, without those few that lie far outside the others.

        One message with a wrong year would else make all others one point. None if no drop has a time.
        """
        count, earliest, latest = self._row("SELECT count(time_ms), min(time_ms), max(time_ms) FROM drops")
        if not count:
            return None
        timed = "SELECT time_ms FROM drops WHERE time_ms IS NOT NULL ORDER BY time_ms"
        tail = int(count * _TAIL)
        (first,), (last,) = (
            self._row(f"{timed} {order} LIMIT 1 OFFSET ?", tail) for order in ("ASC", "DESC")
        )
        beside = (last - first) // 10
        return max(earliest, first - beside), min(latest, last + beside)

    def spread(self, most: int, characters: int) -> list[Drop]:
        """At most so many drops, evenly spread, with so many characters of a text."""
        query = f"SELECT {_SHOWN} FROM drops WHERE n = 0 OR n * ? // ? > (n - 1) * ? // ? ORDER BY n"
        most = min(most, self.drops)
        values = (characters + 1, characters + 1, most, self.drops, most, self.drops)
        return [_drop(row).cut(characters) for row in self.ask(query, *values)] if most else []

    def beginning(self, most: int, characters: int) -> list[Drop]:
        """The first drops."""
        query = f"SELECT {_SHOWN} FROM drops ORDER BY n LIMIT ?"
        rows = self.ask(query, characters + 1, characters + 1, most)
        return [_drop(row).cut(characters) for row in rows]


@contextmanager
def drop_table(drops: Iterable[Drop]) -> Iterator[DropTable]:
    """Context manager with the table of these drops, which are read once. What does not fit into memory lies
    in a temporary folder that only its owner can read."""
    import duckdb

    with tempfile.TemporaryDirectory(prefix="twinsieve-") as folder:
        spilled = str(Path(folder) / "spilled")
        with duckdb.connect(
            config={
                "memory_limit": _MEMORY,
                "temp_directory": spilled,
                "autoinstall_known_extensions": "false",
            }
        ) as connection:
            connection.execute("SET TimeZone = 'UTC'; SET pandas_analyze_sample = 0")
            connection.execute(f"CREATE TABLE drops ({_TABLE})")
            rows = map(_row_of, drops)
            count = 0
            while some := list(islice(rows, _CHUNK)):
                chunk = {  # noqa: F841 - DuckDB finds it by its name
                    name: _array(name, values)
                    for name, values in zip(_COLUMNS, zip(*some, strict=True), strict=True)
                } | {"n": np.arange(count, count + len(some))}
                connection.execute("INSERT INTO drops SELECT * FROM chunk")
                count += len(some)
            connection.execute(
                f"""CREATE TABLE leaders AS SELECT duplicate_of, place, count(*) AS size FROM drops
                    WHERE {_LED} GROUP BY duplicate_of, place"""
            )
            yield DropTable(connection)


def _array(name: str, values: Sequence[Any]) -> np.ndarray[Any, Any]:
    if name == "likeness":
        return np.array(values, np.float64)
    if name in _NUMBERS:
        missing = [value is None for value in values]
        return np.ma.masked_array([value or 0 for value in values], missing, dtype=np.int64)
    try:
        "".join(filter(None, values)).encode()
    except UnicodeEncodeError:
        values = [value and value.encode("utf-8", "backslashreplace").decode() for value in values]
    made = np.empty(len(values), object)
    made[:] = values
    return made


def _row_of(drop: Drop) -> tuple[Any, ...]:
    message, leader = drop.message, drop.leader
    led: tuple[Any, ...] = (None,) * 4
    place = leader_text = leader_element = None
    if leader is not None:
        led = leader.position, leader.id, leader.source, leader.line
        leader_text, leader_element = leader.text, leader.element
        is_placed = leader.position is None and leader.source is not None and leader.line is not None
        place = f"{leader.source}:{leader.line}" if is_placed else ""
    flags = "\n".join(flag.replace("\n", " ") for flag in drop.flags)
    return (
        *(message.position, message.id, message.source, message.line, drop.time_ms),
        *(drop.stage, drop.measure, drop.likeness, flags, *led),
        *(message.text, leader_text, message.element, leader_element, place),
    )


def _drop(row: Sequence[Any]) -> Drop:
    one = dict(zip(_COLUMNS, row, strict=True))
    leader = None
    if one["place"] is not None:
        names = ("source", "line", "text", "element")
        named = ("duplicate_of", "duplicate_of_id", *(f"leader_{name}" for name in names))
        leader = Place(*(one[name] for name in named))
    return Drop(
        Place(*(one[name] for name in ("position", "id", "source", "line", "text", "element"))),
        leader,
        one["stage"],
        one["measure"],
        one["likeness"],
        tuple(one["flags"].split("\n")) if one["flags"] else (),
        one["time_ms"],
    )
