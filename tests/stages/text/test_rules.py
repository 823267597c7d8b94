"""Settings of the text stage: what is refused, what the operator's own rules do, what the version names."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from twinsieve.stages.errors import UsageError
from twinsieve.stages.text.normalizer import Normalizer
from twinsieve.stages.text.rules import RULES_VERSION, TextConfig, text_version
from twinsieve.stages.text.unicode import UNICODE_VERSION


def key(text: str, **settings: Any) -> str:
    return Normalizer(TextConfig(**settings)).bodies([text]).text(0)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"profile": "weibo"}, "text.profile is 'weibo'; use one of microblog, plain"),
        ({"body_rule": "all"}, "text.body_rule is 'all'; use one of product, letters"),
        ({"fold_variants": "off"}, "text.fold_variants is 'off'; use one of none, simplified, traditional"),
        (
            {"drop": ("ok", "a(b")},
            "text.drop[1] is 'a(b', which RE2 refuses: missing ): a(b; mend or remove the pattern",
        ),
        (
            {"drop": (r"(?<=a)b",)},
            r"text.drop[0] is '(?<=a)b', which RE2 refuses: invalid perl operator: (?<=; "
            "mend or remove the pattern",
        ),
        ({"drop": ("x*",)}, "text.drop[0] is 'x*', which matches empty text; ask for at least one character"),
        (
            {"drop": ("\ud800",)},
            "text.drop[0] is '\\ud800', which is not Unicode text; mend or remove the pattern",
        ),
    ],
)
def test_wrong_settings_are_named_and_answered(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError) as raised:
        TextConfig(**settings)
    assert str(raised.value) == said


def test_drop_patterns_see_normal_form_and_leave_a_blank() -> None:
    assert key("【ＡＤ】今天天气真的不错呢", drop=(r"【[A-Z]+】",)) == "今天天气真的不错呢"
    assert key("共1广告5人参加了会议", drop=("广告",)) == "共15人参加了会议"
    bodies = Normalizer(TextConfig(profile="plain", drop=("-+",))).bodies(["hello---world again"])
    assert bodies.word_starts.tolist() == [1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0]


def test_drop_patterns_apply_in_order_and_before_the_profile() -> None:
    assert key("ab12 加油武汉加油中国", drop=("a", "b1")) == "2加油武汉加油中国"
    assert key("今天天气真的不错#话题X#啊", drop=("X#",)) == "今天天气真的不错话题啊"


def test_a_text_that_patterns_empty_is_known_by_its_raw_form() -> None:
    assert key("【广告】！", drop=("【[^】]*】",)) == "【广告】！"


def test_patterns_take_any_text() -> None:
    hostile = ["", "\ud800a\udfff", "\x00", "\uffff\U0010ffff", "广告" * 1000, "e" + "\u0301" * 1000, "a\nb"]
    bodies = Normalizer(TextConfig(drop=("广告", r"(?i)\bRE:", r"a\nb"))).bodies(hostile)
    assert bodies.text(4) == "广告" * 1000
    assert bodies.body_lengths.tolist()[:5] == [0, 1, 0, 0, 0]


def test_own_rules_change_nothing_where_they_match_nothing() -> None:
    texts = ["#话题#今天１.5万例，加油！//@某人: 好", "e\u0301ﷺ½", "\ud800", "👍", "", "ẞ" * 9]
    plain = Normalizer(TextConfig()).bodies(texts)
    ruled = Normalizer(TextConfig(drop=("Q{9}",))).bodies(texts)
    assert [ruled.text(row) for row in range(len(texts))] == [plain.text(row) for row in range(len(texts))]
    assert ruled.own_lengths.tolist() == plain.own_lengths.tolist()


def test_variants_fold_to_one_form() -> None:
    traditional, simplified = "漢語後面的皇后乾隆", "汉语后面的皇后乾隆"
    assert (
        key(traditional, fold_variants="simplified")
        == key(simplified, fold_variants="simplified")
        == simplified
    )
    assert key(simplified, fold_variants="traditional") == traditional
    assert key(traditional) == traditional
    assert key("\ud83d漢\x00語", fold_variants="simplified") == "\ufffd汉语"


def test_missing_opencc_is_said_before_any_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opencc", None)
    with pytest.raises(UsageError, match="needs OpenCC, which is not installed; pip install"):
        TextConfig(fold_variants="simplified")


def test_the_version_names_all_that_bodies_depend_on() -> None:
    plain = text_version(TextConfig())
    assert plain == f"rules {RULES_VERSION}, Unicode {UNICODE_VERSION}"
    folding = text_version(TextConfig(fold_variants="simplified"))
    assert folding.startswith(plain)
    assert "OpenCC 1." in folding
