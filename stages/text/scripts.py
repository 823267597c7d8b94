"""Scripts written without blanks between words. Their features are characters, not words."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.kernel import kernel

UNSPACED_RANGES: tuple[tuple[int, int], ...] = (
    (0x0E00, 0x0EFF),  # Thai, Lao
    (0x0F00, 0x109F),  # Tibetan (blanks separate clauses, tshegs separate syllables), Myanmar
    (0x1780, 0x17FF),  # Khmer
    (0x1950, 0x19FF),  # Tai Le, New Tai Lue, Khmer symbols
    (0x1A20, 0x1AAF),  # Tai Tham
    (0x2E80, 0x2FFF),  # radicals
    (0x3000, 0x312F),  # CJK marks, Kana, Bopomofo
    (0x31A0, 0xA4CF),  # Bopomofo and Kana extensions, Han, Yi
    (0xA9E0, 0xA9FF),  # Myanmar extended B
    (0xAA60, 0xAADF),  # Myanmar extended A, Tai Viet
    (0xF900, 0xFAFF),  # Han, compatibility
    (0xFF66, 0xFF9F),  # Katakana, half width
    (0x11700, 0x1174F),  # Ahom
    (0x16FE0, 0x18DFF),  # Tangut, Khitan
    (0x1AFF0, 0x1B2FF),  # Kana extensions, Nushu
    (0x20000, 0x3FFFF),  # Han, planes 2 and 3
)
"""First and last code point of each block of unspaced scripts. Letters and digits of all other blocks belong
to words of spaced scripts."""

LATIN_RANGES: tuple[tuple[int, int], ...] = (
    (0x0041, 0x00AA),
    (0x00BA, 0x02B8),
    (0x02E0, 0x02E4),
    (0x1D00, 0x1D25),
    (0x1D2C, 0x1D5C),
    (0x1D62, 0x1D65),
    (0x1D6B, 0x1D77),
    (0x1D79, 0x1DBE),
    (0x1E00, 0x1EFF),
    (0x2071, 0x209C),
    (0x212A, 0x212B),
    (0x2132, 0x2132),
    (0x214E, 0x2184),
    (0x2C60, 0x2C7F),
    (0xA722, 0xA787),
    (0xA78B, 0xA7DC),
    (0xA7F1, 0xA7FF),
    (0xAB30, 0xAB64),
    (0xAB66, 0xAB69),
    (0xFB00, 0xFB06),
    (0xFF21, 0xFF5A),
    (0x10780, 0x107BA),
    (0x1DF00, 0x1DF2A),
)
"""First and last code point of ranges whose letters (categories L) are those of the Latin script."""

_FIRSTS = np.array([first for first, _ in UNSPACED_RANGES], dtype=np.uint32)
_LASTS = np.array([last for _, last in UNSPACED_RANGES], dtype=np.uint32)


@kernel
def is_unspaced(code: int) -> bool:
    """Whether a code point belongs to a script written without blanks between words.

    For example Han, Kana, Bopomofo, Yi, Thai, Lao, Khmer, Myanmar, Tibetan; not Hangul, which has blanks.

    >>> is_unspaced(ord("中")), is_unspaced(ord("ไ")), is_unspaced(ord("한")), is_unspaced(ord("7"))
    (True, True, False, False)
    """
    if code < 0x0E00:
        return False
    if 0x4E00 <= code <= 0x9FFF:
        return True
    for i in range(len(_FIRSTS)):
        if code < _FIRSTS[i]:
            return False
        if code <= _LASTS[i]:
            return True
    return False


def unspaced_table() -> NDArray[np.bool_]:
    """bool[0x110000]: `is_unspaced` of every code point."""
    table = np.zeros(0x110000, dtype=np.bool_)
    for first, last in UNSPACED_RANGES:
        table[first : last + 1] = True
    return table
