"""Amounts as people read them."""

from __future__ import annotations

from twinsieve.pipeline.basics.times import shown_time

_SIZES = ("B", "KiB", "MiB", "GiB", "TiB")
_SPANS = (("d", 86_400.0), ("h", 3_600.0), ("min", 60.0))


def few(number: float) -> str:
    """A number with three digits, or as many as it has before the dot.

    >>> few(0), few(0.001), few(2 / 3), few(12_345.6)
    ('0', '< 0.01', '0.667', '12,346')
    """
    if number >= 100:
        return f"{number:,.0f}"
    return f"{number:.3g}" if number >= 0.01 or number <= 0 else "< 0.01"


def size(number: float) -> str:
    """A number of bytes in the largest unit of which there is at least one.

    >>> size(0), size(1023), size(1536), size(126_914_560), size(3 << 40)
    ('0 B', '1023 B', '1.5 KiB', '121 MiB', '3 TiB')
    """
    for unit in _SIZES[:-1]:
        if number < 1024:
            return _short(number, unit)
        number /= 1024
    return _short(number, _SIZES[-1])


def span(seconds: float) -> str:
    """A time in the largest unit of which there are at least two.

    >>> span(0.5), span(119), span(1_800), span(86_400), span(1e6)
    ('0.5 s', '119 s', '30 min', '24 h', '11.6 d')
    """
    for unit, length in _SPANS:
        if seconds >= 2 * length:
            return _short(seconds / length, unit)
    return _short(seconds, "s")


def moment(seconds: float) -> str:
    """A point in time, UTC. seconds: since 1970

    >>> moment(0)
    '1970-01-01 00:00:00 UTC'
    """
    return shown_time(int(seconds * 1000))


def _short(number: float, unit: str) -> str:
    return f"{number:.0f} {unit}" if number >= 100 else f"{number:.3g} {unit}"
