"""Settings given as a mapping are those of a file with the same keys, and are refused in the same words."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from twinsieve.pipeline.settings.load import check_tree, tree_of, tree_of_file


def _told(mapping: dict[str, Any]) -> list[str]:
    _, findings = check_tree(tree_of(mapping))
    return [str(finding) for finding in findings]


@pytest.mark.parametrize(
    "mapping",
    [
        {},
        {"profile": "plain", "near": {"similarity": 0.9, "window": {"messages": 50, "age": "none"}}},
        {"near": {"method": "hamming", "distances": {8: 3, 64: 5}, "threads": "auto"}},
        {
            "exact": {"error_rate": 1e-9},
            "text": {"drop": ["^RT", "x.y"]},
            "near": {"differences": "full", "limits": {"replaced": 0.2}},
        },
        {"near": {"similarity": 1}},
        {"near": {"similarity": 2, "windows": {}}, "exact": {"window": {"age": 24}}},
        {"similarity": 0.9},
        {"near": 3, "scope": "a", "text": {"drop": {"a": "b"}}},
    ],
)
def test_a_mapping_means_what_the_file_means(tmp_path: Path, mapping: dict[str, Any]) -> None:
    path = tmp_path / "s.yaml"
    path.write_text(yaml.safe_dump(mapping), "utf-8")
    settings, findings = check_tree(tree_of_file(path))
    assert check_tree(tree_of(mapping))[0] == settings
    assert sorted(finding.message for finding in findings) == sorted(
        said.partition(": ")[2] for said in _told(mapping)
    )


@pytest.mark.parametrize("examples", ["microblog", "news", "hamming", "exact-only", "kafka"])
def test_an_example_read_by_a_program_is_the_example(root: Path, examples: str) -> None:
    path = root / "config" / f"{examples}.yaml"
    settings, findings = check_tree(tree_of_file(path))
    assert findings == []
    assert check_tree(tree_of(yaml.safe_load(path.read_text("utf-8")))) == (settings, [])


def test_dotted_and_nested_keys_go_together() -> None:
    dotted = tree_of({"near.similarity": 0.9, "near": {"window.messages": 5}, "near.window": {"age": None}})
    assert dotted.values == {"near": {"similarity": "0.9", "window": {"messages": "5", "age": "none"}}}


def test_a_timedelta_is_a_duration() -> None:
    settings, findings = check_tree(tree_of({"near.window.age": timedelta(hours=1.5)}))
    assert settings is not None
    assert (settings.near.window.age_ms, findings) == (5_400_000, [])


@pytest.mark.parametrize(
    "mapping",
    [
        {"near.similarity": 0.9, "near": {"similarity": 0.9}},
        {"near": {"similarity": 0.9}, "near.similarity": 0.9},
        {"near.similarity": 0.9, "near.similarity.of": 3},
    ],
)
def test_a_key_that_is_given_twice_is_refused(mapping: dict[str, Any]) -> None:
    assert [said for said in _told(mapping) if "is given twice; remove one of the two" in said]


def test_a_mapping_that_holds_itself_is_refused() -> None:
    endless: dict[str, Any] = {}
    endless["near"] = endless
    assert any("is nested deeper than 20 levels" in said for said in _told(endless))
