"""`twinsieve lint --show`: what is in force, and who said so."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.calling import Run, setting
from twinsieve.pipeline.settings.examples import example_names
from twinsieve.pipeline.settings.load import Override, check_tree, load_settings, tree_of_file
from twinsieve.pipeline.settings.model import Settings
from twinsieve.pipeline.settings.schema import SECRETS, schema
from twinsieve.pipeline.settings.show import settings_in_force
from twinsieve.pipeline.settings.tree import Tree


def _lines(out: str) -> dict[str, list[str]]:
    """Key -> value and origin."""
    split = [line.split("  ") for line in out.splitlines()]
    return {words[0]: [word.strip() for word in words[1:] if word.strip()] for words in split}


def test_every_key_is_shown_once_in_the_order_of_the_schema() -> None:
    keys = [one.key for one in settings_in_force(Settings(), Tree())]
    assert keys == [key for key, kind in schema().items() if kind != "section"]


def test_each_setting_names_who_set_it(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "s.yaml"
    path.write_text("near:\n  similarity: 0.7\n  bucket_load: 4\nexact: {window: {age: 2d}}\n")
    monkeypatch.setenv("TWINSIEVE_NEAR__SIMILARITY", "0.75")
    ran = run("lint", "--show", path, "--text-field", "body", *setting("near.threads=2"))
    assert ran.code == 0
    found = _lines(ran.out)
    assert found["near.similarity"] == ["0.75", "TWINSIEVE_NEAR__SIMILARITY"]
    assert found["near.bucket_load"] == ["4.0", f"{path}:3"]
    assert found["exact.window.age"] == ["2d", f"{path}:4"]
    assert found["near.window.age"] == ["24h", "default, none on files"]
    assert found["input.text_field"] == ["[body]", "--text-field"]
    assert found["near.threads"] == ["2", "--set near.threads"]
    assert found["profile"] == ["default", "default"]


def test_what_another_setting_switches_off_says_so(run: Run) -> None:
    found = _lines(run("lint", "--show", *setting("exact.fields=id")).out)
    assert found["near.method"] == ["none", "exact.fields is set"]


def test_no_secret_is_shown_wherever_it_came_from(tmp_path: Path) -> None:
    (tmp_path / "word").write_text("hunter2\n")
    (tmp_path / "s.yaml").write_text(
        "kafka: {security: {protocol: sasl_ssl, username: u, password_file: word}}\n"
        "state: {dir: 's3://key:hunter2@bucket/x'}\n"
        "input: {encoding: avro, registry: {url: 'https://host', username: u}}\n"
    )
    environ = {
        "TWINSIEVE_DIGEST__SEED": "5551212",
        "TWINSIEVE_KAFKA__SECURITY__KEY_PASSWORD": "hunter2",
        "TWINSIEVE_STATE__KEY": "hunter2" * 8,
        "TWINSIEVE_INPUT__REGISTRY__PASSWORD": "hunter2",
    }
    settings, _ = check_tree(tree := tree_of_file(tmp_path / "s.yaml"), environ)
    assert settings is not None
    shown = {one.key: one for one in settings_in_force(settings, tree)}
    assert [shown[key].value for key in sorted(SECRETS)] == ["(not shown)"] * len(SECRETS)
    assert shown["kafka.security.password"].origin == f"{tmp_path / 's.yaml'}:1"
    assert shown["digest.seed"].origin == "TWINSIEVE_DIGEST__SEED"
    said = " ".join(f"{one.value} {one.origin}" for one in shown.values())
    assert "hunter2" not in said
    assert "5551212" not in said


@pytest.mark.parametrize("example", [*example_names(), None])
def test_what_is_shown_can_be_given_again(root: Path, example: str | None) -> None:
    path = root / "config" / f"{example}.yaml" if example else None
    settings, findings = check_tree(tree := tree_of_file(path))
    assert settings is not None
    assert findings == []
    shown = [one for one in settings_in_force(settings, tree) if one.key not in SECRETS]
    again = load_settings(None, {}, [Override(one.key, one.value, one.key) for one in shown])
    assert again.model_dump() == settings.model_dump()


def test_a_problem_is_shown_before_any_setting(tmp_path: Path, run: Run) -> None:
    ran = run("lint", "--show", "--similarity", "7")
    assert (ran.code, ran.out.count("\n")) == (2, 1)


def test_lint_says_what_the_windows_hold_on_files(run: Run) -> None:
    out = run("lint", *setting("exact.window.age=2d")).out
    assert "near window on files: 1,000,000 kept rows, of any age\n" in out
    assert "exact window on files: 10,000,000 kept rows, none older than 2d\n" in out
