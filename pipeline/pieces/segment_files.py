"""Sealed segments of a near window as files that are mapped (`mapped_file`): in a state, or in scratch space.

A segment is written by a thread while the sieve goes on. From its next call on the sieve uses the map of the
file, and its own memory is free. Scratch files have no name: the system deletes them when the process ends
for any reason.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from typing import BinaryIO, NamedTuple, cast

from twinsieve.pipeline.pieces import UnreadableError
from twinsieve.pipeline.pieces.mapped_file import MappedArrays, map_arrays, write_arrays
from twinsieve.stages.errors import StateError
from twinsieve.stages.window.segments import HOT, Arrays, SealedSegment


def write_segment(stream: BinaryIO | Stoppable, scheme_id: str, sealed: SealedSegment) -> str:
    """Write a segment to a stream that can seek; returns the digest of the file. raises: errors of the
    stream"""
    about = {"first": sealed.first, "end": sealed.end, "messages": sealed.messages}
    return write_arrays(cast("BinaryIO", stream), scheme_id, about, sealed.arrays)


def map_segment(
    stream: BinaryIO, name: str, scheme_id: str, digest: str, checked: Callable[[int], None]
) -> SealedSegment:
    """Map the segment in a file that is open, and compare its checksums.

    name: of the file, for errors; digest: result of `write_segment`; checked: as for `map_arrays`
    raises: UnreadableError
    """
    mapped = map_arrays(stream.fileno(), name, scheme_id, checked, hot=HOT)
    if mapped.digest != digest:
        raise UnreadableError(f"{name}: is another file than was written; restore it from a copy")
    return _segment_of(mapped)


def _segment_of(mapped: MappedArrays) -> SealedSegment:
    about = mapped.about
    return SealedSegment(about["first"], about["end"], about["messages"], mapped.arrays)


def ignore(_line: str) -> None:
    """A report that goes nowhere."""


class Stoppable:
    """A stream that can seek, and refuses to write when its writer is no longer needed.

    is_stopped: asked before each write
    """

    def __init__(self, stream: BinaryIO, is_stopped: Callable[[], bool]) -> None:
        self._stream = stream
        self._is_stopped = is_stopped

    def write(self, data: bytes) -> int:
        if self._is_stopped():
            raise StateError("the sieve has ended")
        return self._stream.write(data)

    def seek(self, place: int) -> int:
        return self._stream.seek(place)


class ScratchFile(NamedTuple):
    """A segment in a file without a name. file: open for reading; first, end, digest: as in `StateFile`"""

    file: BinaryIO
    first: int
    end: int
    digest: str


def scratch_folder(folder: str | None) -> str:
    """The folder for files without a name: the given one, else that of the system. raises: OSError"""
    return folder or tempfile.gettempdir()


def scratch_file(folder: str) -> BinaryIO:
    """A new file without a name. The system deletes it when it is closed and no map of it is left. raises:
    OSError"""
    return cast("BinaryIO", tempfile.TemporaryFile(prefix="twinsieve-", dir=folder))


class ScratchSegments:
    """Files without a name for the segments of a sieve that has no state, or none in a local folder.

    scheme_id: fingerprint scheme; folder: where the files are, None for the system's folder for such files
    report: called from another thread with one line if a segment cannot be written, and so stays in memory
    """

    def __init__(
        self,
        scheme_id: str,
        folder: str | None,
        report: Callable[[str], None] = ignore,
    ) -> None:
        self._scheme_id = scheme_id
        self._folder = folder
        self._report = report
        self._writer = ThreadPoolExecutor(1, "twinsieve-scratch")
        self._closed = False

    def write(
        self, sealed: SealedSegment, then: Callable[[ScratchFile], None] | None = None
    ) -> Future[Arrays]:
        """Begin to write a segment; `BatchSieve.seal_into`. then: called from another thread with the file
        when it is written; it has to close the file"""
        return self._writer.submit(self._written, sealed, then)

    def _written(self, sealed: SealedSegment, then: Callable[[ScratchFile], None] | None) -> Arrays:
        folder = self._folder or "the folder for temporary files"
        try:
            folder = scratch_folder(self._folder)
            with ExitStack() as undo:
                file = undo.enter_context(scratch_file(folder))
                stream = Stoppable(file, lambda: self._closed)
                digest = write_segment(stream, self._scheme_id, sealed)
                file.flush()
                arrays = map_arrays(file.fileno(), folder, self._scheme_id, None, hot=HOT).arrays
                if then is not None:
                    undo.pop_all()
                    then(ScratchFile(file, sealed.first, sealed.end, digest))
                return arrays
        except (OSError, StateError) as error:
            if self._closed:
                raise
            kind = error.strerror if isinstance(error, OSError) else str(error)
            self._report(
                f"{folder}: a segment of the near window cannot be written ({kind}) and stays in memory; "
                "free space, or set state.scratch to another folder"
            )
            raise

    def close(self) -> None:
        """End the writing thread; a segment that it is writing stays unwritten."""
        self._closed = True
        self._writer.shutdown(wait=False, cancel_futures=True)
