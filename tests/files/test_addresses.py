"""Inputs at addresses, through fsspec: read like files, and no secret of an address is shown."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path

import fsspec
import pyarrow as pa
import pytest
from fsspec.implementations.memory import MemoryFileSystem
from pyarrow import parquet as pq

from tests.calling import SMALL, Run, setting
from twinsieve.stages.errors import shown

_ROWS = b"".join(json.dumps({"id": n, "text": f"{n} " * 9}).encode() + b"\n" for n in range(3))


@pytest.fixture(autouse=True)
def store() -> Iterator[MemoryFileSystem]:
    """An empty store in memory."""
    files = fsspec.filesystem("memory")
    files.store.clear()
    yield files
    files.store.clear()


def test_an_address_is_read_like_a_file(tmp_path: Path, run: Run, store: MemoryFileSystem) -> None:
    store.pipe("/b/p.jsonl.gz", gzip.compress(_ROWS * 2))
    ran = run("dedup", "-q", "memory://b/p.jsonl.gz", "-o", tmp_path / "o.jsonl", *SMALL)
    assert (ran.code, ran.err, (tmp_path / "o.jsonl").read_bytes()) == (0, "", _ROWS)


def test_parquet_is_read_at_an_address(tmp_path: Path, run: Run, store: MemoryFileSystem) -> None:
    pq.write_table(
        pa.table({"text": ["one of them", "another of these", "one of them"]}), tmp_path / "p.parquet"
    )
    store.pipe("/b/p.parquet", (tmp_path / "p.parquet").read_bytes())
    assert run("dedup", "-q", "memory://b/p.parquet", "-o", tmp_path / "o.parquet", *SMALL).code == 0
    assert pq.read_table(tmp_path / "o.parquet").num_rows == 2


def test_a_file_address_is_that_file(tmp_path: Path, run: Run) -> None:
    (tmp_path / "p.jsonl").write_bytes(_ROWS)
    assert run("dedup", "-q", f"file://{tmp_path}/p.jsonl", *SMALL).out.encode() == _ROWS
    ran = run("dedup", "-q", f"file://{tmp_path}/p.jsonl", "-o", tmp_path / "p.jsonl", *SMALL)
    assert (ran.code, (tmp_path / "p.jsonl").read_bytes()) == (2, _ROWS)


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("memory://b/gone.jsonl", "memory://b/gone.jsonl: cannot be read: there is no such file"),
        (
            "nosuch://me:s3cret@b/p.jsonl?token=s3cret",
            "nosuch://b/p.jsonl: cannot be read here (Protocol not known: nosuch)",
        ),
        (
            "memory://me:s3cret@b/gone.jsonl?k=s3cret",
            "memory://b/gone.jsonl: cannot be read: there is no such file",
        ),
        ("zip://p.jsonl::https://me:s3cret@h/a.zip", "is a chain of addresses; name a plain one"),
    ],
)
def test_errors_are_plain_and_show_no_secret(tmp_path: Path, run: Run, address: str, said: str) -> None:
    ran = run("dedup", address, "--format", "jsonl", "-o", tmp_path / "o.jsonl", *SMALL)
    assert ran.code == 2
    assert said in ran.err
    assert "s3cret" not in ran.err + ran.out
    assert not (tmp_path / "o.jsonl").exists()


def test_a_dead_letter_shows_no_secret(tmp_path: Path, run: Run, store: MemoryFileSystem) -> None:
    store.pipe("/me:s3cret@b/p.jsonl", _ROWS + b"{broken\n")
    names = ("-o", tmp_path / "o.jsonl", "--dead-letter", tmp_path / "dead", "--state", tmp_path / "state")
    ran = run("dedup", "memory://me:s3cret@b/p.jsonl", *names, *SMALL)
    assert (ran.code, "s3cret" in ran.err) == (0, False)
    assert json.loads((tmp_path / "dead").read_bytes())["source"] == "memory://b/p.jsonl"
    assert b"s3cret" not in b"".join(path.read_bytes() for path in (tmp_path / "state").iterdir())


@pytest.mark.parametrize("ending", ["jsonl", "csv", "parquet"])
@pytest.mark.parametrize("flag", ["-o", "--duplicates", "--dead-letter", "--stats", "--state"])
def test_an_output_at_an_address_is_refused(tmp_path: Path, run: Run, flag: str, ending: str) -> None:
    (tmp_path / "p.jsonl").write_bytes(_ROWS)
    ran = run("dedup", "-q", tmp_path / "p.jsonl", flag, f"s3://me:s3cret@b/o.{ending}", *SMALL)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(f"twinsieve: {flag} s3://b/o.{ending}: ")
    if ending == "jsonl":
        assert ran.err.endswith(": an output must be a local file; name one and copy it there\n")


def test_generate_writes_to_no_address(run: Run) -> None:
    ran = run("generate", "--messages", "1", "-o", "s3://me:s3cret@b/o.jsonl")
    assert (ran.code, "twinsieve: -o s3://b/o.jsonl: an output must be a local file" in ran.err) == (2, True)


def test_a_misspelt_field_at_an_address_ends_the_run(
    tmp_path: Path, run: Run, store: MemoryFileSystem
) -> None:
    store.pipe("/me:s3cret@b/p.jsonl", _ROWS)
    ran = run("dedup", "memory://me:s3cret@b/p.jsonl", *setting("scope=[nosuch]"), *SMALL)
    assert (ran.code, ran.out) == (2, "")
    assert "memory://b/p.jsonl: " in ran.err


def test_explain_shows_no_secret(run: Run, store: MemoryFileSystem) -> None:
    store.pipe("/me:s3cret@b/p.jsonl", _ROWS)
    address = "memory://me:s3cret@b/p.jsonl"
    assert run("explain", "--input", address, "--id", "1", "--id", "2").code == 0
    ran = run("explain", "--input", address, "--id", "1", "--id", "9")
    assert (ran.code, "memory://b/p.jsonl: has no readable row with id '9'" in ran.err) == (2, True)
    assert "s3cret" not in ran.err


@pytest.mark.parametrize(
    "address",
    [
        "https://me:s3cret@h/p",
        "https://h/p?k=s3cret",
        "https://h/p#s3cret",
        "https://me:a/s3cret@h/p",
        "https://me:a?s3cret@h/p",
        "https://me:a#s3cret@h/p",
        "https://me:a::s3cret@h/p",
        "https://me:s3cret::a@h/p",
        "https://h?k=s3cret",
        "https://me:a@s3cret@h/p",
    ],
)
def test_no_part_of_an_address_that_may_be_secret_is_shown(address: str) -> None:
    assert "s3cret" not in shown(address)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("evaluate {address} pairs", "INPUT https://h/p: must be a local file; fetch it first"),
        ("evaluate posts.jsonl {address}", "PAIRS https://h/p: must be a local file; fetch it first"),
        ("lint {address}", "lint https://h/p: must be a local file; fetch it first"),
        ("lint -c {address}", "lint https://h/p: must be a local file; fetch it first"),
        ("dedup posts.jsonl -c {address}", "-c https://h/p: must be a local file; fetch it first"),
    ],
)
def test_a_file_that_must_be_here_is_not_sought_at_an_address(run: Run, words: str, said: str) -> None:
    ran = run(*words.format(address="https://me:s3cret@h/p?k=s3cret").split())
    assert (ran.code, ran.out, ran.err) == (2, "", f"twinsieve: {said}\n")


def test_an_address_that_would_be_read_twice_is_refused_without_its_secrets(tmp_path: Path, run: Run) -> None:
    ran = run("dedup", "https://me:secret@host/p.jsonl?token=abc", "--keep", "last", "-o", tmp_path / "o")
    said = "--keep last: reads its inputs twice; fetch https://host/p.jsonl first"
    assert (ran.code, ran.err) == (2, f"twinsieve: {said}\n")
