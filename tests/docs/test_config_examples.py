"""The examples in config/ are right, complete and commented."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from twinsieve.pipeline.settings.load import check_tree, tree_of_file
from twinsieve.pipeline.settings.model import AUTO, Settings
from twinsieve.pipeline.settings.schema import SECRETS, schema
from twinsieve.pipeline.settings.stage_config import scheme_config, sieve_config
from twinsieve.pipeline.worker.config import MAX_EMITTED, MAX_EMITTED_BYTES
from twinsieve.stages.judge.batch_sieve import worst_case_bytes

_EXAMPLES = ("microblog", "news", "exact-only", "hamming", "kafka", "production")
_LINE = re.compile(r"^(?P<indent> *)(?P<key>[a-z_]+):(?P<value>[^#]*)(?:#\s*(?P<comment>\S.*))?$")


def _path(root: Path, name: str) -> Path:
    return root / "config" / f"{name}.yaml"


def _keys(root: Path, name: str) -> dict[str, tuple[str, str | None]]:
    """Dotted key → (value as written, comment)."""
    found: dict[str, tuple[str, str | None]] = {}
    above: list[tuple[int, str]] = []
    for line in _path(root, name).read_text("utf-8").splitlines():
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        match = _LINE.match(line)
        assert match, line
        depth = len(match["indent"])
        above = [(at, key) for at, key in above if at < depth]
        above.append((depth, match["key"]))
        found[".".join(key for _, key in above)] = (match["value"].strip(), match["comment"])
    return found


def test_these_are_all_examples(root: Path) -> None:
    assert sorted(path.stem for path in (root / "config").glob("*.yaml")) == sorted(_EXAMPLES)


@pytest.mark.parametrize("name", _EXAMPLES)
def test_an_example_lints_clean_and_can_be_run(root: Path, name: str) -> None:
    settings, findings = check_tree(tree_of_file(_path(root, name)))
    assert findings == []
    assert settings is not None
    scheme_config(settings)
    assert sum(worst_case_bytes(sieve_config(settings, "")).values()) < 4 << 30


@pytest.mark.parametrize("name", _EXAMPLES)
def test_every_value_has_a_comment_with_its_default(root: Path, name: str) -> None:
    for key, (value, comment) in _keys(root, name).items():
        if not value:
            continue
        assert comment, f"{name}: {key} has no comment"
        match = re.search(r"\(([^()]*(?:\([^()]*\)[^()]*)*)\)$", comment)
        if schema()[key] == "mapping" or match is None:
            match = re.search(r"\(([^()]*)\)$", comment)
        assert match, f"{name}: {key} names no default"
        if key in AUTO:
            assert match[1] == f"auto: {AUTO[key]}", f"{name}: {key}"
            continue
        given = yaml.safe_load(match[1].replace("1e-6", "0.000001"))
        assert _read(key, given) == _read(key, None), f"{name}: {key} says the default is {match[1]}"


def _read(key: str, value: object) -> object:
    """The setting as it is held, of a value as written, or its default for None."""
    tree: object = value if not isinstance(value, (bool, int, float)) else str(value).lower()
    if isinstance(value, dict):
        tree = {str(name): str(one) for name, one in value.items()}
    for part in reversed(key.split(".")):
        tree = {part: tree}
    settings = Settings.model_validate(tree) if value is not None else Settings()
    held: object = settings
    for part in key.split("."):
        held = next(
            getattr(held, name)
            for name, info in type(held).model_fields.items()  # type: ignore[attr-defined]
            if part in (name, info.alias)
        )
    return held


def test_the_production_example_holds_every_key(root: Path) -> None:
    keys = _keys(root, "production")
    assert set(keys) | SECRETS == set(schema())


def test_limits_that_nobody_can_set_are_told_where_they_count(root: Path) -> None:
    keys = _keys(root, "production")
    polled = keys["kafka.poll_messages"][1]
    assert f"up to {MAX_EMITTED:,} or {MAX_EMITTED_BYTES >> 20} MiB" in (polled or "")


def test_secrets_stand_in_no_example(root: Path) -> None:
    for name in _EXAMPLES:
        assert not set(_keys(root, name)) & SECRETS
