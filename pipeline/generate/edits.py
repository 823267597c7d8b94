"""Makes small edits to a text, like those of people who post a text again."""

from __future__ import annotations

from collections.abc import Sequence

MAX_EDITS = 6


def edited(body: str, draws: Sequence[float], other: str) -> str:
    """`body` with 1 to 6 characters substituted, inserted or deleted; in a short body one in eight at most.

    draws: 2 + 2 · MAX_EDITS random numbers in [0, 1), which decide the edits
    other: a text from which new characters are taken

    >>> edited("今天天气很好我们出去玩", [0.0, 0.9, 0.1, 0.5] + [0.0] * 10, "雨下得大")
    '今雨天气很好我们出去玩'
    """
    characters = list(body)
    count = 1 + int(draws[0] * min(MAX_EDITS, max(1, len(body) // 8)))
    for place, choice in zip(draws[2 : 2 + count], draws[2 + MAX_EDITS :], strict=False):
        position = int(place * len(characters))
        new = other[int((choice * 7919.0) % 1.0 * len(other))]
        if choice < 0.5:
            characters[position : position + 1] = new
        elif choice < 0.75 or len(characters) < 2:
            characters.insert(position, new)
        else:
            del characters[position]
    return "".join(characters)
