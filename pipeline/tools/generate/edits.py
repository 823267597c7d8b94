"""Makes small edits to a text, like those of people who post a text again."""

from __future__ import annotations

import re
from collections.abc import Sequence

MAX_EDITS = 6
_NUMBER = re.compile(r"\d+")
_WORD = re.compile(r"[^\W\d_]{4,}")


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


def retold(body: str, draws: Sequence[float], remarks: Sequence[str]) -> str:
    """`body` with a remark before or behind it, with one to three typing errors, or with both.

    draws: 14 random numbers in [0, 1), of which the last five decide; without remarks there are errors alone

    >>> retold("The ferry is late.", [0.9] * 9 + [0.5, 0.1, 0.4, 0.0, 0.0], ["same here"])
    'Same here: The ferry is late.'
    >>> retold("The ferry is late.", [0.9] * 9 + [0.7, 0.0, 0.0, 0.0, 0.0], ["same here"])
    'The frery is late.'
    """
    kind, remark, *places = draws[9:14]
    if not remarks or kind >= 0.6:
        for place in places[: 1 + int(remark * 3)]:
            body = _mistyped(body, place)
    if remarks and not 0.6 <= kind < 0.85:
        said = remarks[int(remark * len(remarks))]
        body = f"{said[0].upper()}{said[1:]}: {body}" if 0.4 <= kind < 0.6 else f"{body} {said}"
    return body


def _mistyped(body: str, place: float) -> str:
    """`body` with two letters of a word in each other's place; the first and the last one stay.

    place: random number in [0, 1), which chooses the word and the letters
    """
    words = [word.span() for word in _WORD.finditer(body)]
    if not words:
        return body
    begin, end = words[int(place * len(words))]
    at = begin + 1 + int(place * len(words) % 1.0 * (end - begin - 3))
    return body[:at] + body[at + 1] + body[at] + body[at + 2 :]


def renumbered(body: str, draws: Sequence[float]) -> str | None:
    """`body` with a greater number in the place of its first one; None if it has none.

    draws: random numbers in [0, 1), of which the last one decides

    >>> renumbered("The ferry is 12 minutes late.", [0.5])
    'The ferry is 28 minutes late.'
    """
    number = _NUMBER.search(body)
    if number is None:
        return None
    return f"{body[: number.start()]}{int(number[0]) + 1 + int(draws[-1] * 30)}{body[number.end() :]}"
