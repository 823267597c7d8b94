"""The leader book: id, text and place (file and line) of every kept message, found by its position.

The sieve stores only the positions of leaders. The book is on disk, and is kept only if an output shows
leaders, or if the state has a book already. It has two generations of up to `window` kept messages each. When
the newer one is full, the older one is deleted and a new one begins. So every leader inside the window is
found, and the book never holds more than twice the window.

Every row has a checksum in its entry, and the marks hold a checksum of all entries. So changes on disk are
detected before they are shown as the text of a leader. SQLite is as fast and its files are 8 % larger, but it
has no checksums of content: a missing row would only be noticed by reading all rows.
"""

from __future__ import annotations

import os
import tempfile
import zlib
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from types import NoneType
from typing import Any, BinaryIO, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from twinsieve.pipeline.files import FileError
from twinsieve.pipeline.files.write import write_all
from twinsieve.pipeline.messages.spelling import Written, decoded, to_json, written_at
from twinsieve.stages.errors import NEW_STATE, StateError

_ENTRY = np.dtype([("position", "<i8"), ("end", "<i8"), ("sum", "<u4")])


class Leader(NamedTuple):
    """A kept message.

    id: as in `MessageColumns.ids`; text: as in the input
    source, line: input and line number of the message; None if they are not known
    element: its index in a list there, if it is an item of one
    """

    id: object
    text: str
    source: str | None = None
    line: int | None = None
    element: int | None = None


class LeaderBook:
    """Finds kept messages by their positions.

    window: number of newest kept messages that must be found, at least 1
    folder: folder of the book's files (mode 0600), the one of the state; None: unnamed temporary files,
        deleted with the process
    marks: result of `marks()` from the saved state; everything written after that save is cut off
    raises: FileError if the book cannot be written; StateError if a part that `marks` names is missing or was
        changed
    """

    def __init__(self, window: int, folder: Path | None = None, marks: list[list[int]] | None = None) -> None:
        self._window = window
        self._folder = folder
        self._generations: list[_BookGeneration] = []
        with ExitStack() as undo:
            undo.callback(self.close)
            try:
                for number, count, sum_ in marks or []:
                    self._generations.append(_BookGeneration(number, folder, count, sum_))
                self.tidy()
                if not self._generations:
                    self._generations.append(_BookGeneration(0, folder, 0))
            except OSError as error:
                raise self._failed(error) from error
            undo.pop_all()

    def add(self, positions: NDArray[np.int64], kept: Iterable[Leader]) -> None:
        """Add kept messages to the book.

        positions: int64[n], ascending, and greater than all earlier ones; kept: the n messages
        """
        if not len(positions):
            return
        rows = [to_json([*leader] if leader.element is not None else leader[:-1]) for leader in kept]
        try:
            if self._generations[-1].count >= self._window:
                self._generations.append(_BookGeneration(self._generations[-1].number + 1, self._folder, 0))
                for old in self._generations[:-2]:
                    old.close()
                del self._generations[:-2]
            self._generations[-1].append(positions, rows)
        except OSError as error:
            raise self._failed(error) from error

    def find(self, positions: NDArray[np.int64]) -> dict[int, Leader]:
        """The leaders at these positions; a position that the book does not hold is left out.

        raises: StateError
        """
        leaders: dict[int, Leader] = {}
        for generation in self._generations:
            leaders |= generation.find(np.unique(positions))
        return leaders

    def marks(self) -> list[list[int]]:
        """Put the files on disk; for each generation [number, number of rows, checksum of its entries].

        These marks are saved in the state, and `__init__` cuts the files back to them.
        """
        for generation in self._generations:
            generation.sync()
        return [[generation.number, generation.count, generation.sum] for generation in self._generations]

    def _failed(self, error: OSError) -> FileError:
        place = self._folder or "temporary files"
        return FileError(f"{place}: texts and ids of kept rows cannot be stored: {error.strerror}")

    def close(self) -> None:
        """Close the files; files in a folder are not deleted."""
        for generation in self._generations:
            generation.close()

    def tidy(self) -> None:
        """Delete the files of old generations; only allowed after a state without them is on disk."""
        if self._folder is None:
            return
        names = {name for generation in self._generations for name in generation.names}
        for path in self._folder.glob("leaders-*"):
            if path.name not in names:
                path.unlink()


def book_files(marks: list[list[int]]) -> set[str]:
    """Names of the files of a book with these marks."""
    return {name for number, *_ in marks for name in _names(number)}


def _names(number: int) -> list[str]:
    return [f"leaders-{number}.rows", f"leaders-{number}.entries"]


class _BookGeneration:
    """One generation of the book: a file of rows, and a file with an entry for each row.

    An entry holds the row's position, its end in the file of rows, and its checksum.
    count: number of rows from earlier runs; sum_: checksum of their entries
    """

    def __init__(self, number: int, folder: Path | None, count: int, sum_: int = 0) -> None:
        self.number = number
        self.count = count
        self.sum = sum_
        self.names = _names(number)
        self._folder = folder
        self._mapped: NDArray[np.void] | None = None
        with ExitStack() as undo:
            self._rows = undo.enter_context(self._open(self.names[0], kept=count > 0))
            self._index = undo.enter_context(self._open(self.names[1], kept=count > 0))
            self._end = self._cut_to(count)
            undo.pop_all()

    def _cut_to(self, count: int) -> int:
        """Cut both files to their first `count` rows; returns the bytes of these rows. raises: StateError"""
        if os.fstat(self._index.fileno()).st_size < count * _ENTRY.itemsize:
            raise self._damaged(self.names[1], "is cut off")
        self._index.truncate(count * _ENTRY.itemsize)
        if count and zlib.crc32(self._map().data) != self.sum:
            raise self._damaged(self.names[1], "was changed")
        ends = self._map()["end"] if count else np.zeros(1, np.int64)
        # Their differences are lengths of rows, for which memory is taken.
        if ends[0] < 0 or (ends[1:] < ends[:-1]).any():
            raise self._damaged(self.names[1], "was changed")
        end = int(ends[-1])
        if os.fstat(self._rows.fileno()).st_size < end:
            raise self._damaged(self.names[0], "is cut off")
        self._rows.truncate(end)
        self._rows.seek(end)
        self._index.seek(count * _ENTRY.itemsize)
        return end

    def _damaged(self, name: str, problem: str) -> StateError:
        place = name if self._folder is None else self._folder / name
        return StateError(f"{place}: {problem}; restore it, or {NEW_STATE}")

    def _open(self, name: str, *, kept: bool) -> BinaryIO:
        if self._folder is None:
            return tempfile.TemporaryFile(prefix="twinsieve-", buffering=0)
        flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | (0 if kept else os.O_CREAT | os.O_TRUNC)
        try:
            descriptor = os.open(self._folder / name, flags, 0o600)
        except FileNotFoundError as error:
            raise self._damaged(name, "is missing") from error
        return os.fdopen(descriptor, "r+b", buffering=0)

    def append(self, positions: NDArray[np.int64], rows: list[bytes]) -> None:
        entries = np.empty(len(rows), _ENTRY)
        entries["position"] = positions
        entries["end"] = self._end + np.cumsum([len(row) for row in rows])
        entries["sum"] = [zlib.crc32(row) for row in rows]
        write_all(self._rows, b"".join(rows))
        write_all(self._index, entries.tobytes())
        self._end = int(entries["end"][-1])
        self.sum = zlib.crc32(entries.data, self.sum)
        self.count += len(rows)
        self._mapped = None

    def find(self, positions: NDArray[np.int64]) -> dict[int, Leader]:
        if not self.count:
            return {}
        entries = self._map()
        stored_positions = entries["position"]
        slots = np.searchsorted(stored_positions, positions)
        leaders = {}
        for position, slot in zip(positions.tolist(), slots.tolist(), strict=True):
            if slot == self.count or stored_positions[slot] != position:
                continue
            start = int(entries["end"][slot - 1]) if slot else 0
            row = os.pread(self._rows.fileno(), int(entries["end"][slot]) - start, start)
            if zlib.crc32(row) != int(entries["sum"][slot]):
                raise self._damaged(self.names[0], "was changed")
            try:
                leaders[position] = _decoded(row)
            except (TypeError, ValueError):
                raise self._damaged(self.names[0], "was changed") from None
        return leaders

    def _map(self) -> NDArray[np.void]:
        if self._mapped is None:
            self._mapped = np.memmap(self._index, _ENTRY, "r", shape=(self.count,))
        return self._mapped

    def sync(self) -> None:
        if self._folder is not None:
            os.fsync(self._rows.fileno())
            os.fsync(self._index.fileno())

    def close(self) -> None:
        self._mapped = None
        self._rows.close()
        self._index.close()


def _decoded(row: bytes) -> Leader:
    id_, *rest = cast(list[Any], decoded(row))
    # If decoding changes the spelling of the id (a rounded number), keep its bytes as a `Written`.
    if not row.startswith(b"[" + to_json(id_) + b","):
        id_ = Written(written_at(row, (0,)))
    leader = Leader(id_, *rest)
    types = (str,), (str, NoneType), (int, NoneType), (int, NoneType)
    if not all(isinstance(value, kinds) for value, kinds in zip(leader[1:], types, strict=True)):
        raise TypeError("a row of the leader book has other types")
    return leader
