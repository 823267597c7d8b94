"""A folder that hangs, as on a network file system whose server is away: whoever opens, lists, renames or deletes
something below it waits. Python's own audit events tell of these calls, so nothing of the product is replaced."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_CALLS = ("open", "os.listdir", "os.scandir", "os.rename", "os.remove", "os.mkdir")


class HungFolder:
    """The folder while it hangs.

    waiting: names of the threads that wait for it
    touched: calls of the thread `never`, which do not wait: they are what a test looks for
    """

    def __init__(self, path: Path, never: int | None) -> None:
        self._path = str(path)
        self._never = never
        self._is_back = threading.Event()
        self.waiting: list[str] = []
        self.touched: list[str] = []

    def meet(self, event: str, where: object) -> None:
        """Wait, if `where` is below the folder."""
        if self._is_back.is_set() or not str(where).startswith(self._path):
            return
        if threading.get_ident() == self._never:
            self.touched.append(f"{event} {where}")
            return
        self.waiting.append(threading.current_thread().name)
        self._is_back.wait()

    def come_back(self) -> None:
        """All who wait go on."""
        self._is_back.set()


_hung: list[HungFolder] = []
_is_hooked = False


def _hear(event: str, arguments: tuple[object, ...]) -> None:
    if event in _CALLS and arguments and _hung:
        for folder in list(_hung):
            folder.meet(event, arguments[0])


@contextmanager
def hung(path: Path, never: int | None = None) -> Iterator[HungFolder]:
    """The folder hangs until the end of the block. never: a thread that must not wait for it"""
    global _is_hooked
    if not _is_hooked:
        sys.addaudithook(_hear)
        _is_hooked = True
    folder = HungFolder(path, never)
    _hung.append(folder)
    try:
        yield folder
    finally:
        _hung.remove(folder)
        folder.come_back()
