"""Sealed segments of a near window as files that are mapped (`mapped_file`): in a state, or in scratch space.

A segment is written by a thread while the sieve goes on. From its next call on the sieve uses the map of the
file, and its own memory is free. Scratch files have no name: the system deletes them when the process ends
for any reason.
"""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Callable
from concurrent.futures import Executor, Future
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import BinaryIO, NamedTuple, cast

from twinsieve.pipeline.basics.daemon_executor import DaemonExecutor
from twinsieve.pipeline.saved import UnreadableError
from twinsieve.pipeline.saved.mapped_file import map_arrays, write_arrays
from twinsieve.pipeline.saved.signing import Hashes, checksum_in, plain
from twinsieve.pipeline.saved.tries import AGAIN_S, Tries
from twinsieve.stages.errors import StateError, UsageError
from twinsieve.stages.window.segments import HOT, Arrays, SealedSegment

_CACHED = 1 << 26
"""Bytes of a segment that is being written that are in the page cache at most."""
_READ_AT_ONCE = 1 << 22
_DONT_NEED: int | None = getattr(os, "POSIX_FADV_DONTNEED", None)


def write_segment(
    stream: BinaryIO | Stoppable, scheme_id: str, sealed: SealedSegment, hashes: Hashes = plain
) -> str:
    """Write a segment to a stream that can seek; returns the digest of the file. raises: errors of the
    stream"""
    about = {"first": sealed.first, "end": sealed.end, "messages": sealed.messages}
    return write_arrays(cast("BinaryIO", stream), scheme_id, about, sealed.arrays, hashes)


def written_segment(
    file: BinaryIO,
    name: str,
    scheme_id: str,
    sealed: SealedSegment,
    is_stopped: Callable[[], bool],
    hashes: Hashes = plain,
) -> WrittenSegment:
    """Write a segment to a new file on this machine, and map it.

    name: of the file, for errors; is_stopped: as for `Stoppable`
    raises: OSError, StateError, UnreadableError
    """
    digest = write_segment(Stoppable(Uncached(file), is_stopped), scheme_id, sealed, hashes)
    size = file.tell()
    file.flush()
    mapped = map_arrays(file.fileno(), name, scheme_id, None, hot=HOT, hashes=hashes)
    left_out = HOT if sealed.hot_stay else frozenset()
    needed = [place for array, place in mapped.places.items() if array not in left_out]
    return WrittenSegment(mapped.arrays, needed, size, digest)


def bring_in(thread: Executor, file: BinaryIO, places: list[range], is_stopped: Callable[[], bool]) -> None:
    """Begin to read these bytes of a file into the page cache: page by page, as look-ups come, takes minutes.

    If that fails, look-ups read page by page.
    thread: reads; it may have ended. file: may be closed meanwhile
    """
    with suppress(OSError):
        descriptor = os.dup(file.fileno())
        try:
            reading = thread.submit(_read_once, descriptor, places, is_stopped)
        except RuntimeError:
            os.close(descriptor)
            return
        reading.add_done_callback(lambda _: os.close(descriptor))


def _read_once(descriptor: int, places: list[range], is_stopped: Callable[[], bool]) -> None:
    for place in places:
        for at in range(place.start, place.stop, _READ_AT_ONCE):
            if is_stopped():
                return
            os.pread(descriptor, min(_READ_AT_ONCE, place.stop - at), at)


def map_segment(
    stream: BinaryIO,
    name: str,
    scheme_id: str,
    digest: str,
    checked: Callable[[int], None],
    hashes: Hashes = plain,
) -> SealedSegment:
    """Map the segment in a file that is open, and compare its checksums.

    name: of the file, for errors; digest: result of `write_segment`; checked: as for `map_arrays`
    raises: UnreadableError
    """
    mapped = map_arrays(
        stream.fileno(), name, scheme_id, checked, hot=HOT, hashes=hashes, digest=checksum_in(digest)
    )
    about = mapped.about
    try:
        return SealedSegment(about["first"], about["end"], about["messages"], mapped.arrays)
    except (KeyError, TypeError):
        raise UnreadableError(f"{name}: does not say which messages it has; restore it from a copy") from None


def ignore(_line: str) -> None:
    """A report that goes nowhere."""


class WrittenSegment(NamedTuple):
    """A segment in a file on this machine.

    arrays: maps of the file; needed: bytes of it that look-ups will read; size, digest: as in `StateFile`
    """

    arrays: Arrays
    needed: list[range]
    size: int
    digest: str


class Stoppable:
    """A stream that can seek, and refuses to write when its writer is no longer needed.

    is_stopped: asked before each write
    """

    def __init__(self, stream: BinaryIO | Uncached, is_stopped: Callable[[], bool]) -> None:
        self._stream = stream
        self._is_stopped = is_stopped

    def write(self, data: bytes) -> int:
        if self._is_stopped():
            raise StateError("the sieve has ended")
        return self._stream.write(data)

    def seek(self, place: int) -> int:
        return self._stream.seek(place)


class Uncached:
    """A file that is written from its begin to its end, and of which little is in the page cache meanwhile.

    A full segment is gigabytes. In the page cache it would push out what look-ups use, and the memory that it
    was copied from is not free yet.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._waiting = 0

    def write(self, data: bytes) -> int:
        self._waiting += len(data)
        if _DONT_NEED is not None and self._waiting >= _CACHED:
            self._waiting = 0
            self._file.flush()
            # Only pages that are on the disk can go.
            os.fdatasync(self._file.fileno())
            os.posix_fadvise(self._file.fileno(), 0, 0, _DONT_NEED)
        return self._file.write(data)

    def seek(self, place: int) -> int:
        return self._file.seek(place)


class ScratchFile(NamedTuple):
    """A segment in a file without a name. file: open for reading; first, end, digest: as in `StateFile`"""

    file: BinaryIO
    first: int
    end: int
    digest: str


def scratch_folder(folder: str | None) -> str:
    """The folder for files without a name: the given one, else that of the system. raises: OSError"""
    return folder or tempfile.gettempdir()


def make_scratch(folder: str | None) -> None:
    """Make the scratch folder that the settings name, unless it is there. A full disk is no error: it stops
    nothing. raises: UsageError if there cannot be files in it"""
    if folder is None:
        return
    try:
        Path(folder).mkdir(mode=0o700, parents=True, exist_ok=True)
        if not os.access(folder, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except OSError as error:
        raise UsageError(
            f"state.scratch is {folder!r}: no such folder can be made or written to ({error.strerror}); make "
            "it, give this user the right to write there, or name another folder"
        ) from error


def is_in_memory(folder: str) -> bool:
    """Whether a folder is on a file system without a disk (Linux). raises: OSError"""
    device = os.stat(folder).st_dev
    name = f"{os.major(device)}:{os.minor(device)}"
    with (
        suppress(FileNotFoundError),
        open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as mounts,
    ):
        mounted = [line.partition(" - ") for line in mounts]
        return any(head.split()[2] == name and tail.startswith("tmpfs ") for head, _, tail in mounted)
    return False


def scratch_file(folder: str) -> BinaryIO:
    """A new file without a name. The system deletes it when it is closed and no map of it is left. raises:
    OSError"""
    return cast("BinaryIO", tempfile.TemporaryFile(prefix="twinsieve-", dir=folder))


class ScratchSegments:
    """Files without a name for the segments of a sieve that has no state, or none in a local folder.

    scheme_id: fingerprint scheme; folder: where the files are, None for the system's folder for such files
    report: called from another thread with one line if a segment cannot be written, and so stays in memory
    hashes: for checksums
    """

    def __init__(
        self,
        scheme_id: str,
        folder: str | None,
        report: Callable[[str], None] = ignore,
        hashes: Hashes = plain,
    ) -> None:
        self._hashes = hashes
        self._scheme_id = scheme_id
        self._folder = folder
        self._report = report
        self._writer = DaemonExecutor("twinsieve-scratch")
        self.tries = Tries()
        self._closed = False

    def write(
        self, sealed: SealedSegment, then: Callable[[ScratchFile], None] | None = None
    ) -> Future[Arrays] | None:
        """Begin to write a segment; `BatchSieve.seal_into`. then: called from another thread with the file
        when it is written; it has to close the file"""
        if not self.tries.may_begin(sealed.first):
            return None
        written = self._writer.submit(self._written, sealed, then)
        written.add_done_callback(partial(self.tries.note, sealed.first))
        return written

    def _written(self, sealed: SealedSegment, then: Callable[[ScratchFile], None] | None) -> Arrays:
        self.tries.check(sealed.first)
        folder = self._folder or "the folder for temporary files"
        try:
            folder = scratch_folder(self._folder)
            with ExitStack() as undo:
                file = undo.enter_context(scratch_file(folder))
                written = written_segment(
                    file, folder, self._scheme_id, sealed, self._is_closed, self._hashes
                )
                bring_in(self._writer, file, written.needed, self._is_closed)
                if then is not None:
                    undo.pop_all()
                    then(ScratchFile(file, sealed.first, sealed.end, written.digest))
                return written.arrays
        except (OSError, StateError) as error:
            if self._closed:
                raise
            kind = error.strerror if isinstance(error, OSError) else str(error)
            self._report(
                f"{folder}: a segment of the near window cannot be written ({kind}) and stays in memory, "
                f"with those after it; it is tried again in {AGAIN_S:.0f} s; free space, or set "
                "state.scratch to another folder"
            )
            raise

    def _is_closed(self) -> bool:
        return self._closed

    def close(self) -> None:
        """End the writing thread; a segment that it is writing stays unwritten."""
        self._closed = True
        self._writer.shutdown(wait=False, cancel_futures=True)
