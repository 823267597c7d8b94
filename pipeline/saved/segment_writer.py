"""`SegmentWriter`: writes sealed segments of a sieve to its storage, and maps them.

One that cannot be written keeps those after it waiting, and is tried again alone (`tries`).

If files of the storage are mapped where they are, the file is written there. Otherwise a scratch file is
mapped, so that the segment's memory is free whatever the store does, and a copy of the scratch file goes to
the store.

While another sieve writes the same segments to the storage (an index that judges, and this one follows it),
they are held back: in scratch files, or in files of the storage that have no name yet.
"""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Callable, Collection
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from typing import NamedTuple

from twinsieve.pipeline.basics.daemon_executor import DaemonExecutor
from twinsieve.pipeline.saved.manifest import Holds, StateFile
from twinsieve.pipeline.saved.segment_files import (
    ScratchFile,
    ScratchSegments,
    Stoppable,
    bring_in,
    ignore,
    written_segment,
)
from twinsieve.pipeline.saved.storage import NewFile, Storage, advice_on
from twinsieve.pipeline.saved.tries import AGAIN_S
from twinsieve.stages.window.segments import Arrays, SealedSegment

_UPLOADED_AT_ONCE = 1 << 24


class SegmentOwner(NamedTuple):
    """Who wants a segment written.

    note: called from another thread with the complete file; raises StateError if the sieve has ended
    is_wanted: whether the window holds messages before this number, so that their file is wanted
    """

    note: Callable[[NewFile, StateFile], None]
    is_wanted: Callable[[int], bool]


class _Held(NamedTuple):
    """A segment that is mapped, and not in the storage.

    first, end: as in `StateFile`; owner: who wants it; give: puts it into the storage; drop: deletes its file
    """

    first: int
    end: int
    owner: SegmentOwner
    give: Callable[[], None]
    drop: Callable[[], None]


class SegmentWriter:
    """Writes segments one after the other.

    storage, scheme_id, scratch: as for `Journal`
    report: called from another thread with one line if a segment cannot be written
    """

    def __init__(
        self, storage: Storage, scheme_id: str, scratch: str | None, report: Callable[[str], None]
    ) -> None:
        self._storage = storage
        self._scheme_id = scheme_id
        self.report = report
        self.scratch = ScratchSegments(scheme_id, scratch, report, storage.signing.hashes)
        self.thread = DaemonExecutor("twinsieve-segments")
        self.being_written: dict[int, StateFile] = {}
        """Segments that are being written to the storage, or wait for that, by their first number."""
        self.holds_back = False
        """Whether segments are held back from the storage, until `publish`."""
        self._held: list[_Held] = []
        """Those segments; only `thread` changes the list."""
        self._tries = self.scratch.tries
        self._not_stored = 0
        self._closed = False

    @property
    def failures(self) -> int:
        """Segments of which a file could not be written so far; one that is tried again counts once."""
        return self._tries.failures + self._not_stored

    @property
    def refuses(self) -> bool:
        """Whether the last segment that was tried could not be written on this machine."""
        return self._tries.refuses

    def write(self, sealed: SealedSegment, owner: SegmentOwner) -> Future[Arrays] | None:
        """Begin to write a segment; result: its map. None while it waits for one before it."""
        self.being_written[sealed.first] = StateFile(
            "", Holds.SEGMENT, 0, "", first=sealed.first, end=sealed.end
        )
        if not self._storage.is_mapped:
            written = self.scratch.write(sealed, partial(self._begin_upload, owner))
        elif self._tries.may_begin(sealed.first):
            written = self.thread.submit(self._written, sealed, owner)
            written.add_done_callback(partial(self._tries.note, sealed.first))
        else:
            written = None
        if written is None:
            del self.being_written[sealed.first]
        else:
            written.add_done_callback(partial(self._is_mapped, sealed.first))
        return written

    @property
    def is_holding(self) -> bool:
        """Whether there are segments that are held back."""
        return bool(self._held)

    def publish(self, there: Collection[tuple[int, int]]) -> None:
        """Begin to write what was held back to the storage, unless `holds_back`.

        there: first number and end of the segments that the storage has
        """
        with suppress(RuntimeError):  # the writer is closed
            self.thread.submit(self._publish, there)

    def _publish(self, there: Collection[tuple[int, int]]) -> None:
        while self._held and not self.holds_back:
            held = self._held.pop(0)
            if (held.first, held.end) in there or not held.owner.is_wanted(held.end):
                held.drop()
            else:
                held.give()

    def drop_held(self, beyond: int = 0) -> Future[None]:
        """Begin to drop the segments that are held back and end behind this kept message."""
        return self.thread.submit(self._drop_held, beyond)

    def _drop_held(self, beyond: int) -> None:
        for held in [held for held in self._held if held.end > beyond]:
            self._held.remove(held)
            held.drop()

    def _hold(self, held: _Held) -> None:
        self._held.append(held)
        self.being_written.pop(held.first, None)
        while self._held and not self._held[0].owner.is_wanted(self._held[0].end):
            self._held.pop(0).drop()

    def wait(self) -> None:
        """Wait until all segments are written, or cannot be."""
        self.thread.submit(int).result()

    def _is_mapped(self, first: int, written: Future[Arrays]) -> None:
        has_failed = written.cancelled() or written.exception() is not None
        if has_failed or self._storage.is_mapped:
            self.being_written.pop(first, None)

    def _written(self, sealed: SealedSegment, owner: SegmentOwner) -> Arrays:
        self._tries.check(sealed.first)
        file: NewFile | None = None
        try:
            file = self._new_file(sealed.first)
            written = written_segment(
                file.stream,
                file.name,
                self._scheme_id,
                sealed,
                self._is_closed,
                self._storage.signing.hashes,
            )
            bring_in(self.thread, file.stream, written.needed, self._is_closed)
            listed = self._listed(file, written.size, written.digest, sealed.first, sealed.end)
            if self.holds_back:
                give = partial(self._give_name, owner, file, listed)
                self._hold(_Held(sealed.first, sealed.end, owner, give, file.discard))
            else:
                file.finish()
                owner.note(file, listed)
        except Exception as error:
            if file is not None:
                file.discard()
            again = f"it is tried again in {AGAIN_S:.0f} s"
            self._report_failure(error, f"stays in memory, with those after it; {again}")
            raise
        return written.arrays

    def _give_name(self, owner: SegmentOwner, file: NewFile, listed: StateFile) -> None:
        """Give the file of a mapped segment, which was held back, its name."""
        try:
            file.finish()
            owner.note(file, listed)
        except Exception as error:  # noqa: BLE001 (stores raise what they like beside OSError)
            file.discard()
            self._leave_unstored(error)

    def _begin_upload(self, owner: SegmentOwner, segment: ScratchFile) -> None:
        """Begin to write a segment, which is mapped by now, to the store too."""
        try:
            self.thread.submit(self._upload, owner, segment)
        except RuntimeError:  # the writer is closed
            segment.file.close()

    def _upload(self, owner: SegmentOwner, segment: ScratchFile) -> None:
        if self.holds_back:
            give = partial(self._upload, owner, segment)
            self._hold(_Held(segment.first, segment.end, owner, give, segment.file.close))
            return
        file: NewFile | None = None
        try:
            # If the store is slow, the window may have passed the segment by now.
            if owner.is_wanted(segment.end):
                file = self._new_file(segment.first)
                segment.file.seek(0)
                shutil.copyfileobj(segment.file, Stoppable(file.stream, self._is_closed), _UPLOADED_AT_ONCE)
                size = segment.file.tell()
                file.finish()
                owner.note(file, self._listed(file, size, segment.digest, segment.first, segment.end))
        except Exception as error:  # noqa: BLE001 (stores raise what they like beside OSError)
            if file is not None:
                file.discard()
            self._leave_unstored(error)
        finally:
            segment.file.close()
            self.being_written.pop(segment.first, None)

    def _leave_unstored(self, error: Exception) -> None:
        if not self._closed:
            self._not_stored += 1
        self._report_failure(error, "is only on this machine, and a restart takes longer")

    def _listed(self, file: NewFile, size: int, checksum: str, first: int, end: int) -> StateFile:
        digest = self._storage.signing.told(checksum)
        return StateFile(file.name, Holds.SEGMENT, size, digest, first=first, end=end)

    def _new_file(self, first: int) -> NewFile:
        return self._storage.create(f"segment-{first:016d}-{secrets.token_hex(4)}.segment")

    def _is_closed(self) -> bool:
        return self._closed

    def _report_failure(self, error: Exception, consequence: str) -> None:
        if not self._closed:
            self.report(
                f"{self._storage.address}: a segment of the near window cannot be written "
                f"({self._storage.kind_of(error)}) and {consequence}; "
                f"{advice_on(error, 'free space or fix permissions')}"
            )

    def close(self) -> Future[None]:
        """Begin to end the threads; result: when they have stopped to write."""
        self._closed = True
        self.scratch.close()
        self.report = ignore
        stopped = self.drop_held()
        self.thread.shutdown(wait=False)
        return stopped
