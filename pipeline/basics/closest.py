"""Finds the name that was probably meant, for "did you mean"."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def closest(name: str, names: Iterable[str], cutoff: float = 0.6) -> str | None:
    """The one of these names that was probably meant, or None. Case does not count.

    cutoff: the least likeness, 0 to 1, as of difflib

    >>> closest("Text", ["id", "text"]), closest("body", ["id", "text"])
    ('text', None)
    """
    by_lower: dict[str, str] = {}
    for each in names:
        by_lower.setdefault(each.lower(), each)
    close = get_close_matches(name.lower(), list(by_lower), n=1, cutoff=cutoff)
    return by_lower[close[0]] if close else None
