"""Memory of the judging index for sealed segments: only for those that no shard answers for."""

from __future__ import annotations

from collections.abc import Collection
from concurrent.futures import Executor, Future

from twinsieve.pipeline.index.state import IndexState
from twinsieve.stages.window.segments import SegmentId


class SegmentMemory:
    """Gives up memory of segments that shards answer for, and takes the others into memory, one by one.

    background: takes them, which may read gigabytes; notices: receives problems
    """

    def __init__(self, state: IndexState, background: Executor, notices: list[str]) -> None:
        self._state = state
        self._background = background
        self._notices = notices
        self._taking: Future[None] | None = None
        self._is_short = False

    def step(self, answered: Collection[SegmentId], *, takes: bool) -> None:
        """Take the result of the last call, give up memory, and begin the next call.

        answered: segments that shards answer for; takes: whether the others are known
        """
        if self._taking is not None:
            if not self._taking.done():
                return
            self._note(self._taking.exception())
            self._taking = None
        take = self._state.sieve.hold(answered)
        if take is not None and takes and not self._is_short:
            self._taking = self._background.submit(take)

    def _note(self, error: BaseException | None) -> None:
        if isinstance(error, MemoryError):
            self._is_short = True
            self._notices.append(
                f"no memory for another segment ({error}); its look-ups read from its file, which is slow; "
                "lower state.memory, or give the machine more memory"
            )
        elif error is not None:
            raise error
