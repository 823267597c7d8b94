"""Parts of two texts: all of both, in order, and texts that are made to be slow are not compared whole."""

from __future__ import annotations

from collections import Counter
from difflib import SequenceMatcher
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinsieve.pipeline.basics import printable
from twinsieve.pipeline.basics.printable import Part, parts_of

TEXTS = st.one_of(st.text("abc ", max_size=60), st.integers(0, 300).map("ab".__mul__), st.text(max_size=20))


@given(TEXTS, TEXTS, TEXTS, TEXTS, st.sampled_from([5, 100, 2_000]))
def test_parts_hold_the_beginning_of_both_texts(
    begin: str, left: str, right: str, end: str, most: int
) -> None:
    parts = parts_of(begin + left + end, begin + right + end, most)
    assert "".join(part.left for part in parts) == (begin + left + end)[:most]
    assert "".join(part.right for part in parts) == (begin + right + end)[:most]
    assert all(part.same == (part.left == part.right) for part in parts)
    assert not any(before.same is after.same is False for before, after in pairwise(parts))


def test_texts_of_many_letters_are_compared_whole() -> None:
    left = "".join(chr(0x4E00 + number * number % 997) for number in range(1_900))
    right = f"x{left[:50]}new{left[52:1_700]}also{left[1_702:]}"
    parts = parts_of(left, right)
    assert [(part.left, part.right) for part in parts if not part.same] == [
        ("", "x"),
        (left[50:52], "new"),
        (left[1_700:1_702], "also"),
    ]


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("a" * 3_000 + "c", "b" + "ab" * 1_500),
        ("xa" + "a" * 2_000, "z" + "ab" * 1_000),
        ("ab" * 1_000, "ba" * 999),
    ],
)
def test_texts_of_few_letters_are_compared_in_part(
    monkeypatch: pytest.MonkeyPatch, left: str, right: str
) -> None:
    sizes = []

    def noted(_: None, one: str, other: str, autojunk: bool) -> SequenceMatcher[str]:
        equal = Counter(other)
        sizes.append(sum(equal[letter] for letter in one))
        return SequenceMatcher(None, one, other, autojunk=autojunk)

    monkeypatch.setattr(printable, "SequenceMatcher", noted)
    parts = parts_of(left, right)
    assert len(sizes) == 1
    assert sizes[0] <= 50_000
    assert "".join(part.right for part in parts) == right[:2_000]
    assert not any(before.same is after.same is False for before, after in pairwise(parts))


def test_only_what_differs_is_marked() -> None:
    assert parts_of("aaa", "aaaa") == [Part("aaa", "aaa", True), Part("", "a", False)]
    assert parts_of("at 9 am", "at 10 am") == [
        Part("at ", "at ", True), Part("9", "10", False), Part(" am", " am", True),
    ]  # fmt: skip
