"""Parts of two texts: all of both, in order, marked by word as the sieve compares them; slow texts are bounded."""

from __future__ import annotations

from collections import Counter
from difflib import SequenceMatcher
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinsieve.pipeline.pages import differing
from twinsieve.pipeline.pages.differing import parts_of
from twinsieve.pipeline.settings.load import load_settings
from twinsieve.pipeline.why.explain import Message, explain

TEXTS = st.one_of(
    st.text("abc '.@ ", max_size=60),
    st.integers(0, 300).map("ab ".__mul__),
    st.text(max_size=20),
    st.text("上海12. a\u0e01\u0e31", max_size=30),
)


@given(TEXTS, TEXTS, TEXTS, TEXTS, st.sampled_from([5, 100, 2_000]))
def test_parts_hold_the_beginning_of_both_texts(
    begin: str, left: str, right: str, end: str, most: int
) -> None:
    left, right = f"{begin}{left}{end}", f"{begin}{right}{end}"
    parts = parts_of(left, right, most)
    assert "".join(part.left for part in parts) == left[:most]
    assert "".join(part.right for part in parts) == right[:most]
    assert all(before.same != after.same for before, after in pairwise(parts))
    if left[:most].casefold() == right[:most].casefold():
        assert all(part.same for part in parts)


def marked(earlier: str, later: str) -> list[tuple[str, str]]:
    return [(part.left, part.right) for part in parts_of(earlier, later) if not part.same]


def test_words_are_marked_as_a_whole_and_only_where_they_are_compared() -> None:
    assert marked("WHAT IF GANGAM STYLE was this storm", "What if Gangam style is this storm?!") == [
        ("was", "is")
    ]
    assert marked("@ann so good http://t.co/a1", "so  good… @bob http://t.co/b2") == []
    assert marked("opens at 9.30 am", "opens at 9.45 am") == [("9.30", "9.45")]
    assert marked("don't go", "don\u2019t go") == []
    assert marked("今天武汉下雨", "今天上海下雨") == [("武汉", "上海")]
    assert marked("a b c d", "a c d") == [("b", "")]


PAIRS = [
    ("The ferry leaves at nine today from the old harbour", "The ferry leaves at ten today from the new harbour"),
    ("The bridge over the river is closed until Friday", "THE BRIDGE OVER THE RIVER is now closed until Friday!"),
    ("Fire near Athens forces hundreds to leave their homes", "Fire near Lisbon forces hundreds to leave homes"),
    ("今天武汉新增确诊病例12例，请大家注意安全", "今天上海新增确诊病例15例，请大家一定注意安全！"),
    ("吊兰开了云井工业园风和日丽终于冷淡谁借来我的拐杖", "吊兰开了云井工谁园风了日丽终于冷淡谁借来我的拐杖"),
    ("@ann stay safe everyone the storm is here http://t.co/a1", "stay safe all of you the storm is here http://t.co/b2"),
    ("Council backs plan for a bridge over the river", "Council backs the plan for one more bridge over the river"),
]  # fmt: skip


@pytest.mark.parametrize(("earlier", "later"), PAIRS)
def test_marks_are_those_of_the_line_difference_of_explain(earlier: str, later: str) -> None:
    """The sieve aligns bodies by its own kernel; the same words differ there."""
    settings = load_settings(None, {}, on_files=True)
    explained = explain(Message(earlier), Message(later), settings)
    runs = [parts[:2] for parts in explained.report.parts if parts[0] != parts[1]]
    assert [
        tuple(words.casefold().replace(" ", "") for words in pair) for pair in marked(earlier, later)
    ] == [tuple(words.replace(" ", "") for words in pair) for pair in runs]


def test_texts_of_many_words_are_compared_whole() -> None:
    left = "".join(chr(0x4E00 + number * number % 997) for number in range(1_900))
    right = f"新{left[:50]}三四{left[52:1_700]}五六{left[1_702:]}"
    assert marked(left, right) == [
        ("", "新"),
        (left[50:52], "三四"),
        (left[1_700:1_702], "五六"),
    ]


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("a " * 900 + "c", "b " + "a b " * 450),
        ("上" * 1_900, "海" + "上海" * 900),
        ("上海" * 900, "海上" * 899),
    ],
)
def test_texts_of_few_words_are_compared_in_part(
    monkeypatch: pytest.MonkeyPatch, left: str, right: str
) -> None:
    sizes = []

    def noted(_: None, one: list[str], other: list[str], autojunk: bool) -> SequenceMatcher[str]:
        equal = Counter(other)
        sizes.append(sum(equal[word] for word in one))
        return SequenceMatcher(None, one, other, autojunk=autojunk)

    monkeypatch.setattr(differing, "SequenceMatcher", noted)
    parts = parts_of(left, right)
    assert len(sizes) == 1
    assert sizes[0] <= 50_000
    assert "".join(part.right for part in parts) == right[:2_000]
    assert all(before.same != after.same for before, after in pairwise(parts))
