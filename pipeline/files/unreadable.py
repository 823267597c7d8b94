"""Messages about rows that could not be read; a run with such rows always prints one."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from twinsieve.pipeline.files.encoding import likely_encodings
from twinsieve.pipeline.files.messages import RowChunk
from twinsieve.pipeline.messages.decode import Unreadable, UnreadableError, decode_json
from twinsieve.pipeline.messages.paths import name_of
from twinsieve.pipeline.messages.unseen import but_these
from twinsieve.stages.dead_letter_reasons import Reason

_ADVICE = {
    Reason.MISSING_FIELD: "name the right one, as with --text-field",
    Reason.NOT_TEXT: "name another one with --text-field",
    Reason.NOT_UTF8: "say which it is with --encoding, or turn it into UTF-8 first",
    Reason.INVALID_JSON: "if it holds no JSON lines, say what with --format",
    Reason.NOT_AN_OBJECT: "if it holds plain lines, say --format text",
    Reason.INVALID_CSV: "if it holds no CSV, say what with --format",
    Reason.TOO_LARGE: "raise input.max_bytes",
}
"""What to do when it is every row that has this reason."""


_OF_JSON = (Reason.INVALID_JSON, Reason.NOT_AN_OBJECT, Reason.TOO_LARGE)


@dataclass(frozen=True, slots=True)
class FirstUnreadable:
    """The first row that could not be read: where it stands and why, its fields, where they are known, and
    what to do where its bytes tell that, else None."""

    where: str
    bad: Unreadable
    fields: tuple[str, ...]
    advice: str | None

    def __str__(self) -> str:
        return f"{self.where} {self.bad.detail}"


def first_unreadable(chunk: RowChunk) -> FirstUnreadable | None:
    """The first unreadable row of a chunk, or None."""
    if not chunk.columns.unreadable:
        return None
    bad = chunk.columns.unreadable[0]
    where = f"{chunk.source}:{chunk.line_of(bad.row)}"
    return FirstUnreadable(where, bad, _fields(chunk, bad), _advice(chunk, bad))


def unreadable_line(reasons: Counter[str], rows: int, first: FirstUnreadable, dead_letter: str | None) -> str:
    """One line for a run that kept or dropped other rows."""
    why = ", ".join(f"{count:,} {reason}" for reason, count in reasons.most_common())
    where = f"they are in {dead_letter}" if dead_letter is not None else "see all with --dead-letter FILE"
    return (
        f"unreadable: {reasons.total():,} of {rows:,} rows ({why}); "
        f"the first, {first.where}, {first.bad.detail}{f'; {first.advice}' if first.advice else ''}; {where}"
    )


def strict_line(first: FirstUnreadable) -> str:
    """One line for a run that no unreadable row may have."""
    return (
        f"{first}, and --strict allows no unreadable row; mend it, "
        "or see all with --dead-letter FILE and without --strict"
    )


def all_unreadable_line(reasons: Counter[str], first: FirstUnreadable) -> str:
    """One line for a run that has nothing else to show."""
    count = reasons.total()
    rows = "the only row" if count == 1 else f"all {count:,} rows"
    why = ", ".join(reason for reason, _ in reasons.most_common())
    said = f"{rows} could not be read ({why}): {first}{but_these(first.fields)}"
    advice = first.advice or _ADVICE.get(first.bad.reason)
    if first.bad.setting == "exact.fields":
        advice = "name fields in exact.fields that rows have"
    return f"{said}; {advice}" if advice else said


def _advice(chunk: RowChunk, bad: Unreadable) -> str | None:
    """What to do where the row's bytes tell: JSON that may be an array or span lines, another encoding."""
    if bad.reason is Reason.NOT_UTF8 and chunk.batch is None:
        likely = likely_encodings(chunk.raw(bad.row)[0])
        return f"if it is {' or '.join(likely)}, say so, as with --encoding {likely[0]}" if likely else None
    if bad.reason not in _OF_JSON or chunk.rows.lines_of is not None:
        return None
    raw = chunk.raw(bad.row)[0].strip()
    if raw.startswith(b"["):
        return "if it is a JSON array, say --format json"
    return "if its documents span lines, say --format json" if raw == b"{" else None


def _fields(chunk: RowChunk, bad: Unreadable) -> tuple[str, ...]:
    """Names in the row itself, as settings spell them; those of a CSV are checked with its header."""
    if bad.reason is not Reason.MISSING_FIELD:
        return ()
    try:
        document = decode_json(chunk.raw(bad.row)[0])
    except UnreadableError:
        return ()
    return tuple(name_of((name,)) for name in document) if isinstance(document, dict) else ()
