"""What goes wrong around a run: one line, exit 1, nothing half done."""

from __future__ import annotations

import ctypes
import errno
import gzip
import json
import os
import shlex
import signal
import subprocess
import threading
from pathlib import Path

import pytest

from tests.calling import SMALL, Piped, Run, Start, program, setting
from tests.generated_posts import generate
from tests.row_files import write_rows
from twinsieve.pipeline.files import FileError
from twinsieve.pipeline.files.write import Output, place_all
from twinsieve.pipeline.saved.state_folder import StateFolder
from twinsieve.stages.formats import RUN

_PR_CAPBSET_DROP, _CAP_DAC_OVERRIDE, _CAP_DAC_READ_SEARCH = 24, 1, 2


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write_rows(tmp_path / "in.jsonl", generate(300, seed=5))


def _one_line(err: str) -> bool:
    return len(err.splitlines()) == 1 and "Traceback" not in err


def test_a_truncated_gz_puts_no_output_in_place(tmp_path: Path, source: Path, run: Run) -> None:
    packed = gzip.compress(source.read_bytes())
    cut = tmp_path / "cut.jsonl.gz"
    cut.write_bytes(packed[: len(packed) // 2])
    (tmp_path / "out").write_text("what was there before")
    files = ("-o", tmp_path / "out", "--duplicates", tmp_path / "d", "--stats", tmp_path / "s")
    ran = run("dedup", cut, *files, *SMALL)
    assert ran.code == 1
    assert ran.err == f"twinsieve: {cut}: ends in the middle of its compressed data; fetch it again\n"
    assert (tmp_path / "out").read_text() == "what was there before"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cut.jsonl.gz", "in.jsonl", "out"]


@pytest.mark.parametrize("flag", ["-o", "--duplicates", "--dead-letter", "--stats"])
def test_a_full_disk_is_one_line(tmp_path: Path, source: Path, run: Run, flag: str) -> None:
    source.write_bytes(source.read_bytes() + b"{\n")
    outputs = {"-o": str(tmp_path / "out")} | {flag: "/dev/full"}
    ran = run("dedup", source, *[word for pair in outputs.items() for word in pair], *SMALL)
    assert ran.code == 1
    assert ran.err.endswith("/dev/full: cannot be written: No space left on device\n")
    assert _one_line(ran.err)


def test_a_directory_or_a_closed_door_is_one_line(tmp_path: Path, source: Path, run: Run) -> None:
    (tmp_path / "folder").mkdir()
    ran = run("dedup", source, "-o", tmp_path / "out", "--duplicates", tmp_path / "folder")
    assert (ran.code, _one_line(ran.err)) == (1, True)
    ran = run("dedup", source, "-o", "/proc/no-such-place")
    assert (ran.code, _one_line(ran.err)) == (1, True)


def _obey_permissions() -> None:
    """Root gives up the right to read and write everything; others never had it."""
    if os.geteuid() == 0:
        libc = ctypes.CDLL(None, use_errno=True)
        for capability in (_CAP_DAC_OVERRIDE, _CAP_DAC_READ_SEARCH):
            assert libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0) == 0


def test_no_permission_is_one_line(tmp_path: Path, source: Path, piped: Piped) -> None:
    closed = tmp_path / "closed"
    closed.mkdir()
    (closed / "in.jsonl").touch(0o000)
    closed.chmod(0o500)
    for arguments, said in (
        ((source, "-o", closed / "out"), f"{closed}/out: cannot be written: Permission denied"),
        ((closed / "in.jsonl",), f"{closed}/in.jsonl: cannot be read: Permission denied"),
    ):
        ran = piped(["dedup", *arguments, *SMALL], preexec_fn=_obey_permissions)
        assert (ran.returncode, ran.stderr.decode()) == (1, f"twinsieve: {said}\n")


@pytest.mark.parametrize(
    "call", ["dedup {source}", "dedup {source} -o /dev/stdout", "explain one two", "lint"]
)
def test_a_reader_of_stdout_that_goes_away_ends_a_command_by_sigpipe(
    source: Path, started: Start, call: str
) -> None:
    with started(*call.format(source=source).split(), *SMALL) as running:
        running.stdout.close()
        err = running.stderr.read().decode()
        assert (running.wait(300), err) == (-signal.SIGPIPE, "")


def test_a_shell_sees_141_and_nothing_else_changes(tmp_path: Path, root: Path, piped: Piped) -> None:
    source, state, dropped = (tmp_path / name for name in ("in.jsonl", "state", "dropped.jsonl"))
    posts = [json.dumps(post) + "\n" for post in generate(6000, seed=5)]
    source.write_text("".join(posts[:3000]))
    windows = setting("near.window.messages=9000", "exact.window.messages=9000")
    call = ["dedup", source, "-q", "--state", state, "--duplicates", dropped, *windows]
    assert piped(call).returncode == 0
    source.write_text("".join(posts[3000:]))
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file() and path != source}
    assert {state / "state", dropped} < set(before)
    other = ["--duplicates", str(tmp_path / "new.jsonl")]
    script = f"set -o pipefail; {shlex.join(program(*call, *other))} | head -n 1 > /dev/null; exit $?"
    ran = subprocess.run(["bash", "-c", script], capture_output=True, cwd=root, check=False)
    assert (ran.returncode, ran.stderr) == (141, b"")
    assert {path for path in tmp_path.rglob("*") if path.is_file()} == {*before, source}
    # The leader book has grown, and the next run cuts it.
    whole_files = [path for path in before if not path.name.startswith("leaders-")]
    assert all(path.read_bytes() == before[path] for path in whole_files)
    ran = piped([*call, *other])
    assert (ran.returncode, ran.stderr) == (0, b"")
    whole = tmp_path / "whole.jsonl"
    whole.write_text("".join(posts))
    assert piped(["dedup", whole, "-q", *windows]).stdout.endswith(ran.stdout)
    assert ran.stdout.count(b"\n") > 1000


def test_a_reader_of_another_output_that_goes_away_is_one_line(
    tmp_path: Path, source: Path, started: Start
) -> None:
    source.write_bytes(source.read_bytes() * 20)  # more than a pipe takes while nobody reads
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with started("dedup", source, "-o", os.devnull, "--duplicates", pipe, *SMALL) as running:
        with pipe.open("rb"):
            pass
        _, err = running.communicate(timeout=300)
        said = f"twinsieve: {pipe}: the reader went away before the end\n"
        assert (running.returncode, err.decode()) == (1, said)


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -9)]
)
def test_a_stopped_run_leaves_no_output(tmp_path: Path, started: Start, number: int, code: int) -> None:
    pipe = tmp_path / "in"
    os.mkfifo(pipe)
    out = tmp_path / "out.jsonl"
    out.write_text("what was there before")
    # Opening returns when the run has opened its end; the run then waits for rows that never come.
    with (
        started("dedup", pipe, "-o", out, "--state", tmp_path / "state", *SMALL) as running,
        pipe.open("wb") as writer,
    ):
        writer.write(b'{"id": 1, "text": "a"}\n')
        writer.flush()
        running.send_signal(number)
        err = running.stderr.read().decode()
        assert running.wait(300) == code
    assert out.read_text() == "what was there before"
    assert not (tmp_path / "state" / "state").exists()
    if code > 0:
        assert not (tmp_path / "state").exists()
        assert err == "twinsieve: interrupted; no output was put in place\n"
        assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_run_stopped_while_outputs_get_their_names_is_done(
    tmp_path: Path, source: Path, run: Run, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    replace = os.replace

    def stopped(old: Path, new: Path) -> None:
        if not str(new).endswith((".piece", ".part")):
            os.kill(os.getpid(), number)
        replace(old, new)

    monkeypatch.setattr("twinsieve.pipeline.files.write.os.replace", stopped)
    names = {flag: tmp_path / flag for flag in ("--output", "--duplicates", "--stats", "--state")}
    ran = run("dedup", "-q", source, *[word for pair in names.items() for word in pair], *SMALL)
    assert (ran.code, ran.err) == (0, "")
    names["--state"] /= "state"
    assert all(path.stat().st_size for path in names.values())


def test_what_fails_before_the_first_name_changes_nothing(
    tmp_path: Path, source: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = sorted(tmp_path.iterdir())

    def full(*_: object) -> None:
        raise FileError("state: no space left")

    monkeypatch.setattr("twinsieve.stages.judge.batch_sieve.BatchSieve.freeze", full)
    names = ("-o", tmp_path / "out", "--duplicates", tmp_path / "d", "--state", tmp_path / "state")
    ran = run("dedup", source, *names, *SMALL)
    assert (ran.code, ran.err) == (1, "twinsieve: state: no space left\n")
    assert sorted(tmp_path.iterdir()) == before


def test_outputs_get_their_names_when_all_is_on_disk_and_the_manifest_is_the_last(
    tmp_path: Path, source: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = tmp_path / "state"
    order = []
    place = Output.place

    def placed(output: Output) -> None:
        order.append((output.name, len(list(state.glob("*.piece")))))
        place(output)

    monkeypatch.setattr(Output, "place", placed)
    names = {flag: tmp_path / flag for flag in ("--stats", "--duplicates", "-o")}
    flags = [word for pair in names.items() for word in pair]
    assert run("dedup", "-q", source, *flags, "--state", state, *SMALL).code == 0
    expected = [names["-o"], names["--duplicates"], names["--stats"], state / "state"]
    assert order == [(str(path), 1) for path in expected]


@pytest.mark.parametrize("at", ["the first piece", "the manifest", "an interruption"])
def test_a_run_that_fails_leaves_no_new_file_and_no_thread(
    tmp_path: Path, source: Path, run: Run, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    other = write_rows(tmp_path / "other.jsonl", generate(300, seed=6))
    call = ("-q", "-o", tmp_path / "out", "--state", tmp_path / "state", *SMALL)
    assert run("dedup", source, *call).code == 0
    before = {path.name: path.read_bytes() for path in (tmp_path / "state").iterdir()}

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def refused(*_: object) -> None:
        raise FileError("the manifest cannot be written")

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    others = set(threading.enumerate())
    with monkeypatch.context() as patch:
        if at == "the first piece":
            patch.setattr("twinsieve.pipeline.saved.storage.put_on_disk", full)
            said = f"{tmp_path}/state: state cannot be written (No space left on device); free space or fix "
        elif at == "the manifest":
            patch.setattr("twinsieve.stages.judge.frozen.write_state", refused)
            said = "the manifest cannot be written"
        else:
            patch.setattr("twinsieve.stages.judge.frozen.write_state", interrupted)
            said = "interrupted; no output was put in place"
        ran = run("dedup", other, *call)
    assert (ran.code in (1, 130), said in ran.err) == (True, True), ran
    assert {path.name: path.read_bytes() for path in (tmp_path / "state").iterdir()} == before
    # Tests before may have left some in this process.
    for one in set(threading.enumerate()) - others:
        if one.name.startswith("twinsieve-pieces"):
            one.join(300)
            assert not one.is_alive()


def test_an_interruption_when_the_manifest_has_its_name_deletes_none_of_its_files(
    tmp_path: Path, source: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As by a second Ctrl-C while a stream saves."""
    posts = source.read_bytes().splitlines(keepends=True)
    call = ("dedup", "-q", "--state", tmp_path / "state", *SMALL)
    place = Output.place

    def interrupted(output: Output) -> None:
        place(output)
        if output.name == str(tmp_path / "state" / "state"):
            raise KeyboardInterrupt

    for day, rows in enumerate((posts[:100], posts[100:200])):
        (tmp_path / f"{day}.jsonl").write_bytes(b"".join(rows))
        with monkeypatch.context() as patch:
            if day == 1:
                patch.setattr(Output, "place", interrupted)
            ran = run(*call, tmp_path / f"{day}.jsonl", "-o", tmp_path / f"{day}.out")
            assert ran.code == (130 if day == 1 else 0)
    assert run(*call, source, "-o", tmp_path / "2.out").code == 0
    assert run("dedup", "-q", source, "-o", tmp_path / "whole", *SMALL).code == 0
    parts = [(tmp_path / f"{day}.out").read_bytes() for day in range(3)]
    assert b"".join(parts) == (tmp_path / "whole").read_bytes()


@pytest.mark.parametrize("nameless", [True, False])
def test_a_name_that_cannot_be_given_says_which_were(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nameless: bool
) -> None:
    if not nameless:
        monkeypatch.setattr("twinsieve.pipeline.files.write._nameless", lambda folder, mode: None)
    first, second = Output(str(tmp_path / "a")), Output(str(tmp_path / "b"))
    for output in (first, second):
        output.write(b"x")
        output.sync()
    (tmp_path / "b").mkdir()
    with pytest.raises(FileError, match=f"in place already: {tmp_path}/a; run again"):
        place_all([first, second])
    second.discard()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]


def test_two_runs_on_one_state_exclude_each_other(tmp_path: Path, source: Path, run: Run) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "state")
    call = ("dedup", source, "-o", tmp_path / "out", "--state", tmp_path / "link", *SMALL)
    with StateFolder(str(tmp_path / "state"), RUN).locked():
        ran = run(*call)
        assert ran.code == 1
        assert ran.err.endswith("link: another process is using it; let it end, or name another folder\n")
        assert _one_line(ran.err)
        assert not (tmp_path / "out").exists()
    assert run(*call).code == 0
    assert not list(tmp_path.rglob("lock"))


def test_a_disk_too_full_for_the_first_bytes_is_one_line(tmp_path: Path, run: Run) -> None:
    (tmp_path / "full.gz").symlink_to("/dev/full")
    ran = run("generate", "--messages", "1", "-o", tmp_path / "full.gz")
    said = f"twinsieve: {tmp_path}/full.gz: cannot be written: No space left on device\n"
    assert (ran.code, ran.err) == (1, said)


@pytest.mark.parametrize("arguments", [["lint"], ["explain", "a", "b"]])
def test_a_report_that_cannot_be_written_is_one_line(piped: Piped, arguments: list[str | Path]) -> None:
    with open("/dev/full", "wb") as full:
        ran = piped([*arguments, *SMALL], stdout=full)
    assert (ran.returncode, ran.stderr) == (1, b"twinsieve: stdout: No space left on device\n")


def test_ctrl_c_while_the_program_is_imported_ends_it_without_a_word(
    tmp_path: Path, root: Path, piped: Piped
) -> None:
    """A module that everything needs plays the key at the moment it is imported."""
    (tmp_path / "click.py").write_text(
        "import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(60)\n"
    )
    environment = os.environ | {"PYTHONPATH": f"{tmp_path}{os.pathsep}{root}"}
    ran = piped(["lint"], env=environment)
    assert (ran.returncode, ran.stdout, ran.stderr) == (-signal.SIGINT, b"", b"")
