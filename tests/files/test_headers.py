"""Headers of CSV as people have them: names twice or none, once more in the midst, in quotes, or no header."""

from __future__ import annotations

import codecs
import csv
import io
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.calling import SMALL, Run, setting
from tests.row_files import read_lines
from twinsieve.pipeline.files.formats.csv import _with_repeats
from twinsieve.pipeline.files.rows import Rows, split_lines

_TEXTS = ["The harbour bridge opens again on Sunday", "Nobody has seen the grey cat of the baker"]


def _file(path: Path, header: str, ends: str = "", newline: str = "\n") -> Path:
    rows = [header, f"1,{_TEXTS[0]}{ends}", f"2,{_TEXTS[1]}{ends}", f"3,{_TEXTS[0]}{ends}", ""]
    path.write_bytes(newline.join(rows).encode())
    return path


@pytest.mark.parametrize(
    ("header", "ends"),
    [
        ("id,v2,,,", ",,,"),
        ("id,v2,,", ",x,y"),
        ("id,v2,", ","),
        (",v2,", ","),
        ("id,v2,n,n", ",a,b"),
        ("n,v2,n", ",a"),
        ('id,v2,"",""', ',"","a\nb"'),
    ],
)
def test_columns_that_nothing_asks_for_may_have_any_name(
    tmp_path: Path, run: Run, header: str, ends: str
) -> None:
    source, out = _file(tmp_path / "a.csv", header, ends), tmp_path / "out.csv"
    ran = run("dedup", "-q", source, "--text-field", "v2", "-o", out, *SMALL)
    assert (ran.code, ran.err) == (0, "")
    assert out.read_bytes() == source.read_bytes()[: -len(f"3,{_TEXTS[0]}{ends}\n")]


@pytest.mark.parametrize(
    ("header", "asked"),
    [
        ("text,text", ()),
        ("text,id,id", ()),
        ("text,n,n", setting("scope=[n]")),
        ("text,n,n", setting("exact.fields=[n]", "near.method=text")),
        ("text,n,n", ("--time-field", "n")),
        ("text,v,v", ("--text-field", "text", "--text-field", "v")),
    ],
)
def test_a_column_that_a_setting_asks_for_has_a_name_of_its_own(
    tmp_path: Path, run: Run, header: str, asked: tuple[str, ...]
) -> None:
    names = header.split(",")
    source = tmp_path / "a.csv"
    source.write_text(f"{header}\n{','.join('x' for _ in names)}\n")
    ran = run("dedup", "-q", source, *asked, *SMALL)
    assert (ran.code, ran.out) == (1, "")
    assert all(fact in ran.err for fact in (f"{source}:1", repr(names[-1]), "twice"))


def test_columns_of_one_name_keep_their_order_in_another_input(tmp_path: Path, run: Run) -> None:
    (tmp_path / "a.csv").write_text("n,text,n,\n1,one of many rows,2,3\n")
    (tmp_path / "b.csv").write_text(",n,n,text\n3,1,2,quite another thing\n")
    out = tmp_path / "out.csv"
    ran = run("dedup", "-q", tmp_path / "a.csv", tmp_path / "b.csv", "-o", out, *SMALL)
    assert (ran.code, out.read_text()) == (
        0,
        "n,text,n,\n1,one of many rows,2,3\n1,quite another thing,2,3\n",
    )
    (tmp_path / "b.csv").write_text("n,text,,\n1,quite another thing,2,3\n")
    ran = run("dedup", "-q", tmp_path / "a.csv", tmp_path / "b.csv", "-o", out, *SMALL)
    assert (ran.code, "added: ''" in ran.err, "missing: 'n'" in ran.err) == (1, True, True)


_PARTS = [b"id,text\n1,first words\n", b"id,text\n2,second thing\n", b"id,text\n3,third one"]


@pytest.mark.parametrize("newline", [b"\n", b"\r\n"])
@pytest.mark.parametrize("mark", [b"", codecs.BOM_UTF8])
@pytest.mark.parametrize("header", [b"id,text", b'"id","text"', b'"id",text,"a\nb"'])
@pytest.mark.parametrize("more", [(), ("--mark",), ("--keep", "last")])
def test_the_header_once_more_is_left_out_and_counted(
    tmp_path: Path, run: Run, newline: bytes, mark: bytes, header: bytes, more: tuple[str, ...]
) -> None:
    wide = b",x" if header.endswith(b'"a\nb"') else b""
    rows = [b"%d,words of row %d%s" % (number, number, wide) for number in range(4)]
    lines = [mark + header, rows[0], mark + header, header, rows[1], rows[2], header, rows[3], header]
    source, out, stats = tmp_path / "a.csv", tmp_path / "out.csv", tmp_path / "stats"
    source.write_bytes(newline.join(lines))
    ran = run("dedup", source, "-o", out, "--stats", stats, *more, *setting("near.method=none"), *SMALL)
    assert (ran.code, "4 left out" in ran.err) == (0, True)
    counted = json.loads(stats.read_bytes())
    assert (counted["rows"], counted["headers"], counted["blank"]) == (4, 4, 0)
    content = out.read_bytes()
    if more == ("--mark",):
        read = list(csv.DictReader(io.StringIO(content.decode("utf-8-sig"), newline="")))
        first = 1 + header.count(b"\n")
        assert [int(row["twinsieve_line"]) for row in read] == [
            1 + first,
            2 + first * 3,
            3 + first * 3,
            4 + first * 4,
        ]
    else:
        assert content == newline.join([mark + header, *rows]) + newline


def test_a_header_of_another_spelling_is_a_row(tmp_path: Path, run: Run) -> None:
    rows = [
        "id,text",
        "1,words",
        "id, text",
        '"id",text',
        "ID,text",
        "id,text,",
        "id",
        "id,text ",
        " id,text",
    ]
    source, dead = tmp_path / "a.csv", tmp_path / "dead"
    source.write_text("\n".join(rows) + "\n")
    ran = run("dedup", "-q", source, "-o", tmp_path / "out.csv", "--mark", "--dead-letter", dead, *SMALL)
    assert (ran.code, len((tmp_path / "out.csv").read_text().splitlines())) == (0, len(rows))
    assert [entry["line"] for entry in read_lines(dead)] == [6, 7]


def test_a_text_equal_to_the_name_of_the_only_column_is_a_text(tmp_path: Path, run: Run) -> None:
    source = tmp_path / "a.csv"
    source.write_text("text\nsome words\ntext\nother things\n")
    ran = run("dedup", "-q", source, *SMALL)
    assert (ran.code, ran.out) == (0, source.read_text())


def test_each_input_has_its_own_header(tmp_path: Path, run: Run) -> None:
    (tmp_path / "a.csv").write_text("id,text\n1,some words\ntext,id\n")
    (tmp_path / "b.csv").write_text("text,id\nother things,2\ntext,id\nid,text\n")
    out = tmp_path / "out.csv"
    ran = run("dedup", tmp_path / "a.csv", tmp_path / "b.csv", "-o", out, *SMALL)
    assert (ran.code, "1 left out" in ran.err) == (0, True)
    assert out.read_text() == "id,text\n1,some words\ntext,id\n2,other things\n"


_LINE = st.sampled_from([b"id,text", b"id,text\r", codecs.BOM_UTF8 + b"id,text", b"", b"id,tex", b"xid,text"])


@given(st.lists(_LINE, max_size=8), st.booleans())
def test_repeats_are_the_rows_equal_to_the_header(lines: list[bytes], in_one_piece: bool) -> None:
    batches = [Rows([*lines], 1)]
    if in_one_piece:
        batches = [*split_lines(iter([b"".join(line + b"\n" for line in lines)]), 100)]
    for batch in batches:
        twin = [at for at, line in enumerate(lines) if line.decode("utf-8-sig").strip() == "id,text"]
        found = _with_repeats(batch, b"id,text\r")
        assert [*found.repeats] == twin
        assert [*found.filled()] == [at for at, line in enumerate(lines) if line.strip() and at not in twin]


@pytest.mark.parametrize("other", [";", "|", "\t"])
@pytest.mark.parametrize("more", [(), ("--text-field", "body")])
def test_a_header_in_quotes_that_another_delimiter_fits_says_so(
    tmp_path: Path, run: Run, other: str, more: tuple[str, ...]
) -> None:
    source = tmp_path / "a.csv"
    source.write_text(f'"id"{other}"text"\n"1"{other}"some, words"\n')
    ran = run("dedup", "-q", source, *more, *SMALL)
    shown = "tab" if other == "\t" else repr(other)
    assert (ran.code, f"--delimiter {shown}" in ran.err, f"{source}:1" in ran.err) == (2, True, True)


@pytest.mark.parametrize("first", ["sep=;", "SEP=;\r", '"sep=;"', "sep=\t", "sep=,"])
def test_a_line_for_spreadsheets_is_told(tmp_path: Path, run: Run, first: str) -> None:
    delimiter = first.strip('\r"')[-1]
    source = tmp_path / "a.csv"
    source.write_bytes(f"{first}\nid{delimiter}text\n1{delimiter}words\n".encode())
    shown = "tab" if delimiter == "\t" else repr(delimiter)
    for more in ((), ("--no-header", "--text-field", "2")):
        ran = run("dedup", "-q", source, *more, *SMALL)
        assert (ran.code, f"--delimiter {shown}" in ran.err, f"{source}:1" in ran.err) == (2, True, True)


def test_a_blank_before_a_quote_is_told(tmp_path: Path, run: Run) -> None:
    source, dead = tmp_path / "a.csv", tmp_path / "dead"
    source.write_text('id, "text"\n1, "a, b"\n')
    ran = run("dedup", "-q", source, *SMALL)
    assert (ran.code, "blank" in ran.err, "' \"text\"'" in ran.err) == (2, True, True)
    source.write_text('id,text\n1, "a, b"\n2,words\n3,a,b\n')
    assert run("dedup", "-q", source, "--dead-letter", dead, *SMALL).code == 0
    first, other = read_lines(dead)
    assert ("blank" in first["detail"], "blank" in other["detail"]) == (True, False)


_BARE = f'1,{_TEXTS[0]}\n2,"{_TEXTS[1]},\nand more"\n3,{_TEXTS[0]}\n1,{_TEXTS[0]}\n'


@pytest.mark.parametrize("mark", [b"", codecs.BOM_UTF8])
@pytest.mark.parametrize(("name", "other"), [("a.csv", ","), ("a.csv.gz", ","), ("a.tsv", "\t")])
def test_without_a_header_columns_have_numbers(
    tmp_path: Path, run: Run, name: str, other: str, mark: bytes
) -> None:
    source, out, dropped = tmp_path / name.removesuffix(".gz"), tmp_path / "out.csv", tmp_path / "d.jsonl"
    source.write_bytes(mark + _BARE.replace(",", other).encode())
    call = ("--no-header", "--text-field", "2", "--id-field", "1", *SMALL)
    ran = run("dedup", "-q", source, "-o", out, "--format", source.suffix[1:], "--duplicates", dropped, *call)
    assert (ran.code, ran.err) == (0, "")
    assert out.read_text() == "".join(_BARE.replace(",", other).splitlines(keepends=True)[:3])
    rows = read_lines(dropped)
    assert [(row["id"], row["line"], row["duplicate_of"]) for row in rows] == [("3", 4, 1), ("1", 5, 1)]
    marked = run("dedup", "-q", source, "--mark", *call)
    assert marked.out.splitlines()[0].split(other)[2] == "unique"


def test_inputs_without_a_header_have_equally_many_columns(tmp_path: Path, run: Run) -> None:
    (tmp_path / "a.csv").write_text("1,some words\n")
    (tmp_path / "b.csv").write_text("2,other things\n3,some words\n")
    (tmp_path / "c.csv").write_text("2,other things,x\n")
    call = ("--no-header", "--text-field", "2", *SMALL)
    ran = run("dedup", "-q", tmp_path / "a.csv", tmp_path / "b.csv", *call)
    assert (ran.code, ran.out) == (0, "1,some words\n2,other things\n")
    ran = run("dedup", "-q", tmp_path / "a.csv", tmp_path / "c.csv", *call)
    assert (ran.code, f"{tmp_path / 'c.csv'}:1" in ran.err, "'3'" in ran.err) == (1, True, True)


def test_without_a_header_the_first_row_shows_the_columns(tmp_path: Path, run: Run) -> None:
    source = tmp_path / "a.csv"
    for content, code, fact in (
        ("1,some words\n2,a,b\n", 1, "first row 2"),
        ("1,some words\n", 2, "but '1', '2'"),
        ('1,"open\n', 1, f"{source}:1"),
        ("\n1,some words\n", 1, "--no-header"),
        ("", 0, ""),
    ):
        source.write_text(content)
        text = "3" if code == 2 else "2"
        ran = run("dedup", "-q", source, "--no-header", "--text-field", text, *SMALL)
        assert (ran.code, fact in ran.err) == (code, True), (content, ran)
    ran = run("dedup", "-q", source, "--no-header", "--format", "jsonl", *SMALL)
    assert (ran.code, "--no-header" in ran.err) == (2, True)


@pytest.mark.parametrize("more", [(), ("--no-header",)])
def test_a_header_over_the_limit_is_told_with_its_size(
    tmp_path: Path, run: Run, more: tuple[str, ...]
) -> None:
    source = tmp_path / "a.csv"
    source.write_text("1," * 900 + "text\n" + "1," * 900 + "some words\n")
    call = ("dedup", "-q", source, *more, "--text-field", "901" if more else "text", *SMALL)
    ran = run(*call, *setting("input.max_bytes=1KiB"))
    assert (ran.code, ran.out) == (1, "")
    size = f"{900 * len('1,') + len('text'):,}"
    assert [fact for fact in (f"{source}:1: ", size, "input.max_bytes=2KiB") if fact not in ran.err] == []
    assert run(*call, *setting("input.max_bytes=2KiB")).code == 0


@pytest.mark.parametrize("mark", [b"", codecs.BOM_UTF8])
@pytest.mark.parametrize(
    "name", [" text ", "TEXT", "\xa0text", "text\t", "\ufefftext", "Text", "text.", "te xt"]
)
def test_a_name_that_is_nearly_the_one_asked_for_is_told_and_can_be_given(
    tmp_path: Path, run: Run, name: str, mark: bytes
) -> None:
    source, out = tmp_path / "a.csv", tmp_path / "out.csv"
    source.write_bytes(mark + f"id,{name}\n1,some words\n".encode())
    ran = run("dedup", "-q", source, "-o", out, *SMALL)
    assert (ran.code, ran.out, out.exists()) == (2, "", False)
    facts = (f"{source}:1: ", f"mean {name!r}", "--text-field", "--no-header")
    assert [fact for fact in facts if fact not in ran.err] == []
    assert run("dedup", "-q", source, "-o", out, "--text-field", name, *SMALL).code == 0
    assert out.read_bytes() == source.read_bytes()


@pytest.mark.parametrize(
    ("before", "code", "facts"),
    [
        ("# made by a tool\n", 2, ["a.csv:1: ", "'# made by a tool'"]),
        ("\n", 1, ["a.csv", "header"]),
        ("Export of March,\n", 2, ["a.csv:1: ", "'Export of March'"]),
        ("---\n", 2, ["a.csv:1: ", "'---'"]),
    ],
)
def test_a_line_above_the_header_is_told(
    tmp_path: Path, run: Run, before: str, code: int, facts: list[str]
) -> None:
    source, out = tmp_path / "a.csv", tmp_path / "out.csv"
    source.write_text(f"{before}id,text\n1,some words\n")
    ran = run("dedup", "-q", source, "-o", out, *SMALL)
    assert (ran.code, out.exists(), len(ran.err.splitlines())) == (code, False, 1)
    assert [fact for fact in facts if fact not in ran.err] == []


def test_a_first_row_that_may_be_none_gets_the_hint_at_no_header(tmp_path: Path, run: Run) -> None:
    (tmp_path / "a.csv").write_text("1,some words\n2,other things\n")
    ran = run("dedup", "-q", tmp_path / "a.csv", *SMALL)
    assert (ran.code, "--no-header" in ran.err) == (2, True)


def test_other_commands_read_without_a_header_too(tmp_path: Path, run: Run) -> None:
    (tmp_path / "a.csv").write_text("1,so it is today\n2,so it is today!\n")
    call = ("--no-header", "--text-field", "2", "--id-field", "1", "--input", tmp_path / "a.csv")
    assert "verdict" in run("explain", "--id", "1", "--id", "2", *call).out


@pytest.mark.parametrize(("twice", "code"), [("n", 0), ("text", 1)])
def test_a_table_may_have_names_twice_that_nothing_asks_for(
    tmp_path: Path, run: Run, twice: str, code: int
) -> None:
    for name, names, cells in (
        ("a", ["text", twice, twice], ["some words", "1", "2"]),
        ("b", [twice, twice, "text"], ["3", "4", "other things"]),
    ):
        table = pa.Table.from_arrays([pa.array([cell]) for cell in cells], names)
        pq.write_table(table, tmp_path / f"{name}.parquet")
    out = tmp_path / "out.parquet"
    ran = run("dedup", "-q", tmp_path / "a.parquet", tmp_path / "b.parquet", "-o", out, *SMALL)
    assert (ran.code, "twice" in ran.err) == (code, bool(code))
    if not code:
        table = pq.ParquetFile(out).read()
        assert table.schema.names == ["text", "n", "n"]
        assert [column.to_pylist() for column in table.columns] == [
            ["some words", "other things"],
            ["1", "3"],
            ["2", "4"],
        ]
