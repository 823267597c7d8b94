"""`dedup --mark`: every row comes out, its bytes as they were, with what the sieve says of it."""

from __future__ import annotations

import codecs
import csv
import io
import json
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet as pq

from tests.calling import SMALL, Run, Start, setting
from tests.generated_posts import generate
from tests.row_files import read_lines, write_rows
from twinsieve.pipeline.files.formats.json_documents import JsonDocuments
from twinsieve.pipeline.files.formats.json_lines import JsonWriter
from twinsieve.pipeline.files.input_reader import InputReader
from twinsieve.pipeline.files.marks import RowMark
from twinsieve.pipeline.files.source import InputSource
from twinsieve.pipeline.files.write import Output
from twinsieve.pipeline.messages.spelling import Written
from twinsieve.pipeline.settings.model import Settings

_FIELDS = ("verdict", "leader", "similarity", "cluster")
_A, _B = "今天武汉下雨了，大家出门记得带伞。", "完全不同的另外一个句子在这里"
_NOTHING = dict.fromkeys(_FIELDS[1:])


def _mark(
    verdict: str, leader: int | None = None, similarity: float | None = None, cluster: int | None = None
) -> Any:
    return {"verdict": verdict, "leader": leader, "similarity": similarity, "cluster": cluster}


_UNREADABLE = _mark("unreadable")


def _lines(path: Path) -> list[Any]:
    """Rows with what their marks say first; `read_lines` has the rest."""
    return [_shortened(row) for row in read_lines(path)]


def _shortened(row: Any) -> Any:
    """The row with the fields of its mark that most tests look at, and what is in it of a wrapped row."""
    if "twinsieve" in row:
        mark = row["twinsieve"]
        row["twinsieve"] = {
            name: mark[name] for name in mark if name in _FIELDS or name not in RowMark._fields
        }
        if set(mark) - set(RowMark._fields):
            row["twinsieve"]["reason"] = mark["reason"]
    return row


def _of_csv(record: dict[str, str]) -> Any:
    said = {field: record.pop(f"twinsieve_{field}") for field in RowMark._fields}
    verdict, leader, similarity, cluster = (said[field] for field in _FIELDS)
    numbers = [json.loads(text) if text else None for text in (leader, similarity, cluster)]
    return _mark(verdict, *numbers)


def _read(path: Path) -> tuple[list[Any], list[Any]]:
    """Rows as they would be without marks, and the marks."""
    if path.suffix == ".csv":
        with path.open(encoding="utf-8", newline="") as stream:
            rows: list[Any] = list(csv.DictReader(stream, strict=True))
        marks = [_of_csv(row) for row in rows if "twinsieve_verdict" in row]
    else:
        rows = _lines(path) if path.suffix == ".jsonl" else pq.read_table(path).to_pylist()
        rows = [_shortened(row) for row in rows]
        marks = [row.pop("twinsieve") for row in rows if "twinsieve" in row]
    return rows, marks


@pytest.mark.parametrize("ending", [".jsonl", ".csv", ".parquet"])
@pytest.mark.parametrize("method", ["text", "hamming"])
def test_marks_say_what_a_plain_run_does(tmp_path: Path, run: Run, ending: str, method: str) -> None:
    posts = [{key: post[key] for key in ("id", "text", "created_at")} for post in generate(1500, seed=5)]
    source, kept, marked = (tmp_path / f"{name}{ending}" for name in ("in", "kept", "marked"))
    said = ("-q", write_rows(source, posts), *setting(f"near.method={method}"), *SMALL)
    assert run("dedup", *said, "-o", kept, "--duplicates", tmp_path / "d").code == 0
    ran = run("dedup", *said, "-o", marked, "--mark", "--duplicates", tmp_path / "e")
    assert (ran.code, ran.err) == (0, "")
    rows, marks = _read(marked)
    assert rows == _read(source)[0]
    assert (tmp_path / "d").read_bytes() == (tmp_path / "e").read_bytes()
    unique = [row for row, mark in zip(rows, marks, strict=True) if mark["verdict"] == "unique"]
    assert unique == _read(kept)[0]
    dropped = {one["position"]: one for one in _lines(tmp_path / "d")}
    assert len(dropped) > 100
    for position, mark in enumerate(marks, start=1):
        one = dropped.get(position)
        if one is None:
            assert mark == _mark("unique", cluster=position)
        else:
            leader = one["duplicate_of"]
            assert mark == _mark(one["stage"], leader, one.get("similarity"), leader)


def test_the_member_is_added_and_all_other_bytes_stay(tmp_path: Path, run: Run) -> None:
    rows = [
        f' {{"text" : "{_A}" , "n": 1.50}}\t'.encode(),
        f'{{"text": "{_A}", "o": {{}}}}\r'.encode(),
        b"",
        '{"text": "}{ \\"twinsieve\\" 你"}'.encode(),
        b"{ }",
        f'{{"o": {{"twinsieve": 1}}, "text": "{_B}"}}'.encode(),
    ]
    source, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_bytes(codecs.BOM_UTF8 + b"\n".join(rows))
    assert run("dedup", "-q", source, "-o", out, "--mark", *SMALL).code == 0

    def member(number: int, **said: object) -> bytes:
        mark = dict.fromkeys(RowMark._fields) | {"verdict": "unique", "cluster": number, "flags": []}
        mark |= {"source": str(source), "line": number} | said
        return f'"twinsieve": {json.dumps(mark)}'.encode()

    exact = member(
        2, verdict="exact", leader=1, similarity=1.0, cluster=1, leader_source=str(source), leader_line=1
    )
    assert out.read_bytes().split(b"\n") == [
        rows[0].replace(b"1.50}", b"1.50, " + member(1) + b"}"),
        rows[1].replace(b"{}}", b"{}, " + exact + b"}"),
        rows[3][:-1] + b", " + member(4) + b"}",
        b"{" + member(5, verdict="no_text", cluster=None) + b" }",
        rows[5][:-1] + b", " + member(6) + b"}",
    ]


def test_positions_go_on_with_a_state(tmp_path: Path, run: Run) -> None:
    state = ("--state", tmp_path / "state", "--mark", "-q", *SMALL)
    names = [
        write_rows(tmp_path / "a.jsonl", [{"text": _A}, {"text": _B}]),
        write_rows(tmp_path / "b.jsonl", [{"text": "还有一个谁也没有见过的新句子"}, {"text": _B}]),
    ]
    for name in names:
        assert run("dedup", name, "-o", name.with_suffix(".out"), "--format", "jsonl", *state).code == 0
    assert [one["twinsieve"] for name in names for one in _lines(name.with_suffix(".out"))] == [
        _mark("unique", cluster=1),
        _mark("unique", cluster=2),
        _mark("unique", cluster=3),
        _mark("exact", 2, 1.0, 2),
    ]


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (b'{"text": 1}', {"text": 1}),
        (b'{"text": [null]}', {"text": [None]}),
        (b"{broken\r", ("invalid_json", {"row": "{broken\r"})),
        ('{"text": "你'.encode(), ("invalid_json", {"row": '{"text": "你'})),
        (b'{"text": "\xff"}', ("not_utf8", {"row_base64": "eyJ0ZXh0IjogIv8ifQ=="})),
        (b"[1, 2]", ("not_an_object", {"row": "[1, 2]"})),
        (b'{"text": "' + b"x" * 2000 + b'"}', ("too_large", {"row": '{"text": "' + "x" * 246})),
    ],
)
def test_json_that_cannot_be_read_comes_out_in_its_place(
    tmp_path: Path, run: Run, row: bytes, said: Any
) -> None:
    source, out, dead = tmp_path / "in.jsonl", tmp_path / "out.jsonl", tmp_path / "dead"
    fine = json.dumps({"text": _A}).encode()
    source.write_bytes(b"\n".join([fine, row, fine]) + b"\n")
    limit = setting("input.max_bytes=1KiB")
    ran = run("dedup", "-q", source, "-o", out, "--mark", "--dead-letter", dead, *limit, *SMALL)
    assert ran.code == 0
    first, bad, last = _lines(out)
    assert (first["twinsieve"]["verdict"], last["twinsieve"]["leader"]) == ("unique", 1)
    if isinstance(said, tuple):
        reason, shown = said
        assert bad == {"twinsieve": _UNREADABLE | {"reason": reason} | shown}
        (entry,) = _lines(dead)
        assert {key.replace("raw", "row"): entry[key] for key in entry if key.startswith("raw")} == shown
    else:
        assert bad == said | {"twinsieve": _UNREADABLE}


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("delimiter", [",", "\t", ".", "_"])
def test_csv_gets_a_column_a_field_and_stays_aligned(
    tmp_path: Path, run: Run, end: str, delimiter: str
) -> None:
    records = [
        ["1", f"{_A}{delimiter}"],
        ["2", "1", "too many"],
        ["3", f'{_A}{delimiter} "'],
        ["4"],
        ["", ""],
    ]
    written = io.StringIO()
    writer = csv.writer(written, quoting=csv.QUOTE_ALL, lineterminator=end, delimiter=delimiter)
    writer.writerows([["id", "text"], *records])
    content = written.getvalue() + f'"5"{delimiter}"x" y{end}{end}"6"{delimiter}"{_B}"'
    content += f'{end}"7"{delimiter}"{"z" * 1500}"{end}8{delimiter}"open'
    source, out = tmp_path / "in.csv", tmp_path / "out.csv"
    source.write_bytes(codecs.BOM_UTF8 + content.encode() + b" \xe4")
    said = ("--mark", "--delimiter", delimiter, *setting("input.max_bytes=1KiB"))
    assert run("dedup", "-q", source, "-o", out, *said, *SMALL).code == 0
    lines = out.read_bytes().decode().split(end)
    assert lines[1].startswith(f'"1"{delimiter}"{_A}{delimiter}"{delimiter}unique')
    assert out.read_bytes().startswith(codecs.BOM_UTF8 + b'"id"')
    reader = csv.reader(io.StringIO(out.read_text("utf-8-sig"), newline=""), strict=True, delimiter=delimiter)
    header, *rows = list(reader)
    assert header == ["id", "text", *(f"twinsieve_{field}" for field in RowMark._fields)]
    assert [row[-1] for row in rows] == [str(line) for line in (2, 3, 4, 5, 6, 7, 9, 10, 11)]
    assert {row[-2] for row in rows} == {str(source)}
    shown = [0, 1, *(2 + RowMark._fields.index(field) for field in _FIELDS)]
    rows = [[row[at] for at in shown] for row in rows]
    q = delimiter
    assert rows == [
        ["1", f"{_A}{q}", "unique", "", "", "1"],
        [f'"2"{q}"1"{q}"too many"', "", "unreadable", "", "", ""],
        ["3", f'{_A}{q} "', "exact", "1", "1.0", "1"],
        ['"4"', "", "unreadable", "", "", ""],
        ["", "", "unique", "", "", "5"],
        [f'"5"{q}"x" y', "", "unreadable", "", "", ""],
        ["6", _B, "unique", "", "", "8"],
        [f'"7"{q}"' + "z" * 251, "", "unreadable", "", "", ""],
        [f'8{q}"open \\xe4', "", "unreadable", "", "", ""],
    ]


@pytest.mark.parametrize("encoding", ["gbk", "gb18030", "utf-16", "utf-16-be", "utf-32"])
@pytest.mark.parametrize("form", ["jsonl", "csv"])
def test_marked_rows_keep_their_encoding(tmp_path: Path, run: Run, encoding: str, form: str) -> None:
    if form == "jsonl":
        rows = [f'{{"text": "{_A}"}}', "{broken 伞", f'{{"text": "{_A}"}}']
        head = ""
    else:
        rows, head = [f"1,{_A}", "2,伞,伞", f"3,{_A}"], "id,text\n"
    source, out = tmp_path / f"in.{form}", tmp_path / f"out.{form}"
    source.write_bytes((head + "\n".join(rows) + "\n").encode(encoding))
    ran = run("dedup", "-q", source, "-o", out, "--mark", "--encoding", encoding, *SMALL)
    assert ran.code == 0
    content = out.read_bytes().decode(encoding)
    assert content.encode(encoding) == out.read_bytes()
    lines = content.splitlines()
    if form == "jsonl":
        first, bad, last = map(_shortened, map(json.loads, lines))
        assert first == {"text": _A, "twinsieve": _mark("unique", cluster=1)}
        assert bad["twinsieve"]["row"] == "{broken 伞"
        assert last["twinsieve"] == _mark("exact", 1, 1.0, 1)
    else:
        table = csv.DictReader(lines)
        assert [(row["id"], row["text"], _of_csv(row)) for row in table] == [
            ("1", _A, _mark("unique", cluster=1)),
            ("2,伞,伞", "", _UNREADABLE),
            ("3", _A, _mark("exact", 1, 1.0, 1)),
        ]


def test_bytes_that_are_no_text_keep_nobody_from_reading_marked_csv(tmp_path: Path, run: Run) -> None:
    source, out = tmp_path / "in.csv", tmp_path / "out.csv"
    source.write_bytes("id,text\n1,伞".encode("utf-16-le") + b"\x00\xd8" + f"\n2,{_A}\n".encode("utf-16-le"))
    assert run("dedup", "-q", source, "-o", out, "--mark", "--encoding", "utf-16-le", *SMALL).code == 0
    table = csv.DictReader(out.read_bytes().decode("utf-16-le").splitlines())
    assert [(row["id"], row["text"], row["twinsieve_verdict"]) for row in table] == [
        ("1,伞\\xed\\xa0\\x80", "", "unreadable"),
        ("2", _A, "unique"),
    ]


@pytest.mark.parametrize("output", ["out.json", "out.jsonl"])
def test_arrays_and_indented_documents_are_marked(tmp_path: Path, run: Run, output: str) -> None:
    posts: list[Any] = [{"text": _A}, {"text": _A}, 5, {"id": 1}]
    source, out = tmp_path / "in.json", tmp_path / output
    source.write_text(json.dumps(posts, indent=2, ensure_ascii=False), "utf-8")
    assert run("dedup", "-q", source, "-o", out, "--mark", *SMALL).code == 0
    found = list(map(_shortened, json.loads(out.read_bytes()))) if output == "out.json" else _lines(out)
    assert [one["twinsieve"]["verdict"] for one in found] == ["unique", "exact", "unreadable", "no_text"]
    assert found[2] == {"twinsieve": _UNREADABLE | {"reason": "not_an_object", "row": "5"}}
    if output == "out.json":
        assert out.read_bytes().startswith(f'[\n  {{\n    "text": "{_A}", "twinsieve": '.encode())


def test_tables_get_one_column_of_structs(tmp_path: Path, run: Run) -> None:
    table = pa.table({"text": [_A, None, _A], "n": [1, 2, 3]}).replace_schema_metadata({"made by": "a test"})
    pq.write_table(table, tmp_path / "in.parquet", compression="zstd")
    out = tmp_path / "out.parquet"
    assert run("dedup", "-q", tmp_path / "in.parquet", "-o", out, "--mark", *SMALL).code == 0
    found = pq.read_table(out)
    assert found.drop_columns("twinsieve").equals(table, check_metadata=True)
    assert [_shortened({"twinsieve": mark})["twinsieve"] for mark in found["twinsieve"].to_pylist()] == [
        _mark("unique", cluster=1),
        _mark("no_text"),
        _mark("exact", 1, 1.0, 1),
    ]


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        (
            "in.jsonl",
            '{"text": "a"}\n\n{"text": "b", "twinsieve": 1}\n',
            ":3: has a member 'twinsieve' already",
        ),
        ("in.jsonl", '{"text": "a"}\n{"id": "b", "twinsieve": 1}\n', ":2: has a member 'twinsieve' already"),
        ("in.csv", "text,twinsieve_leader\na,1\n", ":1: has a column 'twinsieve_leader' already"),
        ("in.parquet", "", ": has a column 'twinsieve' already"),
    ],
)
def test_rows_that_are_marked_already_are_refused(
    tmp_path: Path, run: Run, name: str, content: str, said: str
) -> None:
    source, out = tmp_path / name, tmp_path / f"out{Path(name).suffix}"
    source.write_text(content)
    if name == "in.parquet":
        pq.write_table(pa.table({"text": ["a"], "twinsieve": [1]}), source)
    ran = run("dedup", "-q", source, "-o", out, "--mark", *SMALL)
    advice = "which --mark would add; remove it first, or run without --mark"
    assert (ran.code, ran.err) == (1, f"twinsieve: {source}{said}, {advice}\n")
    assert not out.exists()
    assert run("dedup", "-q", source, "-o", out, *SMALL).code == 0


def test_plain_lines_are_refused(tmp_path: Path, run: Run) -> None:
    (tmp_path / "in.txt").write_text("a\n")
    ran = run("dedup", "-q", tmp_path / "in.txt", "-o", tmp_path / "out.txt", "--mark", *SMALL)
    said = "--mark: plain lines have no fields to add to; name them with --duplicates, or turn them into JSON lines first"
    assert (ran.code, ran.err) == (2, f"twinsieve: {said}\n")


def test_a_stream_shows_each_marked_row_at_once(started: Start) -> None:
    row = b'{"text": "a row"}\n'
    with started("dedup", "-q", "--mark", *SMALL) as running:
        for content, verdict in ((row, "unique"), (row, "exact"), (b"no\n", "unreadable")):
            assert json.loads(running.answer_to(content))["twinsieve"]["verdict"] == verdict
        assert running.end() == (0, b"")


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.sampled_from('a"\\[]{},\n你 '), max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(
    st.dictionaries(st.text(st.sampled_from('a"{}'), max_size=3), _VALUES, max_size=3),
    st.booleans(),
    st.booleans(),
)
def test_any_object_takes_the_member(
    tmp_path_factory: pytest.TempPathFactory, members: Any, indented: bool, escaped: bool
) -> None:
    source = tmp_path_factory.mktemp("f") / "in.json"
    document = json.dumps(members | {"text": "a"}, indent=1 if indented else None, ensure_ascii=escaped)
    source.write_text(document, "utf-8")
    reader = InputReader(Settings(), JsonDocuments(), whole=True, marks=True)
    with InputSource(str(source)) as opened:
        (chunk,) = reader.chunks(opened)
    mark = RowMark("near", 1, leader_id=Written('"é"'.encode()), similarity=0.9, cluster=1, says="é😀")
    with Output("/dev/null") as output:
        row = cast(JsonWriter, reader.writer(output)).marked(chunk, 0, mark, None)
    said = mark._asdict() | {"leader_id": "é", "flags": []}
    assert json.loads(row) == members | {"text": "a", "twinsieve": said}
    before, _, after = row.partition(b', "twinsieve": {"verdict"')
    assert (before + after[after.index(b"}") + 1 :]).decode() == document
