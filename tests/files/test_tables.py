"""Parquet and Arrow files: kept rows come out with all columns and types, and are judged as JSON lines are."""

from __future__ import annotations

import datetime as dt
import json
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import feather
from pyarrow import parquet as pq

from tests.calling import SMALL, Piped, Run, setting
from tests.generated_posts import generate
from tests.row_files import read_lines, write_rows

_TEXT = "今天武汉下雨了，大家出门记得带伞，注意安全。"


def _wide(count: int = 40) -> pa.Table:
    """Every third text repeats the one before."""
    texts = [f"第{n - (n % 3 == 2)}个句子和别的都不一样{(n - (n % 3 == 2)) * 7919}" for n in range(count)]
    stamp = dt.datetime(2020, 2, 12, tzinfo=dt.UTC)
    return pa.table(
        {
            "id": pa.array(range(count), pa.int32()),
            "text": pa.array(texts).dictionary_encode(),
            "created_at": pa.array(
                [stamp + dt.timedelta(seconds=n) for n in range(count)], pa.timestamp("ns", "UTC")
            ),
            "price": pa.array([Decimal(n) / 100 for n in range(count)], pa.decimal128(12, 2)),
            "tags": pa.array([[str(n)] * (n % 3) for n in range(count)]),
            "user": pa.array([{"name": f"u{n}", "born": dt.date(1990, 1, 1)} for n in range(count)]),
            "raw": pa.array([b"\xff\x00"] * count),
            "none": pa.nulls(count),
        }
    ).replace_schema_metadata({"made by": "a test"})


def _write(table: pa.Table, path: Path, rows: int = 7) -> Path:
    if path.suffix == ".parquet":
        pq.write_table(table, path, row_group_size=rows, compression="zstd")
    elif path.suffix == ".arrows":
        with pa.ipc.new_stream(path, table.schema) as writer:
            writer.write_table(table, max_chunksize=rows)
    else:
        feather.write_feather(table.unify_dictionaries(), path, compression="uncompressed", chunksize=rows)
    return path


def _read(path: Path) -> pa.Table:
    if path.suffix == ".parquet":
        return pq.read_table(path)
    if path.suffix == ".arrows":
        with pa.OSFile(str(path)) as file, pa.ipc.open_stream(file) as reader:
            return reader.read_all()
    return feather.read_table(path, memory_map=False)


_ENDINGS = [".parquet", ".arrow", ".feather", ".arrows"]


@pytest.mark.parametrize("ending", _ENDINGS)
def test_kept_rows_have_all_columns_and_types(tmp_path: Path, run: Run, ending: str) -> None:
    table = _wide()
    source, out = _write(table, tmp_path / f"p{ending}"), tmp_path / f"o{ending}"
    ran = run("dedup", "-q", source, "-o", out, "--duplicates", tmp_path / "d", *SMALL)
    assert (ran.code, ran.err) == (0, "")
    found = _read(out)
    assert found.schema.equals(_read(source).schema, check_metadata=True)
    assert found.to_pylist() == [row for at, row in enumerate(table.to_pylist()) if at % 3 != 2]
    dropped = [(entry["position"], entry["id"]) for entry in read_lines(tmp_path / "d")]
    assert dropped == [(at + 1, at) for at in range(2, 40, 3)]


@pytest.mark.parametrize("ending", _ENDINGS)
def test_a_table_is_judged_as_json_lines_are(tmp_path: Path, run: Run, ending: str) -> None:
    posts = list(generate(1500, seed=5))
    lines = write_rows(tmp_path / "p.jsonl", posts)
    source, out = _write(pa.Table.from_pylist(posts), tmp_path / f"p{ending}", 400), tmp_path / f"o{ending}"
    for name, kept, dropped in ((source, out, "a"), (lines, tmp_path / "o.jsonl", "b")):
        ran = run("dedup", "-q", name, "-o", kept, "--duplicates", tmp_path / dropped, *SMALL)
        assert (ran.code, ran.err) == (0, "")
    shown = [json.dumps(str(name)).encode() for name in (source, lines)]
    assert (tmp_path / "a").read_bytes().replace(*shown) == (tmp_path / "b").read_bytes()
    assert _read(out).to_pylist() == read_lines(tmp_path / "o.jsonl")


def test_several_inputs_and_small_batches_give_few_row_groups(tmp_path: Path, run: Run) -> None:
    names = [_write(_wide(30), tmp_path / f"{n}.parquet", 3) for n in range(2)]
    assert run("dedup", "-q", *names, "-o", tmp_path / "o.parquet", *SMALL).code == 0
    found = pq.ParquetFile(tmp_path / "o.parquet")
    assert (found.num_row_groups, found.metadata.num_rows) == (1, 20)
    assert found.metadata.row_group(0).column(0).compression == "ZSTD"
    found.close()


def test_inputs_of_other_columns_are_refused(tmp_path: Path, run: Run) -> None:
    names = [
        _write(table, tmp_path / f"{n}.parquet")
        for n, table in enumerate([_wide(), _wide().select(["text"])])
    ]
    ran = run("dedup", "-q", *names, "-o", tmp_path / "o.parquet", *SMALL)
    assert ran.code == 1
    assert ran.err.startswith(f"twinsieve: {names[1]}: has other columns than {names[0]} (missing: ")
    assert "); write each input to a file of its own with -o FOLDER/" in ran.err
    assert not (tmp_path / "o.parquet").exists()


def test_columns_in_another_order_are_one_table(tmp_path: Path, run: Run) -> None:
    table = _wide()
    turned = table.select(list(reversed(table.column_names)))
    names = [_write(one, tmp_path / f"{n}.parquet") for n, one in enumerate([table, turned])]
    ran = run("dedup", "-q", *names, "-o", tmp_path / "o.parquet", *SMALL)
    assert ran.code == 0
    assert ran.err.startswith(f"{names[1]}: columns in another order")
    assert run("dedup", "-q", names[0], "-o", tmp_path / "p.parquet", *SMALL).code == 0
    assert pq.read_table(tmp_path / "o.parquet").equals(pq.read_table(tmp_path / "p.parquet"))


def test_a_missing_column_names_those_there_are(tmp_path: Path, run: Run) -> None:
    source = _write(_wide().select(["id", "raw"]), tmp_path / "p.parquet")
    ran = run("dedup", "-q", source, "-o", tmp_path / "o.parquet", *SMALL)
    assert (ran.code, ran.err) == (
        2,
        f"twinsieve: {source}: has no column 'text' but 'id', 'raw'; name one with --text-field; "
        "if the rows have no text, add --set input.expect_text=false\n",
    )
    assert "did you mean 'raw'?" in run("dedup", "-q", source, "--text-field", "Raw", *SMALL).err


def test_rows_that_are_no_text_are_counted_and_not_kept(tmp_path: Path, run: Run) -> None:
    bad = pa.Array.from_buffers(
        pa.string(), 2, [None, pa.py_buffer(b"\0\0\0\0\2\0\0\0\3\0\0\0"), pa.py_buffer(b"\xff\xfea")]
    )
    table = pa.table({"text": pa.chunked_array([["fine", None], bad]), "n": [1, 2, 3, 4]})
    source, dead = _write(table, tmp_path / "p.parquet"), tmp_path / "dead"
    null = setting("input.null_text=dead_letter")
    ran = run("dedup", "-q", source, "-o", tmp_path / "o.parquet", "--dead-letter", dead, *null, *SMALL)
    assert (ran.code, "2 of 4 rows" in ran.err) == (0, True)
    assert [row["n"] for row in pq.read_table(tmp_path / "o.parquet").to_pylist()] == [1, 4]
    entries = read_lines(dead)
    assert [(one["position"], one["line"], one["reason"]) for one in entries] == [
        (2, 2, "not_text"),
        (3, 3, "not_utf8"),
    ]
    assert [json.loads(one["raw"])["n"] for one in entries] == [2, 3]


def test_times_of_a_table_are_those_of_its_texts(tmp_path: Path, run: Run) -> None:
    stamps = [dt.datetime(2020, 2, 12), dt.datetime(2020, 2, 20)]
    for number, kind in enumerate(
        [pa.timestamp("ns"), pa.timestamp("s", "Asia/Shanghai"), pa.date32(), pa.date64()]
    ):
        table = pa.table({"text": [_TEXT] * 2, "created_at": pa.array(stamps, kind)})
        source = _write(table, tmp_path / f"{number}.parquet")
        out = tmp_path / f"o{number}.parquet"
        aged = setting("exact.window.age=24h", "near.window.age=24h")
        assert run("dedup", "-q", source, "-o", out, *aged, *SMALL).code == 0
        assert pq.read_table(out).num_rows == 2, kind


@pytest.mark.parametrize("ending", [".parquet", ".arrow", ".arrows"])
def test_a_damaged_table_is_an_error_and_nothing_is_put_in_place(
    tmp_path: Path, run: Run, ending: str
) -> None:
    source, out = _write(_wide(400), tmp_path / f"p{ending}"), tmp_path / f"o{ending}"
    content = source.read_bytes()
    for damaged in (content[: len(content) // 2], content[:9], b"{}\n" * 9):
        source.write_bytes(damaged)
        ran = run("dedup", "-q", source, "-o", out, *SMALL)
        assert ran.code == 1
        assert f"twinsieve: {source}: cannot be read as " in ran.err
        assert len(ran.err.splitlines()) == 1
        assert not out.exists()


@pytest.mark.parametrize(
    ("source", "output", "said"),
    [
        ("p.parquet", "o.jsonl", "looks like jsonl, but rows come out as they came in, as parquet"),
        ("p.jsonl", "o.parquet", "looks like parquet, but rows come out as they came in, as jsonl"),
        ("p.parquet", "o.arrow", "looks like arrow, but rows come out as they came in, as parquet"),
        ("p.parquet", "o.parquet.gz", "Parquet compresses inside; name it without .gz"),
        ("p.parquet.gz", "o.parquet", "Parquet files are not read compressed; unpack it first"),
    ],
)
def test_names_that_do_not_fit_are_refused(
    tmp_path: Path, run: Run, source: str, output: str, said: str
) -> None:
    (tmp_path / source).write_bytes(b"PAR1")
    ran = run("dedup", "-q", tmp_path / source, "-o", tmp_path / output, *SMALL)
    assert ran.code == 2
    assert said in ran.err


@pytest.mark.parametrize(("ending", "form"), [(".arrows", "arrow"), (".parquet", "parquet")])
def test_tables_go_through_pipes_as_far_as_they_can(
    tmp_path: Path, ending: str, form: str, piped: Piped
) -> None:
    source = _write(_wide(), tmp_path / f"p{ending}")
    ran = piped(["dedup", "-q", "--format", form, *SMALL], source.read_bytes())
    if ending == ".parquet":
        said = b"stdin: Parquet files are not read from a pipe; name the file"
        assert (ran.returncode, ran.stdout, ran.stderr) == (1, b"", b"twinsieve: " + said + b"\n")
        ran = piped(["dedup", "-q", source, *SMALL], b"")
    assert ran.returncode == 0, ran.stderr
    (tmp_path / f"o{ending}").write_bytes(ran.stdout)
    assert _read(tmp_path / f"o{ending}").num_rows == 27


def test_other_commands_read_tables_too(tmp_path: Path, run: Run) -> None:
    source = _write(_wide(), tmp_path / "p.parquet")
    assert "verdict" in run("explain", "--input", source, "--id", "1", "--id", "2").out


def test_without_pyarrow_the_error_says_what_to_install(tmp_path: Path, root: Path) -> None:
    source = _write(_wide(), tmp_path / "p.parquet")
    script = (
        "import sys; sys.modules['pyarrow'] = None; from twinsieve.pipeline.commands.cli import main; "
        "sys.exit(main(sys.argv[1:]))"
    )
    words = [sys.executable, "-c", script, "dedup", "-q", source, "-o", tmp_path / "o.parquet", *SMALL]
    ran = subprocess.run(words, cwd=root, capture_output=True, check=False, timeout=300)
    assert (ran.returncode, ran.stderr) == (
        2,
        b"twinsieve: Parquet and Arrow need the package pyarrow: pip install pyarrow, or in a checkout "
        b"pip install '.[arrow]'\n",
    )


def test_pandas_is_not_imported_for_a_table(tmp_path: Path, root: Path) -> None:
    """Its import takes longer than 20,000 rows, and pyarrow does it for a list that becomes an array."""
    pq.write_table(pa.table({"text": ["one of them", "another of these"]}), tmp_path / "p.parquet")
    script = (
        "import sys; from twinsieve.pipeline.commands.cli import main; code = main(sys.argv[1:]); "
        "sys.exit(code or 'pandas' in sys.modules)"
    )
    words = ["dedup", "-q", tmp_path / "p.parquet", "-o", tmp_path / "o.parquet", *SMALL]
    ran = subprocess.run([sys.executable, "-c", script, *map(str, words)], cwd=root, check=False)
    assert (ran.returncode, pq.read_table(tmp_path / "o.parquet").num_rows) == (0, 2)
