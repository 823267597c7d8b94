"""What differs between two texts, as pages and terminals mark it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from twinsieve.pipeline.basics.printable import Part, parts_of

_TEXTS = st.text("abc", max_size=12)


@given(_TEXTS, _TEXTS, st.integers(0, 8))
def test_parts_are_both_texts_in_order(left: str, right: str, most: int) -> None:
    parts = parts_of(left, right, most)
    assert "".join(part.left for part in parts) == left[:most]
    assert "".join(part.right for part in parts) == right[:most]
    for part in parts:
        assert part.same == (part.left == part.right)
        assert part.left or part.right


def test_only_what_differs_is_marked() -> None:
    assert parts_of("aaa", "aaaa") == [Part("aaa", "aaa", True), Part("", "a", False)]
    assert parts_of("at 9 am", "at 10 am") == [
        Part("at ", "at ", True), Part("9", "10", False), Part(" am", " am", True),
    ]  # fmt: skip
