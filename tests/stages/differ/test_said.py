"""What only the later of two short texts says keeps it: the siblings of `said.py`, our own texts."""

from __future__ import annotations

import pytest

from tests.stages.differ.test_differences import FULL, SMS, reason_of
from twinsieve.stages.contract import Differences
from twinsieve.stages.differ.phrases import FOREIGN, HARM, LAUGHS, LENGTHS_SHIFT, MAX_PHRASE
from twinsieve.stages.differ.rules import Rule

NONE, ADDED = Rule.NONE, Rule.WORD_ADDED


def _reason(later: str, earlier: str, limits: Differences = FULL) -> Rule:
    return reason_of(later, earlier, limits)


@pytest.mark.parametrize(
    ("earlier", "later", "rule"),
    [
        ("お茶がおいしかったです。", "お茶と団子がおいしかったです。", ADDED),
        ("お茶がおいしかったです。", "お茶がとてもおいしかったです。", NONE),
        ("眺めがよくて癒されました。", "湖の眺めがよくて癒されました。", ADDED),
        ("眺めがよくて癒されました。", "本当に眺めがよくて癒されました。", NONE),
        ("廊下も新しくて便利でした", "廊下も台所も新しくて便利でした", ADDED),
        ("廊下も台所も新しくて便利でした", "廊下も新しくて便利でした", NONE),
        ("紅茶の香りも気に入りました", "紅茶の香りもとても気に入りました", NONE),
        ("またここへ来たいと思います。", "またここへ是非来たいと思います。", NONE),
        ("またここへ来たいと思います。", "また家族とここへ来たいと思います。", ADDED),
        ("かき氷の店に寄りました。", "4月9日かき氷の店に寄りました。", ADDED),
        ("4月9日かき氷の店に寄りました。", "4/9 かき氷の店に寄りました。", NONE),
        ("動画を上げましたカレーです", "動画を上げましたカレー研究です", ADDED),
        ("動画を上げましたカレー研究です", "動画を上げましたカレーです", NONE),
        ("動画を上げました「海へ」", "動画を上げました「XYZ海へ」", ADDED),
        (
            "今日は朝から畑で子どもたちと一緒にじゃがいもをたくさん掘りましたよ、とても楽しくて腰が痛いです",
            "今日は朝から畑で子どもたちと一緒にじゃがいもをたくさん掘りましたよ、とても楽しくて膝が痛いです",
            ADDED,
        ),
    ],
)
def test_in_japanese_a_han_character_katakana_or_number_says_something(
    earlier: str, later: str, rule: Rule
) -> None:
    assert _reason(later, earlier) == rule


@pytest.mark.parametrize(
    ("earlier", "later", "rule"),
    [
        ("ร้านนี้เปิดอยู่", "ร้านนี้เปิดอยู่นะคะ", NONE),
        ("ร้านนี้เปิดอยู่", "ร้านนี้เปิดอยู่ที่เชียงใหม่", ADDED),
        ("ร้านนี้เปิดอยู่ที่เชียงใหม่", "ร้านนี้เปิดอยู่", NONE),
        ("ขอราคาหน่อยค่ะ", "ขอราคาตู้เย็นหน่อยค่ะ", ADDED),
        ("ขอราคาหน่อยค่ะ", "ขอราคาหน่อยได้ไหมค่ะ", NONE),
        (
            "#วิ่งรอบเมืองเพื่อโรงเรียน #วิ่งด้วยกันทั้งจังหวัด #รวมพลังวันอาทิตย์",
            "ลูกสาวลงวิ่งสิบกิโลเมตรแรกเมื่อเช้า #วิ่งรอบเมืองเพื่อโรงเรียน #วิ่งด้วยกันทั้งจังหวัด #รวมพลังวันอาทิตย์",
            ADDED,
        ),
    ],
)
def test_in_thai_letters_say_something_that_are_in_no_particle(earlier: str, later: str, rule: Rule) -> None:
    assert _reason(later, earlier) == rule


@pytest.mark.parametrize(
    ("earlier", "later", "rule"),
    [
        ("河北招生考试成绩今日公布", "河北农业大学招生考试成绩今日公布", ADDED),
        ("河北农业大学招生考试成绩今日公布", "河北招生考试成绩今日公布", ADDED),
        ("河北招生考试成绩今日公布", "河北招生考试成绩今日网上公布", NONE),
        ("I want to see the lake", "I want to rent bikes and see the lake", ADDED),
        ("I want to see the lake", "I want to go in it and see the lake", NONE),
        ("我也想去看海", "你也想去看海", Rule.OPPOSITE),
    ],
)
def test_an_institution_or_a_phrase_in_a_short_text_says_something(
    earlier: str, later: str, rule: Rule
) -> None:
    assert _reason(later, earlier) == rule


@pytest.mark.parametrize(
    ("earlier", "later", "rule"),
    [
        (
            "Strong storm hits the coast of Peru tonight",
            "Strong storm kills dozens, hits the coast of Peru tonight",
            Rule.STAGE,
        ),
        (
            "Strong storm kills dozens, hits the coast of Peru tonight",
            "Strong storm hits the coast of Peru tonight",
            NONE,
        ),
        (
            "Hotel fire in the old port still burns tonight",
            "Two dead: Hotel fire in the old port still burns tonight",
            Rule.STAGE,
        ),
        (
            "Incendio en un hotel del puerto viejo esta noche",
            "Dos muertos: Incendio en un hotel del puerto viejo esta noche",
            Rule.STAGE,
        ),
    ],
)
def test_the_dead_of_an_event_are_news_and_who_leaves_them_out_tells_none(
    earlier: str, later: str, rule: Rule
) -> None:
    assert _reason(later, earlier) == rule


@pytest.mark.parametrize(
    ("earlier", "later", "rule"),
    [
        (
            "您 订阅 的 铃声 是 sunrise 轻音乐版 回复 数字 可以 免费 试听 七天 之后 按月 收费",
            "您 订阅 的 铃声 是 月亮河边 轻音乐版 回复 数字 可以 免费 试听 七天 之后 按月 收费",
            Rule.IN_ITS_PLACE,
        ),
        (
            "超市 周末 等你 来 海信 格兰 今天 终于 到货 数量 有限 先到先得 退订 回 T",
            "超市 周末 等你 来 苏泊 海信 今天 终于 到货 数量 有限 先到先得 退订 回 T",
            Rule.IN_ITS_PLACE,
        ),
        (
            "超市 周末 等你 来 苏泊 今天 终于 到货 数量 有限 先到先得 退订 回 T",
            "超市 周末 等你 来 苏泊 今天 到货 数量 有限 先到先得 退订 回 T",
            NONE,
        ),
    ],
)
def test_a_name_of_another_script_or_another_pair_of_names_stands_in_its_place(
    earlier: str, later: str, rule: Rule
) -> None:
    assert _reason(later, earlier, SMS) == rule


def test_tears_and_laughter_of_hangul_may_be_longer() -> None:
    assert _reason("고마워ㅠㅠ 조심해서 가ㅠㅠ", "고마워ㅠ 조심해서 가ㅠ") == NONE


def test_facts_of_words_share_no_bit() -> None:
    lengths = sum(1 << LENGTHS_SHIFT + k for k in range(MAX_PHRASE))
    assert not LAUGHS & FOREIGN
    assert LAUGHS & lengths, "a bit that only characters use otherwise"
    assert HARM < 32
