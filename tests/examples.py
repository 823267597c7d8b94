"""How many examples a property test draws, and which cases of a matrix run: all, or a part in `make test`."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import settings

_ALL = 100
"""Hypothesis' own number of examples; a profile with fewer asks for that share everywhere."""


def examples(most: int) -> int:
    """`most` in `make test-all` and under plain pytest, a share of it in `make test` (the profile `quick`)."""
    return max(1, most * settings().max_examples // _ALL)


class Plugin:
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
