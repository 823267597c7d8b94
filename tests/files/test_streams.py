"""Outputs that are streams: descriptors, pipes and devices are written to, never renamed over."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import os
import select
import subprocess
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard

from tests.calling import SMALL, Piped, Run, Start, program
from tests.generated_posts import generate
from tests.row_files import write_rows


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write_rows(tmp_path / "in.jsonl", generate(300, seed=5))


@pytest.fixture
def expected(tmp_path: Path, source: Path, run: Run) -> tuple[bytes, bytes]:
    """Kept rows and lines of duplicates, as files take them."""
    kept, dropped = tmp_path / "kept", tmp_path / "dropped"
    assert run("dedup", source, "-q", "-o", kept, "--duplicates", dropped, *SMALL).code == 0
    return kept.read_bytes(), dropped.read_bytes()


@pytest.mark.parametrize("name", ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"])
def test_stdout_has_many_names(source: Path, piped: Piped, expected: tuple[bytes, bytes], name: str) -> None:
    ran = piped(["dedup", source, "-q", "-o", name, *SMALL])
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, expected[0], b"")


@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/stderr"])
def test_a_redirected_stream_keeps_what_stands_before_and_after(
    tmp_path: Path, source: Path, piped: Piped, expected: tuple[bytes, bytes], name: str
) -> None:
    log = tmp_path / "log"
    call = ("dedup", source, "-q", "-o", os.devnull, "--duplicates", name, *SMALL)
    with log.open("wb", buffering=0) as stream:
        stream.write(b"before\n")
        ran = piped(call, **{name.removeprefix("/dev/"): stream})
        os.write(stream.fileno(), b"after\n")
    assert ran.returncode == 0
    assert log.read_bytes() == b"before\n" + expected[1] + b"after\n"


def test_a_shells_process_substitution_takes_an_output(
    tmp_path: Path, root: Path, source: Path, expected: tuple[bytes, bytes]
) -> None:
    packed = tmp_path / "dropped.gz"
    call = " ".join(program("dedup", source, "-q", *SMALL))
    script = f"{call} -o >(cat > {tmp_path}/out) --duplicates >(gzip > {packed}); code=$?; wait; exit $code"
    ran = subprocess.run(["bash", "-c", script], cwd=root, capture_output=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, b"")
    # Bash waits for the last substitution alone.
    assert gzip.decompress(packed.read_bytes()) == expected[1]


def test_a_named_pipe_takes_an_output_and_stays(
    tmp_path: Path, source: Path, started: Start, expected: tuple[bytes, bytes]
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with started("dedup", source, "-q", "-o", pipe, *SMALL) as running:
        assert pipe.read_bytes() == expected[0]
        assert running.wait(300) == 0
    assert pipe.is_fifo()


def test_a_line_reader_sees_each_kept_row_at_once(started: Start) -> None:
    """A row's newline goes with the row: the reader gets whole lines while the input stays open."""
    with started("dedup", "-q", *SMALL) as running:
        for text in ("one row and the pipe stays open", "another that is quite different", "完全不同的一句"):
            row = json.dumps({"text": text}).encode() + b"\n"
            assert running.answer_to(row + row) == row
        assert running.end() == (0, b"")


class _Gzip:
    def __init__(self) -> None:
        self._packer = zlib.compressobj(wbits=31)

    def __call__(self, row: bytes) -> bytes:
        return self._packer.compress(row) + self._packer.flush(zlib.Z_SYNC_FLUSH)

    def end(self) -> bytes:
        return self._packer.flush()


class _Zstd:
    def __init__(self) -> None:
        self._packer = zstandard.ZstdCompressor().compressobj()

    def __call__(self, row: bytes) -> bytes:
        return self._packer.compress(row) + self._packer.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)

    def end(self) -> bytes:
        return self._packer.flush()


class _Whole:
    """Each row as a stream of its own: bzip2 and xz cannot hand out a row before."""

    def __init__(self, pack: Callable[[bytes], bytes]) -> None:
        self._pack = pack

    def __call__(self, row: bytes) -> bytes:
        return self._pack(row)

    def end(self) -> bytes:
        return b""


_PACKERS: dict[str, Callable[[], Any]] = {
    "plain": lambda: _Whole(bytes),
    "gzip": _Gzip,
    "gzip, a member a row": lambda: _Whole(gzip.compress),
    "zstd": _Zstd,
    "bzip2": lambda: _Whole(bz2.compress),
    "xz": lambda: _Whole(lzma.compress),
}
_HELD_BACK_S = 300
_TRICKLED = {
    "jsonl": (b"", b'{"text": "%s"}\n'),
    "json": (b"", b'{"text": "%s"}\n'),
    "csv": (b"text\n", b"%s\n"),
    "text": (b"", b"P%s\n"),
}


@pytest.mark.parametrize(
    ("packing", "form"), [*((one, "jsonl") for one in _PACKERS), *(("plain", one) for one in _TRICKLED)]
)
def test_the_first_row_of_a_stream_that_trickles_comes_out_at_once(
    started: Start, packing: str, form: str
) -> None:
    head, row = _TRICKLED[form]
    pack = _PACKERS[packing]()
    with started("dedup", "-q", "--format", form, *SMALL, bufsize=0) as running:
        for lines in ([head, row % b"one row and the pipe stays open"], [row % b"another that is different"]):
            running.stdin.write(pack(b"".join(lines)))
            for line in filter(None, lines):
                assert select.select([running.stdout], [], [], _HELD_BACK_S)[0], "the row is held back"
                assert running.stdout.readline() == line
        running.stdin.write(pack.end())
        assert running.end() == (0, b"")


@pytest.mark.parametrize(
    ("first", "second", "kept"),
    [
        (b"a\nb", b"c\nd", b"a\nb\nc\nd"),
        (b"a\nb\n", b"c\nd\n", b"a\nb\nc\nd\n"),
        (b"a\nb", b"b\na\n", b"a\nb"),
        (b"a\nb", b"b\nc\n", b"a\nb\nc\n"),
        (b"a\nb\n", b"b", b"a\nb\n"),
        (b"a", b"", b"a"),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
def test_the_last_row_ends_as_it_came(
    tmp_path: Path, piped: Piped, run: Run, first: bytes, second: bytes, kept: bytes, stream: bool
) -> None:
    (tmp_path / "a.txt").write_bytes(first)
    (tmp_path / "b.txt").write_bytes(second)
    call = ("dedup", tmp_path / "a.txt", tmp_path / "b.txt", "-q", *SMALL)
    if stream:
        ran = piped(call)
        assert (ran.returncode, ran.stdout) == (0, kept)
    else:
        assert run(*call, "-o", tmp_path / "out").code == 0
        assert (tmp_path / "out").read_bytes() == kept


def test_an_output_keeps_its_owner_where_that_is_allowed(tmp_path: Path, source: Path, run: Run) -> None:
    """Only root may give files away; others write what they own, and the group they are in."""
    out = tmp_path / "out"
    out.touch(0o640)
    owner = (12345, 54321) if os.geteuid() == 0 else (os.geteuid(), os.getgroups()[-1])
    os.chown(out, *owner)
    assert run("dedup", source, "-q", "-o", out, *SMALL).code == 0
    known = out.stat()
    assert (known.st_uid, known.st_gid, known.st_mode & 0o777) == (*owner, 0o640)


def test_a_hard_link_to_an_output_keeps_the_old_content(tmp_path: Path, source: Path, run: Run) -> None:
    out = tmp_path / "out"
    out.write_text("old")
    os.link(out, tmp_path / "hard")
    assert run("dedup", source, "-q", "-o", out, *SMALL).code == 0
    assert (tmp_path / "hard").read_text() == "old"
    assert out.stat().st_size > 3


def test_a_stream_that_comes_in_pieces_keeps_the_rows_of_the_file(
    tmp_path: Path, piped: Piped, started: Start
) -> None:
    """With windows of the default size, whose tables move to other memory while they fill."""
    source = write_rows(tmp_path / "posts.jsonl", generate(1_500, 1))
    rows = source.read_bytes().splitlines(keepends=True)
    whole = piped(["dedup", "-q", source])
    target = tmp_path / "out"
    with target.open("wb") as out, started("dedup", "-q", stdout=out) as running:
        running.stdin.write(b"".join(rows[:20]))
        running.stdin.flush()
        while running.poll() is None and not target.stat().st_size:
            time.sleep(0.01)
        running.stdin.write(b"".join(rows[20:]))
        running.stdin.close()
        assert running.wait(300) == 0
    assert target.read_bytes() == whole.stdout
    assert 0 < whole.stdout.count(b"\n") < len(rows)


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    """A folder of all users, as /tmp is one."""
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(0o1777)
    return folder


@pytest.mark.parametrize(
    ("flag", "what"),
    [
        *(("-o", what) for what in ("file", "nothing", "folder", "pipe", "chain")),
        ("--duplicates", "file"),
        ("--state", "nothing"),
        ("--state", "folder"),
    ],
)
def test_an_output_follows_no_link_of_somebody_else_where_all_may_write(
    tmp_path: Path, source: Path, run: Run, shared: Path, stranger: int, what: str, flag: str
) -> None:
    important, link = tmp_path / "important", shared / "link"
    named = link
    if what == "folder":
        important.mkdir()
        named = link / "out"
    elif what == "pipe":
        os.mkfifo(important)
    elif what != "nothing":
        important.write_bytes(b"important")
    link.symlink_to(important)
    os.chown(link, stranger, -1, follow_symlinks=False)
    if what == "chain":
        named = tmp_path / "own"
        named.symlink_to(link)
    before = sorted(tmp_path.rglob("*"))
    others = [] if flag == "-o" else ["-o", tmp_path / "o"]
    ran = run("dedup", "-q", source, *others, flag, named, *SMALL)
    assert ran.code != 0
    assert f"{link} is a link of another user in a shared folder; remove it" in ran.err
    if what in ("file", "chain"):
        assert important.read_bytes() == b"important"
    assert [
        path for path in sorted(tmp_path.rglob("*")) if path not in before and path.name != "link.lock"
    ] == []


@pytest.mark.parametrize("whose", ["own", "the folder's owner's"])
def test_a_link_that_one_may_trust_is_followed(
    tmp_path: Path, source: Path, run: Run, shared: Path, stranger: int, whose: str
) -> None:
    (tmp_path / "out").touch()
    link = shared / "link"
    link.symlink_to(tmp_path / "out")
    if whose == "the folder's owner's":
        for path in (shared, link):
            os.chown(path, stranger, -1, follow_symlinks=False)
    assert run("dedup", "-q", source, "-o", link, *SMALL).code == 0
    assert link.is_symlink()
    assert (tmp_path / "out").stat().st_size


def test_a_link_of_somebody_else_is_followed_where_only_he_can_have_put_it(
    tmp_path: Path, source: Path, run: Run, stranger: int
) -> None:
    """As in a folder of his own, which was named on purpose."""
    (tmp_path / "out").touch()
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "out")
    os.chown(link, stranger, -1, follow_symlinks=False)
    assert run("dedup", "-q", source, "-o", link, *SMALL).code == 0
    assert (tmp_path / "out").stat().st_size


def test_waiting_for_a_stream_is_no_reading(
    tmp_path: Path, source: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s = 0.0

    def wait(_descriptor: int) -> None:
        nonlocal now_s
        now_s += 1000

    monkeypatch.setattr("twinsieve.pipeline.files.source._wait_for", wait)
    monkeypatch.setattr("twinsieve.pipeline.files.source.perf_counter", lambda: now_s)
    monkeypatch.setattr("twinsieve.pipeline.dedup.inputs.perf_counter", lambda: now_s)
    monkeypatch.setattr("twinsieve.pipeline.dedup.inputs.thread_time", lambda: 0.0)
    reader, writer = os.pipe()
    os.write(writer, b"".join(source.read_bytes().splitlines(keepends=True)[:20]))
    os.close(writer)
    stats = tmp_path / "stats.json"
    ran = run("dedup", f"/dev/fd/{reader}", "-o", tmp_path / "o.jsonl", "--stats", stats, *SMALL)
    os.close(reader)
    told = json.loads(stats.read_bytes())
    assert (ran.code, told["rows"], told["micros_per_row"]["read"]) == (0, 20, 0)
    assert told["wait_seconds"] >= 1000
    assert "waited" in ran.err
