"""One word of Japanese in two writings, short names, and faces of letters: siblings of our own."""

from __future__ import annotations

import pytest

from tests.stages.differ.test_differences import FULL, MICROBLOG, reason_of
from twinsieve.stages.contract import Differences
from twinsieve.stages.differ.rules import Rule

NONE = Rule.NONE


def _both_ways(one: str, other: str, limits: Differences = FULL) -> set[Rule]:
    """The reasons with each of them as the later text."""
    return {reason_of(one, other, limits), reason_of(other, one, limits)}


@pytest.mark.parametrize("limits", [FULL, MICROBLOG])
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("商店街の角にあるうどん屋の天ぷらは美味しい", "商店街の角にあるうどん屋の天ぷらはおいしい"),
        ("商店街の角のうどんは美味しかったです", "商店街の角のうどんはおいしかったです"),
        ("孫が描いてくれた絵が嬉しくて飾りました", "孫が描いてくれた絵がうれしくて飾りました"),
        ("庭の小鳥がとても可愛い声で鳴いていました", "庭の小鳥がとてもかわいい声で鳴いていました"),
        ("近くの公園で子供が元気に走っています", "近くの公園でこどもが元気に走っています"),
        ("港の朝市は早めに来て下さいと言われました", "港の朝市は早めに来てくださいと言われました"),
        ("宿のまわりに売店はありません、ご注意を", "宿のまわりに売店はないです、ご注意を"),
        ("宿の近くに売店はありませんでした、残念", "宿の近くに売店はなかったです、残念"),
    ],
)
def test_a_word_in_kanji_and_in_kana_and_a_polite_and_a_plain_denial_are_one(
    one: str, other: str, limits: Differences
) -> None:
    assert _both_ways(one, other, limits) == {NONE}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("商店街の角にあるうどん屋の天ぷらは美味しい", "商店街の角にあるうどん屋の天ぷらはまずい"),
        ("孫が描いてくれた絵が嬉しくて飾りました", "孫が描いてくれた絵がかなしくて飾りました"),
        ("宿のまわりに売店はありません、ご注意を", "宿のまわりに売店はあります、ご注意を"),
        ("宿の近くに売店はなかったです、残念", "宿の近くに売店はありました、残念"),
        ("近くの公園で子供が元気に走っています", "近くの公園でうさぎが元気に走っています"),
    ],
)
def test_another_word_in_kana_is_a_difference(one: str, other: str) -> None:
    assert NONE not in _both_ways(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Die neue S-Klasse wird ab Mai im Werk gebaut", "Die neue E-Klasse wird ab Mai im Werk gebaut"),
        ("Der Rückruf gilt für die A-Klasse aus dem Werk", "Der Rückruf gilt für die E-Klasse aus dem Werk"),
        (
            "Die Linie der U-Bahn wird wegen Bauarbeiten gesperrt",
            "Die Linie der S-Bahn wird wegen Bauarbeiten gesperrt",
        ),
        (
            "Tarifrunde: IG will acht Prozent mehr Lohn für alle",
            "Tarifrunde: WE will acht Prozent mehr Lohn für alle",
        ),
        (
            "Il premier incontra i vertici di IT per la crisi",
            "Il premier incontra i vertici di UK per la crisi",
        ),
    ],
)
def test_a_name_may_have_one_letter_before_a_word_or_be_a_word_of_another_language(
    one: str, other: str
) -> None:
    assert NONE not in _both_ways(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Il treno per Roma e Napoli parte con la nebbia", "Il treno per Roma o Napoli parte con la nebbia"),
        (
            "O ônibus para a praia e mercado saiu com as malas",
            "O ônibus para a praia a mercado saiu com as malas",
        ),
    ],
)
def test_a_letter_that_is_a_word_of_the_language_stays_light(one: str, other: str) -> None:
    assert _both_ways(one, other) == {NONE}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("水管又漏了今晚不用睡了Orz", "水管又漏了今晚不用睡了OTL"),
        ("排了一下午的队QAQ终于轮到我了", "排了一下午的队QwQ终于轮到我了"),
        ("The last bus has left without me again QAQ", "The last bus has left without me again Orz"),
        ("The last bus QAQ has left without me again", "The last bus has left without me again"),
    ],
)
def test_a_face_of_letters_is_no_name(one: str, other: str) -> None:
    assert _both_ways(one, other) == {NONE}
