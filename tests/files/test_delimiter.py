"""CSV with other delimiters than a comma: read and written the same, and told where nobody said so."""

from __future__ import annotations

import csv
import gzip
import io
from pathlib import Path

import pytest

from tests.calling import SMALL, Run
from tests.row_files import read_lines

_TABLE = [
    ["id", "text"],
    ["1", 'a "quoted" one;\t|, with\nall of them'],
    ["2", "another one, and quite so"],
    ["2", ""],
]


def _written(table: list[list[str]], delimiter: str) -> bytes:
    made = io.StringIO()
    csv.writer(made, delimiter=delimiter, lineterminator="\n").writerows(table)
    return made.getvalue().encode()


@pytest.mark.parametrize(
    ("name", "delimiter", "said"),
    [
        ("p.csv", ";", ["--delimiter", ";"]),
        ("p.csv", "|", ["--delimiter", "|"]),
        ("p.csv", "\t", ["--delimiter", "tab"]),
        ("p.csv", "\t", ["--delimiter", "\\t"]),
        ("p.csv", "\t", ["--format", "tsv"]),
        ("p.tsv", "\t", []),
        ("p.tsv.gz", "\t", []),
        ("p.tsv", ";", ["--delimiter", ";"]),
        ("p.tsv", "\t", ["--format", "csv"]),
        ("p", ";", ["--delimiter", ";"]),
    ],
)
def test_rows_come_out_with_the_delimiter_they_came_with(
    tmp_path: Path, run: Run, name: str, delimiter: str, said: list[str]
) -> None:
    source, out, dropped = tmp_path / name, tmp_path / f"out-{name}", tmp_path / "d.jsonl"
    source.write_bytes(_written([*_TABLE[:3], _TABLE[1]], delimiter))
    ran = run("dedup", "-q", source, "-o", out, "--duplicates", dropped, *said, *SMALL)
    assert (ran.code, ran.err) == (0, "")
    content = out.read_bytes()
    if name.endswith(".gz"):
        content = gzip.decompress(content)
    assert content == _written(_TABLE[:3], delimiter)
    assert [entry["text"] for entry in read_lines(dropped)] == [_TABLE[1][1]]


@pytest.mark.parametrize(("delimiter", "shown"), [(";", "';'"), ("\t", "tab"), ("|", "'|'")])
@pytest.mark.parametrize("fields", [[], ["--text-field", "id"], ["--text-field", "body"]])
def test_a_header_that_looks_like_another_delimiter_says_so(
    tmp_path: Path, run: Run, delimiter: str, shown: str, fields: list[str]
) -> None:
    source = tmp_path / "p.csv"
    source.write_bytes(_written([["id", "text", "a, b"], ["1", "x", "y"]], delimiter))
    ran = run("dedup", "-q", source, "-o", tmp_path / "out", *fields, *SMALL)
    assert ran.code == 2
    wanted = fields[-1] if fields else "text"
    assert ran.err == (
        f"twinsieve: {source}:1: has no column {wanted!r}; its columns look separated by {shown}: "
        f"add --delimiter {shown}\n"
    )


@pytest.mark.parametrize(("column", "meant"), [("body", ""), ("Text", "did you mean 'Text'? ")])
def test_a_header_that_lacks_the_column_names_those_there_are(
    tmp_path: Path, run: Run, column: str, meant: str
) -> None:
    source = tmp_path / "p.csv"
    source.write_text(f"id,{column}\n1,a\n")
    ran = run("dedup", "-q", source, *SMALL)
    facts = (f"{source}:1", "'text'", f"but 'id', {column!r}", f"{meant}name one with --text-field")
    assert (ran.code, [fact for fact in facts if fact not in ran.err]) == (2, [])


@pytest.mark.parametrize(
    ("said", "error"),
    [
        (["--delimiter", ""], "--delimiter '': must be an ASCII character"),
        (["--delimiter", "；"], "--delimiter '；': must be an ASCII character"),
        (["--delimiter", ";a"], "--delimiter ';a': cannot have a quote"),
        (
            ["--delimiter", '"'],
            "--delimiter '\"': cannot have a quote, a letter, a digit or the end of a line",
        ),
        (
            ["--delimiter", ";", "--format", "jsonl"],
            "--delimiter: is for CSV or TSV, but the format is jsonl",
        ),
    ],
)
def test_what_is_no_delimiter_is_refused(tmp_path: Path, run: Run, said: list[str], error: str) -> None:
    (tmp_path / "p.csv").write_bytes(b"id;text\n")
    ran = run("dedup", "-q", tmp_path / "p.csv", *said, *SMALL)
    assert (ran.code, ran.err.startswith(f"twinsieve: {error}")) == (2, True)


def test_other_commands_take_a_delimiter_too(tmp_path: Path, run: Run) -> None:
    source = tmp_path / "p.tsv"
    source.write_bytes(_written([["id", "text"], ["1", "so it is today"], ["2", "so it is today!"]], "\t"))
    assert "verdict" in run("explain", "--input", source, "--id", "1", "--id", "2").out
    source = source.rename(tmp_path / "p.csv")
    assert "verdict" in run("explain", "--input", source, "--id", "1", "--id", "2", "--delimiter", "tab").out
