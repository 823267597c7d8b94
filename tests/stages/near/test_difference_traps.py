"""Traps: what looks like a difference and is none, and the reverse; kernel and plain list agree on each."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.stages.near.test_differences import FULL, GUARDS, reasons
from twinsieve.stages.contract import STORED_LENGTH, Differences, Reason

_LONG = "".join(map(chr, range(0x4E00, 0x4E00 + STORED_LENGTH)))


def both(earlier: str, later: str, differences: Differences) -> Reason:
    kernel, plain = reasons(later, earlier, differences)
    assert kernel == plain, (earlier, later)
    return kernel


@pytest.mark.parametrize(
    ("earlier", "later", "said"),
    [
        ("终场哨响主队3比1拿下比赛", "终场哨响主队1比3拿下比赛", Reason.NUMBER_ADDED),
        ("会议定于5月5日在武汉召开", "会议定于5月6日在武汉召开", Reason.NUMBER),
        ("会议定于5月5日在武汉召开", "会议定于6月6日在武汉召开", Reason.NUMBER),
        ("会议定于5月6日在武汉召开", "会议定于6月5日在武汉召开", Reason.NUMBER_ADDED),
        ("新规格为5/5/7的纸箱已经到货", "新规格为5/7/7的纸箱已经到货", Reason.NUMBER),
        ("结果如何我们都支持你们的决定", "无论结果如何我们都支持你们的决定", Reason.NONE),
        ("洪水冲走了村口的小桥", "无情洪水冲走了村口的小桥", Reason.NONE),
        ("今天的天气还可以吧大家", "不过今天的天气还可以吧大家", Reason.NONE),
        ("昨天排队两小时没买到票", "昨天排队两小时买不到票", Reason.NONE),
        ("这件事情他是可以答应的", "这件事情他不是不可以答应的", Reason.NONE),
        ("这件事情他是可以答应的", "这件事情他是不可以答应的", Reason.OPPOSITE),
        ("我们明早从上海出发去看你", "我们明早从上午出发去看你", Reason.NONE),
        ("我们上午从车站出发去看你", "我们下午从车站出发去看你", Reason.OPPOSITE),
        ("华为mate手机新增颜色发布会", "华为 mate 手机新增颜色发布会", Reason.NONE),
        ("华为mate手机新增颜色发布会", "华为mate手机新增30颜色发布会", Reason.NUMBER_ADDED),
        ("ราคา ๑๐๐ บาท ทุกวัน", "ราคา ๑๐๑ บาท ทุกวัน", Reason.NUMBER),
        ("ราคา ๑๐๐ บาท ทุกวัน", "ราคา 100 บาท ทุกวัน", Reason.NONE),
        ("किताब की कीमत १०० रुपये है", "किताब की कीमत १०१ रुपये है", Reason.NUMBER),
        ("किताब की कीमत १०० रुपये है", "किताब की कीमत 100 रुपये है", Reason.NONE),
        ("המחיר הוא 100 שקל ליום", "המחיר הוא 200 שקל ליום", Reason.NUMBER),
        ("السعر ١٠٠ ريال في اليوم", "السعر ٢٠٠ ريال في اليوم", Reason.NUMBER),
        ("السعر ١٠٠ ريال في اليوم", "السعر 100 ريال في اليوم", Reason.NONE),
    ],
)
def test_guards(earlier: str, later: str, said: Reason) -> None:
    assert both(earlier, later, GUARDS) == said


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("真的喜欢这里的凉皮和奶茶", "我真的是很喜欢这里的凉皮和奶茶啊"),
        ("the library is closed on sundays in winter", "so the library is closed on sundays in the winter"),
    ],
)
def test_light_words_keep_nothing_apart(earlier: str, later: str) -> None:
    assert both(earlier, later, FULL) == both(later, earlier, FULL) == Reason.NONE


@pytest.mark.parametrize(("inside", "said"), [(8, Reason.NUMBER), (4, Reason.NONE), (3, Reason.NONE)])
def test_a_number_that_the_stored_head_cuts_is_unknown(inside: int, said: Reason) -> None:
    """Five digits; the head holds all of them and more, the first four, or three."""
    before = _LONG[: STORED_LENGTH - inside]
    assert both(before + "12345" + _LONG[:90], before + "12999" + _LONG[:90], FULL) == said


def test_what_stands_behind_the_head_keeps_nothing_apart() -> None:
    assert both(_LONG + "新增9例", _LONG + "新增11例", FULL) == Reason.NONE


def test_an_alignment_of_hundreds_of_runs_ends() -> None:
    one = "".join(chr(0x4E00 + 2 * place) + chr(0x7000 + place) for place in range(STORED_LENGTH // 2))
    other = "".join(chr(0x4E00 + 2 * place) + chr(0x8000 + place) for place in range(STORED_LENGTH // 2))
    assert both(one, other, FULL) == Reason.REPLACED
    assert both(one, other, GUARDS) == Reason.NONE


@pytest.mark.parametrize(("places", "said"), [(2, Reason.NONE), (5, Reason.IN_ITS_PLACE)])
def test_a_name_counts_in_its_place_as_long_as_few_places_differ(places: int, said: Reason) -> None:
    """Four places beside the name, which differ in words that were added."""
    template = "尊敬{}的家长您好{}请于明天上午到{}领取孩子{}的课本和校服费用{}已经全部缴清谢谢您的配合"
    earlier = template.format("", "啊", "育英院", "们", "")
    later = template.format("们", "", "明德堂", "", "都")
    assert both(earlier, later, replace(FULL, place_runs=places)) == said


@pytest.mark.parametrize(("words", "said"), [(18, Reason.NONE), (19, Reason.ADDED_INSIDE)])
def test_more_than_a_limit_inside_keeps_apart_whoever_has_it(words: int, said: Reason) -> None:
    before, behind = "尊敬客户您本月套餐国内流量", "感谢使用我们网络服务祝您生活愉快事业兴旺家庭幸福"
    field = "".join(chr(0x6C00 + place) for place in range(words))
    sms = replace(FULL, inside=36)
    assert both(before + behind, before + field + behind, sms) == said
    assert both(before + field + behind, before + behind, sms) == said
    assert both(before + behind, before + behind + field, sms) == Reason.NONE
