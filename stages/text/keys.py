"""Writes bodies and key texts from the text that the profile left.

It also writes where words start, and how long each body is before a shared card (a poll or an article).

Letters are case-folded. There are two body rules. `letters` keeps characters with `str.isalnum()` and nothing
else. `product` also keeps

- combining marks after a letter
- one separator between two digits, so that "1.5万" is not "15万" and "2:11" is not "21:1"; but a comma that
  groups thousands is dropped, so that "1,500" equals "1500"
- a sign, currency or comparison before a number, so that "-5度" is not "5度", "$5" is not "€5" and ">35岁" is
  not "<35岁"
- one arrow, mark for yes or no, or comparison between two words, so that "A→B" is not "A←B". Several marks
  between two words, and marks before the first or after the last word, are decoration and are dropped
- a mark right after a word, because it belongs to the word: C# and C++ are not C, S23+ is not S23, A- is not
  A+

After the body follow the references that `text.compare` selects.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.contract import MIN_NEAR_LENGTH
from twinsieve.stages.kernel import NO, YES, ZERO, kernel
from twinsieve.stages.text.code_point_tables import (
    BETWEEN,
    CARD_MARK,
    CASED,
    COMPARISON,
    CURRENCY,
    DASHES,
    DIGIT,
    GROWS,
    HAS_AT,
    HAS_TAG,
    JOINER,
    LETTER,
    MARK,
    NO_SIGN_AFTER,
    OPERATOR,
    SEPARATOR,
    SEQUENCE,
    SIGN,
    SPACE,
    SPACED_OPERATORS,
    SPECIAL_PLANES,
    SYMBOL,
    UNSPACED,
    Tables,
)
from twinsieve.stages.text.compatibility import PackedText
from twinsieve.stages.text.references import References, write_references
from twinsieve.stages.text.signs import flag_of, is_indicator, with_sign

_SEQUENCE = np.uint32(SEQUENCE)
_COMMA = 44
_ZERO = 48
_BLANK = 32
_NEWLINE = 10
_EQUALS = 61
_HASH, _PLUS, _UNDERSCORE, _EXCLAMATION, _TIMES = (ord(c) for c in "#+_!×")
_A, _Z = ord("a"), ord("z")
_LOWER = 32
_LESS, _MORE, _LESS_OR_EQUAL, _MORE_OR_EQUAL, _UNEQUAL = (np.uint32(ord(c)) for c in "<>≤≥≠")
_RIGHT, _LEFT, _BOTH_WAYS, _WRONG = (np.uint32(ord(c)) for c in "→←↔✗")
_EX = ord("x")
_POINT, _PERCENT = ord("."), ord("%")
_MIDDLE_DOT, _COLON, _STAR = ord("·"), ord(":"), np.uint32(ord("*"))
_SPACED = np.array([ord(c) for c in SPACED_OPERATORS], dtype=np.uint32)
_DASHES = np.array([ord(c) for c in DASHES], dtype=np.uint32)
_MAX_SHAFT = 8
"""Greatest number of dashes and equals signs in the shaft of an ASCII arrow."""
_MAX_GRADE = 3
"""Greatest length of a word after which a minus belongs to the word (a grade such as A-)."""
_MAX_BRACKET = 32
"""< and > are brackets, not comparisons, if at most this many characters stand between them: <b>, <大学>."""
_COUNTER = 24
"""Greatest length of a label and its counter (UPDATE 2-), and of digits before a %."""
_QUOTES = 8
"""Greatest number of blanks and quote marks before a > that begins a line."""
_IN_TEXT = 64
"""Greatest number of characters of the text before the dash behind them."""
_WITHOUT_CASE = 0x590
"""No script from here on has small letters that capitals fold to, but for a few that nobody writes today."""
_RUN, _IN_RUN = LETTER | UNSPACED | DIGIT | CASED, LETTER | UNSPACED
"""Properties that are looked at, and those that a plain letter of an unspaced script has of them."""
_NO_MARK, _SEVERAL = np.uint32(0), np.uint32(1)
"""Values in place of the mark between two words: there is no mark yet, or there is more than one."""


@kernel(callee=True)
def _groups_thousands(t: NDArray[np.uint32], comma: int, n: int, properties: NDArray[np.uint32]) -> bool:
    """Whether exactly three digits follow after the comma at index `comma`."""
    if comma + 3 >= n:
        return False
    for k in range(comma + 1, comma + 4):
        if not properties[t[k]] & DIGIT:
            return False
    return comma + 4 == n or not properties[t[comma + 4]] & DIGIT


@kernel(callee=True)
def _before(t: NDArray[np.uint32], i: int, properties: NDArray[np.uint32]) -> int:
    """Index of the last character before i that is neither a mark nor a joiner; -1 if there is none."""
    k = i - 1
    while k >= 0 and properties[t[k]] & (MARK | JOINER):
        k -= 1
    return k


@kernel(callee=True)
def _number_at(t: NDArray[np.uint32], i: int, n: int, properties: NDArray[np.uint32]) -> bool:
    """Whether a number begins at i: a digit, perhaps after a sign and a currency.

    A blank may stand between currency and digit.
    """
    for _ in range(2):
        if i < n and properties[t[i]] & (SIGN | CURRENCY):
            i += 1
            if i < n and t[i] == _BLANK and properties[t[i - 1]] & CURRENCY:
                i += 1
    return i < n and properties[t[i]] & DIGIT != 0


@kernel(callee=True)
def _prefix_end(t: NDArray[np.uint32], i: int, n: int, properties: NDArray[np.uint32]) -> int:
    """Index after the sign, currency or comparison (and its blank) at i, if a number follows; else 0.

    A sign belongs to the number unless one of these stands before it: a digit, percent sign, bracket, numeral
        or word of a spaced script (3-5, COVID-19), a part of a date (3月-5月), a digit with its unit
        (3度-5度), another dash
    A currency belongs to the number if it is the last of several. A blank may follow, unless a digit stands
        before it ("5€ 3 ...")
    A comparison belongs to the number if it stands alone or with =, and is no arrow. A blank may follow
    """
    p = properties[t[i]]
    k = _before(t, i, properties)
    before = properties[t[k]] if k >= 0 else np.uint32(0)
    end = i + 1
    if p & SIGN:
        if before & (NO_SIGN_AFTER | SIGN) or (end < n and properties[t[end]] & SIGN):
            return 0
        if before & LETTER:
            unit = _before(t, k, properties)
            if unit >= 0 and properties[t[unit]] & DIGIT:
                return 0
    elif p & CURRENCY:
        if end < n and properties[t[end]] & CURRENCY:
            return 0
        if end < n and t[end] == _BLANK and not before & DIGIT:
            end += 1
    else:
        if before & (SIGN | COMPARISON) or (k >= 0 and t[k] == _EQUALS):
            return 0
        if end < n and t[end] == _EQUALS:
            end += 1
        if end < n and t[end] == _BLANK:
            end += 1
    return end if _number_at(t, end, n, properties) else 0


@kernel(callee=True)
def _shaft_end(t: NDArray[np.uint32], i: int, n: int) -> int:
    """Index after the dashes and equals signs that begin at i, _MAX_SHAFT at most."""
    stop = min(n, i + _MAX_SHAFT)
    while i < stop:
        code = t[i]
        dash = code == _DASHES[0] or code == _DASHES[1] or code == _DASHES[2] or code == _DASHES[3]
        if not dash and code != _EQUALS:
            break
        i += 1
    return i


@kernel(callee=True)
def _mark_at(t: NDArray[np.uint32], i: int, n: int, separators: NDArray[np.uint32]) -> tuple[np.uint32, int]:
    """(the mark between words that begins at i, as a body keeps it, or _NO_MARK; the index after it)

    ASCII forms: the arrows -> <- <-> => <=> also with longer shafts, and == != <= >=. So <= is a comparison,
    but <== is an arrow.
    """
    code = t[i]
    if code == _LESS:
        end = _shaft_end(t, i + 1, n)
        if end == i + 1:
            return code, end
        if end < n and t[end] == _MORE:
            return _BOTH_WAYS, end + 1
        if end == i + 2 and t[i + 1] == _EQUALS:
            return _LESS_OR_EQUAL, end
        return _LEFT, end
    end = _shaft_end(t, i, n)
    if end > i:
        if end < n and t[end] == _MORE:
            return _RIGHT, end + 1
        if code != _EQUALS:
            return _NO_MARK, i + 1
        return code, i + 1 + (i + 1 < n and t[i + 1] == _EQUALS)
    followed = i + 1 < n and t[i + 1] == _EQUALS
    if code == _EXCLAMATION:
        return (_UNEQUAL if followed else _NO_MARK), i + 1 + followed
    if code == _HASH:
        return _NO_MARK, i + 1
    if code == _TIMES:
        return _WRONG, i + 1
    kept = separators[code]
    if followed and kept in (_MORE, _MORE_OR_EQUAL):
        return _MORE_OR_EQUAL, i + 2
    if followed and kept == _LESS_OR_EQUAL:
        return kept, i + 2
    return kept, i + 1


@kernel(callee=True)
def _spaced_operator(
    t: NDArray[np.uint32], i: int, n: int, properties: NDArray[np.uint32], separators: NDArray[np.uint32]
) -> tuple[np.uint32, int]:
    """(the operator between the number before the blank at i and another one, as inside a number; the index
    of that number); (_NO_MARK, i) for none. 12 + 5 is 12+5"""
    k = i
    while k < n and k < i + 2 and t[k] == _BLANK:
        k += 1
    if k + 2 >= n or t[k + 1] != _BLANK:
        return _NO_MARK, i
    kept = separators[t[k]] if properties[t[k]] & SEPARATOR else _NO_MARK
    if t[k] == _MIDDLE_DOT or t[k] | _LOWER == _EX:
        kept = _STAR
    operates = False
    for operator in _SPACED:
        operates |= kept == operator
    behind = k + 2
    if behind + 1 < n and t[behind] == _BLANK:
        behind += 1
    return (kept, behind) if operates and properties[t[behind]] & DIGIT else (_NO_MARK, i)


@kernel(callee=True)
def _joins_terms(t: NDArray[np.uint32], i: int, n: int, properties: NDArray[np.uint32]) -> bool:
    """Whether a number or single letter stands before and behind the sign at i, with a blank on both sides or
    none.

    The term before may be both, 3x or x2.
    """
    if i == 0 or i + 1 == n or (t[i - 1] == _BLANK) != (t[i + 1] == _BLANK):
        return False
    blanks = np.int64(t[i - 1] == _BLANK)
    k, behind = i - 1 - blanks, i + 1 + blanks
    if k < 0 or behind >= n:
        return False
    p, q = properties[t[k]], properties[t[behind]]
    if not p & q & LETTER or (p | q) & UNSPACED:
        return False
    before = properties[t[k - 1]] if k > 0 and not p & DIGIT else p & np.uint32(0)
    then = properties[t[behind + 1]] if behind + 1 < n and not q & DIGIT else q & np.uint32(0)
    return (
        (before | then) & MARK == 0
        and before & (LETTER | DIGIT) != LETTER
        and then & (LETTER | DIGIT) != LETTER
    )


@kernel(callee=True)
def _counts_headlines(
    t: NDArray[np.uint32], i: int, n: int, properties: NDArray[np.uint32], out: NDArray[np.uint32],
    word_starts: NDArray[np.uint8], first: int, w: int,
) -> bool:  # fmt: skip
    """Whether the dash at i stands behind the counter of a label: UPDATE 2-Oil, not UPDATE 2-Year-Old.

    The counter is the second word of the text, before it stand no colon and no small letter, and a word that
    begins with a capital or a letter without case follows, with no dash behind it.
    first, w: where the row begins and ends in `out`
    """
    if (
        w == first
        or w - first > _COUNTER
        or i > _IN_TEXT
        or properties[out[first]] & (LETTER | DIGIT) != LETTER
    ):
        return False
    words, k = ZERO, w - 1
    while k >= first and properties[out[k]] & DIGIT:
        k -= 1
    if k == w - 1 or k < first or not word_starts[k + 1]:
        return False
    while k >= first:
        words += word_starts[k]
        k -= 1
    if words != 1:
        return False
    for k in range(i):
        small = properties[t[k]] & (LETTER | DIGIT | CASED) == LETTER and t[k] < _WITHOUT_CASE
        if t[k] == _COLON or small:
            return False
    if not properties[t[i - 1]] & (DIGIT | SPACE):
        return False
    first = k = i + 1 + np.int64(i + 1 < n and t[i + 1] == _BLANK)
    while k < min(n, first + _COUNTER) and properties[t[k]] & (LETTER | DIGIT) == LETTER:
        k += 1
    if k < first + 2 or (k < n and properties[t[k]] & SIGN):
        return False
    return properties[t[first]] & CASED != 0 or t[first] >= _WITHOUT_CASE


@kernel(callee=True)
def _without_zeros(out: NDArray[np.uint32], w: int, first: int, properties: NDArray[np.uint32]) -> int:
    """Where a row ends without the zeros that end a number with a point: 4.50 % is 4.5.

    w: where it ends in `out`
    """
    k = w
    while k > max(first, w - _COUNTER) and properties[out[k - 1]] & DIGIT:
        k -= 1
    if k in (w, first) or out[k - 1] != _POINT:
        return w
    while out[w - 1] == _ZERO:
        w -= 1
    return w - (out[w - 1] == _POINT)


@kernel(callee=True)
def _begins_line(t: NDArray[np.uint32], i: int) -> bool:
    """Whether nothing but blanks and the same mark stands before the mark at i in its line."""
    k, last = i - 1, i - _QUOTES
    while k >= max(last, 0) and (t[k] == _BLANK or t[k] == t[i]):
        k -= 1
    return k < 0 or t[k] == _NEWLINE


@kernel(callee=True)
def _bracket_end(t: NDArray[np.uint32], i: int, n: int, properties: NDArray[np.uint32]) -> int:
    """Index of the > that forms brackets with the < at i, as in <b>; -1 if none ("x < y and z > w")."""
    if i + 1 < n and properties[t[i + 1]] & SPACE:
        return -1
    for k in range(i + 1, min(n, i + _MAX_BRACKET + 2)):
        if t[k] == _MORE:
            return k if k > i + 1 and not properties[t[k - 1]] & SPACE else -1
        if t[k] == _LESS or t[k] == _NEWLINE:
            return -1
    return -1


@kernel(callee=True)
def _suffix_length(t: NDArray[np.uint32], i: int, n: int, properties: NDArray[np.uint32]) -> int:
    """How many characters at i (#, ++, + or a minus) belong to the word that ends right before i; 0 if none.

    # and ++ belong to a single letter from a to z, unless a tag begins there, or a third plus follows
    + belongs to the word, unless letters, digits, a sign or a currency follow: then it connects the two
        (Python+机器学习). It also belongs to a short word, or one that ends with a digit, before an unspaced
        script (S23+发布)
    A minus belongs to a word of at most three characters, with the same exception. Several letters must be
        capitals (BBB-, not pre-). A number must not begin the line, because it then numbers the line
        ("1- wash")
    """
    size, begin, small = ZERO, i, False
    for k in range(i - 1, -1, -1):
        p = properties[t[k]]
        if p & JOINER and size > 0:
            continue
        if not p & (LETTER | MARK) or p & UNSPACED or size > _MAX_GRADE:
            break
        small |= not p & (DIGIT | CASED | MARK)
        size += 1
        begin = k
    if size == 0:
        return 0
    lone = size == 1 and _A <= t[i - 1] | _LOWER <= _Z
    if t[i] == _HASH:
        if not lone or i + 1 == n:
            return int(lone)
        follows = properties[t[i + 1]]
        joined = follows & (LETTER | UNSPACED) == LETTER or t[i + 1] == _HASH or t[i + 1] == _UNDERSCORE
        return 0 if joined else 1
    plus = t[i] == _PLUS
    if plus and i + 1 < n and t[i + 1] == _PLUS:
        return 2 if lone and not (i + 2 < n and t[i + 2] == _PLUS) else 0
    short = size <= _MAX_GRADE
    number = properties[t[i - 1]] & DIGIT != 0
    if not plus:
        begins_line = begin == 0 or t[begin - 1] == _NEWLINE
        if not short or (small and size > 1) or (number and begins_line):
            return 0
    k = i + 1
    while k < n and properties[t[k]] & JOINER:
        k += 1
    if k == n:
        return 1
    follows = properties[t[k]]
    if plus and (short or number) and follows & (LETTER | UNSPACED) == LETTER | UNSPACED:
        return 1
    joins = follows & (LETTER | MARK | SIGN | CURRENCY) != 0
    return 0 if joins or t[k] == _PLUS or t[k] == _EQUALS or t[k] == _MORE else 1


@kernel(callee=True)
def _write_mark(
    mark: np.uint32, first: int, w: int, out: NDArray[np.uint32], word_starts: NDArray[np.uint8]
) -> int:
    """Write the mark between two words, if there is only one and a word stands before it.

    first: where the row begins in `out`; w: where it ends; returns: where it ends now
    """
    if mark == _SEVERAL or w == first:
        return w
    out[w] = mark
    word_starts[w] = 1
    return w + 1


@kernel(callee=True)
def _write(
    t: NDArray[np.uint32],
    n: int,
    product: bool,
    symbols: bool,
    lookups: Tables,
    sign_at: NDArray[np.uint8],
    out: NDArray[np.uint32],
    word_starts: NDArray[np.uint8],
    first: int,
) -> tuple[int, int, bool, np.uint32]:
    """Write the characters of one row that its body keeps to out[first:].

    symbols: also keep symbols, and all marks wherever they stand; sign_at: `sign_table`
    returns: (number of characters written; number of them before the last card mark, or -1 without one;
        whether none of them is a letter or combining mark; digits are no letters here; its signs)
    """
    properties, folding, separators = lookups.properties, lookups.folding, lookups.separators
    w = first
    own = -1
    digits_alone = True
    new_word = True
    follows_letter = False
    unspaced = np.uint32(0)
    in_number = False
    may_group = False  # whether the number so far can have commas that group thousands
    group = 0
    mark = _NO_MARK
    said = np.uint32(0)
    closing = -1
    after = ZERO
    while after < n:
        i = after
        after += 1
        code = t[i]
        p = properties[code]
        if p & _RUN == _IN_RUN and unspaced & UNSPACED and not new_word and mark == _NO_MARK:
            # Most characters of a Chinese text: what follows would do the same in more steps.
            out[w] = code
            word_starts[w] = 0
            w += 1
            follows_letter = True
            digits_alone = in_number = False
            continue
        if p & CASED:
            code = folding[code]
            p = properties[code]
        if p & LETTER:
            if mark != _NO_MARK:
                w = _write_mark(mark, first, w, out, word_starts)
                mark = _NO_MARK
            if p & DIGIT:
                if not in_number:
                    in_number = True
                    may_group = code != _ZERO
                    group = 0
                group += 1
            else:
                digits_alone = False
                in_number = False
            begins_word = new_word or (p ^ unspaced) & UNSPACED != 0
            unspaced = p
            new_word = False
            follows_letter = True
        elif product and in_number and p & SEPARATOR and i + 1 < n and properties[t[i + 1]] & DIGIT:
            if code == _COMMA and may_group and group <= 3 and _groups_thousands(t, i, n, properties):
                group = 0
                continue
            may_group = False
            code = separators[code]
            begins_word = False
        else:
            if product and in_number and code == _BLANK:
                operator, after = _spaced_operator(t, i, n, properties, separators)
                if operator != _NO_MARK:
                    may_group = False
                    out[w] = operator
                    word_starts[w] = 0
                    w += 1
                    continue
                after = i + 1
            in_number = False
            prefix_end = 0
            if product and w > first and code == _PERCENT:
                w = _without_zeros(out, w, first, properties)
            if code < SPECIAL_PLANES and sign_at[code]:
                said = with_sign(said, np.uint32(sign_at[code]))
            elif is_indicator(code) and after < n and is_indicator(t[after]):
                said = with_sign(said, flag_of(code, t[after]))
                after += 1
            quotes = code == _MORE and (i == closing or _begins_line(t, i))
            if product and p & (SIGN | CURRENCY | COMPARISON) and not quotes:
                prefix_end = _prefix_end(t, i, n, properties)
            if prefix_end:
                after = prefix_end
                if mark != _NO_MARK:
                    w = _write_mark(mark, first, w, out, word_starts)
                    mark = _NO_MARK
                code = separators[code]
                if p & COMPARISON and t[i + 1] == _EQUALS:
                    more = code in (_MORE, _MORE_OR_EQUAL)
                    code = np.uint32(_MORE_OR_EQUAL if more else _LESS_OR_EQUAL)
                begins_word = True
                unspaced = p
                new_word = False
                follows_letter = False
            elif p & (MARK | JOINER):
                if not (product and follows_letter and p & MARK):
                    continue
                digits_alone = False
                begins_word = False
            else:
                new_word = True
                begins_word = True
                sign = _NO_MARK
                if (
                    product
                    and p & SIGN
                    and _counts_headlines(t, i, n, properties, out, word_starts, first, w)
                ):
                    out[w] = separators[code]
                    word_starts[w] = 0
                    w += 1
                    follows_letter = False
                    continue
                if product and p & BETWEEN:
                    attached = follows_letter and not unspaced & UNSPACED
                    if attached and (code in (_HASH, _PLUS) or p & SIGN):
                        size = _suffix_length(t, i, n, properties)
                        for k in range(size):
                            out[w + k] = separators[code] if p & SIGN else code
                            word_starts[w + k] = 0
                        if size > 0:
                            w += size
                            after = i + size
                            follows_letter = False
                            continue
                    if p & OPERATOR and _joins_terms(t, i, n, properties):
                        sign = _STAR if code == _TIMES else separators[code]
                    elif not quotes and (not p & OPERATOR or code == _TIMES):
                        sign, after = _mark_at(t, i, n, separators)
                        if sign == _LESS:
                            bracket = _bracket_end(t, i, n, properties)
                            if bracket >= 0:
                                sign, closing = _NO_MARK, bracket
                follows_letter = False
                if code == CARD_MARK:
                    own = w - first
                    mark = _NO_MARK
                if sign != _NO_MARK and not symbols:
                    mark = sign if mark == _NO_MARK else _SEVERAL
                    continue
                if sign != _NO_MARK:
                    code = sign
                elif not (symbols and p & SYMBOL):
                    continue
        out[w] = code
        word_starts[w] = begins_word
        w += 1
    return w - first, own, digits_alone, said


@kernel(callee=True)
def _unfold_growing(t: NDArray[np.uint32], n: int, lookups: Tables, out: NDArray[np.uint32]) -> int:
    """Copy a row to `out`, and replace each character that folds to several ones. returns: the new length"""
    w = 0
    for i in range(n):
        code = t[i]
        if lookups.properties[code] & GROWS:
            sequence = np.int64(lookups.folding[code] ^ _SEQUENCE)
            for k in range(lookups.sequence_starts[sequence], lookups.sequence_starts[sequence + 1]):
                out[w] = lookups.sequences[k]
                w += 1
        else:
            out[w] = code
            w += 1
    return w


class BodyColumns(NamedTuple):
    """The columns of `Bodies`, as a tuple for kernels."""

    chars: NDArray[np.uint32]
    starts: NDArray[np.int64]
    word_starts: NDArray[np.uint8]
    body_lengths: NDArray[np.int32]
    own_lengths: NDArray[np.int32]
    exact_only: NDArray[np.bool_]
    signs: NDArray[np.uint32]


@kernel
def write_keys(
    text: PackedText,
    ends: NDArray[np.int64],
    raw: NDArray[np.uint32],
    raw_starts: NDArray[np.int64],
    product: bool,
    lookups: Tables,
    sign_at: NDArray[np.uint8],
    references: References,
    scratch: NDArray[np.uint32],
    bodies: BodyColumns,
) -> None:
    """Write body and key text of each row to `bodies`.

    text, ends: NFKC text after the rules of the profile; row i is chars[starts[i]:ends[i]]
    raw, raw_starts: the raw text
    sign_at: `sign_table`
    scratch: room for three times the longest row that case folding makes longer
    bodies: chars and word_starts have room for the body or the raw text of each row, whichever is longer,
        plus its references
    """
    out, word_starts = bodies.chars, bodies.word_starts
    w = ZERO
    for row in range(len(ends)):
        bodies.starts[row] = w
        t = text.chars[text.starts[row] : ends[row]]
        n = len(t)
        bits = text.bits[row]
        if bits & GROWS:
            n = _unfold_growing(t, n, lookups, scratch)
            t = scratch
        length, own, digits_alone, signs = _write(t, n, product, NO, lookups, sign_at, out, word_starts, w)
        bodies.body_lengths[row] = length
        bodies.own_lengths[row] = own if own >= 0 else length
        bodies.exact_only[row] = length < MIN_NEAR_LENGTH or digits_alone
        bodies.signs[row] = signs
        if length < MIN_NEAR_LENGTH:
            # If all letters of a row were in dropped tags, links and names, its key text is the raw text. A
            # key text of the remaining symbols would make posts with different tags equal.
            if product and (length > 0 or not bits & (LETTER | HAS_TAG | HAS_AT)):
                length, own, digits_alone, signs = _write(
                    t, n, product, YES, lookups, sign_at, out, word_starts, w
                )
            if length == 0:
                for i in range(raw_starts[row], raw_starts[row + 1]):
                    out[w + length] = raw[i]
                    word_starts[w + length] = 0
                    length += 1
                w += length
                continue
        w += length
        if references.kinds:
            count = write_references(references, row, out, word_starts, w)
            w += count
            if not bodies.exact_only[row]:
                # Without a shared card, `own_lengths` equals `body_lengths`, also with the references added.
                if bodies.own_lengths[row] == bodies.body_lengths[row]:
                    bodies.own_lengths[row] += count
                bodies.body_lengths[row] += count
    bodies.starts[len(ends)] = w
