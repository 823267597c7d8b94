"""Two words that are one word in two spellings, which is no replacement."""

from __future__ import annotations

from twinsieve.stages.differ.phrases import EXCLUDES, Phrases, find
from twinsieve.stages.differ.senses import add_senses
from twinsieve.stages.differ.tokens import WORD, Tokens
from twinsieve.stages.differ.word_marks import are_marked_apart
from twinsieve.stages.differ.workspace import Differing
from twinsieve.stages.kernel import ZERO, kernel


@kernel(callee=True)
def are_spellings(later: Tokens, a: int, earlier: Tokens, b: int) -> bool:
    """Whether two words are one in two spellings.

    One begins the other (4 letters at least), has one letter more, or (5 letters at least) another one.
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
    if same == n:
        return n == m or n >= 4
    if n < 4 or m - n > 1 or (m == n and n < 5):
        return False
    rest = same + (m == n)
    for k in range(rest, n):  # noqa: SIM110
        if short.chars[first + k] != long.chars[second + k + (m - n)]:
            return False
    return True


@kernel(callee=True)
def are_opposites(later: Tokens, a: int, earlier: Tokens, b: int, phrases: Phrases, work: Differing) -> bool:
    """Whether one of two words excludes the other, or has another mark."""
    if later.facts[a] & earlier.facts[b] & EXCLUDES:
        mine = add_senses(find(phrases, later.ids[a]), phrases, work.senses, ZERO)
        other = add_senses(find(phrases, earlier.ids[b]), phrases, work.other_senses, ZERO)
        for i in range(mine):
            for k in range(other):
                one, two = work.senses[i], work.other_senses[k]
                if one >> 8 == two >> 8 and one != two:
                    return True
    return are_marked_apart(later, a, earlier, b)
