"""A rule that changes has another version: its code is compared with what it was under its version."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from tests.stages.differ.rule_trees import CODE, Tree, stored, tree_of, trees, unraised
from twinsieve.stages.differ.rules import Rule

_MAKE = "then run `python -m tests.stages.differ.rule_trees`"


def test_a_rule_whose_code_has_changed_has_another_version() -> None:
    now, before = trees(), stored()
    assert not unraised(now, before), f"raise the versions of these rules in stages/differ/rules.py, {_MAKE}"
    assert now == before, f"versions were raised, {_MAKE}"


def test_the_code_of_every_rule_is_known() -> None:
    assert {rule for rules in CODE for rule in rules} == set(Rule)


def test_a_changed_rule_is_excused_by_its_version_or_by_that_of_what_all_share() -> None:
    before = {"number": Tree("a", {"0": 1, "1": 1})}
    assert unraised({"number": Tree("b", {"0": 1, "1": 1})}, before) == ["number"]
    for versions in ({"0": 1, "1": 2}, {"0": 2, "1": 1}):
        assert not unraised({"number": Tree("b", versions)}, before)


_RULE = """
from {package}.words import least

def rule(text, other):
    \"\"\"Whether they differ.\"\"\"
    for place in range(least(text, other)):
        if text[place] != other[place]:
            return True
    return False
"""
_WORDS = """
MOST = 7

def least(text, other):
    return min(len(text), len(other), MOST)
"""
_numbers = itertools.count()


def _tree(
    folder: Path, monkeypatch: pytest.MonkeyPatch, rule: str = _RULE, words: str = _WORDS, file: str = "rule"
) -> object:
    """The tree of `rule` in a package of its own."""
    package = f"rules_{next(_numbers)}"
    (folder / package).mkdir()
    (folder / package / f"{file}.py").write_text(rule.format(package=package))
    (folder / package / "words.py").write_text(words)
    monkeypatch.syspath_prepend(folder)
    return tree_of(f"{package}.{file}", "differs" if "differs" in rule else "rule", {}, lambda _: True)


@pytest.mark.parametrize(
    "change",
    [
        {"rule": _RULE.replace("Whether", "If").replace("    return False", "    return False  # the same")},
        {"rule": _RULE.replace("place", "at")},
        {"rule": _RULE.replace("def rule(text, other)", "def differs(text: str, other: str)")},
        {"rule": _RULE.replace("least", "shorter"), "words": _WORDS.replace("least", "shorter")},
        {"words": _WORDS.replace("MOST", "LIMIT")},
        {"file": "moved"},
    ],
    ids=["a comment", "a variable", "its own name", "a function that it calls", "a constant", "its file"],
)
def test_a_comment_a_rename_or_a_move_is_no_change(
    change: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert _tree(tmp_path, monkeypatch, **change) == _tree(tmp_path, monkeypatch)


@pytest.mark.parametrize(
    "change",
    [
        {"rule": _RULE.replace("return False", "return text == ''")},
        {"rule": _RULE.replace("text[place] != other[place]", "other[place] != text[place]")},
        {"words": _WORDS.replace("7", "8")},
        {"words": _WORDS.replace("min(", "max(")},
    ],
    ids=["a value", "other variables", "a constant", "a function that it calls"],
)
def test_whatever_a_rule_reads_is_in_its_tree(
    change: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert _tree(tmp_path, monkeypatch, **change) != _tree(tmp_path, monkeypatch)
