"""The frozen Unicode database: what it is, where it came from, and that no interpreter can change a body."""

from __future__ import annotations

import sys
import unicodedata
from hashlib import blake2b
from itertools import pairwise

import numpy as np
import unicodedata2
from hypothesis import given, settings
from hypothesis import strategies as st

from scripts import unicode_tables
from tests import unicode_twin
from tests.examples import examples
from twinsieve.stages.judge.scheme import Scheme, SchemeConfig
from twinsieve.stages.text.code_point_tables import DIGIT, LETTER, SPACE, tables
from twinsieve.stages.text.compatibility import case_folded, nfkc, nfkc_texts, pack
from twinsieve.stages.text.unicode import UNICODE_VERSION, database

SCHEME_ID = "f65d066adf61fe8e"
CHECKSUM = "882223127f1fbcfd7a4947e9c37b5a55"

HERE = [
    chr(code) for code in range(sys.maxunicode + 1) if unicodedata.category(chr(code)) not in ("Cn", "Cs")
]
"""Characters that the database of this interpreter has."""
ACTIVE = [
    char
    for char in map(chr, range(0x30000))
    if unicodedata2.combining(char)
    or unicodedata2.decomposition(char)
    or "\u1100" <= char <= "\u11ff"
    or "\uac00" <= char <= "\uac40"
]
ACTIVE_HERE = sorted(set(ACTIVE) & set(HERE))
MARKS = [char for char in ACTIVE if unicodedata2.combining(char)]
BASES = [*"aeoAIªΑи\u0915\u09c7\u0b47\u1025\u3046\uff76\u1100\u1112\uac00\uac01\ufb1d\u05d0", "\U00011131"]


def composed(texts: list[str]) -> list[str]:
    found = nfkc(*pack(texts))
    whole = found.chars.tobytes().decode("utf-32-le")
    return [whole[first:last] for first, last in pairwise(found.starts.tolist())]


def test_the_default_scheme_id_changes_on_purpose_alone() -> None:
    # State, snapshots and logs of every installation carry it: another one makes them all unreadable.
    assert Scheme(SchemeConfig()).scheme_id == SCHEME_ID


def test_the_tables_change_with_a_new_unicode_version_alone() -> None:
    whole = blake2b(digest_size=16)
    for name, array in sorted(database().items()):
        whole.update(f"{name} {array.dtype.str} {array.shape}".encode() + array.tobytes())
    assert (UNICODE_VERSION, whole.hexdigest()) == ("17.0.0", CHECKSUM)


def test_the_file_is_what_the_script_makes_under_this_python() -> None:
    made = unicode_tables.tables()
    assert unicodedata2.unidata_version == UNICODE_VERSION
    assert made.keys() == database().keys()
    for name, array in made.items():
        assert np.array_equal(array, database()[name]), name


def test_characters_of_this_python_are_what_this_python_says() -> None:
    properties = tables().properties.tolist()
    for char in HERE:
        bits = properties[ord(char)]
        if unicodedata.normalize("NFKC", char) == char:
            assert bool(bits & LETTER) == (char.isalnum() and char != "\u0640"), hex(ord(char))
            assert bool(bits & DIGIT) == char.isdecimal(), hex(ord(char))
            assert bool(bits & SPACE) == char.isspace(), hex(ord(char))
        if char not in "\u0130\u0131\u06cc\u06a9\u06c1":
            assert case_folded(char) == char.casefold(), hex(ord(char))
    assert composed(HERE) == [unicodedata.normalize("NFKC", char) for char in HERE]


@settings(max_examples=examples(300))
@given(st.lists(st.text(st.sampled_from(ACTIVE_HERE) | st.sampled_from("ae가ᄀ"), max_size=12), max_size=6))
def test_nfkc_of_this_pythons_characters_is_this_pythons(texts: list[str]) -> None:
    assert composed(texts) == [unicodedata.normalize("NFKC", text) for text in texts]


@settings(max_examples=examples(600))
@given(
    st.lists(
        st.text(
            st.sampled_from(BASES)
            | st.sampled_from(MARKS)
            | st.sampled_from(ACTIVE)
            | st.characters(exclude_categories=["Cs"]),
            max_size=25,
        ),
        max_size=6,
    )
)
def test_nfkc_of_hostile_sequences_is_that_of_the_version(texts: list[str]) -> None:
    assert composed(texts) == [unicodedata2.normalize("NFKC", text) for text in texts]


def test_nfkc_of_every_pair_that_composes() -> None:
    pairs = [(chr(first), chr(second)) for first, second, _ in database()["pairs"].tolist()]
    between = ("", "\u0323", "\u0301", "\u200d", "\u0f73", "x")
    texts = [first + middle + second for first, second in pairs for middle in between]
    assert composed(texts) == [unicodedata2.normalize("NFKC", text) for text in texts]


def test_nfkc_of_hangul_is_by_rule() -> None:
    syllables = [chr(code) for code in range(0xAC00, 0xD7A4)]
    apart = [unicodedata2.normalize("NFD", char) for char in syllables]
    assert composed(apart) == syllables
    assert composed([char + "\u11a8" for char in syllables]) == [
        unicodedata2.normalize("NFKC", char + "\u11a8") for char in syllables
    ]


def test_marks_hidden_in_one_character_count_in_the_cut() -> None:
    # U+0F73 is a starter that is taken apart into two marks: uncut, sorting a long run takes hours.
    for char in ("\u0f73", "\u0f81", "\u0344", "\uff9e"):
        assert nfkc_texts(["e" + char * 3000])[0].count("\u034f") == 99


def test_letters_that_are_newer_than_the_python_fold_as_their_names_say() -> None:
    for capital, small in (
        ("\u1c89", "\u1c8a"),
        ("\ua7cb", "\u0264"),
        ("\U00010d50", "\U00010d70"),
        ("\ua7d2", "\ua7d3"),
    ):
        assert case_folded(capital) == unicode_twin.casefold(capital) == small
