"""The rules that only the profile `microblog` has, on packed NFKC text; `profiles.py` calls them in order.

Each function changes the first n characters of t in place. A `drop_` function returns the number of
characters that are left.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.kernel import NO, YES, ZERO, kernel
from twinsieve.stages.text.code_point_tables import CARD_MARK, LETTER, SPACE

MAX_TAG_LENGTH = 80
MAX_REPOST_NAME_LENGTH = 40
MAX_VIDEO_NAME_LENGTH = 30
MAX_PLACE_LENGTH = 24
OWN_WORDS = 8
"""If at least this many letters stand before a repost chain, the whole chain is dropped; else only its
markers are dropped."""

_BLANK, _NEWLINE = ord(" "), ord("\n")
_HASH, _SLASH, _AT, _COLON, _QUESTION = ord("#"), ord("/"), ord("@"), ord(":"), ord("?")
_MIDDLE_DOT, _BRACKET = ord("·"), ord("]")
_OPENS_A_TAG = tuple(map(ord, "'\u2018\u2019([{\"\u201c\u00ab/"))
_C, _D, _L, _O, _TWO = (ord(c) for c in "cdLO2")
_UNFOLD = np.array([ord(c) for c in "收起展开全文"], dtype=np.uint32)
_LINK = np.array([ord(c) for c in "网页链接"], dtype=np.uint32)
_VIDEO = np.array([ord(c) for c in "的微博秒拍视频"], dtype=np.uint32)
_NOT_A_PLACE = np.array([ord(c) for c in "月日号天个位人岁例年次名"], dtype=np.uint32)


@kernel(callee=True)
def _is_han(code: int) -> bool:
    return 0x4E00 <= code <= 0x9FFF


@kernel(callee=True)
def drop_unfold(t: NDArray[np.uint32], n: int) -> int:
    """Drop 收起全文 with an optional d after it, and 展开全文 with an optional c."""
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


@kernel(callee=True)
def drop_links(t: NDArray[np.uint32], n: int) -> int:
    """Drop 网页链接, and the card mark O if it stands right before it."""
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


@kernel(callee=True)
def closed_tag_end(t: NDArray[np.uint32], i: int, n: int, properties: NDArray[np.uint32]) -> int:
    """Index after the #hashtag# that begins with the # at i; i if there is none.

    It has 1 to MAX_TAG_LENGTH characters on one line, and no blank stands before its second #: there another
    tag begins, as in "#storm in the north #help". A topic of Weibo holds Han characters, kana or Hangul.
    Without any of them it is one word, and the second # touches none of _OPENS_A_TAG: what stands between
    l'#Europe and (#NATO) is text.
    """
    stop = min(n, i + MAX_TAG_LENGTH + 2)
    k = i + 1
    topic, blank = False, False
    while k < stop and t[k] != _HASH and t[k] != _NEWLINE:
        topic = topic or _is_of_topic(t[k])
        blank = blank or properties[t[k]] & SPACE != 0
        k += 1
    if k >= stop or t[k] != _HASH or k == i + 1 or properties[t[k - 1]] & SPACE:
        return i
    if topic:
        return k + 1
    opens = False
    for c in _OPENS_A_TAG:
        opens |= t[k - 1] == c
    return i if blank or opens else k + 1


@kernel(callee=True)
def _is_of_topic(code: int) -> bool:
    """Whether a character is Han, kana or Hangul."""
    return 0x3040 <= code <= 0x318F or 0x3400 <= code <= 0x9FFF or 0xAC00 <= code <= 0xD7AF or code >= 0x20000


@kernel(callee=True)
def drop_tags(t: NDArray[np.uint32], n: int, properties: NDArray[np.uint32]) -> int:
    """Replace each #hashtag# by a `#` between blanks."""
    r = w = ZERO
    while r < n:
        end = closed_tag_end(t, r, n, properties) if t[r] == _HASH else r
        if end > r:
            t[w] = _BLANK
            t[w + 1] = _HASH
            t[w + 2] = _BLANK
            w += 3
            r = end
            continue
        t[w] = t[r]
        w += 1
        r += 1
    return w


@kernel(callee=True)
def drop_chain(t: NDArray[np.uint32], n: int, properties: NDArray[np.uint32]) -> int:
    """Drop the text from the first //@ on; if few letters stand before it, only the markers `//@name:`."""
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
                stop = min(n, name + MAX_REPOST_NAME_LENGTH + 1)
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


@kernel(callee=True)
def drop_place(t: NDArray[np.uint32], n: int, properties: NDArray[np.uint32]) -> int:
    """Drop a place tag at the end: a blank, `2`, then Han characters that are not a count or a date."""
    end = n
    while end > 0 and (t[end - 1] == _QUESTION or properties[t[end - 1]] & SPACE):
        end -= 1
    begin = end
    shortest = max(0, end - MAX_PLACE_LENGTH - 1)
    while begin > shortest and (_is_han(t[begin - 1]) or t[begin - 1] == _MIDDLE_DOT):
        begin -= 1
    length = end - begin
    if length < 2 or length > MAX_PLACE_LENGTH or begin < 2:
        return n
    if t[begin - 1] != _TWO or not properties[t[begin - 2]] & SPACE:
        return n
    for k in range(len(_NOT_A_PLACE)):
        if t[begin] == _NOT_A_PLACE[k]:
            return n
    t[begin - 1] = _BLANK
    return begin


@kernel(callee=True)
def _video_end(t: NDArray[np.uint32], name: int, n: int, strict: bool, properties: NDArray[np.uint32]) -> int:
    """Where a `name的微博视频` (or 秒拍视频) ends whose name begins at `name`, the longest one; 0 if none.

    strict: the name must not contain L, # or @, but may be empty
    """
    end = 0
    shortest = 0 if strict else 1
    for k in range(name, min(n - 4, name + MAX_VIDEO_NAME_LENGTH + 1)):
        if t[k] == _VIDEO[0] and k - name >= shortest and t[k + 3] == _VIDEO[5] and t[k + 4] == _VIDEO[6]:
            weibo = t[k + 1] == _VIDEO[1] and t[k + 2] == _VIDEO[2]
            if weibo or (t[k + 1] == _VIDEO[3] and t[k + 2] == _VIDEO[4]):
                end = k + 5
        if properties[t[k]] & SPACE or (strict and (t[k] == _L or t[k] == _HASH or t[k] == _AT)):
            break
    return end


@kernel(callee=True)
def drop_videos(t: NDArray[np.uint32], n: int, properties: NDArray[np.uint32]) -> int:
    """Drop `Lname的微博视频` (or 秒拍视频); at the start of a word, also the same without L."""
    r = w = ZERO
    before = _BLANK
    while r < n:
        code = t[r]
        spaced = r == 0 or properties[before] & SPACE != 0
        end = 0
        if code == _L:
            if (spaced and r > 0) or before in (_HASH, _BRACKET):
                end = _video_end(t, r + 1, n, NO, properties)
            if end == 0:
                end = _video_end(t, r + 1, n, YES, properties)
        if end == 0 and spaced:
            end = _video_end(t, r, n, NO, properties)
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


@kernel(callee=True)
def mark_cards(t: NDArray[np.uint32], n: int, properties: NDArray[np.uint32]) -> None:
    """Replace an L or O by CARD_MARK if it begins a word and a non-ASCII character follows."""
    for i in range(n - 1):
        if (t[i] == _L or t[i] == _O) and t[i + 1] > 127 and (i == 0 or properties[t[i - 1]] & SPACE):
            t[i] = CARD_MARK
