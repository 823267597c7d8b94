"""The examples in config/ are right and complete; `test_pages.py` holds their comments."""

from __future__ import annotations

from pathlib import Path

import pytest

from twinsieve.pipeline.settings.load import check_tree, tree_of_file
from twinsieve.pipeline.settings.schema import SECRETS, declared, is_expert
from twinsieve.pipeline.settings.stage_config import scheme_config, sieve_config
from twinsieve.pipeline.settings.yaml_tree import dotted
from twinsieve.pipeline.worker.config import MAX_EMITTED, MAX_EMITTED_BYTES
from twinsieve.stages.judge.batch_sieve import worst_case_bytes

_EXAMPLES = (
    "microblog",
    "news",
    "exact-only",
    "hamming",
    "kafka",
    "production",
    "classic-jieba",
    "classic-punctuation",
    "classic-news",
    "classic-weights",
)


def _path(root: Path, name: str) -> Path:
    return root / "config" / f"{name}.yaml"


def test_these_are_all_examples(root: Path) -> None:
    assert sorted(path.stem for path in (root / "config").glob("*.yaml")) == sorted(_EXAMPLES)


@pytest.mark.parametrize("name", _EXAMPLES)
def test_an_example_lints_clean_and_can_be_run(root: Path, name: str) -> None:
    settings, findings = check_tree(tree_of_file(_path(root, name)))
    assert findings == []
    assert settings is not None
    scheme_config(settings)
    assert sum(worst_case_bytes(sieve_config(settings, "")).values()) < 4 << 30


def test_the_production_example_holds_every_key_but_secrets_and_those_for_experts(root: Path) -> None:
    tree = tree_of_file(_path(root, "production"))
    keys = {dotted(path) for path in tree.places}
    usual = {key for key, info in declared().items() if not is_expert(info)} - SECRETS
    assert keys & declared().keys() == usual - {"near.layout"}


def test_limits_that_nobody_can_set_are_told_where_they_count() -> None:
    line = declared()["kafka.poll_messages"].description or ""
    assert f"up to {MAX_EMITTED:,} or {MAX_EMITTED_BYTES >> 20} MiB" in line
