"""What is said of rows that are similar to a kept one and kept all the same, and where both stand."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from pyarrow import parquet as pq
from rapidfuzz.distance import LCSseq

from tests.calling import SMALL, Run, setting
from tests.generated_posts import generate
from tests.row_files import read_lines, write_rows
from twinsieve import Sieve

_NINE = "The bridge over the river is closed until Friday at 9, take the ferry"
_ELEVEN = _NINE.replace("9", "11")
_LONG = "".join(
    f"sentence {chr(97 + n // 26)}{chr(97 + n % 26)} of a long story goes on. " for n in range(40)
)


def _posts(tmp_path: Path) -> list[Path]:
    """Two inputs: the second has a row that is kept apart from a row of the first."""
    return [
        write_rows(tmp_path / "a.jsonl", [{"id": "α", "text": _NINE}, {"text": "something else"}]),
        write_rows(tmp_path / "b.jsonl", [{"id": 1.5, "text": _ELEVEN}, {"id": 4, "text": _ELEVEN + "!"}]),
    ]


def test_pairs_kept_apart_are_written_with_both_rows(tmp_path: Path, run: Run) -> None:
    one, two = _posts(tmp_path)
    out, pairs = tmp_path / "out", tmp_path / "apart"
    assert run("dedup", "-q", one, two, "-o", out, "--kept-apart", pairs, *SMALL).code == 0
    bodies = [text.replace(" ", "").replace(",", "").lower() for text in (_NINE, _ELEVEN)]
    assert read_lines(pairs) == [
        {
            "position": 3, "id": 1.5, "source": str(two), "line": 1,
            "apart_from": 1, "apart_from_id": "α", "apart_from_source": str(one), "apart_from_line": 1,
            "reason": "number", "says": "11", "apart_from_says": "9",
            "similarity": 2 * LCSseq.similarity(*bodies) * 10_000 // len("".join(bodies)) / 10_000,
            "text": _ELEVEN, "apart_from_text": _NINE,
        }
    ]  # fmt: skip


@pytest.mark.parametrize("method", ["text", "hamming"])
def test_they_are_those_that_the_sieve_keeps_apart(tmp_path: Path, run: Run, method: str) -> None:
    posts = list(generate(2500, seed=9))
    source, pairs = write_rows(tmp_path / "in.jsonl", posts), tmp_path / "apart"
    said = (*SMALL, *setting(f"near.method={method}", "near.same_id=pass"))
    assert run("dedup", "-q", source, "-o", tmp_path / "o", "--kept-apart", pairs, *said).code == 0
    settings = {"near": {"method": method, "same_id": "pass", "window": {"messages": 2000}, "threads": 1}}
    verdicts = Sieve(settings=settings | {"exact": {"window": {"messages": 2000}}}).judge(
        [post["text"] for post in posts], ids=[post["id"] for post in posts]
    )
    expected = [
        (one.position + 1, one.reason, None if one.apart_from is None else one.apart_from + 1)
        for one in verdicts
        if one.reason is not None
    ]
    found = read_lines(pairs)
    assert [(one["position"], one["reason"], one["apart_from"]) for one in found] == expected
    assert all(one["text"] == posts[one["position"] - 1]["text"] for one in found)
    assert all(one["apart_from_text"] == posts[one["apart_from"] - 1]["text"] for one in found)
    if method == "text":
        assert len(found) > 20
        assert all(one["similarity"] >= 0.85 for one in found)
    else:
        assert all(one["distance"] <= 3 for one in found)


def test_marks_say_why_a_row_was_kept_apart_and_where_leaders_stand(tmp_path: Path, run: Run) -> None:
    one, two = _posts(tmp_path)
    assert run("dedup", "-q", one, two, "-o", tmp_path / "out", "--mark", *SMALL).code == 0
    first, _, apart, dropped = (row["twinsieve"] for row in read_lines(tmp_path / "out"))
    assert (first["source"], first["line"], first["reason"]) == (str(one), 1, None)
    assert {name: apart[name] for name in ("verdict", "reason", "apart_from", "apart_from_id")} == {
        "verdict": "unique", "reason": "number", "apart_from": 1, "apart_from_id": "α",
    }  # fmt: skip
    assert (apart["says"], apart["apart_from_says"]) == ("11", "9")
    assert (apart["leader"], apart["cluster"]) == (None, 3)
    assert (dropped["leader"], dropped["leader_id"]) == (3, 1.5)
    assert (dropped["leader_source"], dropped["leader_line"]) == (str(two), 1)
    assert (dropped["source"], dropped["line"], dropped["flags"]) == (str(two), 2, [])


def test_columns_and_structs_say_the_same(tmp_path: Path, run: Run) -> None:
    rows = [{"id": 'a,"b"', "text": _NINE}, {"id": "c", "text": _NINE}, {"id": "d", "text": _ELEVEN}]
    for name in ("in,1.csv", "in.parquet"):
        source, out = write_rows(tmp_path / name, rows), tmp_path / f"out{Path(name).suffix}"
        assert run("dedup", "-q", source, "-o", out, "--mark", *SMALL).code == 0
    with (tmp_path / "out.csv").open(encoding="utf-8", newline="") as stream:
        columns = [
            {field.removeprefix("twinsieve_"): row[field] for field in row if field.startswith("twinsieve")}
            for row in csv.DictReader(stream, strict=True)
        ]
    structs = pq.read_table(tmp_path / "out.parquet")["twinsieve"].to_pylist()
    assert list(columns[0]) == list(structs[0])
    for columns_, struct in zip(columns, structs, strict=True):
        for field in set(struct) - {"line", "source", "flags", "leader_source", "leader_line"}:
            assert columns_[field] == ("" if struct[field] is None else str(struct[field]))
    assert (columns[1]["leader_id"], columns[1]["leader_source"]) == ('a,"b"', str(tmp_path / "in,1.csv"))
    assert (columns[2]["apart_from_id"], columns[2]["reason"]) == ('a,"b"', "number")


def test_marks_carry_flags_and_the_ids_of_leaders_of_earlier_runs(tmp_path: Path, run: Run) -> None:
    one = write_rows(tmp_path / "a.jsonl", [{"id": 1, "text": _LONG}])
    two = write_rows(tmp_path / "b.jsonl", [{"id": 2, "text": _LONG.replace("story", "storey", 1)}])
    state = ("-q", "--mark", "--state", tmp_path / "state", *SMALL)
    for path in (one, two):
        assert run("dedup", path, "-o", path.with_suffix(".out.jsonl"), *state).code == 0
    (row,) = read_lines(tmp_path / "b.out.jsonl")
    mark = row["twinsieve"]
    assert (mark["verdict"], mark["flags"]) == ("near", ["estimated"])
    assert (mark["leader"], mark["leader_id"], mark["leader_source"]) == (1, 1, str(one))


def test_an_unreadable_row_is_marked_with_its_reason(tmp_path: Path, run: Run) -> None:
    source = tmp_path / "in.csv"
    source.write_text("text\nfine\na,b\n")
    assert run("dedup", "-q", source, "-o", tmp_path / "out.csv", "--mark", *SMALL).code == 0
    with (tmp_path / "out.csv").open() as stream:
        _, bad = csv.DictReader(stream)
    mark = [bad[f"twinsieve_{field}"] for field in ("verdict", "reason", "line")]
    assert mark == ["unreadable", "invalid_csv", "3"]
