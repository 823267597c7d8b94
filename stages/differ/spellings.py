"""Recognises one word in two spellings; such a word does not count as replaced."""

from __future__ import annotations

from twinsieve.stages.differ.tokens import WORD, Tokens
from twinsieve.stages.kernel import ZERO, kernel


@kernel(callee=True)
def are_spellings(later: Tokens, a: int, earlier: Tokens, b: int) -> bool:
    """Whether two words are probably one word in two spellings.

    Either one has one more letter than the other, which has at least 4 letters. Or both have the same length,
    at least 5 letters, and differ in one letter, or in the order of two neighbours.
    """
    if later.kinds[a] != WORD or earlier.kinds[b] != WORD:
        return False
    if later.starts[a + 1] - later.starts[a] <= earlier.starts[b + 1] - earlier.starts[b]:
        return _is_spelling(later, a, earlier, b)
    return _is_spelling(earlier, b, later, a)


@kernel(callee=True)
def _is_spelling(short: Tokens, a: int, long: Tokens, b: int) -> bool:
    first, second = short.starts[a], long.starts[b]
    n, m = short.starts[a + 1] - first, long.starts[b + 1] - second
    same = ZERO
    while same < n and short.chars[first + same] == long.chars[second + same]:
        same += 1
    if same == m:
        return True
    if n < 4 or m - n > 1 or (m == n and n < 5):
        return False
    rest = same + (m == n)
    if m == n and rest < n and short.chars[first + same] == long.chars[second + rest]:
        rest += short.chars[first + rest] == long.chars[second + same]
    for k in range(rest, n):  # noqa: SIM110
        if short.chars[first + k] != long.chars[second + k + (m - n)]:
            return False
    return True
