"""Fields named on the command line: paths, and several texts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import SMALL, Run

_POSTS = [
    {"id": 1, "title": "the bridge is closed", "a.b": {"body": ["take the ferry instead of it"]}},
    {"id": 2, "title": "the bridge is open", "a.b": {"body": ["nobody needs the ferry any more"]}},
    {"id": 3, "title": "the bridge is closed", "a.b": {"body": ["take the ferry instead of it"]}},
    {"id": 4, "a.b": {"body": ["a row that has the second one alone"]}},
    {"id": 5, "title": "a row that has the first one alone"},
]


def _write(path: Path, rows: list[dict[str, object]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.mark.parametrize("body", ['["a.b"].body[0]', r"a\.b.body[0]", '["a.b"]["body"][0]'])
@pytest.mark.parametrize("how", ["flags", "file", "set", "environment"])
def test_texts_of_several_fields_are_judged_as_one(
    tmp_path: Path, run: Run, body: str, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, dropped = _write(tmp_path / "in.jsonl", _POSTS), tmp_path / "dropped"
    fields = json.dumps(["title", body])
    config = tmp_path / "settings.yaml"
    config.write_text(f"input:\n  text_field: {fields}\n")
    said = {
        "flags": ("--text-field", "title", "--text-field", body),
        "file": ("-c", config),
        "set": ("--set", f"input.text_field={fields}"),
        "environment": (),
    }[how]
    if how == "environment":
        monkeypatch.setenv("TWINSIEVE_INPUT__TEXT_FIELD", fields)
    ran = run("dedup", "-q", source, "--duplicates", dropped, *said, *SMALL)
    assert (ran.code, ran.err) == (0, "")
    assert [json.loads(line)["id"] for line in ran.out.splitlines()] == [1, 2, 4, 5]
    entry = json.loads(dropped.read_text())
    assert entry["text"] == "the bridge is closed\ntake the ferry instead of it"


def test_texts_of_several_columns_are_judged_as_one(tmp_path: Path, run: Run) -> None:
    source = tmp_path / "in.csv"
    source.write_text(
        'id,"head, line",body.0\n1,closed,take the ferry\n2,closed,swim\n3,closed,take the ferry\n4,,\n'
    )
    ran = run("dedup", "-q", source, "--text-field", "head, line", "--text-field", "body.0", *SMALL)
    assert [line[:1] for line in ran.out.splitlines()] == ["i", "1", "2", "4"]


def test_a_path_that_is_none_is_refused_with_its_column(tmp_path: Path, run: Run) -> None:
    source = _write(tmp_path / "in.jsonl", _POSTS)
    ran = run("dedup", source, "--text-field", "entities[x].text", *SMALL)
    assert (ran.code, ran.err) == (
        2,
        "twinsieve: input.text_field: 'entities[x].text', column 9: in brackets stands an index, as [0], "
        'or a quoted name, as ["a.b"]\n',
    )
    ran = run("lint", "--id-field", "a..b")
    assert (ran.code, ran.out) == (2, "settings:1:1: input.id_field: 'a..b', column 3: a name is missing\n")


def test_no_text_field_at_all_is_refused(run: Run) -> None:
    ran = run("lint", "--set", "input.text_field=[]")
    assert (ran.code, ran.out) == (
        2,
        "--set input.text_field: input.text_field is an empty list; name one field at least\n",
    )
