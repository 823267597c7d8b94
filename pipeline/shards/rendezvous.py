"""Who answers for which segment: a rendezvous hash, so that nobody has to agree with anybody.

Each member computes the same order from the same members. A member that joins or leaves moves only the
segments that it gets or had.

>>> first_of(Span(0, 10), ["a", "b", "c"], 2)
['a', 'b']
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Collection
from typing import NamedTuple

_SPAN = struct.Struct("<qq")


class Span(NamedTuple):
    """The kept messages of a segment, `end` exclusive. It is known before the segment's file is read, and
    stays when another process writes the file again."""

    first: int
    end: int


def first_of(segment: Span, members: Collection[str], n: int) -> list[str]:
    """The first `n` members in the order for this segment, or all if they are fewer."""
    named = _SPAN.pack(*segment)
    return sorted(set(members), key=lambda member: (_weight(named, member), member), reverse=True)[:n]


def _weight(named: bytes, member: str) -> bytes:
    return hashlib.blake2b(named + member.encode(), digest_size=16).digest()
