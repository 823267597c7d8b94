"""A stream with `--state` that ends early: what is out is in the state; nothing is lost, nothing comes twice."""

from __future__ import annotations

import array
import fcntl
import gzip
import json
import os
import signal
import subprocess
import sys
import termios
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from tests.calling import SMALL, Piped, Start, Started, setting
from tests.generated_posts import generate
from tests.row_files import read_lines, write_rows
from twinsieve.pipeline.dedup import Wanted
from twinsieve.pipeline.dedup.job import Dedup, Job
from twinsieve.pipeline.dedup.saves import SAVE_EVERY_S, Stop
from twinsieve.pipeline.files.formats.json_lines import JsonLines
from twinsieve.pipeline.files.source import InputSource
from twinsieve.pipeline.settings.model import Settings

_TEXTS = (
    "one row and the pipe stays open",
    "another that is quite different",
    "完全不同的一句",
    "the last of them",
)
_ROWS = [json.dumps({"text": text}, ensure_ascii=False).encode() + b"\n" for text in _TEXTS]


@pytest.mark.parametrize(
    ("number", "unfinished"),
    [(signal.SIGINT, b""), (signal.SIGTERM, b'{"text": "no en'), (signal.SIGHUP, b"")],
)
def test_a_stopped_stream_saves_what_came_out(
    tmp_path: Path, started: Start, piped: Piped, number: int, unfinished: bytes
) -> None:
    state, dropped = tmp_path / "state", tmp_path / "dropped.jsonl"
    call = ("dedup", "-q", "--state", state, "--duplicates", dropped, *SMALL)
    with started(*call) as running:
        for row in _ROWS[:2]:
            assert running.answer_to(row + row) == row
        running.stdin.write(unfinished)
        running.stdin.flush()
        while unfinished and _unread(running.stdin.fileno()):
            time.sleep(0.01)
        running.send_signal(number)
        assert running.stdout.read() == b""
        lost = f"; {len(unfinished)} bytes of a row without its end are lost" if unfinished else ""
        assert running.stderr.read().decode() == (
            f"twinsieve: stopped before the end of the input; all rows that came out are in {state}{lost}\n"
        )
        assert running.wait(300) == 128 + number
    assert [entry["position"] for entry in read_lines(dropped)] == [2, 4]
    ran = piped(call, b"".join(_ROWS))
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, b"".join(_ROWS[2:]), b"")


_SIGNALLED_ASIDE = """
import signal, sys, threading
from twinsieve.pipeline.commands.cli import main

def aside():
    with open(sys.argv.pop(1), "rb") as order:
        order.read()
    signal.pthread_kill(threading.get_ident(), signal.SIGTERM)

threading.Thread(target=aside, daemon=True).start()
sys.exit(main())
"""


def test_a_signal_that_interrupts_no_wait_stops_a_stream_at_once(tmp_path: Path, root: Path) -> None:
    """It comes to another thread, as one may come just before the wait for input begins."""
    state, order = tmp_path / "state", tmp_path / "order"
    os.mkfifo(order)
    call = [sys.executable, "-c", _SIGNALLED_ASIDE, order, "dedup", "-q", "--state", state, *SMALL]
    with Started(call, cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as running:
        assert running.answer_to(_ROWS[0]) == _ROWS[0]
        # By then it waits, in all likelihood; if not, the signal is seen without being waited for.
        time.sleep(0.5)
        order.write_bytes(b"now")
        assert running.wait(SAVE_EVERY_S / 2) == 143


def _unread(pipe: int) -> int:
    """Bytes in a pipe that its reader has not taken."""
    found = array.array("i", [0])
    fcntl.ioctl(pipe, termios.FIONREAD, found)
    return found[0]


def test_a_stopped_file_goes_on_with_the_rows_that_did_not_come_out(
    tmp_path: Path, started: Start, piped: Piped
) -> None:
    """Its content is not taken for read: repeated, it gives the other rows, and the two parts are the whole."""
    source = write_rows(tmp_path / "in.jsonl", generate(20_000, seed=5))
    call = ("dedup", source, "-q", *setting("near.window.messages=21000", "exact.window.messages=21000"))
    state = ("--state", tmp_path / "state")
    whole = piped(call)
    with started(*call, *state) as running:
        first = running.stdout.readline()
        running.send_signal(signal.SIGTERM)
        first += running.stdout.read()
        assert running.wait(300) == 143
    assert (whole.returncode, len(first) < len(whole.stdout)) == (0, True)
    again = piped([*call, *state])
    assert (again.returncode, again.stderr) == (0, b"")
    assert first + again.stdout == whole.stdout


def test_a_stream_without_a_state_says_what_is_true_of_stdout(started: Start) -> None:
    with started("dedup", "-q", *SMALL) as running:
        assert running.answer_to(_ROWS[0]) == _ROWS[0]
        running.send_signal(signal.SIGTERM)
        _, err = running.communicate(timeout=300)
        said = b"interrupted; rows that came out on stdout stay there, nothing else was put in place"
        assert (running.returncode, err) == (143, b"twinsieve: " + said + b"\n")


def test_a_stop_while_a_pipe_has_no_writer_ends_the_run(tmp_path: Path, started: Start) -> None:
    pipe, source = tmp_path / "pipe", tmp_path / "in.jsonl"
    os.mkfifo(pipe)
    source.write_bytes(_ROWS[0])
    call = ("dedup", source, pipe, "-q", "--format", "jsonl", "--state", tmp_path / "state", *SMALL)
    with started(*call) as running:
        assert running.stdout.readline() == _ROWS[0]
        running.send_signal(signal.SIGTERM)
        _, err = running.communicate(timeout=300)
        assert (running.returncode, err.startswith(b"twinsieve: stopped before the end")) == (143, True)
    assert (tmp_path / "state" / "state").exists()


def test_an_input_that_fails_leaves_a_state_that_knows_the_rows_before(tmp_path: Path, piped: Piped) -> None:
    packed = gzip.compress(b"".join(_ROWS[1:]))
    good, bad = tmp_path / "good.jsonl", tmp_path / "bad.jsonl.gz"
    good.write_bytes(_ROWS[0])
    bad.write_bytes(packed[:-9])
    call = ("dedup", good, bad, "-q", "--state", tmp_path / "state", *SMALL)
    ran = piped(call)
    assert (ran.returncode, ran.stdout[: len(_ROWS[0])]) == (1, _ROWS[0])
    bad.write_bytes(packed)
    again = piped(call)
    assert (again.returncode, ran.stdout + again.stdout) == (0, b"".join(_ROWS))


def test_a_row_that_strict_refuses_leaves_a_state_with_the_rows_before(tmp_path: Path, piped: Piped) -> None:
    good, bad = tmp_path / "good.jsonl", tmp_path / "bad.jsonl"
    good.write_bytes(_ROWS[0])
    bad.write_bytes(b"{\n" + b"".join(_ROWS[1:]))
    call = ("dedup", good, bad, "-q", "--strict", "--state", tmp_path / "state", *SMALL)
    ran = piped(call)
    assert (ran.returncode, ran.stdout) == (1, _ROWS[0])
    bad.write_bytes(b"".join(_ROWS[1:]))
    again = piped(call)
    assert (again.returncode, again.stdout) == (0, b"".join(_ROWS[1:]))


@pytest.mark.parametrize("ending", ["", ".gz", ".zst"])
def test_a_stream_saves_again_and_again_also_while_it_waits(
    tmp_path: Path, settings: Settings, ending: str
) -> None:
    """Killed after any save, the state knows every row that is out, and the duplicates so far have their name."""
    source, target = tmp_path / "in", tmp_path / "out"
    state, dropped = tmp_path / "state", tmp_path / f"dropped.jsonl{ending}"
    os.mkfifo(source)
    os.mkfifo(target)
    job = Job([str(source)], JsonLines(), Wanted(str(target), duplicates=str(dropped), state=str(state)))
    stop = Stop()
    with Dedup(job, settings, 0) as dedup:
        run = threading.Thread(target=lambda: dedup.run(stop=stop, save_every_s=0.0), daemon=True)
        run.start()
        with target.open("rb") as reader, source.open("wb", buffering=0) as writer:
            seen: list[bytes] = []
            pieces: set[str] = set()
            for number, row in enumerate(_ROWS, start=1):
                writer.write(row + row)
                assert reader.readline() == row
                _until_it_knows(state, 2 * number)
                seen.append(dropped.read_bytes())
                assert pieces < (pieces := {path.name for path in state.glob("*.piece")}), "written once"
                lines = _unpacked(dropped)
                assert [json.loads(line)["position"] for line in lines] == list(range(2, 2 * number + 1, 2))
            assert len(set(seen)) == len(_ROWS)
        run.join(300)
        assert not run.is_alive()
    assert len(_unpacked(dropped)) == len(_ROWS)
    stop.close()


def _unpacked(path: Path) -> list[bytes]:
    with InputSource(str(path)) as source:
        return b"".join(source.blocks()).splitlines()


def _until_it_knows(state: Path, rows: int) -> None:
    deadline = time.monotonic() + 60
    while _rows_in(state) != rows:
        assert time.monotonic() < deadline
        time.sleep(0.005)


def _rows_in(state: Path) -> int:
    """Rows that a state knows, 0 where there is none."""
    try:
        content = (state / "state").read_bytes()
    except FileNotFoundError:
        return 0
    start = content.index(b'{"fields"')
    told: dict[str, Any] = json.JSONDecoder().raw_decode(
        content[start : start + 4096].decode(errors="replace")
    )[0]
    return int(told["rows"])
