"""Interprets values of a decoded message: times, ids, and values as unambiguous bytes for keys."""

from __future__ import annotations

from typing import Any

from twinsieve.pipeline.messages.paths import MISSING
from twinsieve.pipeline.messages.spelling import Written, same_value, to_json
from twinsieve.pipeline.messages.written_times import written_ms
from twinsieve.pipeline.settings.values import moment_ms
from twinsieve.stages.contract import NO_TIME
from twinsieve.stages.fingerprint.digest import text_key

_MAX_LEVELS = 200
"""Deepest nesting of a value. orjson reads 1,024 levels but writes only 254, and Python's own JSON writer
writes fewer levels than its recursion limit."""


def is_deep(value: object) -> bool:
    """Whether lists and objects are nested too deeply to be written as JSON again.

    >>> import json
    >>> is_deep({"a": [1]}), is_deep(json.loads("[" * 300 + "]" * 300))
    (False, True)
    """
    level = [value]
    for _ in range(_MAX_LEVELS):
        level = [
            inner
            for outer in level
            if isinstance(outer, (list, dict))
            for inner in (outer.values() if isinstance(outer, dict) else outer)
        ]
        if not level:
            return False
    return True


def time_ms(value: object) -> int | None:
    """The time in ms, as `moment_ms` or `written_ms` read it; NO_TIME if missing, null or empty; else None.

    >>> time_ms("2020-02-12"), time_ms("2020年2月12日"), time_ms(""), time_ms("soon")
    (1581465600000, 1581465600000, -9223372036854775808, None)
    """
    if value is MISSING or value is None or value == "":
        return NO_TIME
    time = moment_ms(value)
    return written_ms(value) if time is None and isinstance(value, str) else time


def text_of(value: object) -> object:
    """The text of a list of pieces, joined; any other value as it is.

    A list of pieces has strings and objects with a string in `text`, as Telegram exports a text with a link
    or bold words. A list of strings alone, or of objects without a `type`, holds several texts.

    >>> text_of(["see ", {"type": "link", "text": "a.org"}, "!"]), text_of(["a", "b"])
    ('see a.org!', ['a', 'b'])
    """
    if not isinstance(value, list):
        return value
    objects = [piece for piece in value if isinstance(piece, dict)]
    strings: list[Any] = [piece.get("text") if isinstance(piece, dict) else piece for piece in value]
    is_text = len(objects) < len(value) or all(isinstance(piece.get("type"), str) for piece in objects)
    if objects and is_text and all(isinstance(string, str) for string in strings):
        return "".join(strings)
    return value


def as_bytes(value: object) -> bytes:
    """The value as bytes that begin with its type and length.

    So different values, or different sequences of values joined together, never give the same bytes.
    Numbers are different if their spelling is, strings if their characters are.

    >>> as_bytes("1") == as_bytes(1), as_bytes(Written(b"1.50")) == as_bytes(Written(b"1.5"))
    (False, False)
    """
    if value is MISSING or value is None:
        return b"0:"
    if isinstance(value, str):
        return text_key(value)
    content = same_value(value) if isinstance(value, Written) else to_json(value, sort_keys=True)
    return b"j%d:%b" % (len(content), content)


def id_text(value: object) -> str | None:
    """An id as text; None if it is missing, null or empty. The number 7 and the text "7" are the same id."""
    if value is MISSING or value is None or value == "":
        return None
    if isinstance(value, (str, Written)):
        return str(value)
    return to_json(value, sort_keys=True).decode()
