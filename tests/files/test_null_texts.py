"""A text that is null or missing is no damage: its row comes out, is counted, and leads nobody."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.calling import SMALL, Piped, Run, setting
from tests.row_files import read_lines, write_rows

_TEXTS = ["今天武汉下雨了，大家出门记得带伞，注意安全。", "完全不同的另外一个句子在这里"]
_NULLS: list[dict[str, object]] = [{"text": None}, {}, {"text": None, "n": 1}]


def _odd(path: Path) -> Path:
    """12 rows, of which 9 have no text; of the others one repeats another."""
    texts: list[dict[str, object]] = [{"text": _TEXTS[0]}, {"text": _TEXTS[1]}, {"text": _TEXTS[0]}]
    return write_rows(path, [row for text in texts for row in (*_NULLS, text)])


def _lines(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines()


def test_rows_without_a_text_come_out_byte_for_byte_and_are_counted(tmp_path: Path, run: Run) -> None:
    source, out, stats = _odd(tmp_path / "odd.jsonl"), tmp_path / "out.jsonl", tmp_path / "stats.json"
    ran = run("dedup", source, "-o", out, "--stats", stats, "--strict", *SMALL)
    assert ran.code == 0, ran.err
    assert _lines(out) == _lines(source)[:-1]
    assert "no text 9 75.0% 9 kept, compared with nothing" in " ".join(ran.err.split())
    told = json.loads(stats.read_text())
    counts = [told[name] for name in ("rows", "unique", "exact", "near", "no_text", "unreadable")]
    assert counts == [12, 2, 1, 0, 9, {}]


def test_twelve_rows_of_which_nine_have_no_text_are_twelve_rows(tmp_path: Path, run: Run) -> None:
    rows = [{"text": f"{number} {text}"} for number, text in enumerate((*_TEXTS, "ein dritter Satz"))]
    source = write_rows(tmp_path / "odd.jsonl", [*rows, *_NULLS * 3])
    ran = run("dedup", source, "-o", tmp_path / "out.jsonl", *SMALL)
    assert (ran.code, (tmp_path / "out.jsonl").read_bytes()) == (0, source.read_bytes())


def test_they_are_marked_stand_in_no_cluster_and_are_nobodys_duplicate(tmp_path: Path, run: Run) -> None:
    source, out = _odd(tmp_path / "odd.jsonl"), tmp_path / "out.jsonl"
    clusters, dropped = tmp_path / "clusters", tmp_path / "dropped"
    files = ("-o", out, "--clusters", clusters, "--duplicates", dropped)
    assert run("dedup", "-q", source, "--mark", *files, *SMALL).code == 0
    marks = [row["twinsieve"] for row in read_lines(out)]
    assert [one["verdict"] for one in marks] == [*["no_text"] * 3, "unique"] * 2 + [*["no_text"] * 3, "exact"]
    assert {(one["leader"], one["similarity"], one["cluster"]) for one in marks[:3]} == {(None, None, None)}
    assert [cluster["rows"] for cluster in read_lines(clusters)] == [[4, 12]]
    assert [entry["duplicate_of"] for entry in read_lines(dropped)] == [4]


@pytest.mark.parametrize("keep", ["last", "longest"])
def test_they_come_out_whichever_row_of_a_cluster_does(tmp_path: Path, run: Run, keep: str) -> None:
    source, out = _odd(tmp_path / "odd.jsonl"), tmp_path / "out.jsonl"
    assert run("dedup", "-q", source, "-o", out, "--keep", keep, *SMALL).code == 0
    dropped = 3 if keep == "last" else 11
    assert _lines(out) == [line for row, line in enumerate(_lines(source)) if row != dropped]


def test_a_state_counts_their_positions_and_remembers_nothing_of_them(tmp_path: Path, run: Run) -> None:
    first, second = _odd(tmp_path / "1.jsonl"), _odd(tmp_path / "2.jsonl")
    second.write_bytes(b'{"text": null}\n' + second.read_bytes())
    out, dropped, state = tmp_path / "out.jsonl", tmp_path / "dropped", tmp_path / "state"
    files = ("--duplicates", dropped, "--state", state)
    assert run("dedup", "-q", first, "-o", tmp_path / "first.jsonl", *files, *SMALL).code == 0
    assert run("dedup", "-q", second, "-o", out, *files, *SMALL).code == 0
    assert len(_lines(out)) == 10
    pairs = [(entry["position"], entry["duplicate_of"]) for entry in read_lines(dropped)]
    assert pairs == [(17, 4), (21, 8), (25, 4)]


def test_as_dead_letters_they_are_rows_that_could_not_be_read(tmp_path: Path, run: Run) -> None:
    source, out, dead = _odd(tmp_path / "odd.jsonl"), tmp_path / "out.jsonl", tmp_path / "dead"
    said = setting("input.null_text=dead_letter")
    ran = run("dedup", "-q", source, "-o", out, "--dead-letter", dead, *said, *SMALL)
    assert (ran.code, len(_lines(out)), len(_lines(dead))) == (0, 2, 9)
    assert [entry["reason"] for entry in read_lines(dead)[:2]] == ["not_text", "missing_field"]
    assert f"(6 not_text, 3 missing_field); the first, {source}:1, field 'text' is null, not text" in ran.err


def test_where_each_row_must_have_a_text_the_first_without_one_ends_the_run(tmp_path: Path, run: Run) -> None:
    source, out = write_rows(tmp_path / "in.jsonl", [{"text": _TEXTS[0]}, {"id": 7}]), tmp_path / "out.jsonl"
    ran = run("dedup", "-q", source, "-o", out, *setting("input.null_text=fail"), *SMALL)
    assert (ran.code, out.exists()) == (1, False)
    assert ran.err == (
        f"twinsieve: {source}:2 has no field 'text', and input.null_text: fail allows no row without a text; "
        "mend it, or set it to pass\n"
    )
    assert run("dedup", "-q", source, "-o", out, *setting("input.null_text=pass"), *SMALL).code == 0


def test_of_several_text_fields_a_row_needs_one(tmp_path: Path, run: Run) -> None:
    rows: list[dict[str, object]] = [
        {"title": None, "body": _TEXTS[0]},
        {"title": None, "body": None},
        {"body": None},
        {"n": 1},
        {"title": _TEXTS[0]},
    ]
    source, stats = write_rows(tmp_path / "in.jsonl", rows), tmp_path / "stats"
    fields = ("--text-field", "title", "--text-field", "body", "--stats", stats)
    assert run("dedup", "-q", source, "-o", tmp_path / "out.jsonl", *fields, *SMALL).code == 0
    told = json.loads(stats.read_text())
    assert (told["unique"], told["exact"], told["no_text"], told["unreadable"]) == (1, 1, 3, {})


def test_a_number_an_object_and_an_empty_text_are_what_they_were(tmp_path: Path, run: Run) -> None:
    rows = ({"text": text} for text in (5, {"a": 1}, "", "", "a"))
    source, stats = write_rows(tmp_path / "in.jsonl", rows), tmp_path / "stats"
    allowed = ("--max-unreadable", "0.4", *SMALL)
    assert run("dedup", "-q", source, "-o", tmp_path / "out.jsonl", "--stats", stats, *allowed).code == 0
    told = json.loads(stats.read_text())
    assert (told["unique"], told["exact"], told["no_text"], told["unreadable"]) == (2, 1, 0, {"not_text": 2})


def test_a_csv_has_empty_texts_and_short_rows_but_none_without_a_text(tmp_path: Path, run: Run) -> None:
    source, stats, dead = tmp_path / "in.csv", tmp_path / "stats", tmp_path / "dead"
    source.write_text("id,text\n1,\n2,\n3\n4,one\n")
    files = ("-o", tmp_path / "out.csv", "--stats", stats, "--dead-letter", dead)
    assert run("dedup", "-q", source, *files, *SMALL).code == 0
    told = json.loads(stats.read_text())
    assert (told["unique"], told["exact"], told["no_text"]) == (2, 1, 0)
    assert json.loads(dead.read_text())["reason"] == "invalid_csv"


@pytest.mark.parametrize("name", ["in.parquet", "in.arrow"])
def test_a_null_of_a_table_comes_out_with_all_columns(tmp_path: Path, run: Run, name: str) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    table = pa.table({"n": [1, 2, 3, 4], "text": [None, _TEXTS[0], None, _TEXTS[0]]})
    source, out = tmp_path / name, tmp_path / f"out.{name}"
    if name == "in.parquet":
        parquet.write_table(table, source)
    else:
        with pa.ipc.new_file(source, table.schema) as writer:
            writer.write_table(table)
    assert run("dedup", "-q", source, "-o", out, *SMALL).code == 0
    assert run("dedup", "-q", source, "-o", tmp_path / f"m.{name}", "--mark", *SMALL).code == 0

    def read(path: Path) -> pa.Table:
        return parquet.read_table(path) if name == "in.parquet" else pa.ipc.open_file(path).read_all()

    assert read(out).to_pylist() == table.to_pylist()[:3]
    marked = read(tmp_path / f"m.{name}").to_pylist()
    assert [row["twinsieve"]["verdict"] for row in marked] == ["no_text", "unique", "no_text", "exact"]


@pytest.mark.parametrize("policy", ["auto", "pass"])
def test_where_no_row_has_the_field_the_run_fails_and_says_which_is_meant(
    tmp_path: Path, run: Run, policy: str
) -> None:
    rows: list[dict[str, object]] = [{"id": n, "text": _TEXTS[0], "lang": "zh"} for n in range(300)]
    source, out = write_rows(tmp_path / "in.jsonl", rows), tmp_path / "out.jsonl"
    out.write_text("what was there before")
    said = ("--text-field", "tex", *setting(f"input.null_text={policy}"))
    ran = run("dedup", "-q", source, "-o", out, "--mark", *said, *SMALL)
    assert (ran.code, ran.err) == (
        1,
        f"twinsieve: none of 300 rows has a text: {source}:1 has no field 'tex' but 'id', 'text', 'lang'; "
        "did you mean 'text'? name the right one, as with --text-field; if the rows have no text, add "
        "--set input.expect_text=false\n",
    )
    assert out.read_text() == "what was there before"


def test_texts_that_are_all_null_are_texts_nevertheless(tmp_path: Path, run: Run) -> None:
    source = write_rows(tmp_path / "in.jsonl", [{"text": None}, {"text": None}, {}])
    assert run("dedup", "-q", source, "-o", tmp_path / "out.jsonl", *SMALL).code == 0
    assert (tmp_path / "out.jsonl").read_bytes() == source.read_bytes()


@pytest.mark.parametrize(("rows", "code"), [(999, 0), (1000, 1)])
def test_a_short_input_may_be_without_the_field_where_another_has_it(
    tmp_path: Path, run: Run, rows: int, code: int
) -> None:
    posts = write_rows(tmp_path / "a.jsonl", [{"text": _TEXTS[0]}])
    users = write_rows(tmp_path / "b.jsonl", [{"name": n} for n in range(rows)])
    for inputs in ([posts, users], [users, posts]):
        ran = run("dedup", "-q", *inputs, "-o", tmp_path / "out.jsonl", *SMALL)
        assert ran.code == code, ran.err
        assert (f"none of 1,000 rows has a text: {users}:1 has no field 'text' but 'name'" in ran.err) == code


def test_a_stream_warns_at_once_and_fails_at_its_end(piped: Piped) -> None:
    content = b'{"body": "one"}\n{"body": "two"}\n'
    ran = piped(["dedup", "-q", "--text-field", "bdy", *SMALL], content)
    assert (ran.returncode, ran.stdout) == (1, content)
    warned, failed = ran.stderr.decode().splitlines()
    assert "of input.text_field but 'body', so nothing of it is compared; did you mean 'body'?" in warned
    assert "none of 2 rows has a text" in failed


@pytest.mark.parametrize("ending", ["jsonl", "csv"])
def test_rows_without_a_text_come_out_where_none_is_expected(run: Run, tmp_path: Path, ending: str) -> None:
    source, output = tmp_path / f"s.{ending}", tmp_path / f"o.{ending}"
    rows = {"jsonl": '{"body": "a"}\n{"body": "a"}\n', "csv": "id,body\n1,a\n2,a\n"}
    source.write_text(rows[ending])
    failed = run("dedup", source, "-o", output)
    assert failed.code != 0
    assert failed.err.endswith("; if the rows have no text, add --set input.expect_text=false\n")
    assert run("dedup", source, "-o", output, "--set", "input.expect_text=false").code == 0
    assert output.read_text() == rows[ending]
