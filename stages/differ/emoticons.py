"""Recognises emoticons by what bodies keep of them: a name without its brackets, the digits of a face."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.differ.phrases import EMOTICON, MAX_PHRASE, Phrases, find, hash_of
from twinsieve.stages.differ.tokens import CHARACTER, MIX, NUMBER, Tokens
from twinsieve.stages.kernel import ZERO, kernel

_CLAUSE = 3
"""Where a text has blanks between all its words, an ordinary word stands alone as well. There the pieces on
both sides of it have fewer characters than this."""
_FACE = 2
"""Tokens of a face: an underscore parts its eyes."""
_ZERO, _O = np.uint32(ord("0")), np.uint32(ord("o"))


@kernel(callee=True)
def are_emoticons(run: NDArray[np.int64], later: Tokens, earlier: Tokens, phrases: Phrases) -> bool:
    """Whether all that differs in a run is names of emoticons: [不要] added, [左哼哼] / [右哼哼].

    Each name stands alone, between marks, blanks or ends. A word that one says may do so, too (你要吗？不要),
    so the other body has nothing in its place, or other names of emoticons.
    """
    if run[0] == run[1]:
        return _are_added(earlier, run[2], run[3], phrases)
    if run[2] == run[3]:
        return _are_added(later, run[0], run[1], phrases)
    return _are_within(later, run[0], run[1], phrases) and _are_within(earlier, run[2], run[3], phrases)


@kernel(callee=True)
def _begins(tokens: Tokens, position: int) -> bool:
    """Whether a token is behind a mark, a blank or another script, or the body ends before it."""
    return position >= tokens.counts[0] or tokens.word_starts[tokens.starts[position]] != 0


@kernel(callee=True)
def _are_added(tokens: Tokens, first: int, end: int, phrases: Phrases) -> bool:
    """Whether tokens[first:end] are names behind a clause, before one, or at the end of a body."""
    if not (_begins(tokens, first) and _begins(tokens, end) and _are_names(tokens, first, end, phrases)):
        return False
    # A word begins beside another script without any mark between them (iphone不要).
    if first > 0 and tokens.kinds[first - 1] != CHARACTER:
        return False
    if end == tokens.counts[0]:
        return True
    if tokens.kinds[end] != CHARACTER:
        return False
    before = behind = ZERO
    while before < min(_CLAUSE, first) and (before == 0 or not _begins(tokens, first - before)):
        before += 1
    while (
        end + behind < tokens.counts[0]
        and behind < _CLAUSE
        and (behind == 0 or not _begins(tokens, end + behind))
    ):
        behind += 1
    return max(before, behind) >= _CLAUSE


@kernel(callee=True)
def _are_within(tokens: Tokens, first: int, end: int, phrases: Phrases) -> bool:
    """Whether the pieces that hold tokens[first:end] are names."""
    before = behind = ZERO
    while before < min(MAX_PHRASE, first) and not _begins(tokens, first - before):
        before += 1
    while behind < MAX_PHRASE and not _begins(tokens, end + behind):
        behind += 1
    first, end = first - before, end + behind
    return _begins(tokens, first) and _begins(tokens, end) and _are_names(tokens, first, end, phrases)


@kernel(callee=True)
def _are_names(tokens: Tokens, first: int, end: int, phrases: Phrases) -> bool:
    """Whether each piece of tokens[first:end] is the name of an emoticon."""
    position = np.int64(first)
    while position < end:
        stop = position + 1
        while stop < end and not _begins(tokens, stop):
            stop += 1
        row = find(phrases, hash_of(tokens.chars, tokens.starts[position], tokens.starts[stop]))
        if row < 0 or not phrases.roles[row] & EMOTICON:
            return False
        position = stop
    return True


@kernel(callee=True)
def is_face(tokens: Tokens, first: int, end: int) -> bool:
    """Whether added tokens are a face with one eye of a digit: o_0, 0_o.

    Not 0_0: 0 - 0 has the same body, and is a result. Not 0.0, which beer has as a name. With a number beside
    it, a face is a number of a row.
    """
    if end - first != _FACE or _is_number(tokens, first - 1) or _is_number(tokens, end):
        return False
    return (_is_one(tokens, first, _ZERO) and _is_one(tokens, first + 1, _O)) or (
        _is_one(tokens, first, _O) and _is_one(tokens, first + 1, _ZERO)
    )


@kernel(callee=True)
def _is_number(tokens: Tokens, position: int) -> bool:
    """Whether a token exists and has digits."""
    return 0 <= position < tokens.counts[0] and (
        tokens.kinds[position] == NUMBER or tokens.kinds[position] == MIX
    )


@kernel(callee=True)
def _is_one(tokens: Tokens, position: int, char: np.uint32) -> bool:
    """Whether a token is this character alone."""
    start = tokens.starts[position]
    return tokens.starts[position + 1] - start == 1 and tokens.chars[start] == char
