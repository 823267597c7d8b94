"""CSV as folders hold it: empty files, and columns in any order."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.calling import SMALL, Ran, Run
from twinsieve.pipeline.files.formats.csv_fields import Dialect


@pytest.mark.parametrize("empty", [b"", b"\xef\xbb\xbf", b"\n"])
def test_an_empty_csv_is_an_input_without_rows(tmp_path: Path, run: Run, empty: bytes) -> None:
    for name, content in (("a", empty), ("b", b"id,text\n1,one\n"), ("c", empty), ("d", b"id,text\n2,two\n")):
        (tmp_path / f"{name}.csv").write_bytes(content)
    inputs = sorted(tmp_path.iterdir())
    assert run("dedup", "-q", *inputs, "-o", tmp_path / "out.csv", *SMALL) == Ran(0, "", "")
    assert (tmp_path / "out.csv").read_bytes() == b"id,text\n1,one\n2,two\n"
    assert run("dedup", "-q", inputs[0], "-o", tmp_path / "none.csv", *SMALL) == Ran(0, "", "")
    assert (tmp_path / "none.csv").read_bytes() == b""


def test_an_input_without_rows_is_said_in_a_line(tmp_path: Path, run: Run) -> None:
    (tmp_path / "none.jsonl").write_bytes(b"")
    (tmp_path / "one.jsonl").write_text('{"text": "a row"}\n')
    said = [
        run("dedup", *(tmp_path / name for name in names), "-o", tmp_path / "out", *SMALL).err
        for names in (["none.jsonl"], ["none.jsonl", "none.jsonl"], ["one.jsonl"])
    ]
    assert said[0].splitlines()[-1].startswith(f"{tmp_path}/none.jsonl: no rows")
    assert said[1].splitlines()[-1].startswith("all 2 inputs: no rows")
    assert "no rows" not in said[2]


def test_an_empty_line_before_rows_is_no_header(tmp_path: Path, run: Run) -> None:
    (tmp_path / "a.csv").write_text("\nid,text\n1,one\n")
    ran = run("dedup", "-q", tmp_path / "a.csv", "-o", tmp_path / "out.csv", *SMALL)
    assert (ran.code, "has no header row" in ran.err) == (1, True)


def test_rows_of_columns_in_another_order_come_out_in_the_first_order(tmp_path: Path, run: Run) -> None:
    (tmp_path / "a.csv").write_bytes(b"id,text,n\n1,one,a\n")
    (tmp_path / "b.csv").write_bytes(
        b'\xef\xbb\xbftext,n,id\r\n"t, ""w"" o",b,2\r\none,c,3\r\ntoo,few\r\n"three\nlines", "q" ,4\r\n'
    )
    (tmp_path / "c.csv").write_bytes(b"id,text,n\n9,four,d")
    inputs = [tmp_path / f"{name}.csv" for name in "abc"]
    dead = tmp_path / "dead"
    ran = run("dedup", "-q", *inputs, "-o", tmp_path / "out.csv", "--dead-letter", dead, *SMALL)
    order, unreadable = ran.err.splitlines()
    said = "columns in another order than in the first input; rows come out in its order"
    assert (ran.code, order) == (0, f"{inputs[1]}: {said}")
    assert "1 of 6 rows" in unreadable
    assert (tmp_path / "out.csv").read_bytes() == (
        b'id,text,n\n1,one,a\n2,"t, ""w"" o",b\r\n4,"three\nlines", "q" \r\n9,four,d'
    )
    assert b'"raw":"too,few\\r"' in dead.read_bytes()


def test_the_second_pass_has_the_same_order(tmp_path: Path, run: Run) -> None:
    (tmp_path / "a.csv").write_bytes(b"id,text\n1,one row of many\n")
    (tmp_path / "b.csv").write_bytes(b"text,id\none row of many,2\n")
    inputs = [tmp_path / "a.csv", tmp_path / "b.csv"]
    assert run("dedup", "-q", *inputs, "-o", tmp_path / "out.csv", "--keep", "last", *SMALL).code == 0
    assert (tmp_path / "out.csv").read_bytes() == b"id,text\n2,one row of many\n"


def test_another_encoding_keeps_its_bytes(tmp_path: Path, run: Run) -> None:
    # The second byte of the first character is a |.
    (tmp_path / "a.csv").write_bytes("id|text\n1|伞\n".encode("gbk"))
    (tmp_path / "b.csv").write_bytes(b"text|id\n" + b"\x81\x7c" + "带|2\n".encode("gbk"))
    call = ("--encoding", "gbk", "--delimiter", "|", *SMALL)
    out = tmp_path / "out.csv"
    assert run("dedup", "-q", tmp_path / "a.csv", tmp_path / "b.csv", "-o", out, *call).code == 0
    assert out.read_bytes() == "id|text\n1|伞\n".encode("gbk") + b"2|\x81\x7c" + "带\n".encode("gbk")


@given(
    st.lists(st.text(st.sampled_from('a",\n '), max_size=5), min_size=1, max_size=5),
    st.sampled_from([0, 1, 2]),
)
def test_fields_as_they_are_spelt_are_those_that_csv_reads(fields: list[str], quoting: int) -> None:
    written = io.StringIO()
    csv.writer(written, quoting=quoting, lineterminator="\n").writerow(fields)
    record = written.getvalue().removesuffix("\n")
    spelt = Dialect(",").spelt(record)
    assert ",".join(spelt) == record
    assert [(Dialect(",").fields(one) or [""])[0] for one in spelt] == (Dialect(",").fields(record) or [""])


@given(st.text(st.sampled_from('a",'), max_size=12))
def test_any_record_that_csv_reads_is_cut_where_csv_cuts_it(record: str) -> None:
    read = Dialect(",").fields(record)
    if read is not None:
        assert [(Dialect(",").fields(one) or [""])[0] for one in Dialect(",").spelt(record)] == read
