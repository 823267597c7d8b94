"""No command writes over a file that it reads or keeps, however the file is named."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.calling import SMALL, Piped, Run
from tests.generated_posts import generate
from tests.row_files import write_rows
from twinsieve.pipeline.files.write import descriptor_of

_WAYS = ("same", "symbolic link", "hard link", "relative")
_OUTPUTS = ("-o", "--duplicates", "--stats", "--state")


def _named(path: Path, way: str) -> Path | str:
    """Another name of an existing file."""
    other = path.with_name("other")
    if way == "symbolic link":
        other.symlink_to(path)
    elif way == "hard link":
        os.link(path, other)
    elif way == "relative":
        return f"{path.parent}/../{path.parent.name}/{path.name}"
    return path if way == "same" else other


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write_rows(tmp_path / "in.jsonl", generate(30, seed=5))


@pytest.fixture
def idf(tmp_path: Path) -> Path:
    path = tmp_path / "idf.table"
    path.write_text("词\t1.5\n", "utf-8")
    return path


@pytest.fixture
def settings(tmp_path: Path, idf: Path) -> Path:
    path = tmp_path / "settings"
    path.write_text(
        f"features: {{weights: tfidf, idf_file: {idf.name}}}\nnear: {{window: {{messages: 2000}}, threads: 1}}\n"
        "exact: {window: {messages: 2000}}\n"
    )
    return path


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    path = tmp_path / "pairs.tsv"
    path.write_text("later\tearlier\tsimilarity\tkind\np0000000002\tp0000000001\t0.9\tnear\n")
    return path


@pytest.mark.parametrize("way", _WAYS)
@pytest.mark.parametrize(
    ("command", "target", "flag", "use"),
    [
        ("dedup {source} -c {settings} {flag}", "source", "-o", "an input"),
        ("dedup {source} -c {settings} {flag}", "settings", "-o", "the settings file"),
        ("dedup {source} -c {settings} {flag}", "idf", "-o", "features.idf_file"),
        ("dedup {source} -c {settings} {flag}", "idf", "--duplicates", "features.idf_file"),
        ("dedup {source} -c {settings} {flag}", "settings", "--dead-letter", "the settings file"),
        ("dedup {source} -c {settings} {flag}", "settings", "--stats", "the settings file"),
        ("dedup {source} -c {settings} {flag}", "source", "--state", "an input"),
        ("dedup {source} -c {settings} {flag}", "idf", "--state", "features.idf_file"),
        ("evaluate {source} {pairs} -c {settings} {flag}", "settings", "--stats", "the settings file"),
        ("evaluate {source} {pairs} -c {settings} {flag}", "pairs", "--wrong", "an input"),
        ("evaluate {source} {pairs} -c {settings} {flag}", "idf", "--wrong", "features.idf_file"),
    ],
)
def test_an_output_over_a_file_that_is_read_is_refused(
    request: pytest.FixtureRequest, run: Run, command: str, target: str, flag: str, use: str, way: str
) -> None:
    files = {name: request.getfixturevalue(name) for name in ("source", "settings", "idf", "pairs")}
    before = {path: path.read_bytes() for path in files.values()}
    output = _named(files[target], way)
    ran = run(*command.format(**files, flag=flag).split(), output)
    assert ran.code == 2, ran.err
    assert ran.err == f"twinsieve: {flag} {output}: is also {use} ({files[target]}); name another file\n"
    assert {path: path.read_bytes() for path in files.values()} == before


@pytest.mark.parametrize("flag", ["-o", "--duplicates", "--dead-letter", "--stats"])
@pytest.mark.parametrize(
    "companion", ["state", "state/state", "state/lock", "state/leaders-0.rows", "state/out", "state/a/out"]
)
def test_an_output_in_the_folder_of_a_state_is_refused(
    tmp_path: Path, run: Run, source: Path, flag: str, companion: str
) -> None:
    call = ("dedup", source, "-q", "--state", tmp_path / "state", *SMALL)
    for exists in (False, True):
        if exists:
            assert run(*call, "-o", tmp_path / "out", "--duplicates", tmp_path / "d").code == 0
        before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
        ran = run(*call, flag, tmp_path / companion)
        assert ran.code == 2, ran.err
        if exists and (flag, companion) == ("-o", "state"):
            # A folder that exists gets an output for each input.
            said = f"-o {tmp_path}/state/in.jsonl: is also --state ({tmp_path}/state)"
        else:
            said = f"--state {tmp_path}/state: is also {flag} ({tmp_path}/{companion})"
        assert ran.err == f"twinsieve: {said}; name another file\n"
        assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_an_input_in_the_folder_of_a_state_stays(tmp_path: Path, run: Run, source: Path) -> None:
    (tmp_path / "state").mkdir()
    inside = source.rename(tmp_path / "state" / "lock")
    ran = run("dedup", inside, "--format", "jsonl", "-o", tmp_path / "out", "--state", tmp_path / "state")
    assert ran.code == 2
    assert ran.err.startswith(f"twinsieve: --state {tmp_path}/state: is also an input ({inside})")
    assert inside.stat().st_size


def test_a_file_that_is_no_lock_is_not_removed_as_one(tmp_path: Path, run: Run, source: Path) -> None:
    (tmp_path / "state").mkdir()
    notes = tmp_path / "state" / "lock"
    notes.write_text("what somebody wrote")
    ran = run("dedup", source, "-o", tmp_path / "out", "--state", tmp_path / "state", *SMALL)
    assert (ran.code, len(ran.err.splitlines())) == (1, 1)
    assert "a state needs this name for its lock, but this is another file; move it away" in ran.err
    assert notes.read_text() == "what somebody wrote"


@pytest.mark.parametrize("name", ["-", "/dev/null"])
def test_a_state_must_be_a_folder(run: Run, source: Path, name: str) -> None:
    ran = run("dedup", source, "--state", name, *SMALL)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == f"twinsieve: --state {name}: is not a folder; name one, or a new one\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        *(((flag, ""), f"{flag}: the name is empty; name a file, or `-` for stdout") for flag in _OUTPUTS),
        (("",), "an input's name is empty; name a file, or `-` for stdin"),
    ],
)
def test_an_empty_name_is_said(run: Run, source: Path, words: tuple[str, ...], said: str) -> None:
    ran = run("dedup", source, *words)
    assert (ran.code, ran.err) == (2, f"twinsieve: {said}\n")


@pytest.mark.parametrize(
    ("kind", "flag"), [*(("new file", flag) for flag in _OUTPUTS[1:]), ("pipe", "--duplicates")]
)
def test_one_name_does_not_take_two_outputs(
    tmp_path: Path, run: Run, source: Path, flag: str, kind: str
) -> None:
    named = tmp_path / "named"
    if kind == "pipe":
        os.mkfifo(named)
    (tmp_path / "link").symlink_to(named)
    ran = run("dedup", source, "-o", named, flag, tmp_path / "link")
    assert ran.code == 2
    assert f"is also -o ({named})" in ran.err


@pytest.mark.parametrize("other", ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"])
def test_stdout_does_not_take_two_outputs(run: Run, source: Path, other: str) -> None:
    ran = run("dedup", source, "--duplicates", other)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == f"twinsieve: --duplicates {other}: is also -o (-); name another file\n"


def test_a_device_may_take_several_outputs(run: Run, source: Path) -> None:
    assert run("dedup", source, "-q", "-o", "/dev/null", "--duplicates", "/dev/null", *SMALL).code == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("dedup -q {source}", "-o -: is also an input ({source})"),
        ("dedup -q", "-o -: is also an input (-)"),
        ("dedup -q {source} -o /dev/null --duplicates -", "--duplicates -: is also an input ({source})"),
        ("dedup -q {source} -o /dev/stdout", "-o /dev/stdout: is also an input ({source})"),
        ("dedup -q -o {source}", "-o {source}: is also an input (-)"),
    ],
)
def test_an_output_redirected_onto_an_input_is_refused(
    source: Path, piped: Piped, words: str, said: str
) -> None:
    """As a shell does it for `>> FILE`; with `> FILE` it is empty before we begin."""
    before = source.read_bytes()
    with source.open("rb") as stdin, source.open("ab") as stdout:
        ran = piped(words.format(source=source).split(), stdin=stdin, stdout=stdout)
    assert (ran.returncode, said.format(source=source) in ran.stderr.decode()) == (2, True)
    assert source.read_bytes() == before


def test_names_of_descriptors_are_told_from_files(tmp_path: Path) -> None:
    (tmp_path / "1").touch()
    (tmp_path / "link").symlink_to("/dev/stdout")
    (tmp_path / "round").symlink_to(tmp_path / "round")
    names = ("-", "/dev/stdout", "/dev/stderr", "/dev/stdin", "/dev/fd/63", f"{tmp_path}/link")
    assert [descriptor_of(name, writes=True) for name in names] == [1, 1, 2, 0, 63, 1]
    assert descriptor_of("-", writes=False) == 0
    files = [f"{tmp_path}/{name}" for name in ("1", "round", "none")]
    for name in (*files, "", "1", "/dev/null", "/proc/1/fd/1"):
        assert descriptor_of(name, writes=True) is None
