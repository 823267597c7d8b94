"""How much work a call does, counted and not timed: a machine under load gives the same number."""

from __future__ import annotations

import sys
from collections.abc import Callable


def calls_made(work: Callable[[], object]) -> int:
    """How many functions it calls, of Python and of C.

    >>> calls_made(lambda: [len(one) for one in ("a", "b")]) >= 2
    True
    """
    count = 0

    def see(_frame: object, event: str, _argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(see)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count
