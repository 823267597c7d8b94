"""Signs, currencies and comparisons belong to the number they stand before; ranges, dates and scores stay."""

from __future__ import annotations

from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.stages.text import twin as text_twin
from tests.stages.text.test_text import rows
from twinsieve.pipeline.tools.evaluate.evaluate import batch_of
from twinsieve.stages.contract import LEVELS, Differences, Kind, NearConfig, SieveConfig
from twinsieve.stages.differ.rules import Rule
from twinsieve.stages.judge.batch_sieve import BatchSieve
from twinsieve.stages.judge.scheme import Scheme, SchemeConfig
from twinsieve.stages.text.rules import TextConfig

REST = "这是后面的八个字"

DENSE = st.one_of(
    st.text("5-$> =a度", max_size=10),
    st.text("3๕−-￥ <=%月\u200d", max_size=10),
    st.text("35٣๕-−–$￥€ <>≤≧=+%)月度a万時.,:/\u200d\u0301é温ไ่😀@#\n", max_size=14),
)


def body(text: str, profile: str = "microblog") -> str:
    """The body of a text that is followed by enough letters not to be short."""
    (row,) = rows([text + REST], profile)
    assert row.key.endswith(REST)
    return row.key.removesuffix(REST)


@pytest.mark.parametrize("profile", ["microblog", "plain"])
@settings(max_examples=examples(500))
@given(texts=st.lists(DENSE, max_size=8))
def test_bodies_dense_with_signs_equal_the_plain_twin(profile: str, texts: list[str]) -> None:
    assert rows(texts, profile) == [text_twin.row(text, profile, "product") for text in texts]


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        # signs
        ("气温-5度", "气温-5度"),
        ("气温−5度", "气温-5度"),
        ("气温–5度", "气温-5度"),
        ("气温－５度", "气温-5度"),
        ("-5度", "-5度"),
        ("fell to −12 degrees", "fellto-12degrees"),
        ("增长 -1.5%", "增长-1.5"),
        ("(-5)", "-5"),
        ("😀-5", "-5"),
        ("❤\ufe0f-5", "-5"),
        ("درجة -٥", "درجة-٥"),
        ("อุณหภูมิ-๕", "อุณหภูมิ-๕"),
        ("氣溫-20~-16度", "氣溫-20-16度"),
        # what went before it leaves a blank
        ("#话题#-5度", "-5度"),
        ("@某人 -5度", "-5度"),
        ("http://t.cn/a -5度", "-5度"),
        # currencies
        ("$5", "$5"),
        ("＄5", "$5"),
        ("￥500", "¥500"),
        ("￥ 500", "¥500"),
        ("₩5000 ₹3 ₽2 ৳9", "₩5000₹3₽2৳9"),
        ("US$5", "us$5"),
        ("$1,500.5", "$1500.5"),
        ("$$$5", "$5"),
        ("-$5", "-$5"),
        ("$-5", "$-5"),
        # comparisons
        ("年龄>35岁", "年龄>35岁"),
        ("年龄 > 35 岁", "年龄>35岁"),
        ("年龄＜35岁", "年龄<35岁"),
        ("年龄>=35岁", "年龄≥35岁"),
        ("年龄≧35岁", "年龄≥35岁"),
        ("年龄≥=35岁", "年龄≥35岁"),
        ("年龄<= 35岁", "年龄≤35岁"),
        ("1+1>2", "1+1>2"),
        ("<-$5", "<-$5"),
    ],
)
def test_what_stands_before_a_number_is_kept(text: str, kept: str) -> None:
    assert body(text) == kept


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        # ranges
        ("3-5度", "3-5度"),
        ("3–5度", "3-5度"),
        ("3度-5度", "3度5度"),
        ("300元-500元", "300元500元"),
        ("5%-8%", "58"),
        ("10°-15°", "1015"),
        ("3月-5月", "3月5月"),
        ("2日-5日", "2日5日"),
        ("10点-12点", "10点12点"),
        ("0時-24時", "0時24時"),
        ("三-5天", "三5天"),
        ("2013年–2015年", "2013年2015年"),
        # dates, phones, scores, names
        ("2020-02-03", "2020-02-03"),
        ("138-0013-8000", "138-0013-8000"),
        ("+86-138", "86-138"),
        ("(010)-8888", "0108888"),
        ("[1]-5", "15"),
        ("3-1", "3-1"),
        ("2:1", "2:1"),
        ("COVID-19", "covid19"),
        ("क्-5", "क्5"),
        ("é-5 e\u0301-5", "é5é5"),
        ("F\u200d-16", "f16"),
        # lines, lists, amounts before
        ("3--5天", "35天"),
        ("价格--5元", "价格5元"),
        ("-----5", "5"),
        ("->5 >>5 <<5", "555"),
        ("- 5 苹果", "5苹果"),
        ("5€ 3 个", "53个"),
        ("5$", "5"),
        ("-", ""),
        ("$", ""),
        ("<3-", "<3"),
        ("-.5", "5"),
    ],
)
def test_ranges_dates_scores_and_lines_have_no_sign(text: str, kept: str) -> None:
    assert body(text) == kept


def test_a_sign_at_the_end_of_the_text_is_none() -> None:
    assert [
        row.key for row in rows(["气温气温气温气温-", "气温气温气温气温$", "气温气温气温气温> ", "-"])
    ] == [
        "气温气温气温气温",
        "气温气温气温气温",
        "气温气温气温气温",
        "-",
    ]


def test_the_letters_rule_keeps_no_sign() -> None:
    (row,) = rows(["气温-5度，售价$5，年龄>5岁"], body_rule="letters")
    assert row.key == "气温5度售价5年龄5岁"


def test_signed_numbers_alone_are_compared_exactly_only() -> None:
    found = rows(["-12,345.67 $9,876.5", ">12345678", "-12345678度"])
    assert [row.exact_only for row in found] == [True, True, False]


def judged(
    earlier: str,
    later: str,
    profile: Any,
    compare: Any = (),
    level: Literal["off", "guards", "full"] = "guards",
) -> tuple[Kind, Rule]:
    scheme = Scheme(SchemeConfig(TextConfig(profile=profile, compare=compare)))
    config = SieveConfig(near=NearConfig(differences=Differences(LEVELS.index(level))))
    verdicts = BatchSieve(config).judge(batch_of(*scheme.read([earlier, later])))
    return Kind(int(verdicts.kinds[1])), Rule(int(verdicts.reasons[1]))


HOSTILE = [
    ("minus", "The temperature fell to −12 degrees in the capital last night", "The temperature fell to 12 degrees in the capital last night"),
    ("num-sign", "今天最高气温-5度，出门注意保暖哦朋友们", "今天最高气温5度，出门注意保暖哦朋友们"),
    ("temp", "明天气温-3到5度，请注意保暖，早晚添衣", "明天气温3到5度，请注意保暖，早晚添衣"),
    ("gt", "招聘条件：年龄 >35 岁，有经验者优先考虑", "招聘条件：年龄 <35 岁，有经验者优先考虑"),
    ("sym", "Is x < 5 or y > 10 the right answer to the question", "Is x > 5 or y < 10 the right answer to the question"),
    ("currency", "The second ticket costs $25 if you book before Friday", "The second ticket costs €25 if you book before Friday"),
    ("short", "-1", "1"),
    ("short", "$5", "5%"),
    ("short", "3-1", "31"),
    ("range", "儿童票适用于5-10岁的小朋友，请提前购票", "儿童票适用于5-12岁的小朋友，请提前购票"),
    ("num-date", "活动将于5月12日在市体育馆举行，欢迎参加", "活动将于5月13日在市体育馆举行，欢迎参加"),
    ("num-score", "终场比分 2:1，主队拿下关键一战，球迷沸腾了", "终场比分 2:3，主队输掉关键一战，球迷沸腾了"),
]  # fmt: skip


@pytest.mark.parametrize("profile", ["microblog", "plain"])
@pytest.mark.parametrize(("earlier", "later"), [pair[1:] for pair in HOSTILE])
def test_hostile_pairs_are_kept(earlier: str, later: str, profile: str) -> None:
    assert judged(earlier, later, profile)[0] is Kind.UNIQUE
    assert judged(later, earlier, profile)[0] is Kind.UNIQUE


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("明天气温3-5度，请注意保暖，早晚添衣", "明天气温3~5度，请注意保暖，早晚添衣！"),
        ("明天气温3度-5度，请注意保暖，早晚添衣", "明天气温3度~5度，请注意保暖，早晚添衣！"),
        ("售价￥500元，九成新，需要的联系我", "售价¥ 500元，九成新，需要的联系我"),
        ("明天气温-5度，请注意保暖，早晚添衣", "明天气温−5度 请注意保暖 早晚添衣"),
        ("招聘条件：年龄>=35岁，有经验者优先考虑", "招聘条件：年龄 ≥ 35岁，有经验者优先考虑"),
        ("报名电话138-0013-8000，名额有限先到先得", "报名电话：138-0013-8000 名额有限 先到先得"),
    ],
)
def test_other_spellings_of_one_number_are_exact_duplicates(earlier: str, later: str) -> None:
    assert judged(earlier, later, "plain")[0] is Kind.EXACT


def test_a_changed_sign_is_a_changed_number() -> None:
    kind, reason = judged(*HOSTILE[1][1:], "plain")
    assert (kind, reason) == (Kind.UNIQUE, Rule.NUMBER)


def test_both_bodies_of_a_pair_may_hold_the_same_sign() -> None:
    earlier = "今天最高气温-5度，出门注意保暖哦朋友们"
    assert judged(earlier, earlier + "啊", "plain")[0] is Kind.NEAR
