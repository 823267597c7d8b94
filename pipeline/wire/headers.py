"""The headers that a worker adds to what comes out, and what those of a duplicate say (docs/WIRE.md)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, cast

from twinsieve.pipeline.basics.dead_letter_reasons import DeadLetterReason, reason_named
from twinsieve.pipeline.broker.input_position import InputPosition, read_position
from twinsieve.pipeline.broker.records import Header

ORIGIN = "twinsieve-origin"
REASON = "twinsieve-reason"
REFUSAL = "twinsieve-refusal"
STAGE = "twinsieve-stage"
LEADER = "twinsieve-leader"
SIMILARITY = "twinsieve-similarity"
DISTANCE = "twinsieve-distance"
SHARED = "twinsieve-shared"
NOTE = "twinsieve-note"
KEPT_APART = "twinsieve-kept-apart"

_MEASURES = ((DISTANCE, "distance"), (SHARED, "shared"), (SIMILARITY, "similarity"))
_MAX_DIGITS = 12


@dataclass(frozen=True, slots=True)
class DuplicateHeaders:
    """What the headers of a duplicate say.

    origin: the dropped message; leader: None if only the Bloom filter knows the earlier copy, or if the
        leader's topic has no name any more
    measure, likeness: name of the measure of likeness and its value, as `likeness_of` gives them
    flags: as in the header twinsieve-note
    """

    origin: InputPosition
    stage: Literal["exact", "near"]
    leader: InputPosition | None
    measure: str
    likeness: float
    flags: tuple[str, ...]


def text_of(headers: Sequence[Header], name: str) -> str | None:
    """The value of the last header of this name; None if there is none, or if it is not UTF-8.

    >>> text_of([("twinsieve-reason", b"empty")], "twinsieve-reason")
    'empty'
    """
    value = next((value for key, value in reversed(headers) if key == name), None)
    try:
        return value.decode() if value is not None else None
    except UnicodeDecodeError:
        return None


def origin_of(headers: Sequence[Header]) -> InputPosition | None:
    """The position of the input message that came out as this one; None if no header says so."""
    return read_position(text_of(headers, ORIGIN) or "")


def reason_of(headers: Sequence[Header]) -> DeadLetterReason | None:
    """Why a message became a dead letter; None if no header says so, or if it says what no worker writes.

    >>> reason_of([("twinsieve-reason", b"empty")]), reason_of([("twinsieve-reason", b"no such reason")])
    (<DeadLetterReason.EMPTY: 'empty'>, None)
    """
    return reason_named(text_of(headers, REASON) or "")


def read_duplicate(headers: Sequence[Header]) -> DuplicateHeaders | None:
    """What the headers say; None if they are not those of a duplicate.

    >>> headers = [("twinsieve-stage", b"exact"), ("twinsieve-origin", b"posts[0]@17")]
    >>> read_duplicate(headers).likeness, read_duplicate(headers[:1])
    (1.0, None)
    """
    origin, stage = origin_of(headers), text_of(headers, STAGE)
    if origin is None or stage not in ("exact", "near"):
        return None
    measure, likeness = ("similarity", 1.0) if stage == "exact" else ("similarity", 0.0)
    if stage == "near":
        for name, measured in _MEASURES:
            value = _number(text_of(headers, name))
            if value is not None:
                measure, likeness = measured, value
                break
    note = text_of(headers, NOTE)
    return DuplicateHeaders(
        origin,
        cast(Literal["exact", "near"], stage),
        read_position(text_of(headers, LEADER) or ""),
        measure,
        likeness,
        tuple(note.split(",")) if note else (),
    )


def _number(text: str | None) -> float | None:
    """The number that is written with digits and at most one dot."""
    if text is None or len(text) > _MAX_DIGITS or not text.isascii():
        return None
    whole, _, rest = text.partition(".")
    return float(text) if whole.isdigit() and (not rest or rest.isdigit()) else None
