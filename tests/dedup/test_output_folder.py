"""`-o FOLDER/`: an output for each input, under the name that the input has."""

from __future__ import annotations

import gzip
import json
import os
import resource
from pathlib import Path
from typing import Any

import pytest

from tests.calling import SMALL, Piped, Ran, Run
from tests.generated_posts import generate
from tests.row_files import read_lines


def _write(path: Path, posts: list[Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    content = "".join(json.dumps(post, ensure_ascii=False) + "\n" for post in posts).encode()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


def _read(path: Path) -> bytes:
    return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()


def _files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


@pytest.fixture
def posts(tmp_path: Path) -> Path:
    """A folder with four inputs, one of them empty."""
    made = list(generate(900, seed=4))
    for number, name in enumerate(("a.jsonl", "b/a.jsonl.gz", "b/c/d.jsonl")):
        _write(tmp_path / "posts" / name, made[300 * number : 300 * (number + 1)])
    (tmp_path / "posts" / "b" / "e.jsonl").touch()
    return tmp_path / "posts"


@pytest.mark.parametrize("more", [(), ("--mark",), ("--keep", "last")], ids=["plain", "mark", "keep"])
@pytest.mark.parametrize("slash", ["", "/"])
def test_outputs_together_are_the_one_output(
    tmp_path: Path, run: Run, posts: Path, more: Any, slash: str
) -> None:
    one, out = tmp_path / "one.jsonl", tmp_path / "out"
    if not slash:
        out.mkdir()
    assert run("dedup", "-q", posts, "-o", one, *more, *SMALL) == Ran(0, "", "")
    assert run("dedup", "-q", posts, "-o", f"{out}{slash}", *more, *SMALL) == Ran(0, "", "")
    assert _files(out) == ["a.jsonl", "b/a.jsonl.gz", "b/c/d.jsonl", "b/e.jsonl"]
    assert b"".join(_read(out / name) for name in _files(out)) == one.read_bytes()
    assert 0 < len(_read(out / "b/c/d.jsonl")) < len(_read(posts / "b/c/d.jsonl")) or more == ("--mark",)


def test_each_output_has_the_form_of_its_input(tmp_path: Path, run: Run) -> None:
    inputs = {
        "a.csv": b"\xef\xbb\xbfid,text\r\n1,one\r\n",
        "b.csv": b"text,when,id\nTwo,now,2\none,now,3\n",
        "c.csv": b"",
        "d.csv": b"text\n",
    }
    for name, content in inputs.items():
        (tmp_path / "in").mkdir(exist_ok=True)
        (tmp_path / "in" / name).write_bytes(content)
    assert run("dedup", "-q", tmp_path / "in", "-o", f"{tmp_path}/out/", *SMALL) == Ran(0, "", "")
    found = {name: (tmp_path / "out" / name).read_bytes() for name in inputs}
    assert found == inputs | {"b.csv": b"text,when,id\nTwo,now,2\n"}
    (tmp_path / "js").mkdir()
    (tmp_path / "js" / "a.json").write_text('[{"text": "a"}, {"text": "b"}]')
    (tmp_path / "js" / "b.json").write_text('{"text": "a"}\n{"text": "c"}\n')
    assert run("dedup", "-q", tmp_path / "js", "-o", f"{tmp_path}/jo/", *SMALL) == Ran(0, "", "")
    assert json.loads((tmp_path / "jo" / "a.json").read_bytes()) == [{"text": "a"}, {"text": "b"}]
    assert (tmp_path / "jo" / "b.json").read_bytes() == b'{"text": "c"}\n'


def test_duplicates_say_which_file_they_came_from(tmp_path: Path, run: Run) -> None:
    one = _write(tmp_path / "in/one.jsonl", [{"text": "a row of text"}])
    two = _write(tmp_path / "in/two.jsonl", [{"text": "another"}, {"text": "a row of text"}])
    files = ("-o", f"{tmp_path}/out/", "--duplicates", tmp_path / "d")
    assert run("dedup", "-q", tmp_path / "in", *files, *SMALL).code == 0
    (entry,) = read_lines(tmp_path / "d")
    assert (entry["source"], entry["line"]) == (str(two), 2)
    assert (entry["leader_source"], entry["leader_line"]) == (str(one), 1)


def test_a_pattern_and_files_keep_their_names(tmp_path: Path, run: Run, posts: Path) -> None:
    other = _write(tmp_path / "other/x.jsonl", [{"text": "x"}])
    assert run("dedup", "-q", f"{posts}/**/*.jsonl", other, "-o", f"{tmp_path}/out/", *SMALL).code == 0
    assert _files(tmp_path / "out") == ["a.jsonl", "b/c/d.jsonl", "b/e.jsonl", "x.jsonl"]


def test_what_cannot_have_an_output_of_its_own_is_refused(tmp_path: Path, run: Run, posts: Path) -> None:
    out = f"{tmp_path}/out/"
    clash = run("dedup", "-q", posts / "a.jsonl", _write(tmp_path / "x/a.jsonl", []), "-o", out, *SMALL)
    assert (clash.code, "would both be" in clash.err) == (2, True)
    twice = run("dedup", "-q", posts / "a.jsonl", posts / "a.jsonl", "-o", out, *SMALL)
    assert (twice.code, "would both be" in twice.err) == (2, True)
    stdin = run("dedup", "-q", "-", "-o", out, *SMALL)
    assert (stdin.code, "stdin names no file in it" in stdin.err) == (2, True)
    for given in (posts, f"{posts}/*.jsonl"):
        same = run("dedup", "-q", given, "-o", posts, *SMALL)
        assert (same.code, "is also an input" in same.err) == (2, True)
    report = run("dedup", "-q", posts, "-o", out, "--duplicates", f"{out}a.jsonl", *SMALL)
    assert (report.code, "is also --duplicates" in report.err) == (2, True)
    (tmp_path / "file").touch()
    blocked = run("dedup", "-q", posts, "-o", f"{tmp_path}/file/", *SMALL)
    assert (blocked.code, "the folder cannot be made" in blocked.err) == (1, True)
    (tmp_path / "dir" / "a.jsonl").mkdir(parents=True)
    blocked = run("dedup", "-q", posts, "-o", tmp_path / "dir", *SMALL)
    assert (blocked.code, "a.jsonl: cannot be written: is a directory" in blocked.err) == (1, True)
    assert not (tmp_path / "out").exists()
    assert _files(tmp_path / "dir") == []


def test_a_run_that_fails_leaves_no_file_and_no_folder(tmp_path: Path, run: Run, posts: Path) -> None:
    (posts / "z.jsonl.gz").write_bytes(gzip.compress(b'{"text": "z"}\n' * 5000)[:40])
    assert run("dedup", "-q", posts, "-o", f"{tmp_path}/out/", *SMALL).code == 1
    assert not (tmp_path / "out").exists()
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "a.jsonl").write_text("what was there before")
    assert run("dedup", "-q", posts, "-o", tmp_path / "old", *SMALL).code == 1
    assert [path.name for path in (tmp_path / "old").iterdir()] == ["a.jsonl"]
    assert (tmp_path / "old" / "a.jsonl").read_text() == "what was there before"


def test_a_second_run_does_not_read_the_outputs_of_the_first(tmp_path: Path, run: Run, posts: Path) -> None:
    for _ in range(2):
        assert run("dedup", "-q", posts, "-o", f"{posts}/out/", *SMALL) == Ran(0, "", "")
    assert _files(posts / "out") == ["a.jsonl", "b/a.jsonl.gz", "b/c/d.jsonl", "b/e.jsonl"]


def test_an_output_folder_may_hold_the_inputs(tmp_path: Path, run: Run, posts: Path) -> None:
    assert run("dedup", "-q", posts, "-o", tmp_path, *SMALL) == Ran(0, "", "")
    assert (tmp_path / "b/a.jsonl.gz").exists()


def test_a_repeated_run_on_a_state_replaces_no_output(tmp_path: Path, run: Run, posts: Path) -> None:
    call = ("dedup", "-q", posts, "-o", f"{tmp_path}/out/", "--state", tmp_path / "state", *SMALL)
    assert run(*call).code == 0
    before = (tmp_path / "out/a.jsonl").read_bytes()
    ran = run(*call)
    assert (ran.code, "all its rows would be dropped" in ran.err) == (2, True)
    assert (tmp_path / "out/a.jsonl").read_bytes() == before


def test_more_outputs_than_files_may_be_open(tmp_path: Path, piped: Piped) -> None:
    for number in range(150):
        _write(tmp_path / f"in/{number}.jsonl", [{"text": f"row {number} of many"}])

    def few() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))

    ran = piped(["dedup", "-q", tmp_path / "in", "-o", f"{tmp_path}/out/", *SMALL], preexec_fn=few)
    assert (ran.returncode, ran.stderr) == (0, b"")
    assert len(os.listdir(tmp_path / "out")) == 150


def test_an_input_named_twice_is_said(tmp_path: Path, run: Run) -> None:
    source = _write(tmp_path / "a.jsonl", [{"text": "a row"}])
    ran = run("dedup", "-q", source, source, "-o", tmp_path / "out", *SMALL)
    assert (ran.code, ran.err) == (0, f"{source}: is named 2 times; its rows are read as often\n")
