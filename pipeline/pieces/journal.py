"""`Journal`: writes what a sieve keeps to files while it judges, so that a save has little left to do.

The sieve hands over the messages of each chunk. When some thousands have gathered, another thread appends
them to the open piece. A save closes that piece, writes the parts that are new, and names all files that a
restore needs; the owner then writes the manifest and calls `announced`. Until then nothing refers to the new
files: after a crash they are swept. If a piece cannot be written (no space left, a store that is away), the
sieve goes on, and the next save writes an image of its memory in place of the messages that are missing.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from threading import BoundedSemaphore, Lock
from typing import BinaryIO, NamedTuple, cast

import mmh3

from twinsieve.pipeline.pieces import Moved, Watch, no_watch
from twinsieve.pipeline.pieces.kept_file import KeptFile, Record, read_records, record_of
from twinsieve.pipeline.pieces.manifest import Holds, StateFile, covering
from twinsieve.pipeline.pieces.storage import PARTIAL, NewFile, Storage
from twinsieve.stages.errors import StateError
from twinsieve.stages.exact.sections import Sections
from twinsieve.stages.judge.frozen import Frozen
from twinsieve.stages.judge.kept_messages import KeptMessages
from twinsieve.stages.judge.state import write_state

RECORD_MESSAGES = 4096
"""Messages of a record."""
_WAITING = 3
"""Records that may wait to be written; then the sieve waits too."""
_PATIENCE_S = 30.0
"""How long the sieve waits for a slow disk; after that, the piece counts as one that cannot be written."""
_CLOSING_S = 5.0
_FAN_IN = 16
"""This many neighbouring pieces of similar length are merged into one."""
_SMALLEST_PIECE = 1 << 16
"""A piece is closed when it has a quarter of the near window, but not before it has this many messages."""


class Cut(NamedTuple):
    """A save that has begun.

    frozen: the state; piece: done when the piece that ends with it is on disk
    """

    frozen: Frozen
    piece: Future[None]


class _Open(NamedTuple):
    """The piece that is being written."""

    file: NewFile
    kept: KeptFile


class Journal:
    """The files of one sieve in a folder.

    storage: the folder; scheme_id: fingerprint scheme of the sieve; window: near window in messages
    kept: number of the next message that the sieve keeps
    files: those from which the sieve was restored; empty for a sieve that has kept nothing
    noun: what errors call the saved state
    """

    def __init__(
        self,
        storage: Storage,
        scheme_id: str,
        window: int,
        kept: int = 0,
        files: Sequence[StateFile] = (),
        noun: str = "state",
    ) -> None:
        self._storage = storage
        self._scheme_id = scheme_id
        self._window = window
        self._noun = noun
        self._piece_messages = max(_SMALLEST_PIECE, window // 4)
        self._gathered: list[tuple[int, KeptMessages]] = []
        self._count = 0
        self._next = kept
        self._writer = ThreadPoolExecutor(1, "twinsieve-pieces")
        self._room = BoundedSemaphore(_WAITING)
        self._lock = Lock()
        self._open: _Open | None = None
        self._files = [file for file in files if file.holds is not Holds.PART]
        self._parts = {file.part: file for file in files if file.holds is Holds.PART}
        self._complete_from = min((file.first for file in self._files), default=kept)
        self._unannounced: dict[str, NewFile] = {}
        self._announced: set[str] = {file.name for file in files}
        self._broken: Exception | None = None
        self._closed = False
        self.written = 0
        """Bytes of all files written so far."""

    def take(self, first: int, messages: KeptMessages) -> None:
        """Note kept messages; `BatchSieve.on_kept`. first: number of the first one"""
        if first != self._next:
            # The window has passed the messages in between, so no restore needs what came before.
            self._hand_over()
            self._complete_from = first
        self._next = first + len(messages)
        if self._broken is not None:
            return
        self._gathered.append((first, messages))
        self._count += len(messages)
        if self._count >= RECORD_MESSAGES:
            self._hand_over()

    def _hand_over(self) -> None:
        """Let the writing thread append what has gathered; wait if it is behind."""
        gathered, self._gathered, self._count = self._gathered, [], 0
        if not gathered:
            return
        if self._room.acquire(timeout=_PATIENCE_S):
            self._writer.submit(self._append, gathered)
        elif self._broken is None:
            self._broken = StateError(f"{_PATIENCE_S:.0f} s were not enough to write a megabyte")

    def _append(self, gathered: list[tuple[int, KeptMessages]]) -> None:
        try:
            if self._broken is None:
                messages = KeptMessages.concat([part for _, part in gathered])
                self._write(record_of(gathered[0][0], messages))
        except Exception as error:  # noqa: BLE001 (stores raise what they like beside OSError)
            self._broken = error
        finally:
            self._room.release()

    def _write(self, record: Record) -> None:
        if self._open is not None and self._open.kept.end != record.first:
            opened, self._open = self._open, None
            opened.file.discard()
        if self._open is None:
            self._open = self._begin_piece(record.first)
        kept = self._open.kept
        before = kept.size
        kept.add(record)
        self.written += kept.size - before
        if kept.end - kept.first >= self._piece_messages:
            self._close_piece()

    def _begin_piece(self, first: int) -> _Open:
        file = self._storage.create(f"kept-{first:016d}-{secrets.token_hex(4)}.piece")
        return _Open(file, KeptFile(file.stream, self._scheme_id, first))

    def _close_piece(self) -> None:
        """Complete the open piece, if there is one. An error is kept in `_broken`."""
        opened, self._open = self._open, None
        if opened is None:
            return
        if self._broken is not None:
            opened.file.discard()
            return
        try:
            self._complete(opened)
        except Exception as error:  # noqa: BLE001 (as in `_append`)
            self._broken = error
            opened.file.discard()
        else:
            self._drop_passed(opened.kept.end - self._window)

    def _complete(self, opened: _Open) -> None:
        """Put a piece on disk under its name, and note it."""
        kept = opened.kept
        kept.finish()
        opened.file.finish()
        with self._lock:
            self._unannounced[opened.file.name] = opened.file
            self._files.append(
                StateFile(
                    opened.file.name, Holds.KEPT, kept.size, kept.digest, first=kept.first, end=kept.end
                )
            )

    def _drop_passed(self, oldest: int) -> None:
        """Delete files that no manifest names and that the window has passed. oldest: first number in it"""
        with self._lock:
            passed = [file.name for file in self._files if file.end <= oldest]
            self._files = [file for file in self._files if file.end > oldest]
            unnamed = [self._unannounced.pop(name) for name in passed if name in self._unannounced]
        for file in unnamed:
            file.discard()

    def cut(self, frozen: Frozen, image: Callable[[], Sections]) -> Cut:
        """Begin a save of this state; call it in the thread that judges, before the next `judge`.

        image: returns the memory of the near stage. It is written here and now if messages are missing
        raises: StateError if it cannot be written
        """
        self._hand_over()
        closed = self._writer.submit(self._close_piece)
        if self._broken is not None or frozen.oldest < self._complete_from:
            closed.result()
            self._write_image(frozen, image())
        return Cut(frozen, closed)

    def _write_image(self, frozen: Frozen, sections: Sections) -> None:
        name = f"image-{frozen.kept:016d}-{secrets.token_hex(4)}.piece"
        written = self._write_sections(name, sections, no_watch)
        with self._lock:
            self._files = [written._replace(holds=Holds.IMAGE, first=frozen.oldest, end=frozen.kept)]
        self._complete_from, self._next = frozen.oldest, frozen.kept
        self._broken = None

    def write(self, cut: Cut, others: Sequence[StateFile] = (), watch: Watch = no_watch) -> list[StateFile]:
        """Write what is new in a state; it may be called in any thread. returns: all files of the state

        others: files of the newest state in the folder. Another process may have written it, and deleted
            files from which this sieve was restored; a kept message and a part are the same in both
        raises: StateError if a file cannot be written, or was deleted; the next save then writes an image
        """
        cut.piece.result()
        frozen = cut.frozen
        if self._broken is not None:
            raise self._failed(self._broken)
        self._adopt(others)
        for part in set(self._parts) - set(frozen.parts):
            del self._parts[part]
        for part, read in frozen.parts.items():
            if part not in self._parts:
                file = f"{part}-{secrets.token_hex(4)}.part"
                self._parts[part] = self._write_sections(file, read(), watch)._replace(part=part)
                read()  # raises if the window passed the part while it was written
        chosen = self._chosen(frozen)
        try:
            while (small := _similar(chosen)) is not None:
                self._merge(small, watch)
                chosen = self._chosen(frozen)
        except Exception as error:  # noqa: BLE001 (as in `_append`)
            raise self._failed(error) from None
        return [*chosen, *self._parts.values()]

    def _adopt(self, others: Sequence[StateFile]) -> None:
        """Use these files where this journal has none, or where its own were deleted."""
        there = set(self._storage.names())
        with self._lock:
            known = {file.name for file in self._files}
            kept = [file for file in others if file.holds is Holds.KEPT and file.name not in known]
            self._files = [file for file in [*self._files, *kept] if file.name in there]
        parts = {file.part: file for file in others if file.holds is Holds.PART}
        self._parts = {part: file for part, file in (parts | self._parts).items() if file.name in there}

    def _chosen(self, frozen: Frozen) -> list[StateFile]:
        with self._lock:
            files = covering(self._files, frozen.oldest, frozen.kept)
        if files is None:
            self._broken = StateError("some of its files were deleted; the next one is written whole")
            raise self._failed(self._broken)
        return files

    def _write_sections(self, name: str, sections: Sections, watch: Watch) -> StateFile:
        file: NewFile | None = None
        try:
            file = self._storage.create(name)
            stream = _Counted(file.stream, watch)
            write_state(cast("BinaryIO", stream), self._scheme_id, {}, sections)
            file.finish()
        except Exception as error:  # noqa: BLE001 (as in `_append`)
            if file is not None:
                file.discard()
            raise self._failed(error) from None
        self._unannounced[name] = file
        self.written += stream.count
        return StateFile(name, Holds.PART, stream.count, stream.digest.digest().hex())

    def _merge(self, files: Sequence[StateFile], watch: Watch) -> None:
        """Write these neighbouring pieces as one. raises: StateError, errors of the store"""
        opened = self._begin_piece(files[0].first)
        try:
            for file in files:
                with self._storage.open(file.name) as stream:
                    shown = self._storage.shown(file.name)
                    for record in read_records(stream, shown, self._scheme_id, file.digest):
                        opened.kept.add(record)
                        watch(Moved("writing", opened.kept.size, 0))
            self.written += opened.kept.size
            self._complete(opened)
        except Exception:
            opened.file.discard()
            raise
        with self._lock:
            merged = {file.name for file in files}
            self._files = [file for file in self._files if file.name not in merged]

    def announced(self, files: Collection[StateFile], referenced: Collection[str] | None) -> None:
        """A manifest names these files now; delete the files that no manifest names any more.

        referenced: names in all manifests of the folder; None if one of them cannot be read: then other
            processes' files stay
        raises: errors of the store
        """
        now = {file.name for file in files}
        end = max((file.end for file in files), default=0)
        with self._lock:
            # Pieces behind the end belong to the next save.
            self._files = [file for file in self._files if file.name in now or file.end > end]
            waiting = {file.name for file in self._files} - now
            done = [name for name in self._unannounced if name not in waiting]
            files_done = {name: self._unannounced.pop(name) for name in done}
        for name, file in files_done.items():
            file.release() if name in now else file.discard()
        self._announced |= now
        wanted = now | waiting | set(referenced or ())
        for name in self._storage.names():
            if name in wanted or not name.endswith((".piece", ".part", PARTIAL)):
                continue
            if referenced is not None and name in self._announced:
                self._storage.remove(name)
            elif referenced is not None:
                self._storage.sweep(name)
        self._announced &= wanted

    def _failed(self, error: Exception) -> StateError:
        return StateError(
            f"{self._storage.address}: {self._noun} cannot be written ({self._storage.kind_of(error)}); free "
            "space or fix permissions"
        )

    def close(self) -> None:
        """Delete the files that no manifest names, and end the writing thread. A store that hangs is not
        waited for."""
        if self._closed:
            return
        self._closed = True
        self._broken = self._broken or StateError("closed")
        ended = self._writer.submit(self._discard_all)
        self._writer.shutdown(wait=False)
        with suppress(TimeoutError):
            ended.result(_CLOSING_S)

    def _discard_all(self) -> None:
        self._close_piece()
        with self._lock:
            files, self._unannounced = list(self._unannounced.values()), {}
        for file in files:
            file.discard()


def _similar(files: Sequence[StateFile]) -> Sequence[StateFile] | None:
    """The first `_FAN_IN` neighbouring pieces whose lengths have the same power of `_FAN_IN`; None if there
    are none. So each message is merged as many times as the window has powers more than a piece."""
    first = 0
    for at, file in enumerate(files):
        same = files[first].holds is file.holds is Holds.KEPT and _power(file) == _power(files[first])
        first = first if same else at
        if at - first + 1 == _FAN_IN and file.holds is Holds.KEPT:
            return files[first : at + 1]
    return None


def _power(file: StateFile) -> int:
    return ((file.end - file.first).bit_length() - 1) // (_FAN_IN.bit_length() - 1)


class _Counted:
    """A stream that counts the bytes that it passes on, and computes their digest."""

    def __init__(self, stream: BinaryIO, watch: Watch) -> None:
        self._stream = stream
        self._watch = watch
        self.count = 0
        self.digest = mmh3.mmh3_x64_128()

    def write(self, data: bytes) -> int:
        size = self._stream.write(data)
        self.digest.update(data)
        self.count += memoryview(data).nbytes
        self._watch(Moved("writing", self.count, 0))
        return size
