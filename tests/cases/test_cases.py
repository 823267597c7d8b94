"""`twinsieve test`: cases of users say of a message what the commands say of it, and mistakes have a line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tests.calling import Run
from tests.docs.documents import DOCUMENTS, blocks
from twinsieve.pipeline.settings.load import check_tree, load_settings
from twinsieve.pipeline.settings.tree import Tree
from twinsieve.pipeline.settings.yaml_tree import read_yaml
from twinsieve.pipeline.tools.cases.case import Message
from twinsieve.pipeline.tools.cases.judge import overlay, verdicts_on

OWN = sorted((Path(__file__).parents[2] / "config" / "cases").glob("*.yaml"))
FERRY = "The ferry to the island leaves the old harbour at {} today."


def write(path: Path, cases: object, **more: object) -> Path:
    path.write_text(yaml.safe_dump({"cases": cases, **more}, sort_keys=False, allow_unicode=True))
    return path


def findings(run: Run, path: Path) -> list[str]:
    ran = run("test", path)
    assert (ran.code, ran.out) == (2, "")
    return [line.removeprefix(f"{path}:") for line in ran.err.splitlines()]


def one(messages: list[Any], out: list[str], **more: object) -> dict[str, Any]:
    return {"name": "a case", **more, "in": messages, "out": out}


def test_the_projects_own_cases_hold(run: Run) -> None:
    found = run("test", *OWN)
    assert OWN
    assert found.code == 0, found.out + found.err


def test_the_cases_that_pages_show_hold(run: Run, tmp_path: Path) -> None:
    texts = [block for page in DOCUMENTS for block in blocks(page.read_text("utf-8"), "yaml")]
    cases = [text for text in texts if "cases:" in text]
    assert cases
    for number, text in enumerate(cases):
        file = tmp_path / f"{number}.yaml"
        file.write_text(text)
        found = run("test", file)
        assert found.code == 0, text + found.out + found.err


def test_a_case_that_fails_shows_what_was_expected_and_found_with_its_line(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "ferries.yaml"
    path.write_text(
        f"""cases:
  - name: "two \\u202eferries"
    why: readers miss one
    in:
      - {FERRY.format("9:15")}
      - {FERRY.format("9:45")}
      - another message about nothing of that
    out:
      - unique
      - near of 1
      - unique
"""
    )
    found = run("test", path)
    assert found.code == 1
    assert found.out.splitlines() == [
        rf"{path}:2:5: fails: two \u202eferries",
        "  why: readers miss one",
        f"  {path}:10:9: message 2, {FERRY.format('9:45')}",
        "  - near of 1",
        "  + unique of 1: number [9:15|9:45]",
        "cases: 0 hold, 1 fail",
    ]


@pytest.mark.parametrize(
    ("out", "holds"),
    [
        ("unique", True),
        ("unique of 1", True),
        ("unique: number", True),
        ("unique of 1: number", True),
        ("unique of 2", False),
        ("unique: opposite", False),
        ("near", False),
    ],
)
def test_what_a_verdict_leaves_out_may_be_anything(run: Run, tmp_path: Path, out: str, holds: bool) -> None:
    messages = [FERRY.format("9:15"), "another message about nothing of that", FERRY.format("9:45")]
    path = write(tmp_path / "c.yaml", [one(messages, ["unique", "unique", out])])
    assert run("test", path).code == (0 if holds else 1)


def test_settings_of_the_case_are_over_the_files_over_c_and_flags_over_all(run: Run, tmp_path: Path) -> None:
    texts = ["The bridge over the river is closed", "The bridge over the river is closed now, all of it"]
    config = tmp_path / "my.yaml"
    config.write_text("near: {similarity: 0.99, differences: 'off'}\n")
    off = {"differences": "off"}
    by_c = one(texts, ["unique", "unique"])
    by_case = one(texts, ["unique", "near"], settings={"near": {"similarity": 0.7}})
    assert run("test", "-c", config, write(tmp_path / "a.yaml", [by_c, by_case])).code == 0
    by_file = one(texts, ["unique", "near"])
    over_file = one(texts, ["unique", "unique"], settings={"near": {"similarity": 0.98}})
    both = write(tmp_path / "b.yaml", [by_file, over_file], settings={"near": {"similarity": 0.7, **off}})
    assert run("test", "-c", config, both).code == 0
    assert run("test", "-c", config, both, "--similarity", "0.7").code == 1


def test_every_problem_has_its_line_and_all_are_told_at_once(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text(
        """settings:
  near: {similarty: 0.9}
cases:
  - name: one
    inn: [a]
    in: [a text]
    out: [uniqe]
  - name: two
    in: [a text, {advance: soon}, [a], {raw: a, id: b}]
    out: [unique, near of 2, "unique: numbr"]
  - just a text
  - name: three
    in: a text
    out: [unique]
  - name: four
    in: [a text]
    out: [unique, unique]
  - name: five
    in: [a text]
    out: [unique]
more: 1
"""
    )
    assert findings(run, path) == [
        "2:10: unknown key 'near.similarty'; did you mean 'similarity'?",
        "5:5: unknown key 'inn'; there are name, why, settings, in, out",
        "7:11: is not a verdict; write unique, exact, near, no_text, unreadable, as in 'near of 1' or "
        "'unique of 1: number'",
        "9:18: advance is 'soon', not a duration; write a number and a unit (ms, s, m, h, d, w), as in 24h",
        "9:35: is not a message; write a text, {text: …, id: …}, {raw: …} or {advance: 2h}",
        "9:40: advance and raw stand alone; a message with such a field is written with raw",
        "10:19: message 2 can only repeat one before it, not message 2",
        "10:30: no reason 'numbr' of unique; did you mean 'number'?",
        "11:5: is not a case; write one with name, in and out",
        "13:9: 'in' is a list with an item for each message",
        "17:10: 2 verdicts for 1 messages; write one for each",
        "21:1: unknown key 'more'; there are settings, cases",
    ]


@pytest.mark.parametrize("content", ["", "cases:\n", "cases: []\n", "- a\n", "cases: [\n", "\0"])
def test_a_file_without_cases_is_refused(run: Run, tmp_path: Path, content: str) -> None:
    path = tmp_path / "none.yaml"
    path.write_text(content)
    assert len(findings(run, path)) == 1


def test_time_passes_and_windows_have_the_ages_of_run(run: Run, tmp_path: Path) -> None:
    text = "The market opens on Saturday morning behind the town hall"
    ages = {"exact": {"method": "trie"}}
    near_default = one([text, {"advance": "8d"}, text], ["unique", "unique"], settings=ages)
    without = one([text, text], ["unique", "exact of 1"], settings=ages)
    own_time = one(
        [{"text": text, "created_at": "2020-01-01"}, {"text": text, "created_at": "2020-02-01"}],
        ["unique", "exact of 1"],
        settings=ages,
    )
    assert run("test", write(tmp_path / "c.yaml", [near_default, without, own_time])).code == 0


def test_no_more_time_passes_than_fits(run: Run, tmp_path: Path) -> None:
    far, farther = {"advance": "99999999999d"}, {"advance": "365249d"}
    path = tmp_path / "c.yaml"
    write(path, [one(["a text", far, "b text", dict(far)], ["unique", "unique"])])
    assert findings(run, path) == [
        f"{line}: more than 365,250 days would have passed by then; advance by less"
        for line in ("5:5", "7:5")
    ]
    assert run("test", write(path, [one(["a text", farther, "b text"], ["unique", "unique"])])).code == 0
    write(path, [one(["a text", farther, {"advance": "25h"}, "b text"], ["unique", "unique"])])
    assert len(findings(run, path)) == 1


def test_a_failing_message_is_shown_as_it_would_be_written(run: Run, tmp_path: Path) -> None:
    messages = ["a text", {"text": "帖子 it's", "id": "b"}, {"raw": "{\u202e"}]
    found = run("test", write(tmp_path / "c.yaml", [one(messages, ["near", "near", "near"])]))
    shown = [line.partition(": message ")[2] for line in found.out.splitlines() if ": message " in line]
    assert shown == ["1, a text", '2, {"text": "帖子 it\'s", "id": "b"}', r"3, {\u202e"]


def test_texts_go_into_the_field_that_the_settings_name(run: Run, tmp_path: Path) -> None:
    of_json = one(["a text of some length", {"a": {"b": "A text of some length!"}}], ["unique", "exact of 1"])
    of_json["settings"] = {"input": {"text_field": ["a.b"]}}
    plain = one(["a text of some length", "\ud800"], ["unique", "unreadable: not_utf8"])
    plain["settings"] = {"input": {"encoding": "text"}}
    path = write(tmp_path / "c.yaml", [of_json, plain])
    found = run("test", path)
    assert (found.code, found.out) == (0, "cases: 2 hold, 0 fail\n")


WORDS = st.lists(
    st.sampled_from(["ferry", "leaves", "harbour", "nine", "ten", "9", "10", "not", "old"]), max_size=9
)


@given(st.lists(WORDS.map(" ".join), min_size=1, max_size=12))
def test_cases_are_judged_as_dedup_judges(texts: list[str]) -> None:
    from twinsieve import Sieve

    settings = load_settings(None, {}, (), on_files=True)
    said = verdicts_on([Message(text, 0) for text in texts], settings, timed=False)
    verdicts = Sieve().judge(texts).columns()
    assert [one.verdict for one in said] == list(verdicts["stage"])
    leaders = [None if one.verdict == "unique" else one.of and one.of - 1 for one in said]
    assert leaders == [None if leader < 0 else leader for leader in list(verdicts["leader"])]


KEYS = st.sampled_from(["0.7", "0.8", "0.9"])
PART = st.fixed_dictionaries(
    {},
    optional={
        "profile": st.sampled_from(["plain", "sms"]),
        "near": st.fixed_dictionaries(
            {},
            optional={
                "similarity": KEYS,
                "differences": st.sampled_from(["off", "full"]),
                "limits": st.fixed_dictionaries({}, optional={"replaced": KEYS, "short": st.just("9")}),
            },
        ),
        "scope": st.lists(st.sampled_from(["a", "b"]), unique=True),
    },
)


def leaves(part: dict[str, Any], above: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in part.items():
        found |= leaves(value, f"{above}{name}.") if isinstance(value, dict) else {f"{above}{name}": value}
    return found


@given(PART, PART)
def test_an_overlay_is_the_lower_file_with_the_upper_keys_replaced(
    tmp_path_factory: pytest.TempPathFactory, lower: dict[str, Any], upper: dict[str, Any]
) -> None:
    folder = tmp_path_factory.mktemp("overlay")
    (folder / "lower.yaml").write_text(yaml.safe_dump(lower) if lower else "")
    (folder / "upper.yaml").write_text(yaml.safe_dump({"x": [{"settings": upper}]}))
    tree, above = read_yaml(folder / "lower.yaml"), read_yaml(folder / "upper.yaml")
    assert above.findings == []
    overlay(tree, above, ("x", 0, "settings"))
    whole = leaves(lower) | leaves(upper)
    assert leaves(tree.values) == whole
    settings, wrong = check_tree(tree, {})
    assert wrong == []
    expected, _ = check_tree(_nested(whole), {})
    assert settings == expected
    for key in leaves(upper):
        path = tuple(key.split("."))
        places = [place for known, place in tree.places.items() if known[: len(path)] == path]
        assert all(place.source.endswith("upper.yaml") for place in places)


def _nested(flat: dict[str, Any]) -> Tree:
    from twinsieve.pipeline.settings.load import tree_of

    return tree_of(flat)
