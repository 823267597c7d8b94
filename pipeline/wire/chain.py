"""The chain of decisions, which tells two histories of one log apart.

The link after a decision is a digest of the link before it and of the decision itself. So it identifies every
decision since the app began. Each decision has the link before it in a header (docs/WIRE.md). An index state
belongs to a log if the next decision there has the link of the state, or if the link after the last one is
that of the state.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from twinsieve.pipeline.broker.records import Header

UNKNOWN = b""
"""The link of a state without decisions, and of one whose last decision has no header."""
LINK_SIZE = 16
_HEADER = "link"


def link_header(before: bytes) -> Header:
    """The header of a decision. before: the link before it, which may be `UNKNOWN`"""
    return _HEADER, before


def link_before(headers: Sequence[Header]) -> bytes | None:
    """The link before a decision; None if an older program wrote the decision, without a header.

    >>> link_before([link_header(b"0123456789abcdef")]), link_before([])
    (b'0123456789abcdef', None)
    """
    return next((value or UNKNOWN for name, value in headers if name == _HEADER), None)


def link_after(before: bytes | None, decision: bytes) -> bytes:
    """The link after a decision. before: as `link_before` gives it; decision: the record's value"""
    if before is None:
        return UNKNOWN
    return hashlib.blake2b(before + decision, digest_size=LINK_SIZE).digest()
