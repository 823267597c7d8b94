"""Fixtures and settings that every test shares."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from bench import quality_data
from pipeline.kernel_cache import drop_stale_kernels

_ROOT = Path(__file__).resolve().parent.parent
_POSTS = "weibo_dev.jsonl.gz"

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


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder with the real posts that accuracy is measured on; they are not ours to publish.

    Where it is missing the test is skipped and the end of the run says so in red. In CI (environment
    variable CI), or with TWINSIEVE_REQUIRE_DATA set, it fails: there a skip would go unnoticed.
    """
    folder = quality_data.data_dir()
    if not (folder / _POSTS).is_file():
        missing = f"no real posts in {folder}; TWINSIEVE_DATA names their folder"
        _refuse_in_ci(missing)
        pytest.skip(missing)
    return folder


@pytest.fixture(scope="session")
def real_posts() -> Path | None:
    """A file of real posts for tests that generated ones serve as well; None where there is none.

    In CI it must be there, as for `data_dir`.
    """
    posts = quality_data.data_dir() / _POSTS
    if posts.is_file():
        return posts
    _refuse_in_ci(f"no real posts in {posts.parent}; TWINSIEVE_DATA names their folder")
    return None


def _refuse_in_ci(missing: str) -> None:
    if os.environ.get("CI") or os.environ.get("TWINSIEVE_REQUIRE_DATA"):
        pytest.fail(missing, pytrace=False)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    skipped = [
        report
        for report in terminalreporter.stats.get("skipped", [])
        if "no real posts in" in str(getattr(report, "longrepr", ""))
    ]
    if skipped:
        terminalreporter.section("NOT MEASURED", sep="!", red=True)
        terminalreporter.line(
            f"{len(skipped)} tests need real posts and did not run; TWINSIEVE_DATA names their folder",
            red=True,
        )
