"""Which profile the texts of a run speak for."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from tests.examples import examples
from twinsieve.pipeline.settings.load import check_tree, tree_of
from twinsieve.pipeline.settings.model import Settings
from twinsieve.pipeline.settings.proposal import (
    ON_KAFKA,
    ProfileProposal,
    SampledTexts,
    profile_of,
    proposal_for,
)

MANY = 1_000
TITLES = [f"Council backs plan for a new bridge over the river in district {n}" for n in range(MANY)]
POSTS = [f"@anna{n} the storm is here, stay safe everyone! http://t.co/{n}" for n in range(MANY)]
WEIBO = [f"#武汉加油# 今天新增病例{n}例，大家注意安全 @某某 http://t.cn/{n}" for n in range(MANY)]
JAPANESE = [f"#台風 今日は雨が降っています、気をつけてください @someone{n}" for n in range(MANY)]
SMS = [f"【某某银行】您尾号{n}的账户收到转账，详询客服。" for n in range(MANY)]
LONG = ["A long report begins here. " * 40 + str(n) for n in range(MANY)]


def _settings(tree: dict[str, object]) -> Settings:
    settings, findings = check_tree(tree_of(tree))
    assert settings is not None, findings
    return settings


def _proposed(texts: list[str], chunk: int = 300) -> str | None:
    proposal = ProfileProposal()
    for first in range(0, len(texts), chunk):
        proposal.look(texts[first : first + chunk])
    return proposal.end()


@pytest.mark.parametrize(
    ("texts", "profile"),
    [
        (TITLES, "titles"),
        (POSTS, "plain"),
        (WEIBO, "microblog"),
        (SMS, "sms"),
        (LONG, None),
        (JAPANESE, None),
        ([f"@иван{n} буря уже здесь, берегите себя! http://t.co/{n}" for n in range(MANY)], "plain"),
        ([f"@anna{n} العاصفة هنا الآن ابقوا في بيوتكم http://t.co/{n}" for n in range(MANY)], "plain"),
        ([f"@anna{n} 태풍이 왔어요 모두 조심하세요 http://t.co/{n}" for n in range(MANY)], "plain"),
        # No labelled texts of these kinds.
        ([f"@anna{n} तूफ़ान आ गया है सब सुरक्षित रहें http://t.co/{n}" for n in range(MANY)], None),
        ([f"@anna{n} η καταιγίδα είναι εδώ μείνετε ασφαλείς http://t.co/{n}" for n in range(MANY)], None),
        ([f"Совет одобрил план нового моста через реку в районе {n}" for n in range(MANY)], None),
        ([f"【Bank】 A transfer reached your account {n}, call us" for n in range(MANY)], None),
    ],
)
def test_each_kind_of_text_has_its_profile(texts: list[str], profile: str | None) -> None:
    assert profile_of(texts) == profile


def test_a_file_is_looked_at_to_its_end() -> None:
    """A file of one kind is proposed its profile, whatever its length; one that goes on with another kind is not."""
    assert "profile: microblog" in (_proposed(WEIBO * 10) or "")
    for other in (POSTS, TITLES, LONG):
        assert _proposed(WEIBO * 9 + other) is None
        assert _proposed(other + WEIBO * 9) is None
    assert _proposed(TITLES * 5 + POSTS) is None


@pytest.mark.parametrize("kinds", [(WEIBO, POSTS), (TITLES, POSTS), (SMS, TITLES)])
def test_mixed_texts_are_proposed_nothing_in_any_order(kinds: tuple[list[str], list[str]]) -> None:
    mixed = [text for one, other in zip(*kinds, strict=True) for text in (one, other, one)] * 2
    assert _proposed(mixed) is None
    random.Random(1).shuffle(mixed)
    assert _proposed(mixed) is None


@given(st.integers(0, 30_000), st.integers(50, 5_000))
@hypothesis_settings(max_examples=examples(20))
def test_a_sample_is_bounded_and_the_same_for_any_chunks(count: int, chunk: int) -> None:
    texts = list(map(str, range(count)))
    whole, parts = SampledTexts(), SampledTexts()
    whole.add(texts)
    for first in range(0, count, chunk):
        parts.add(texts[first : first + chunk])
    assert parts.texts == whole.texts
    assert min(count, 900) <= len(whole.texts) <= 2_000
    # From first to last: no gap is longer than a few times the mean.
    rows = [0, *map(int, whole.texts), count]
    assert max(b - a for a, b in pairwise(rows)) <= 4 * count / max(1, len(whole.texts)) + 1


def test_on_kafka_a_proposal_comes_once_after_enough_texts() -> None:
    proposal = proposal_for(_settings({}), on_kafka=True)
    assert proposal is not None
    for _ in range(ON_KAFKA // MANY - 1):
        assert proposal.look(POSTS) is None
    said = proposal.look(POSTS)
    assert said is not None
    assert "profile: plain" in said
    assert f"of the first {ON_KAFKA:,}" in said
    assert proposal.look(TITLES) is proposal.look(POSTS) is proposal.end() is None


def test_few_texts_say_nothing() -> None:
    assert _proposed(POSTS[:50]) is None


@pytest.mark.parametrize(
    "tree",
    [
        {"profile": "microblog"},
        {"profile": "default"},
        {"near": {"similarity": 0.8}},
        {"near": {"method": "hamming"}},
        {"near": {"method": "none"}},
        {"exact": {"fields": ["id"]}},
    ],
)
def test_who_chose_or_compares_no_texts_is_proposed_nothing(tree: dict[str, object]) -> None:
    assert proposal_for(_settings(tree)) is None
    assert proposal_for(_settings({"near": {"window": {"messages": 5}}})) is not None


def test_lone_surrogates_and_marks_harm_nothing() -> None:
    assert profile_of(["\ud800" * 30] * 300) is None
