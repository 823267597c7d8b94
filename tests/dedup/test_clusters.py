"""`dedup --clusters`: one line for each kept row that others were dropped for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.calling import SMALL, Piped, Run, setting
from tests.generated_posts import generate
from tests.row_files import read_lines, write_rows
from twinsieve.pipeline.messages.spelling import to_json

_A, _B = "今天武汉下雨了，大家出门记得带伞。", "完全不同的另外一个句子在这里"


def _expected(dropped: list[Any], ids: dict[int, Any], source: str) -> list[Any]:
    """The clusters that lines of --duplicates make; ids: of rows by position."""
    found: dict[int, list[int]] = {}
    for one in dropped:
        if one["duplicate_of"] is not None:
            found.setdefault(one["duplicate_of"], [one["duplicate_of"]]).append(one["position"])
    return [
        {
            "cluster": leader,
            "id": ids[leader],
            "size": len(rows),
            "rows": rows,
            "ids": [ids[row] for row in rows],
            "sources": [source] * len(rows),
            "lines": rows,
        }
        for leader, rows in sorted(found.items())
    ]


@pytest.mark.parametrize("chunked", [False, True])
def test_clusters_are_what_the_duplicates_say(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch, chunked: bool
) -> None:
    if chunked:
        monkeypatch.setattr("twinsieve.pipeline.files.unpack.BLOCK_BYTES", 1 << 12, raising=False)
        monkeypatch.setattr("twinsieve.pipeline.files.source._BLOCK_BYTES", 1 << 12)
    posts = list(generate(3000, seed=5))
    source, dropped, clusters = write_rows(tmp_path / "in.jsonl", posts), tmp_path / "d", tmp_path / "c"
    files = ("-o", tmp_path / "o", "--duplicates", dropped, "--clusters", clusters)
    ran = run("dedup", "-q", source, *files, *SMALL)
    assert (ran.code, ran.err) == (0, "")
    ids = {at: post["id"] for at, post in enumerate(posts, start=1)}
    expected = _expected(read_lines(dropped), ids, str(source))
    assert len(expected) > 100
    assert read_lines(clusters) == expected
    assert run("dedup", "-q", source, "-o", tmp_path / "o", "--clusters", tmp_path / "e", *SMALL).code == 0
    assert (tmp_path / "e").read_bytes() == clusters.read_bytes()


def test_a_leader_of_an_earlier_run_is_named_by_its_position(tmp_path: Path, run: Run) -> None:
    first = write_rows(tmp_path / "a.jsonl", [{"id": "a1", "text": _A}, {"id": "a2", "text": _A}])
    rows = [{"id": "b1", "text": _B}, {"id": "b2", "text": _A}, {"text": _B}]
    second = write_rows(tmp_path / "b.jsonl", rows)
    state = ("-q", "--state", tmp_path / "state", *SMALL)
    assert run("dedup", first, "-o", tmp_path / "o", *state).code == 0
    assert run("dedup", second, "-o", tmp_path / "p", "--clusters", tmp_path / "c", *state).code == 0
    assert (tmp_path / "c").read_bytes().splitlines() == [
        b'{"cluster":1,"id":null,"size":2,"rows":[1,4],"ids":[null,"b2"],"sources":[null,"%b"],"lines":[null,2]}'
        % bytes(second),
        b'{"cluster":3,"id":"b1","size":2,"rows":[3,5],"ids":["b1",null],"sources":["%b","%b"],"lines":[1,3]}'
        % (bytes(second), bytes(second)),
    ]


def test_rows_without_ids_make_clusters_without(tmp_path: Path, run: Run) -> None:
    source = write_rows(tmp_path / "in.jsonl", [{"text": _A}, {"n": 1}, {"text": _B}, {"text": _A}])
    assert run("dedup", "-q", source, "-o", tmp_path / "o", "--clusters", tmp_path / "c", *SMALL).code == 0
    places = b'"sources":["%b","%b"],"lines":[1,4]' % (bytes(source), bytes(source))
    assert (tmp_path / "c").read_bytes() == b'{"cluster":1,"size":2,"rows":[1,4],' + places + b"}\n"


def test_ids_stand_as_they_came(tmp_path: Path, run: Run) -> None:
    source = tmp_path / "in.jsonl"
    source.write_text(f'{{"id": 1.50, "text": "{_A}"}}\n{{"id": "\\u0061", "text": "{_A}"}}\n', "utf-8")
    assert run("dedup", "-q", source, "-o", tmp_path / "o", "--clusters", tmp_path / "c", *SMALL).code == 0
    assert b'"id":1.50,"size":2,"rows":[1,2],"ids":[1.50,"\\u0061"]' in (tmp_path / "c").read_bytes()


def test_rows_that_the_filter_alone_dropped_are_in_no_cluster(tmp_path: Path, run: Run) -> None:
    posts = [{"text": f"第{n}个句子和别的都不一样{n * 7919}"} for n in range(300)]
    source = write_rows(tmp_path / "in.jsonl", [*posts, posts[0]])
    few = setting("near.window.messages=64", "exact.window.messages=2000", "near.threads=1")
    words = ("-o", tmp_path / "o", "--duplicates", tmp_path / "d", "--clusters", tmp_path / "c")
    assert run("dedup", "-q", source, *words, *few).code == 0
    assert [one["flags"] for one in read_lines(tmp_path / "d")] == [["unconfirmed"]]
    assert (tmp_path / "c").read_bytes() == b""


def test_clusters_of_a_stream_are_written_at_its_end(tmp_path: Path, piped: Piped) -> None:
    rows = b"".join(to_json({"id": n, "text": _A}) + b"\n" for n in range(3))
    ran = piped(["dedup", "-q", "--clusters", tmp_path / "c", *SMALL], rows)
    assert (ran.returncode, ran.stdout) == (0, rows.splitlines(keepends=True)[0])
    places = {"sources": ["stdin"] * 3, "lines": [1, 2, 3]}
    assert read_lines(tmp_path / "c") == [
        {"cluster": 1, "id": 0, "size": 3, "rows": [1, 2, 3], "ids": [0, 1, 2]} | places
    ]


def test_clusters_are_an_output_like_others(tmp_path: Path, run: Run) -> None:
    source = write_rows(tmp_path / "in.jsonl", [{"text": _A}])
    ran = run("dedup", source, "-o", tmp_path / "o", "--clusters", source, *SMALL)
    assert (ran.code, f"--clusters {source}: is also an input" in ran.err) == (2, True)
    ran = run("dedup", source, "-o", tmp_path / "o", "--clusters", tmp_path / "c.csv", *SMALL)
    assert (ran.code, "looks like csv, but holds JSON lines" in ran.err) == (2, True)
