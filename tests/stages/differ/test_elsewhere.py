"""What differs beyond one replaced run: moved, repeated, at an end, in names that hold little; both ways."""

from __future__ import annotations

import pytest

from tests.stages.differ.test_difference_traps import both
from tests.stages.differ.test_differences import FULL, GUARDS, MICROBLOG, TITLES
from twinsieve.stages.contract import Differences
from twinsieve.stages.differ.rules import Rule


def either_way(one: str, other: str, differences: Differences) -> Rule:
    rule = both(one, other, differences)
    assert both(other, one, differences) == rule
    return rule


@pytest.mark.parametrize(
    ("one", "other", "rule"),
    [
        ("Flat to let: 850 euro a month, two rooms, near the station, call Anna", "Flat to let: two rooms, near the station, 990 euro a month, call Anna", Rule.NUMBER),
        ("Сдаётся квартира: 300 евро в месяц, две комнаты, рядом метро", "Сдаётся квартира: две комнаты, рядом метро, 450 евро в месяц", Rule.NUMBER),
        ("아파트 임대 월세 50만 방 두 개 지하철 가까움 전화 주세요", "아파트 임대 방 두 개 지하철 가까움 월세 70만 전화 주세요", Rule.NUMBER),
        ("新しいノート16GB搭載で来週発売、予約は店頭で", "新しいノート来週発売、32GB搭載で予約は店頭で", Rule.NUMBER),
        ("On 5 March the town hall is open to all visitors for free", "The town hall is open to all visitors on 12 March for free", Rule.NUMBER),
        ("三号线今天早高峰因信号故障列车晚点", "今天早高峰因信号故障四号线列车晚点", Rule.NUMERAL),
        ("周六博物馆免费开放，请市民提前预约", "博物馆周日免费开放，请市民提前预约", Rule.CALENDAR),
        ("El lunes el ferry a la isla sale tarde del puerto viejo", "El ferry a la isla sale tarde el viernes del puerto viejo", Rule.CALENDAR),
        ("受消息影响大幅上涨，这家公司的股票成交额创新纪录", "受消息影响，这家公司的股票大幅下跌成交额创新纪录", Rule.OPPOSITE),
        # what moved is the same, in whatever form
        ("Flat to let: 850 euro a month, two rooms, near the station", "Flat to let: two rooms, near the station, 850 euro a month", Rule.NONE),
        ("On 5 March the town hall is open to all visitors for free", "The town hall is open to all visitors on March 5 for free", Rule.NONE),
        ("Twelve people were hurt when the train left the rails", "When the train left the rails 12 people were hurt", Rule.NONE),
        ("On Monday the ferry leaves the old harbour late", "The ferry leaves the old harbour late on Monday", Rule.NONE),
        ("UPDATE 1- Oil prices climb after the talks of the ministers", "UPDATE 2- Oil prices climb after the talks of the ministers", Rule.NONE),
        ("Lenovo Slim flex touch 8GB 10.1 W10 pro", "Lenovo Slim flex touch 8GB W10pro 10.1 grey", Rule.NONE),
        ("Thoughts and prayers to those in the west of Texas", "Our thoughts and prayers go out to the west of Texas", Rule.NONE),
        # only one of them adds something
        ("The ferry leaves the old harbour late", "On Monday the ferry leaves the old harbour late", Rule.NONE),
    ],
)  # fmt: skip
def test_what_each_body_has_alone_keeps_apart_wherever_it_stands(one: str, other: str, rule: Rule) -> None:
    assert either_way(one, other, GUARDS) == rule


@pytest.mark.parametrize(
    ("one", "other", "rule"),
    [
        ("Art Teacher. About the job: we look for an art teacher with patience", "Bus Driver. About the job: we look for a bus driver with patience", Rule.REPEATED),
        ("Visit Lisbon: our guide to Lisbon has the best walks", "Visit Prague: our guide to Prague has the best walks", Rule.REPEATED),
        ("诚聘厨师，要求吃苦耐劳，厨师请联系人事部", "诚聘保安，要求吃苦耐劳，保安请联系人事部", Rule.REPEATED),
        ("The colour of the house is the colour of the sea", "The color of the house is the color of the sea", Rule.NONE),
        ("Visit Lisbon: our guide to town has the best walks", "Visit Prague: our guide to town has the best walks", Rule.NONE),
        ("哈哈哈哈今天的电影太好看了大家都去看", "嘻嘻嘻嘻今天的电影太好看了大家都去看", Rule.NONE),
    ],
)  # fmt: skip
def test_the_same_words_replaced_twice_are_another_text(one: str, other: str, rule: Rule) -> None:
    assert either_way(one, other, GUARDS) == rule


@pytest.mark.parametrize(
    ("one", "other", "rule"),
    [
        ("地震", "暴雨", Rule.IN_ITS_PLACE),
        ("太阳", "月亮", Rule.IN_ITS_PLACE),
        ("成都", "杭州", Rule.IN_ITS_PLACE),
        ("得物", "闲鱼", Rule.IN_ITS_PLACE),
        ("去哪儿", "携程网", Rule.IN_ITS_PLACE),
        ("LG", "HP", Rule.IN_ITS_PLACE),
        ("可以", "能够", Rule.NONE),
        ("告诉", "转给", Rule.NONE),
    ],
)
def test_a_light_character_counts_in_a_name(one: str, other: str, rule: Rule) -> None:
    template = "四川今晨发布消息说{}暂无更多详情，相关部门已启动应急响应，请各位市民朋友保持冷静"
    assert either_way(template.format(one), template.format(other), MICROBLOG) == rule


@pytest.mark.parametrize(
    ("one", "other", "rule"),
    [
        ("US", "UK", Rule.IN_ITS_PLACE),
        ("EU", "UN", Rule.IN_ITS_PLACE),
        ("AI", "PR", Rule.IN_ITS_PLACE),
        ("РФ", "ЕС", Rule.IN_ITS_PLACE),
        ("서울", "부산", Rule.IN_ITS_PLACE),
        ("X", "S", Rule.OPPOSITE),
        ("Y", "X", Rule.OPPOSITE),
        ("at", "in", Rule.NONE),
        ("he", "we", Rule.NONE),
    ],
)
def test_two_letters_that_are_light_in_no_language_are_a_name(one: str, other: str, rule: Rule) -> None:
    template = "The people {} announced new rules for the bank today after months of talks"
    assert either_way(template.format(one), template.format(other), TITLES) == rule


@pytest.mark.parametrize(
    ("one", "other", "rule"),
    [
        ("ブログを更新しました「息子と」", "ブログを更新しました「息子とどらえもん」", Rule.IN_ITS_PLACE),
        ("ブログを更新しました「福岡から東京」", "ブログを更新しました「福岡から東京六本木」", Rule.IN_ITS_PLACE),
        ("ブログを更新しました「京都」", "ブログを更新しました「京都」！", Rule.NONE),
        ("Now playing on Radio Nine: The Beatles - Yesterday", "Now playing on Radio Nine: The Beatles - Michelle", Rule.IN_ITS_PLACE),
        ("Anti war protests of students and teachers go on in Boston", "Anti war protests of students and teachers go on in Denver", Rule.IN_ITS_PLACE),
        ("So far this week two of them sent a homeless man bomb threats", "So far this week two of them sent a homeless man bomb threa", Rule.NONE),
        ("Police see a fatal accident at the old harbour", "Police see a fatal accident at the old harbor", Rule.NONE),
        ("公共场所都应该停用，发现再停用感觉有点晚了吧", "公共场所都应该停用，发现再停用晚了吧", Rule.NONE),
        # a phrase moved, with another name
        ("In Boston the ferry leaves the old harbour late because of repairs", "The ferry leaves the old harbour late in Denver because of repairs", Rule.IN_ITS_PLACE),
        ("In Boston the ferry leaves the old harbour late because of repairs", "The ferry leaves the old harbour late in Boston because of repairs", Rule.NONE),
        ("在武汉今天白天晴转多云南风二三级空气质量良请注意防晒出行", "今天白天晴转多云南风二三级在长沙空气质量良请注意防晒出行", Rule.IN_ITS_PLACE),
    ],
)  # fmt: skip
def test_another_title_or_name_at_an_end_or_moved_is_another_text(one: str, other: str, rule: Rule) -> None:
    assert either_way(one, other, FULL) == rule
    assert either_way(one, other, FULL._replace(in_place=0, added_short=512)) == Rule.NONE
