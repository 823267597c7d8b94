"""Features around punctuation marks: the two tokens before a mark and the two after it.

Bodies have no punctuation, so these features are made of the texts. In a text, HTML entities are replaced,
then come NFKC and case folding. Links, mentions and tags become blanks.
Tokens: a character of an unspaced script, or a word of letters, digits and combining marks of other scripts.
Marks: characters of category P. One that stands directly between two characters of words is part of the word
(1.5, don't) and no mark. Marks with nothing or only blanks between them are one mark.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.fingerprint.dictionary import folded
from twinsieve.stages.fingerprint.dropped import dropped_characters
from twinsieve.stages.fingerprint.features import FeatureConfig
from twinsieve.stages.fingerprint.packed_features import PackedFeatures
from twinsieve.stages.fingerprint.tokens import MULTIPLIER
from twinsieve.stages.intrinsics import mix64
from twinsieve.stages.kernel import ZERO, kernel
from twinsieve.stages.text.compatibility import pack
from twinsieve.stages.text.normalizer import unescaped
from twinsieve.stages.text.profiles import MAX_NAME_LENGTH, is_url_char, is_word, url_head
from twinsieve.stages.text.profiles_microblog import MAX_TAG_LENGTH
from twinsieve.stages.text.scripts import unspaced_table
from twinsieve.stages.text.tables import DIGIT, SPACE, kinds, tables
from twinsieve.stages.text.unicode import CATEGORIES, CATEGORY, IS_ALNUM, IS_SPACE

_OTHER, _SPACE, _WORD, _CHAR, _MARK, _COMBINING, _INVISIBLE, _INSIDE, _DROPPED = range(9)
"""What a character is: anything else; a blank; of a word; a token alone; a mark; a combining mark outside
unspaced scripts; of category Cf; a mark inside a word; taken out by `features.drop`."""

_SIDE = 2
"""Tokens of a feature on each side of the mark."""

_BLANK, _HASH, _AT, _NEWLINE, _BAR = (ord(c) for c in " #@\n|")
_MIDDLE_DOT, _DASH = ord("·"), ord("-")


@cache
def _classes() -> NDArray[np.uint8]:
    """uint8[0x110000], what each character is by itself: one of the codes up to _INVISIBLE."""
    every = kinds()
    names = np.array(CATEGORIES)[every & CATEGORY]
    first = names.astype("<U1")
    unspaced, alnum = unspaced_table(), every & IS_ALNUM != 0
    classes = np.full(len(every), _OTHER, np.uint8)
    classes[every & IS_SPACE != 0] = _SPACE
    classes[first == "M"] = _COMBINING
    classes[alnum] = _WORD
    classes[unspaced & (alnum | (first == "M"))] = _CHAR
    classes[first == "P"] = _MARK
    classes[names == "Cf"] = _INVISIBLE
    return classes


@kernel(callee=True)
def _reference_end(
    t: NDArray[np.uint32],
    i: int,
    n: int,
    before: np.uint32,
    classes: NDArray[np.uint8],
    properties: NDArray[np.uint32],
) -> int:
    """Where the link, mention or tag ends that begins at i; i if there is none. before: character before i"""
    head = url_head(t, i, n)
    if head and i + head < n and is_url_char(t[i + head]):
        k = i + head
        while k < n and is_url_char(t[k]):
            k += 1
        return k
    if t[i] == _AT:
        k = i + 1
        stop = min(n, k + MAX_NAME_LENGTH)
        while k < stop and (is_word(t[k], properties) or t[k] == _DASH or t[k] == _MIDDLE_DOT):
            k += 1
        return k if k > i + 1 else i
    if t[i] != _HASH:
        return i
    stop = min(n, i + MAX_TAG_LENGTH + 2)
    k = i + 1
    while k < stop and t[k] != _HASH and not properties[t[k]] & SPACE:
        k += 1
    if k < stop and t[k] == _HASH and k > i + 1:
        return k + 1
    if is_word(before, properties):
        return i
    stop = min(n, i + MAX_TAG_LENGTH + 1)
    k = i + 1
    named = False
    while k < stop and (is_word(t[k], properties) or classes[t[k]] == _COMBINING or classes[t[k]] == _CHAR):
        named |= not properties[t[k]] & DIGIT
        k += 1
    return k if named else i


@kernel(callee=True)
def _classify(
    t: NDArray[np.uint32],
    classes: NDArray[np.uint8],
    dropped: NDArray[np.bool_],
    properties: NDArray[np.uint32],
    found: NDArray[np.uint8],
) -> int:
    """Number of characters that stay, which are moved to the front; what they are is written to `found`."""
    n = len(t)
    i = ZERO
    before = np.uint32(_BLANK)
    while i < n:
        end = max(_reference_end(t, i, n, before, classes, properties), i + 1)
        before = t[end - 1]
        if end > i + 1:
            t[i:end] = _BLANK
        i = end
    count = ZERO
    for k in range(n):
        what = classes[t[k]]
        if what == _COMBINING and count > 0 and found[count - 1] == _WORD:
            what = _WORD
        if what in (_INVISIBLE, _COMBINING):
            continue
        t[count] = t[k]
        found[count] = what
        count += 1
    for k in range(1, count - 1):
        if found[k] == _MARK and found[k - 1] == _WORD and found[k + 1] == _WORD:
            found[k] = _INSIDE
    for k in range(count):
        if (found[k] == _WORD or found[k] == _CHAR) and dropped[t[k]]:
            found[k] = _DROPPED
    for k in range(count):
        if found[k] == _INSIDE and (found[k - 1] == _DROPPED or found[k + 1] == _DROPPED):
            found[k] = _SPACE
    for k in range(count):
        if found[k] == _DROPPED:
            found[k] = _SPACE
    return count


@kernel(allocates=True)
def fill_mark_features(
    chars: NDArray[np.uint32],
    starts: NDArray[np.int64],
    exact_only: NDArray[np.bool_],
    classes: NDArray[np.uint8],
    dropped: NDArray[np.bool_],
    properties: NDArray[np.uint32],
    seed: np.uint64,
    features: NDArray[np.uint64],
    spans: NDArray[np.int64],
    feature_starts: NDArray[np.int64],
) -> None:
    """Write the feature of each mark of the near rows, in the order of the text.

    chars: folded texts, writable; row i is chars[starts[i]:starts[i + 1]], whose characters move
    classes, dropped, properties: of each code point; seed: for the hashes of tokens
    features: room for one of each character; row i gets features[feature_starts[i]:feature_starts[i + 1]]
    spans: int64[room, 4, 2], where the tokens of a feature stand in `chars`: two before the mark, two after;
        an empty span for a token that is missing
    """
    longest = ZERO
    for row in range(len(starts) - 1):
        longest = max(longest, starts[row + 1] - starts[row])
    found = np.empty(longest, np.uint8)
    tokens = np.empty(longest, np.uint64)
    places = np.empty((longest, 2), np.int64)
    marks = np.empty(longest, np.int64)
    bar = mix64(np.uint64(_BAR) + seed)
    end = ZERO
    for row in range(len(starts) - 1):
        feature_starts[row + 1] = end
        if exact_only[row]:
            continue
        start = starts[row]
        t = chars[start : starts[row + 1]]
        n = _classify(t, classes, dropped, properties, found)
        token_count = mark_count = ZERO
        in_mark = False
        i = ZERO
        while i < n:
            what = found[i]
            first = i
            i += 1
            if what == _MARK:
                if not in_mark:
                    marks[mark_count] = token_count
                    mark_count += 1
                in_mark = True
                continue
            if what == _SPACE:
                continue
            in_mark = False
            if what == _OTHER:
                continue
            value = np.uint64(t[first])
            if what != _CHAR:
                while i < n and (found[i] == _WORD or found[i] == _INSIDE):
                    value = value * MULTIPLIER + np.uint64(t[i])
                    i += 1
            tokens[token_count] = mix64(value + seed)
            places[token_count, 0] = start + first
            places[token_count, 1] = start + i
            token_count += 1
        if token_count == 0:
            continue
        for m in range(mark_count):
            before = marks[m]
            value = np.uint64(0)
            spans[end] = 0
            for j in range(max(ZERO, before - _SIDE), before):
                value = value * MULTIPLIER + tokens[j]
                spans[end, j - before + _SIDE] = places[j]
            value = value * MULTIPLIER + bar
            for j in range(before, min(token_count, before + _SIDE)):
                value = value * MULTIPLIER + tokens[j]
                spans[end, j - before + _SIDE] = places[j]
            features[end] = value
            end += 1
        feature_starts[row + 1] = end


class MarkFeatures:
    """Makes the features around punctuation marks. seed: for the hashes of tokens"""

    def __init__(self, config: FeatureConfig, seed: np.uint64) -> None:
        self._config = config
        self._seed = seed

    def pack(self, texts: Sequence[str], exact_only: NDArray[np.bool_]) -> PackedFeatures:
        """The features of each text; rows that are exact-only or have fewer than `min_features` have none."""
        features, _, _, starts = self._features(texts, exact_only)
        counts = np.diff(starts)
        rows = np.repeat(np.arange(len(texts)), counts)
        weights = np.ones(len(features), np.int64)
        if self._config.weights == "position":
            weights = 4 - 4 * (np.arange(len(features)) - starts[rows]) // counts[rows]
        order = np.lexsort((features, rows))
        is_first = np.ones(len(order), np.bool_)
        is_first[1:] = (np.diff(rows[order]) != 0) | (np.diff(features[order]) != 0)
        begins = np.flatnonzero(is_first)
        # The sort is stable, so the first of equal features is the first in the text.
        firsts = order[begins]
        sums = np.add.reduceat(weights[order], begins) if len(begins) else weights
        if self._config.weights == "none":
            sums = np.ones(len(begins), np.int64)
        distinct = np.bincount(rows[firsts], minlength=len(texts))
        in_text = np.argsort(firsts)
        in_text = in_text[distinct[rows[firsts[in_text]]] >= self._config.min_features]
        distinct[distinct < self._config.min_features] = 0
        packed_starts = np.concatenate(([0], np.cumsum(distinct))).astype(np.int64)
        return PackedFeatures(features[firsts[in_text]], sums[in_text], packed_starts)

    def as_text(self, text: str) -> list[str]:
        """The feature of each mark of one text: the tokens before and after it, with a bar for the mark.

        >>> MarkFeatures(FeatureConfig("punctuation"), np.uint64(7)).as_text("你好，王先生。1.5 apples!")
        ['你好|王先', '先生|1.5 apples', '1.5 apples|']
        """
        _, spans, chars, _ = self._features([text], np.zeros(1, np.bool_))
        return [_shown(chars, feature[:_SIDE]) + "|" + _shown(chars, feature[_SIDE:]) for feature in spans]

    def _features(
        self, texts: Sequence[str], exact_only: NDArray[np.bool_]
    ) -> tuple[NDArray[np.uint64], NDArray[np.int64], NDArray[np.uint32], NDArray[np.int64]]:
        """What `fill_mark_features` writes: features, spans, the characters they refer to, starts."""
        chars, starts = pack(folded(unescaped(texts)))
        chars = chars.copy()
        features, spans = np.empty(len(chars), np.uint64), np.empty((len(chars), 2 * _SIDE, 2), np.int64)
        feature_starts = np.zeros(len(texts) + 1, np.int64)
        dropped = dropped_characters(self._config.drop)
        lookups = (_classes(), dropped, tables().properties)
        fill_mark_features(chars, starts, exact_only, *lookups, self._seed, features, spans, feature_starts)
        end = feature_starts[-1]
        return features[:end], spans[:end], chars, feature_starts


def _shown(chars: NDArray[np.uint32], spans: NDArray[np.int64]) -> str:
    """The tokens of one side; a blank stands between two words."""
    shown, ends_word = "", False
    for first, last in spans.tolist():
        if first == last:
            continue
        is_token_alone = bool(_classes()[chars[first]] == _CHAR)
        blank = " " if ends_word and not is_token_alone else ""
        shown += blank + "".join(map(chr, chars[first:last].tolist()))
        ends_word = not is_token_alone
    return shown
