"""Convert a user's column of times to milliseconds since 1970.

A time without a zone is UTC, as in the files that `twinsieve dedup` reads. A number has no unit, so the
caller must name one; time columns of NumPy, Arrow, pandas and polars have a unit.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from twinsieve.api.user_columns import a_type, is_arrow, is_null, shown, values_of
from twinsieve.pipeline.messages.fields import time_ms
from twinsieve.stages.contract import NO_TIME
from twinsieve.stages.errors import UsageError

TimeUnit = Literal["s", "ms", "us", "ns"]

_PER_MS = {"us": 1_000, "ns": 1_000_000}
_MS = {"s": 1_000, "ms": 1, "us": 1 / 1_000, "ns": 1 / 1_000_000}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_A_MS = timedelta(milliseconds=1)
_YEAR_1_MS, _YEAR_10000_MS = -62_135_596_800_000, 253_402_300_800_000


def times_of(column: object, unit: TimeUnit | None, first: int = 0, name: str = "times") -> NDArray[np.int64]:
    """int64[n]: milliseconds since 1970, NO_TIME for a missing time.

    Finer times are rounded to the nearest millisecond, an exact half to the even one.

    column: datetimes, dates, `numpy.datetime64`, pandas timestamps, ISO 8601 text, or numbers in `unit`
    unit: the unit of numbers: s, ms, us or ns since 1970
    raises: UsageError at the first row that is not a time, is a number although `unit` is None, or is
        outside the years 1 to 9999
    """
    if unit is not None and unit not in _MS:
        raise UsageError(f"time_unit is {unit!r}; choose s, ms, us or ns")
    if isinstance(column, np.ndarray) and column.dtype.kind == "M" and column.ndim == 1:
        filled = (
            column.filled(np.datetime64("NaT", "ms")) if isinstance(column, np.ma.MaskedArray) else column
        )
        return _checked(_from_datetime64(filled), first, name)
    if is_arrow(column):
        stamps = _from_arrow(column)
        if stamps is not None:
            return _checked(stamps, first, name)
    values = values_of(column, name)
    return np.array(
        [_moment(value, unit, f"{name}[{first + row}]") for row, value in enumerate(values)], dtype=np.int64
    )


def _moment(value: Any, unit: TimeUnit | None, where: str) -> int:
    if is_null(value):
        return NO_TIME
    if isinstance(value, datetime):
        # This covers pandas timestamps too: they are a subclass of datetime.
        moment = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
        return round((moment - _EPOCH) / _A_MS)
    if isinstance(value, date):
        return round((datetime(value.year, value.month, value.day, tzinfo=UTC) - _EPOCH) / _A_MS)
    if isinstance(value, np.datetime64):
        return _in_years(int(_from_datetime64(np.array([value]))[0]), where)
    if isinstance(value, str):
        return _from_text(value, where)
    if isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool):
        return _from_number(value, unit, where)
    raise UsageError(
        f"{where} is {a_type(value)} ({shown(value)}); use datetime, ISO 8601 text or numbers with time_unit"
    )


def _from_text(value: str, where: str) -> int:
    try:
        datetime.fromisoformat(value.strip())
    except ValueError as error:
        raise UsageError(
            f"{where} is {shown(value)}, not an ISO 8601 date or time as in 2020-02-12T08:30:00+08:00"
        ) from error
    read = time_ms(value)
    if read is None:
        raise UsageError(f"{where} is {shown(value)}, which lies outside the years 1 to 9999")
    return read


def _from_number(value: Any, unit: TimeUnit | None, where: str) -> int:
    if unit is None:
        raise UsageError(
            f"{where} is a number ({shown(value)}); say its unit, as in time_unit='s' or time_unit='ms'"
        )
    if isinstance(value, (float, np.floating)):
        moment = round(float(value) * _MS[unit]) if np.isfinite(value) else _YEAR_10000_MS
    elif unit in _PER_MS:
        moment = int(_rounded(np.array([value], dtype=object), _PER_MS[unit])[0])
    else:
        moment = int(value) * int(_MS[unit])
    if not _YEAR_1_MS <= moment < _YEAR_10000_MS:
        raise UsageError(
            f"{where} is {shown(value)}, in {unit} outside the years 1 to 9999; is time_unit right?"
        )
    return moment


def _from_datetime64(values: NDArray[Any]) -> NDArray[np.int64]:
    unit = np.datetime_data(values.dtype)[0]
    missing = np.isnat(values)
    if unit in ("us", "ns", "ps", "fs", "as"):
        # Digits below a nanosecond are cut off: they could change the rounded result only at an exact half.
        fine = values.astype(f"datetime64[{'us' if unit == 'us' else 'ns'}]").view(np.int64)
        moments = _rounded(fine, _PER_MS["us" if unit == "us" else "ns"]).astype(np.int64)
    else:
        moments = values.astype("datetime64[ms]").view(np.int64)
    return np.where(missing, NO_TIME, moments).astype(np.int64)


def _from_arrow(column: Any) -> NDArray[np.int64] | None:
    """int64[n] milliseconds of an Arrow timestamp column (counted from 1970 in UTC); None for other types."""
    if not str(column.type).startswith("timestamp"):
        return None
    unit = column.type.unit
    numbers = column.cast("int64")
    missing = np.array(numbers.is_null().to_pylist(), dtype=np.bool_)
    values = np.array(numbers.fill_null(0).to_pylist(), dtype=np.int64)
    moments = _rounded(values, _PER_MS[unit]) if unit in _PER_MS else values * int(_MS[unit])
    return np.where(missing, NO_TIME, moments).astype(np.int64)


def _rounded(values: NDArray[Any], divisor: int) -> NDArray[Any]:
    """Integers divided by the divisor without floats, rounded to the nearest integer, a half to even."""
    whole, rest = values // divisor, values % divisor
    up = (2 * rest > divisor) | ((2 * rest == divisor) & (whole % 2 == 1))
    rounded: NDArray[Any] = whole + up
    return rounded


def _checked(moments: NDArray[np.int64], first: int, name: str) -> NDArray[np.int64]:
    wrong = (moments != NO_TIME) & ((moments < _YEAR_1_MS) | (moments >= _YEAR_10000_MS))
    for row in np.flatnonzero(wrong)[:1].tolist():
        _in_years(int(moments[row]), f"{name}[{first + row}]")
    return moments


def _in_years(moment: int, where: str) -> int:
    if moment != NO_TIME and not _YEAR_1_MS <= moment < _YEAR_10000_MS:
        raise UsageError(f"{where} lies outside the years 1 to 9999")
    return moment
