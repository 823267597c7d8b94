"""Fields named on the command line: paths, several texts, and names that no row has."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.calling import SMALL, Run, Start, setting
from tests.row_files import write_rows

_POSTS = [
    {"id": 1, "title": "the bridge is closed", "a.b": {"body": ["take the ferry instead of it"]}},
    {"id": 2, "title": "the bridge is open", "a.b": {"body": ["nobody needs the ferry any more"]}},
    {"id": 3, "title": "the bridge is closed", "a.b": {"body": ["take the ferry instead of it"]}},
    {"id": 4, "a.b": {"body": ["a row that has the second one alone"]}},
    {"id": 5, "title": "a row that has the first one alone"},
]


@pytest.mark.parametrize("body", ['["a.b"].body[0]', r"a\.b.body[0]", '["a.b"]["body"][0]'])
@pytest.mark.parametrize("how", ["flags", "file", "set", "environment"])
def test_texts_of_several_fields_are_judged_as_one(
    tmp_path: Path, run: Run, body: str, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, dropped = write_rows(tmp_path / "in.jsonl", _POSTS), tmp_path / "dropped"
    fields = json.dumps(["title", body])
    config = tmp_path / "settings.yaml"
    config.write_text(f"input:\n  text_field: {fields}\n")
    said = {
        "flags": ("--text-field", "title", "--text-field", body),
        "file": ("-c", config),
        "set": setting(f"input.text_field={fields}"),
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
    source = write_rows(tmp_path / "in.jsonl", _POSTS)
    ran = run("dedup", source, "--text-field", "entities[x].text", *SMALL)
    facts = ("input.text_field", "'entities[x].text'", "column 9", "[0]", "star", '["a.b"]')
    assert (ran.code, [fact for fact in facts if fact not in ran.err]) == (2, [])
    ran = run("lint", "--id-field", "a..b")
    assert (ran.code, ran.out) == (2, "settings:1:1: input.id_field: 'a..b', column 3: a name is missing\n")


def test_no_text_field_at_all_is_refused(run: Run) -> None:
    ran = run("lint", *setting("input.text_field=[]"))
    said = "--set input.text_field: input.text_field is an empty list; name one field at least\n"
    assert (ran.code, ran.out) == (2, said)


_ROWS: list[dict[str, object]] = [
    {
        "id": 1,
        "Text": 1,
        "text": "one",
        "tenant": "a",
        "createdAt": 5,
        "user": {"name": "x"},
        "a.b": 1,
        "tags": ["t"],
    },
    {"id": 2, "text": "two", "tenant": "b", "other": None},
]
_THERE = "'id', 'Text', 'text', 'tenant', 'createdAt', 'user', '[\"a.b\"]', 'tags', 'other'"


@pytest.mark.parametrize(
    ("name", "there", "advice"),
    [
        ("tenat", _THERE, "did you mean 'tenant'?"),
        ("TENANT", _THERE, "did you mean 'tenant'?"),
        ("a.b", _THERE, "did you mean '[\"a.b\"]'?"),
        ("name", _THERE, "did you mean 'user.name'?"),
        ("user.nmae", "'user.name'", "did you mean 'user.name'?"),
        ("tags.name", "'tags[0]'", "name another in {key}"),
        ("zzz", _THERE, "name another in {key}"),
    ],
)
@pytest.mark.parametrize("key", ["scope", "exact.fields"])
def test_a_key_or_scope_that_no_row_has_ends_the_run_before_any_output(
    tmp_path: Path, run: Run, key: str, name: str, there: str, advice: str
) -> None:
    source, out = write_rows(tmp_path / "in.jsonl", _ROWS), tmp_path / "out"
    small = SMALL if key == "scope" else SMALL[2:4]
    words = (*setting(f"{key}={name}"), *small)
    ran = run("dedup", "-q", source, "-o", out, *words)
    effect = "so messages of all scopes meet" if key == "scope" else "so none has a key"
    assert (ran.code, ran.err) == (
        2,
        f"twinsieve: {source}: none of the first 2 rows has the field '{name}' of {key} but {there}, {effect}; "
        f"{advice.format(key=key)}\n",
    )
    assert not out.exists()
    assert run("dedup", "-q", source, *words).out == ""


def test_an_id_or_time_that_no_row_has_is_said_and_the_run_goes_on(tmp_path: Path, run: Run) -> None:
    source = write_rows(tmp_path / "in.jsonl", _ROWS)
    ran = run("dedup", "-q", source, "--id-field", "idd", "--time-field", "created_at", *SMALL)
    assert (ran.code, len(ran.out.splitlines())) == (0, 2)
    assert ran.err.splitlines() == [
        f"{source}: none of the first 2 rows has the field 'idd' of input.id_field but {_THERE}, so none has an id; "
        "did you mean 'id'?",
        f"{source}: none of the first 2 rows has the field 'created_at' of input.time_field but {_THERE}, "
        "so none has a time; did you mean 'createdAt'?",
    ]


def test_a_default_that_no_row_has_is_nothing_to_speak_of(tmp_path: Path, run: Run) -> None:
    source = write_rows(tmp_path / "in.jsonl", [{"text": "one"}, {"text": "two"}])
    assert run("dedup", "-q", source, *SMALL).err == ""


def test_a_field_that_one_row_has_is_enough(tmp_path: Path, run: Run) -> None:
    rows: list[dict[str, object]] = [{"text": f"text {number}"} for number in range(50)]
    source = write_rows(tmp_path / "in.jsonl", [*rows, {"text": "last", "tenant": None, "at": 5}])
    ran = run("dedup", "-q", source, *setting("scope=[tenant]"), "--time-field", "at", *SMALL)
    assert (ran.code, ran.err, len(ran.out.splitlines())) == (0, "", 51)


def test_one_of_several_text_fields_that_no_row_has_is_said(tmp_path: Path, run: Run) -> None:
    source = write_rows(tmp_path / "in.jsonl", _ROWS)
    ran = run("dedup", "-q", source, "--text-field", "text", "--text-field", "titel", *SMALL)
    assert ran.code == 0
    assert "has the field 'titel' of input.text_field" in ran.err
    assert "so nothing of it is compared" in ran.err


@pytest.mark.parametrize(("name", "there"), [("in.csv", "'id', 'text', 'a.b'"), ("in.txt", "'text'")])
def test_columns_and_plain_lines_are_looked_at_too(tmp_path: Path, run: Run, name: str, there: str) -> None:
    source = tmp_path / name
    source.write_text("id,text,a.b\n1,one,x\n2,two,y\n")
    ran = run("dedup", "-q", source, *setting("scope=[a.c]"), *SMALL)
    assert ran.code == 2
    assert f"has the field 'a.c' of scope but {there}, " in ran.err
    assert run("dedup", "-q", source, *setting("scope=[text]"), *SMALL).code == 0


def test_a_key_that_is_null_in_every_row_is_said_and_no_row_is_lost(tmp_path: Path, run: Run) -> None:
    source = write_rows(tmp_path / "in.jsonl", [{"text": "one", "key": None}, {"text": "two", "key": None}])
    ran = run("dedup", "-q", source, *setting("exact.fields=key"), *SMALL[2:4])
    assert (ran.code, ran.out) == (0, source.read_text())
    assert "2 of 2 rows have an empty key" in ran.err


@pytest.mark.parametrize(
    ("words", "said", "kept"),
    [
        (("--id-field", "idd"), b"did you mean 'id'?", False),
        (setting("scope=tenant"), b"has the field 'tenant' of scope", True),
    ],
)
def test_a_stream_is_told_of_while_it_is_still_open(
    started: Start, words: tuple[str, ...], said: bytes, kept: bool
) -> None:
    row = b'{"id": 1, "text": "one row and the pipe stays open"}\n'
    again = b'{"id": 2, "text": "one row and the pipe stays open", "tenant": "a"}\n'
    with started("dedup", "-q", *words, *SMALL) as running:
        assert running.answer_to(row) == row
        assert said in running.stderr.readline()
        running.stdin.write(again)
        assert running.end() == (0, again * kept)


@pytest.mark.parametrize(("rows", "code"), [(999, 0), (1000, 2)])
@pytest.mark.parametrize("key", ["scope", "exact.fields"])
def test_a_few_rows_without_a_field_say_nothing_of_those_to_come(
    tmp_path: Path, run: Run, key: str, rows: int, code: int
) -> None:
    small = SMALL if key == "scope" else SMALL[2:4]
    first = write_rows(tmp_path / "a.jsonl", [{"text": f"text {number}"} for number in range(rows)])
    second = write_rows(tmp_path / "b.jsonl", [{"text": "last", "tenant": "a"}])
    words = ["dedup", "-q", first, second, "-o", tmp_path / "out", *setting(f"{key}=tenant"), *small]
    words += ["--dead-letter", tmp_path / "dead"]
    ran = run(*words)
    assert ran.code == code, ran.err
    assert f"none of the first {rows:,} rows has the field 'tenant' of {key}" in ran.err
    assert (tmp_path / "out").exists() == (code == 0)
    first.write_text(first.read_text() + json.dumps({"text": "last", "tenant": "a"}))
    ran = run(*words[:2], first, *words[4:])
    assert ran.code == code, ran.err
