"""Convert the arguments of `Sieve.judge`, or the items of `Sieve.dedup`, to columns for the engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from twinsieve.api.frames import column_of, is_frame
from twinsieve.api.time_column import TimeUnit, times_of
from twinsieve.api.user_columns import a_type, ids_of, scopes_of, texts_and_gaps, texts_of
from twinsieve.pipeline.messages.keyless import keyless_rows, set_apart
from twinsieve.pipeline.messages.reader import Reads, hash_ids, hash_scopes, one_text
from twinsieve.stages.contract import NO_TIME, Batch
from twinsieve.stages.errors import UsageError
from twinsieve.stages.fingerprint.hashing import Hash
from twinsieve.stages.fingerprint.secret import Secret
from twinsieve.stages.judge.scheme import join_fields

Part = str | Callable[[Any], Any]
"""How to get the text, id, time or scope of an item: with this key, or by calling this function with it."""


@dataclass(frozen=True, slots=True)
class Given:
    """n texts, and the ids, times and scopes that the caller passed with them. A missing text is None.

    has_text: bool[n], or None if every row has a text
    ids, scopes: n values, None for a row without one; None instead of a column if the caller passed none
    times_ms: int64[n], or None if the caller passed none
    """

    texts: list[str | None]
    has_text: NDArray[np.bool_] | None
    ids: list[str | int | None] | None
    times_ms: NDArray[np.int64] | None
    scopes: list[tuple[str | int, ...] | None] | None

    def __len__(self) -> int:
        return len(self.texts)

    def rows(self, low: int, high: int) -> Given:
        """The rows from `low` up to, but not including, `high`."""
        return Given(
            self.texts[low:high],
            None if self.has_text is None else self.has_text[low:high],
            None if self.ids is None else self.ids[low:high],
            None if self.times_ms is None else self.times_ms[low:high],
            None if self.scopes is None else self.scopes[low:high],
        )

    def with_text(self) -> tuple[Given, NDArray[np.int64] | None]:
        """The rows that have a text, and which these are: int64[m], or None if all rows have one."""
        if self.has_text is None or self.has_text.all():
            return self, None
        rows = np.flatnonzero(self.has_text)
        numbers = rows.tolist()
        rated = Given(
            [self.texts[row] for row in numbers],
            None,
            None if self.ids is None else [self.ids[row] for row in numbers],
            None if self.times_ms is None else self.times_ms[rows],
            None if self.scopes is None else [self.scopes[row] for row in numbers],
        )
        return rated, rows

    def batch(
        self,
        read: Reads,
        positions: NDArray[np.int64],
        arrival_ms: int,
        secret: Secret,
        *,
        raw_keys: bool,
        ids_count: bool,
    ) -> Batch:
        """The rows, which all have a text, as the engine judges them.

        secret: keys ids and scopes
        raw_keys: whether the texts as they are are the exact keys
        ids_count: whether verdicts depend on ids (`near.same_id: pass`); if False, the ids are not hashed
        """
        n = len(self)
        texts = cast("list[str]", self.texts)
        bodies, prints = read.read(texts, texts if raw_keys else None)
        if raw_keys:
            set_apart(prints.digests, keyless_rows([texts]), positions)
        none = np.zeros(n, np.uint64)
        ids_by, scopes_by = Hash.of("id", secret.bytes), Hash.of("scope", secret.bytes)
        return Batch(
            positions=positions,
            times_ms=np.full(n, NO_TIME) if self.times_ms is None else self.times_ms,
            arrivals_ms=np.full(n, arrival_ms),
            stream_ms=np.full(n, NO_TIME),
            ids=none if self.ids is None or not ids_count else hash_ids(self.ids, ids_by),
            scopes=none if self.scopes is None else hash_scopes(self.scopes, scopes_by),
            bodies=bodies,
            fingerprints=prints,
        )


def read_columns(
    texts: object,
    ids: object,
    times: object,
    scopes: object,
    unit: TimeUnit | None,
    first: int = 0,
    name: str = "texts",
) -> Given:
    """The arguments of one call, checked and converted.

    first: number of the first row, for errors; name: the name of the texts in errors
    raises: UsageError, which names argument and row
    """
    column, has_text = texts_and_gaps(texts, first, name)
    given = Given(
        column,
        has_text,
        None if ids is None else ids_of(ids, first),
        None if times is None else times_of(times, unit, first),
        None if scopes is None else scopes_of(scopes, first),
    )
    for other_name, other in (("ids", given.ids), ("times", given.times_ms), ("scopes", given.scopes)):
        if other is not None and len(other) != len(column):
            raise UsageError(
                f"{other_name} has {len(other)} rows, texts has {len(column)}; give one row for each text"
            )
    return given


def join_columns(texts: object, fields: Sequence[str], first: int = 0, *, apart: bool) -> list[str | None]:
    """One text for each row, of the columns of these names; None where all are missing.

    texts: a data frame, an Arrow table, or a mapping of names to columns; a mapping may lack some of them
    apart: whether the fields can be told apart in the text (`near.distances_by_field`); else they are lines
        of it, as for the commands
    raises: UsageError, which names column and row
    """
    if is_frame(texts):
        columns = [texts_of(column_of(texts, name, "texts"), first, name) for name in fields]
    elif isinstance(texts, Mapping):
        if not any(name in texts for name in fields):
            raise UsageError(f"texts has no column {' or '.join(map(repr, fields))}")
        named = {name: texts_of(texts[name], first, name) for name in fields if name in texts}
        rows = max(map(len, named.values()))
        columns = [named.get(name, [None] * rows) for name in fields]
    else:
        raise UsageError(
            f"texts is {a_type(texts)}, but near.distances_by_field compares fields; give a frame, or a "
            f"mapping of columns, with {', '.join(fields)}"
        )
    for name, column in zip(fields, columns, strict=True):
        if len(column) != len(columns[0]):
            raise UsageError(f"{name} has {len(column)} rows, {fields[0]} has {len(columns[0])}")
    join = _apart if apart else _lines
    return [None if all(part is None for part in row) else join(row) for row in zip(*columns, strict=True)]


def join_items(
    items: Sequence[object], fields: Sequence[str], first: int, *, apart: bool
) -> list[str | None]:
    """As `join_columns`, of items that are mappings; an item may lack a field."""
    columns: dict[str, list[Any]] = {name: [] for name in fields}
    for row, item in enumerate(items, start=first):
        if not isinstance(item, Mapping):
            why = "near.distances_by_field compares fields" if apart else "its text has several fields"
            raise UsageError(
                f"items[{row}] is {a_type(item)}, but {why}; give mappings with {', '.join(fields)}"
            )
        for name in fields:
            columns[name].append(item.get(name))
    return join_columns(columns, fields, first, apart=apart) if items else []


def _apart(row: tuple[str | None, ...]) -> str:
    return join_fields([part or "" for part in row])


def _lines(row: tuple[str | None, ...]) -> str:
    return cast("str", one_text(*row))


def read_items(
    items: Sequence[object],
    parts: Mapping[str, Part | None],
    unit: TimeUnit | None,
    first: int,
    fields: Sequence[str] = (),
    *,
    apart: bool = False,
) -> Given:
    """The texts, ids, times and scopes of a chunk of items.

    parts: how to get `text`, `ids`, `times`, `scopes`, or None; if `text` is None, the items are the texts
    first: number of the first item, for errors
    fields, apart: keys of the items that make its text, as in `join_columns`; () if an item has one text
    raises: UsageError, which names argument and item; an exception from the caller's function passes through
    """
    texts, ids, times, scopes = (
        None if (part := parts[name]) is None else _values(items, name, part, first)
        for name in ("text", "ids", "times", "scopes")
    )
    if fields:
        joined = join_items(items, fields, first, apart=apart)
        return read_columns(joined, ids, times, scopes, unit, first, "items")
    if texts is None:
        return read_columns(items, ids, times, scopes, unit, first, "items")
    return read_columns(texts, ids, times, scopes, unit, first, "text")


def _values(items: Sequence[object], name: str, part: Part, first: int) -> list[Any]:
    if not isinstance(part, str):
        return [part(item) for item in items]
    values = []
    for row, item in enumerate(items, start=first):
        try:
            values.append(item[part])  # type: ignore[index]
        except KeyError as error:
            raise UsageError(
                f"{name}[{row}]: the item has no {part!r}; give a function that says what to take"
            ) from error
        except (TypeError, IndexError) as error:
            raise UsageError(f"{name}[{row}]: the item is {a_type(item)}, which has no {part!r}") from error
    return values
