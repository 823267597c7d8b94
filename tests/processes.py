"""Which tests share a process where several run them (`-n 3 --dist loadgroup`): those that start the same brokers.

A broker of one's own takes seconds to start and a share of a core while it lives, and its tests mostly wait. So the
tests on clusters that may be harmed are in one process, those on a broker that all share in another; whatever is
free takes the other files one by one.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.needs import needs_of

_GROUPS = {"clusters": {"own broker"}, "brokers": {"broker", "secure broker"}}
"""What the files of a group need; a file that fits both is in the first."""


class Plugin:
    """Names a group for each test, by its file; the groups that take longest come first."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        needed: dict[Path, set[str]] = {}
        for item in items:
            needed.setdefault(item.path, set()).update(need.name for need in needs_of(item))
        groups = {path: _group(path, needs) for path, needs in needed.items()}
        for item in items:
            item.add_marker(pytest.mark.xdist_group(groups[item.path]))
        order = list(_GROUPS)
        items.sort(key=lambda item: order.index(name) if (name := groups[item.path]) in order else len(order))


def _group(path: Path, needs: set[str]) -> str:
    """The name of a file's group; without one of those above, its own."""
    return next((name for name, wanted in _GROUPS.items() if needs & wanted), str(path))
