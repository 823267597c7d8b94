"""The text stage against a plain twin of regular expressions, and what users may rely on."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.accuracy.data_sets import truth_body
from tests.accuracy.labels import texts_of
from tests.examples import examples
from tests.generated import LANGUAGES, polls, stream
from tests.generated_posts import generate
from tests.stages.text import twin as text_twin
from twinsieve.stages.contract import Bodies
from twinsieve.stages.text import normalizer
from twinsieve.stages.text.normalizer import Normalizer
from twinsieve.stages.text.rules import TextConfig

SETS = ("weibo_dev", "comments_dev", "sms_dev", "tweets_dev", "titles_dev", "articles_dev")
PROFILES = ("microblog", "plain")
CONFIGS = [(profile, rule) for profile in PROFILES for rule in ("letters", "product")]

FRAGMENTS = [
    *"#@/:LO2.,-~+ ?\n\t\u3000RTx1·_'的视频收网é\u0301\u0327\u0345\u3099ß\u0130\u0131İΐ１２，．＃＠，。！",
    *"\x00\x85\u200b\u200d\ufe0f\u034f\ufdfa\ufffd\uffff\U0010ffff\ud800\udfff\ue627ㅠㅋ가각ᅡᆨکิไทย",
    *"👍👎🏽❤€$<>=^|½①Ⅷ٣٫क़िि्𝟙𠮷\U000e0067\U000e007f", "\u0301" * 40, "\u0327\u0301" * 20,
    "//@", "// @", "//@某人:", "//@某人 转", "//@" + "人" * 40 + ":", "//@" + "人" * 41 + ":",
    "RT @a", "RT  ", "aRT @", "http://", "HTTPS://t.cn/A", "www.", "WWW.x.com", "httpſ://a",
    "hhttp://b", "http:/", "https:// x",
    "收起全文", "收起全文d", "展开全文c", "全文", "网页链接", "O网页链接", "O O网页链接",
    "#话题#", "##", "# #", "#" + "长" * 80 + "#", "#" + "长" * 81 + "#",
    " L某某的微博视频", "L的秒拍视频", "的微博视频", "某某的秒拍视频", "]L一二", "#L#的微博视频",
    "L" + "名" * 30 + "的微博视频", "L" + "名" * 31 + "的微博视频", " " + "名" * 30 + "的秒拍视频",
    "\n" + "名" * 31 + "的秒拍视频",
    " 2北京·朝阳", " 2北京", " 2月北京", " 2" + "京" * 24, " 2" + "京" * 25, "2上海 ??", " 2沪",
    " O新冠", "L新冠", " OK", " L", "O", "@用户_a-b·c", "@" + "a" * 30, "@" + "a" * 31,
    "转发微博", "加油武汉加油中国", "hello world", "\u0301" * 29 + "e",
    "1.5万", "1,500", "1,500,000.5", "12,34", "0,500", "2020,500",
    "๑ก", ".๒", "2:11", "3~5", "3、5", "1.", ".5", "１，５００", "3×5", "3*5", "3--5",
    "→", "✅", "❌\ufe0f", "->", "<=", "!=", "<b>", "C#", "F++", " c", "=" * 9, "<-", "x <", "#a1", "#12", "#कि ",
]  # fmt: skip

messages = st.one_of(
    st.lists(st.sampled_from(FRAGMENTS), max_size=25).map("".join),
    st.text(max_size=30),
    st.lists(st.one_of(st.sampled_from(FRAGMENTS), st.text(max_size=3)), max_size=12).map("".join),
)

_BLANKS = re.compile(r"O?网页链接|收起全文d?|展开全文c?|(?:https?://|www\.)[\x21-\x7e]+", re.IGNORECASE)
_NO_HAN = r"[^#＃﹟\u2e80-\u9fff\uac00-\ud7af]*"
_OPEN_TAGS = re.compile(rf"[#＃﹟][^#＃﹟\n]*\s[#＃﹟]|[#＃﹟]{_NO_HAN}[^\w#＃﹟]{_NO_HAN}[#＃﹟]")


@cache
def normalizer_of(profile: Any, body_rule: Any) -> Normalizer:
    return Normalizer(TextConfig(profile=profile, body_rule=body_rule))


def rows_of(bodies: Bodies) -> Iterator[text_twin.Row]:
    for row in range(len(bodies)):
        part = slice(bodies.starts[row], bodies.starts[row + 1])
        yield text_twin.Row(
            bodies.text(row),
            bodies.word_starts[part].tolist(),
            int(bodies.body_lengths[row]),
            int(bodies.own_lengths[row]),
            bool(bodies.exact_only[row]),
        )


def rows(texts: list[str], profile: str = "microblog", body_rule: str = "product") -> list[text_twin.Row]:
    return list(rows_of(normalizer_of(profile, body_rule).bodies(texts)))


def keys(*texts: str) -> list[str]:
    return [row.key for row in rows(list(texts))]


@pytest.mark.parametrize(("profile", "body_rule"), CONFIGS)
@settings(max_examples=examples(150))
@given(texts=st.lists(messages, max_size=8))
def test_bodies_equal_the_plain_twin(profile: str, body_rule: str, texts: list[str]) -> None:
    assert rows(texts, profile, body_rule) == [text_twin.row(text, profile, body_rule) for text in texts]


@pytest.mark.matrix
@pytest.mark.parametrize(("profile", "body_rule"), CONFIGS)
def test_all_pairs_of_fragments_equal_the_plain_twin(profile: str, body_rule: str) -> None:
    texts = [one + other for one in FRAGMENTS for other in FRAGMENTS]
    assert rows(texts, profile, body_rule) == [text_twin.row(text, profile, body_rule) for text in texts]


@pytest.mark.usefixtures("data_dir")
@pytest.mark.parametrize("name", SETS)
def test_letters_rule_equals_the_truth_files_on_every_row(name: str) -> None:
    texts = list(texts_of(name).values())
    for profile in PROFILES:
        body = truth_body(profile)
        bodies = normalizer_of(profile, "letters").bodies(texts)
        wrong = [
            text
            for row, text in enumerate(texts)
            for expected in [body(text)]
            # The truth's rule for tags loses the text between two open ones, as #Hurricane Sandy#.
            if not _OPEN_TAGS.search(_BLANKS.sub(" ", text))
            if bodies.text(row) != (expected or text) or bodies.body_lengths[row] != len(expected)
        ]
        assert wrong == []


@pytest.mark.parametrize(
    "name", [*LANGUAGES, *(pytest.param(name, marks=pytest.mark.needs("posts")) for name in SETS)]
)
def test_posts_of_every_language_equal_the_plain_twin(name: str) -> None:
    texts = stream(name, 250, seed=7).texts if name in LANGUAGES else list(texts_of(name).values())[::40]
    for profile, body_rule in CONFIGS:
        found = rows(texts, profile, body_rule)
        assert found == [text_twin.row(text, profile, body_rule) for text in texts]


def test_letters_rule_equals_the_plain_twin_on_every_generated_post() -> None:
    """With tags, links, chains and polls, and the bodies that the truth of the other tests is made of."""
    texts = [post["text"] for post in generate(2_000, seed=7)] + polls(200).texts
    for profile in PROFILES:
        assert rows(texts, profile, "letters") == [text_twin.row(text, profile, "letters") for text in texts]


@settings(max_examples=examples(60))
@given(texts=st.lists(messages, max_size=12))
def test_a_row_does_not_depend_on_its_batch(texts: list[str]) -> None:
    assert [row for text in texts for row in rows([text])] == rows(texts)


def test_chunks_do_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = ["", "加油" * 40, *FRAGMENTS, "", "\ud83d", "x" * 200, ""] * 3
    whole = rows(texts)
    for size in (1, 7, 100):
        monkeypatch.setattr(normalizer, "CHUNK_CHARS", size)
        assert rows(texts) == whole


def test_no_texts_are_no_rows() -> None:
    bodies = normalizer_of("plain", "product").bodies([])
    assert len(bodies) == 0
    assert bodies.starts.tolist() == [0]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("新增1.5万例", "新增15万例"),
        ("今天国足2:11输了比赛", "今天国足21:1输了比赛"),
        ("大约3~5天到货", "大约35天到货"),
        ("大约3、5天到货", "大约35天到货"),
        ("尺寸是3*5厘米的", "尺寸是35厘米的"),
        ("通知第12期开始报名", "通知第13期开始报名"),
        ("👍", "👎"),
        ("好👍", "好👎"),
        ("👍", "👍🏽"),
        ("$5", "€5"),
        ("🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f", "🏴"),
        ("किताब पढ़ी थी", "किताब पढ़ा थी"),
        ("ไก่ตัวใหม่", "ไกตัวใหม่"),
        ("هذا كتاب آخر", "هذا كتاب اخر"),
        ("#武汉加油#👍", "#湖北加油#👍"),
        ("#武汉加油#", "#湖北加油#"),
        ("http://t.cn/a", "http://t.cn/b"),
        ("你妈妈喊你回家吃饭哦,回家罗回家罗", "你妈妈叫你回家吃饭啦,回家罗回家罗"),
    ],
)
def test_keys_differ(one: str, other: str) -> None:
    assert len(set(keys(one, other))) == 2


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("售价1,500元一台起", "售价1500元一台起"),
        ("售价１，５００元一台起", "售价1500元一台起"),
        ("大约3~5天到货", "大约3—5天到货"),
        ("尺寸是3*5厘米的", "尺寸是3×5厘米的"),
        ("大约3--5天到货", "大约3 5天到货"),
        ("❤", "❤\ufe0f"),
        ("👨‍👩‍👧", "👨👩👧"),
        ("好👍！", "好 👍"),
        ("ＨＥＬＬＯ Ｗorld！", "hello world"),
        ("Straße nach Gießen", "STRASSE NACH GIESSEN"),
        ("cafe\u0301 au lait", "café au lait"),
        ("#话题#今天天气真不错", "今天天气真不错 O网页链接 收起全文d"),
        ("可以的，支持你们啊！//@某人:转发微博", "可以的 支持你们啊 //@别人: 顶"),
        ("\ud800", "\udc00"),
        ("ذهب الولد إلى المدرسة", "ذَهَبَ الوَلَدُ إِلَى المَدْرَسَةِ"),
        ("ذهب الولد إلى المدرسة", "ذهـــب الولــد إلى المدرســـة"),
        ("كتاب @محمد_علي", "كتاب @محمـــد_علي"),
        ("הילד הלך לבית הספר", "הַיֶּלֶד הָלַךְ לְבֵית הַסֵּפֶר"),
        ("İSTANBUL'DA FIRTINA VAR", "istanbul'da fırtına var"),
        ("i\u0307stanbul'da fırtına var", "İstanbul'da fırtına var"),
        ("IĞDIR'DA ISI DÜŞTÜ", "Iğdır'da ısı düştü"),
    ],
)
def test_keys_are_equal(one: str, other: str) -> None:
    assert len(set(keys(one, other))) == 1


@pytest.mark.parametrize(
    "text", ["12345678901", "１２３４５６７８９", "1.234.567.890", "٠١٢٣٤٥٦٧٨", "2020-02-12 12:30:00"]
)
def test_digits_alone_are_compared_exactly(text: str) -> None:
    (row,) = rows([text])
    assert row.exact_only
    assert row.body_length >= 8


def test_the_empty_text_has_an_empty_key() -> None:
    assert rows([""]) == [text_twin.Row("", [], 0, 0, True)]


def test_a_text_without_a_body_is_known_by_its_raw_form() -> None:
    raw = ["#a＃", "？！", " ", "\x00", "http://t.cn/x", "@某人 ❤", "…", "#话题# ❤"]
    assert keys(*raw) == raw


def test_letters_rule_keeps_short_bodies_bare() -> None:
    assert [row.key for row in rows(["好👍！", "👍", "1.5万"], body_rule="letters")] == ["好", "👍", "15万"]


@pytest.mark.parametrize(
    ("text", "own"),
    [
        ("太长了 O新冠病毒疫苗可能在18个月内完成", 3),
        ("#话题# 太长了 O新冠病毒疫苗可能在18个月内完成", 3),
        ("O新冠病毒疫苗可能在18个月内完成", 0),
        ("甲乙 O丙丁戊己庚辛 L壬癸子丑寅卯", 8),
        ("太长了 OK新冠病毒疫苗可能在18个月内完成", 21),
        ("太长了O新冠病毒疫苗可能在18个月内完成", 20),
        ("视频来了快看啊 L某某的微博视频", 7),
        ("链接在这里快看啊 O网页链接", 8),
        ("甲乙@丙丁 O丙丁戊己庚辛壬癸", 2),
    ],
)
def test_own_words_end_at_the_last_card_mark(text: str, own: int) -> None:
    assert [row.own_length for row in rows([text])] == [own]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Don't stop, believing", ["dont", "stop", "believing"]),
        ("iPhone12手机壳 12期", ["iphone12", "手机壳", "12", "期"]),
        ("안녕하세요 여러분ไทย", ["안녕하세요", "여러분", "ไทย"]),
        ("今天，天气 不错啊哈", ["今天", "天气", "不错啊哈"]),
        ("मैं हिन्दी लिखता हूँ", ["मैं", "हिन्दी", "लिखता", "हूँ"]),
        ("می\u200cخواهم بروم خانه", ["ميخواهم", "بروم", "خانه"]),
        ("about 1,500.5 people came", ["about", "1500.5", "people", "came"]),
        ("look#tag#here http://t.cn/a again", ["look", "here", "again"]),
        (
            "from Boston -> Denver, C#only is x<y",
            ["from", "boston", "→", "denver", "c", "only", "is", "x", "<", "y"],
        ),
        ("about US$5 or -7 degrees", ["about", "us", "$5", "or", "-7", "degrees"]),
    ],
)
def test_words_begin_after_blanks_and_at_changes_of_script(text: str, words: list[str]) -> None:
    (row,) = rows([text])
    assert row.key == "".join(words)
    assert [i for i, start in enumerate(row.word_starts) if start] == [
        len("".join(words[:n])) for n in range(len(words))
    ]


def test_two_open_tags_lose_no_text_between_them() -> None:
    bodies = Normalizer(TextConfig()).bodies(
        ["#storm hits the north #help", "看 #武汉加油# 大家 #中国 加油#"]
    )
    assert [bodies.text(row) for row in range(2)] == ["stormhitsthenorthhelp", "看大家"]
