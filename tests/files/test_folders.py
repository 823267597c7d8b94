"""Folders and patterns as inputs stand for files in the order of their names."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.calling import SMALL, Run


def _post(path: Path, number: int) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(json.dumps({"id": number, "text": f"{number} " * 9}).encode() + b"\n")
    return path


def _ids(out: str) -> list[int]:
    return [json.loads(line)["id"] for line in out.splitlines()]


def _tree(root: Path) -> Path:
    inputs = ("b.jsonl", "a.jsonl", "a/z.jsonl", "sub/c.ndjson")
    others = (".hidden.jsonl", ".git/d.jsonl", "notes.md", "a.jsonl.bak")
    for number, name in enumerate(inputs + others):
        _post(root / name, number)
    return root


def test_a_folder_stands_for_its_files_in_name_order(tmp_path: Path, run: Run) -> None:
    folder = _tree(tmp_path / "posts")
    ran = run("dedup", folder, *SMALL)
    assert (ran.code, _ids(ran.out)) == (0, [2, 1, 0, 3])
    assert ran.err.startswith(f"{folder}: 4 files\n")
    assert run("dedup", "-q", folder, *SMALL).err == ""


def test_outputs_in_the_folder_are_no_inputs(tmp_path: Path, run: Run) -> None:
    folder = _tree(tmp_path / "posts")
    out, dropped, state = folder / "unique.jsonl", folder / "d.jsonl", folder / "state"
    for _ in range(2):
        ran = run("dedup", "-q", folder, "-o", out, "--duplicates", dropped, *SMALL)
        assert (ran.code, _ids(out.read_text())) == (0, [2, 1, 0, 3])
    ran = run("dedup", "-q", folder, "-o", out, "--duplicates", dropped, "--state", state, *SMALL)
    assert (ran.code, _ids(out.read_text())) == (0, [2, 1, 0, 3])


@pytest.mark.parametrize(
    ("pattern", "ids"), [("*.jsonl", [1, 0]), ("**/*.jsonl", [2, 1, 0]), ("[b]*", [0]), ("?.jsonl", [1, 0])]
)
def test_a_quoted_pattern_stands_for_what_it_matches(
    tmp_path: Path, run: Run, pattern: str, ids: list[int]
) -> None:
    folder = _tree(tmp_path / "posts")
    ran = run("dedup", f"{folder}/{pattern}", *SMALL)
    assert (ran.code, _ids(ran.out)) == (0, ids)
    assert ran.err.startswith(f"{folder}/{pattern}: {len(ids)} file")


def test_a_file_whose_name_looks_like_a_pattern_is_that_file(tmp_path: Path, run: Run) -> None:
    ran = run("dedup", "-q", _post(tmp_path / "p[1].jsonl", 7), *SMALL)
    assert (ran.code, _ids(ran.out), ran.err) == (0, [7], "")


def test_what_stands_for_nothing_is_refused(tmp_path: Path, run: Run) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "a.md").touch()
    ran = run("dedup", "-q", tmp_path / "empty", *SMALL)
    assert ran.code == 2
    assert ran.err.startswith(
        f"twinsieve: {tmp_path / 'empty'}: is a folder without a file that ends in .jsonl, "
    )
    ran = run("dedup", "-q", f"{tmp_path}/*.csv", *SMALL)
    assert (ran.code, ran.err) == (2, f"twinsieve: {tmp_path}/*.csv: matches no file\n")


def test_json_and_json_lines_are_read_together(tmp_path: Path, run: Run) -> None:
    _post(tmp_path / "a.jsonl", 1)
    (tmp_path / "b.json").write_text(json.dumps([{"id": 2, "text": "another one of them"}]))
    ran = run("dedup", "-q", tmp_path, *SMALL)
    assert (ran.code, _ids(ran.out)) == (0, [1, 2])
