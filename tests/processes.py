"""Which tests share a process where several run them (`-n 2`): those that start the same brokers, or a browser.

A broker takes seconds to start and a share of a core while it lives, and its tests mostly wait. So the tests on
clusters that may be harmed are in one process, those on a broker that all share in another; whatever is free takes
the other files one by one. Tests of pages share one browser.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from xdist.scheduler import LoadScopeScheduling

_ROOT = Path(__file__).resolve().parent.parent
_BROKER = "tests/broker/"
_PAGES = "tests/pages/"
_HARMED = ("own broker", "mortal_broker", "three_brokers", "harmed")
"""What the files name whose tests have clusters of their own, or harm one."""
_PLACES = {"clusters": 0, "brokers": 1, "pages": 2, "tests/house/test_types.py": 3}
"""Of the groups that take longest; all others come behind them."""
_SHARED = ("secure_broker", "three_brokers", "harmed", "mortal_broker")
"""Clusters that the tests which ask for them share: these stand beside each other."""


@cache
def group_of(file: str) -> str:
    """The name of the group of a test file, given as a path from the checkout; most are alone.

    >>> group_of("tests/broker/test_soak.py"), group_of("tests/broker/test_groups.py")
    ('clusters', 'brokers')
    >>> group_of("tests/pages/test_render.py")
    'pages'
    >>> group_of("tests/house/test_types.py")
    'tests/house/test_types.py'
    """
    if file.startswith(_PAGES):
        return "pages"
    if not file.startswith(_BROKER):
        return file
    text = (_ROOT / file).read_text(encoding="utf-8")
    return "clusters" if any(word in text for word in _HARMED) else "brokers"


@cache
def _cluster_of(file: str) -> tuple[bool, ...]:
    """Sorts the files of a group: first those on a cluster that is shared, by what it is."""
    if not file.startswith(_BROKER):
        return ()
    text = (_ROOT / file).read_text(encoding="utf-8")
    secure, three, harmed, mortal = (name in text for name in _SHARED)
    three |= harmed
    # A file on two clusters stands between those on either.
    return (not (secure or three or mortal), not secure, mortal, not three)


class Plugin:
    """Hands out whole groups; those that take longest come first."""

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        def place(item: pytest.Item) -> tuple[int, tuple[bool, ...]]:
            file = _file(item.nodeid)
            return _PLACES.get(group_of(file), len(_PLACES)), _cluster_of(file)

        items.sort(key=place)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: Any) -> LoadScopeScheduling:
        from xdist.scheduler import LoadScopeScheduling

        class ByGroup(LoadScopeScheduling):
            def _split_scope(self, nodeid: str) -> str:
                return group_of(_file(nodeid))

        return ByGroup(config, log)


def _file(nodeid: str) -> str:
    return nodeid.partition("::")[0]
