"""Amounts as people read them, on pages and in tables."""

from __future__ import annotations

from twinsieve.pipeline.basics.shown_time import shown_time

_SIZES = ("B", "KiB", "MiB", "GiB", "TiB")
_SPANS = (("years", 31_556_952.0, 2), ("d", 86_400.0, 3), ("h", 3_600.0, 1), ("min", 60.0, 2))
"""Units of time: name, length in seconds, and from how many on a time is shown in it."""
_RATES = ((" a second", "/s", 1.0), (" a minute", "/min", 60.0), (" an hour", "/h", 3_600.0))
_STEPS = ((86_400_000, "day"), (3_600_000, "hour"), (60_000, "minute"), (1_000, "second"))
_MOST_DIGITS = 4
"""Of a share, behind the dot."""


def few(number: float) -> str:
    """A number with three digits, or as many as it has before the dot.

    >>> few(0), few(0.001), few(2 / 3), few(12_345.6)
    ('0', '< 0.01', '0.667', '12,346')
    """
    if number >= 100:
        return f"{number:,.0f}"
    return f"{number:.3g}" if number >= 0.01 or number <= 0 else "< 0.01"


def share(part: float) -> str:
    """A share in percent: nothing and all are shown for nothing and all alone, however small the rest.

    >>> share(0.163), share(0), share(1), share(29_998 / 30_000), share(2e-5), share(1 - 1e-9)
    ('16.3%', '0.0%', '100.0%', '99.99%', '0.002%', '> 99.9999%')
    """
    if not 0 < part < 1:
        return f"{part:.1%}"
    for digits in range(1, _MOST_DIGITS + 1):
        text = f"{part:.{digits}%}"
        if 0 < float(text[:-1]) < 100:
            return text
    return f"< {10**-_MOST_DIGITS:.4f}%" if part < 0.5 else f"> {100 - 10**-_MOST_DIGITS:.4f}%"


def rate(per_s: float, *, short: bool = False) -> str:
    """A number of events by the shortest time in which there is one of them. short: for a cell of a table

    >>> rate(12_345.6), rate(0.0448), rate(0.001, short=True), rate(0)
    ('12,346 a second', '2.7 a minute', '3.6/h', '0')
    """
    name, sign, length = next((each for each in _RATES if per_s * each[2] >= 1), _RATES[-1])
    number = per_s * length
    shown = f"{number:,.0f}" if number >= 9.95 else f"{number:.2g}"
    return f"{shown}{sign if short else name}" if per_s else "0"


def size(number: float) -> str:
    """A number of bytes in the largest unit of which there is at least one.

    >>> size(0), size(1023), size(1536), size(126_914_560), size(3 << 40)
    ('0 B', '1,023 B', '1.5 KiB', '121 MiB', '3 TiB')
    """
    for unit in _SIZES[:-1]:
        if number < 1024:
            return _short(number, unit)
        number /= 1024
    return _short(number, _SIZES[-1])


def span(seconds: float) -> str:
    """A time in the largest unit that suits.

    >>> span(0.5), span(119), span(3_600), span(86_400), span(1e6), span(535_680_000)
    ('0.5 s', '119 s', '1 h', '24 h', '11.6 d', '17 years')
    """
    for unit, length, least in _SPANS:
        if seconds >= least * length:
            return _short(seconds / length, unit)
    return _short(seconds, "s")


def step(milliseconds: int) -> str:
    """A whole number of the largest unit that divides a time, to follow "each"; empty below a second.

    >>> step(3_600_000), step(300_000)
    ('hour', '5 minutes')
    """
    for length, unit in _STEPS:
        if milliseconds >= length and milliseconds % length == 0:
            count = milliseconds // length
            return unit if count == 1 else f"{count:,} {unit}s"
    return ""


def moment(seconds: float) -> str:
    """A point in time, UTC. seconds: since 1970

    >>> moment(0)
    '1970-01-01 00:00:00 UTC'
    """
    return shown_time(int(seconds * 1000))


def repeats(dropped: int, messages: int | None, most: int = 0) -> str:
    """What a run found, in one sentence.

    messages: number of all messages, None if it is not known; most: drops of the message that has the most

    >>> repeats(4_846, 30_008, 214)
    'Of 30,008 messages 16.1% (4,846) are repeats of earlier ones; 214 of them repeat the same message.'
    >>> repeats(4_846, None), repeats(0, 40)
    ('4,846 messages are repeats of earlier ones.', 'None of 40 messages is a repeat.')
    """
    found = f"{dropped:,} messages are repeats of earlier ones"
    if dropped and messages:
        part = share(dropped / messages)
        found = f"Of {messages:,} messages {part} ({dropped:,}) are repeats of earlier ones"
    elif dropped == 1:
        found = "1 message is a repeat of an earlier one"
    elif not dropped:
        found = f"None of {messages:,} messages is a repeat" if messages else "No message is a repeat"
    return f"{found}; {most:,} of them repeat the same message." if most > 1 else f"{found}."


def _short(number: float, unit: str) -> str:
    return f"{number:,.0f} {unit}" if number >= 100 else f"{number:.3g} {unit}"
