"""Settings of the version before: what has no effect any more is accepted and told once, so that one file serves both."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.calling import Run, setting
from twinsieve.pipeline.settings.load import check_tree, tree_of_file
from twinsieve.pipeline.settings.model import Settings


def _read(
    folder: Path, text: str, environ: dict[str, str] | None = None
) -> tuple[Settings | None, list[str]]:
    path = folder / "s.yaml"
    path.write_text(text)
    settings, findings = check_tree(tree_of_file(path), environ)
    return settings, [str(finding).removeprefix(f"{path}:") for finding in findings]


def test_the_other_client_of_before_is_told_at_its_place(tmp_path: Path) -> None:
    settings, findings = _read(tmp_path, "kafka:\n  client: confluent\n  bootstrap: b:9092\n")
    assert findings == []
    assert settings is not None
    assert settings.kafka.bootstrap == "b:9092"
    (warning,) = settings.warnings
    assert warning.startswith(f"{tmp_path / 's.yaml'}:2:")
    assert "kafka.client has no effect" in warning


def test_the_other_client_of_before_in_a_variable_is_told_too(tmp_path: Path) -> None:
    settings, findings = _read(tmp_path, "", {"TWINSIEVE_KAFKA__CLIENT": "confluent"})
    assert findings == []
    assert settings is not None
    (warning,) = settings.warnings
    assert warning.startswith("TWINSIEVE_KAFKA__CLIENT")


def test_the_client_that_there_is_may_be_named(tmp_path: Path) -> None:
    settings, findings = _read(tmp_path, "kafka: {client: kafka-python}\n")
    assert findings == []
    assert settings is not None
    assert settings.warnings == ()


def test_no_other_client_is_accepted(tmp_path: Path) -> None:
    _, (finding,) = _read(tmp_path, "kafka: {client: franz}\n")
    assert "kafka.client" in finding


@pytest.mark.parametrize(("client", "warned"), [("confluent", 1), ("kafka-python", 0)])
def test_lint_warns_and_does_not_show_the_key(tmp_path: Path, run: Run, client: str, warned: int) -> None:
    path = tmp_path / "s.yaml"
    path.write_text(f"kafka: {{client: {client}}}\n")
    for ran in (run("lint", path), run("lint", *setting(f"kafka.client={client}"))):
        assert ran.code == 0
        assert ran.out.count("kafka.client has no effect") == warned
    shown = run("lint", "--show", path)
    assert shown.code == 0
    assert not [line for line in shown.out.splitlines() if line.startswith("kafka.client")]
