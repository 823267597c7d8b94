"""JSON as people have it: commas behind lines, and several objects in one line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.calling import SMALL, Run
from tests.row_files import read_lines
from twinsieve.pipeline.files.formats.json_documents import holds_lines, unglued
from twinsieve.pipeline.files.formats.json_lines import without_comma
from twinsieve.pipeline.files.rows import Rows
from twinsieve.stages.rows.lines import Lines

_TEXTS = ["The lighthouse is lit again", "Two goats on the roof", "The lighthouse is lit again!", "No trains"]
_ROWS = [json.dumps({"n": n, "text": text}) for n, text in enumerate(_TEXTS)]
_KEPT = [_ROWS[0], _ROWS[1], _ROWS[3]]
_OBJECTS = st.dictionaries(
    st.text(max_size=3),
    st.none()
    | st.integers()
    | st.text(st.sampled_from('a"\\[]{},}{ 你'), max_size=8)
    | st.lists(st.just({})),
    max_size=3,
)


@pytest.mark.parametrize("name", ["in.jsonl", "in.json"])
@pytest.mark.parametrize("end", [",\n", ",\r\n", ", \n", " ,\n"])
def test_a_comma_behind_a_line_is_no_part_of_it(tmp_path: Path, run: Run, name: str, end: str) -> None:
    source, out = tmp_path / name, tmp_path / f"out-{name}"
    source.write_text(end.join(_ROWS) + "\n", newline="")
    assert run("dedup", "-q", source, "-o", out, "--strict", *SMALL).code == 0
    assert out.read_bytes().decode() == "".join(row + end for row in _KEPT[:-1]) + f"{_ROWS[3]}\n"


def test_a_comma_stays_behind_a_mark(tmp_path: Path, run: Run) -> None:
    source, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_text(",\n".join(_ROWS) + ",\n")
    assert run("dedup", "-q", source, "-o", out, "--mark", *SMALL).code == 0
    lines = out.read_text().splitlines()
    assert [line[-1] for line in lines] == [","] * 4
    assert [json.loads(line[:-1])["twinsieve"]["verdict"] for line in lines] == [
        "unique",
        "unique",
        "exact",
        "unique",
    ]


def test_an_array_named_jsonl_is_no_lines_with_commas(tmp_path: Path, run: Run) -> None:
    source = tmp_path / "in.jsonl"
    source.write_text("\n[\n" + ",\n".join(_ROWS * 9) + "\n]\n")
    ran = run("dedup", "-q", source, "-o", tmp_path / "out.jsonl", *SMALL)
    assert (ran.code, "in.jsonl:2" in ran.err, "--format json" in ran.err) == (1, True, True)


@pytest.mark.parametrize(
    "lines",
    [
        ["".join(_ROWS)],
        ["  ".join(_ROWS)],
        [_ROWS[0], _ROWS[1] + _ROWS[2], "", "\t".join(_ROWS[3:])],
        [f"{_ROWS[0]}{_ROWS[1]}\r", _ROWS[2] + _ROWS[3]],
    ],
)
@pytest.mark.parametrize("last", ["", "\n"])
def test_objects_in_one_line_are_rows_with_format_json(
    tmp_path: Path, run: Run, lines: list[str], last: str
) -> None:
    source, out = tmp_path / "in.json", tmp_path / "out.jsonl"
    source.write_text("\n".join(lines) + last, newline="")
    dead = tmp_path / "dropped"
    ran = run("dedup", "-q", source, "-o", out, "--duplicates", dead, "--strict", *SMALL)
    assert (ran.code, ran.err) == (0, "")
    assert out.read_text().split() == "\n".join(_KEPT).split()
    line = next(number for number, row in enumerate(lines, start=1) if _ROWS[2] in row)
    assert [(one["id"], one["line"]) for one in read_lines(dead)] == [(None, line)]


def test_objects_in_one_line_of_json_lines_are_named_with_what_to_do(tmp_path: Path, run: Run) -> None:
    source, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_text("\n".join([_ROWS[0], _ROWS[1] + _ROWS[2], *([_ROWS[3]] * 200)]) + "\n")
    ran = run("dedup", "-q", source, "-o", out, *SMALL)
    assert (ran.code, "in.jsonl:2" in ran.err, "--format json" in ran.err) == (0, True, True)
    assert out.read_text().splitlines() == [_ROWS[0], _ROWS[3]]
    source.write_text("".join(_ROWS * 99))
    ran = run("dedup", "-q", source, "-o", out, "--set", "input.max_bytes=1KiB", *SMALL)
    assert (ran.code, "in.jsonl:1" in ran.err, "--format json" in ran.err) == (1, True, True)
    words = ("--format", "json", "--set", "input.max_bytes=1KiB", *SMALL)
    assert run("dedup", "-q", source, "-o", out, *words).code == 0
    assert out.read_text().splitlines() == _KEPT


@given(st.lists(st.lists(_OBJECTS, max_size=3), max_size=4), st.sampled_from(["", " ", "\t "]), st.booleans())
def test_every_object_of_every_line_is_a_row_of_its_line(
    lines: list[list[Any]], between: str, in_one_piece: bool
) -> None:
    content = [between.join(json.dumps(each) for each in line).encode() for line in lines]
    rows = Rows(Lines.of(b"".join(line + b"\n" for line in content)) if in_one_piece else content, 5)
    cut = unglued(rows)
    found = [json.loads(row) for row in cut.rows if row]
    assert found == [each for line in lines for each in line]
    places = [line for row, line in zip(cut.rows, cut.lines().tolist(), strict=True) if row]
    assert places == [number for number, line in enumerate(lines, start=5) for _ in line]


@given(_OBJECTS)
def test_a_line_of_one_object_passes_as_it_is(document: dict[str, Any]) -> None:
    row = json.dumps(document).encode()
    assert [*unglued(Rows([row], 1)).rows] == [row]
    assert without_comma(row) == row
    assert holds_lines(row)
    assert holds_lines(row + b"\n" + row + row)


def test_a_broken_object_leaves_those_before_it(tmp_path: Path, run: Run) -> None:
    source, out = tmp_path / "in.json", tmp_path / "out.jsonl"
    source.write_text("\n".join([_ROWS[1], f'{_ROWS[0]}{{"n": 5, "te', f"{{x}}{_ROWS[3]}"]) + "\n")
    dead = tmp_path / "dead"
    assert run("dedup", "-q", source, "-o", out, "--dead-letter", dead, *SMALL).code == 0
    assert out.read_text().splitlines() == [_ROWS[1], _ROWS[0], _ROWS[3]]
    assert [(one["line"], one["raw"]) for one in read_lines(dead)] == [(2, '{"n": 5, "te'), (3, "{x}")]


@pytest.mark.parametrize(
    ("name", "content", "lines", "facts"),
    [
        ("in.json", "[[%s],[%s]]", [], ["a list"]),
        ("in.json", "[%s,\n%s,\n]\n", [], ["in.json:3"]),
        ("in.json", "window.part0 = [%s, %s]", [], ["not JSON"]),
        ("in.jsonl", "%s\n\ufeff%s\n", [2], ["byte order mark"]),
        ("in.jsonl", "\x1e%s\n\x1e%s\n", [], ["not JSON"]),
        ("in.jsonl", "%s\n{'text': 'single quotes'}\n%s\n", [2], ["not JSON"]),
        ("in.jsonl", '%s\n{"text": "comma",}\n%s\n', [2], ["comma"]),
        ("in.jsonl", "%s\n// words\n%s\n", [2], ["not JSON"]),
        ("in.jsonl", "[\n%s\n%s\n]\n", [1, 4], ["in.jsonl:1", "--format json"]),
    ],
)
def test_what_is_nearly_json_is_named_and_nothing_beside_it_is_lost(
    tmp_path: Path, run: Run, name: str, content: str, lines: list[int], facts: list[str]
) -> None:
    """lines: those of unreadable rows; none if nothing of the file can be read"""
    source, out, dead = tmp_path / name, tmp_path / "out.jsonl", tmp_path / "dead"
    source.write_text(content % (_ROWS[0], _ROWS[1]), "utf-8")
    ran = run("dedup", "-q", source, "-o", out, "--dead-letter", dead, *SMALL)
    assert [fact for fact in (f"{source}:", *facts) if fact not in ran.err] == []
    if not lines:
        assert (ran.code, out.exists()) == (1, False)
        return
    letters = read_lines(dead)
    assert (ran.code, [letter["line"] for letter in letters]) == (0, lines)
    given = "\n".join([*out.read_text().splitlines(), *(letter["raw"] for letter in letters)])
    assert (_ROWS[0] in given, _ROWS[1] in given) == (True, True)


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("between", ["\n", "\n\n", " ", ""])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_documents_behind_each_other_are_read_however_they_are_written(
    tmp_path: Path, run: Run, indent: int | None, between: str, mark: str
) -> None:
    source, out = tmp_path / "in.json", tmp_path / "out.jsonl"
    texts = [json.dumps(json.loads(row), indent=indent) for row in _ROWS]
    source.write_text(mark + between.join(texts) + "\n", "utf-8")
    assert run("dedup", "-q", source, "-o", out, "--strict", *SMALL).code == 0
    assert [json.loads(line) for line in out.read_text().splitlines()] == [json.loads(row) for row in _KEPT]
