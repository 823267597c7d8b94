"""Rows that cannot be read are never passed over in silence, and a wrong format or field stops a run."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.calling import SMALL, Run

_TEXTS = ["今天武汉下雨了，大家出门记得带伞，注意安全。", "完全不同的另外一个句子在这里"]


def _jsonl(path: Path, *rows: object) -> Path:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8")
    return path


def _posts(path: Path) -> Path:
    return _jsonl(path, *({"id": number, "text": text} for number, text in enumerate(_TEXTS)))


@pytest.mark.parametrize("dead_letter", [False, True])
def test_a_quiet_run_says_what_it_could_not_read_in_one_line(
    tmp_path: Path, run: Run, dead_letter: bool
) -> None:
    source = _jsonl(tmp_path / "in.jsonl", {"id": 1, "text": _TEXTS[0]}, {"id": 2}, 3, {"id": 4})
    dead = tmp_path / "dead.jsonl"
    ran = run(
        "dedup",
        "-q",
        source,
        "-o",
        tmp_path / "out",
        *(["--dead-letter", dead] if dead_letter else []),
        *SMALL,
    )
    where = f"they are in {dead}" if dead_letter else "see all with --dead-letter FILE"
    assert (ran.code, ran.err) == (
        0,
        "unreadable: 3 of 4 rows (2 missing_field, 1 not_an_object); "
        f"the first, {source}:2, has no field 'text'; {where}\n",
    )
    assert dead.exists() == dead_letter


def test_a_run_that_can_read_nothing_fails_and_names_the_fields_there_are(tmp_path: Path, run: Run) -> None:
    source = _jsonl(tmp_path / "in.jsonl", *({"id": n, "text": _TEXTS[0], "lang": "zh"} for n in range(300)))
    out = tmp_path / "out.jsonl"
    out.write_text("what was there before")
    names = ("-o", out, "--state", tmp_path / "state", "--dead-letter", tmp_path / "dead")
    ran = run("dedup", "-q", source, *names, "--text-field", "tex", *SMALL)
    assert (ran.code, ran.err) == (
        1,
        f"twinsieve: all 300 rows could not be read (missing_field): {source}:1 has no field 'tex' "
        "but 'id', 'text', 'lang'; name the right one, as with --text-field\n",
    )
    assert out.read_text() == "what was there before"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.jsonl", "out.jsonl"]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"just words\n", "the only row could not be read (invalid_json)"),
        (b"\xfe\xfd\n\xff\n", "all 2 rows could not be read (not_utf8)"),
        (b'"text"\n{\n', "all 2 rows could not be read (not_an_object, invalid_json)"),
    ],
)
def test_a_run_that_can_read_nothing_says_why(tmp_path: Path, run: Run, content: bytes, said: str) -> None:
    source = tmp_path / "in.jsonl"
    source.write_bytes(content)
    ran = run("dedup", source, "-o", tmp_path / "out", *SMALL)
    assert ran.code == 1
    assert said in ran.err
    assert len(ran.err.splitlines()) == 1


def test_keys_with_dots_are_named_as_a_setting_names_them(tmp_path: Path, run: Run) -> None:
    source = tmp_path / "in.jsonl"
    source.write_text('{"a.b": "one"}\n', encoding="utf-8")
    missed = run("dedup", source, "--text-field", "a.b", "-o", tmp_path / "out")
    assert (missed.code, """has no field 'a.b' but '["a.b"]'; name the right one""" in missed.err) == (
        1,
        True,
    )
    assert (
        run("dedup", source, "--format", "jsonl", "--text-field", '["a.b"]', "-o", tmp_path / "out").code == 0
    )


def test_an_input_without_rows_is_no_failure(tmp_path: Path, run: Run) -> None:
    (tmp_path / "in.jsonl").touch()
    ran = run("dedup", "-q", tmp_path / "in.jsonl", "-o", tmp_path / "out", *SMALL)
    assert (ran.code, ran.err, (tmp_path / "out").read_bytes()) == (0, "", b"")


@pytest.mark.parametrize("name", ["posts", "posts.dat", "posts.gz", "posts.log.zst", "posts.jsonl.lz4"])
@pytest.mark.parametrize("command", ["dedup", "explain", "train-idf"])
def test_an_ending_that_says_nothing_is_refused(tmp_path: Path, run: Run, name: str, command: str) -> None:
    source = _posts(tmp_path / name)
    given = {
        "dedup": (source, "-o", tmp_path / "out"),
        "explain": ("--input", source, "--id", "0", "--id", "1"),
        "train-idf": (source, "-o", tmp_path / "idf"),
    }[command]
    ran = run(command, *given)
    assert (ran.code, ran.err) == (
        2,
        f"twinsieve: {source}: has no ending that says what it holds; known are .jsonl, .ndjson, .json, .csv, .tsv, "
        ".txt, .text, .parquet, .pq, .arrow, .arrows, .feather, .ipc, each also with .gz, .zst, .bz2 or .xz behind it; or say --format jsonl, json, csv, tsv, text, parquet or arrow\n",
    )


def test_a_format_that_is_said_needs_no_ending(tmp_path: Path, run: Run) -> None:
    source = _posts(tmp_path / "posts")
    for said in (("--format", "jsonl"), ("--set", "input.encoding=text")):
        assert run("dedup", "-q", source, "-o", tmp_path / "out", *said, *SMALL).code == 0
        assert (tmp_path / "out").read_bytes() == source.read_bytes()


@pytest.mark.parametrize("name", ["-", "/dev/stdin", "/proc/self/fd/0"])
def test_a_pipe_has_no_ending_and_holds_json_lines(
    tmp_path: Path, name: str, piped: Callable[..., subprocess.CompletedProcess[bytes]]
) -> None:
    content = _posts(tmp_path / "posts").read_bytes()
    ran = piped(["dedup", "-q", name, *SMALL], content)
    assert (ran.returncode, ran.stdout) == (0, content), ran.stderr


@pytest.mark.parametrize(
    ("source", "output", "looks", "comes"),
    [
        ("p.jsonl", "z.csv", "csv", "jsonl"),
        ("p.jsonl", "z.txt.gz", "text", "jsonl"),
        ("p.csv", "z.json", "json", "csv"),
        ("-", "z.csv", "csv", "jsonl"),
    ],
)
def test_an_output_whose_name_says_something_else_is_refused(
    tmp_path: Path, run: Run, source: str, output: str, looks: str, comes: str
) -> None:
    named = source if source == "-" else _posts(tmp_path / source)
    ran = run("dedup", named, "-o", tmp_path / output, *SMALL)
    assert (ran.code, ran.err) == (
        2,
        f"twinsieve: -o {tmp_path / output}: looks like {looks}, but rows come out as they came in, as {comes}; "
        "name another file, or say with --format what the rows are\n",
    )
    assert not (tmp_path / output).exists()


def test_an_output_of_any_name_is_taken_where_the_format_is_said(tmp_path: Path, run: Run) -> None:
    source = _posts(tmp_path / "p.jsonl")
    for said in (("--format", "jsonl"), ("--set", "input.encoding=text")):
        assert run("dedup", "-q", source, "-o", tmp_path / "z.csv", *said, *SMALL).code == 0


@pytest.mark.parametrize("limit", [("--strict",), ("--max-unreadable", "0"), ("--max-unreadable", "0.2")])
def test_a_run_with_more_unreadable_rows_than_allowed_fails_and_changes_nothing(
    tmp_path: Path, run: Run, limit: tuple[str, ...]
) -> None:
    source = _jsonl(
        tmp_path / "in.jsonl", {"id": 1, "text": _TEXTS[0]}, {"id": 2}, {"id": 3, "text": _TEXTS[1]}
    )
    out = tmp_path / "out.jsonl"
    out.write_text("what was there before")
    names = ("-o", out, "--state", tmp_path / "state", "--dead-letter", tmp_path / "dead")
    ran = run("dedup", "-q", source, *names, *limit, *SMALL)
    assert (ran.code, len(ran.err.splitlines())) == (1, 1)
    assert f"{source}:2" in ran.err
    assert "has no field 'text'" in ran.err
    assert ("--max-unreadable 0.2" if limit[-1] == "0.2" else "--strict") in ran.err
    assert out.read_text() == "what was there before"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.jsonl", "out.jsonl"]
    assert run("dedup", "-q", source, *names, "--max-unreadable", "0.34", *SMALL).code == 0


def test_both_limits_at_once_are_misuse(tmp_path: Path, run: Run) -> None:
    ran = run("dedup", _posts(tmp_path / "in.jsonl"), "--strict", "--max-unreadable", "0.5")
    assert (ran.code, "--strict is --max-unreadable 0" in ran.err) == (2, True)
    assert run("dedup", _posts(tmp_path / "in.jsonl"), "--max-unreadable", "1.5").code == 2


@pytest.mark.parametrize("name", ["in.jsonl", "in.txt", "in.csv"])
def test_blank_lines_are_no_rows_and_move_no_position(tmp_path: Path, run: Run, name: str) -> None:
    rows = [_TEXTS[0], "", " \t", _TEXTS[1], _TEXTS[0], ""]
    if name == "in.jsonl":
        rows = [json.dumps({"text": row}) if row.strip() else row for row in rows]
    source = tmp_path / name
    source.write_text("".join(f"{row}\n" for row in (["text"] if name == "in.csv" else []) + rows), "utf-8")
    stats, out = tmp_path / "stats.json", tmp_path / f"out.{name.partition('.')[2]}"
    files = ("-o", out, "--duplicates", tmp_path / "d", "--stats", stats)
    ran = run("dedup", source, *files, "--strict", *SMALL)
    assert ran.code == 0
    assert "rows 3 100.0% 3 blank ones passed over" in " ".join(ran.err.split())
    told = json.loads(stats.read_text())
    assert (told["rows"], told["unique"], told["exact"], told["unreadable"], told["blank"]) == (
        3,
        2,
        1,
        {},
        3,
    )
    assert [json.loads(line)["position"] for line in (tmp_path / "d").read_text().splitlines()] == [5]
    assert out.read_text("utf-8").splitlines()[-2:] == [rows[0], rows[3]]
    assert run("dedup", "-q", source, "-o", out, *SMALL).err == ""
