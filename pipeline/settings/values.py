"""Types of settings: how the text of a value is read.

The key's type decides how a value is read, never YAML's own rules. So `off`, `1e-6`, `1:30` and `010` have
the meaning that the key gives them, or are refused. File, environment and flags share the same readers.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import Annotated, Any, NamedTuple

from pydantic import BeforeValidator, Field

from twinsieve.stages.contract import MAX_PARTS, SIMILARITY_SCALE

_DURATIONS_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 7 * 86_400_000}
MAX_DURATION_MS = 10 * 365 * 86_400_000
_SIZES = {"B": 1, "kB": 1_000, "MB": 10**6, "GB": 10**9, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
_AMOUNT = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,6})?)\s?([A-Za-z]{1,3})")
PER_MILLE = 1000
MAX_SEGMENTS = 1_000
"""Most segments of a near window. Each sealed one takes a map and an open file of the process, and time for
every message."""
MEAN_CHARACTERS = 60
"""Mean characters of a body if nobody says it: those of microblog posts."""
_WHOLE = re.compile(r"-?(?:0|[1-9][0-9_]{0,25})")
_SECONDS_BELOW = 10**11
_MILLISECONDS_BELOW = 10**14
_TRUE = frozenset({"true", "on", "yes"})
_FALSE = frozenset({"false", "off", "no"})


def _with_unit(value: object, units: dict[str, int], kind: str, example: str) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    text = str(value)
    match = _AMOUNT.fullmatch(text)
    if match is None or match[2] not in units:
        known = ", ".join(units)
        raise ValueError(f"is {text!r}, not {kind}; write a number and a unit ({known}), as in {example}")
    amount = Decimal(match[1]) * units[match[2]]
    if amount != int(amount):
        raise ValueError(
            f"is {text!r}, which is finer than {next(iter(units))}; write a whole number of them"
        )
    return int(amount)


def read_duration_ms(value: object) -> int:
    """Milliseconds of `500ms`, `30s`, `5m`, `24h`, `7d`, `2w`; an int is taken as milliseconds.

    raises: ValueError, with a text to be written after the name of the key

    >>> read_duration_ms("1.5h")
    5400000
    """
    return _with_unit(value, _DURATIONS_MS, "a duration", "24h")


def duration_text(milliseconds: int) -> str:
    """The duration as written in settings, in the largest unit with a whole number; one day is 24h.

    >>> [duration_text(ms) for ms in (86_400_000, 7 * 86_400_000, 90_000, 1_500, 0)]
    ['24h', '7d', '90s', '1500ms', '0s']
    """
    for unit in ("d", "h", "m", "s"):
        whole, rest = divmod(milliseconds, _DURATIONS_MS[unit])
        if not rest and (whole > 1 or unit == "s"):
            return f"{whole}{unit}"
    return f"{milliseconds}ms"


def read_size_bytes(value: object) -> int:
    """Bytes of `512MiB`, `4kB`; an int is taken as bytes.

    raises: ValueError, with a text to be written after the name of the key

    >>> read_size_bytes("4MiB")
    4194304
    """
    return _with_unit(value, _SIZES, "a size", "512MiB")


def size_text(size_bytes: int) -> str:
    """The size as written in settings, in the largest binary unit with a whole number.

    >>> [size_text(size) for size in (4 << 20, 900 << 10, 1000, 1 << 30)]
    ['4MiB', '900KiB', '1000B', '1GiB']
    """
    for unit in ("GiB", "MiB", "KiB"):
        whole, rest = divmod(size_bytes, _SIZES[unit])
        if whole and not rest:
            return f"{whole}{unit}"
    return f"{size_bytes}B"


def _read_whole(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    text = str(value)
    if _WHOLE.fullmatch(text) is None or text.endswith("_"):
        raise ValueError(f"is {text!r}, not a whole number; write digits alone, as in 1000000 or 1_000_000")
    return int(text)


def _read_bool(value: object) -> bool:
    if isinstance(value, bool):
        return value
    text = str(value).lower()
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    raise ValueError(f"is {value!r}, which is neither true nor false")


def _read_ratio(value: object) -> float:
    try:
        number = float(str(value))
    except ValueError:
        raise ValueError(f"is {value!r}, which is not a number; write it as 0.000001 or 1e-6") from None
    if not 0.0 < number < 1.0:
        raise ValueError(f"is {value}; it lies between 0 and 1, both excluded")
    return number


def read_similarity(value: object) -> int:
    """The similarity `0.85` as an integer out of SIMILARITY_SCALE; an int is unchanged. raises: ValueError"""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    try:
        scaled = Decimal(str(value)) * SIMILARITY_SCALE
    except InvalidOperation:
        raise ValueError(f"is {value!r}, which is not a number; write it as 0.85") from None
    if not scaled.is_finite() or not SIMILARITY_SCALE // 2 <= scaled <= SIMILARITY_SCALE:
        raise ValueError(f"is {value}; it lies between 0.5 and 1 (0.85 is a good start)")
    if scaled != int(scaled):
        raise ValueError(f"is {value}; write four digits after the point at most")
    return int(scaled)


def _read_share(value: object) -> int:
    """The share `0.25` in per mille; an int is taken as per mille."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    try:
        scaled = Decimal(str(value)) * PER_MILLE
    except InvalidOperation:
        raise ValueError(f"is {value!r}, which is not a number; write it as 0.25") from None
    if not scaled.is_finite() or not 0 <= scaled <= PER_MILLE or scaled != int(scaled):
        raise ValueError(f"is {value}; it is a share from 0 to 1, with three digits after the point at most")
    return int(scaled)


def read_auto(value: object) -> int:
    """The whole number, or 0 for `auto`."""
    return 0 if value == "auto" else _read_whole(value)


def _read_auto_duration_ms(value: object) -> int:
    """The duration in ms, or 0 for `auto`."""
    if value == "auto":
        return 0
    milliseconds = read_duration_ms(value)
    if not milliseconds and not isinstance(value, int):
        raise ValueError(f"is {value!r}; write auto, or a time above zero")
    return milliseconds


def _read_auto_size_bytes(value: object) -> int:
    """The size in bytes, or 0 for `auto`."""
    return 0 if value == "auto" else read_size_bytes(value)


def _read_all(value: object) -> int:
    """A whole number, 0 for `all`."""
    return 0 if value == "all" else _read_whole(value)


def _read_number(value: object) -> float:
    try:
        return float(str(value))
    except ValueError:
        raise ValueError(f"is {value!r}, which is not a number; write it as 3.5") from None


def _read_none(value: object) -> object:
    return None if value is None or (isinstance(value, str) and value == "none") else value


def _read_text(value: object) -> str:
    if value is None:
        raise ValueError("has no value")
    if isinstance(value, (list, dict)):
        raise ValueError("needs a single value")
    text = str(value)
    if "\0" in text:
        raise ValueError("holds a NUL character")
    return text


def _read_names(value: object) -> object:
    names = value if isinstance(value, (list, tuple)) else [value]
    if not names:
        raise ValueError("is an empty list; name one field at least")
    return names


class Written(NamedTuple):
    """How values of a type are written in settings. takes: which values; text: writes one value"""

    takes: str
    text: Callable[[Any], str] = str


_DURATION, _SIZE = Written("a duration", duration_text), Written("a size", size_text)
Whole = Annotated[int, BeforeValidator(_read_whole)]
Count = Annotated[Whole, Field(ge=1, le=10**12)]


def _auto_text(value: int) -> str:
    return str(value or "auto")


Auto = Annotated[int, BeforeValidator(read_auto), Field(ge=0, le=64), Written("auto, 1 to 64", _auto_text)]
AutoParts = Annotated[
    int, BeforeValidator(read_auto), Field(ge=0, le=MAX_PARTS), Written(f"auto, 1 to {MAX_PARTS}", _auto_text)
]
All = Annotated[
    int,
    BeforeValidator(_read_all),
    Field(ge=0, le=MAX_PARTS),
    Written(f"all, 1 to {MAX_PARTS}", lambda value: str(value or "all")),
]
Idf = Annotated[
    float, BeforeValidator(_read_number), Field(ge=0, le=1000), Written("a number", "{:g}".format)
]
OptionalIdf = Annotated[Idf | None, BeforeValidator(_read_none), Written("a number, none", "{:g}".format)]
Flag = Annotated[bool, BeforeValidator(_read_bool), Written("true, false", lambda value: str(value).lower())]
Ratio = Annotated[
    float,
    BeforeValidator(_read_ratio),
    Written("between 0 and 1", lambda value: format(Decimal(repr(value)), "f")),
]
Share = Annotated[
    int, BeforeValidator(_read_share), Written("0 to 1", lambda value: f"{value / PER_MILLE:g}")
]
Similarity = Annotated[
    int,
    BeforeValidator(read_similarity),
    Written("0.5 to 1", lambda value: f"{value / SIMILARITY_SCALE:g}"),
]
DurationMs = Annotated[int, BeforeValidator(read_duration_ms), Field(ge=0, le=MAX_DURATION_MS), _DURATION]
AutoDurationMs = Annotated[
    int,
    BeforeValidator(_read_auto_duration_ms),
    Field(ge=0, le=MAX_DURATION_MS),
    Written("auto, a duration", lambda value: duration_text(value) if value else "auto"),
]
SizeBytes = Annotated[int, BeforeValidator(read_size_bytes), Field(ge=1, le=1 << 50), _SIZE]
AutoSizeBytes = Annotated[
    int,
    BeforeValidator(_read_auto_size_bytes),
    Field(ge=0, le=1 << 50),
    Written("auto, a size", lambda value: size_text(value) if value else "auto"),
]
Text = Annotated[str, BeforeValidator(_read_text), Field(min_length=1, max_length=4096)]
Names = Annotated[tuple[Text, ...], BeforeValidator(_read_names), Written("a name, a list")]
OptionalDurationMs = Annotated[
    DurationMs | None, BeforeValidator(_read_none), Written("a duration, none", duration_text)
]
OptionalSizeBytes = Annotated[
    SizeBytes | None, BeforeValidator(_read_none), Written("a size, none", size_text)
]
OptionalCount = Annotated[Count | None, BeforeValidator(_read_none), Written("a whole number, none")]
OptionalText = Annotated[Text | None, BeforeValidator(_read_none), Written("a text, none")]


def moment_ms(value: object) -> int | None:
    """Milliseconds since 1970 of an ISO 8601 date or time, or of seconds or milliseconds as a number.

    A time without a zone is UTC. Numbers below 10^11 are seconds, larger ones below 10^14 are milliseconds. A
    text of eight digits that form a date is a date. None if the value is none of these.

    >>> moment_ms("2020-02-12"), moment_ms("2012-09-01T00:00:52+08:00"), moment_ms(1581465600)
    (1581465600000, 1346428852000, 1581465600000)
    """
    if isinstance(value, str):
        try:
            moment = datetime.fromisoformat(value.strip())
        except ValueError:
            try:
                return _from_number(float(value))
            except ValueError:
                return None
        try:
            return round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)
        except (OverflowError, ValueError):
            return None
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return _from_number(value)
    return None


def _from_number(value: float) -> int | None:
    # This comparison is False for NaN too, and works for large integers, for which math.isfinite overflows.
    if not 0 <= value < _MILLISECONDS_BELOW:
        return None
    return round(value * 1000) if value < _SECONDS_BELOW else round(value)
