"""What keeps two messages apart: the kernel against the plain list, and what the lists promise."""

from __future__ import annotations

import pytest
from hypothesis import strategies as st

from tests.stages.differ.asked import reason
from twinsieve.stages import contract
from twinsieve.stages.contract import LIMITS, Differences
from twinsieve.stages.differ.rules import Category, Rule
from twinsieve.stages.differ.workspace import new_differing
from twinsieve.stages.text.normalizer import Normalizer
from twinsieve.stages.text.rules import TextConfig

FULL = Differences(contract.FULL)
GUARDS = Differences(contract.GUARDS)
MICROBLOG = FULL._replace(
    short=20, replaced_short=200, replaced=200, only_short=1000, longest=10, places=1, own=30, own_share=450
)
TITLES = FULL._replace(in_place=1)
HEADLINES = FULL._replace(in_place=1, name_places=3, each=6, own_share=300)
ANYWHERE = FULL._replace(in_place=0)
SMS = FULL._replace(places=512, inside=3)
_NORMALIZER = Normalizer(TextConfig(profile="plain"))
_COMPARING = Normalizer(TextConfig(profile="plain", compare=("links", "mentions", "tags")))
_WORK = new_differing()


def reason_of(later: str, earlier: str, differences: Differences = FULL, *, comparing: bool = False) -> Rule:
    """Why two texts are kept apart. comparing: by links, @names and tags, too"""
    bodies = (_COMPARING if comparing else _NORMALIZER).bodies([later, earlier])
    return reason(bodies, 0, 1, differences)


_PIECES = st.sampled_from(
    [
        "今天",
        "明天",
        "上午",
        "下午",
        "新增",
        "确诊",
        "病例",
        "例",
        "第",
        "期",
        "一",
        "二",
        "三",
        "十",
        "百",
        "万",
        "亿",
        "3",
        "15",
        "100",
        "1.5万",
        "1,500",
        "2.3.1",
        "9:30",
        "3比1",
        "1比3",
        "-5",
        "$5",
        "€5",
        "12a",
        "12b",
        "h1n1",
        "h5n1",
        "5kg",
        "5g",
        "a12345",
        "不",
        "没",
        "无论",
        "不过",
        "是",
        "涨",
        "跌",
        "更正",
        "谣言",
        "武汉",
        "南昌",
        "甲",
        "乙",
        "的",
        "了",
        "我",
        "你",
        "中国",
        "大学",
        "学校",
        "中南",
        "地震",
        "太阳",
        "去哪儿",
        "三号",
        "四号",
        "京都",
        "ました",
        "uk",
        "us",
        "eu",
        "세종",
        "서울",
        "http",
        "in boston",
        "in denver",
        "。",
        "师",
        "the",
        "a",
        "not",
        "never",
        "ne",
        "pas",
        "ni",
        "neither",
        "pm",
        "p m",
        "am",
        "3",
        "3pm",
        "3:30",
        "15:30",
        "million",
        "bn",
        "1.8bn",
        "1.8",
        "$5m",
        "5m",
        "5000000",
        "dollars",
        "dollar",
        "of",
        "march",
        "may",
        "2024",
        "2024-03-05",
        "05/03/2024",
        "25/03/2024",
        "25",
        "25th",
        "2nd",
        "second",
        "colour",
        "color",
        "get",
        "gets",
        "estación",
        "estaciones",
        "boston",
        "denver",
        "to",
        "another",
        "planned",
        "attempted",
        "拟",
        "再次",
        "จะปิด",
        "จะ",
        "news",
        "com",
        "新闻",
        "网",
        "お風呂",
        "部屋",
        "も",
        "や",
        "来年",
        "bostons",
        "update",
        "video",
        "5km",
        "5kms",
        "km",
        "nor",
        "open",
        "closed",
        "unsafe",
        "safe",
        "rise",
        "fall",
        "monday",
        "friday",
        "three",
        "seven",
        "team",
        "won",
        "lost",
        "update",
        "fake",
        "minister",
        "guilty",
        "innocent",
        "color",
        "colour",
        "organise",
        "organize",
        "๑๐๐",
        "ไม่",
        "เปิด",
        "ปิด",
        "ます",
        "ません",
        "नहीं",
        "ませんでした",
        "なかった",
        "くない",
        "かもしれない",
        "た",
        "gitmiyor",
        "gidiyor",
        "gelmedi",
        "geldi",
        "gelmemek",
        "gelmek",
        "değil",
        "ve",
        "bir",
        "không",
        "chỉ",
        "là",
        "tidak",
        "belum",
        "yang",
        "못했다",
        "했다",
        "틀림없이",
        "jamais",
        "nunca",
        "no",
        "only",
        "que",
        "los",
        "der",
        "und",
        "vivo",
        "mira",
        "खुले",
        "बंद",
        "не",
        "открыт",
        "25",
        "2025",
        "1/2",
        " → ",
        " <- ",
        " ✓ ",
        " ✗ ",
        " < ",
        " >= ",
        " != ",
        "c# ",
        "c++ ",
        "s23 ",
        "s23+ ",
        "15+ ",
        "15- ",
        "a+ ",
        "a- ",
        "disney ",
        "sooo ",
        "soooooo ",
        "haha ",
        "hahahah ",
        "너무",
        "너무너무 ",
        "축하드립니다 ",
        "축하드려요 ",
        "ㅋㅋㅋ",
        "ㅠㅠ ",
        "disney+ ",
        "mate60+",
        " http://t.cn/a ",
        " http://t.cn/b ",
        " @anna ",
        " @otto ",
        " #news ",
        " #sport ",
    ]
)
_TEXTS = st.lists(_PIECES, min_size=1, max_size=14)


def pieces(least: int, most: int) -> st.SearchStrategy[str]:
    """Texts of some of the words that rules look at."""
    return st.lists(_PIECES, min_size=least, max_size=most).map(" ".join)


_KEPT_APART = {
    Rule.NUMBER: ("新增12例确诊病例", "新增15例确诊病例", GUARDS),
    Rule.NUMERAL: ("地铁三号线今天停运", "地铁四号线今天停运", GUARDS),
    Rule.CALENDAR: ("the market opens on monday", "the market opens on friday", GUARDS),
    Rule.NUMBER_ADDED: ("the bus leaves the station", "the bus 25 leaves the station", GUARDS),
    Rule.OPPOSITE: ("the museum is open today", "the museum is closed today", GUARDS),
    Rule.STAGE: (
        "storm batters the harbour of the old town",
        "another storm batters the harbour of the old town",
        FULL,
    ),
    Rule.REPEATED: (
        "art teacher wanted, apply as art teacher at the school of the county",
        "bus driver wanted, apply as bus driver at the school of the county",
        GUARDS,
    ),
    Rule.CORRECTION: ("fire at the old plant", "fake fire at the old plant", GUARDS),
    Rule.LINK: ("watch it here https://ex.am/ep12", "watch it here https://ex.am/ep13", GUARDS),
    Rule.MENTION: ("thanks to @anna for all", "thanks to @otto for all", GUARDS),
    Rule.TAG: ("good #news for all of us", "good #sport for all of us", GUARDS),
    Rule.REPLACED: ("flight to boston", "flight to denver", FULL),
    Rule.BOTH_SAY_MORE: ("武汉下雨了大家回家", "我的朋友武汉下雨了", FULL),
    Rule.LONG_REPLACEMENT: ("甲" * 90 + "乙" * 8 + "丙" * 90, "甲" * 90 + "丁" * 8 + "丙" * 90, ANYWHERE),
    Rule.IN_ITS_PLACE: (
        "wildfire near athens forces hundreds to leave their homes",
        "wildfire near lisbon forces hundreds to leave their homes",
        FULL,
    ),
    Rule.OWN_WORDS: ("the ferry waits in the harbour", "x" * 36 + " the ferry waits in the harbour", FULL),
    Rule.ADDED_INSIDE: (
        "the ferry of this evening waits for all guests in the old harbour",
        "the ferry of this evening waits three long hours for all guests in the old harbour",
        SMS,
    ),
    Rule.WORD_ADDED: ("man dies in crash on road", "man dies in fatal crash on road", FULL),
}


def test_each_rule_keeps_a_pair_apart() -> None:
    assert _KEPT_APART.keys() == {rule for rule in Rule if rule.category is not Category.BESIDE}
    found = {
        rule: reason_of(later, earlier, differences, comparing=True)
        for rule, (earlier, later, differences) in _KEPT_APART.items()
    }
    assert found == {rule: rule for rule in _KEPT_APART}


def test_each_rule_names_the_limits_that_it_reads() -> None:
    assert {limit for rule in Rule for limit in rule.limits} == set(LIMITS)


def test_own_words_count_by_their_letters_though_any_text_has_their_pairs() -> None:
    report = (
        "The police department says officers used no force during the arrest of a street vendor outside the "
        "stadium on Sunday evening and that the man left the scene unharmed after a short talk"
    )
    comment = "I filmed the whole thing, they threw him on the ground and broke his wrist. "
    assert reason_of(comment + report, report, MICROBLOG) == Rule.OWN_WORDS
    same_words = "On Sunday the police officers used force outside the stadium. "
    assert reason_of(same_words + report, report, MICROBLOG) == Rule.NONE
    for letters, rule in ((30, Rule.NONE), (31, Rule.OWN_WORDS)):
        assert reason_of("x" * letters + " " + report, report, MICROBLOG) == rule


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("harbour ferry delayed", "harbour ferry delayed collision inquiry"),
        ("council budget meeting", "mayor skips council budget meeting"),
        ("storm closes coastal road", "storm closes coastal road bridge tunnel"),
    ],
)
def test_a_title_of_which_a_third_is_its_own_is_kept(earlier: str, later: str) -> None:
    assert reason_of(later, earlier, HEADLINES) == Rule.OWN_WORDS
    assert reason_of(earlier, later, HEADLINES) == Rule.NONE, "who leaves words out says nothing new"
    assert reason_of(later, earlier, HEADLINES._replace(own_share=600)) == Rule.NONE


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("harbour ferry delayed by storm", "the harbour ferries are delayed by a storm"),
        ("council passes road budget after long debate", "council passes road budget after a debate"),
    ],
)
def test_words_in_another_form_are_not_its_own(earlier: str, later: str) -> None:
    assert reason_of(later, earlier, HEADLINES) == Rule.NONE
