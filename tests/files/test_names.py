"""What the names of files promise, and many files at once."""

from __future__ import annotations

import gzip
import json
import resource
import shutil
from pathlib import Path

import pytest

from tests.calling import SMALL, Piped, Run

_ROW = '{"id": 1, "text": "a short one"}\n'


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "in.jsonl"
    path.write_text(_ROW)
    return path


@pytest.mark.parametrize(
    ("name", "looks"),
    [
        ("x.parquet", "parquet"),
        ("x.XLSX", "a spreadsheet"),
        ("x.zip", "a zip archive"),
        ("x.xml.gz", "XML"),
        ("x.tar.gz", "a tar archive"),
        ("x.csv", "csv"),
        ("x.csv.zst", "csv"),
    ],
)
@pytest.mark.parametrize(
    "call",
    [
        "dedup {source} -o",
        "dedup {source} -o /dev/null --duplicates",
        "dedup {source} -o /dev/null --dead-letter",
        "dedup {source} -o /dev/null --stats",
        "generate --messages 1 -o",
        "evaluate {source} {source} --wrong",
        "evaluate {source} {source} --stats",
    ],
)
def test_an_output_named_like_another_format_is_refused(
    tmp_path: Path, run: Run, source: Path, call: str, name: str, looks: str
) -> None:
    ran = run(*call.format(source=source).split(), tmp_path / name)
    assert ran.code == 2, ran.err
    assert f"{tmp_path / name}: looks like {looks}, but " in ran.err
    assert len(ran.err.splitlines()) == 1
    assert not (tmp_path / name).exists()


def test_a_packed_output_that_cannot_be_is_refused_with_its_format_given(
    tmp_path: Path, run: Run, source: Path
) -> None:
    ran = run("dedup", source, "--format", "jsonl", "-o", tmp_path / "x.parquet")
    assert ran.code == 2
    assert ran.err.endswith("as jsonl; name another file\n")


@pytest.mark.parametrize("name", ["x", "x.unique", "x.jsonl", "x.ndjson.gz", "x.2024"])
def test_other_names_are_taken(tmp_path: Path, run: Run, source: Path, name: str) -> None:
    assert run("dedup", source, "-q", "-o", tmp_path / name, *SMALL).code == 0
    assert (tmp_path / name).exists()


def test_lines_of_json_may_stand_in_a_text_file(tmp_path: Path, run: Run, source: Path) -> None:
    source.write_text(_ROW * 2)
    ran = run("dedup", source, "-q", "-o", "/dev/null", "--duplicates", tmp_path / "dropped.txt", *SMALL)
    assert ran.code == 0
    assert json.loads((tmp_path / "dropped.txt").read_text())["position"] == 2


def test_a_file_called_dash_is_not_stdin(tmp_path: Path, root: Path, piped: Piped) -> None:
    (tmp_path / "-").write_text("nothing that a sieve reads")
    environment = {"PYTHONPATH": str(root), "PATH": "", "HOME": str(Path.home())}
    call = ("dedup", "-q", "-o", tmp_path / "out", "--state", tmp_path / "state", *SMALL)
    for _ in range(2):
        ran = piped(call, _ROW.encode(), cwd=tmp_path, env=environment)
        assert (ran.returncode, ran.stderr) == (0, b"")
    assert (tmp_path / "-").read_text() == "nothing that a sieve reads"


def test_the_byte_order_mark_of_a_csv_is_written_back(tmp_path: Path, run: Run) -> None:
    marked = "\ufeffid,text\r\n1,一条很短的消息\r\n".encode()
    for name, content in (("a.csv", marked), ("b.csv.gz", gzip.compress(marked))):
        (tmp_path / name).write_bytes(content)
        assert run("dedup", tmp_path / name, "-q", "-o", tmp_path / "out.csv", *SMALL).code == 0
        assert (tmp_path / "out.csv").read_bytes() == marked


def test_csv_inputs_with_other_columns_write_no_row(tmp_path: Path, piped: Piped) -> None:
    (tmp_path / "a.csv").write_text("id,text\n1,one\n")
    (tmp_path / "b.csv").write_text("text,at\ntwo,2\n")
    ran = piped(["dedup", tmp_path / "a.csv", tmp_path / "b.csv", "-q", *SMALL])
    assert (ran.returncode, ran.stdout) == (1, b"")
    said = ran.stderr.decode()
    differ = f"has other columns than {tmp_path}/a.csv (added: 'at'; missing: 'id')"
    assert said.startswith(f"twinsieve: {tmp_path}/b.csv:1: {differ}; ")
    assert "--state" in said


def test_more_inputs_than_files_may_be_open(tmp_path: Path, source: Path, piped: Piped) -> None:
    names = [tmp_path / f"{number}.jsonl" for number in range(200)]
    for name in names:
        shutil.copyfile(source, name)

    def few() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))

    ran = piped(["dedup", *names, "-q", *SMALL], preexec_fn=few)
    assert (ran.returncode, ran.stdout.decode(), ran.stderr) == (0, _ROW, b"")
