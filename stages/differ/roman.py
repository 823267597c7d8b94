"""Roman numbers up to 39 in one place of two bodies: part I / part II, (III) / (V).

Bodies have no capitals, and a single i, v or x is a word of many languages. So a word is such a number
only where another one stands in its place.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.differ.phrases import DIGIT, Phrases
from twinsieve.stages.differ.tokens import MIX, WORD, Tokens, class_of
from twinsieve.stages.differ.written import whole_of
from twinsieve.stages.kernel import ZERO, kernel

_E, _I, _V, _X = (np.uint32(ord(letter)) for letter in "eivx")
_LONGEST = 7
_TENS = 3


@kernel(callee=True, inlined=True)
def may_be_roman(run: NDArray[np.int64], later: Tokens, earlier: Tokens) -> bool:
    """Whether each side of a run is one Roman number; else the rule *number* need not ask for them."""
    if run[1] - run[0] != 1 or run[3] - run[2] != 1:
        return False
    return roman_of(later, run[0]) > 0 and roman_of(earlier, run[2]) > 0


@kernel(callee=True)
def other_roman_number(run: NDArray[np.int64], later: Tokens, earlier: Tokens) -> bool:
    """Whether one Roman number stands in the place of another one; a row of x is a row of kisses."""
    if run[1] - run[0] != run[3] - run[2]:
        return False
    for k in range(run[1] - run[0]):
        value, other = roman_of(later, run[0] + k), roman_of(earlier, run[2] + k)
        kisses = value % 10 == 0 and other % 10 == 0
        if value > 0 and other > 0 and value != other and not kisses:
            return True
    return False


@kernel(callee=True)
def is_its_roman_number(run: NDArray[np.int64], phrases: Phrases, later: Tokens, earlier: Tokens) -> bool:
    """Whether a number stands in the place of the same one in Roman letters: 2 / II."""
    if run[1] - run[0] != 1 or run[3] - run[2] != 1:
        return False
    return _is_of(later, run[0], earlier, run[2], phrases) or _is_of(earlier, run[2], later, run[0], phrases)


@kernel(callee=True)
def _is_of(tokens: Tokens, position: int, others: Tokens, other: int, phrases: Phrases) -> bool:
    """Whether a word is the Roman number of a token; both may end with an e (XIXe, 19e)."""
    value = roman_of(tokens, position)
    if value > 0:
        return value == whole_of(others, other, phrases)
    end, other_end = tokens.starts[position + 1], others.starts[other + 1]
    if others.kinds[other] != MIX or tokens.chars[end - 1] != _E or others.chars[other_end - 1] != _E:
        return False
    value, digits = _value(tokens, position, end - 1), ZERO
    for k in range(others.starts[other], other_end - 1):
        if not class_of(others.chars[k], phrases) & DIGIT:
            return False
        digits = min(digits * 10 + phrases.worth[others.chars[k]], 1000)
    return value > 0 and value == digits


@kernel(callee=True)
def roman_of(tokens: Tokens, position: int) -> int:
    """The value of a word that is a well-formed Roman number of the letters i, v and x; else 0."""
    return _value(tokens, position, tokens.starts[position + 1])


@kernel(callee=True)
def _value(tokens: Tokens, position: int, end: int) -> int:
    """`roman_of` the characters of a word up to an index."""
    i = tokens.starts[position]
    if tokens.kinds[position] != WORD or end - i > _LONGEST:
        return ZERO
    value = ZERO
    while i < end and tokens.chars[i] == _X and value < 10 * _TENS:
        value += 10
        i += 1
    if i + 2 == end and tokens.chars[i] == _I and tokens.chars[i + 1] != _I:
        ten = tokens.chars[i + 1] == _X
        return value + (9 if ten else 4) if ten or tokens.chars[i + 1] == _V else ZERO
    if i < end and tokens.chars[i] == _V:
        value += 5
        i += 1
    ones = end - i
    for k in range(i, end):
        if tokens.chars[k] != _I:
            return ZERO
    return value + ones if ones <= _TENS else ZERO
