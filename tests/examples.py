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
    """Under `quick`, of each test with the mark `matrix` the cases on one diagonal: each value of each parameter
    comes, not each combination."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        step = _ALL // examples(_ALL)
        if step == 1:
            return
        seen: Counter[str] = Counter()
        left_out: list[pytest.Item] = []
        for item in items:
            test = item.nodeid.partition("[")[0]
            place, seen[test] = seen[test], seen[test] + 1
            if item.get_closest_marker("matrix") and (place + place // step) % step:
                left_out.append(item)
        if left_out:
            config.hook.pytest_deselected(items=left_out)
            items[:] = [item for item in items if item not in left_out]
