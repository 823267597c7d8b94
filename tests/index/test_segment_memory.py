"""Which segments the judging index takes into memory, and when."""

from __future__ import annotations

from collections.abc import Callable, Collection
from concurrent.futures import Executor, Future
from types import SimpleNamespace
from typing import Any, cast

import pytest

from twinsieve.pipeline.index.segment_memory import SegmentMemory
from twinsieve.pipeline.index.state import IndexState
from twinsieve.stages.window.segments import SegmentId

A, B = (SegmentId(first, first + 10, 10, bytes(16)) for first in (0, 10))


class _Sieve:
    """A sieve with two segments in files."""

    def __init__(self) -> None:
        self.in_memory: set[SegmentId] = set()
        self.error: Exception | None = None

    def hold(self, answered: Collection[SegmentId]) -> Callable[[], None] | None:
        self.in_memory -= set(answered)
        wanted = [each for each in (B, A) if each not in answered and each not in self.in_memory]
        return (lambda: self._take(wanted[0])) if wanted else None

    def _take(self, segment: SegmentId) -> None:
        if self.error is not None:
            raise self.error
        self.in_memory.add(segment)


class _Background(Executor):
    """Runs a call when the test says so."""

    def __init__(self) -> None:
        self.calls: list[tuple[Future[Any], Callable[[], Any]]] = []

    def submit(self, call: Callable[..., Any], /, *_: Any, **__: Any) -> Future[Any]:
        self.calls.append((Future(), call))
        return self.calls[-1][0]

    def run(self) -> None:
        ((done, call),) = self.calls
        self.calls.clear()
        try:
            done.set_result(call())
        except Exception as error:  # noqa: BLE001 (what the call raises is its result)
            done.set_exception(error)


def _memory() -> tuple[SegmentMemory, _Sieve, _Background, list[str]]:
    sieve, background, notices = _Sieve(), _Background(), list[str]()
    state = cast("IndexState", SimpleNamespace(sieve=sieve))
    return SegmentMemory(state, background, notices), sieve, background, notices


def test_segments_are_taken_one_by_one_in_the_background() -> None:
    memory, sieve, background, _ = _memory()
    memory.step((), takes=True)
    memory.step((), takes=True)
    assert not sieve.in_memory
    background.run()
    memory.step((), takes=True)
    assert sieve.in_memory == {B}
    background.run()
    memory.step((), takes=True)
    assert sieve.in_memory == {A, B}
    assert not background.calls


def test_nothing_is_taken_before_it_is_known_who_answers() -> None:
    memory, sieve, background, _ = _memory()
    sieve.in_memory = {A, B}
    memory.step([A], takes=False)
    assert sieve.in_memory == {B}
    memory.step((), takes=False)
    assert not background.calls


def test_without_memory_the_index_goes_on_and_says_so_once() -> None:
    memory, sieve, background, notices = _memory()
    sieve.error = MemoryError("1 GiB")
    memory.step((), takes=True)
    background.run()
    for _ in range(3):
        memory.step((), takes=True)
    assert len(notices) == 1
    assert not background.calls


def test_another_error_of_the_call_is_raised() -> None:
    memory, sieve, background, _ = _memory()
    sieve.error = OSError("read")
    memory.step((), takes=True)
    background.run()
    with pytest.raises(OSError, match="read"):
        memory.step((), takes=True)
