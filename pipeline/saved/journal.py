"""`Journal`: writes what a sieve keeps to files while it judges, so that a save has little left to do.

The sieve hands over the messages of each chunk. When some thousands have gathered, another thread appends
them to the open piece. A save closes that piece, writes the parts that are new, and names all files that a
restore needs; the owner then writes the manifest and calls `announced`. Until then nothing refers to the new
files: after a crash they are swept. If a record cannot be written (no space left, a store that is away or
slow), the sieve continues, and saves fail with a MissingError until the window has passed the messages that
are missing, or a segment in a file has them. Or the owner begins again from its last state.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from threading import Lock
from typing import BinaryIO, NamedTuple, cast

from twinsieve.pipeline.basics.daemon_executor import DaemonExecutor
from twinsieve.pipeline.saved import Moved, UnreadableError, Watch, no_watch
from twinsieve.pipeline.saved.kept_file import KeptFile, Record, read_records, record_of
from twinsieve.pipeline.saved.manifest import Holds, StateFile, covering_files, leading_segments
from twinsieve.pipeline.saved.patience import RecordRoom
from twinsieve.pipeline.saved.piece_bytes import largest_piece
from twinsieve.pipeline.saved.saved_files import SavedFiles
from twinsieve.pipeline.saved.segment_files import ignore
from twinsieve.pipeline.saved.segment_writer import SegmentOwner, SegmentWriter
from twinsieve.pipeline.saved.storage import PARTIAL, NewFile, Storage, advice_on
from twinsieve.pipeline.saved.stored_texts import stored_texts
from twinsieve.pipeline.saved.watched_stream import WatchedStream
from twinsieve.stages.errors import StateError
from twinsieve.stages.exact.key_notes import joined_keys, run_to_join
from twinsieve.stages.exact.runs import covering, similar
from twinsieve.stages.exact.sections import Sections
from twinsieve.stages.judge.frozen import Frozen
from twinsieve.stages.judge.kept_messages import KeptMessages
from twinsieve.stages.judge.state_bytes import write_state
from twinsieve.stages.window.segments import Arrays, SealedSegment

RECORD_MESSAGES = 4096
"""Messages of a record."""
_CLOSING_S = 5.0

_TOO_SLOW = "the disk is too slow for what is kept"


class MissingError(StateError):
    """Kept messages that a restore needs are in no file.

    is_over: later ones are in files again, so that a sieve that is restored from the last state can be saved
    in_state: the files of that state have what is missing here, as far as is known; else only an older state
        or none may be whole
    """

    def __init__(self, message: str, *, is_over: bool, in_state: bool) -> None:
        super().__init__(message)
        self.is_over = is_over
        self.in_state = in_state


class Cut(NamedTuple):
    """A save that has begun.

    frozen: the state; piece: done when the piece that ends with it is on disk
    segments: the segments that were in files by then. In a later one messages may be forgotten that the
        state does not know as forgotten
    """

    frozen: Frozen
    piece: Future[None]
    segments: frozenset[str]


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
    scratch: folder for segments that are mapped, if those in the storage are not; None: that of the system.
        A copy of each goes to the storage
    report: called from another thread with one line if a segment cannot be written
    patience_s: how long the sieve waits for a slow disk, in all (`PATIENCE_S`); None: as long as it takes
    """

    def __init__(
        self,
        storage: Storage,
        scheme_id: str,
        window: int,
        kept: int = 0,
        files: Sequence[StateFile] = (),
        noun: str = "state",
        scratch: str | None = None,
        report: Callable[[str], None] = ignore,
        patience_s: float | None = None,
    ) -> None:
        self._storage = storage
        self._scheme_id = scheme_id
        self._window = window
        self._noun = noun
        self._piece_messages = largest_piece(window)
        self._gathered: list[tuple[int, KeptMessages]] = []
        self._count = 0
        self.segments = SegmentWriter(storage, scheme_id, scratch, report)
        self._writer = DaemonExecutor("twinsieve-pieces")
        self._room = RecordRoom(patience_s, lambda: storage.calls.hung() is not None)
        self._lock = Lock()
        self._limit_s = patience_s
        self._open: _Open | None = None
        self._files: list[StateFile] = []
        self._parts: dict[str, StateFile] = {}
        self._complete_from = kept
        self._announced: set[str] = set()
        self._unannounced: dict[str, NewFile] = {}
        self._why_lost = "kept messages are missing"
        """Why the last messages that are missing in the files were lost."""
        self._is_in_state = True
        """As in `MissingError`."""
        self._saving_from: int | None = None
        """A running save needs the kept messages from this number on; None if no save is running."""
        self._promised: set[str] = set()
        """Files that the owner may be naming in a manifest now."""
        self._saved_from = self._saved_to = 0
        """That manifest needs the kept messages from the first number to the second (exclusive)."""
        self._closed = False
        self.written = 0
        """Bytes of all files that were completed so far."""
        self.resume(kept, files)

    def resume(self, kept: int, files: Sequence[StateFile]) -> None:
        """Begin with the state that was restored, after `write_segment` was used in the restore, and before
        `take`. kept, files: as for the class"""
        self._next = kept
        with self._lock:
            restored = [file for file in files if file.holds is not Holds.PART]
            # A restore that failed, and began again without the near window, may have written others.
            self._files = [*restored, *(file for file in self._files if file.end <= kept)]
            self._parts = {file.part: file for file in files if file.holds is Holds.PART}
            self._complete_from = min((file.first for file in restored), default=kept)
            self._announced = {file.name for file in files}
        self.segments.drop_held(beyond=kept)

    def take(self, first: int, messages: KeptMessages) -> None:
        """Note kept messages; `BatchSieve.on_kept`. first: number of the first one"""
        if first != self._next:
            # The window has passed the messages in between, so no restore needs what came before.
            self._hand_over()
            with self._lock:
                self._complete_from = max(self._complete_from, first)
        self._next = first + len(messages)
        self._gathered.append((first, stored_texts(messages)))
        self._count += len(messages)
        if self._count >= RECORD_MESSAGES:
            self._hand_over()

    def _hand_over(self) -> None:
        """Let the writing thread append what has gathered; wait if it is behind."""
        gathered, self._gathered, self._count = self._gathered, [], 0
        if not gathered:
            return
        if self._room.take():
            self._writer.submit(self._append, gathered)
        else:
            self._lose(self._next, StateError(_TOO_SLOW))

    def _append(self, gathered: list[tuple[int, KeptMessages]]) -> None:
        first = gathered[0][0]
        end = first + sum(len(part) for _, part in gathered)
        try:
            if not self._closed:
                self._write(record_of(first, KeptMessages.concat([part for _, part in gathered])))
        except Exception as error:  # noqa: BLE001 (stores raise what they like beside OSError)
            self._discard_open()
            self._lose(end, error)
        finally:
            self._room.give_back()

    def _lose(self, end: int, error: Exception) -> None:
        """Note that kept messages before number `end` are in no file."""
        with self._lock:
            self._complete_from = max(self._complete_from, end)
            # Not the error itself: its traceback holds the messages.
            self._why_lost = self._storage.kind_of(error)

    def _discard_open(self) -> None:
        opened, self._open = self._open, None
        if opened is not None:
            opened.file.discard()

    def _write(self, record: Record) -> None:
        if self._open is not None and self._open.kept.end != record.first:
            self._discard_open()
        if self._open is None:
            self._open = self._begin_piece(record.first)
        kept = self._open.kept
        kept.add(record)
        if kept.end - kept.first >= self._piece_messages:
            self._close_piece()

    def _begin_piece(self, first: int) -> _Open:
        file = self._storage.create(f"kept-{first:016d}-{secrets.token_hex(4)}.piece")
        try:
            return _Open(file, KeptFile(file.stream, self._scheme_id, first, self._storage.signing.hashes))
        except Exception:
            file.discard()
            raise

    def _close_piece(self) -> None:
        """Complete the open piece, if there is one; one that cannot be written is lost."""
        opened, self._open = self._open, None
        if opened is None:
            return
        try:
            self._complete(opened)
        except Exception as error:  # noqa: BLE001 (as in `_append`)
            opened.file.discard()
            self._lose(opened.kept.end, error)
        else:
            self._drop_passed(opened.kept.end - self._window)

    def _complete(self, opened: _Open) -> None:
        """Put a piece on disk under its name, and note it."""
        kept = opened.kept
        kept.finish()
        opened.file.finish()
        self.written += kept.size
        with self._lock:
            self._unannounced[opened.file.name] = opened.file
            self._files.append(
                StateFile(
                    opened.file.name,
                    Holds.KEPT,
                    kept.size,
                    self._storage.signing.told(kept.digest),
                    first=kept.first,
                    end=kept.end,
                )
            )

    def _drop_passed(self, oldest: int) -> None:
        """Delete files that no manifest names and that the window has passed. oldest: first number in it"""
        with self._lock:
            if self._saving_from is not None:
                oldest = min(oldest, self._saving_from)
            passed = [file.name for file in self._files if file.end <= oldest]
            self._files = [file for file in self._files if file.end > oldest]
            unnamed = [self._unannounced.pop(name) for name in passed if name in self._unannounced]
        for file in unnamed:
            file.discard()

    @property
    def parts(self) -> frozenset[str]:
        """Names of the parts that are in files; `BatchSieve.freeze`. Call it while no save is running."""
        if not self._storage.is_local:
            return frozenset(self._parts)
        # Another process may have deleted what it has joined, or what it no longer needs.
        there = set(self._storage.names())
        return frozenset(part for part, file in self._parts.items() if file.name in there)

    @property
    def has_unnamed_segment(self) -> bool:
        """Whether there is a file of a segment that no manifest names, as far as is known."""
        with self._lock:
            names = {file.name for file in self._files if file.holds is Holds.SEGMENT}
            return self.segments.is_holding or not names <= self._announced

    def cut(self, frozen: Frozen) -> Cut:
        """Begin a save of this state; call it in the thread that judges, before the next `judge`.

        raises: StateError if the disk is so slow that the thread which writes would keep the save waiting
        """
        self._hand_over()
        if self._room.is_stuck:
            raise self._failed(StateError(_TOO_SLOW))
        self._saving_from = frozen.oldest
        closed = self._writer.submit(self._close_piece)
        if self._limit_s is None:
            closed.result()
            if self._complete_from > frozen.oldest:
                # A segment that is being written may have what was lost.
                self.segments.wait()
        with self._lock:
            segments = frozenset(file.name for file in self._files if file.holds is Holds.SEGMENT)
        return Cut(frozen, closed, segments)

    def write_segment(self, sealed: SealedSegment) -> Future[Arrays] | None:
        """Begin to write a sealed segment; `BatchSieve.seal_into`.

        A segment that cannot be written stays in memory, and its kept messages in their pieces. None: not
        now.
        """
        return self.segments.write(sealed, SegmentOwner(self._note_segment, self._is_wanted))

    def _note_segment(self, file: NewFile, segment: StateFile) -> None:
        with self._lock:
            if self._closed:
                raise StateError("the sieve has ended")
            self._unannounced[file.name] = file
            self._files.append(segment)
        self.written += segment.size

    def _is_wanted(self, end: int) -> bool:
        return end > self._next - self._window

    def write(self, cut: Cut, others: Sequence[StateFile] = (), watch: Watch = no_watch) -> list[StateFile]:
        """Write what is new in a state; it may be called in any thread. returns: all files of the state

        others: files of the newest state in the folder, if it continues the same numbers. Another process may
            have written it, and deleted files from which this sieve was restored; a kept message and a part
            are the same in both
        raises: MissingError if kept messages are in no file; StateError if a file cannot be written
        """
        try:
            cut.piece.result()
            return self._write_new(cut, others, watch)
        finally:
            self._saving_from = None

    def _write_new(self, cut: Cut, others: Sequence[StateFile], watch: Watch) -> list[StateFile]:
        self.publish(others)
        frozen, segments = cut.frozen, cut.segments | {file.name for file in others}
        chosen = self._chosen(frozen, segments)
        for part in set(self._parts) - set(frozen.parts):
            del self._parts[part]
        for part, read in frozen.parts.items():
            if part not in self._parts:
                file = f"{part}-{secrets.token_hex(4)}.part"
                self._parts[part] = self._write_sections(file, read(), watch)._replace(part=part)
                read()  # raises if the window passed the part while it was written
        self._join_runs(watch)
        # A merge that fails, perhaps for lack of space, is tried again at the next save.
        while (small := similar(_pieces(chosen))) and self._merge(small, watch):
            chosen = self._chosen(frozen, segments)
        files = [*chosen, *self._parts.values()]
        with self._lock:
            if self._closed:
                raise self._failed(StateError("its sieve has ended"))
            self._promised = {file.name for file in files}
            self._is_in_state = True
            self._saved_from, self._saved_to = frozen.oldest, frozen.kept
        return files

    def publish(self, others: Sequence[StateFile]) -> None:
        """Use these files, and begin to write the segments that were held back and are in none of them.

        others: as for `write`; raises: StateError if the folder cannot be listed
        """
        self._adopt(others)
        with self._lock:
            there = {(file.first, file.end) for file in self._files if file.holds is Holds.SEGMENT}
        self.segments.publish(there)

    def _adopt(self, others: Sequence[StateFile]) -> None:
        """Use these files where this journal has none, or where its own were deleted."""
        with self._lock:
            # What another thread completes during the listing may not be listed.
            before = {file.name for file in self._files}
        there = set(self._storage.names())
        with self._lock:
            known = {file.name for file in self._files}
            there |= known - before
            wanted = (Holds.KEPT, Holds.SEGMENT)
            kept = [file for file in others if file.holds in wanted and file.name not in known]
            self._files = [file for file in [*self._files, *kept] if file.name in there]
        parts = {file.part: file for file in others if file.holds is Holds.PART}
        self._parts = {part: file for part, file in (parts | self._parts).items() if file.name in there}

    def _chosen(self, frozen: Frozen, segments: Collection[str]) -> list[StateFile]:
        """The files that a state names for its kept messages. segments: names of those that it may name"""
        with self._lock:
            usable = [
                file for file in self._files if file.holds is not Holds.SEGMENT or file.name in segments
            ]
            files = covering_files(usable, frozen.oldest, frozen.kept)
            if files is None:
                raise self._missing(frozen)
        return files

    def _missing(self, frozen: Frozen) -> MissingError:
        """The error for kept messages of this state that are in no file. The caller holds the lock."""
        if self._complete_from <= frozen.oldest:
            self._why_lost, self._is_in_state = "some of its files were deleted", False
            self._complete_from = frozen.kept
        after = covering(_pieces(self._files), self._complete_from, frozen.kept)
        is_over = bool(after) and after[-1].end == frozen.kept
        why = self._why_lost
        segments = [*self._files, *self.segments.being_written.values()]
        leading = leading_segments(segments, frozen.oldest, frozen.kept)
        if leading and leading[-1].end >= self._complete_from:
            why, is_over = f"{why}, and the segment that has them is still being written", False
        return MissingError(str(self._failed(StateError(why))), is_over=is_over, in_state=self._is_in_state)

    def _write_sections(self, name: str, sections: Sections, watch: Watch) -> StateFile:
        file: NewFile | None = None
        try:
            file = self._storage.create(name)
            hashed = self._storage.signing.hashes()
            stream = WatchedStream(file.stream, lambda _: watch(Moved("writing", stream.count, 0)), hashed)
            write_state(cast("BinaryIO", stream), self._scheme_id, {}, sections)
            file.finish()
        except Exception as error:  # noqa: BLE001 (as in `_append`)
            if file is not None:
                file.discard()
            raise self._failed(error) from None
        with self._lock:
            self._unannounced[name] = file
        self.written += stream.count
        digest = self._storage.signing.told(hashed.digest().hex())
        return StateFile(name, Holds.PART, stream.count, digest)

    def _join_runs(self, watch: Watch) -> None:
        """Write small runs of keys that are many as one, which the next save names. raises: StateError if one
        of them is missing or damaged"""
        while (joined := run_to_join(self._parts)) is not None:
            parts = [self._read_part(name) for name in joined[1]]
            try:
                self._join(joined[0], parts, watch)
            except StateError:
                return  # perhaps for lack of space; it is tried again at the next save

    def _join(self, run: str, parts: Iterable[Sections], watch: Watch) -> None:
        """Write the keys of these parts as one. raises: StateError"""
        file = f"{run}-{secrets.token_hex(4)}.part"
        self._parts[run] = self._write_sections(file, joined_keys(parts), watch)._replace(part=run)

    def _read_part(self, name: str) -> Sections:
        """The sections of a part that was written. raises: StateError if its file is missing or damaged; then
        no save names it any more"""
        try:
            with SavedFiles(self._storage, [self._parts[name]], self._scheme_id) as saved:
                return saved.sections(name)
        except UnreadableError as error:
            del self._parts[name]
            raise self._failed(error) from None

    def _merge(self, files: Sequence[StateFile], watch: Watch) -> bool:
        """Write these neighbouring pieces as one; returns whether that succeeded. raises: StateError if one
        of them is missing or damaged"""
        opened: _Open | None = None
        try:
            opened = self._begin_piece(files[0].first)
            for file in files:
                self._copy_records(file, opened.kept, watch)
            self._complete(opened)
        except Exception as error:  # noqa: BLE001 (as in `_append`)
            if opened is not None:
                opened.file.discard()
            if isinstance(error, UnreadableError):
                raise self._failed(error) from None
            return False
        with self._lock:
            merged = {file.name for file in files}
            self._files = [file for file in self._files if file.name not in merged]
        return True

    def _copy_records(self, file: StateFile, target: KeptFile, watch: Watch) -> None:
        """Append the records of a piece. raises: UnreadableError if it is missing or damaged, after which no
        save names it; errors of the store"""
        try:
            shown = self._storage.shown(file.name)
            hashes = self._storage.signing.hashes_of(file.digest, shown)
            with self._storage.open(file.name) as stream:
                for record in read_records(stream, shown, self._scheme_id, file.digest, hashes):
                    target.add(record)
                    watch(Moved("writing", target.size, 0))
        except (UnreadableError, FileNotFoundError) as error:
            with self._lock:
                self._files = [other for other in self._files if other.name != file.name]
            lost = StateError(f"{self._storage.shown(file.name)} is missing or damaged")
            self._is_in_state = False
            self._lose(file.end, lost)
            raise UnreadableError(str(lost)) from error

    def announced(self, files: Collection[StateFile], referenced: Collection[str] | None) -> None:
        """A manifest names these files now; delete the files that no manifest names any more.

        referenced: names in all manifests of the folder; None if one of them cannot be read: then other
            processes' files stay
        raises: errors of the store
        """
        now = {file.name for file in files}
        with self._lock:
            # Later pieces belong to the next save. So do segments that were not ready for this one.
            self._files = [
                file
                for file in self._files
                if file.name in now
                or file.end > self._saved_to
                or (file.holds is Holds.SEGMENT and file.end > self._saved_from)
            ]
            waiting = {file.name for file in self._files} - now
            done = [name for name in self._unannounced if name not in waiting]
            files_done = {name: self._unannounced.pop(name) for name in done}
            self._promised = set()
        for name, file in files_done.items():
            file.release() if name in now else file.discard()
        self._announced |= now
        wanted = now | waiting | set(referenced or ())
        for name in self._storage.names():
            if name in wanted or not name.endswith((".piece", ".part", ".segment", PARTIAL)):
                continue
            if referenced is not None and name in self._announced:
                self._storage.remove(name)
            elif referenced is not None:
                self._storage.sweep(name)
        self._announced &= wanted

    def _failed(self, error: Exception) -> StateError:
        return StateError(
            f"{self._storage.address}: {self._noun} cannot be written ({self._storage.kind_of(error)}); "
            f"{advice_on(error, 'free space or fix permissions')}"
        )

    def close(self) -> None:
        """Delete the files that no manifest names, and end the writing threads. A store that hangs is not
        waited for."""
        if self._closed:
            return
        stopped = self.segments.close()
        with self._lock:
            self._closed = True
        with suppress(TimeoutError):
            stopped.result(self._closing_s)
        ended = self._writer.submit(self._discard_all)
        self._writer.shutdown(wait=False)
        with suppress(TimeoutError):
            ended.result(self._closing_s)

    @property
    def _closing_s(self) -> float:
        return _CLOSING_S if self._storage.calls.hung() is None else 0.0

    def _discard_all(self) -> None:
        self._discard_open()
        with self._lock:
            # The thread that saves may be naming these in a manifest. If it fails, they are swept later.
            files = {name: file for name, file in self._unannounced.items() if name not in self._promised}
            for name in files:
                del self._unannounced[name]
        for file in files.values():
            file.discard()


def _pieces(files: Iterable[StateFile]) -> list[StateFile]:
    return [file for file in files if file.holds is Holds.KEPT]
