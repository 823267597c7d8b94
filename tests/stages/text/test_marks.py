"""Arrows, marks for yes and no and comparisons between words stay in the body, and C# is not C; adornment goes."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.stages.text import twin as text_twin
from tests.stages.text.test_signs import REST, body, judged
from tests.stages.text.test_text import rows
from twinsieve.stages.contract import Kind
from twinsieve.stages.differ.rules import Rule
from twinsieve.stages.text.code_point_tables import BETWEEN_WORDS

DENSE = st.one_of(
    st.text("a→-> <=", max_size=10),
    st.text("c甲#+ C\u200d_5", max_size=10),
    st.text("aAßé5٣甲ไก\u0301+-−—#' \n=>$.\u200d", max_size=12),
    st.text("ab甲乙ไก5٣→⇐✅❌○×√-−—=<>≤≧≠!#+ \n'C_\ufe0f\u0301é@/:L", max_size=14),
)


@pytest.mark.parametrize("profile", ["microblog", "plain"])
@settings(max_examples=examples(500))
@given(texts=st.lists(DENSE, max_size=8))
def test_bodies_dense_with_marks_equal_the_plain_twin(profile: str, texts: list[str]) -> None:
    assert rows(texts, profile) == [text_twin.row(text, profile, "product") for text in texts]


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        # arrows, each direction in one form
        ("北京→上海", "北京→上海"),
        ("北京 -> 上海", "北京→上海"),
        ("北京——>上海", "北京→上海"),
        ("北京⇒上海 ➡\ufe0f 广州", "北京→上海→广州"),
        ("北京 ==> 上海", "北京→上海"),
        ("北京<-上海", "北京←上海"),
        ("北京 <== 上海 ⬅ 广州", "北京←上海←广州"),
        ("北京<->上海⇄广州 <=> 南昌", "北京↔上海↔广州↔南昌"),
        ("from Boston --> Denver", "fromboston→denver"),
        ("दिल्ली → मुंबई", "दिल्ली→मुंबई"),
        ("กรุงเทพ → เชียงใหม่", "กรุงเทพ→เชียงใหม่"),
        ("القاهرة ← دبي", "القاهرة←دبي"),
        ("חיפה ← אילת", "חיפה←אילת"),
        ("서울 → 부산", "서울→부산"),
        ("東京⇒大阪", "東京→大阪"),
        ("Москва => Киев", "москва→киев"),
        ("100 -> 200", "100→200"),
        ("3->5", "3→5"),
        ("价格⬆\ufe0f 销量⬇\ufe0f 股票↗走", "价格↑销量↓股票↑走"),
        # yes and no
        ("甲 ✔️ 乙 ✘ 丙", "甲✓乙✗丙"),
        ("甲✅乙❌丙", "甲✓乙✗丙"),
        ("甲 ☑ 乙 ☒ 丙√丁", "甲✓乙✗丙✓丁"),
        ("甲 ○ 乙 × 丙", "甲✓乙✗丙"),
        ("尺寸3×5厘米", "尺寸3*5厘米"),
        # comparisons
        ("x < y", "x<y"),
        ("甲＞乙", "甲>乙"),
        ("a <= b, c >= d", "a≤bc≥d"),
        ("甲≦乙≥=丙", "甲≤乙≥丙"),
        ("a = b == c != d ≠ e", "a=b=c≠d≠e"),
        ("1+1=2", "1+1=2"),
        ("x=-5", "x=-5"),
        ("x < 5", "x<5"),
        ("x <- 5", "x←5"),
        ("x <-5", "x<-5"),
        ("a < b and c > d", "a<bandc>d"),
        # a lone letter and what stands behind it
        ("C# 语言", "c#语言"),
        ("学C#语言", "学c#语言"),
        ("C++ C＋＋11", "c++c++11"),
        ("F# or F", "f#orf"),
        ("@某人 C# http://t.cn/a#b C++", "c#c++"),
    ],
)
def test_what_says_something_between_words_is_kept(text: str, kept: str) -> None:
    assert body(text) == kept


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        # before the first word, or several between two words
        ("✅ 洗手", "洗手"),
        ("→→→ 戳视频", "戳视频"),
        ("甲 >>>> 乙", "甲乙"),
        ("甲 <<< 乙", "甲乙"),
        ("甲 ===== 乙", "甲乙"),
        ("甲 ---------- 乙", "甲乙"),
        ("甲 ->_-> 乙", "甲乙"),
        ("甲 →_→ 乙", "甲乙"),
        ("甲 >_< 乙 =_= 丙", "甲乙丙"),
        ("甲 ✅✅ 乙", "甲乙"),
        ("甲 ✅\n✅ 乙", "甲乙"),
        ("甲 ✓ ✗ 乙", "甲乙"),
        # brackets
        ("<b>甲</b>乙", "b甲b乙"),
        ("读<大学>有感", "读大学有感"),
        ("one<br/>two", "onebrtwo"),
        # a card behind its mark
        ("太长了 → O新冠病毒", "太长了新冠病毒"),
        # no shaft, no head
        ("甲 - 乙 — 丙", "甲乙丙"),
        ("真的! 对", "真的对"),
        # tags, and letters that are no lone ones
        ("#C# 语言", "语言"),
        ("C#话题#", "c"),
        ("MC# ABC++", "mcabc"),
        ("plan B#brexit", "planbbrexit"),
        ("C+ C+++ AA+B", "c+caab"),
        ("3C# 甲", "3c甲"),
        ("é# 甲", "é甲"),
        ("C#D# 甲", "c甲"),
    ],
)
def test_what_adorns_is_dropped(text: str, kept: str) -> None:
    assert body(text) == kept


def test_a_mark_behind_the_last_word_is_dropped() -> None:
    found = rows(["今天的新闻发布会 →", "今天的新闻发布会✅", "今天的新闻发布会 ->\n"])
    assert {row.key for row in found} == {"今天的新闻发布会"}


def test_tags_of_one_hash_are_no_sharp_letters() -> None:
    found = rows(["vote for #C# today please", "vote for C #today please"], "plain")
    assert [row.key for row in found] == ["voteforc#todayplease", "voteforctodayplease"]


def test_the_letters_rule_keeps_no_mark() -> None:
    (row,) = rows(["北京→上海，C#对C++，甲<乙"], body_rule="letters")
    assert row.key == "北京上海c对c甲乙"


def test_short_bodies_keep_marks_wherever_they_stand() -> None:
    texts = ["✓", "✗", "C#", "C", "a->b", "a<-b", "a!=b", "a=b", "✔", "✅ ok", "ok"]
    keys = [row.key for row in rows(texts)]
    assert keys == ["✓", "✗", "c#", "c", "a→b", "a←b", "a≠b", "a=b", "✓", "✓ok", "ok"]


_HELD = "".join(BETWEEN_WORDS[kept] for kept in "→←↔↑↓✓✗").replace("×", "")


@settings(max_examples=examples(300))
@given(st.text("ab甲乙ไก5٣ ,.-$。\n☆é@/:C" + _HELD, max_size=60))
def test_marks_are_added_to_the_body_and_change_nothing_else(text: str) -> None:
    """A star in their place gives the body as it was before marks were read."""
    starred = text.translate(dict.fromkeys(map(ord, _HELD), "☆"))
    marked, bare = rows([f"{text}\n{REST}", f"{starred}\n{REST}"])
    assert "".join(char for char in marked.key if char not in BETWEEN_WORDS) == bare.key


PAIRS = [
    ("从武汉→南昌的列车今天恢复运行请旅客注意", "从武汉←南昌的列车今天恢复运行请旅客注意"),
    ("The bus runs Boston -> Denver every day this week", "The bus runs Boston <- Denver every day this week"),
    ("选项一 ✓ 选项二请大家核对以后提交谢谢", "选项一 ✗ 选项二请大家核对以后提交谢谢"),
    ("选项一 ✅ 选项二请大家核对以后提交谢谢", "选项一 ❌ 选项二请大家核对以后提交谢谢"),
    ("选项一 ○ 选项二 × 选项三 ○ 请大家核对后再提交给老师", "选项一 × 选项二 ○ 选项三 × 请大家核对后再提交给老师"),
    ("Show that x < y holds for every pair of these numbers", "Show that x > y holds for every pair of these numbers"),
    ("Show that x = y holds for every pair of these numbers", "Show that x != y holds for every pair of these numbers"),
    ("招聘C#开发工程师，有经验者优先，电话联系", "招聘C开发工程师，有经验者优先，电话联系"),
    ("招聘C#开发工程师，有经验者优先，电话联系", "招聘C++开发工程师，有经验者优先，电话联系"),
    ("Sonata in F# minor tonight at the old town hall", "Sonata in F minor tonight at the old town hall"),
    ("ราคาทองคำวันนี้ ↑ ตามตลาดโลก ขอให้ทุกท่านทราบ", "ราคาทองคำวันนี้ ↓ ตามตลาดโลก ขอให้ทุกท่านทราบ"),
    ("السفر من القاهرة → دبي متاح اليوم لجميع المسافرين", "السفر من القاهرة ← دبي متاح اليوم لجميع المسافرين"),
    ("הרכבת חיפה → אילת תצא היום בזמן לכל הנוסעים", "הרכבת חיפה ← אילת תצא היום בזמן לכל הנוסעים"),
    ("ट्रेन दिल्ली → मुंबई आज समय पर चलेगी कृपया ध्यान दें", "ट्रेन दिल्ली ← मुंबई आज समय पर चलेगी कृपया ध्यान दें"),
    ("서울 → 부산 열차가 오늘 정상 운행합니다 참고하세요", "서울 ← 부산 열차가 오늘 정상 운행합니다 참고하세요"),
    ("東京→大阪の新幹線は本日通常どおり運転しています", "東京←大阪の新幹線は本日通常どおり運転しています"),
    ("Поезд Москва → Казань сегодня идёт по расписанию", "Поезд Москва ← Казань сегодня идёт по расписанию"),
]  # fmt: skip


@pytest.mark.parametrize("profile", ["microblog", "plain"])
@pytest.mark.parametrize(("earlier", "later"), PAIRS)
def test_another_mark_says_the_opposite(earlier: str, later: str, profile: str) -> None:
    assert judged(earlier, later, profile) == judged(later, earlier, profile) == (Kind.UNIQUE, Rule.OPPOSITE)


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        # another spelling of the same mark
        ("从武汉→南昌的列车今天恢复运行请旅客注意", "从武汉 -> 南昌的列车今天恢复运行，请旅客注意"),
        ("选项一 ✓ 选项二请大家核对以后提交谢谢", "选项一 ✅ 选项二，请大家核对以后提交，谢谢"),
        # adornment at the ends and in rows
        ("今天的新闻发布会通报了疫情数据 →→→", ">>>> 今天的新闻发布会通报了疫情数据"),
        ("✅ 今天的新闻发布会通报了疫情数据", "今天的新闻发布会通报了疫情数据 ✅"),
        ("今天的新闻 ===== 发布会通报了疫情数据", "今天的新闻发布会通报了疫情数据"),
    ],
)
def test_adornment_and_spelling_change_nothing(earlier: str, later: str) -> None:
    assert judged(earlier, later, "microblog")[0] is Kind.EXACT


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        # bullets at line starts, added or replaced by others
        (
            "防疫要点：\n✅ 出门戴好口罩\n✅ 回家认真洗手\n✅ 少去人多地方",
            "防疫要点：\n出门戴好口罩\n回家认真洗手\n少去人多地方",
        ),
        (
            "防疫要点：\n→ 出门戴好口罩\n→ 回家认真洗手\n→ 少去人多地方",
            "防疫要点：\n✔ 出门戴好口罩\n✔ 回家认真洗手\n✔ 少去人多地方",
        ),
        ("The tickets = free for students, tell all your friends", "The tickets free for students, tell all your friends"),
        ("从武汉→南昌的列车今天恢复运行请旅客注意", "从武汉到南昌的列车今天恢复运行请旅客注意"),
    ],
)  # fmt: skip
def test_a_mark_more_or_another_bullet_keeps_nothing_apart(earlier: str, later: str) -> None:
    assert judged(earlier, later, "plain")[0] is Kind.NEAR
    assert judged(later, earlier, "plain")[0] is Kind.NEAR
