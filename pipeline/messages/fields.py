"""Interprets values of a decoded message: times, ids, and values as unambiguous bytes for keys."""

from __future__ import annotations

from twinsieve.pipeline.messages.paths import MISSING
from twinsieve.pipeline.messages.spelling import Written, same_value, to_json
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
    """The time in ms, as `moment_ms` reads it; NO_TIME if missing, null or empty; None if it is not a time.

    >>> time_ms("2020-02-12"), time_ms(""), time_ms("soon")
    (1581465600000, -9223372036854775808, None)
    """
    if value is MISSING or value is None or value == "":
        return NO_TIME
    return moment_ms(value)


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
