"""Spellings that are no difference: stretched words, laughter, forms of politeness; and words that only look so."""

from __future__ import annotations

import pytest

from tests.stages.differ.test_differences import reason_of
from twinsieve.stages.differ.rules import Rule


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("That was sooo good I cannot believe it", "That was soooooooo good I cannot believe it"),
        ("The new album is coool and I want to hear it", "The new album is coooooool and I want to hear it"),
        (
            "Goool de Messi en el último minuto del partido",
            "Goooooooool de Messi en el último minuto del partido",
        ),
        ("Я так люююблю этот город осенью и зимой", "Я так люблю этот город осенью и зимой"),
        ("هذا الفيلم جميييل جدا ويستحق المشاهدة", "هذا الفيلم جميييييييل جدا ويستحق المشاهدة"),
        ("haha that was the best joke of the evening", "hahahaha that was the best joke of the evening"),
        ("jajaja no puedo creer lo que acaba de pasar", "jajajajaja no puedo creer lo que acaba de pasar"),
        ("kkkk que saudade da praia e do verão", "kkkkkkkkkk que saudade da praia e do verão"),
        ("素晴らしい演奏でした、ありがとうwww", "素晴らしい演奏でした、ありがとうwwwwwww"),
        ("오늘 정말 재미있었어요 ㅋㅋㅋ", "오늘 정말 재미있었어요 ㅋㅋㅋㅋㅋㅋㅋ"),
        ("오늘 경기는 정말 아쉽네요ㅠ 다음에 봐요", "오늘 경기는 정말 아쉽네요ㅠㅠㅠ 다음에 봐요"),
        ("결혼 너무 축하드립니다 오래오래 사세요", "결혼 너무너무 축하드립니다 오래오래 사세요"),
        ("개업을 마음 깊이 축하드립니다", "개업을 마음 깊이 축하드려요"),
        ("이 병원은 깨끗하고 정말 친절합니다", "이 병원은 깨끗하고 정말 친절해요"),
        ("İSTANBUL'DA YAĞMUR VE FIRTINA BEKLENİYOR", "istanbul'da yağmur ve fırtına bekleniyor"),
    ],
)
def test_a_word_stretched_laughed_or_politer_is_no_other_word(earlier: str, later: str) -> None:
    assert reason_of(later, earlier) == Rule.NONE
    assert reason_of(earlier, later) == Rule.NONE


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("The book of the year is a great loss for us", "The boot of the year is a great loss for us"),
        (
            "Please call Anna about the flat near the park",
            "Please call Anananas about the flat near the park",
        ),
        ("오늘 삼성전자 주가가 많이 올랐습니다 여러분", "오늘 삼성물산 주가가 많이 올랐습니다 여러분"),
        ("우리 동네 수영장이 문을 열었습니다 오늘", "우리 동네 도서관이 문을 열었습니다 오늘"),
    ],
)
def test_another_word_stays_another_word(earlier: str, later: str) -> None:
    assert reason_of(later, earlier) != Rule.NONE
