"""Two texts side by side, with the words marked that differ for the comparison.

What a body does not hold is not marked: case, width, blanks, punctuation, links and @names. As in
`stages/differ`, a word is letters and digits of a script with blanks, or one character of a script without.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

import numpy as np

from twinsieve.stages.text.code_point_tables import DIGIT, JOINER, LETTER, MARK, SEPARATOR, UNSPACED, tables

_MAX_COMPARED = 2_000
"""The most characters of a text that are shown beside another."""
_WORDS = (2_000, 1_600, 1_200, 1_000, 800, 600, 400, 200)
_MAX_EQUAL_WORDS = 50_000
"""The most pairs of equal words, one of each text, that are compared. Texts of two words alone have millions,
and take difflib minutes."""
_LONGEST_BRIDGE = 3
"""Letters of an equal word that is marked too if it stands alone between two marks, as in `stages/differ`."""
_REFERENCE = re.compile(r"https?://[!-~]+|[@＠][\w-]+", re.IGNORECASE)
_AROUND = 100


class Part(NamedTuple):
    """A part of two texts. same: whether it has the same words in both; else each has its own, or none"""

    left: str
    right: str
    same: bool


class _Words(NamedTuple):
    """The words of a text. starts, ends: of each in the text; keys: each as it is compared"""

    starts: list[int]
    ends: list[int]
    keys: list[str]


def parts_of(left: str, right: str, most: int = _MAX_COMPARED) -> list[Part]:
    """The first `most` characters of both texts as parts that have the same words or not, in turns.

    Only a limited number of words is compared, so that texts made to be slow cost no more than others; the
    rest is one part that is not the same. Texts without any word are the same only if they are equal.

    >>> [(part.left, part.right) for part in parts_of("12 dead, HOW sad", "13 dead – how sad!")]
    [('12', '13'), (' dead, HOW sad', ' dead – how sad!')]
    """
    left, right = left[:most], right[:most]
    words, others = _words_of(left), _words_of(right)
    if not words.keys and not others.keys:
        return [Part(left, right, left == right)] if left or right else []
    parts: list[Part] = []
    at, at_right = 0, 0
    for low, high, low_right, high_right in _differing(words.keys, others.keys):
        begin, end = _span(words, low, high, len(left))
        begin_right, end_right = _span(others, low_right, high_right, len(right))
        if at < begin or at_right < begin_right:
            parts.append(Part(left[at:begin], right[at_right:begin_right], same=True))
        parts.append(Part(left[begin:end], right[begin_right:end_right], same=False))
        at, at_right = end, end_right
    if at < len(left) or at_right < len(right):
        parts.append(Part(left[at:], right[at_right:], same=True))
    return parts


def alike_at_ends(left: str, right: str) -> tuple[int, int]:
    """Numbers of characters with which both texts begin and end, without a word that the ends cut, if the
    blank before or behind it is near; the two parts do not overlap.

    >>> alike_at_ends("so 12 dead", "so 13 dead"), alike_at_ends("aaa", "aaaa")
    ((3, 5), (0, 0))
    """
    begin = _alike_at_start(left, right)
    begin = _back_to_blank(left, right, begin)
    back, back_right = left[begin:][::-1], right[begin:][::-1]
    return begin, _back_to_blank(back, back_right, _alike_at_start(back, back_right))


def _alike_at_start(left: Sequence[str], right: Sequence[str]) -> int:
    """With how many characters or words both begin, found in halves: slices are compared as memory."""
    low, high = 0, min(len(left), len(right))
    while low < high:
        middle = (low + high + 1) // 2
        if left[low:middle] == right[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _back_to_blank(left: str, right: str, end: int) -> int:
    if end == len(left) == len(right):
        return end
    for place in range(end, max(0, end - _AROUND), -1):
        if left[place - 1].isspace():
            return place
    return max(0, end - _AROUND)


def _words_of(text: str) -> _Words:
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), "<u4")
    properties = tables().properties[codes]
    inside = properties & (LETTER | MARK) > 0
    digits = properties & DIGIT > 0
    for mark, sides in ((JOINER, inside), (SEPARATOR, digits)):
        between = np.zeros(len(codes), bool)
        between[1:-1] = (properties[1:-1] & mark > 0) & sides[:-2] & sides[2:]
        inside = inside | between
    for found in _REFERENCE.finditer(text):
        inside[found.start() : found.end()] = False
    unspaced = inside & (properties & UNSPACED > 0)
    before, unspaced_before = np.zeros(len(codes), bool), np.zeros(len(codes), bool)
    before[1:], unspaced_before[1:] = inside[:-1], unspaced[:-1]
    is_start = inside & (~before | (unspaced | unspaced_before) & (properties & MARK == 0))
    starts = np.flatnonzero(is_start)
    borders = np.append(np.flatnonzero(is_start | ~inside), len(codes))
    ends = borders[np.searchsorted(borders, starts, side="right")].tolist()
    keys = [_key(text[start:end]) for start, end in zip(starts.tolist(), ends, strict=True)]
    return _Words(starts.tolist(), ends, keys)


def _key(word: str) -> str:
    return unicodedata.normalize("NFKC", word).casefold().replace("\u2019", "'")


def _span(words: _Words, low: int, high: int, length: int) -> tuple[int, int]:
    """Begin and end in the text of these words; without words, the place before the next one."""
    if low < high:
        return words.starts[low], words.ends[high - 1]
    place = words.starts[low] if low < len(words.starts) else length
    return place, place


def _differing(left: Sequence[str], right: Sequence[str]) -> list[tuple[int, int, int, int]]:
    """The runs of words in which two texts differ: first and end in the left one, and in the right one."""
    begin = _alike_at_start(left, right)
    end = _alike_at_start(left[begin:][::-1], right[begin:][::-1])
    left_end, right_end = len(left) - end, len(right) - end
    compared = _comparable(left[begin:left_end], right[begin:right_end])
    low_end, high_end = min(begin + compared, left_end), min(begin + compared, right_end)
    matcher = SequenceMatcher(None, left[begin:low_end], right[begin:high_end], autojunk=False)
    runs = [
        (low + begin, high + begin, low_right + begin, high_right + begin)
        for kind, low, high, low_right, high_right in matcher.get_opcodes()
        if kind != "equal"
    ]
    if low_end < left_end or high_end < right_end:
        runs.append((low_end, left_end, high_end, right_end))
    joined: list[tuple[int, int, int, int]] = []
    for low, high, low_right, high_right in runs:
        if joined:
            first, end, first_right, end_right = joined[-1]
            bridge = left[end:low]
            replaces = (first < end and first_right < end_right) or (low < high and low_right < high_right)
            if len(bridge) <= 1 and (not bridge or (replaces and len(bridge[0]) <= _LONGEST_BRIDGE)):
                joined[-1] = first, high, first_right, high_right
                continue
        joined.append((low, high, low_right, high_right))
    return joined


def _comparable(left: Sequence[str], right: Sequence[str]) -> int:
    """How many words of both may be compared: difflib looks at each two equal words, for each part."""
    for count in _WORDS:
        words, others = Counter(left[:count]), Counter(right[:count])
        if sum(number * others[word] for word, number in words.items()) <= _MAX_EQUAL_WORDS:
            return count
    return _WORDS[-1]
