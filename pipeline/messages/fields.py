"""Values of one decoded message: times, ids, and values as bytes that cannot be mistaken for others."""

from __future__ import annotations

from twinsieve.pipeline.messages.paths import MISSING
from twinsieve.pipeline.messages.spelling import Written, same_value, to_json
from twinsieve.pipeline.settings.values import moment_ms
from twinsieve.stages.contract import NO_TIME

_MAX_LEVELS = 200
"""orjson reads 1,024 levels but writes 254, and Python's own writer fewer than its recursion limit."""


def is_deep(value: object) -> bool:
    """Whether lists and objects stand in each other deeper than is written out again.

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
    """The time that `moment_ms` reads; a field that is missing, null or empty is NO_TIME, None any other.

    >>> time_ms("2020-02-12"), time_ms(""), time_ms("soon")
    (1581465600000, -9223372036854775808, None)
    """
    if value is MISSING or value is None or value == "":
        return NO_TIME
    return moment_ms(value)


def as_bytes(value: object) -> bytes:
    """The value with its kind and length in front: no two different (lists of) values give the same bytes.

    Numbers differ when their spellings do, strings when their characters do.

    >>> as_bytes("1") == as_bytes(1), as_bytes(Written(b"1.50")) == as_bytes(Written(b"1.5"))
    (False, False)
    """
    if value is MISSING or value is None:
        return b"0:"
    if isinstance(value, str):
        content = value.encode("utf-8", "surrogatepass")
        return b"s%d:%b" % (len(content), content)
    content = same_value(value) if isinstance(value, Written) else to_json(value, sort_keys=True)
    return b"j%d:%b" % (len(content), content)


def id_text(value: object) -> str | None:
    """An id as text, None where there is none; the number 7 and the text "7" are one id."""
    if value is MISSING or value is None or value == "":
        return None
    if isinstance(value, (str, Written)):
        return str(value)
    return to_json(value, sort_keys=True).decode()
