"""A mark right behind a word belongs to it: S23+ is not S23, A- is not A+."""

from __future__ import annotations

import pytest

from tests.stages.text.test_signs import body, judged
from tests.stages.text.test_text import rows
from twinsieve.stages.contract import Kind
from twinsieve.stages.differ.rules import Rule


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        # a plus behind a word of any length, before a blank, a mark or the end
        ("Samsung Galaxy S23+ 256GB", "samsunggalaxys23+256gb"),
        ("iPhone 15+ case", "iphone15+case"),
        ("iPhone 15＋ case", "iphone15+case"),
        ("18+ only", "18+only"),
        ("for 1,500+ readers", "for1500+readers"),
        ("4.5+ stars", "4.5+stars"),
        ("A+, B+; C+!", "a+b+c+"),
        ("A+/B+ (C+)", "a+b+c+"),
        ("'A+' or “B-”", "a+orb-"),
        ("<b>A+</b>", "ba+b"),
        ("P40 Pro+ and Disney+", "p40pro+anddisney+"),
        ("blood type AB+", "bloodtypeab+"),
        ("Na⁺ und Ca²⁺", "na+undca2+"),
        ("Б+ и α+", "б+иα+"),
        ("S23+🔥", "s23+"),
        # before an unspaced script where the word is short or ends with a digit
        ("S23+发布!", "s23+发布"),
        ("华为Mate60+发布", "华为mate60+发布"),
        ("华为P40 Pro+发布", "华为p40pro+发布"),
        ("完成A+轮融资", "完成a+轮融资"),
        ("10+年", "10+年"),
        ("Python+机器学习", "python机器学习"),
        # a minus behind a word of three characters at most
        ("rating A- for", "ratinga-for"),
        ("rating A− for", "ratinga-for"),
        ("rating A– for", "ratinga-for"),
        ("评级为AA-，展望稳定", "评级为aa-展望稳定"),
        ("cut to BBB- from BBB", "cuttobbb-frombbb"),
        ("Note 2- in Mathe", "note2-inmathe"),
        ("for 8- 10 people", "for8-10people"),
        # C# and C++ stay
        ("C++ and C#", "c++andc#"),
        ("for l'A+ too", "forla+too"),
    ],
)
def test_a_mark_behind_a_word_is_kept(text: str, kept: str) -> None:
    assert body(f"{text}\n") == kept


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("wait - what", "waitwhat"),
        ("wait- what", "waitwhat"),
        ("well-known COVID-19 A-B", "wellknowncovid19ab"),
        ("3-5 1+1 +86 138", "3-51+186138"),
        ("5-$10 5%-8%", "5$1058"),
        ("pre- and post-war", "preandpostwar"),
        ("1- wash\n2- rinse", "1wash2rinse"),
        ("T-恤 A-股", "t恤a股"),
        ("AA + B A+BB", "aababb"),
        ("wow+++ ABC++ l'C#", "wowabclc"),
        ("a+-b A+=B A=>B", "aba=ba→b"),
        ("互联网+医疗 互联网+", "互联网医疗互联网"),
        ("A-> B", "a→b"),
        ("(+) - + ", ""),
        ("A— B A—", "aba"),
    ],
)
def test_a_mark_that_joins_or_adorns_is_none(text: str, kept: str) -> None:
    assert body(f"{text}\n") == kept


APART = [
    ("Samsung Galaxy S23 256GB Phantom Black", "Samsung Galaxy S23+ 256GB Phantom Black", Rule.NUMBER),
    ("iPhone 15 case with a ring on its back", "iPhone 15+ case with a ring on its back", Rule.NUMBER),
    ("A+ rating for the new school in town", "A- rating for the new school in town", Rule.OPPOSITE),
    ("Fitch cuts the rating of the bank to BBB today", "Fitch cuts the rating of the bank to BBB- today", Rule.OPPOSITE),
    ("The film is on Disney from this Friday on", "The film is on Disney+ from this Friday on", Rule.OPPOSITE),
    ("华为今天正式发布P40 Pro手机，大家快来看", "华为今天正式发布P40 Pro+手机，大家快来看", Rule.OPPOSITE),
    ("华为Mate60今天正式发布，大家快来看", "华为Mate60+今天正式发布，大家快来看", Rule.NUMBER),
    ("急需O+血型的热心人，请速到市医院献血", "急需O-血型的热心人，请速到市医院献血", Rule.OPPOSITE),
    ("More than 100 people came to the meeting", "More than 100+ people came to the meeting", Rule.NUMBER),
    ("Looking for a C developer in our Berlin office", "Looking for a C++ developer in our Berlin office", Rule.OPPOSITE),
    ("Der Lehrer gab ihm eine 2+ in Mathematik", "Der Lehrer gab ihm eine 2- in Mathematik", Rule.NUMBER),
]  # fmt: skip

SAME = [
    ("Samsung Galaxy S23+ 256GB Phantom Black", "Samsung Galaxy S23＋ 256GB, Phantom Black!"),
    ("A- rating for the new school in town", "A− rating for the new school in town"),
    ("A well-known method for COVID-19 patients", "A well known method for COVID 19 patients"),
    ("Wait - what did he say about the bridge", "Wait, what did he say about the bridge"),
    ("互联网+医疗的新模式正在全国推广", "互联网医疗的新模式正在全国推广"),
    ("Python+机器学习入门课程今天开始报名", "Python机器学习入门课程今天开始报名"),
]


@pytest.mark.parametrize("profile", ["microblog", "plain"])
@pytest.mark.parametrize(("earlier", "later", "reason"), APART)
def test_words_that_differ_in_their_mark_are_kept_apart(
    earlier: str, later: str, reason: Rule, profile: str
) -> None:
    assert judged(earlier, later, profile) == judged(later, earlier, profile) == (Kind.UNIQUE, reason)


@pytest.mark.parametrize("profile", ["microblog", "plain"])
@pytest.mark.parametrize(("earlier", "later"), SAME)
def test_another_spelling_and_another_joint_change_nothing(earlier: str, later: str, profile: str) -> None:
    assert judged(earlier, later, profile)[0] is judged(later, earlier, profile)[0] is Kind.EXACT


def test_short_bodies_keep_the_mark() -> None:
    assert [row.key for row in rows(["A+", "A-", "A", "15+", "S23+"])] == ["a+", "a-", "a", "15+", "s23+"]
