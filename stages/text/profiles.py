"""The profiles' rules on packed NFKC text: what is dropped before letters are taken, by linear scans.

Every rule replaces what it matches by one blank (a hashtag by a lone `#` between blanks), like the regular
expressions it stands for, and sees the text that the rule before it left. All look-aheads are bounded by a
constant, so a row costs time linear in its length whatever it holds.

microblog: 收起全文/展开全文, URLs, 网页链接, #hashtags#, the //@repost: chain, a place tag at the end,
    video tails, card marks (kept as CARD_MARK, which no word contains), @names
plain: URLs, `RT` before @, @names
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stages.kernel import kernel
from stages.text.tables import (
    CARD_MARK,
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

LONGEST_TAG = 80
LONGEST_NAME = 30
LONGEST_REPOST_NAME = 40
LONGEST_PLACE = 24
OWN_WORDS = 8
"""A repost chain is cut off when at least so many letters stand before it; else only its markers go."""

_BLANK, _NEWLINE = ord(" "), ord("\n")
_HASH, _SLASH, _AT, _COLON, _QUESTION = ord("#"), ord("/"), ord("@"), ord(":"), ord("?")
_DOT, _MIDDLE_DOT, _DASH, _UNDERSCORE, _BRACKET = ord("."), ord("·"), ord("-"), ord("_"), ord("]")
_C, _D, _H, _L, _O, _P, _R, _S, _T, _W = (ord(c) for c in "cdhLOpRstw")
_CAPITAL_T, _TWO = ord("T"), ord("2")
_LOWER = 32
_UNFOLD = np.array([ord(c) for c in "收起展开全文"], dtype=np.uint32)
_LINK = np.array([ord(c) for c in "网页链接"], dtype=np.uint32)
_VIDEO = np.array([ord(c) for c in "的微博秒拍视频"], dtype=np.uint32)
_NOT_A_PLACE = np.array([ord(c) for c in "月日号天个位人岁例年次名"], dtype=np.uint32)


@kernel
def _is_han(code: int) -> bool:
    return 0x4E00 <= code <= 0x9FFF


@kernel
def _is_word(code: int, properties: NDArray[np.uint32]) -> bool:
    return (properties[code] & LETTER) != 0 or code == _UNDERSCORE


@kernel
def _is_url_char(code: int) -> bool:
    # dotted capital I and dotless i fold to ASCII letters, so a caseless pattern for ASCII takes them too
    return 0x21 <= code <= 0x7E or code == 0x130 or code == 0x131


@kernel
def _url_head(t: NDArray[np.uint32], i: int, n: int) -> int:
    """Characters of `http://`, `https://` or `www.` at i, any case; 0 for none."""
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


@kernel
def _drop_unfold(t: NDArray[np.uint32], n: int) -> int:
    """收起全文 with an optional d, 展开全文 with an optional c."""
    r = w = 0
    while r < n:
        code = t[r]
        if (code == _UNFOLD[0] or code == _UNFOLD[2]) and r + 3 < n:
            first = 0 if code == _UNFOLD[0] else 2
            if t[r + 1] == _UNFOLD[first + 1] and t[r + 2] == _UNFOLD[4] and t[r + 3] == _UNFOLD[5]:
                r += 4
                if r < n and t[r] == (_D if first == 0 else _C):
                    r += 1
                t[w] = _BLANK
                w += 1
                continue
        t[w] = code
        w += 1
        r += 1
    return w


@kernel
def _drop_urls(t: NDArray[np.uint32], n: int) -> int:
    r = w = int(np.int64(0))  # a literal would compile `_url_head` once more
    while r < n:
        head = _url_head(t, r, n)
        if head and r + head < n and _is_url_char(t[r + head]):
            r += head
            while r < n and _is_url_char(t[r]):
                r += 1
            t[w] = _BLANK
            w += 1
            continue
        t[w] = t[r]
        w += 1
        r += 1
    return w


@kernel
def _drop_links(t: NDArray[np.uint32], n: int) -> int:
    """网页链接 and the card mark O that touches it."""
    r = w = 0
    while r < n:
        code = t[r]
        r += 1
        if (
            code == _LINK[0]
            and r + 2 < n
            and t[r] == _LINK[1]
            and t[r + 1] == _LINK[2]
            and t[r + 2] == _LINK[3]
        ):
            if w > 0 and t[w - 1] == _O:
                w -= 1
            code = np.uint32(_BLANK)
            r += 3
        t[w] = code
        w += 1
    return w


@kernel
def _drop_tags(t: NDArray[np.uint32], n: int) -> int:
    """#hashtag# of 1 to LONGEST_TAG characters on one line."""
    r = w = 0
    while r < n:
        if t[r] == _HASH:
            stop = min(n, r + LONGEST_TAG + 2)
            k = r + 1
            while k < stop and t[k] != _HASH and t[k] != _NEWLINE:
                k += 1
            if k < stop and t[k] == _HASH and k > r + 1:
                t[w] = _BLANK
                t[w + 1] = _HASH
                t[w + 2] = _BLANK
                w += 3
                r = k + 1
                continue
        t[w] = t[r]
        w += 1
        r += 1
    return w


@kernel
def _drop_chain(t: NDArray[np.uint32], n: int, properties: NDArray[np.uint32]) -> int:
    """What follows the first //@, or only the markers `//@name:` when few letters stand before it."""
    first = -1
    for i in range(n - 2):
        if t[i] == _SLASH and t[i + 1] == _SLASH and t[i + 2] == _AT:
            first = i
            break
    if first < 0:
        return n
    letters = 0
    for i in range(first):
        if properties[t[i]] & LETTER:
            letters += 1
            if letters == OWN_WORDS:
                return first
    r = w = 0
    while r < n:
        if t[r] == _SLASH and r + 1 < n and t[r + 1] == _SLASH:
            k = r + 2
            while k < n and properties[t[k]] & SPACE:
                k += 1
            if k < n and t[k] == _AT:
                name = k + 1
                stop = min(n, name + LONGEST_REPOST_NAME + 1)
                k = name
                while k < stop and t[k] != _COLON and t[k] != _NEWLINE:
                    k += 1
                if k < stop and t[k] == _COLON and k > name:
                    t[w] = _BLANK
                    w += 1
                    r = k + 1
                    continue
        t[w] = t[r]
        w += 1
        r += 1
    return w


@kernel
def _drop_place(t: NDArray[np.uint32], n: int, properties: NDArray[np.uint32]) -> int:
    """A place tag at the end: a blank, `2`, then Han characters, unless they read like a count or date."""
    end = n
    while end > 0 and (t[end - 1] == _QUESTION or properties[t[end - 1]] & SPACE):
        end -= 1
    begin = end
    shortest = max(0, end - LONGEST_PLACE - 1)
    while begin > shortest and (_is_han(t[begin - 1]) or t[begin - 1] == _MIDDLE_DOT):
        begin -= 1
    length = end - begin
    if length < 2 or length > LONGEST_PLACE or begin < 2:
        return n
    if t[begin - 1] != _TWO or not properties[t[begin - 2]] & SPACE:
        return n
    for k in range(len(_NOT_A_PLACE)):
        if t[begin] == _NOT_A_PLACE[k]:
            return n
    t[begin - 1] = _BLANK
    return begin


@kernel
def _video_end(
    t: NDArray[np.uint32], name: int, n: int, shortest: int, strict: bool, properties: NDArray[np.uint32]
) -> int:
    """End of `name的微博视频` with the longest name from `name` on, or 0; a strict name has no L, # or @."""
    end = 0
    for k in range(name, min(n - 4, name + LONGEST_NAME + 1)):
        if t[k] == _VIDEO[0] and k - name >= shortest and t[k + 3] == _VIDEO[5] and t[k + 4] == _VIDEO[6]:
            weibo = t[k + 1] == _VIDEO[1] and t[k + 2] == _VIDEO[2]
            if weibo or (t[k + 1] == _VIDEO[3] and t[k + 2] == _VIDEO[4]):
                end = k + 5
        if properties[t[k]] & SPACE or (strict and (t[k] == _L or t[k] == _HASH or t[k] == _AT)):
            break
    return end


@kernel
def _drop_videos(t: NDArray[np.uint32], n: int, properties: NDArray[np.uint32]) -> int:
    """`Lname的微博视频` (or 秒拍) and, at the start of a word, the same without L."""
    r = w = int(np.int64(0))  # as above, for `_video_end`
    before = _BLANK
    while r < n:
        code = t[r]
        spaced = r == 0 or properties[before] & SPACE != 0
        end = 0
        if code == _L:
            if (spaced and r > 0) or before in (_HASH, _BRACKET):
                end = _video_end(t, r + 1, n, 1, False, properties)
            if end == 0:
                end = _video_end(t, r + 1, n, 0, True, properties)
        if end == 0 and spaced:
            end = _video_end(t, r, n, 1, False, properties)
        if end:
            before = t[end - 1]
            t[w] = _BLANK
            r = end
        else:
            before = code
            t[w] = code
            r += 1
        w += 1
    return w


@kernel
def _mark_cards(t: NDArray[np.uint32], n: int, properties: NDArray[np.uint32]) -> None:
    """A lone L or O at the start of a word and before a non-ASCII character becomes CARD_MARK."""
    for i in range(n - 1):
        if (t[i] == _L or t[i] == _O) and t[i + 1] > 127 and (i == 0 or properties[t[i - 1]] & SPACE):
            t[i] = CARD_MARK


@kernel
def _drop_retweets(t: NDArray[np.uint32], n: int, properties: NDArray[np.uint32]) -> int:
    """`RT` and the blanks after it, before an @."""
    r = w = 0
    before = _BLANK
    while r < n:
        code = t[r]
        if code == _R and r + 2 < n and t[r + 1] == _CAPITAL_T and not _is_word(before, properties):
            k = r + 2
            while k < n and properties[t[k]] & SPACE:
                k += 1
            if k > r + 2 and k < n and t[k] == _AT:
                before = _BLANK
                t[w] = _BLANK
                w += 1
                r = k
                continue
        before = code
        t[w] = code
        w += 1
        r += 1
    return w


@kernel
def _drop_names(t: NDArray[np.uint32], n: int, properties: NDArray[np.uint32]) -> int:
    """@ and up to LONGEST_NAME letters, digits, `_`, `-` or `·`."""
    r = w = 0
    while r < n:
        if t[r] == _AT:
            k = r + 1
            stop = min(n, k + LONGEST_NAME)
            while k < stop and (_is_word(t[k], properties) or t[k] == _DASH or t[k] == _MIDDLE_DOT):
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
    """Drop what the profile drops: row i shrinks in place to chars[starts[i]:ends[i]].

    bits: uint32[n], property bits that occur in each row; rules whose characters are absent are skipped
    """
    for row in range(len(starts) - 1):
        t = chars[starts[row] : starts[row + 1]]
        n = len(t)
        has = bits[row]
        if microblog and has & HAS_UNFOLD:
            n = _drop_unfold(t, n)
        if has & (HAS_SLASH | HAS_W):
            n = _drop_urls(t, n)
        if microblog:
            if has & HAS_LINK:
                n = _drop_links(t, n)
            if has & HAS_TAG:
                n = _drop_tags(t, n)
            if has & HAS_SLASH and has & HAS_AT:
                n = _drop_chain(t, n, properties)
            if has & HAS_TWO:
                n = _drop_place(t, n, properties)
            if has & HAS_VIDEO:
                n = _drop_videos(t, n, properties)
            if has & HAS_CARD:
                _mark_cards(t, n, properties)
        elif has & HAS_AT and has & HAS_R:
            n = _drop_retweets(t, n, properties)
        if has & HAS_AT:
            n = _drop_names(t, n, properties)
        ends[row] = starts[row] + n
