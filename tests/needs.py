"""What some tests need besides Python, and which are left out of `make test` for it.

A test asks for a need by one of its fixtures, or by the mark `needs` where a fixture or the test itself asks only
while it runs. A test whose need is not met is skipped with the reason; TWINSIEVE_REQUIRE_ALL=1 makes it fail.
Tests that need a broker, a browser or real posts, or that build something, get the mark `heavy`: `make test`
deselects them.
Tests on real posts are deselected where nobody has named a folder with posts.
"""

from __future__ import annotations

import fcntl
import functools
import os
import socket
import tempfile
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from scripts.dist import tools_of
from scripts.release import TOOLS
from tests import debian
from tests.accuracy import data_sets
from tests.broker import certificates, distribution
from tests.debian import MissingError
from tests.deploy import manifests, prometheus, rights
from tests.pages.distribution import need_chromium
from tests.registry import apicurio

REQUIRE_ALL = "TWINSIEVE_REQUIRE_ALL"


def _posts() -> str:
    folder = data_sets.named_dir()
    if folder is None:
        return f"no real posts: {data_sets.VARIABLE} does not name their folder"
    missing = data_sets.missing_files(folder)
    if missing:
        # Somebody named a folder: that is a mistake, and no reason to leave tests out.
        pytest.exit(
            f"{data_sets.VARIABLE} is {folder}, where {missing[0]} is missing", pytest.ExitCode.USAGE_ERROR
        )
    return ""


def _broker() -> str:
    return "" if os.environ.get("TWINSIEVE_TEST_BOOTSTRAP") else _own_broker()


def _own_broker() -> str:
    return _refusal(distribution.class_path)


def _console_tools() -> str:
    return _refusal(distribution.tools_path)


def _secure_broker() -> str:
    return _own_broker() or _refusal(certificates.need_openssl)


def _browser() -> str:
    return _refusal(need_chromium)


def _prometheus() -> str:
    return _refusal(prometheus.promtool)


def _kubernetes() -> str:
    return _refusal(manifests.need_tools)


def _real_registry() -> str:
    return _refusal(apicurio.program)


def _systemd() -> str:
    return _refusal(functools.partial(debian.need, "systemd-analyze", "systemd", "systemd"))


def _pip_audit() -> str:
    try:
        tools_of("release", *TOOLS)
        certificates.need_openssl()
    except (SystemExit, distribution.NoBrokerError) as error:
        return f"no pip-audit, or no openssl: {str(error).splitlines()[-1]}"
    return ""


def _refusal(prepare: Callable[[], object]) -> str:
    try:
        prepare()
    except (distribution.NoBrokerError, MissingError) as error:
        return str(error)
    return ""


def _restricted() -> str:
    return _root() or rights.refusal(12_345)


def _root() -> str:
    return "" if os.geteuid() == 0 else "only root may give files away"


def _ipv6() -> str:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError as error:
        return f"::1 cannot be listened to ({error.strerror})"
    return ""


def _is_on(variable: str) -> bool:
    return os.environ.get(variable, "0") not in ("", "0")


@dataclass(frozen=True)
class Need:
    """One thing that is not on every machine.

    fixtures: a test that uses one of them asks for it
    probe: tries to install what is missing; what is missing still and what to do about it, empty for nothing
    heavy: whether `make test` goes without it
    """

    probe: Callable[[], str]
    fixtures: frozenset[str] = frozenset()
    heavy: bool = False


NEEDS = {
    "ipv6": Need(_ipv6),
    "posts": Need(_posts, frozenset({"data_dir"}), heavy=True),
    "root": Need(_root, frozenset({"stranger"})),
    "restricted": Need(_restricted, heavy=True),
    "broker": Need(_broker, frozenset({"bootstrap"}), heavy=True),
    "console tools": Need(_console_tools, frozenset({"console_tools"}), heavy=True),
    "own broker": Need(_own_broker, frozenset({"mortal_broker", "three_brokers"}), heavy=True),
    "prometheus": Need(_prometheus, frozenset({"promtool", "prometheus"}), heavy=True),
    "pip-audit": Need(_pip_audit, heavy=True),
    "systemd": Need(_systemd, heavy=True),
    "kubernetes": Need(_kubernetes, heavy=True),
    "real registry": Need(_real_registry, frozenset({"apicurio"}), heavy=True),
    "browser": Need(_browser, frozenset({"browser"}), heavy=True),
    "secure broker": Need(_secure_broker, frozenset({"secure_broker"}), heavy=True),
}
"""In the order in which a test is asked."""

_BUILDS = tuple(Path(__file__).with_name(name) for name in ("docker", "packaging"))
"""Folders of tests that are heavy whatever they need."""


@functools.cache
def missing(name: str) -> str:
    """What is missing for a need, and what to do about it; empty for nothing."""
    # Processes of one run install one after the other.
    with open(Path(tempfile.gettempdir()) / f"twinsieve-needs-{os.getuid()}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return NEEDS[name].probe()


def _needs_of(item: pytest.Item) -> Iterator[str]:
    fixtures = set(getattr(item, "fixturenames", ()))
    marked = {name for mark in item.iter_markers("needs") for name in mark.args}
    assert marked <= set(NEEDS), f"{item.nodeid}: tests/needs.py has no {marked - set(NEEDS)}"
    return (name for name, need in NEEDS.items() if name in marked or fixtures & need.fixtures)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what is heavy, before marks are looked at; leave out real posts that nobody has."""
    for item in items:
        if any(NEEDS[name].heavy for name in _needs_of(item)) or item.path.parent in _BUILDS:
            item.add_marker("heavy")
    if data_sets.named_dir() is None and not _is_on(REQUIRE_ALL):
        config.hook.pytest_deselected(items=[item for item in items if "posts" in _needs_of(item)])
        items[:] = [item for item in items if "posts" not in _needs_of(item)]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test that cannot run here."""
    for name in _needs_of(item):
        if reason := missing(name):
            pytest.skip(reason)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Where all tests are required, one that is skipped fails, whoever skipped it."""
    report = yield
    if report.skipped and _is_on(REQUIRE_ALL):
        report.outcome = "failed"
        report.longrepr = f"{REQUIRE_ALL} is set: {call.excinfo.value if call.excinfo else report.longrepr}"
    return report
