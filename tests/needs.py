"""What some tests need besides Python: probed once a run; tests whose need is not met are left out and counted.

A test asks for a need by one of its fixtures, or by the mark `needs` where a fixture or the test itself asks only
while it runs. TWINSIEVE_REQUIRE_ALL=1 makes every test that would be left out an error, but for those that take
minutes of a core each: they run where TWINSIEVE_LONG is set (`make long`).
"""

from __future__ import annotations

import fcntl
import os
import shutil
import socket
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.accuracy import data_sets
from tests.broker import certificates, distribution

REQUIRE_ALL = "TWINSIEVE_REQUIRE_ALL"
LONG = "TWINSIEVE_LONG"


def _posts() -> str:
    """Reason why there are no real posts. raises: pytest.UsageError for a folder without them"""
    folder = data_sets.named_dir()
    if folder is None:
        return f"{data_sets.VARIABLE} is not set"
    missing = data_sets.missing_files(folder)
    if missing:
        raise pytest.UsageError(
            f"{data_sets.VARIABLE} is {folder}, where {missing[0]} is missing"
            f"{f', and {len(missing) - 1} more' * (len(missing) > 1)}; "
            "name the folder of real posts, or unset it and their tests are left out"
        )
    return ""


def _broker() -> str:
    return "" if os.environ.get("TWINSIEVE_TEST_BOOTSTRAP") else _own_broker()


def _own_broker() -> str:
    return _reason(distribution.class_path)


def _secure_broker() -> str:
    return _own_broker() or _reason(certificates.need_openssl)


def _root() -> str:
    return "" if os.geteuid() == 0 else "only root may give files away"


def _ipv6() -> str:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError as error:
        return f"::1 cannot be listened to ({error.strerror})"
    return ""


def _minutes() -> str:
    return "" if _is_on(LONG) else "`make long` runs them"


def _is_on(variable: str) -> bool:
    return os.environ.get(variable, "0") not in ("", "0")


def _reason(prepare: Callable[[], object]) -> str:
    try:
        prepare()
    except distribution.NoBrokerError as error:
        return error.reason
    return ""


@dataclass(frozen=True)
class Need:
    """One thing that is not on every machine.

    name: in the mark `needs`
    fixtures: a test that uses one of them asks for it
    tests: the tests that ask, as the last line of a run calls them
    probe: tries to install what is missing; reason why it is not here, empty where it is
    remedy: what somebody can do about it
    by_choice: nobody misses it; not an error where all are required
    """

    name: str
    fixtures: frozenset[str]
    tests: str
    probe: Callable[[], str]
    remedy: str
    by_choice: bool = False


NEEDS = (
    Need("minutes", frozenset(), "of minutes", _minutes, f"set {LONG}", by_choice=True),
    Need("ipv6", frozenset(), "on IPv6", _ipv6, "switch IPv6 on for the loopback device"),
    Need(
        "posts",
        frozenset({"data_dir"}),
        "on real posts",
        _posts,
        f"set {data_sets.VARIABLE} to their folder",
    ),
    Need("root", frozenset({"stranger"}), "with files of another user", _root, "run them as root"),
    Need("broker", frozenset({"bootstrap"}), "on a real Kafka", _broker, distribution.HOW),
    Need(
        "own broker",
        frozenset({"mortal_broker", "three_brokers"}),
        "on a real Kafka",
        _own_broker,
        distribution.HOW,
    ),
    Need("secure broker", frozenset({"secure_broker"}), "on a real Kafka", _secure_broker, distribution.HOW),
)


def needs_of(item: pytest.Item) -> Iterator[Need]:
    """What a test needs, in the order of NEEDS. raises: pytest.UsageError for a mark that names none"""
    fixtures = set(getattr(item, "fixturenames", ()))
    marked = {name for mark in item.iter_markers("needs") for name in mark.args}
    unknown = marked - {need.name for need in NEEDS}
    if unknown:
        raise pytest.UsageError(f"{item.nodeid}: needs {sorted(unknown)}, which NEEDS does not hold")
    for need in NEEDS:
        if need.name in marked or fixtures & need.fixtures:
            yield need


@dataclass(frozen=True)
class LeftOut:
    """Tests of one kind that do not run here, and why."""

    count: int
    tests: str
    reason: str
    remedy: str
    by_choice: bool = False

    def __str__(self) -> str:
        return f"{self.count} test{'s' * (self.count != 1)} {self.tests} left out: {self.reason}"


def last_line(left_out: list[LeftOut]) -> str:
    """What a run says at its end.

    >>> last_line([LeftOut(2, "on real posts", "TWINSIEVE_DATA is not set", "set it")])
    '2 tests on real posts left out: TWINSIEVE_DATA is not set'
    >>> last_line([])
    'no test left out: all that the tests need is here'
    """
    return "; ".join(map(str, left_out)) or "no test left out: all that the tests need is here"


class Plugin:
    """Takes out the tests whose needs are not met, and says so at the very end of the run.

    Under xdist each process collects: the first one to need an answer probes, the others read it, so that all leave
    out the same tests; the main process hears from them what that was.
    """

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._worker: dict[str, Any] | None = getattr(config, "workerinput", None)
        self._answers = Path(self._worker["needs_answers"]) if self._worker else None
        self._reasons: dict[str, str] = {}
        self._left_out: list[LeftOut] | None = None
        self._refusal = ""

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        try:
            kept, self._left_out = self._sorted(items)
            gone = [item for item in items if item not in set(kept)]
            missed = [one for one in self._left_out if not one.by_choice]
            if missed and _is_on(REQUIRE_ALL):
                raise pytest.UsageError(_refusal(missed))
        except pytest.UsageError as error:
            if self._worker is None:
                raise
            # An error of a worker would come out as a traceback of xdist's: the main process says it.
            kept, gone, self._refusal = [], items[:], str(error)
        items[:] = kept
        if gone:
            self._config.hook.pytest_deselected(items=gone)
        if self._worker is not None:
            said = [astuple(one) for one in self._left_out or []]
            self._config.workeroutput |= {"needs_left_out": said, "needs_refusal": self._refusal}  # type: ignore[attr-defined]

    def _sorted(self, items: list[pytest.Item]) -> tuple[list[pytest.Item], list[LeftOut]]:
        """Tests that can run, and the others counted by what the first of their missing needs is."""
        kept: list[pytest.Item] = []
        counts: Counter[tuple[str, str, str, bool]] = Counter()
        for item in items:
            for need in needs_of(item):
                reason = self._reason(need)
                if reason:
                    counts[need.tests, reason, need.remedy, need.by_choice] += 1
                    break
            else:
                kept.append(item)
        return kept, [LeftOut(count, *kind) for kind, count in counts.items()]

    def _reason(self, need: Need) -> str:
        if need.name not in self._reasons:
            self._reasons[need.name] = need.probe() if self._answers is None else self._shared_reason(need)
        return self._reasons[need.name]

    def _shared_reason(self, need: Need) -> str:
        assert self._answers is not None
        answer = self._answers / need.name
        with open(self._answers / "lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not answer.exists():
                answer.write_text(need.probe(), encoding="utf-8")
        return answer.read_text(encoding="utf-8")

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        if self._answers is None:
            self._answers = Path(tempfile.mkdtemp(prefix="twinsieve-needs-"))
        node.workerinput["needs_answers"] = str(self._answers)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        said = getattr(node, "workeroutput", None) or {}
        if "needs_left_out" in said:
            self._left_out = [LeftOut(*one) for one in said["needs_left_out"]]
            self._refusal = said["needs_refusal"]

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self._refusal and self._worker is None:
            session.exitstatus = pytest.ExitCode.USAGE_ERROR

    @pytest.hookimpl(trylast=True)
    def pytest_unconfigure(self) -> None:
        if self._worker is not None:
            return
        if self._answers is not None:
            shutil.rmtree(self._answers, ignore_errors=True)
        if self._left_out is None or not self._config.pluginmanager.has_plugin("terminalreporter"):
            return
        terminal = self._config.get_terminal_writer()
        if self._refusal:
            terminal.line(f"ERROR: {self._refusal}", red=True)
        else:
            terminal.line(last_line(self._left_out), yellow=bool(self._left_out))


def _refusal(left_out: list[LeftOut]) -> str:
    lines = [f"{one}; {one.remedy}" for one in left_out]
    return "\n  ".join([f"{REQUIRE_ALL} is set, and not every test can run here:", *lines])
