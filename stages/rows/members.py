"""Finds top-level members in rows of JSON, without building a document for each row.

A row is read to its end and must be valid JSON in valid UTF-8, so a row that is found good here is one that a
parser accepts. Rows that are rare or hard (names with escapes, deep nesting, numbers that a double does not
hold exactly, lone surrogates) are left to the parser, and so are all rows that are not valid.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.kernel import NO, ZERO, kernel

MISSING, PLAIN, ESCAPED, OTHER = 0, 1, 2, 3
"""Kinds of a found member: none; a string without escapes; one with escapes; another value."""

NONE = ZERO - 1
"""No place, or no number."""

_MOST_LEVELS = 60
_MOST_DIGITS = 15
"""A number of more characters may lose digits in a double, or not fit into it."""

_KEY_OR_END, _KEY, _VALUE, _VALUE_OR_END, _COMMA_OR_END = range(5)
"""What the next character may begin."""

_QUOTE, _BACKSLASH, _COLON, _COMMA = (np.uint8(ord(char)) for char in '"\\:,')
_OPEN_OBJECT, _CLOSE_OBJECT, _OPEN_ARRAY, _CLOSE_ARRAY = (np.uint8(ord(char)) for char in "{}[]")
_MINUS, _DOT, _DIGIT_0, _DIGIT_9 = (np.uint8(ord(char)) for char in "-.09")
_BLANK, _TAB, _NEWLINE, _RETURN = (np.uint8(ord(char)) for char in " \t\n\r")
_LETTER_U = np.uint8(ord("u"))
_ASCII_END, _CONTINUES = np.uint8(0x80), np.uint8(0xC0)
_PLAIN_LEAD, _LAST_PLAIN_LEAD = np.uint8(0xE1), np.uint8(0xEC)
"""Bytes between which any two others of a character of three bytes may follow."""
_NUL = np.uint8(0)
_LITERALS = tuple(np.frombuffer(word, np.uint8) for word in (b"true", b"false", b"null"))
_TRUE, _FALSE, _NULL = _LITERALS


def _replacements() -> NDArray[np.uint8]:
    """uint8[256]: the character that an escape of one letter stands for, by letter; 0 for no such escape."""
    table = np.zeros(256, np.uint8)
    for letter, char in zip('"\\/bfnrt', '"\\/\b\f\n\r\t', strict=True):
        table[ord(letter)] = ord(char)
    return table


def _hex_digits() -> NDArray[np.uint8]:
    """uint8[256]: the value of a hexadecimal digit, by character; 255 for other characters."""
    table = np.full(256, 255, np.uint8)
    for digits in ("0123456789abcdef", "0123456789ABCDEF"):
        for value, char in enumerate(digits):
            table[ord(char)] = value
    return table


_REPLACEMENTS = _replacements()
_HEX = _hex_digits()
_NO_DIGIT = 255


class Members(NamedTuple):
    """The members of n rows that have one of k names.

    kinds: uint8[n, k], such as PLAIN; starts, ends: int64[n, k], place of the value in the content, of a
        string without its quotes
    left: bool[n], the rows that are left to a parser; nothing else is said of them
    """

    kinds: NDArray[np.uint8]
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    left: NDArray[np.bool_]


def find_members(content: bytes | memoryview, sizes: NDArray[np.int64], names: list[str]) -> Members:
    """Find the members with these names in rows of JSON. If a row has a name twice, the last one counts.

    content: the rows, one behind the other; sizes: int64[n], bytes of each row
    """
    rows, encoded = len(sizes), [name.encode("utf-8", "surrogatepass") for name in names]
    found = Members(
        np.zeros((rows, len(names)), np.uint8),
        np.zeros((rows, len(names)), np.int64),
        np.zeros((rows, len(names)), np.int64),
        np.zeros(rows, np.bool_),
    )
    name_ends = np.cumsum([0, *map(len, encoded)])
    all_names = np.frombuffer(b"".join(encoded), np.uint8)
    _find_members(np.frombuffer(content, np.uint8), np.cumsum(sizes), all_names, name_ends, found)
    return found


@kernel
def _find_members(
    content: NDArray[np.uint8],
    row_ends: NDArray[np.int64],
    names: NDArray[np.uint8],
    name_ends: NDArray[np.int64],
    found: Members,
) -> None:
    """`find_members` for the bytes as an array. row_ends: int64[n]; name_ends: int64[k + 1], from 0"""
    start = ZERO
    for row in range(len(row_ends)):
        end = row_ends[row]
        found.left[row] = not _find_in_row(content, start, end, names, name_ends, row, found)
        start = end


@kernel(callee=True)
def _find_in_row(
    content: NDArray[np.uint8],
    start: int,
    end: int,
    names: NDArray[np.uint8],
    name_ends: NDArray[np.int64],
    row: int,
    found: Members,
) -> bool:
    """Find the members of one row. returns: whether the row is good"""
    at = _after_space(content, start, end)
    if at >= end or content[at] != _OPEN_OBJECT:
        return NO
    at += 1
    # Bit d of `objects` says whether level d is an object; the row itself is level 1.
    depth, objects, expected = ZERO + 1, np.uint64(2), ZERO + _KEY_OR_END
    wanted = NONE
    while True:
        at = _after_space(content, at, end)
        if at >= end:
            return NO
        char = content[at]
        is_object = (objects >> np.uint64(depth)) & np.uint64(1) != np.uint64(0)
        closes = (char == _CLOSE_OBJECT and is_object) or (char == _CLOSE_ARRAY and not is_object)
        if closes and expected in (_COMMA_OR_END, _KEY_OR_END, _VALUE_OR_END):
            at += 1
            depth -= 1
            if depth == 0:
                return _after_space(content, at, end) == end
            if depth == 1 and wanted >= 0:
                found.ends[row, wanted] = at
            expected = ZERO + _COMMA_OR_END
        elif expected == _COMMA_OR_END:
            if char != _COMMA:
                return NO
            at += 1
            expected = ZERO + (_KEY if is_object else _VALUE)
        elif expected in (_KEY_OR_END, _KEY):
            if char != _QUOTE:
                return NO
            after, escaped = _string_end(content, at + 1, end)
            if after < 0 or (escaped and depth == 1):
                return NO
            if depth == 1:
                wanted = _name_at(content, at + 1, after, names, name_ends)
            at = _after_space(content, after + 1, end)
            if at >= end or content[at] != _COLON:
                return NO
            at += 1
            expected = ZERO + _VALUE
        else:
            is_member = depth == 1 and wanted >= 0
            if is_member:
                found.kinds[row, wanted] = OTHER
                found.starts[row, wanted] = at
            expected = ZERO + _COMMA_OR_END
            if char == _QUOTE:
                after, escaped = _string_end(content, at + 1, end)
                if after < 0:
                    return NO
                if is_member:
                    found.kinds[row, wanted] = ESCAPED if escaped else PLAIN
                    found.starts[row, wanted], found.ends[row, wanted] = at + 1, after
                at = after + 1
            elif char in (_OPEN_OBJECT, _OPEN_ARRAY):
                depth += 1
                if depth > _MOST_LEVELS:
                    return NO
                bit = np.uint64(1) << np.uint64(depth)
                objects &= ~bit
                if char == _OPEN_OBJECT:
                    objects |= bit
                expected = ZERO + (_KEY_OR_END if char == _OPEN_OBJECT else _VALUE_OR_END)
                at += 1
            else:
                at = _scalar_end(content, at, end)
                if at < 0:
                    return NO
                if is_member:
                    found.ends[row, wanted] = at


@kernel(callee=True)
def _after_space(content: NDArray[np.uint8], at: int, end: int) -> int:
    while at < end:
        char = content[at]
        if char != _BLANK and char != _NEWLINE and char != _RETURN and char != _TAB:
            break
        at += 1
    return at


@kernel(callee=True)
def _name_at(
    content: NDArray[np.uint8], start: int, end: int, names: NDArray[np.uint8], name_ends: NDArray[np.int64]
) -> int:
    """Which of the names stands there, or -1."""
    for number in range(len(name_ends) - 1):
        first, size = name_ends[number], end - start
        if name_ends[number + 1] - first != size:
            continue
        same = True
        for i in range(size):
            if content[start + i] != names[first + i]:
                same = False
                break
        if same:
            return ZERO + number
    return NONE


@kernel(callee=True)
def _string_end(content: NDArray[np.uint8], at: int, end: int) -> tuple[int, bool]:
    """(place of the quote that ends the string, or -1 if it has none or is not valid; whether it has escapes)

    at: behind the quote that begins it. A string with the character NUL is not valid here
    """
    escaped = False
    while at < end:
        char = content[at]
        if char < _ASCII_END:
            if char == _QUOTE:
                return at, escaped
            if char < _BLANK:
                break
            if char == _BACKSLASH:
                escaped = True
                size, _ = _escape_at(content, at, end)
                if size == 0:
                    break
                at += size
            else:
                at += 1
        elif (
            # Most characters of a Chinese text.
            _PLAIN_LEAD <= char <= _LAST_PLAIN_LEAD
            and at + 2 < end
            and content[at + 1] & _CONTINUES == _ASCII_END
            and content[at + 2] & _CONTINUES == _ASCII_END
        ):
            at += 3
        else:
            size = _utf8_size(content, at, end)
            if size == 0:
                break
            at += size
    return NONE, escaped


@kernel(callee=True)
def _utf8_size(content: NDArray[np.uint8], at: int, end: int) -> int:
    """Bytes of the character of several bytes that begins there, 0 if it is not valid.

    source: RFC 3629, section 4
    """
    first = content[at]
    if first < np.uint8(0xE0):
        size, low, high = 2, np.uint8(0x80), np.uint8(0xBF)
        if first < np.uint8(0xC2):
            return ZERO
    elif first < np.uint8(0xF0):
        size, low, high = 3, np.uint8(0x80), np.uint8(0xBF)
        if first == np.uint8(0xE0):
            low = np.uint8(0xA0)
        elif first == np.uint8(0xED):
            high = np.uint8(0x9F)
    else:
        size, low, high = 4, np.uint8(0x80), np.uint8(0xBF)
        if first == np.uint8(0xF0):
            low = np.uint8(0x90)
        elif first == np.uint8(0xF4):
            high = np.uint8(0x8F)
        elif first > np.uint8(0xF4):
            return ZERO
    if at + size > end or content[at + 1] < low or content[at + 1] > high:
        return ZERO
    for i in range(2, size):
        if content[at + i] & _CONTINUES != _ASCII_END:
            return ZERO
    return ZERO + size


@kernel(callee=True)
def _escape_at(content: NDArray[np.uint8], at: int, end: int) -> tuple[int, np.int64 | int]:
    """(bytes of the escape that begins there, 0 if it is not valid or stands for NUL; its code point)

    Two escapes that are a surrogate pair are one escape here; a lone surrogate is not valid.
    """
    if at + 1 >= end:
        return ZERO, ZERO
    letter = content[at + 1]
    if letter != _LETTER_U:
        char = ZERO + _REPLACEMENTS[letter]
        return (ZERO + 2, char) if char else (ZERO, ZERO)
    point = _hex_at(content, at + 2, end)
    if point <= 0 or 0xDC00 <= point < 0xE000:
        return ZERO, ZERO
    if point < 0xD800 or point >= 0xE000:
        return ZERO + 6, point
    if at + 12 > end or content[at + 6] != _BACKSLASH or content[at + 7] != _LETTER_U:
        return ZERO, ZERO
    low = _hex_at(content, at + 8, end)
    if not 0xDC00 <= low < 0xE000:
        return ZERO, ZERO
    return ZERO + 12, 0x10000 + ((point - 0xD800) << 10) + (low - 0xDC00)


@kernel(callee=True)
def _hex_at(content: NDArray[np.uint8], at: int, end: int) -> np.int64 | int:
    """The number of four hexadecimal digits, or -1."""
    if at + 4 > end:
        return NONE
    value = np.int64(0)
    for i in range(4):
        digit = _HEX[content[at + i]]
        if digit == _NO_DIGIT:
            return NONE
        value = value * 16 + np.int64(digit)
    return value


@kernel(callee=True)
def _scalar_end(content: NDArray[np.uint8], at: int, end: int) -> int:
    """End of the number, true, false or null that begins there, or -1. Numbers with an exponent have none."""
    char = content[at]
    if char == _TRUE[0]:
        return _word_end(content, at, end, _TRUE)
    if char == _FALSE[0]:
        return _word_end(content, at, end, _FALSE)
    if char == _NULL[0]:
        return _word_end(content, at, end, _NULL)
    start = at
    if char == _MINUS:
        at += 1
    digits = _digits_end(content, at, end)
    if digits == at or (content[at] == _DIGIT_0 and digits > at + 1):
        return NONE
    at = digits
    if at < end and content[at] == _DOT:
        digits = _digits_end(content, at + 1, end)
        if digits == at + 1:
            return NONE
        at = digits
    return NONE if at - start > _MOST_DIGITS else at


@kernel(callee=True)
def _word_end(content: NDArray[np.uint8], at: int, end: int, word: NDArray[np.uint8]) -> int:
    if at + len(word) > end:
        return NONE
    for i in range(len(word)):
        if content[at + i] != word[i]:
            return NONE
    return at + len(word)


@kernel(callee=True)
def _digits_end(content: NDArray[np.uint8], at: int, end: int) -> int:
    while at < end and _DIGIT_0 <= content[at] <= _DIGIT_9:
        at += 1
    return at


def strings_of(content: bytes | memoryview, found: Members, name: int) -> bytes:
    """The strings of one name: the UTF-8 of each without escapes, with a NUL behind it; nothing for values
    that are no strings, and for rows without the member.

    content, found: as for `find_members`; name: number of the name
    """
    kinds = np.ascontiguousarray(found.kinds[:, name])
    starts, ends = np.ascontiguousarray(found.starts[:, name]), np.ascontiguousarray(found.ends[:, name])
    is_string = ~found.left & ((kinds == PLAIN) | (kinds == ESCAPED))
    out = np.empty(int((ends - starts)[is_string].sum()) + len(kinds), np.uint8)
    used = _copy_strings(np.frombuffer(content, np.uint8), kinds, starts, ends, is_string, out)
    return out[:used].tobytes()


@kernel
def _copy_strings(
    content: NDArray[np.uint8],
    kinds: NDArray[np.uint8],
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
    is_string: NDArray[np.bool_],
    out: NDArray[np.uint8],
) -> int:
    """Write the bytes of `strings_of`. returns: their number"""
    used = ZERO
    for row in range(len(kinds)):
        at, end = starts[row], ends[row]
        if is_string[row] and kinds[row] == PLAIN:
            size = end - at
            # Use slices, because the compiler makes vector instructions of loops over them.
            source, target = content[at:end], out[used : used + size]
            for i in range(size):
                target[i] = source[i]
            used += size
        elif is_string[row]:
            while at < end:
                if content[at] == _BACKSLASH:
                    size, point = _escape_at(content, at, end)
                    used = _write_utf8(point, out, used)
                    at += size
                else:
                    out[used] = content[at]
                    used += 1
                    at += 1
        out[used] = _NUL
        used += 1
    return used


@kernel(callee=True)
def _write_utf8(point: np.int64 | int, out: NDArray[np.uint8], at: int) -> int:
    """Write a code point. returns: the place behind it"""
    if point < 0x80:
        out[at] = np.uint8(point)
        return at + 1
    if point < 0x800:
        out[at] = np.uint8(0xC0 | (point >> 6))
        out[at + 1] = np.uint8(0x80 | (point & 0x3F))
        return at + 2
    if point < 0x10000:
        out[at] = np.uint8(0xE0 | (point >> 12))
        out[at + 1] = np.uint8(0x80 | ((point >> 6) & 0x3F))
        out[at + 2] = np.uint8(0x80 | (point & 0x3F))
        return at + 3
    out[at] = np.uint8(0xF0 | (point >> 18))
    out[at + 1] = np.uint8(0x80 | ((point >> 12) & 0x3F))
    out[at + 2] = np.uint8(0x80 | ((point >> 6) & 0x3F))
    out[at + 3] = np.uint8(0x80 | (point & 0x3F))
    return at + 4
