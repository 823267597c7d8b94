"""References: links, @names and tags of a message, as short tokens after its body (`text.compare`).

The profile drops links, names and tags from the body. Their hashes after the body still show if two messages
differ in one of them. A token is two private-use characters, which encode the kind and the hash; bodies
contain no such characters otherwise. The tokens of a row are sorted without repeats, so a tag at another
place changes nothing.

The hash of a link leaves out `http://`, `www.`, and punctuation and slashes at its end, and has the host in
lower case. Names and tags are hashed in lower case (ASCII letters only). There are no tokens for links, names
and tags inside a repost chain that is cut off, for the names of `//@name:` and `RT @name`, and for a # with a
number ("#1"). A row with more than MAX_REFERENCES has no tokens at all.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.intrinsics import FNV_OFFSET, FNV_PRIME, mix64
from twinsieve.stages.kernel import ZERO, kernel
from twinsieve.stages.text.code_point_tables import DIGIT, LETTER, MARK, SPACE
from twinsieve.stages.text.profiles import MAX_NAME_LENGTH, is_url_char, is_word, url_head
from twinsieve.stages.text.profiles_microblog import (
    MAX_REPOST_NAME_LENGTH,
    MAX_TAG_LENGTH,
    OWN_WORDS,
    closed_tag_end,
)

MAX_REFERENCES = 16
FIRST_REFERENCE = 0xF0000
"""Code points from here on are used only in tokens. The first character of a token begins here."""
SECOND_HALF = 0x100000
"""The second character of a token begins here."""
HALVES = 0xFFFE
"""Number of private-use characters of plane 15, and also of plane 16."""
PER_KIND = HALVES // 3
"""Number of first characters for each kind: first those of links, then of @names, then of tags."""

_LINK, _MENTION, _TAG = (cast("int", np.int64(kind)) for kind in range(3))
_BITS = {"links": 1, "mentions": 2, "tags": 4}
_HASH, _SLASH, _AT, _COLON, _NEWLINE = (ord(c) for c in "#/@:\n")
_R, _CAPITAL_T, _W = (ord(c) for c in "RTw")
_MIDDLE_DOT, _DASH, _UNDERSCORE = (ord(c) for c in "·-_")
_CAPITAL_A, _CAPITAL_Z, _LOWER = ord("A"), ord("Z"), 32
_LINK_ENDS = np.array([ord(c) for c in "/.,;:!?'\")]}>"], dtype=np.uint32)


class References(NamedTuple):
    """The references of n rows.

    kinds: bits of the wanted kinds: 1 links, 2 mentions, 4 tags; if 0, chars and counts are empty
    chars: uint32[total], two characters for each reference; those of row i begin at starts[i]
    starts: int64[n + 1], the row starts of the text
    counts: int64[n], number of references; MAX_REFERENCES + 1 stands for any greater number
    """

    kinds: int
    chars: NDArray[np.uint32]
    starts: NDArray[np.int64]
    counts: NDArray[np.int64]


def new_references(compare: Collection[str], starts: NDArray[np.int64]) -> References:
    """Memory for the references of rows that begin at `starts`; no references yet."""
    kinds = sum(_BITS[name] for name in set(compare))
    total, rows = (int(starts[-1]), len(starts) - 1) if kinds else (0, 0)
    # The length of the text is enough room: each reference takes at least two characters of the text.
    return References(kinds, np.zeros(total, np.uint32), starts, np.zeros(rows, np.int64))


@kernel(callee=True)
def _note(t: NDArray[np.uint32], first: int, end: int, kind: int, row: int, references: References) -> None:
    """Add t[first:end] to the sorted references of a row, unless its kind is not wanted or it is there."""
    if not (references.kinds >> kind) & 1 or references.counts[row] > MAX_REFERENCES:
        return
    value = FNV_OFFSET
    lower = True
    for k in range(first, end):
        code = t[k]
        if lower and _CAPITAL_A <= code <= _CAPITAL_Z:
            code |= np.uint32(_LOWER)
        value = (value ^ np.uint64(code)) * FNV_PRIME
        lower = lower and (kind != _LINK or code != _SLASH)
    value = mix64(value)
    half = np.uint32(FIRST_REFERENCE + kind * PER_KIND + np.int64(value >> np.uint64(33)) % PER_KIND)
    other = np.uint32(SECOND_HALF + np.int64(value & np.uint64(0xFFFFFFFF)) % HALVES)
    chars, start, count = references.chars, references.starts[row], references.counts[row]
    place = ZERO
    while place < count:
        cell = start + 2 * place
        if chars[cell] > half or (chars[cell] == half and chars[cell + 1] >= other):
            break
        place += 1
    cell = start + 2 * place
    if place < count and chars[cell] == half and chars[cell + 1] == other:
        return
    references.counts[row] = count + 1
    if count == MAX_REFERENCES:
        return
    for k in range(start + 2 * count - 1, cell - 1, -1):
        chars[k + 2] = chars[k]
    chars[cell], chars[cell + 1] = half, other


@kernel(callee=True)
def _link_end(t: NDArray[np.uint32], i: int, head: int, n: int, row: int, references: References) -> int:
    """Note the link that begins at i. head: length of its `http://` or `www.`; returns: where it ends"""
    first = end = i + head
    while end < n and is_url_char(t[end]):
        end += 1
    if t[i] | _LOWER != _W and url_head(t, first, n) == 4:
        first += 4
    last = end
    while last > first:
        ends = False
        for k in range(len(_LINK_ENDS)):
            ends |= t[last - 1] == _LINK_ENDS[k]
        if not ends:
            break
        last -= 1
    if last > first:
        _note(t, first, last, _LINK, row, references)
    return end


@kernel(callee=True)
def _tag_end(
    t: NDArray[np.uint32],
    i: int,
    n: int,
    microblog: bool,
    row: int,
    properties: NDArray[np.uint32],
    references: References,
) -> int:
    """Note the tag that begins with the # at i, if there is one.

    microblog: tags may be written #tag#; returns: where the tag ends, or i
    """
    if microblog:
        closed = closed_tag_end(t, i, n, properties)
        if closed > i:
            _note(t, i + 1, closed - 1, _TAG, row, references)
            return closed
    if i > 0 and is_word(t[i - 1], properties):
        return i
    stop = min(n, i + MAX_TAG_LENGTH + 1)
    k = i + 1
    named = False
    while k < stop and (is_word(t[k], properties) or properties[t[k]] & MARK):
        named |= not properties[t[k]] & DIGIT
        k += 1
    if named:
        _note(t, i + 1, k, _TAG, row, references)
    return k if named else i


@kernel(callee=True)
def _is_retweet(t: NDArray[np.uint32], sign: int, properties: NDArray[np.uint32]) -> bool:
    """Whether `RT` and a blank stand before the @ at `sign`."""
    k = sign - 1
    while k >= 0 and properties[t[k]] & SPACE:
        k -= 1
    if k == sign - 1 or k < 1 or t[k] != _CAPITAL_T or t[k - 1] != _R:
        return False
    return k == 1 or not is_word(t[k - 2], properties)


@kernel(callee=True)
def _marker_end(t: NDArray[np.uint32], i: int, n: int, properties: NDArray[np.uint32]) -> int:
    """Where the repost marker `//@name:` that begins at i ends; i if there is none."""
    k = i + 2
    while k < n and properties[t[k]] & SPACE:
        k += 1
    if k == n or t[k] != _AT:
        return i
    name = k + 1
    stop = min(n, name + MAX_REPOST_NAME_LENGTH + 1)
    k = name
    while k < stop and t[k] != _COLON and t[k] != _NEWLINE:
        k += 1
    return k + 1 if k < stop and t[k] == _COLON and k > name else i


@kernel
def find_references(
    chars: NDArray[np.uint32], microblog: bool, properties: NDArray[np.uint32], references: References
) -> None:
    """Find the references in NFKC text. Call it before the profile drops parts of the text."""
    for row in range(len(references.counts)):
        t = chars[references.starts[row] : references.starts[row + 1]]
        n = len(t)
        letters = ZERO
        chained = False
        i = ZERO
        while i < n:
            code = t[i]
            head = url_head(t, i, n)
            if head and i + head < n and is_url_char(t[i + head]):
                i = _link_end(t, i, head, n, row, references)
                continue
            after = i
            if code == _HASH:
                after = _tag_end(t, i, n, microblog, row, properties, references)
            elif microblog and code == _SLASH and i + 1 < n and t[i + 1] == _SLASH:
                if i + 2 < n and t[i + 2] == _AT:
                    if not chained and letters >= OWN_WORDS:
                        break
                    chained = True
                after = _marker_end(t, i, n, properties)
            elif code == _AT:
                stop = min(n, i + 1 + MAX_NAME_LENGTH)
                end = i + 1
                while end < stop and (
                    is_word(t[end], properties) or t[end] == _DASH or t[end] == _MIDDLE_DOT
                ):
                    letters += properties[t[end]] & LETTER != 0
                    end += 1
                if end > i + 1:
                    if not _is_retweet(t, i, properties):
                        _note(t, i + 1, end, _MENTION, row, references)
                    after = end
            letters += properties[code] & LETTER != 0
            i = after if after > i else i + 1


@kernel(callee=True)
def write_references(
    references: References, row: int, out: NDArray[np.uint32], word_starts: NDArray[np.uint8], w: int
) -> int:
    """Write the references of a row to out[w:]. returns: number of characters written"""
    count = references.counts[row]
    if count > MAX_REFERENCES:
        return ZERO
    for k in range(2 * count):
        out[w + k] = references.chars[references.starts[row] + k]
        word_starts[w + k] = k % 2 == 0
    return int(2 * count)


def without_references(body: str) -> str:
    """A body as people can read it: each reference is replaced by the name of its kind.

    >>> without_references("今天" + chr(FIRST_REFERENCE) + chr(SECOND_HALF))
    '今天 [link]'
    """
    names = ("link", "mention", "tag")
    shown = []
    for char in body:
        code = ord(char)
        if code < FIRST_REFERENCE:
            shown.append(char)
        elif code < SECOND_HALF:
            shown.append(f" [{names[min((code - FIRST_REFERENCE) // PER_KIND, 2)]}]")
    return "".join(shown)
