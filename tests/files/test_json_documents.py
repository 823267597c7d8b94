"""JSON arrays and documents that span lines: rows are cut where they end, whatever stands in them."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.calling import SMALL, Run
from tests.row_files import read_lines
from twinsieve.pipeline.files import FileError
from twinsieve.pipeline.files.formats.json_documents import holds_lines, one_line, split_documents

_POSTS = [
    {"id": 1, "text": '今天武汉下雨了，\n大家 "出门" 记得 [带伞]'},
    {"id": 2, "text": "}{ quite another one"},
]
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.sampled_from('a"\\[]{},\n你 '), max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


def _rows(content: bytes, cuts: list[int], limit: int = 1000) -> list[bytes | None]:
    edges = [0, *sorted(min(cut, len(content)) for cut in cuts), len(content)]
    blocks = [content[a:b] for a, b in pairwise(edges)]
    return [row for rows in split_documents(iter(blocks), limit, "f") for row in rows.rows]


@given(
    st.lists(_VALUES, max_size=6),
    st.sampled_from([None, 0, 2]),
    st.booleans(),
    st.lists(st.integers(0, 400), max_size=6),
)
def test_elements_of_an_array_are_those_that_json_reads(
    values: list[Any], indent: int | None, ascii_alone: bool, cuts: list[int]
) -> None:
    content = json.dumps(values, indent=indent, ensure_ascii=ascii_alone).encode()
    rows = _rows(content, cuts)
    assert [json.loads(row or b"?") for row in rows] == values
    assert [json.loads(one_line(row or b"?")) for row in rows] == values
    assert all(b"\n" not in one_line(row or b"?") for row in rows)


@given(
    st.lists(_VALUES.filter(lambda value: not isinstance(value, list)), max_size=5),
    st.lists(st.integers(0, 400), max_size=6),
)
def test_documents_behind_each_other_are_rows(values: list[Any], cuts: list[int]) -> None:
    content = b"\n".join(json.dumps(value, indent=2).encode() for value in values) + b"\n"
    assert [json.loads(row or b"?") for row in _rows(content, cuts)] == values


def test_rows_know_their_lines_and_their_size() -> None:
    content = b'[\n{"a":\n 1}, {"b": 2},\n\n"' + b"x" * 50 + b'\\"", 4\n]\n'
    found = [
        (row, batch.line + sum((batch.lines_of or [])[:at]), batch.heads.get(at))
        for batch in split_documents(iter([content]), 40, "f")
        for at, row in enumerate(batch.rows)
    ]
    large = b'"' + b"x" * 50 + b'\\""'
    assert found == [
        (b'{"a":\n 1}', 2, None),
        (b'{"b": 2}', 3, None),
        (None, 5, (large, 54)),
        (b"4", 5, None),
    ]
    (batch,) = list(split_documents(iter([content[:40], content[40:]]), 40, "f"))[1:]
    assert batch.heads == {0: (large, 54)}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (
            b'[{"a": 1} {"a": 2}]',
            r"f:1: has '\{' where a comma or the end of the array is due; mend it there",
        ),
        (b'[\n{"a": 1},\n]', r"f:3: has '\]' where a document is due; mend it there"),
        (
            b'[\n{"a": 1}\n',
            r"f: the array that begins in line 1 has no end; fetch the file again, or mend it",
        ),
        (
            b'[\n{"a": 1},\n{"b',
            r"f: the document that begins in line 3 has no end; fetch the file again, or mend it",
        ),
        (b'{"a": 1}]', r"f:1: has '\]' where a document is due; mend it there"),
        (
            b'{\n"a": "',
            r"f: the document that begins in line 1 has no end; .* if it holds JSON lines, add --format jsonl",
        ),
    ],
)
def test_an_array_that_is_none_says_in_which_line(content: bytes, said: str) -> None:
    with pytest.raises(FileError, match=said):
        _rows(content, [])


def test_a_large_array_is_not_held() -> None:
    def blocks() -> Iterator[bytes]:
        yield b"["
        for number in range(64):
            row = b'{"id": %d, "text": "' % number + b"x" * (1 << 19) + b'"}'
            yield row + b"," if number < 63 else row + b"]"

    tracemalloc.start()
    found = sum(len(rows.rows) for rows in split_documents(blocks(), 1 << 20, "f"))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found == 64
    assert peak < 8 << 20


@pytest.mark.parametrize(
    ("head", "lines"),
    [
        (b'{"a": 1}\n{"a": 2}\n', True),
        (b'{"a": 1}', True),
        (b"", True),
        (b"[1]\n[2]\n", False),
        (b'\n [{"a": 1}]', False),
        (b'{\n "a": 1\n}', False),
        (b'{"a": {\n "b": 1}}', False),
    ],
)
def test_lines_and_documents_are_told_apart_by_the_first_line(head: bytes, lines: bool) -> None:
    assert holds_lines(head) == lines


def _array(path: Path, indent: int | None) -> Path:
    path.write_text(json.dumps([*_POSTS, _POSTS[0]], ensure_ascii=False, indent=indent), "utf-8")
    return path


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize(("name", "said"), [("p.json", []), ("p.data", ["--format", "json"])])
def test_an_array_comes_out_as_json_lines(
    tmp_path: Path, run: Run, indent: int | None, name: str, said: list[str]
) -> None:
    source, dropped = _array(tmp_path / name, indent), tmp_path / "d.jsonl"
    ran = run("dedup", "-q", source, "-o", tmp_path / "out.jsonl", "--duplicates", dropped, *said, *SMALL)
    assert (ran.code, ran.err) == (0, "")
    assert read_lines(tmp_path / "out.jsonl") == _POSTS
    assert json.loads(dropped.read_bytes())["position"] == 3
    assert run("dedup", "-q", source, *said, *SMALL).out == (tmp_path / "out.jsonl").read_text("utf-8")


@pytest.mark.parametrize("indent", [None, 2])
def test_an_array_comes_out_as_an_array_where_the_name_says_json(
    tmp_path: Path, run: Run, indent: int | None
) -> None:
    source = _array(tmp_path / "p.json", indent)
    assert run("dedup", "-q", source, "-o", tmp_path / "out.json", *SMALL).code == 0
    assert json.loads((tmp_path / "out.json").read_bytes()) == _POSTS
    again = tmp_path / "again.json"
    assert run("dedup", "-q", tmp_path / "out.json", "-o", again, *SMALL).code == 0
    assert again.read_bytes() == (tmp_path / "out.json").read_bytes()


@pytest.mark.parametrize("indent", [1, 2, 4, "\t"])
def test_an_indented_array_without_duplicates_comes_out_as_it_was(
    tmp_path: Path, run: Run, indent: int | str
) -> None:
    source, out = tmp_path / "p.json", tmp_path / "out.json"
    source.write_text(json.dumps(_POSTS, ensure_ascii=False, indent=indent) + "\n", "utf-8")
    assert run("dedup", "-q", source, "-o", out, *SMALL).code == 0
    assert out.read_text("utf-8") == source.read_text("utf-8")


@pytest.mark.parametrize("name", ["o.json", "o.jsonl"])
def test_lines_behind_an_array_are_documents_of_their_own(tmp_path: Path, run: Run, name: str) -> None:
    source, lines, out = _array(tmp_path / "p.json", 2), tmp_path / "q.json", tmp_path / name
    others = [{"text": f"另一条微博{number}"} for number in range(3)]
    lines.write_text("".join(json.dumps(each) + "\n" for each in others), "utf-8")
    assert run("dedup", "-q", source, lines, "-o", out, *SMALL).code == 0
    written = json.loads(out.read_bytes()) if name == "o.json" else read_lines(out)
    assert written == [*_POSTS, *others]


def test_documents_behind_json_lines_become_lines(tmp_path: Path, run: Run) -> None:
    lines, source, out = tmp_path / "a.json", _array(tmp_path / "b.json", 2), tmp_path / "out.json"
    lines.write_bytes(b'{"text": "the first of all"}\r\n')
    assert run("dedup", "-q", lines, source, "-o", out, *SMALL).code == 0
    assert out.read_bytes().startswith(lines.read_bytes())
    assert read_lines(out)[1:] == _POSTS


def test_an_empty_array_comes_out_empty(tmp_path: Path, run: Run) -> None:
    (tmp_path / "p.json").write_bytes(b"[ ]")
    for name, content in (("o.json", []), ("o.jsonl", None)):
        assert run("dedup", "-q", tmp_path / "p.json", "-o", tmp_path / name, *SMALL).code == 0
        assert (json.loads((tmp_path / name).read_bytes() or b"null")) == content


def test_json_lines_under_the_name_json_stay_lines_byte_for_byte(tmp_path: Path, run: Run) -> None:
    content = b'{"text": "a",  "id": 1}\r\n{broken\n{"text": "b"}'
    (tmp_path / "p.json").write_bytes(content)
    allowed = ("--max-unreadable", "0.5", *SMALL)
    ran = run("dedup", "-q", tmp_path / "p.json", "-o", tmp_path / "o.json", *allowed)
    assert (ran.code, "1 of 3 rows (1 invalid_json)" in ran.err) == (0, True)
    assert (tmp_path / "o.json").read_bytes() == content.replace(b"{broken\n", b"")


def test_an_element_that_cannot_be_read_is_counted_and_the_others_are_kept(tmp_path: Path, run: Run) -> None:
    source, dead = tmp_path / "p.json", tmp_path / "dead.jsonl"
    source.write_bytes(b'[\n{"text": "a"},\n{"text": nothing},\n7,\n{"text": "b"}\n]')
    ran = run("dedup", "-q", source, "-o", tmp_path / "o.jsonl", "--dead-letter", dead, *SMALL)
    assert (ran.code, (tmp_path / "o.jsonl").read_bytes()) == (0, b'{"text": "a"}\n{"text": "b"}\n')
    assert [(entry["position"], entry["line"], entry["reason"]) for entry in read_lines(dead)] == [
        (2, 3, "invalid_json"),
        (3, 4, "not_an_object"),
    ]


def test_an_element_of_5_mb_is_a_dead_letter_and_the_array_goes_on(tmp_path: Path, run: Run) -> None:
    source, dead = tmp_path / "p.json", tmp_path / "dead.jsonl"
    large = {"text": "large", "raw": ['a "word" and a [bracket]\n'] * 180_000}
    source.write_text(json.dumps([_POSTS[0], large, _POSTS[1]], indent=2), "utf-8")
    ran = run("dedup", "-q", source, "-o", tmp_path / "o.jsonl", "--dead-letter", dead, *SMALL)
    assert (ran.code, "1 too_large" in ran.err) == (0, True)
    assert read_lines(tmp_path / "o.jsonl") == _POSTS
    (entry,) = read_lines(dead)
    assert (entry["position"], entry["line"], entry["reason"]) == (2, 6, "too_large")
    assert (entry["bytes"] > 5_000_000, len(entry["raw"])) == (True, 256)


def test_a_cut_off_array_puts_nothing_in_place(tmp_path: Path, run: Run) -> None:
    (tmp_path / "p.json").write_bytes(b'[\n{"text": "a"},\n{"text": "b"')
    ran = run("dedup", "-q", tmp_path / "p.json", "-o", tmp_path / "o.jsonl", *SMALL)
    assert (ran.code, (tmp_path / "o.jsonl").exists()) == (1, False)
    assert "the document that begins in line 3 has no end" in ran.err


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b'[{"text": "a"}]', "if it is a JSON array, add --format json"),
        (b'[\n{"text": "a"}\n]', "if it is a JSON array, add --format json"),
        (b'{\n "text": "a"\n}', "if its documents span lines, add --format json"),
        (b"just words", "if it does not hold JSON lines, name the format with --format"),
    ],
)
def test_documents_read_as_json_lines_name_the_format(
    tmp_path: Path, run: Run, content: bytes, said: str
) -> None:
    (tmp_path / "p.jsonl").write_bytes(content)
    ran = run("dedup", "-q", tmp_path / "p.jsonl", *SMALL)
    assert ran.code == 1
    assert said in ran.err
