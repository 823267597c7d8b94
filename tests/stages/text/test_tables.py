"""The character tables against a Unicode database of their version, code point by code point."""

from __future__ import annotations

import sys

import numpy as np
import unicodedata2

from tests import unicode_twin as unicode
from tests.stages.text import twin as text_twin
from tests.stages.text.test_unicode_frozen import composed
from twinsieve.stages.text import code_point_tables as built
from twinsieve.stages.text.compatibility import nfkc_texts
from twinsieve.stages.text.scripts import is_unspaced, unspaced_table

EVERY = [chr(code) for code in range(sys.maxunicode + 1)]
UNSPACED_NAMES = (
    "CJK UNIFIED", "CJK COMPATIBILITY IDEOGRAPH", "HIRAGANA LETTER", "KATAKANA LETTER", "BOPOMOFO LETTER",
    "THAI CHARACTER", "LAO LETTER", "KHMER LETTER", "MYANMAR LETTER", "TIBETAN LETTER", "YI SYLLABLE",
    "TAI LE LETTER", "NEW TAI LUE LETTER", "TAI THAM LETTER", "TAI VIET LETTER", "TANGUT", "NUSHU",
)  # fmt: skip
SPACED_NAMES = (
    "LATIN", "GREEK", "CYRILLIC", "ARABIC", "HEBREW", "DEVANAGARI", "BENGALI", "TAMIL", "HANGUL", "ARMENIAN",
    "GEORGIAN", "ETHIOPIC", "DIGIT", "MATHEMATICAL", "MONGOLIAN", "CHEROKEE",
)  # fmt: skip
INTERESTING = [
    char
    for char in EVERY[:0x30000]
    if unicode.combining(char) or unicode.normalize("NFKD", char) != char or "\u1100" <= char <= "\u11ff"
]


def test_nfkc_of_every_code_point_equals_the_database() -> None:
    valid = [char for char in EVERY if not "\ud800" <= char <= "\udfff"]
    assert composed(valid) == [unicode.normalize("NFKC", char) for char in valid]


def test_nfkc_of_neighbours_equals_the_database() -> None:
    texts = [
        before + char
        for char in INTERESTING
        for before in (
            "a",
            "e\u0301",
            "\u1100",
            "\uac00",
            "\u05d0\u05b0",
            "\u0915",
            "\u304b",
            "\u0308",
            "\ufdfa",
            "\uff76",
        )
    ]
    assert composed(texts) == [unicode.normalize("NFKC", text) for text in texts]


def test_class_bits_of_every_code_point_equal_the_database() -> None:
    properties = built.tables().properties
    kinds = {
        "letter": built.LETTER,
        "mark": built.MARK,
        "joiner": built.JOINER,
        "symbol": built.SYMBOL,
        "other": 0,
    }
    mask = sum(kinds.values())
    surrogates = range(0xD800, 0xE000)
    # Unassigned and private ones, of whole planes: the same bits as the first and the last of each.
    for plane in range(0x40000, 0x110000, 0x10000):
        if plane != 0xE0000:
            assert len(set(properties[plane : plane + 0x10000].tolist())) == 1, hex(plane)
    for code in (*unicode.WITH_CHARACTERS, *range(0x40000, 0x110000, 0xFFFF)):
        char, bits = chr(code), int(properties[code])
        if unicode.normalize("NFKC", char) != char or code in surrogates:
            continue
        assert bits & mask == kinds[text_twin.kind_of(char)], hex(ord(char))
        assert bool(bits & built.SPACE) == unicode.is_space(char), hex(ord(char))
        assert bool(bits & built.DIGIT) == unicode.is_decimal(char), hex(ord(char))
        assert bool(bits & built.CASED) == (text_twin.folded(char) != char), hex(ord(char))
        assert bool(bits & built.GROWS) == (len(text_twin.folded(char)) > 1), hex(ord(char))
        assert not bits & built.MAPPED, hex(ord(char))


def test_a_character_says_which_rules_its_normal_form_may_match() -> None:
    properties = built.tables().properties
    for char in EVERY[:0x30000]:
        normal = unicode.normalize("NFKC", char)
        if normal != char:
            needed = int(np.bitwise_or.reduce(properties[[ord(c) for c in normal]])) & ~built.COMPLEX
            assert int(properties[ord(char)]) & needed == needed, hex(ord(char))


def test_unspaced_scripts_by_name() -> None:
    for code, unspaced in enumerate(unspaced_table().tolist()):
        name = unicodedata2.name(chr(code), "") if unicode.is_alnum(chr(code)) else ""
        if name.startswith(UNSPACED_NAMES):
            assert unspaced, name
        elif name.startswith(SPACED_NAMES):
            assert not unspaced, name


def test_unspaced_function_equals_the_table() -> None:
    table = unspaced_table()
    codes = [*range(0x20000), *range(0x20000, 0x110000, 257)]
    assert [is_unspaced(code) for code in codes] == table[codes].tolist()


def test_long_runs_of_marks_are_cut_and_keep_their_base() -> None:
    for count in (30, 31, 60, 61, 200):
        text = "e\u0301" + "\u0327" * count
        normal = nfkc_texts([text])[0]
        assert unicode.normalize("NFKC", "e\u0301" + "\u0327" * 29)[0] == normal[0]
        assert normal.count("\u034f") == count // 30
    assert nfkc_texts(["e" + "\u0327" * 29 + "\u0301"])[0] == unicode.normalize(
        "NFKC", "e" + "\u0327" * 29 + "\u0301"
    )


def test_a_mark_beyond_the_thirtieth_is_no_accent_of_its_letter() -> None:
    # the one documented difference from plain NFKC, which would sort the accent to the front and compose it
    text = "e" + "\u0327" * 30 + "\u0301"
    assert unicode.normalize("NFC", "ȩ\u0301")[0] in unicode.normalize("NFKC", text)
    assert nfkc_texts([text])[0][0] == "ȩ"
