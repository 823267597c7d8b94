"""The rules of the profiles: what they drop from packed NFKC text before a body is made of the rest.

Each rule works like a regular expression whose matches are replaced by one blank (a hashtag by a lone `#`
between blanks), and works on the result of the rule before. A rule looks ahead only a constant number of
characters, so the time for a row is always linear in its length.

The rules in their order:
microblog: 收起全文/展开全文, URLs, 网页链接, #hashtags#, the //@repost: chain, a place tag at the end, video
    tails, card marks (replaced by CARD_MARK, which no word contains), @names
plain: URLs, `RT` before @, @names
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.kernel import ZERO, kernel
from twinsieve.stages.text.code_point_tables import (
    HAS_AT,
    HAS_CARD,
    HAS_LINK,
    HAS_R,
    HAS_SLASH,
    HAS_TAG,
    HAS_TWO,
    HAS_UNFOLD,
    HAS_VIDEO,
    HAS_W,
    LETTER,
    SPACE,
)
from twinsieve.stages.text.profiles_microblog import (
    drop_chain,
    drop_links,
    drop_place,
    drop_tags,
    drop_unfold,
    drop_videos,
    mark_cards,
)

MAX_NAME_LENGTH = 30

_BLANK, _SLASH, _AT, _COLON, _DOT = ord(" "), ord("/"), ord("@"), ord(":"), ord(".")
_MIDDLE_DOT, _DASH, _UNDERSCORE, _TATWEEL = ord("·"), ord("-"), ord("_"), 0x0640
_H, _P, _R, _S, _T, _W, _CAPITAL_T = (ord(c) for c in "hpRstwT")
_LOWER = 32


@kernel(callee=True)
def is_word(code: np.uint32, properties: NDArray[np.uint32]) -> bool:
    """Whether a character belongs to a word: a letter, a digit, `_`, or the tatweel that stretches a word."""
    return bool((properties[code] & LETTER) != 0 or code in (_UNDERSCORE, _TATWEEL))


@kernel(callee=True)
def is_url_char(code: int) -> bool:
    """Whether a URL continues with this character."""
    # U+0130 (İ) and U+0131 (ı) fold to ASCII letters, so a case-insensitive ASCII pattern matches them too.
    return 0x21 <= code <= 0x7E or code == 0x130 or code == 0x131


@kernel(callee=True)
def url_head(t: NDArray[np.uint32], i: int, n: int) -> int:
    """Length of the `http://`, `https://` or `www.` that begins at i, in any case; 0 if there is none."""
    lower = t[i] | _LOWER
    if lower == _W:
        if i + 4 < n and (t[i + 1] | _LOWER) == _W and (t[i + 2] | _LOWER) == _W and t[i + 3] == _DOT:
            return 4
        return 0
    if lower != _H or i + 7 >= n:
        return 0
    if (t[i + 1] | _LOWER) != _T or (t[i + 2] | _LOWER) != _T or (t[i + 3] | _LOWER) != _P:
        return 0
    k = i + 5 if (t[i + 4] | _LOWER) == _S else i + 4
    if k + 2 < n and t[k] == _COLON and t[k + 1] == _SLASH and t[k + 2] == _SLASH:
        return k + 3 - i
    return 0


@kernel(callee=True)
def _drop_urls(t: NDArray[np.uint32], n: int) -> int:
    r = w = ZERO
    while r < n:
        head = url_head(t, r, n)
        if head and r + head < n and is_url_char(t[r + head]):
            r += head
            while r < n and is_url_char(t[r]):
                r += 1
            t[w] = _BLANK
            w += 1
            continue
        t[w] = t[r]
        w += 1
        r += 1
    return w


@kernel(callee=True)
def _drop_retweets(t: NDArray[np.uint32], n: int, properties: NDArray[np.uint32]) -> int:
    """Drop `RT` and the blanks after it if an @ follows. returns: number of characters left"""
    r = w = 0
    # With a plain integer, Numba would compile `is_word` a second time, for that argument type.
    before = np.uint32(_BLANK)
    while r < n:
        code = t[r]
        if code == _R and r + 2 < n and t[r + 1] == _CAPITAL_T and not is_word(before, properties):
            k = r + 2
            while k < n and properties[t[k]] & SPACE:
                k += 1
            if k > r + 2 and k < n and t[k] == _AT:
                before = np.uint32(_BLANK)
                t[w] = _BLANK
                w += 1
                r = k
                continue
        before = code
        t[w] = code
        w += 1
        r += 1
    return w


@kernel(callee=True)
def _drop_names(t: NDArray[np.uint32], n: int, properties: NDArray[np.uint32]) -> int:
    """Drop each @ with up to MAX_NAME_LENGTH letters, digits, `_`, `-` or `·`. returns: characters left"""
    r = w = 0
    while r < n:
        if t[r] == _AT:
            k = r + 1
            stop = min(n, k + MAX_NAME_LENGTH)
            while k < stop and (is_word(t[k], properties) or t[k] == _DASH or t[k] == _MIDDLE_DOT):
                k += 1
            if k > r + 1:
                t[w] = _BLANK
                w += 1
                r = k
                continue
        t[w] = t[r]
        w += 1
        r += 1
    return w


@kernel
def apply_profile(
    chars: NDArray[np.uint32],
    starts: NDArray[np.int64],
    bits: NDArray[np.uint32],
    microblog: bool,
    properties: NDArray[np.uint32],
    ends: NDArray[np.int64],
) -> None:
    """Apply the rules of the profile in place: row i shrinks to chars[starts[i]:ends[i]].

    bits: uint32[n], property bits of all characters of each row. A rule is skipped for rows that lack a
        character it needs
    """
    for row in range(len(starts) - 1):
        t = chars[starts[row] : starts[row + 1]]
        n = len(t)
        has = bits[row]
        if microblog and has & HAS_UNFOLD:
            n = drop_unfold(t, n)
        if has & (HAS_SLASH | HAS_W):
            n = _drop_urls(t, n)
        if microblog:
            if has & HAS_LINK:
                n = drop_links(t, n)
            if has & HAS_TAG:
                n = drop_tags(t, n, properties)
            if has & HAS_SLASH and has & HAS_AT:
                n = drop_chain(t, n, properties)
            if has & HAS_TWO:
                n = drop_place(t, n, properties)
            if has & HAS_VIDEO:
                n = drop_videos(t, n, properties)
            if has & HAS_CARD:
                mark_cards(t, n, properties)
        elif has & HAS_AT and has & HAS_R:
            n = _drop_retweets(t, n, properties)
        if has & HAS_AT:
            n = _drop_names(t, n, properties)
        ends[row] = starts[row] + n
