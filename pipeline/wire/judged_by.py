"""The header of a decision that says by which rules its block was judged.

Nothing is refused because of it: a decision is applied as it was recorded, whatever the rules of the reader.
"""

from __future__ import annotations

from collections.abc import Sequence

from twinsieve.pipeline.broker.records import Header
from twinsieve.stages.judge.rules_digest import RULES_BYTES

_HEADER = "rules"


def rules_header(rules: str) -> Header:
    """The header of a decision. rules: `rules_digest` of the index that judged"""
    return _HEADER, bytes.fromhex(rules)


def rules_in(headers: Sequence[Header]) -> str:
    """The rules in the headers of a decision; empty if an older program wrote it, without this header.

    >>> rules_in([rules_header("0123456789abcdef")]), rules_in([])
    ('0123456789abcdef', '')
    """
    value = next((value for name, value in headers if name == _HEADER), None)
    return (value or b"")[:RULES_BYTES].hex()
