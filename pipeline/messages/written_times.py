"""Times in the forms that interfaces, mails and tables have, besides ISO 8601 (`settings.values.moment_ms`).

Only forms that begin with the year or name the month: 1/2/2020 may be in January or in February, so it is no
time. A time without a zone is UTC.
"""

from __future__ import annotations

import re
from datetime import date

_MAX_CHARACTERS = 64
"""Longer texts are no times; so a hostile one costs nothing."""

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_ZONE_HOURS = {"": 0, "z": 0, "ut": 0, "utc": 0, "gmt": 0}
_ZONE_HOURS |= {"edt": -4, "est": -5, "cdt": -5, "cst": -6, "mdt": -6, "mst": -7, "pdt": -7, "pst": -8}
"""Named zones of RFC 2822, section 4.3; no name is UTC."""

_CLOCK = r"(?P<hour>[0-9]{1,2}):(?P<minute>[0-9]{2})(?::(?P<second>[0-9]{2})(?:\.(?P<fraction>[0-9]{1,6}))?)?"
_ZONE = r"(?P<zone>[+-][0-9]{2}:?[0-9]{2}|[a-z]{1,3})"
_NAMED_MONTH = r"(?P<month>[a-z]{3})"
_DAY, _YEAR = r"(?P<day>[0-9]{1,2})", r"(?P<year>[0-9]{4})"
_FORMS = tuple(
    re.compile(form, re.IGNORECASE | re.ASCII)
    for form in (
        # The interfaces of Twitter and Weibo, and C: Tue Oct 30 12:34:56 +0000 2012.
        rf"[a-z]{{3}} +{_NAMED_MONTH} +{_DAY} +{_CLOCK}(?: +{_ZONE})? +{_YEAR}",
        # RFC 2822 and HTTP: Tue, 30 Oct 2012 12:34:56 +0000.
        rf"(?:[a-z]{{3}}, *)?{_DAY} +{_NAMED_MONTH} +{_YEAR} +{_CLOCK}(?: *{_ZONE})?(?: *\([a-z ]*\))?",
        # Tables: 2020/1/1 10:15.
        rf"{_YEAR}(?P<between>[/.-])(?P<month>[0-9]{{1,2}})(?P=between){_DAY}"
        rf"(?:[ T] *{_CLOCK}(?: *{_ZONE})?)?",
        # Chinese and Japanese: 2020年01月01日 10:16, 2020年1月1日10时16分.
        rf"{_YEAR} *年 *(?P<month>[0-9]{{1,2}}) *月 *{_DAY} *[日号] *(?:{_CLOCK})?",
        rf"{_YEAR} *年 *(?P<month>[0-9]{{1,2}}) *月 *{_DAY} *[日号] *(?P<hour>[0-9]{{1,2}}) *[时時点]"
        r" *(?P<minute>[0-9]{1,2}) *分 *(?:(?P<second>[0-9]{1,2}) *秒)?",
    )
)
_EPOCH_DAYS = date(1970, 1, 1).toordinal()


def written_ms(text: str) -> int | None:
    """Milliseconds since 1970 of a time in one of these forms; None for another text, and for no valid time.

    >>> written_ms("Tue Oct 30 12:34:56 +0800 2012"), written_ms("30 Oct 2012 04:34:56 GMT")
    (1351571696000, 1351571696000)
    >>> written_ms("2020/1/1 10:15"), written_ms("2020年01月01日 10:15"), written_ms("1/2/2020")
    (1577873700000, 1577873700000, None)
    """
    text = text.strip()
    if len(text) > _MAX_CHARACTERS:
        return None
    found = next(filter(None, (form.fullmatch(text) for form in _FORMS)), None)
    if found is None:
        return None
    parts = found.groupdict("")
    named, offset_s = parts["month"].lower(), _offset_s(parts.get("zone", ""))
    if (named.isalpha() and named not in _MONTHS) or offset_s is None:
        return None
    month = _MONTHS.index(named) + 1 if named.isalpha() else int(named)
    hour, minute, second = int(parts["hour"] or 0), int(parts["minute"] or 0), int(parts["second"] or 0)
    if hour > 23 or minute > 59 or second > 59:
        return None
    try:
        days = date(int(parts["year"]), month, int(parts["day"])).toordinal() - _EPOCH_DAYS
    except ValueError:
        return None
    whole_s = days * 86_400 + hour * 3_600 + minute * 60 + second - offset_s
    fraction = parts.get("fraction")
    return whole_s * 1_000 + (round(float(f".{fraction}") * 1_000) if fraction else 0)


def _offset_s(zone: str) -> int | None:
    """Seconds that a zone is ahead of UTC; None for none that is known."""
    if not zone.startswith(("+", "-")):
        hours = _ZONE_HOURS.get(zone.lower())
        return None if hours is None else hours * 3_600
    hours, minutes = int(zone[1:3]), int(zone[-2:])
    if hours > 23 or minutes > 59:
        return None
    return (hours * 3_600 + minutes * 60) * (-1 if zone[0] == "-" else 1)
