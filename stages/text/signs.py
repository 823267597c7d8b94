"""Signs that are the message: 📈 is not 📉, and one flag is not another.

Bodies drop signs, so that a post with one more emoji stays a copy. What of a body's signs may say the
opposite of other signs is kept beside it, four signs at most, and compared for near copies alone.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.kernel import NO, YES, ZERO, kernel
from twinsieve.stages.text.code_point_tables import SPECIAL_PLANES

_FAMILIES = (
    ("📈", "📉"),
    ("↑⬆🔼⏫↗", "↓⬇🔽⏬↘"),
    ("→➡▶⏩", "←⬅◀⏪"),
    ("👆", "👇", "👈", "👉"),
    ("👍", "👎"),
    ("✓✔✅☑⭕", "✗✘❌✖❎🚫"),
    ("🟢🟩", "🔴🟥", "🟡🟨", "🟠🟧"),
    ("💔", "❤💚💙💛🧡💜🖤"),
    ("☀🌞", "🌧☔⛈", "❄☃⛄", "☁🌫"),
    ("🌕", "🌑"),
    ("🔓", "🔒"),
    ("🔊🔔", "🔇🔕"),
    ("➕", "➖"),
    ("🛫", "🛬"),
    ("📥", "📤"),
    ("🔋", "🪫"),
    ("🥇", "🥈", "🥉"),
    ("🚹♂", "🚺♀"),
    ("🆗", "🆘"),
    ("🌅", "🌃"),
    ("🔥", "🧊"),
    ("😀😃😄😁😊🙂", "😞😢😭🙁☹😡"),
)
"""Closed families of signs: the sides of each say different things, the signs of one side the same.

source: names of the Unicode character database (upwards / downwards, thumbs up / down, heavy check mark /
ballot x, large green / red circle, black sun / umbrella with rain drops …)
"""
_SIDES = 4
_FLAG = 128
"""Values from here on are flags."""
_FIRST_INDICATOR, _LETTERS = 0x1F1E6, 26
_SLOTS, _BITS = 4, 8


@cache
def sign_table() -> NDArray[np.uint8]:
    """uint8[SPECIAL_PLANES]: for a sign of a family 1 + its row * _SIDES + its side, else 0."""
    table = np.zeros(SPECIAL_PLANES, np.uint8)
    for row, sides in enumerate(_FAMILIES):
        for side, signs in enumerate(sides):
            for sign in signs:
                table[ord(sign)] = 1 + row * _SIDES + side
    return table


@kernel(callee=True)
def is_indicator(code: np.uint32) -> bool:
    """Whether a character is one of the two that form a flag."""
    return bool(_FIRST_INDICATOR <= code < _FIRST_INDICATOR + _LETTERS)


@kernel(callee=True)
def flag_of(first: np.uint32, second: np.uint32) -> np.uint32:
    """The sign of a flag. first, second: its two characters. One in _FLAG pairs of flags is taken for one."""
    number = (np.int64(first) - _FIRST_INDICATOR) * _LETTERS + np.int64(second) - _FIRST_INDICATOR
    return np.uint32(_FLAG + number % _FLAG)


@kernel(callee=True)
def with_sign(signs: np.uint32, sign: np.uint32) -> np.uint32:
    """Signs with one more, if it is not there and there is room for it."""
    for slot in range(_SLOTS):
        one = (signs >> np.uint32(_BITS * slot)) & np.uint32(0xFF)
        if one == sign:
            return signs
        if one == 0:
            return signs | (sign << np.uint32(_BITS * slot))
    return signs


@kernel(callee=True)
def signs_differ(signs: np.uint32, others: np.uint32) -> bool:
    """Whether each body has a sign of one family that the other lacks. An added sign says nothing."""
    if signs == 0 or others == 0 or signs == others:
        return NO
    for slot in range(_SLOTS):
        one = (signs >> np.uint32(_BITS * slot)) & np.uint32(0xFF)
        if one == 0 or _has(others, one):
            continue
        for other_slot in range(_SLOTS):
            other = (others >> np.uint32(_BITS * other_slot)) & np.uint32(0xFF)
            if other != 0 and _family(other) == _family(one) and not _has(signs, other):
                return YES
    return NO


@kernel(callee=True)
def _has(signs: np.uint32, sign: np.uint32) -> bool:
    for slot in range(_SLOTS):
        if (signs >> np.uint32(_BITS * slot)) & np.uint32(0xFF) == sign:
            return YES
    return NO


@kernel(callee=True)
def _family(sign: np.uint32) -> int:
    return ZERO - 1 if sign >= _FLAG else np.int64(sign - 1) // _SIDES
