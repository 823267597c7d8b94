"""Traps: what looks like a difference and is none, and the reverse."""

from __future__ import annotations

import pytest

from tests.stages.differ.test_differences import FULL, GUARDS, HEADLINES, MICROBLOG, TITLES, reason_of
from twinsieve.stages.contract import STORED_LENGTH, Differences
from twinsieve.stages.differ.rules import Rule

_LONG = "".join(map(chr, range(0x4E00, 0x4E00 + STORED_LENGTH)))


def both(earlier: str, later: str, differences: Differences) -> Rule:
    return reason_of(later, earlier, differences)


@pytest.mark.parametrize(
    ("earlier", "later", "rule"),
    [
        ("终场哨响主队3比1拿下比赛", "终场哨响主队1比3拿下比赛", Rule.NUMBER_ADDED),
        ("会议定于5月5日在武汉召开", "会议定于5月6日在武汉召开", Rule.NUMBER),
        ("会议定于5月5日在武汉召开", "会议定于6月6日在武汉召开", Rule.NUMBER),
        ("会议定于5月6日在武汉召开", "会议定于6月5日在武汉召开", Rule.NUMBER_ADDED),
        ("新规格为5/5/7的纸箱已经到货", "新规格为5/7/7的纸箱已经到货", Rule.NUMBER),
        ("结果如何我们都支持你们的决定", "无论结果如何我们都支持你们的决定", Rule.NONE),
        ("洪水冲走了村口的小桥", "无情洪水冲走了村口的小桥", Rule.NONE),
        ("今天的天气还可以吧大家", "不过今天的天气还可以吧大家", Rule.NONE),
        ("昨天排队两小时没买到票", "昨天排队两小时买不到票", Rule.NONE),
        ("这件事情他是可以答应的", "这件事情他不是不可以答应的", Rule.NONE),
        ("这件事情他是可以答应的", "这件事情他是不可以答应的", Rule.OPPOSITE),
        ("我们明早从上海出发去看你", "我们明早从上午出发去看你", Rule.NONE),
        ("我们上午从车站出发去看你", "我们下午从车站出发去看你", Rule.OPPOSITE),
        ("华为mate手机新增颜色发布会", "华为 mate 手机新增颜色发布会", Rule.NONE),
        ("华为mate手机新增颜色发布会", "华为mate手机新增30颜色发布会", Rule.NUMBER_ADDED),
        ("ราคา ๑๐๐ บาท ทุกวัน", "ราคา ๑๐๑ บาท ทุกวัน", Rule.NUMBER),
        ("ราคา ๑๐๐ บาท ทุกวัน", "ราคา 100 บาท ทุกวัน", Rule.NONE),
        ("किताब की कीमत १०० रुपये है", "किताब की कीमत १०१ रुपये है", Rule.NUMBER),
        ("किताब की कीमत १०० रुपये है", "किताब की कीमत 100 रुपये है", Rule.NONE),
        ("המחיר הוא 100 שקל ליום", "המחיר הוא 200 שקל ליום", Rule.NUMBER),
        ("السعر ١٠٠ ريال في اليوم", "السعر ٢٠٠ ريال في اليوم", Rule.NUMBER),
        ("السعر ١٠٠ ريال في اليوم", "السعر 100 ريال في اليوم", Rule.NONE),
    ],
)
def test_guards(earlier: str, later: str, rule: Rule) -> None:
    assert both(earlier, later, GUARDS) == rule


@pytest.mark.parametrize(
    ("one", "other", "rule"),
    [
        # a numeral beside a number was added to it
        ("在线人数突破十万人", "在线人数突破二十万人", Rule.NUMBER_ADDED),
        ("在线人数突破百万人", "在线人数突破三百万人", Rule.NUMBER_ADDED),
        ("今日新增5例确诊", "今日新增5万例确诊", Rule.NUMBER_ADDED),
        ("本店十名学生参加演出", "本店三十名学生参加演出", Rule.NUMBER_ADDED),
        ("演出定在一月举行", "演出定在十一月举行", Rule.NUMBER_ADDED),
        ("大家都有份别急", "大家都十分有份别急", Rule.NONE),
        ("大家一定要保护好自己", "大家一定一定要保护好自己", Rule.NONE),
        ("在线人数突破二", "在线人数突破二十", Rule.NONE),
        # runs that may be cut in two ways: ผ่าน[ไม่]ได้ is ผ่านไ[ม่ไ]ด้ as well
        ("รถผ่านไม่ได้วันนี้", "รถผ่านได้วันนี้", Rule.OPPOSITE),
        ("เขาไม่ได้ไปทำงาน", "เขาไปทำงาน", Rule.OPPOSITE),
        # two names change places, a word moves
        ("We sing la la la la tonight for free", "We sing tonight la la la la for free", Rule.NONE),
        ("哈哈今天的电影真好看啊", "今天的电影哈哈真好看啊", Rule.NONE),
        # a negation of two words is one
        ("Le ministre ne sera pas candidat au printemps", "Le ministre sera candidat au printemps", Rule.OPPOSITE),
        ("Le train ne circule plus ce soir", "Le train circule encore ce soir", Rule.OPPOSITE),
        ("Город никогда не был закрыт для туристов", "Город был закрыт для туристов", Rule.OPPOSITE),
        ("They are neither rich nor famous today", "They are rich and famous today", Rule.OPPOSITE),
        ("El ministro no irá nunca a Roma", "El ministro irá a Roma", Rule.OPPOSITE),
        ("Le ministre ne sera pas candidat", "Le ministre ne sera candidat", Rule.NONE),
    ],
)  # fmt: skip
def test_guards_say_the_same_either_way(one: str, other: str, rule: Rule) -> None:
    assert both(one, other, GUARDS) == both(other, one, GUARDS) == rule


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("真的喜欢这里的凉皮和奶茶", "我真的是很喜欢这里的凉皮和奶茶啊"),
        ("the library is closed on sundays in winter", "so the library is closed on sundays in the winter"),
    ],
)
def test_light_words_keep_nothing_apart(earlier: str, later: str) -> None:
    assert both(earlier, later, FULL) == both(later, earlier, FULL) == Rule.NONE


@pytest.mark.parametrize(("inside", "rule"), [(8, Rule.NUMBER), (4, Rule.NONE), (3, Rule.NONE)])
def test_a_number_that_the_stored_head_cuts_is_unknown(inside: int, rule: Rule) -> None:
    """Five digits; the head holds all of them and more, the first four, or three."""
    before = _LONG[: STORED_LENGTH - inside]
    assert both(before + "12345" + _LONG[:90], before + "12999" + _LONG[:90], FULL) == rule


def test_what_stands_behind_the_head_keeps_nothing_apart() -> None:
    assert both(_LONG + "新增9例", _LONG + "新增11例", FULL) == Rule.NONE


def test_an_alignment_of_hundreds_of_runs_ends() -> None:
    one = "".join(chr(0x4E00 + 2 * place) + chr(0x7000 + place) for place in range(STORED_LENGTH // 2))
    other = "".join(chr(0x4E00 + 2 * place) + chr(0x8000 + place) for place in range(STORED_LENGTH // 2))
    assert both(one, other, FULL) == Rule.REPLACED
    assert both(one, other, GUARDS) == Rule.NONE


@pytest.mark.parametrize(("places", "rule"), [(2, Rule.NONE), (5, Rule.IN_ITS_PLACE)])
def test_a_name_counts_in_its_place_as_long_as_few_places_differ(places: int, rule: Rule) -> None:
    """Four places beside the name, which differ in words that were added."""
    template = "尊敬{}的家长您好{}请于明天上午到{}领取孩子{}的课本和校服费用{}已经全部缴清谢谢您的配合"
    earlier = template.format("", "啊", "育英院", "们", "")
    later = template.format("们", "", "明德堂", "", "都")
    assert both(earlier, later, FULL._replace(places=places)) == rule


@pytest.mark.parametrize(
    ("earlier", "later", "rule"),
    [
        ("安康农大", "保康林大", Rule.IN_ITS_PLACE),
        ("中南", "南昌", Rule.IN_ITS_PLACE),
        ("静岡", "岡山", Rule.IN_ITS_PLACE),
        ("师生", "学师", Rule.IN_ITS_PLACE),
        ("好的", "的好", Rule.NONE),
        ("清华", "华东师", Rule.IN_ITS_PLACE),
        ("清华", "华东师范", Rule.NONE),
    ],
)
def test_runs_around_a_character_are_joined_where_one_was_replaced_or_both_make_names(
    earlier: str, later: str, rule: Rule
) -> None:
    template = "本周六{}足球队的训练取消了请各位同学们互相转告谢谢大家的支持配合"
    assert both(template.format(earlier), template.format(later), FULL) == rule


@pytest.mark.parametrize(("words", "rule"), [(18, Rule.NONE), (19, Rule.ADDED_INSIDE)])
def test_more_than_a_limit_inside_keeps_apart_whoever_has_it(words: int, rule: Rule) -> None:
    before, behind = "尊敬客户您本月套餐国内流量", "感谢使用我们网络服务祝您生活愉快事业兴旺家庭幸福"
    field = "".join(chr(0x6C00 + place) for place in range(words))
    sms = FULL._replace(inside=18)
    assert both(before + behind, before + field + behind, sms) == rule
    assert both(before + field + behind, before + behind, sms) == rule
    assert both(before + behind, before + behind + field, sms) == Rule.NONE


@pytest.mark.parametrize(
    ("earlier", "later", "limits", "rule"),
    [
        ("299,004w", "12points299,004w", HEADLINES, Rule.REPLACED),
        ("三 12 03", "三", HEADLINES, Rule.NONE),
        ("9/22 points 十 是 more", "9/22 回 是 more คน", MICROBLOG, Rule.NONE),
        ("乙a- innocentbnmonday更正", "乙a+ 甲bnmonday。updateबंद", MICROBLOG, Rule.OPPOSITE),
        ("monday 十 un มีค tourist", "un มีค tourist คน", TITLES, Rule.WORD_ADDED),
    ],
)
def test_pairs_that_tell_mutants_apart(earlier: str, later: str, limits: Differences, rule: Rule) -> None:
    """Drawn at random; each is one that a drawn mutant of a kernel judges in another way."""
    assert both(earlier, later, limits) == rule
