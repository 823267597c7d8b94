"""Fixtures and settings that every test shares."""

from __future__ import annotations

import gc
import logging
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import HealthCheck, settings

from tests import examples, needs, processes
from tests.accuracy import data_sets
from tests.calling import piped as piped
from tests.calling import run as run
from tests.calling import started as started
from twinsieve.pipeline.broker import arenas

_ROOT = Path(__file__).resolve().parent.parent

settings.register_profile(
    "nightly", deadline=None, suppress_health_check=[HealthCheck.too_slow], database=None, print_blob=True
)
# Examples follow from the test: what passes here passes everywhere. `make nightly` draws others.
settings.register_profile("fixed", parent=settings.get_profile("nightly"), derandomize=True)
# `make test` draws a part of them, `make test-all` all (tests/examples.py).
settings.register_profile("quick", parent=settings.get_profile("fixed"), max_examples=30)
settings.load_profile("fixed")


@pytest.fixture(autouse=True)
def _no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test reads a setting that happens to be in the environment."""
    for name in list(os.environ):
        if name.startswith("TWINSIEVE_") and "__" in name:
            monkeypatch.delenv(name)


_ALL_COME_BACK = frozenset({"crash", "model", "worker"})


@pytest.fixture(autouse=True)
def _arenas_come_back(request: pytest.FixtureRequest) -> Iterator[None]:
    """What lay in an arena that came back is not there any more, and all of them came back when a test ends.

    Set up before `monkeypatch`, so torn down behind it: what a test has patched may hold records.
    """
    made: list[arenas.Arenas] = []
    make = arenas.Arenas.__init__

    def noted(self: arenas.Arenas, keep_bytes: int) -> None:
        make(self, keep_bytes)
        made.append(self)

    with (
        mock.patch.object(arenas.Arenas, "__init__", noted),
        mock.patch.object(arenas, "returned", lambda memory: memory.fill(0xA5)),
    ):
        yield
        if any(each.alive for each in made):
            gc.collect()
    # Elsewhere services keep the error that ended them, with the variables of all functions that it passed.
    assert request.path.parent.name not in _ALL_COME_BACK or sum(each.alive for each in made) == 0


@pytest.fixture(autouse=True)
def _no_wait_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests kill processes, not the machine, so nothing that this process writes has to reach the disk. A test
    of what is synced, and when, replaces `os.fsync` itself."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


@pytest.fixture
def log_as_before() -> Iterator[None]:
    """Commands that connect send what is logged to stderr; not so the tests behind the one that asks for this."""
    root, ours = logging.getLogger(), logging.getLogger("twinsieve")
    handlers, level, own_level = root.handlers[:], root.level, ours.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    ours.setLevel(own_level)
    logging.captureWarnings(capture=False)


@pytest.fixture(scope="session")
def root() -> Path:
    """The folder of the checkout."""
    return _ROOT


def pytest_configure(config: pytest.Config) -> None:
    for mark in (
        "needs(name, ...): what this test takes besides Python; see tests/needs.py",
        "heavy: left out of `make test`, most of them by tests/needs.py",
        "matrix: `make test` runs a part of its cases; see tests/examples.py",
        "minutes: takes minutes of a core; `make long` runs it",
    ):
        config.addinivalue_line("markers", mark)
    config.pluginmanager.register(needs)
    config.pluginmanager.register(examples.Matrix())
    config.pluginmanager.register(examples.Share())
    config.pluginmanager.register(processes.Plugin())
    _let_programs_hear_signals()


def pytest_collection_finish() -> None:
    """Whoever collects garbage later leaves out the modules and tables that stay until the end."""
    gc.collect()
    gc.freeze()


def _let_programs_hear_signals() -> None:
    """Programs that tests start get every signal that stops them, under `nohup make test` and `make test &` too.

    A signal that is ignored here would be ignored there; one that has a handler has its default action there.
    """
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, lambda *_: None)


@pytest.fixture
def stranger() -> int:
    """The number of a user who is neither this one nor root; files can be given to it (`tests/needs.py`: root)."""
    return 12_345


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder with the real posts that accuracy is measured on; they are not ours to publish.

    Without TWINSIEVE_DATA the tests that ask for it are skipped (tests/needs.py).
    """
    return data_sets.data_dir()
