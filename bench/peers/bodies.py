"""What all loops do alike with a text before they look for similar ones. Needs Python alone."""

from __future__ import annotations

import re
import unicodedata
from itertools import pairwise

_DROPPED = re.compile(
    r"(?:https?://|www\.)[!-~]+|#[^#\n]{1,80}#|//\s*@[^:\n]{1,40}:|@[\w\-·]{1,30}|收起全文d?|展开全文c?|O?网页链接"
)
MIN_LENGTH = 8
"""Shorter bodies are compared for equality alone."""
SIMILARITY = 0.85


def body_of(text: str) -> str:
    """The letters and digits of a text, without links, tags, chains and names.

    >>> body_of("Ａ b! http://t.cn/x #tag# @somebody")
    'ab'
    """
    cleaned = _DROPPED.sub(" ", unicodedata.normalize("NFKC", text)).casefold()
    return "".join(filter(str.isalnum, cleaned))


def grams(body: str) -> list[str]:
    """Its characters and pairs of characters.

    >>> grams("abc")
    ['a', 'b', 'c', 'ab', 'bc']
    """
    return [*body, *map("".join, pairwise(body))]
