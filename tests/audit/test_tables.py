"""CSV and Parquet of drops: read back they hold what the file holds, and nothing that a spreadsheet computes."""

from __future__ import annotations

import csv
import json
import os
import stat
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from tests.audit.dropped_rows import row
from tests.calling import SMALL, Piped, Run
from tests.generated_posts import generate
from tests.pages.hostile import TEXTS
from tests.row_files import read_lines, write_rows
from twinsieve.pipeline.basics.printable import acts, printable
from twinsieve.pipeline.pages import extra
from twinsieve.pipeline.tools.audit.drop_table import COLUMNS, _cell

NUMBERS = ("position", "line", "distance", "shared", "duplicate_of", "leader_line")
SAME = [name for name in COLUMNS if name not in ("time", "flags")]


def expected(one: dict[str, Any]) -> dict[str, Any]:
    """A row of the duplicates file with the columns of the tables."""
    time_ms = one.get("time_ms")
    time = None if time_ms is None else datetime.fromtimestamp(time_ms / 1000, UTC)
    return {name: one.get(name) for name in SAME} | {
        "time": time,
        "flags": " ".join(one.get("flags", [])) or None,
        "id": None if one.get("id") is None else str(one["id"]),
        "duplicate_of_id": None if one.get("duplicate_of_id") is None else str(one["duplicate_of_id"]),
    }


def read_csv(path: Path) -> list[dict[str, Any]]:
    """The rows with their types; the apostrophe that protects a cell is taken away again."""
    csv.field_size_limit(1 << 24)
    rows: list[dict[str, Any]] = []
    with path.open(encoding="utf-8", newline="") as stream:
        for cells in csv.DictReader(stream):
            one: dict[str, Any] = {name: cell.removeprefix("'") or None for name, cell in cells.items()}
            one |= {name: int(one[name]) for name in NUMBERS if one[name] is not None}
            one["similarity"] = None if one["similarity"] is None else float(one["similarity"])
            one["time"] = None if one["time"] is None else datetime.fromisoformat(one["time"])
            rows.append(one)
    return rows


def as_shown(one: dict[str, Any]) -> dict[str, Any]:
    """As CSV has it: characters that act are escapes, and an empty text is a missing one."""
    return {
        name: (printable(value) or None) if isinstance(value, str) else value for name, value in one.items()
    }


def test_both_tables_hold_every_drop_of_a_run(run: Run, tmp_path: Path) -> None:
    posts = write_rows(tmp_path / "posts.jsonl", generate(4_000, seed=21))
    path, as_csv, as_parquet = (tmp_path / name for name in ("d.jsonl", "d.csv", "d.parquet"))
    assert run("dedup", posts, "-q", "-o", tmp_path / "u", "--duplicates", path, *SMALL).code == 0
    found = run("audit", path, "--csv", as_csv, "--parquet", as_parquet)
    rows = [expected(one) for one in read_lines(path)]
    assert (found.code, found.out) == (0, "")
    assert found.err.splitlines() == [
        f"{name}: {len(rows):,} drops; it contains messages, so its mode is 0600"
        for name in (as_csv, as_parquet)
    ]
    assert any(one["flags"] for one in rows)
    assert parquet.read_table(as_parquet).to_pylist() == [
        {name: one[name] for name in COLUMNS} for one in rows
    ]
    assert read_csv(as_csv) == [as_shown(one) for one in rows]


def test_hostile_texts_are_whole_in_parquet_and_cannot_act_in_csv(run: Run, tmp_path: Path) -> None:
    rows = [
        row(n, 1, text=text, leader_text=text + ".", id=text, source=text, duplicate_of_id=text)
        for n, text in enumerate(TEXTS.values(), start=2)
    ]
    path = tmp_path / "d.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in rows))
    assert run("audit", path, "--csv", tmp_path / "d.csv", "--parquet", tmp_path / "d.parquet").code == 0
    texts = [one["text"] for one in parquet.read_table(tmp_path / "d.parquet").to_pylist()]
    assert texts == [text.encode("utf-8", "backslashreplace").decode() for text in TEXTS.values()]
    content = (tmp_path / "d.csv").read_text("utf-8")
    assert [char for char in set(content) if acts(char) and char != "\n"] == []
    assert content.count("\n") == len(TEXTS.values()) + 1
    assert [one["text"] for one in read_csv(tmp_path / "d.csv")] == [
        printable(text) or None for text in TEXTS.values()
    ]
    with (tmp_path / "d.csv").open(newline="") as stream:
        for cells in csv.reader(stream):
            assert not [cell for cell in cells if cell.lstrip()[:1] in tuple("=+-@＝＋－＠\t\r")]


@given(st.text())
def test_a_cell_is_never_a_formula_and_loses_nothing(text: str) -> None:
    cell = _cell(text)
    assert cell.removeprefix("'") == printable(text)
    assert not cell.strip().startswith(tuple("=+-@＝＋－＠"))
    assert not any(map(acts, cell))


def test_no_drops_make_a_table_with_columns_alone(run: Run, tmp_path: Path) -> None:
    (tmp_path / "d.jsonl").touch()
    words = ("--csv", tmp_path / "d.csv", "--parquet", tmp_path / "d.parquet")
    assert run("audit", tmp_path / "d.jsonl", *words).code == 0
    assert (tmp_path / "d.csv").read_text() == ",".join(COLUMNS) + "\n"
    table = parquet.read_table(tmp_path / "d.parquet")
    assert (table.num_rows, table.column_names) == (0, list(COLUMNS))


def test_numbers_that_are_none_are_missing(run: Run, tmp_path: Path) -> None:
    odd = row(2, 1, position=1 << 70, line=True, duplicate_of="x", time_ms=1 << 60, leader_line=-4)
    path = write_rows(tmp_path / "d.jsonl", [odd, row(3, None, time_ms="soon")])
    assert run("audit", path, "--csv", tmp_path / "d.csv", "--parquet", tmp_path / "d.parquet").code == 0
    rows = parquet.read_table(tmp_path / "d.parquet").to_pylist()
    numbers = ("position", "line", "time", "duplicate_of", "leader_line")
    assert [[one[name] for name in numbers] for one in rows] == [[None] * 5, [3, 4, None, None, None]]
    assert read_csv(tmp_path / "d.csv") == rows


def test_what_holds_posts_is_for_its_owner_alone(run: Run, tmp_path: Path) -> None:
    path = write_rows(tmp_path / "d.jsonl", [row(2, 1)])
    names = [tmp_path / f"d.{ending}" for ending in ("csv", "parquet", "html")]
    for name in names:
        name.write_bytes(b"for all")
        name.chmod(0o644)
    before = os.umask(0)
    try:
        flags = [word for name in names for word in (f"--{name.suffix[1:]}", name)]
        found = run("audit", path, *flags)
    finally:
        os.umask(before)
    assert found.code == 0
    assert [stat.S_IMODE(name.stat().st_mode) for name in names] == [0o600] * 3
    assert found.err == "".join(
        f"{name}: 1 drops; it contains messages, so its mode is 0600\n" for name in names
    )


def test_an_input_that_breaks_leaves_the_old_outputs(run: Run, tmp_path: Path) -> None:
    path = write_rows(tmp_path / "d.jsonl", [row(2, 1), {"no": "drop"}])
    names = [tmp_path / f"old.{ending}" for ending in ("csv", "parquet", "html")]
    for name in names:
        name.write_bytes(b"old")
    for flags in ([f"--{name.suffix[1:]}", name] for name in names):
        found = run("audit", path, *flags)
        assert (found.code, found.out) == (2, "")
        assert "d.jsonl:2: is not a dropped row" in found.err
    assert [name.read_bytes() for name in names] == [b"old"] * 3
    assert sorted(one.name for one in tmp_path.iterdir()) == ["d.jsonl", "old.csv", "old.html", "old.parquet"]


def test_only_chosen_drops_are_written_and_csv_may_be_packed_or_streamed(
    run: Run, piped: Piped, tmp_path: Path
) -> None:
    import gzip

    rows = [row(n, 1 + n % 2) for n in range(3, 40)]
    path = write_rows(tmp_path / "d.jsonl", rows)
    assert run("audit", path, "--leader", "p2", "--csv", tmp_path / "d.csv.gz").code == 0
    lines = gzip.decompress((tmp_path / "d.csv.gz").read_bytes()).decode().splitlines()
    assert [line.partition(",")[0] for line in lines[1:]] == [str(n) for n in range(3, 40) if n % 2]
    streamed = run("audit", path, "--leader", "p2", "--csv", "-")
    assert (streamed.out.splitlines(), streamed.err) == (lines, "")
    from_pipe = piped(["audit", "-", "--leader", "p2", "--csv", "-"], path.read_bytes())
    assert from_pipe.stdout.decode() == streamed.out


def test_without_the_extra_the_packages_are_named(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extra, "find_spec", lambda name: None if name == "duckdb" else True)
    found = run("audit", write_rows(tmp_path / "d.jsonl", [row(2, 1)]))
    assert (found.code, found.out) == (2, "")
    assert "audit needs duckdb: pip install duckdb" in found.err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--csv", "d.jsonl"), "--csv d.jsonl: is also an input"),
        (("--html", "d.jsonl"), "--html d.jsonl: is also an input"),
        (("--csv", "a.jsonl", "--kept-apart", "a.jsonl"), "is also an input"),
        (("--csv", "x.parquet"), "--csv x.parquet: looks like parquet, but holds CSV"),
        (("--parquet", "x.csv"), "--parquet x.csv: looks like csv, but holds Parquet"),
        (("--html", "x.csv"), "--html x.csv: looks like csv, but holds HTML"),
        (("--parquet", "x.parquet.gz"), "--parquet x.parquet.gz: is not written compressed; leave .gz out"),
        (("--html", "x.html.zst"), "--html x.html.zst: is not written compressed; leave .zst out"),
        (("--csv", "x", "--html", "x"), "--html x: is also --csv (x)"),
        (("--csv", ""), "--csv: the name is empty"),
        (("--kept-apart", ""), "an input's name is empty"),
        (("--csv", "-", "--json"), "--csv -: is also --json (-); name another file"),
        (("--csv", "/dev/stdout", "--json"), "--csv /dev/stdout: is also --json (-)"),
        (("--html", "/dev/fd/1", "--json"), "--html /dev/fd/1: is also --json (-)"),
        (("--csv", "x.csv", "--kept-apart", "a.jsonl"), "--kept-apart adds to the summary"),
        (("--leader", "1", "--kept-apart", "a.jsonl"), "--kept-apart adds to the summary"),
        (("--csv", "no/such/folder.csv"), "no/such/folder.csv: cannot be written"),
        (
            ("--position", "posts.jsonl"),
            "--position 'posts.jsonl': name the row by its number, or as INPUT:LINE",
        ),
        (("--position", "-1"), "--position '-1': name the row by its number"),
        (("--position", ":3"), "--position ':3': name the row by its number"),
        (("--position", "9" * 5_000), "name the row by its number"),
        (("--kept-apart", "none.jsonl"), "none.jsonl: cannot be read"),
        (("--kept-apart", "d.jsonl"), "d.jsonl:1: is not a row that was kept apart"),
    ],
)
def test_misuse_is_said_and_writes_nothing(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], says: str
) -> None:
    monkeypatch.chdir(tmp_path)
    write_rows(Path("d.jsonl"), [row(2, 1)])
    write_rows(Path("a.jsonl"), [{"apart_from": 1, "reason": "number"}])
    before = {one.name: one.read_bytes() for one in tmp_path.iterdir()}
    found = run("audit", "d.jsonl", *words)
    assert found.code in (1, 2)
    assert says in found.err
    assert found.out == ""
    assert {one.name: one.read_bytes() for one in tmp_path.iterdir()} == before


def test_the_settings_of_an_app_are_not_written_over(run: Run, tmp_path: Path) -> None:
    (tmp_path / "app").write_text("app: mine\n")
    found = run(
        "audit", "-c", tmp_path / "app", "--csv", tmp_path / "app", "--set", "kafka.bootstrap=127.0.0.1:1"
    )
    assert found.code == 2
    assert "is also the settings file" in found.err
    assert (tmp_path / "app").read_text() == "app: mine\n"


def test_drops_are_found_by_place_id_leader_and_text(run: Run, tmp_path: Path) -> None:
    rows = [row(n, 1 + n % 3, time_ms=n) for n in range(10, 30)]
    rows.append(row(30, 2, source="a:b.jsonl", line=4, text="GROSSE STRASSE"))
    path = write_rows(tmp_path / "d.jsonl", rows)

    def shown(*words: str) -> list[str]:
        found = run("audit", path, *words)
        is_missing = found.out == "0 drops; 0 shown\n" and bool({"--id", "--position"} & set(words))
        assert found.code == (1 if is_missing else 0)
        assert ("has no such drop" in found.err) == is_missing
        *lines, last = found.out.splitlines()
        places = [line.partition(" (id ")[0] for line in lines if not line.startswith(" ")]
        assert last.endswith(f" {len(places)} shown")
        return places

    assert shown("--position", "12") == shown("--position", "posts.jsonl:13") == ["posts.jsonl:13"]
    assert shown("--position", "012") == ["posts.jsonl:13"]
    assert shown("--position", "a:b.jsonl:4") == shown("--id", "p30") == ["a:b.jsonl:4"]
    assert shown("--position", "other.jsonl:13") == shown("--id", "p1") == shown("--position", "1") == []
    assert len(shown("--leader", "2")) == len(shown("--leader", "p2")) == 8
    assert shown("--leader", "2", "--id", "p12") == []
    assert shown("--leader", "2", "--search", "straße") == ["a:b.jsonl:4"]
    assert len(shown("--leader", "2", "--top", "3")) == 3
    both = run("audit", path, "--leader", "2", "--json")
    assert json.loads(both.out)["drops"] == 8
