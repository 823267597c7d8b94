"""`text.compare`: another link, @name or tag in place of one keeps two messages apart; one more or less does not."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.stages.text import test_signs
from tests.stages.text import twin as text_twin
from tests.stages.text.test_text import messages, rows_of
from twinsieve.stages.contract import Kind
from twinsieve.stages.differ.rules import Rule
from twinsieve.stages.errors import UsageError
from twinsieve.stages.text.normalizer import Normalizer
from twinsieve.stages.text.references import FIRST_REFERENCE, MAX_REFERENCES, without_references
from twinsieve.stages.text.rules import TextConfig

ALL = ("links", "mentions", "tags")
PROFILES = ("microblog", "plain")

DENSE = st.one_of(
    st.lists(
        st.sampled_from(
            [
                "http://t.cn/a", "HTTPS://WWW.T.cn/a/", "www.t.cn/A", "http://www.", "https://x.y/a,", " ", "\n", "a", "甲",
                "@anna", "@Anna", "@", "RT @otto", "RT  ", "rt @otto", "//@otto:", "//@", "// @otto:", "#甲乙#", "#甲 乙#",
                "#news", "#News", "#12", "#1a", "#कोरोना", "#", "网页链接", "加油武汉加油中国", "5", "甲#b", "#a@b", "@a#b",
            ]
        ),
        max_size=14,
    ).map("".join),
    st.text("#@/:ht.wRT aA甲5_-·\n", max_size=30),
    messages,
)  # fmt: skip


def comparing(profile: Any, compare: Any = ALL) -> Normalizer:
    return Normalizer(TextConfig(profile=profile, compare=compare))


READY = {
    (profile, compare): comparing(profile, compare) for profile in PROFILES for compare in (ALL, ("tags",))
}


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("compare", [ALL, ("tags",)])
@settings(max_examples=examples(300))
@example(texts=["0|\u0390", "\u0390|0", "0|ß", "ß + 4", "0|a"])
@given(texts=st.lists(DENSE, max_size=8))
def test_bodies_with_references_equal_the_plain_twin(profile: str, compare: Any, texts: list[str]) -> None:
    found = list(rows_of(READY[profile, compare].bodies(texts)))
    assert found == [text_twin.row(text, profile, "product", compare) for text in texts]


@pytest.mark.parametrize("profile", PROFILES)
@given(texts=st.lists(messages, max_size=8))
def test_references_stand_behind_the_body_and_change_nothing_of_it(profile: Any, texts: list[str]) -> None:
    plain = Normalizer(TextConfig(profile=profile)).bodies(texts)
    found = READY[profile, ALL].bodies(texts)
    for row, text in enumerate(texts):
        key = plain.text(row)
        assert found.text(row).startswith(key)
        behind = found.text(row)[len(key) :]
        assert all(ord(char) >= FIRST_REFERENCE for char in behind), text
        assert len(behind) <= 2 * MAX_REFERENCES
        assert found.exact_only[row] == plain.exact_only[row]
        assert found.body_lengths[row] - plain.body_lengths[row] in (0, len(behind))


def keys(*texts: str, profile: str = "microblog", compare: Any = ALL) -> list[str]:
    bodies = comparing(profile, compare).bodies(list(texts))
    return [bodies.text(row) for row in range(len(texts))]


POST = "今天的新闻发布会通报了最新疫情数据"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("http://t.cn/A6abc", "http://t.cn/A6xyz"),
        ("http://t.cn/A6abc", "http://t.cn/a6abc"),
        ("https://ex.am/ep12", "https://ex.am/ep13"),
        ("@张三", "@李四"),
        ("#武汉加油#", "#湖北加油#"),
        ("#第12期#", "#第13期#"),
        ("#sandy", "#irma"),
        ("#वर्षा", "#वन"),
        ("#أخبار", "#رياضة"),
    ],
)
def test_keys_of_other_references_differ(one: str, other: str) -> None:
    assert len(set(keys(f"{POST} {one}", f"{POST} {other}"))) == 2


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (f"{POST} http://t.cn/a", f"HTTPS://WWW.T.CN/a. {POST}"),
        (f"{POST} http://t.cn/a", f"{POST} (http://t.cn/a/)"),
        (f"{POST} @Anna", f"@anna {POST}"),
        (f"#武汉加油##中国加油# {POST}", f"{POST} #中国加油# #武汉加油#"),
        (f"{POST} #武汉加油#", f"{POST} #武汉加油# #武汉加油#"),
        (f"{POST} O网页链接", POST),
        (f"{POST} //@张三: 顶 http://t.cn/a #甲#", f"{POST} //@李四: 好 http://t.cn/b"),
        (f"真的 //@张三: {POST}", f"真的 //@李四: {POST}"),
        (f"RT @anna {POST}", f"RT @otto {POST}"),
    ],
)
def test_what_moved_or_is_spelled_otherwise_is_the_same(one: str, other: str) -> None:
    assert len(set(keys(one, other))) == 1


def test_each_kind_is_compared_where_it_is_asked_for_alone() -> None:
    others = {"links": "http://t.cn/b", "mentions": "@otto", "tags": "#乙#"}
    texts = {"links": "http://t.cn/a", "mentions": "@anna", "tags": "#甲#"}
    for compared in ALL:
        for kind in ALL:
            one, other = keys(f"{POST} {texts[kind]}", f"{POST} {others[kind]}", compare=(compared,))
            assert (one != other) == (kind == compared)


def test_a_row_of_more_references_than_are_told_has_none() -> None:
    names = [f"@name{number}" for number in range(MAX_REFERENCES + 1)]
    most, more = keys(f"{POST} {' '.join(names[:-1])}", f"{POST} {' '.join(names)}")
    assert (len(most), len(more)) == (len(POST) + 2 * MAX_REFERENCES, len(POST))


def test_numbers_with_a_hash_and_keycaps_are_no_tags() -> None:
    texts = [f"{POST} #1", f"{POST} #️⃣", f"{POST} C#", f"{POST}#a"]
    assert all(ord(char) < FIRST_REFERENCE for key in keys(*texts, profile="plain") for char in key)


def test_a_body_is_shown_with_its_references_in_words() -> None:
    (key,) = keys("看 @anna #甲# http://t.cn/a 今天的新闻发布会")
    assert without_references(key) == "看今天的新闻发布会 [link] [mention] [tag]"


def test_unknown_kinds_are_refused() -> None:
    with pytest.raises(UsageError, match=r"text\.compare holds 'urls'; use some of links, mentions, tags"):
        comparing("plain", ("urls",))


def judged(earlier: str, later: str, compare: Any = ALL, level: Any = "guards") -> tuple[Kind, Rule]:
    return test_signs.judged(earlier, later, "microblog", compare, level)


REPLACED = [
    ("Check out my new video https://youtu.be/aaaa", "Check out my new video https://youtu.be/bbbb", Rule.LINK),
    ("Episode is out now, watch it here https://ex.am/ep12", "Episode is out now, watch it here https://ex.am/ep13", Rule.LINK),
    ("@Alice congratulations on your new job, well deserved!", "@Bob congratulations on your new job, well deserved!", Rule.MENTION),
    ("#第12期# 中奖名单公布，请大家及时领取", "#第13期# 中奖名单公布，请大家及时领取", Rule.TAG),
    ("#فيضان# السفر من القاهرة متاح اليوم لجميع المسافرين", "السفر من القاهرة متاح اليوم لجميع المسافرين #زلزال#", Rule.TAG),
    ("הרכבת לאילת תצא היום בזמן לכל הנוסעים @anna", "הרכבת לאילת תצא היום בזמן לכל הנוסעים @otto", Rule.MENTION),
]  # fmt: skip


@pytest.mark.parametrize(("earlier", "later", "reason"), REPLACED)
@pytest.mark.parametrize("level", ["guards", "full"])
def test_another_reference_in_place_of_one_keeps_apart(
    earlier: str, later: str, reason: Rule, level: str
) -> None:
    assert judged(earlier, later, level=level)[0] is Kind.UNIQUE
    assert judged(later, earlier, level=level) == judged(earlier, later, level=level)
    assert judged(earlier, later, ())[0] is not Kind.UNIQUE or reason is Rule.TAG
    if level == "guards":
        assert judged(earlier, later)[1] is reason


@pytest.mark.parametrize(
    "more", ["http://t.cn/a", "@anna", "#武汉加油#", "http://t.cn/a @anna @otto #武汉加油#"]
)
def test_a_reference_added_dropped_or_moved_keeps_nothing_apart(more: str) -> None:
    post = POST + "请大家继续做好防护"
    assert judged(post, f"{post} {more}") == (Kind.NEAR, Rule.NONE)
    assert judged(f"{more} {post}", post) == (Kind.NEAR, Rule.NONE)
    assert judged(f"{more} {post}", f"{post} {more}")[0] is Kind.EXACT
    assert judged(f"{more} {post} http://t.cn/b", f"{post} {more}", level="full")[0] is Kind.NEAR


def test_words_at_the_end_are_at_the_end_whatever_is_referred_to() -> None:
    """References are no tokens: what stands before them still touches the end of the body."""
    assert judged(f"{POST}。更正：数据有误 @anna", f"{POST} @anna") == (Kind.UNIQUE, Rule.CORRECTION)
    assert judged(f"{POST}通报如下 @anna", f"{POST}通报 @anna")[0] is Kind.NEAR


def test_guards_name_their_reason_first_and_off_names_none() -> None:
    one, other = f"{POST} 15 例 http://t.cn/a 详见", f"{POST} 16 例 http://t.cn/b 详见"
    assert judged(one, other) == (Kind.UNIQUE, Rule.NUMBER)
    assert judged(f"{POST} @anna", f"{POST} @otto", level="off") == (Kind.NEAR, Rule.NONE)


def test_short_bodies_are_compared_with_all_their_references() -> None:
    assert judged("看视频 http://t.cn/a", "看视频 http://t.cn/b")[0] is Kind.UNIQUE
    assert judged("看视频 http://t.cn/a", "看视频")[0] is Kind.UNIQUE
    assert judged("看视频 http://t.cn/a", "http://t.cn/a 看视频！")[0] is Kind.EXACT
    assert judged("看视频 http://t.cn/a", "看视频 http://t.cn/b", ())[0] is Kind.EXACT


def test_long_bodies_are_told_apart_by_no_reference() -> None:
    """Behind the stored head nothing is known."""
    article = "".join(chr(0x4E00 + 7 * number % 9000) for number in range(600))
    assert judged(f"{article} http://t.cn/a", f"{article} http://t.cn/b")[0] is Kind.NEAR


def test_5_000_references_take_linear_room() -> None:
    (key,) = keys(POST + "".join(f" @name{number} #tag{number}" for number in range(5_000)), profile="plain")
    assert all(ord(char) < FIRST_REFERENCE for char in key)
