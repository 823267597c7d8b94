"""Decodes raw messages to text or JSON documents, or gives the reason why that is not possible."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import orjson

from twinsieve.pipeline.basics.dead_letter_reasons import DeadLetterReason, UnreadableError
from twinsieve.pipeline.messages.spelling import without_escapes
from twinsieve.pipeline.settings.values import size_text

_Row = TypeVar("_Row")
_T = TypeVar("_T")

_MAX_LEVELS = 500
"""Deepest nesting of JSON that Python's own reader may decode. How deep that reader can go depends on the
Python version and the depth of the call stack; this limit makes the result the same everywhere."""
_TEXT = re.compile(rb'"[^"]*"')
_BRACKET = re.compile(rb"[\[\]{}]")


class Unreadable(NamedTuple):
    """A message that cannot be judged.

    row: its index among the rows that were read together
    reason: one of a fixed list; detail: what is wrong with this message, for the user
    no_text: True if the only problem is that the text is null or missing
    """

    row: int
    reason: DeadLetterReason
    detail: str
    no_text: bool = False


def decode_rows(
    rows: Sequence[_Row], decode: Callable[[_Row], _T], bad: dict[int, Unreadable]
) -> list[_T | None]:
    """The result of `decode` for each row, None for unreadable rows.

    decode: may raise UnreadableError for a row, which is then added to `bad`
    bad: rows known to be unreadable, by index; they are not decoded
    """
    contents: list[_T | None] = [None] * len(rows)
    for row, content in enumerate(rows):
        if row not in bad:
            try:
                contents[row] = decode(content)
            except UnreadableError as error:
                bad[row] = Unreadable(
                    row, error.reason, error.detail, no_text=error.reason is DeadLetterReason.NULL
                )
    return contents


def too_large(row: int, size: int, limit: int, where: str = "") -> Unreadable:
    """The entry for a row that exceeds the limit.

    size: bytes of the row, or of one of its columns; where: names that column in the text, "" for the row

    >>> too_large(7, 6_000_021, 4 << 20).detail
    'has 6,000,021 bytes, more than the 4MiB of input.max_bytes; raise it, as with --set input.max_bytes=8MiB'
    """
    enough = size_text(1 << max(size - 1, 1).bit_length())
    more = f"has {size:,} bytes{where}, more than the {size_text(limit)} of input.max_bytes"
    return Unreadable(
        row, DeadLetterReason.TOO_LARGE, f"{more}; raise it, as with --set input.max_bytes={enough}"
    )


def decode_text(message: bytes | None) -> str:
    """The message as text. raises: UnreadableError"""
    if message is None:
        raise UnreadableError(DeadLetterReason.NULL, "has no value")
    if not message.strip():
        raise UnreadableError(DeadLetterReason.EMPTY, "is empty")
    try:
        return message.decode()
    except UnicodeDecodeError as error:
        raise UnreadableError(DeadLetterReason.NOT_UTF8, f"is not UTF-8 at byte {error.start}") from error


def decode_json(message: bytes | None) -> Any:
    """The message as a decoded JSON document.

    Also accepts some JSON that orjson refuses: escaped lone surrogates, and NaN, Infinity and -Infinity,
    which Python's own JSON writer produces.
    raises: UnreadableError
    """
    text = decode_text(message)
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        refused = error
    try:
        _refuse_deep(message or b"")
        return json.loads(text, parse_int=_as_orjson)
    except (ValueError, RecursionError):
        raise UnreadableError(
            DeadLetterReason.INVALID_JSON, f"is not JSON: {refused.msg} at character {refused.pos}"
        ) from refused


def _refuse_deep(message: bytes) -> None:
    """Refuse JSON that is nested too deeply for some versions of Python. raises: ValueError"""
    if message.count(b"[") + message.count(b"{") <= _MAX_LEVELS:
        return
    depth = 0
    for bracket in _BRACKET.findall(_TEXT.sub(b"", without_escapes(message))):
        depth += 1 if bracket in b"[{" else -1
        if depth > _MAX_LEVELS:
            raise ValueError


def _as_orjson(digits: str) -> int | float:
    """An integer from its digits; a float from 20 characters on, as orjson decodes integers beyond 64 bits.

    Python itself refuses to convert integers of very many digits.
    """
    return int(digits) if len(digits) < 20 else float(digits)
