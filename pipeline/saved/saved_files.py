"""`SavedFiles`: what a manifest's files hold, for `BatchSieve.load`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from hmac import compare_digest
from typing import BinaryIO, cast

from twinsieve.pipeline.basics.made_ahead import made_ahead
from twinsieve.pipeline.basics.printable import printable
from twinsieve.pipeline.saved import Moved, UnreadableError, Watch, no_watch
from twinsieve.pipeline.saved.kept_file import damaged, messages_of, read_records
from twinsieve.pipeline.saved.manifest import Holds, StateFile
from twinsieve.pipeline.saved.segment_files import map_segment, scratch_file, scratch_folder
from twinsieve.pipeline.saved.signing import checksum_in
from twinsieve.pipeline.saved.storage import Storage
from twinsieve.pipeline.saved.watched_stream import WatchedStream
from twinsieve.stages.errors import DamagedError
from twinsieve.stages.exact.sections import Sections
from twinsieve.stages.judge.kept_messages import KeptMessages
from twinsieve.stages.judge.state_bytes import read_state
from twinsieve.stages.window.segments import SealedSegment

_COPIED_AT_ONCE = 1 << 24

_RECORDS_AHEAD = 4
"""Records of a file that are decoded before the sieve asks for them."""


class SavedFiles:
    """The files of a saved state; a context manager. In a local folder they are opened at once, so that they
    can be read to their end even if another process deletes them meanwhile.

    scheme_id: fingerprint scheme that they must have
    scratch: folder for copies of segments, which are mapped, if those in the storage are not; None: that of
        the system
    most: bytes that a part may have unpacked (`most_bytes`)
    raises: UnreadableError if a file is missing or has another size
    """

    def __init__(
        self,
        storage: Storage,
        files: Sequence[StateFile],
        scheme_id: str,
        watch: Watch = no_watch,
        scratch: str | None = None,
        most: int | None = None,
    ) -> None:
        self._storage = storage
        self._most = most
        self._files = files
        self._scheme_id = scheme_id
        self._watch = watch
        self._scratch = scratch
        self._size = sum(file.size for file in files)
        self._done = 0
        self._opened: dict[str, BinaryIO] = {}
        self._reading = storage.address
        """What was read last, for errors."""
        with ExitStack() as undo:
            undo.callback(self.close)
            if storage.is_local:
                for file in files:
                    self._opened[file.name] = self._open(file)
            undo.pop_all()

    def __enter__(self) -> SavedFiles:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def again(self) -> SavedFiles:
        """The same files, from their beginnings."""
        return SavedFiles(self._storage, self._files, self._scheme_id, self._watch, self._scratch, self._most)

    @contextmanager
    def blamed(self, otherwise: str) -> Iterator[None]:
        """Context manager: a DamagedError becomes an UnreadableError that names the file that was read last.

        otherwise: names the manifest, which is to blame as long as no file was read
        """
        self._reading = otherwise
        try:
            yield
        except DamagedError as error:
            raise UnreadableError(
                f"{self._reading}: is not what twinsieve writes, although its checksums are right "
                f"({printable(error.problem)}); restore it from a copy"
            ) from error

    def close(self) -> None:
        """Close all files."""
        for stream in self._opened.values():
            stream.close()

    def _open(self, file: StateFile) -> BinaryIO:
        with self._named(file):
            stream = self._storage.open(file.name)
            size = stream.seek(0, 2)
            stream.seek(0)
        if size != file.size:
            stream.close()
            raise UnreadableError(
                f"{self._storage.shown(file.name)}: has {size} bytes where {file.size} were written; restore "
                "it from a copy"
            )
        return stream

    @contextmanager
    def _named(self, file: StateFile) -> Iterator[None]:
        """Context manager: an error of the store becomes an UnreadableError that names the file."""
        name = self._storage.shown(file.name)
        try:
            yield
        except (UnreadableError, DamagedError):
            raise
        except FileNotFoundError:
            raise UnreadableError(f"{name}: is missing; restore it from a copy") from None
        except Exception as error:  # noqa: BLE001 (stores raise what they like beside OSError)
            kind = self._storage.kind_of(error)
            raise UnreadableError(f"{name}: cannot be read ({kind}); restore it from a copy") from None

    def sections(self, name: str) -> Sections:
        """The sections of a part. raises: StateError"""
        file = next((file for file in self._files if file.holds is Holds.PART and file.part == name), None)
        if file is None:
            raise UnreadableError(
                f"{self._storage.address}: the state names no file for its part {printable(name)}"
            )
        shown = self._storage.shown(file.name)
        hashes = self._storage.signing.hashes_of(file.digest, shown)
        with self._named(file), self._stream_of(file) as stream:
            if self._storage.signing.keys:
                # Nothing of it is unpacked before it is known who wrote it.
                first = hashes()
                while data := stream.read(_COPIED_AT_ONCE):
                    first.update(data)
                    self._moved(0)
                if not compare_digest(first.digest().hex(), checksum_in(file.digest)):
                    raise damaged(shown)
                stream.seek(0)
            hashed = hashes()
            watched = WatchedStream(stream, self._moved, hashed)
            sections = read_state(cast("BinaryIO", watched), self._scheme_id, {}, self._most)
            if hashed.digest().hex() != checksum_in(file.digest):
                raise damaged(shown)
        return sections

    def segments(self) -> Iterator[SealedSegment]:
        """The sealed segments in order, as maps of their files. raises: StateError"""
        for file in self._files:
            if file.holds is not Holds.SEGMENT:
                continue
            shown = self._storage.shown(file.name)
            hashes = self._storage.signing.hashes_of(file.digest, shown)
            with self._named(file), self._stream_of(file) as stream:
                if self._storage.is_mapped:
                    segment = map_segment(stream, shown, self._scheme_id, file.digest, self._moved, hashes)
                else:
                    with self._copy_of(stream, shown) as copy:
                        segment = map_segment(
                            copy, shown, self._scheme_id, file.digest, lambda _: self._moved(0), hashes
                        )
            if (segment.first, segment.end) != (file.first, file.end):
                raise damaged(shown)
            yield segment

    def _copy_of(self, stream: BinaryIO, name: str) -> BinaryIO:
        """A file of this machine with what the stream has. name: of the stream's file, for errors. raises:
        UnreadableError if it cannot be written; errors of the store"""
        with ExitStack() as undo:
            with self._into_scratch(name) as folder:
                copy = undo.enter_context(scratch_file(folder))
            while data := stream.read(_COPIED_AT_ONCE):
                with self._into_scratch(name):
                    copy.write(data)
                self._moved(len(data))
            with self._into_scratch(name):
                copy.flush()
            undo.pop_all()
        return copy

    @contextmanager
    def _into_scratch(self, name: str) -> Iterator[str]:
        """Context manager: the folder for copies; its errors become an UnreadableError that names it."""
        folder = self._scratch or "the folder for temporary files"
        try:
            folder = scratch_folder(self._scratch)
            yield folder
        except OSError as error:
            raise UnreadableError(
                f"{folder}: {name} cannot be copied there ({error.strerror}); free space, or set "
                "state.scratch to another folder",
                lasting=False,
            ) from None

    def kept_messages(self) -> Iterator[tuple[int, KeptMessages]]:
        """The runs of kept messages in order. raises: StateError"""
        for file in self._files:
            if file.holds is not Holds.KEPT:
                continue
            shown = self._storage.shown(file.name)
            hashes = self._storage.signing.hashes_of(file.digest, shown)
            with self._named(file), self._stream_of(file) as stream:
                watched = cast("BinaryIO", WatchedStream(stream, self._moved))
                records = read_records(watched, shown, self._scheme_id, file.digest, hashes)
                runs = ((record.first, messages_of(record, shown)) for record in records)
                yield from made_ahead(runs, _RECORDS_AHEAD)

    def _stream_of(self, file: StateFile) -> BinaryIO:
        self._reading = self._storage.shown(file.name)
        return self._opened.pop(file.name, None) or self._open(file)

    def _moved(self, count: int) -> None:
        self._done += count
        self._watch(Moved("reading", self._done, self._size))
