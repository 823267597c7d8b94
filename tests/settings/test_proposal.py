"""Which profile the first texts speak for."""

from __future__ import annotations

import pytest

from twinsieve.pipeline.generate.stream import generate
from twinsieve.pipeline.settings.load import check_tree, tree_of
from twinsieve.pipeline.settings.proposal import LOOKED_AT, ProfileProposal, profile_of, proposal_for

TITLES = [f"Council backs plan for a new bridge over the river in district {n}" for n in range(LOOKED_AT)]
POSTS = [f"@anna{n} the storm is here, stay safe everyone! http://t.co/{n}" for n in range(LOOKED_AT)]
WEIBO = [f"#武汉加油# 今天新增病例{n}例，大家注意安全 @某某 http://t.cn/{n}" for n in range(LOOKED_AT)]
SMS = [f"【某某银行】您尾号{n}的账户收到转账，详询客服。" for n in range(LOOKED_AT)]
LONG = ["A long report begins here. " * 40 + str(n) for n in range(LOOKED_AT)]


@pytest.mark.parametrize(
    ("texts", "profile"),
    [(TITLES, "titles"), (POSTS, "plain"), (WEIBO, "microblog"), (SMS, "sms"), (LONG, None)],
)
def test_each_kind_of_text_has_its_profile(texts: list[str], profile: str | None) -> None:
    assert profile_of(texts) == profile


def test_a_proposal_comes_once_after_enough_texts() -> None:
    proposal = ProfileProposal("default")
    assert proposal.look(POSTS[: LOOKED_AT - 1]) is None
    said = proposal.look(POSTS)
    assert said is not None
    assert "the first 1,000 texts look like posts in alphabets: profile: plain" in said
    assert proposal.look(TITLES) is proposal.look(POSTS) is proposal.end() is None


def test_the_profile_in_force_is_not_proposed_and_few_texts_say_nothing() -> None:
    assert ProfileProposal("plain").look(POSTS) is None
    assert ProfileProposal("titles").look(POSTS) is None
    assert "plain" in (ProfileProposal("microblog").look(POSTS) or "")
    few = ProfileProposal("default")
    few.look(POSTS[:50])
    assert few.end() is None


def test_without_a_comparison_of_texts_there_is_none() -> None:
    for tree in (
        {"near": {"method": "hamming"}},
        {"near": {"method": "none"}},
        {"exact": {"fields": ["id"]}},
    ):
        settings, findings = check_tree(tree_of(tree))
        assert settings is not None, findings
        assert proposal_for(settings) is None


def test_the_made_up_stream_is_taken_for_posts_in_chinese() -> None:
    assert profile_of([post["text"] for post in generate(LOOKED_AT, 3)]) == "microblog"


def test_lone_surrogates_and_marks_harm_nothing() -> None:
    assert profile_of(["\ud800" * 30] * 300) in (None, "titles")
