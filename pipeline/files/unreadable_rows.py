"""Texts for the user about rows that could not be read; a run with unreadable rows always prints one."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from math import ceil
from typing import NamedTuple

from twinsieve.pipeline.basics.dead_letter_reasons import DeadLetterReason, UnreadableError
from twinsieve.pipeline.files.format import RowChunk
from twinsieve.pipeline.messages.decode import Unreadable, decode_json
from twinsieve.pipeline.messages.paths import name_of
from twinsieve.pipeline.messages.unseen import ENOUGH_ROWS, TEXT, but_these

_ADVICE = {
    DeadLetterReason.MISSING_FIELD: "name the right one, as with --text-field",
    DeadLetterReason.EMPTY_KEY: "name other fields in exact.fields, or set exact.empty_key to keep",
    DeadLetterReason.NOT_TEXT: "name another one with --text-field",
    DeadLetterReason.NOT_UTF8: "name it with --encoding, or turn it into UTF-8 first",
    DeadLetterReason.INVALID_JSON: "if it does not hold JSON lines, name the format with --format",
    DeadLetterReason.NOT_AN_OBJECT: "if it holds plain lines, add --format text",
    DeadLetterReason.INVALID_CSV: "if it does not hold CSV, name the format with --format",
}
"""Advice for a run in which every row is unreadable, by the reason of the first row."""


_NO_TEXTS = "if the rows have no text, add --set input.expect_text=false"


ALLOWED_SHARE = 0.01
"""Share of the rows that may be unreadable without --max-unreadable, if such rows are written nowhere."""


class FirstUnreadable(NamedTuple):
    """The first row that could not be read, or that has no text.

    where: name of the input and line number; bad: the reason
    fields: names of the row's fields, empty if they are not known
    advice: what to do, if the row's bytes show it; else None
    """

    where: str
    bad: Unreadable
    fields: tuple[str, ...]
    advice: str | None

    def __str__(self) -> str:
        return f"{self.where} {self.bad.detail}"


def first_unreadable(chunk: RowChunk) -> FirstUnreadable | None:
    """The first unreadable row of a chunk, or None."""
    return _first(chunk, chunk.columns.unreadable)


def first_without_text(chunk: RowChunk) -> FirstUnreadable | None:
    """The first row of a chunk that is kept although it has no text, or None."""
    return _first(chunk, chunk.columns.no_text)


def _first(chunk: RowChunk, rows: list[Unreadable]) -> FirstUnreadable | None:
    if not rows:
        return None
    bad = rows[0]
    where = chunk.place_of(bad.row)
    return FirstUnreadable(where, bad, _fields(chunk, bad), chunk.rows.advice(bad))


@dataclass(slots=True)
class TextField:
    """Checks whether any row has the text field; if none has, the user probably meant another field.

    is_expected: whether it is an error that no row has it
    number: number of the input that was checked last, from 0
    """

    is_expected: bool
    number: int = 0
    _of_input: _Rows = field(default_factory=lambda: _Rows())
    _of_all: _Rows = field(default_factory=lambda: _Rows())
    _meant: dict[str, None] = field(default_factory=dict)

    def missed(self, number: int | None) -> str | None:
        """The error text if no row has the text field, else None. Call it before each input and at the end.

        number: the input that begins, None at the end
        A single input without the field is an error only if it has ENOUGH_ROWS rows or more; all inputs
        together are checked at the end.
        """
        if number == self.number or not self.is_expected:
            return None
        if number is None and self._of_all.is_missed:
            return self._line(self._of_all)
        if self._of_input.is_missed and self._of_input.count >= ENOUGH_ROWS:
            return self._line(self._of_input)
        self.number, self._of_input = number or 0, _Rows()
        return None

    def look(self, chunk: RowChunk) -> None:
        """Check the next rows of the current input."""
        self._of_input.add(chunk)
        self._of_all.add(chunk)
        unseen = chunk.columns.unseen
        self._meant |= {each.advice: None for each in unseen if each.setting == TEXT and each.advice}

    def _line(self, rows: _Rows) -> str:
        none = "the only row has no text" if rows.count == 1 else f"none of {rows.count:,} rows has a text"
        fields = but_these(rows.first.fields) if rows.first is not None else ""
        advice = "".join(f"{question} " for question in self._meant)
        return f"{none}: {rows.first}{fields}; {advice}{_ADVICE[DeadLetterReason.MISSING_FIELD]}; {_NO_TEXTS}"


@dataclass(slots=True)
class _Rows:
    """Summary of rows that were checked.

    count: number of rows; first: the first row without a text
    has_field: whether any row has the text field, even with the value null
    """

    count: int = 0
    first: FirstUnreadable | None = None
    has_field: bool = False

    @property
    def is_missed(self) -> bool:
        return self.first is not None and not self.has_field

    def add(self, chunk: RowChunk) -> None:
        columns = chunk.columns
        self.count += len(columns) + len(columns.no_text) + len(columns.unreadable)
        is_null = any(bad.reason is not DeadLetterReason.MISSING_FIELD for bad in columns.no_text)
        self.has_field |= bool(len(columns)) or is_null
        self.first = self.first or first_without_text(chunk)


def unreadable_line(reasons: Counter[str], rows: int, first: FirstUnreadable, dead_letter: str | None) -> str:
    """The line about unreadable rows, for a run that does not fail because of them.

    reasons: number of unreadable rows by reason; rows: number of all rows
    dead_letter: name of the file with the unreadable rows, None without one
    """
    where = f"they are in {dead_letter}" if dead_letter is not None else "see all with --dead-letter FILE"
    return f"{_counted(reasons, rows, first)}; {where}"


def _counted(reasons: Counter[str], rows: int, first: FirstUnreadable) -> str:
    why = ", ".join(f"{count:,} {reason}" for reason, count in reasons.most_common())
    return (
        f"unreadable: {reasons.total():,} of {rows:,} rows ({why}); "
        f"the first, {first.where}, {first.bad.detail}{f'; {first.advice}' if first.advice else ''}"
    )


def too_many_line(reasons: Counter[str], rows: int, first: FirstUnreadable, limit: float) -> str | None:
    """The error line for a run with more unreadable rows than allowed; None if there are not too many.

    limit: allowed share of unreadable rows, 0 to 1
    """
    count = reasons.total()
    if count <= limit * rows:
        return None
    enough = ceil(count / rows * 100) / 100
    return (
        f"{_counted(reasons, rows, first)}; more than --max-unreadable {limit:g} allows; "
        f"see all with --dead-letter FILE, or allow more: --max-unreadable {enough:g}"
    )


def no_text_line(first: FirstUnreadable) -> str:
    """The error line for a row without a text, if the settings require a text in every row."""
    return f"{first}, and input.null_text: fail allows no row without a text; mend it, or set it to pass"


def strict_line(first: FirstUnreadable) -> str:
    """The error line for an unreadable row in a run with --strict."""
    return (
        f"{first}, and --strict allows no unreadable row; mend it, "
        "or see all with --dead-letter FILE and without --strict"
    )


def all_unreadable_line(reasons: Counter[str], first: FirstUnreadable) -> str:
    """The error line for a run that could not read any row."""
    count = reasons.total()
    rows = "the only row" if count == 1 else f"all {count:,} rows"
    why = ", ".join(reason for reason, _ in reasons.most_common())
    problem = f"{rows} could not be read ({why}): {first}{but_these(first.fields)}"
    advice = first.advice or _ADVICE.get(first.bad.reason)
    return f"{problem}; {advice}" if advice else problem


def _fields(chunk: RowChunk, bad: Unreadable) -> tuple[str, ...]:
    """Names of the fields of a row with a missing field, as settings spell them; empty for other rows.

    For CSV the header was already checked, so no names are needed.
    """
    if bad.reason is not DeadLetterReason.MISSING_FIELD:
        return ()
    try:
        document = decode_json(chunk.rows.raw(bad.row)[0])
    except UnreadableError:
        return ()
    return tuple(name_of((name,)) for name in document) if isinstance(document, dict) else ()
