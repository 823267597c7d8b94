"""Verdicts on a column of texts: `Verdicts` has them as NumPy columns, `Verdict` is a single row."""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields
from importlib import import_module
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.contract import Flag, Kind
from twinsieve.stages.differ.rules import RULE_NUMBERS, Rule
from twinsieve.stages.errors import UsageError

Stage = Literal["unique", "exact", "near", "no_text"]

NO_POSITION = -1
"""Value of the columns `leader` and `apart_from` if no kept text is named."""

NO_TEXT = int(Kind.UNREADABLE)
"""Value of the column `kind` for a row without text."""

_STAGES: dict[int, Stage] = {
    Kind.UNIQUE: "unique",
    Kind.EXACT: "exact",
    Kind.NEAR: "near",
    NO_TEXT: "no_text",
}
_SHOWN_ROWS = 12


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict on one text.

    position: number of the text, counted from 0 over all calls of this sieve, also across save and load (the
        commands count rows from 1); -1 for a text of `Sieve.query`, which is in no order
    kept: False for a duplicate
    stage: `unique`, `exact` (equal except for what the profile removes), `near`, or `no_text` (the row has no
        text; it is kept and compared with nothing)
    leader: position of the kept text that this text repeats; None for kept rows, and if `notes` has
        `unconfirmed`
    leader_id: the leader's id as the caller passed it; None if there is no leader or it has no id
    similarity: 0 to 1, rounded down to four decimals; 1.0 for exact duplicates; None for kept rows and for
        near duplicates of the methods hamming and signatures
    distance: number of differing bits of a near duplicate of the hamming method, else None
    shared: number of hashes in common of a near duplicate of the signatures method, else None
    notes: `estimated`: the similarity is an estimate, because a text has more than 512 characters;
        `unconfirmed`: only the Bloom filter reports that an older text was equal (see `error_rate`); `late`:
        the text is kept, but its time is too old for it to become a leader; `no_features`: the method decides
        by features, and the text has none or too few; `cut_short`: very many kept texts share its hashes, and
        the search ended before the oldest of them
    reason: why this text was kept although it is similar enough to a kept text: `number`, `opposite`, … (see
        docs/DIFFERENCES.md), `card`, `same id`; None if there was no such kept text
    apart_from: position of that kept text, else None
    apart_from_id: its id as the caller passed it
    says, apart_from_says: the words in which this text and that kept text differ, if one place decides
    """

    position: int
    kept: bool
    stage: Stage
    leader: int | None = None
    leader_id: str | int | None = None
    similarity: float | None = None
    distance: int | None = None
    shared: int | None = None
    notes: tuple[str, ...] = ()
    reason: str | None = None
    apart_from: int | None = None
    apart_from_id: str | int | None = None
    says: str | None = None
    apart_from_says: str | None = None

    @property
    def cluster(self) -> int | None:
        """Position of the leader; of a kept text its own; None for a dropped text without a leader."""
        return self.position if self.kept else self.leader

    @property
    def estimated(self) -> bool:
        """Whether the similarity is an estimate."""
        return "estimated" in self.notes

    @property
    def unconfirmed(self) -> bool:
        """Whether only the Bloom filter reports that the text is a duplicate."""
        return "unconfirmed" in self.notes


@dataclass(eq=False, repr=False, slots=True)
class Verdicts(Sequence[Verdict]):
    """Verdicts on n texts. The attributes are columns; iterating or indexing gives `Verdict` rows.

    A missing value is None in a row; in a column it is -1, NaN or the empty text.

    position: int64[n], counted from 0 over all calls
    kept: bool[n]; False for duplicates. Rows without text are kept.
    kind: uint8[n]: 0 unique, 1 exact, 2 near, 4 no text; `stage` gives them as words
    leader: int64[n], position of the leader, or -1
    leader_id: object[n], id of the leader, or None
    similarity: float64[n], 1.0 for exact duplicates, NaN for kept rows and for the hamming method
    distance: int16[n], number of differing bits (hamming method), or -1
    shared: int16[n], number of hashes in common with the leader (signatures method), or -1
    flags: uint8[n], `Flag` bits; `Verdict.notes` gives them as words
    reason_code: uint8[n], `Rule`, 0 for none; `reason` gives them as words
    apart_from: int64[n], position of the similar kept text despite which this text was kept, or -1
    apart_from_id: object[n], id of that text, or None
    says, apart_from_says: object[n], the words in which the two differ, if one place decides, or None

    With pyarrow, verdicts are an Arrow stream of `columns()` with nulls for missing values: for
    `pyarrow.table(verdicts)`, `pandas.DataFrame.from_arrow(verdicts)` (from pandas 3 on), queries of DuckDB.

    >>> from twinsieve import Sieve
    >>> verdicts = Sieve().judge(["The bridge is closed until Friday.", "the bridge is closed until friday"])
    >>> verdicts.stage.tolist(), verdicts.kept.tolist()
    (['unique', 'exact'], [True, False])
    >>> verdicts[1].leader, verdicts[1].similarity, verdicts[1].leader_id
    (0, 1.0, None)
    """

    position: NDArray[np.int64]
    kind: NDArray[np.uint8]
    leader: NDArray[np.int64]
    leader_id: NDArray[np.object_]
    similarity: NDArray[np.float64]
    distance: NDArray[np.int16]
    shared: NDArray[np.int16]
    flags: NDArray[np.uint8]
    reason_code: NDArray[np.uint8]
    apart_from: NDArray[np.int64]
    apart_from_id: NDArray[np.object_]
    says: NDArray[np.object_]
    apart_from_says: NDArray[np.object_]
    kept: NDArray[np.bool_] = field(init=False)

    def __post_init__(self) -> None:
        self.kept = (self.kind == Kind.UNIQUE) | (self.kind == Kind.UNREADABLE)

    @property
    def stage(self) -> NDArray[np.str_]:
        """str[n]: `unique`, `exact`, `near` or `no_text`."""
        words = np.array([_STAGES.get(kind, "") for kind in range(max(_STAGES) + 1)])
        return words[self.kind]

    @property
    def reason(self) -> NDArray[np.str_]:
        """str[n]: why a text was kept although it is similar enough to a kept text, in words; else empty."""
        words = np.array([_word(code) or "" for code in range(RULE_NUMBERS)])
        return words[self.reason_code]

    @property
    def clusters(self) -> NDArray[np.int64]:
        """int64[n]: for a dropped text the position of its leader, for a kept text its own; -1 if no leader
        is known. Texts with the same number are one cluster."""
        clusters: NDArray[np.int64] = np.where(self.kept, self.position, self.leader)
        return clusters

    def columns(self) -> dict[str, NDArray[Any]]:
        """The columns by name, as NumPy arrays: `pandas.DataFrame(verdicts.columns())`, polars likewise."""
        return {
            "position": self.position,
            "kept": self.kept,
            "stage": self.stage,
            "leader": self.leader,
            "leader_id": self.leader_id,
            "cluster": self.clusters,
            "similarity": self.similarity,
            "distance": self.distance,
            "shared": self.shared,
            "estimated": self._has(Flag.ESTIMATED),
            "unconfirmed": self._has(Flag.UNCONFIRMED),
            "reason": self.reason,
            "apart_from": self.apart_from,
            "apart_from_id": self.apart_from_id,
            "says": self.says,
            "apart_from_says": self.apart_from_says,
        }

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """`columns()` as an Arrow stream; missing values are null. raises: UsageError without pyarrow, or if
        ids are numbers and texts"""
        try:
            arrow: Any = import_module("pyarrow")
        except ImportError as error:
            raise UsageError("Arrow needs pyarrow; install it, or take columns()") from error
        try:
            table = arrow.table(
                {name: _nulled(arrow, name, column) for name, column in self.columns().items()}
            )
        except (TypeError, ValueError) as error:
            raise UsageError(f"ids are of several types, a column of Arrow is of one ({error})") from error
        return table.__arrow_c_stream__(requested_schema)

    def to_dict(self) -> dict[str, list[Any]]:
        """`columns()` as lists, with the same values: `pyarrow.table(verdicts.to_dict())`."""
        return {name: column.tolist() for name, column in self.columns().items()}

    def __len__(self) -> int:
        return len(self.kind)

    @overload
    def __getitem__(self, row: int) -> Verdict: ...

    @overload
    def __getitem__(self, row: slice) -> Verdicts: ...

    def __getitem__(self, row: int | slice) -> Verdict | Verdicts:
        if isinstance(row, slice):
            return Verdicts(*(getattr(self, name)[row] for name in _COLUMNS))
        leader, similarity, distance, shared = (
            column[row].item() for column in (self.leader, self.similarity, self.distance, self.shared)
        )
        return Verdict(
            position=int(self.position[row]),
            kept=bool(self.kept[row]),
            stage=_STAGES[int(self.kind[row])],
            leader=None if leader < 0 else leader,
            leader_id=self.leader_id[row],
            similarity=None if similarity != similarity else similarity,
            distance=None if distance < 0 else distance,
            shared=None if shared < 0 else shared,
            notes=_notes(int(self.flags[row])),
            reason=_word(int(self.reason_code[row])),
            apart_from=None if self.apart_from[row] < 0 else int(self.apart_from[row]),
            apart_from_id=self.apart_from_id[row],
            says=self.says[row],
            apart_from_says=self.apart_from_says[row],
        )

    def __iter__(self) -> Iterator[Verdict]:
        return (self[row] for row in range(len(self)))

    def __repr__(self) -> str:
        lines = [self._summary()]
        rows = [_cells(verdict) for verdict in self[:_SHOWN_ROWS]]
        if rows:
            rows.insert(0, _HEADINGS)
            widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
            lines += [
                "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
                for row in rows
            ]
        if len(self) > _SHOWN_ROWS:
            lines.append(f"… {len(self) - _SHOWN_ROWS:,} more")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """The first rows as a table, for notebooks."""
        rows = [_cells(verdict) for verdict in self[:_SHOWN_ROWS]]
        head = "".join(f"<th>{name}</th>" for name in _HEADINGS)
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
        )
        return f"<p>{html.escape(self._summary())}</p><table><tr>{head}</tr>{body}</table>"

    def _summary(self) -> str:
        counts = np.bincount(self.kind, minlength=max(_STAGES) + 1)
        parts = [f"{counts[kind]:,} {stage}" for kind, stage in _STAGES.items() if counts[kind] or kind < 3]
        return f"Verdicts: {len(self):,} texts, {int(self.kept.sum()):,} kept ({', '.join(parts)})"

    def _has(self, flag: Flag) -> NDArray[np.bool_]:
        has: NDArray[np.bool_] = (self.flags & flag) != 0
        return has


def blank_columns(n: int, first: int) -> dict[str, NDArray[Any]]:
    """The columns of `Verdicts` on n rows without text, the first of which has the position `first`."""
    return {
        "position": np.arange(first, first + n, dtype=np.int64),
        "kind": np.full(n, NO_TEXT, np.uint8),
        "leader": np.full(n, NO_POSITION, np.int64),
        "leader_id": np.full(n, None, object),
        "similarity": np.full(n, np.nan),
        "distance": np.full(n, -1, np.int16),
        "shared": np.full(n, -1, np.int16),
        "flags": np.zeros(n, np.uint8),
        "reason_code": np.zeros(n, np.uint8),
        "apart_from": np.full(n, NO_POSITION, np.int64),
        "apart_from_id": np.full(n, None, object),
        "says": np.full(n, None, object),
        "apart_from_says": np.full(n, None, object),
    }


def joined(parts: Sequence[Verdicts]) -> Verdicts:
    """The verdicts of several calls as those of one."""
    return Verdicts(*(np.concatenate([getattr(part, name) for part in parts]) for name in _COLUMNS))


_COLUMNS = [column.name for column in fields(Verdicts) if column.init]
_HEADINGS = ["position", "kept", "stage", "leader", "leader_id", "similarity"]


def _cells(verdict: Verdict) -> list[str]:
    alike = ""
    if verdict.similarity is not None:
        alike = f"{'~' if verdict.estimated else ''}{verdict.similarity:.4f}"
    if verdict.distance is not None:
        alike = f"{verdict.distance} bits"
    if verdict.shared is not None:
        alike = f"{verdict.shared} shared"
    leader_id = "" if verdict.leader_id is None else str(verdict.leader_id)
    if len(leader_id) > 24:
        leader_id = leader_id[:23] + "…"
    return [
        str(verdict.position),
        "yes" if verdict.kept else "no",
        verdict.stage,
        "" if verdict.leader is None else str(verdict.leader),
        leader_id.encode("unicode_escape").decode() if not leader_id.isprintable() else leader_id,
        alike,
    ]


def _nulled(arrow: Any, name: str, column: NDArray[Any]) -> Any:
    """The column for Arrow, in which -1, NaN, None and the empty text are null."""
    kind = column.dtype.kind
    if name.endswith("_id"):
        return arrow.array(column.tolist())
    if kind in "OU":
        return arrow.array([value or None for value in column.tolist()], arrow.string())
    return arrow.array(column, mask=column < 0 if kind == "i" else None, from_pandas=True)


def _word(reason: int) -> str | None:
    return Rule(reason).words if reason else None


def _notes(flags: int) -> tuple[str, ...]:
    return tuple(flag.name.lower() for flag in Flag(flags) if flag.name)
