"""How many examples a property test draws, and which tests run: all, or a part in `make test`.

`make test SHARE=4` runs a quarter of them, which takes a quarter of the time.
"""

from __future__ import annotations

import os
from collections import Counter

import pytest
from hypothesis import settings

SHARE = "TWINSIEVE_SHARE"
"""Every test whose place can be divided by this number runs."""
_ALL = 100
"""Hypothesis' own number of examples; a profile with fewer asks for that share everywhere."""


def examples(most: int) -> int:
    """`most` in `make test-all` and under plain pytest, a share of it in `make test` (the profile `quick`)."""
    return max(1, most * settings().max_examples // _ALL)


class Matrix:
    """Under `quick`, each test with the mark `matrix` runs every third of its cases.

    After each three cases the choice moves on by one, so that the values of an inner parameter take turns.
    """

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        step = _ALL // examples(_ALL)
        seen: Counter[str] = Counter()
        chosen: list[pytest.Item] = []
        left_out: list[pytest.Item] = []
        for item in items:
            test = item.nodeid.partition("[")[0]
            place, seen[test] = seen[test], seen[test] + 1
            is_left_out = item.get_closest_marker("matrix") and (place + place // step) % step
            (left_out if is_left_out else chosen).append(item)
        if left_out:
            config.hook.pytest_deselected(items=left_out)
            items[:] = chosen


class Share:
    """Leaves out what is not in the share, of the tests that everything else has left."""

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        share = int(os.environ.get(SHARE) or 1)
        chosen = items[::share]
        left_out = [item for place, item in enumerate(items) if place % share]
        if left_out:
            config.hook.pytest_deselected(items=left_out)
            items[:] = chosen
