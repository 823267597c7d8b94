"""Rows that cannot be read are never passed over in silence, and a wrong format or field stops a run."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.calling import SMALL, Piped, Run, setting
from tests.row_files import read_lines, write_rows
from twinsieve.pipeline.files.format import formats

_TEXTS = ["今天武汉下雨了，大家出门记得带伞，注意安全。", "完全不同的另外一个句子在这里"]


def _posts(path: Path) -> Path:
    return write_rows(path, ({"id": number, "text": text} for number, text in enumerate(_TEXTS)))


@pytest.mark.parametrize("dead_letter", [False, True])
def test_a_quiet_run_says_what_it_could_not_read_in_one_line(
    tmp_path: Path, run: Run, dead_letter: bool
) -> None:
    source = write_rows(tmp_path / "in.jsonl", [{"id": 1, "text": _TEXTS[0]}, {"text": 2}, 3, {"text": 4}])
    dead = tmp_path / "dead.jsonl"
    there = ("--dead-letter", dead) if dead_letter else ()
    ran = run("dedup", "-q", source, "-o", tmp_path / "out", *there, *SMALL)
    assert (ran.code, ran.err.count("\n")) == (0 if dead_letter else 1, 1)
    said = "unreadable: 3 of 4 rows (2 not_text, 1 not_an_object); "
    assert f"{said}the first, {source}:2, field 'text' is a number, not text; " in ran.err
    assert (f"they are in {dead}" if dead_letter else "see all with --dead-letter FILE") in ran.err
    assert dead.exists() == dead_letter


def test_a_run_that_can_read_nothing_fails_and_names_the_fields_there_are(tmp_path: Path, run: Run) -> None:
    rows = ({"id": n, "text": _TEXTS[0], "lang": "zh"} for n in range(300))
    source = write_rows(tmp_path / "in.jsonl", rows)
    out = tmp_path / "out.jsonl"
    out.write_text("what was there before")
    names = ("-o", out, "--state", tmp_path / "state", "--dead-letter", tmp_path / "dead")
    null = setting("input.null_text=dead_letter")
    ran = run("dedup", "-q", source, *names, "--text-field", "tex", *null, *SMALL)
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
    said = """has no field 'a.b' but '["a.b"]'; did you mean '["a.b"]'? name the right one"""
    assert (missed.code, said in missed.err) == (1, True)
    found = run("dedup", source, "--text-field", '["a.b"]', "-o", tmp_path / "out")
    assert found.code == 0


def test_an_input_without_rows_is_no_failure(tmp_path: Path, run: Run) -> None:
    (tmp_path / "in.jsonl").touch()
    ran = run("dedup", "-q", tmp_path / "in.jsonl", "-o", tmp_path / "out", *SMALL)
    assert (ran.code, ran.err, (tmp_path / "out").read_bytes()) == (0, "", b"")


@pytest.mark.parametrize("name", ["posts", "posts.dat", "posts.gz", "posts.log.zst", "posts.jsonl.lz4"])
@pytest.mark.parametrize("command", ["dedup", "explain"])
def test_an_ending_that_says_nothing_is_refused(tmp_path: Path, run: Run, name: str, command: str) -> None:
    source = _posts(tmp_path / name)
    given = {
        "dedup": (source, "-o", tmp_path / "out"),
        "explain": ("--input", source, "--id", "0", "--id", "1"),
    }[command]
    ran = run(command, *given)
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert ran.err.startswith(
        f"twinsieve: {source}: has no ending that says what it holds; known endings are "
    )
    for kind in formats():
        assert all(f"{ending}," in ran.err for ending in kind.endings)
        assert kind.name in ran.err.partition("add --format ")[2]


def test_a_format_that_is_said_needs_no_ending(tmp_path: Path, run: Run) -> None:
    source = _posts(tmp_path / "posts")
    for said in (("--format", "jsonl"), setting("input.encoding=text")):
        assert run("dedup", "-q", source, "-o", tmp_path / "out", *said, *SMALL).code == 0
        assert (tmp_path / "out").read_bytes() == source.read_bytes()


@pytest.mark.parametrize("name", ["-", "/dev/stdin", "/proc/self/fd/0"])
def test_a_pipe_has_no_ending_and_holds_json_lines(tmp_path: Path, name: str, piped: Piped) -> None:
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
        "name another file, or name their format with --format\n",
    )
    assert not (tmp_path / output).exists()


def test_an_output_of_any_name_is_taken_where_the_format_is_said(tmp_path: Path, run: Run) -> None:
    source = _posts(tmp_path / "p.jsonl")
    for said in (("--format", "jsonl"), setting("input.encoding=text")):
        assert run("dedup", "-q", source, "-o", tmp_path / "z.csv", *said, *SMALL).code == 0


@pytest.mark.parametrize("limit", [("--strict",), ("--max-unreadable", "0"), ("--max-unreadable", "0.2")])
def test_a_run_with_too_many_unreadable_rows_fails_and_changes_nothing(
    tmp_path: Path, run: Run, limit: tuple[str, ...]
) -> None:
    rows = [{"id": 1, "text": _TEXTS[0]}, {"text": 2}, {"id": 3, "text": _TEXTS[1]}]
    source = write_rows(tmp_path / "in.jsonl", rows)
    out = tmp_path / "out.jsonl"
    out.write_text("what was there before")
    names = ("-o", out, "--state", tmp_path / "state", "--dead-letter", tmp_path / "dead")
    ran = run("dedup", "-q", source, *names, *limit, *SMALL)
    assert (ran.code, len(ran.err.splitlines())) == (1, 1)
    assert f"{source}:2" in ran.err
    assert "field 'text' is a number, not text" in ran.err
    assert ("--max-unreadable 0.2" if limit[-1] == "0.2" else "--strict") in ran.err
    assert out.read_text() == "what was there before"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.jsonl", "out.jsonl"]
    assert run("dedup", "-q", source, *names, "--max-unreadable", "0.34", *SMALL).code == 0


def _damaged(path: Path, rows: int, bad: int) -> Path:
    """That many rows, of which the last ones are no JSON."""
    fine = [json.dumps({"text": f"text number {number}"}) for number in range(rows - bad)]
    path.write_text("".join(f"{line}\n" for line in [*fine, *["{"] * bad]))
    return path


@pytest.mark.parametrize(
    ("rows", "bad", "code"),
    [(2, 1, 1), (7, 3, 1), (20, 1, 1), (99, 1, 1), (100, 1, 0), (1000, 10, 0), (1000, 11, 1)],
)
def test_a_run_that_was_told_nothing_loses_one_row_in_a_hundred_at_most(
    tmp_path: Path, run: Run, rows: int, bad: int, code: int
) -> None:
    source, out = _damaged(tmp_path / "in.jsonl", rows, bad), tmp_path / "out.jsonl"
    out.write_text("what was there before")
    names = ("-o", out, "--state", tmp_path / "state")
    ran = run("dedup", "-q", source, *names, *SMALL)
    assert (ran.code, len(ran.err.splitlines())) == (code, 1)
    said = f"unreadable: {bad} of {rows:,} rows ({bad} invalid_json); the first, {source}:{rows - bad + 1}"
    assert said in ran.err
    assert (out.read_text() == "what was there before") == bool(code)
    assert (tmp_path / "state").exists() == (not code)
    share = re.search(r"--max-unreadable ([\d.]+)\n$", ran.err)
    assert (share is not None) == bool(code)
    more = ("-o", out, "--max-unreadable", share[1] if share else "0.01")
    assert run("dedup", "-q", source, *more, *SMALL).code == 0


@pytest.mark.parametrize("said", [("--dead-letter", "dead"), ("--mark",)], ids=["dead letters", "marks"])
def test_rows_that_go_somewhere_are_not_lost(tmp_path: Path, run: Run, said: tuple[str, ...]) -> None:
    source = _damaged(tmp_path / "in.jsonl", 20, 15)
    there = [said[0], *(tmp_path / name for name in said[1:])]
    assert run("dedup", "-q", source, "-o", tmp_path / "out.jsonl", *there, *SMALL).code == 0


def test_a_stream_with_too_many_lost_rows_fails_at_its_end_and_saves(tmp_path: Path, piped: Piped) -> None:
    content = _damaged(tmp_path / "in.jsonl", 20, 15).read_bytes()
    state = ["dedup", "-q", "--state", str(tmp_path / "state"), *SMALL]
    ran = piped(state, content)
    assert (ran.returncode, ran.stdout.count(b"\n")) == (1, 5)
    assert b"unreadable: 15 of 20 rows" in ran.stderr
    again = piped([*state, "--max-unreadable", "1"], content + b'{"text": "one more"}\n')
    assert (again.returncode, again.stdout) == (0, b'{"text": "one more"}\n')


_OLD_ENDS = "one line of the old kind\ranother line of that kind\rand the last of the three\r"


@pytest.mark.parametrize("ending", ["\r", "", "\r\r"])
def test_a_text_of_carriage_returns_alone_is_one_row_and_said(tmp_path: Path, run: Run, ending: str) -> None:
    source = tmp_path / "in.txt"
    source.write_bytes((_OLD_ENDS[:-1] + ending).encode())
    ran = run("dedup", "-q", source, "-o", tmp_path / "out.txt", *SMALL)
    assert (ran.code, ran.err.count("\n")) == (0, 1)
    assert f"{source}: " in ran.err
    assert "carriage return" in ran.err
    assert r"tr '\r' '\n'" in ran.err
    assert (tmp_path / "out.txt").read_bytes() == source.read_bytes()


@pytest.mark.parametrize(
    "content",
    ["one line alone", "one line alone\r", "a\rb\nc\n", "a\rb\nc", "a\r\nb\r\n", "a\nb\rc", ""],
)
def test_a_text_with_newlines_or_a_last_carriage_return_is_as_it_is(
    tmp_path: Path, run: Run, content: str
) -> None:
    source = tmp_path / "in.txt"
    source.write_bytes(content.encode())
    assert run("dedup", "-q", source, "-o", tmp_path / "out.txt", *SMALL).err == ""
    assert (tmp_path / "out.txt").read_bytes() == content.encode()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("in.jsonl", b'{"text": "a"}\r{"text": "b"}\r'),
        ("in.csv", b"id,text\r1,one\r2,two\r"),
        ("in.tsv", b"id\ttext\r1\tone\r2\ttwo\r"),
        ("in.txt", b"words that end with a return\r" * 200_000),
        ("in.csv", b"id,text\r" + b"1,words that end with a return\r" * 200_000),
    ],
)
def test_what_cannot_be_read_for_its_carriage_returns_says_so(
    tmp_path: Path, run: Run, name: str, content: bytes
) -> None:
    source = tmp_path / name
    source.write_bytes(content)
    ran = run("dedup", "-q", source, "-o", tmp_path / f"out{source.suffix}", *SMALL)
    assert (ran.code, ran.err.count("\n")) == (1, 1)
    assert r"tr '\r' '\n'" in ran.err


def test_a_row_that_is_too_large_says_how_large_and_how_to_read_it(tmp_path: Path, run: Run) -> None:
    source = write_rows(tmp_path / "in.jsonl", [{"text": "a"}, {"text": "b" * 6_000_000}])
    ran = run("dedup", "-q", source, "-o", tmp_path / "out", *SMALL)
    assert (ran.code, ran.err.count("\n")) == (1, 1)
    assert (
        f"unreadable: 1 of 2 rows (1 too_large); the first, {source}:2, has 6,000,012 bytes, more than the 4MiB of "
        "input.max_bytes; raise it, as with --set input.max_bytes=8MiB; "
    ) in ran.err
    ran = run("dedup", "-q", source, "-o", tmp_path / "out", *setting("input.max_bytes=8MiB"), *SMALL)
    assert (ran.code, ran.err, (tmp_path / "out").read_bytes()) == (0, "", source.read_bytes())


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
    assert "rows 3 100.0% 3 blank lines passed over" in " ".join(ran.err.split())
    told = json.loads(stats.read_text())
    assert (told["unique"], told["exact"], told["blank"]) == (2, 1, 3)
    assert (told["rows"], told["unreadable"]) == (3, {})
    assert [entry["position"] for entry in read_lines(tmp_path / "d")] == [5]
    assert out.read_text("utf-8").splitlines()[-2:] == [rows[0], rows[3]]
    assert run("dedup", "-q", source, "-o", out, *SMALL).err == ""
