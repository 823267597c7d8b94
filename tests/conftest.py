"""Fixtures and settings that every test shares."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from bench import quality_data
from twinsieve.pipeline.kernel_cache import drop_stale_kernels

_ROOT = Path(__file__).resolve().parent.parent
_POSTS = "weibo_dev.jsonl.gz"
_WITHOUT = "--without-real-posts"

settings.register_profile("dev", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", parent=settings.get_profile("dev"), derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "dev")


drop_stale_kernels()


@pytest.fixture(autouse=True)
def _no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test reads a setting that happens to be in the environment."""
    for name in list(os.environ):
        if name.startswith("TWINSIEVE_") and "__" in name:
            monkeypatch.delenv(name)


@pytest.fixture(scope="session")
def root() -> Path:
    """The folder of the checkout."""
    return _ROOT


def pytest_addoption(parser: pytest.Parser) -> None:
    """Real posts may be left out by word of whoever runs the tests, never because they are not there."""
    parser.addoption(
        _WITHOUT, action="store_true", help="leave out the tests on real posts, which are not public"
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption(_WITHOUT):
        left_out = [item for item in items if "data_dir" in getattr(item, "fixturenames", ())]
        items[:] = [item for item in items if item not in left_out]
        config.hook.pytest_deselected(items=left_out)


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder with the real posts that accuracy is measured on; they are not ours to publish.

    Where it is missing the test fails: a run without it has measured no accuracy.
    """
    folder = quality_data.data_dir()
    if not (folder / _POSTS).is_file():
        pytest.fail(
            f"no real posts in {folder}; TWINSIEVE_DATA names their folder, {_WITHOUT} leaves these tests out",
            pytrace=False,
        )
    return folder


@pytest.fixture(scope="session")
def real_posts(request: pytest.FixtureRequest) -> Path | None:
    """A file of real posts for tests that generated ones serve as well: None, where they are left out."""
    if request.config.getoption(_WITHOUT):
        return None
    folder: Path = request.getfixturevalue("data_dir")
    return folder / _POSTS


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if config.getoption(_WITHOUT):
        terminalreporter.section("NOT MEASURED", sep="!", red=True)
        terminalreporter.line(f"the tests on real posts were left out ({_WITHOUT})", red=True)
