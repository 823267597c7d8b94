"""A pipe that nobody reads: whoever logs goes on, nothing changes its order, and what was dropped is counted."""

from __future__ import annotations

import logging
import os
import re
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from io import FileIO
from typing import BinaryIO

import pytest

from twinsieve.pipeline.service import stream_log as unread_log
from twinsieve.pipeline.service.stream_log import MAX_LINES, StreamLog, dropped_lines

_DEADLINE_S = 300.0
_TOLD = re.compile(r"log: (\d+) lines were dropped, because stderr was not read or failed")


class _Writes:
    """The end of a pipe that is written to. begun: set by the first write"""

    def __init__(self, raw: FileIO) -> None:
        self._raw = raw
        self.begun = threading.Event()

    def fileno(self) -> int:
        return self._raw.fileno()

    def write(self, data: bytes) -> int | None:
        self.begun.set()
        return self._raw.write(data)


@dataclass
class _Pipe:
    """A log whose pipe is full, so that its first line, "line 0", blocks the thread that writes."""

    log: logging.Logger
    handler: StreamLog
    reads: BinaryIO
    filled: int

    def lines(self, last: re.Pattern[str]) -> list[str]:
        """What a reader that returns finds, up to a line like `last`."""
        self.reads.read(self.filled)
        found = [""]
        while not last.fullmatch(found[-1]):
            found.append(self.reads.readline().decode().removesuffix("\n"))
        return found[1:]


@pytest.fixture
def full(log_as_before: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[_Pipe]:
    monkeypatch.setattr(unread_log, "_FLUSH_S", 0.01)
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    filled = 0
    while True:
        try:
            filled += os.write(writing, bytes(4096))
        except BlockingIOError:
            break
    os.set_blocking(writing, True)
    log, root = logging.Logger("full"), logging.getLogger()
    with closing(open(reading, "rb")) as reads, closing(FileIO(writing, "wb")) as raw:
        writes = _Writes(raw)
        handler = StreamLog(writes)
        log.addHandler(handler)
        root.addHandler(handler)
        log.warning("line 0")
        assert writes.begun.wait(_DEADLINE_S)
        yield _Pipe(log, handler, reads, filled)
        log.removeHandler(handler)
        root.removeHandler(handler)


def _in_time(work: threading.Thread) -> None:
    work.daemon = True
    work.start()
    work.join(_DEADLINE_S)
    assert not work.is_alive(), "it waits for the reader of the log"


def _log(full: _Pipe, first: int, end: int) -> None:
    for number in range(first, end):
        full.log.warning("line %d", number)


def test_who_logs_does_not_wait_and_a_reader_that_returns_finds_all_in_order(full: _Pipe) -> None:
    # Handlers that other tests left behind have dropped lines, too.
    end, before = 3 * MAX_LINES, dropped_lines()
    _in_time(threading.Thread(target=_log, args=(full, 1, end)))
    dropped = full.handler.dropped
    assert dropped_lines() - before == dropped > 0
    *read, told = full.lines(_TOLD)
    assert read == [f"line {number}" for number in range(end - dropped)]
    assert str(dropped) in told


def test_the_error_that_ends_a_process_finds_room_though_the_queue_is_full(full: _Pipe) -> None:
    _in_time(threading.Thread(target=_log, args=(full, 1, 2 * MAX_LINES)))
    full.log.critical("ends for this reason")
    assert full.lines(re.compile("ends for .*"))[-1] == "ends for this reason"


def test_the_end_of_a_process_does_not_wait_for_the_reader(full: _Pipe) -> None:
    full.log.warning("never read")
    _in_time(threading.Thread(target=full.handler.flush))


def test_a_disk_that_is_full_drops_lines_and_the_next_one_that_fits_tells_of_it() -> None:
    class Disk:
        is_full = True
        data = b""

        def fileno(self) -> int:
            return -1

        def write(self, data: bytes) -> int:
            if self.is_full:
                raise OSError(28, "No space left on device")
            self.data += data
            return len(data)

    disk = Disk()
    handler, log = StreamLog(disk), logging.Logger("disk")
    log.addHandler(handler)
    for number in range(5):
        log.warning("line %d", number)
        handler.flush()  # so that the lines about dropped lines meet the full disk, too
    disk.is_full = False
    log.warning("fits")
    handler.flush()
    told, fits = disk.data.decode().splitlines()
    assert (handler.dropped, fits) == (5, "fits")
    assert (found := _TOLD.fullmatch(told)) is not None
    assert found[1] == "5"
