"""`dedup --keep last`, `longest` and `none`: another row of each cluster comes out, or none, in its place."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet as pq

from tests.calling import SMALL, Piped, Run
from tests.generated_posts import generate
from tests.row_files import read_lines, write_rows
from twinsieve.pipeline.dedup.second_pass import SecondPass
from twinsieve.pipeline.messages.spelling import to_json

_A, _B = "今天武汉下雨了，大家出门记得带伞，注意安全，早点回家", "完全不同的另外一个句子在这里"


def _expected(posts: list[dict[str, Any]], dropped: list[Any], keep: str) -> dict[int, int | None]:
    """For each unique row the one that comes out, by positions; None if none does."""
    gone = {one["position"] for one in dropped}
    chosen: dict[int, int | None] = {at: at for at in range(1, len(posts) + 1) if at not in gone}
    for one in dropped:
        leader, position = one["duplicate_of"], one["position"]
        if leader is None:
            continue
        kept = chosen[leader]
        if keep == "none":
            chosen[leader] = None
        elif keep == "last" or (kept and len(posts[position - 1]["text"]) > len(posts[kept - 1]["text"])):
            chosen[leader] = position
    return chosen


@pytest.mark.parametrize("ending", [".jsonl", ".csv", ".parquet"])
@pytest.mark.parametrize("keep", ["last", "longest", "none"])
def test_another_row_of_each_cluster_comes_out_in_its_place(
    tmp_path: Path, run: Run, ending: str, keep: str
) -> None:
    posts = [{key: post[key] for key in ("id", "text")} for post in generate(1500, seed=5)]
    names = [write_rows(tmp_path / f"{at}{ending}", posts[at : at + 500]) for at in range(0, 1500, 500)]
    first, out = tmp_path / f"first{ending}", tmp_path / f"out{ending}"
    assert run("dedup", "-q", *names, "-o", first, "--duplicates", tmp_path / "d", *SMALL).code == 0
    ran = run("dedup", "-q", *names, "-o", out, "--keep", keep, "--clusters", tmp_path / "c", *SMALL)
    assert (ran.code, ran.err) == (0, "")
    chosen = _expected(posts, read_lines(tmp_path / "d"), keep)
    assert sum(leader != kept for leader, kept in chosen.items()) > 50
    come_out = sorted(filter(None, chosen.values()))
    expected = write_rows(tmp_path / f"expected{ending}", (posts[at - 1] for at in come_out))
    if ending == ".parquet":
        assert pq.read_table(out).equals(pq.read_table(expected))
    else:
        assert out.read_bytes() == expected.read_bytes()
    clusters = read_lines(tmp_path / "c")
    assert len(clusters) > 50
    assert {one["cluster"]: one["kept"] for one in clusters} == {
        one["cluster"]: chosen[one["cluster"]] for one in clusters
    }


def test_first_is_what_a_run_without_keep_writes(tmp_path: Path, run: Run) -> None:
    source = write_rows(tmp_path / "in.jsonl", generate(200, seed=1))
    for name, words in (("a", ()), ("b", ("--keep", "first", "--clusters", tmp_path / "c"))):
        assert run("dedup", "-q", source, "-o", tmp_path / name, *words, *SMALL).code == 0
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert "kept" not in read_lines(tmp_path / "c")[0]


@pytest.mark.parametrize(("keep", "kept"), [("last", [3, 5, 7]), ("longest", [2, 3, 7]), ("none", [3, 7])])
def test_ties_and_rows_that_are_no_messages(tmp_path: Path, run: Run, keep: str, kept: list[int]) -> None:
    texts = [_A, f"{_A}！！", _B, 5, f"{_A}。。", "", f"还有一句谁都没有见过的话{'x' * 9}"]
    rows = [b"" if text == "" else to_json({"n": at, "text": text}) for at, text in enumerate(texts, start=1)]
    source, out, dead = tmp_path / "in.jsonl", tmp_path / "out.jsonl", tmp_path / "dead"
    source.write_bytes(b"\n".join(rows))
    ran = run("dedup", "-q", source, "-o", out, "--keep", keep, "--dead-letter", dead, *SMALL)
    assert ran.code == 0
    assert out.read_bytes() == b"\n".join(rows[at - 1] for at in kept)
    assert [one["position"] for one in read_lines(dead)] == [4]


def test_rows_of_leaders_of_an_earlier_run_stay_dropped(tmp_path: Path, run: Run) -> None:
    first = write_rows(tmp_path / "a.jsonl", [{"id": 1, "text": _A}])
    texts = ((2, _B), (3, f"{_A}！"), (4, f"{_B}！"))
    second = write_rows(tmp_path / "b.jsonl", ({"id": n, "text": text} for n, text in texts))
    state = ("-q", "--state", tmp_path / "state", *SMALL)
    assert run("dedup", first, "-o", tmp_path / "o.jsonl", *state).code == 0
    words = ("--keep", "last", "--clusters", tmp_path / "c")
    assert run("dedup", second, "-o", tmp_path / "p.jsonl", *words, *state).code == 0
    assert [row["id"] for row in read_lines(tmp_path / "p.jsonl")] == [4]
    assert [(one["cluster"], one["kept"]) for one in read_lines(tmp_path / "c")] == [(1, 1), (2, 4)]


def test_none_writes_of_two_inputs_what_neither_has_in_common_with_the_other(
    tmp_path: Path, run: Run
) -> None:
    alone = [f"{_B}，第{name}天的天气非常好{name}" for name in "甲乙丙"]
    write_rows(
        tmp_path / "a.jsonl", [{"n": 1, "text": _A}, {"n": 2, "text": alone[0]}, {"n": 3, "text": None}]
    )
    write_rows(
        tmp_path / "b.jsonl",
        [
            {"n": 4, "text": "Ein ganz anderer Satz"},
            {"n": 5, "text": f"{_A}！"},
            {"n": 6, "text": f"{_A}！！"},
        ],
    )
    inputs = (tmp_path / "a.jsonl", tmp_path / "b.jsonl")
    words = ("--keep", "none", "--clusters", tmp_path / "c", "--stats", tmp_path / "stats", *SMALL)
    ran = run("dedup", *inputs, "-o", f"{tmp_path}/out/", *words)
    assert (ran.code, "not written" in ran.err) == (0, True)
    assert [row["n"] for row in read_lines(tmp_path / "out" / "a.jsonl")] == [2, 3]
    assert [row["n"] for row in read_lines(tmp_path / "out" / "b.jsonl")] == [4]
    assert [(one["cluster"], one["kept"], one["rows"]) for one in read_lines(tmp_path / "c")] == [
        (1, None, [1, 5, 6])
    ]
    told = json.loads((tmp_path / "stats").read_bytes())
    dropped = told["exact"] + told["near"]
    assert (told["left_out"], dropped, told["unique"]) == (1, 2, 3), "a leader is left out once"


def test_none_writes_no_row_of_a_cluster_of_an_earlier_run(tmp_path: Path, run: Run) -> None:
    first = write_rows(tmp_path / "a.jsonl", [{"id": 1, "text": _A}])
    second = write_rows(tmp_path / "b.jsonl", [{"id": 2, "text": f"{_A}！"}, {"id": 3, "text": _B}])
    state = ("-q", "--state", tmp_path / "state", "--keep", "none", *SMALL)
    assert run("dedup", first, "-o", tmp_path / "o.jsonl", *state).code == 0
    words = ("--clusters", tmp_path / "c", "--stats", tmp_path / "stats")
    assert run("dedup", second, "-o", tmp_path / "p.jsonl", *words, *state).code == 0
    assert [row["id"] for row in read_lines(tmp_path / "o.jsonl")] == [1]
    assert [row["id"] for row in read_lines(tmp_path / "p.jsonl")] == [3]
    assert [(one["cluster"], one["kept"]) for one in read_lines(tmp_path / "c")] == [(1, None)]
    assert json.loads((tmp_path / "stats").read_bytes())["left_out"] == 0


@pytest.mark.parametrize("output", ["out.json", "out.jsonl"])
def test_arrays_and_packed_files_are_read_twice(tmp_path: Path, run: Run, output: str) -> None:
    posts = [{"n": 1, "text": _A}, {"n": 2, "text": _B}, {"n": 3, "text": _A}]
    source, out = tmp_path / "in.json.gz", tmp_path / output
    source.write_bytes(gzip.compress(json.dumps(posts, indent=1).encode()))
    assert run("dedup", "-q", source, "-o", out, "--keep", "last", *SMALL).code == 0
    found = json.loads(out.read_bytes()) if output == "out.json" else read_lines(out)
    assert found == posts[1:]


def test_another_encoding_is_kept(tmp_path: Path, run: Run) -> None:
    source, out = tmp_path / "in.csv", tmp_path / "out.csv"
    rows = ["id,text", f"1,{_A}", f"2,{_B}", f"3,{_A}"]
    source.write_bytes("\r\n".join(rows).encode("utf-16"))
    assert run("dedup", "-q", source, "-o", out, "--keep", "last", "--encoding", "utf-16", *SMALL).code == 0
    assert out.read_bytes() == "\r\n".join([rows[0], *rows[2:]]).encode("utf-16")


@pytest.mark.parametrize("keep", ["last", "longest", "none"])
@pytest.mark.parametrize("flag", ["--mark", "--duplicates", "--examples"])
def test_what_names_the_first_row_is_refused_beside_it(
    tmp_path: Path, run: Run, flag: str, keep: str
) -> None:
    source = write_rows(tmp_path / "in.jsonl", [{"text": _A}])
    words = {"--mark": (), "--duplicates": (tmp_path / "d",), "--examples": (3,)}[flag]
    ran = run("dedup", source, "-o", tmp_path / "o.jsonl", "--keep", keep, flag, *words, *SMALL)
    facts = (f"--keep {keep}", flag, "--clusters")
    assert (ran.code, [fact for fact in facts if fact not in ran.err]) == (2, [])


def test_streams_cannot_be_read_twice(tmp_path: Path, run: Run, piped: Piped) -> None:
    ran = piped(["dedup", "-q", "--keep", "longest", *SMALL], b'{"text": "a"}\n')
    said = b"--keep longest: reads its inputs twice, stdin only once; save it as a file first"
    assert (ran.returncode, ran.stdout, ran.stderr) == (2, b"", b"twinsieve: " + said + b"\n")
    os.mkfifo(tmp_path / "pipe")
    ran = run("dedup", tmp_path / "pipe", "--keep", "last", *SMALL)
    assert (ran.code, f"twice, {tmp_path / 'pipe'} only once" in ran.err) == (2, True)


def _longer(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b'{"text": "one more"}\n')


def _touched(path: Path) -> None:
    os.utime(path, ns=(0, 0))


def _other_rows(path: Path, *, fewer: bool = False) -> None:
    """As many bytes, and the time that it had."""
    known = path.stat()
    content = path.read_bytes()
    path.write_bytes(content[:-1].replace(b"\n", b" ", 1) + b"\n" if fewer else b"\n\n" + content[2:])
    os.utime(path, ns=(known.st_atime_ns, known.st_mtime_ns))


@pytest.mark.parametrize(
    "change", [_longer, _touched, _other_rows, lambda path: _other_rows(path, fewer=True)]
)
def test_a_file_that_changed_between_the_passes_is_an_error(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch, change: Callable[[Path], None]
) -> None:
    rows = [{"n": n, "text": _A + _B * n} for n in range(9)]
    names = [write_rows(tmp_path / f"{name}.jsonl", rows) for name in "ab"]
    end = SecondPass.end

    def changed_before(self: SecondPass) -> None:
        change(names[0])
        end(self)

    monkeypatch.setattr(SecondPass, "end", changed_before)
    files = ("-o", tmp_path / "out.jsonl", "--clusters", tmp_path / "c", "--state", tmp_path / "state")
    ran = run("dedup", "-q", *names, "--keep", "last", *files, *SMALL)
    said = f"{names[0]}: was changed while it was read, and --keep reads it twice; run again"
    assert (ran.code, ran.err) == (1, f"twinsieve: {said}\n")
    assert not [path for path in tmp_path.iterdir() if path.name in ("out.jsonl", "c", "state")]
