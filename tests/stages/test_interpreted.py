"""Interpreted kernels give what compiled ones give: columns, verdicts, and the bytes of the state."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.every_kernel import SCHEMES, TEXTS
from tests.whole_state import to_bytes
from twinsieve.pipeline.evaluate.evaluate import batch_of
from twinsieve.stages import intrinsics
from twinsieve.stages.contract import Batch, ExactConfig, NearConfig, SieveConfig, Window
from twinsieve.stages.judge.batch_sieve import BatchSieve
from twinsieve.stages.judge.scheme import Scheme, SchemeConfig, SignatureConfig
from twinsieve.stages.kernel import interpret, kernel

_Made = TypeVar("_Made")
_SHORT = [text[:120] for text in TEXTS]
_WINDOW = Window(16, 1_000)
_CONFIGS = [
    SieveConfig(
        exact=ExactConfig(method=exact, window=_WINDOW), near=NearConfig(**near, window=_WINDOW, parts=2)
    )
    for exact, near in (
        ("bloom", {}),
        ("trie", {"candidates": "scan"}),
        ("bloom", {"method": "hamming"}),
        ("none", {"method": "signatures"}),
    )
]


@contextmanager
def _interpreted() -> Iterator[None]:
    interpret(True)
    try:
        yield
    finally:
        interpret(False)


def _both(make: Callable[[], _Made]) -> tuple[_Made, _Made]:
    """What a function makes with interpreted kernels, and with compiled ones."""
    with _interpreted():
        interpreted = make()
    return interpreted, make()


def _assert_same(interpreted: Any, compiled: Any) -> None:
    """Check that two sets of columns have the same dtypes and values."""
    for field in fields(compiled):
        mine, other = getattr(interpreted, field.name), getattr(compiled, field.name)
        if isinstance(other, np.ndarray):
            assert mine.dtype == other.dtype, field.name
            np.testing.assert_array_equal(mine, other, field.name)
        else:
            assert mine == other, field.name


def _batch(scheme: Scheme, texts: list[str]) -> Batch:
    return replace(batch_of(*scheme.read(texts)), times_ms=np.arange(len(texts), dtype=np.int64) * 300)


@pytest.mark.parametrize("config", SCHEMES)
def test_bodies_and_fingerprints_are_the_same(config: SchemeConfig) -> None:
    for mine, other in zip(*_both(lambda: Scheme(config).read(_SHORT)), strict=True):
        _assert_same(mine, other)


def test_of_long_texts_as_well() -> None:
    long = ["一个普通的句子12" * 75, "a plain sentence, and then some " * 20]
    for mine, other in zip(*_both(lambda: Scheme(SchemeConfig()).read(long)), strict=True):
        _assert_same(mine, other)


@pytest.mark.parametrize("config", _CONFIGS)
def test_verdicts_and_the_state_are_the_same(config: SieveConfig) -> None:
    scheme = Scheme(SchemeConfig(signature=SignatureConfig("sentences", 2, joined=False)))
    batch = _batch(scheme, _SHORT + [text + "。" for text in reversed(_SHORT)])

    def judged() -> tuple[Any, bytes]:
        sieve = BatchSieve(config)
        return sieve.judge(batch), to_bytes(sieve)

    (mine, state), (other, other_state) = _both(judged)
    _assert_same(mine, other)
    assert state == other_state


_WORDS = st.sampled_from(
    ["武汉", "新增", "12例", "13例", "不", "the ", "ferry ", "№ 5 ", "é", "straße ", "три ", "ﷺ", "😀"]
)


@settings(max_examples=15, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(_WORDS | st.characters(), min_size=8, max_size=20), st.data())
def test_so_are_those_on_any_text(words: list[str], data: st.DataObject) -> None:
    other = list(words)
    other[data.draw(st.integers(0, len(words) - 1))] = data.draw(_WORDS)
    texts = ["".join(each) for each in (words, other, words[1:], other)]

    def judged() -> tuple[Any, bytes]:
        sieve = BatchSieve(_CONFIGS[0])
        return sieve.judge(_batch(Scheme(SchemeConfig()), texts)), to_bytes(sieve)

    (mine, state), (compiled, compiled_state) = _both(judged)
    _assert_same(mine, compiled)
    assert state == compiled_state


def test_a_sieve_goes_on_with_compiled_kernels() -> None:
    batch = _batch(Scheme(SchemeConfig()), _SHORT)
    sieve, compiled = BatchSieve(_CONFIGS[0]), BatchSieve(_CONFIGS[0])
    with _interpreted():
        sieve.judge(batch)
    compiled.judge(batch)
    _assert_same(sieve.judge(batch), compiled.judge(batch))
    assert to_bytes(sieve) == to_bytes(compiled)


@kernel(callee=True)
def _following(number: int) -> int:
    return number + 1


@kernel
def _waits(begun: Any, may_end: Any) -> int:
    begun.set()
    may_end.wait()
    return _following(1)


def test_a_kernel_that_is_under_way_is_interpreted_to_its_end() -> None:
    begun, may_end = threading.Event(), threading.Event()
    with ThreadPoolExecutor(2) as threads, _interpreted():
        result = threads.submit(_waits, begun, may_end)
        begun.wait()
        ended = threads.submit(interpret, False)
        wait([ended], timeout=0.2)
        may_end.set()
        assert result.result() == 2
        ended.result()


@kernel
def _instructions(
    words: NDArray[np.uint64], flags: NDArray[np.uint8], start: int, numbers: NDArray[np.uint64]
) -> tuple[int, int, int, int, int, int]:
    """Every instruction that has a result."""
    intrinsics.prefetch(words, start)
    value, mask, shift, low = numbers[0], numbers[1], numbers[2], numbers[3]
    return (
        intrinsics.popcount(value),
        intrinsics.popcount(np.uint16(value)),
        intrinsics.flags_at(flags, start),
        intrinsics.lanes_equal(words, start, value, mask),
        intrinsics.lanes_close(words, start, value, shift, low),
        intrinsics.lanes_between(words, start, shift, mask, low, value),
    )


_WORD = st.integers(0, 2**64 - 1) | st.integers(0, 64)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    words=st.lists(_WORD, min_size=9, max_size=9),
    flags=st.lists(st.integers(0, 255) | st.just(0), min_size=17, max_size=17),
    start=st.integers(0, 1),
    numbers=st.tuples(_WORD, _WORD, st.integers(0, 63), _WORD),
)
def test_each_instruction_has_a_twin(
    own_folder: Path, words: list[int], flags: list[int], start: int, numbers: tuple[int, int, int, int]
) -> None:
    given_ = np.array(words, np.uint64), np.array(flags, np.uint8), start, np.array(numbers, np.uint64)
    mine, other = _both(lambda: _instructions(*given_))
    assert tuple(map(int, mine)) == other
