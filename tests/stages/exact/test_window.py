"""Which exact windows are possible."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from twinsieve.stages.contract import Window
from twinsieve.stages.errors import UsageError
from twinsieve.stages.exact.bloom import BloomGenerations
from twinsieve.stages.exact.trie import TrieTiers
from twinsieve.stages.exact.window import check_window

_bloom = partial(BloomGenerations, error_rate=1e-3)
_bloom_bytes = partial(BloomGenerations.bytes_for, error_rate=1e-3)


@pytest.mark.parametrize("window", [Window(1), Window(2**40), Window(1, 0), Window(5, 2**62)])
def test_a_possible_window_passes(window: Window) -> None:
    check_window(window)


@pytest.mark.parametrize("refuses", [check_window, TrieTiers, TrieTiers.bytes_for, _bloom, _bloom_bytes])
@pytest.mark.parametrize(
    ("window", "said"),
    [
        (Window(0), r"exact\.window\.messages is 0; use 1\.\."),
        (Window(2**40 + 1), r"exact\.window\.messages is 1099511627777; use 1\.\."),
        (Window(1, -1), r"exact\.window\.age is -1 ms; use 0\.\."),
        (Window(1, 2**62 + 1), r"exact\.window\.age is \d+ ms; use 0\.\."),
    ],
)
def test_an_impossible_window_is_named_with_what_is_possible(
    refuses: Callable[[Window], object], window: Window, said: str
) -> None:
    with pytest.raises(UsageError, match=said):
        refuses(window)
