"""Short texts that tell of another stage, thing or outlet: what comes apart, and what stays one."""

from __future__ import annotations

import pytest

from tests.stages.differ.test_differences import FULL, HEADLINES, SMS, reason_of
from twinsieve.stages.contract import Differences
from twinsieve.stages.differ.rules import Rule

_SMS = SMS._replace(inside=18)


def _reason(later: str, earlier: str, limits: Differences) -> Rule:
    return reason_of(later, earlier, limits)


@pytest.mark.parametrize(
    ("later", "earlier"),
    [
        ("ferry firm to drop winter route to islands", "ferry firm drops winter route to islands"),
        ("mayor will open the new river bridge today", "mayor opens the new river bridge today"),
        ("another landslide blocks the mountain railway", "landslide blocks the mountain railway"),
        ("council mulls ban on wood stoves downtown", "council ban on wood stoves downtown"),
        ("bank poised to cut mortgage rates this week", "bank cuts mortgage rates this week"),
        ("man jailed over attempted robbery at bakery", "man jailed over robbery at bakery"),
        ("strike talks to resume at the southern harbour", "strike talks resumed at the southern harbour"),
        (
            "otro incendio arrasa el mercado central de la ciudad",
            "incendio arrasa el mercado central de la ciudad",
        ),
        ("northern ring road yet to open to the public", "northern ring road opens to the public"),
        ("flood warning lifted for the whole valley", "flood warning issued for the whole valley"),
        ("senator rejects plan for the desert pipeline", "senator backs plan for the desert pipeline"),
        ("市气象台解除暴雨橙色预警信号", "市气象台发布暴雨橙色预警信号"),
        ("governo planeja fechar escolas rurais do norte", "governo fecha escolas rurais do norte"),
        (
            "la mairie envisage une piscine couverte au centre",
            "la mairie ouvre une piscine couverte au centre",
        ),
        (
            "stadt erwägt neue brücke über den fluss im süden",
            "stadt baut neue brücke über den fluss im süden",
        ),
        ("il comune prevede un nuovo ponte sul fiume a sud", "il comune apre un nuovo ponte sul fiume a sud"),
        ("завод планирует закрыть старый цех на севере города", "завод закрыл старый цех на севере города"),
        ("某集团拟在成都建设第二座汽车工厂", "某集团在成都建设第二座汽车工厂"),
        ("该市再次发生山体滑坡道路中断", "该市发生山体滑坡道路中断"),
        ("工場の移転を検討と発表した自動車会社", "工場の移転を発表した自動車会社"),
        ("시청 앞 광장 공사 추진 시민들 반응", "시청 앞 광장 공사 시민들 반응"),
        ("ร้านกาแฟหน้าสถานีจะปิดสาขาแรก", "ร้านกาแฟหน้าสถานีปิดสาขาแรก"),
    ],
)
def test_another_stage_of_an_event_is_another_event(later: str, earlier: str) -> None:
    assert _reason(later, earlier, FULL) != Rule.NONE
    assert _reason(earlier, later, FULL) != Rule.NONE


@pytest.mark.parametrize(
    ("later", "earlier"),
    [
        ("the city council plans to plan a new bridge", "the city council plans a new bridge"),
        ("workers at the chemical plant went home early", "workers at chemical plant went home early"),
        ("she walked all the way home to save money", "she walked all the way home to save the money"),
        ("we hope you all stay safe in the storm tonight", "hope you all stay safe in the storm tonight"),
        (
            "calculations show that the lake is shrinking fast",
            "calculation shows that the lake is shrinking fast",
        ),
        ("我将会永远记得这一天谢谢大家", "我会永远记得这一天谢谢大家"),
        ("再见了我的老朋友一路平安", "见了我的老朋友一路平安"),
        ("วันนี้จะไปกินข้าวที่ตลาดกับเพื่อน", "วันนี้ไปกินข้าวที่ตลาดกับเพื่อน"),
        ("また来年も泊まりたいホテルです", "また泊まりたいホテルです"),
    ],
)
def test_the_same_stage_in_other_words_is_one_event(later: str, earlier: str) -> None:
    assert _reason(later, earlier, FULL) == Rule.NONE
    assert _reason(earlier, later, FULL) == Rule.NONE


@pytest.mark.parametrize(
    ("later", "earlier"),
    [
        ("police search for the missing hikers called off", "police search for the missing hikers suspended"),
        (
            "farm workers rally over wages again in adelaide",
            "farm workers rally over wages again in brisbane",
        ),
        ("rural police probe the sudden death of a dancer", "police probe the sudden death of a farmer"),
        (
            "teachers union questions the state pension reform",
            "teachers union questions the state pension payouts",
        ),
        (
            "hospital opens new childrens wing at last in denver",
            "hospital opens new wing at last in phoenix",
        ),
        (
            "premiers council to meet over water in november",
            "premiers council to meet over water in adelaide",
        ),
        (
            "die polizei sucht weiter nach dem dieb in bremen",
            "die polizei sucht weiter nach dem dieb in kassel",
        ),
        ("la policía busca todavía al ladrón de coches", "la policía busca todavía al ladrón de relojes"),
        ("рабочие бастуют третий день подряд на заводе", "рабочие бастуют третий день подряд на стройке"),
    ],
)
def test_titles_that_each_say_something_of_their_own_are_two(later: str, earlier: str) -> None:
    assert _reason(later, earlier, HEADLINES._replace(in_place=0)) == Rule.BOTH_SAY_MORE
    assert _reason(later, earlier, HEADLINES._replace(in_place=0, each=0, own_share=1000)) == Rule.NONE


@pytest.mark.parametrize(
    ("later", "earlier"),
    [
        ("seminars to focus on river safety", "seminar to focus on river safety"),
        ("local side through to the final in march", "local side through to the final"),
        ("storm clears the northern coast at last", "storm clears northern coast at last"),
        ("minister defends health budget cuts", "the minister defends health budget cuts"),
        ("team cleared of doping charge", "team cleared on doping charges"),
    ],
)
def test_a_title_that_says_a_little_more_is_the_same_title(later: str, earlier: str) -> None:
    assert _reason(later, earlier, HEADLINES) == Rule.NONE


@pytest.mark.parametrize(
    ("later", "earlier"),
    [
        ("storm hits the eastern coast - WXYZ.com", "storm hits the eastern coast | Valley Daily"),
        ("storm hits the eastern coast - The Port Times", "storm hits the eastern coast"),
        ("storm hits the eastern coast (Reuters)", "storm hits the eastern coast | BBC News"),
        ("storm hits the eastern coast — Radio Nord FM", "storm hits the eastern coast - kqrs.net"),
        ("storm hits the eastern coast: Gulf Observer", "storm hits the eastern coast - Hill Tribune"),
        ("la tormenta llega a la costa - Diario Mundo", "la tormenta llega a la costa | Radio"),
        ("sturm trifft die küste im osten - Hafen Zeitung", "sturm trifft die küste im osten | Kurier"),
        ("шторм обрушился на побережье - Новости", "шторм обрушился на побережье | Вечерняя газета"),
        ("全国多地今起大幅降温_新浪新闻", "全国多地今起大幅降温-人民网"),
        ("全国多地今起大幅降温-河滨晚报", "全国多地今起大幅降温"),
        ("沿岸で強い雨が続く見込み - 港ニュース", "沿岸で強い雨が続く見込み | 山手新聞"),
    ],
)
def test_the_name_of_an_outlet_behind_a_headline_is_no_difference(later: str, earlier: str) -> None:
    for limits in (FULL, HEADLINES):
        assert _reason(later, earlier, limits) == Rule.NONE
        assert _reason(earlier, later, limits) == Rule.NONE


@pytest.mark.parametrize(
    ("later", "earlier"),
    [
        ("runner breaks the city record five times", "runner breaks the city record three times"),
        ("runner breaks the city record 5 times", "runner breaks the city record 3 times"),
        ("storm hits the eastern coast of denver", "storm hits the eastern coast of boston"),
        ("good news", "valley daily"),
    ],
)
def test_what_only_looks_like_an_outlet_is_a_difference(later: str, earlier: str) -> None:
    assert _reason(later, earlier, HEADLINES) != Rule.NONE


@pytest.mark.parametrize(
    ("later", "earlier", "limits"),
    [
        (
            "凭短信到店可以换购电热水壶不锈钢锅具陶瓷刀等多种礼品先到先得回复退订",
            "凭短信到店可以换购不锈钢锅具行李箱套装陶瓷刀等多种礼品先到先得回复退订",
            _SMS,
        ),
        (
            "热门推荐回复编号下载山河故人小小少年每首两元祝您生活愉快回复退订",
            "热门推荐回复编号下载小小少年海阔天空每首两元祝您生活愉快回复退订",
            _SMS,
        ),
        ("ราคาเท่าไหร่คะ ยาริส", "CX5 ราคาเท่าไหร่คะ", FULL),
        (
            "请问你们家国庆节期间住一晚要多少钱豪华大床房",
            "标准双人间请问你们家国庆节期间住一晚要多少钱",
            FULL._replace(only_short=1000),
        ),
        (
            "この時計はまだ在庫がありますか銀色の金属製",
            "黒革製品この時計はまだ在庫がありますか",
            FULL._replace(only_short=1000),
        ),
    ],
)
def test_another_item_of_a_list_or_behind_a_question_is_another_text(
    later: str, earlier: str, limits: Differences
) -> None:
    assert _reason(later, earlier, limits) == Rule.IN_ITS_PLACE
    assert _reason(earlier, later, limits) == Rule.IN_ITS_PLACE


@pytest.mark.parametrize(
    ("later", "earlier"),
    [
        (
            "Am Samstag lesen wir im Buchclub am Markt den Roman „Der Garten“",
            "Am Samstag lesen wir im Buchclub am Markt den Roman „Das Boot“",
        ),
        (
            "Ce samedi le ciné-club de la mairie montre un film culte: « Le Phare »",
            "Ce samedi le ciné-club de la mairie montre un film culte: « La Digue »",
        ),
        (
            "tonight our book club at the town library reads the harbour",
            "tonight our book club at the town library reads a winter",
        ),
    ],
)
def test_a_light_word_before_the_other_last_word_may_differ_too(later: str, earlier: str) -> None:
    assert _reason(later, earlier, FULL) == Rule.IN_ITS_PLACE
    assert _reason(later, earlier, FULL._replace(in_place=0)) == Rule.NONE


def test_the_light_word_alone_is_no_other_last_word() -> None:
    begin = "Am Samstag lesen wir im Buchclub am Markt den Roman"
    assert _reason(f"{begin} „Der Garten“", f"{begin} „Ein Garten“", FULL) == Rule.NONE
