"""The digest of the rules changes with whatever decides about two messages, and with nothing else."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.golden.states import config_of, posts
from tests.stages.differ.lists import LISTS
from tests.whole_state import from_bytes, to_bytes
from twinsieve.stages.contract import FULL, GUARDS, OFF, Differences, NearConfig, Window
from twinsieve.stages.differ.rules import Rule
from twinsieve.stages.differ.word_lists import phrases_from
from twinsieve.stages.judge.batch_sieve import BatchSieve
from twinsieve.stages.judge.rules_digest import rules_digest, words_digest

_NEAR = NearConfig(differences=Differences(FULL))
_WORDS = "light: foo bar\nopposites: [hot/cold, far/near]\n"


@pytest.mark.parametrize(
    "other",
    [
        replace(_NEAR, similarity=8_400),
        replace(_NEAR, same_id="pass"),
        replace(_NEAR, differences=Differences(GUARDS)),
        replace(_NEAR, differences=Differences(FULL, longest=8)),
        replace(_NEAR, words=_WORDS),
        replace(_NEAR, method="none"),
    ],
)
def test_another_rule_threshold_or_list_has_another_digest(other: NearConfig) -> None:
    assert rules_digest(other) != rules_digest(_NEAR)


@pytest.mark.parametrize("method", ["hamming", "signatures"])
def test_a_method_has_thresholds_of_its_own(method: str) -> None:
    near = NearConfig(method=method)  # type: ignore[arg-type]
    others = [
        replace(near, distances=((8, 2),)),
        replace(near, distances_by_field=(3, 3)),
        replace(near, share=2),
    ]
    count = {"hamming": 2, "signatures": 1}[method]
    assert sum(rules_digest(other) != rules_digest(near) for other in others) == count
    assert rules_digest(replace(near, similarity=1, words=_WORDS)) == rules_digest(near)


def test_what_decides_nothing_has_no_part_in_it() -> None:
    others = [
        replace(_NEAR, window=Window(5)),
        replace(_NEAR, details=True, threads=7, memory=1 << 30, bucket_load=2.0),
        replace(_NEAR, words="# a comment alone"),
    ]
    assert {rules_digest(other) for other in others} == {rules_digest(_NEAR)}
    guards = replace(_NEAR, differences=Differences(GUARDS))
    assert rules_digest(replace(guards, differences=Differences(GUARDS, longest=8))) == rules_digest(guards)


def test_lists_are_compared_by_what_they_say() -> None:
    commented = f"# of a user\n{_WORDS}  # two pairs"
    turned = "opposites: [far/near, hot/cold]\nlight: bar foo\n"
    digests = {rules_digest(replace(_NEAR, words=words)) for words in (_WORDS, commented, turned)}
    assert len(digests) == 1
    assert rules_digest(replace(_NEAR, words=_WORDS.replace("far", "afar"))) not in digests
    assert (
        rules_digest(replace(_NEAR, words="opposites: [hot/cold/near, far]\nlight: foo bar\n")) not in digests
    )


def test_the_order_of_the_files_of_lists_decides_nothing() -> None:
    languages = [LISTS[name] for name in ("de", "zh", "ru")]
    assert words_digest(phrases_from(languages)) == words_digest(phrases_from(languages[::-1]))


def test_a_raised_version_counts_where_the_rule_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    levels = [replace(_NEAR, differences=Differences(level)) for level in (OFF, GUARDS, FULL)]

    def changed(rule: Rule) -> list[bool]:
        before = [rules_digest(near) for near in levels]
        monkeypatch.setattr(rule, "version", rule.version + 1)
        return [rules_digest(near) != digest for near, digest in zip(levels, before, strict=True)]

    assert changed(Rule.NUMBER) == [False, True, True]
    assert changed(Rule.REPLACED) == [False, False, True]
    assert changed(Rule.NONE) == [True, True, True]


def test_a_state_says_whose_rules_judged_last_until_others_have_judged() -> None:
    config, batch = config_of("text"), posts()
    sieve = BatchSieve(config)
    assert sieve.judged_by == sieve.other_rules == ""
    sieve.judge(batch.slice(0, 20))
    other = replace(config, near=replace(config.near, similarity=6_000))
    for judged in (20, 0):
        loaded = from_bytes(to_bytes(sieve), other)
        assert loaded.other_rules == loaded.judged_by == sieve.rules
        sieve_of_both = from_bytes(to_bytes(loaded), other)
        assert sieve_of_both.judged_by == sieve.rules, "it was saved again, and has judged nothing"
        loaded.judge(batch.slice(20, 20 + judged))
    loaded.judge(batch.slice(20, 40))
    assert loaded.other_rules == ""
    assert loaded.judged_by == loaded.rules != sieve.rules
