"""`twinsieve why` and `audit` read what `dedup --duplicates` wrote."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.calling import SMALL, Ran, Run, setting
from tests.generated_posts import generate
from tests.row_files import read_lines, write_rows

HOSTILE = "\x1b[2J<script>alert(1)</script>\u202eevil\r\n " + "word" * 300
FERRY = "The ferry to the island leaves the old harbour at nine today, take a coat"


@pytest.fixture
def dropped(run: Run, tmp_path: Path) -> Path:
    posts = write_rows(tmp_path / "posts.jsonl", generate(3_000, seed=9))
    return dedup(run, posts)


def dedup(run: Run, posts: Path, *arguments: str | Path) -> Path:
    path = posts.parent / "dropped.jsonl"
    out = posts.parent / "unique.jsonl"
    ran = run("dedup", posts, "-o", out, "--duplicates", path, "-q", *SMALL, *arguments)
    assert ran.code == 0, ran.err
    return path


def ferries(run: Run, folder: Path, *arguments: str | Path) -> Path:
    posts = write_rows(
        folder / "ferries.jsonl",
        [
            {"id": "a", "text": f"{FERRY}, bring friends"},
            {"id": "b", "text": f"{FERRY}, bring friends!"},
            {"id": 7, "text": f"{FERRY}, all of them {HOSTILE}"},
            {"id": "c", "text": f"{FERRY}, all of them {HOSTILE} x"},
        ],
    )
    return dedup(run, posts, *arguments)


def why(run: Run, path: Path, *arguments: str) -> Ran:
    return run("why", "--duplicates", path, *arguments)


def test_why_names_the_leader_and_explains_every_dropped_row(run: Run, dropped: Path) -> None:
    rows = read_lines(dropped)
    some = [*[row for row in rows if row["stage"] == "near"][:12], *rows[:4]]
    for row in some:
        found = why(run, dropped, "--id", row["id"])
        assert (found.code, found.err) == (0, "")
        first, *rest = found.out.splitlines()
        likeness = "exact: equal" if row["stage"] == "exact" else f"near: {row['similarity']:.4g} similar"
        assert f"(id {row['id']}) was dropped, {likeness} to " in first
        assert f":{row['leader_line']} (id {row['duplicate_of_id']}), which was kept" in first
        verdict = next(line for line in rest if line.startswith("verdict"))
        assert verdict.split()[1] == f"{row['stage']}:"
        assert why(run, dropped, "--position", str(row["position"])).out == found.out


def test_why_says_when_the_settings_are_others_than_those_of_the_run(run: Run, tmp_path: Path) -> None:
    path = ferries(run, tmp_path, *setting("near.differences=off", "near.similarity=0.7"))
    found = why(run, path, "--id", "c", *setting("near.similarity=0.9999"))
    assert found.code == 0
    assert found.err == (
        "that run said near, these settings say unique: give the settings of that run, by -c, --profile or --set\n"
    )


def test_an_id_that_is_a_number_is_found_and_one_that_was_kept_is_not(run: Run, tmp_path: Path) -> None:
    path = ferries(run, tmp_path)
    kept = why(run, path, "--id", "a")
    assert (kept.code, kept.out) == (1, "")
    assert kept.err == f"{path}: has no message with id 'a': it was kept, not readable, or not seen\n"
    assert "leads" in why(run, path, "--id", "c").out
    assert ":3 (id 7), which was kept" in why(run, path, "--id", "c").out


def test_why_without_a_leader_and_without_its_text(run: Run, tmp_path: Path) -> None:
    row = {
        "position": 9,
        "id": "x",
        "source": "s",
        "line": 9,
        "stage": "exact",
        "similarity": 1.0,
        "text": FERRY,
    }
    unconfirmed = {**row, "duplicate_of": None, "flags": ["unconfirmed"]}
    earlier_run = {**row, "id": "y", "duplicate_of": 2, "duplicate_of_id": None, "leader_text": None}
    path = write_rows(tmp_path / "d.jsonl", [unconfirmed, earlier_run])
    assert why(run, path, "--id", "x").out.splitlines()[1].startswith("only the Bloom filter knows")
    said = why(run, path, "--id", "y").out.splitlines()
    assert said == [
        "s:9 (id y) was dropped, exact: equal to row 2, which was kept",
        "its leader's text is not in the file: an earlier run on the state did not keep it",
    ]


def test_rows_with_equal_fields_are_told_as_such(run: Run, tmp_path: Path) -> None:
    posts = write_rows(tmp_path / "p.jsonl", [{"id": 1, "text": "one text"}, {"id": 1, "text": "another"}])
    path = tmp_path / "dropped.jsonl"
    fields = setting("exact.fields=[id]")
    assert run("dedup", posts, "-o", tmp_path / "u.jsonl", "--duplicates", path, "-q", *fields).code == 0
    found = why(run, path, "--id", "1", *fields)
    assert found.out.splitlines()[1:] == ["both have equal values of exact.fields: id"]


def counted(out: str) -> dict[str, int]:
    cells = [line.strip("│").split("│") for line in out.splitlines() if line.startswith("│")]
    return {
        name.strip(): int(count.replace(",", "")) for name, count in (row for row in cells if len(row) == 2)
    }


def test_of_equal_clusters_the_older_comes_first_with_its_least_alike_drop(run: Run, tmp_path: Path) -> None:
    def drop(position: int, leader: int, similarity: float) -> dict[str, Any]:
        text = f"drop {position}"
        said = {"position": position, "duplicate_of": leader, "leader_text": f"leader {leader}", "text": text}
        return {**said, "stage": "near", "similarity": similarity}

    rows = [drop(3, 2, 0.9), drop(4, 1, 0.85), drop(5, 1, 0.8499), drop(6, 2, 0.95), drop(7, 8, 0.7)]
    found = run("audit", write_rows(tmp_path / "d.jsonl", rows), "--top", "2")
    shown = [
        word for word in found.out.replace("│", " ").split("\n") if " leader " in word or " drop " in word
    ]
    shown = shown[-4:]
    assert [" ".join(line.split()[-2:]) for line in shown] == ["leader 1", "drop 5", "leader 2", "drop 3"]
    counts = counted(found.out)
    assert (counts["near, from 0.8"], counts["near, from 0.85"]) == (1, 1)


def test_texts_are_shown_escaped_and_cut(run: Run, tmp_path: Path) -> None:
    path = ferries(run, tmp_path)
    for words in ("audit",), ("audit", "--search", "SCRIPT"), ("audit", "--leader", "7"):
        found = run(words[0], path, *words[1:])
        assert found.code == 0
        assert "script" in found.out
        assert not {"\x1b", "\u202e", "\r"} & set(found.out)
        assert max(map(len, found.out.splitlines())) < 400


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("{", "is not JSON"),
        ("[1]", "is not a dropped row"),
        ('{"id": 1}', "is not a dropped row"),
        ('{"position": 1, "duplicate_of": 2, "stage": "apart", "text": ""}', "is not a dropped row"),
        ('{"position": 1, "duplicate_of": 2, "stage": "near", "text": ""}', "does not say how similar"),
        (
            '{"position": 1, "duplicate_of": 2, "stage": "near", "text": "", "similarity": NaN}',
            "does not say how",
        ),
        (
            '{"position": 1, "duplicate_of": 2, "stage": "near", "text": "", "similarity": true}',
            "does not say how",
        ),
        ('{"position": 1, "duplicate_of": 2, "stage": [], "text": ""}', "is not a dropped row"),
    ],
)
def test_a_file_of_another_kind_is_refused_with_its_line(
    run: Run, tmp_path: Path, dropped: Path, line: str, says: str
) -> None:
    path = tmp_path / "bad.jsonl"
    # So much that it is read in several blocks.
    path.write_bytes(dropped.read_bytes() * 12 + line.encode() + b"\n")
    count = 12 * len(read_lines(dropped)) + 1
    for words in ("audit", path), ("why", "--id", "nobody", "--duplicates", path):
        found = run(*words)
        assert found.code == 2
        assert f"bad.jsonl:{count}: {says}" in found.err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("audit", "missing.jsonl"), "missing.jsonl: cannot be read"),
        (("why", "--duplicates", "d.jsonl"), "name the message by --id or by --position"),
        (("why", "--id", "1", "--position", "1", "--duplicates", "d"), "name the message by --id or by"),
        (("why", "--id", "1"), "--duplicates"),
    ],
)
def test_misuse_is_said(run: Run, words: tuple[str, ...], says: str) -> None:
    found = run(*words)
    assert found.code in (1, 2)
    assert says in found.err


def test_an_empty_file_has_no_drops(run: Run, tmp_path: Path) -> None:
    (tmp_path / "none.jsonl").touch()
    assert run("audit", tmp_path / "none.jsonl").out == "No message is a repeat.\n"
