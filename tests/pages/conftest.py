"""A browser for the tests of pages."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.pages import chromium
from tests.pages.chromium import Browser


@pytest.fixture(scope="session")
def _chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """One Chromium of each process that tests; it takes a second to start."""
    browser = chromium.started(tmp_path_factory.mktemp("profile"))
    yield browser
    browser.driver.quit()


@pytest.fixture
def browser(_chromium: Browser, tmp_path: Path) -> Iterator[Browser]:
    """A Chromium with an empty page. A test fails if its pages did what no page may, unless it asked for `problems`."""
    downloads = tmp_path / "downloads"
    downloads.mkdir()
    _chromium.use(downloads)
    yield _chromium
    try:
        _chromium.require_calm()
    finally:
        _chromium.leave()
