"""`docker/healthy`: the health check of the image, asked as Docker would ask it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from twinsieve.pipeline.service.http import HealthServer
from twinsieve.pipeline.settings.model import Settings

Healthy = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def docker(root: Path) -> Path:
    return root / "docker"


@pytest.fixture
def healthy(docker: Path, root: Path) -> Healthy:
    """Runs the script with this settings file, and these variables alone of twinsieve's."""

    def ask(settings: Path, *options: str, **variables: str) -> subprocess.CompletedProcess[str]:
        words = [sys.executable, *options, str(docker / "healthy"), str(settings)]
        others = {name: value for name, value in os.environ.items() if not name.startswith("TWINSIEVE_")}
        environment = {**others, "PYTHONPATH": str(root), **variables}
        return subprocess.run(words, env=environment, capture_output=True, text=True, check=False)

    return ask


@pytest.fixture
def service() -> Iterator[HealthServer]:
    pages = HealthServer(("127.0.0.1", 0), CollectorRegistry(), lambda: "", lambda: "")
    yield pages
    pages.close()


def test_health_is_asked_where_the_settings_file_says(
    tmp_path: Path, healthy: Healthy, service: HealthServer
) -> None:
    path = tmp_path / "settings.yaml"
    for host in ("0.0.0.0", "127.0.0.1"):
        path.write_text(f"http: {{listen: '{host}:{service.port}'}}\n")
        done = healthy(path)
        assert (done.returncode, done.stderr) == (0, "")


def test_health_is_asked_where_the_environment_says(
    tmp_path: Path, healthy: Healthy, service: HealthServer
) -> None:
    path = tmp_path / "settings.yaml"
    listens = f"127.0.0.1:{service.port}"
    assert healthy(path, TWINSIEVE_HTTP__LISTEN=listens).returncode == 0
    path.write_text("http: {listen: '127.0.0.1:1'}\n")
    assert healthy(path, TWINSIEVE_HTTP__LISTEN=listens).returncode == 0


def test_a_service_that_listens_nowhere_is_taken_for_well(tmp_path: Path, healthy: Healthy) -> None:
    (tmp_path / "settings.yaml").write_text("http: {listen: none}\n")
    assert healthy(tmp_path / "settings.yaml").returncode == 0


@pytest.mark.parametrize("listen", ["0.0.0.0:1", "nonsense"])
def test_an_absent_service_is_unhealthy(tmp_path: Path, healthy: Healthy, listen: str) -> None:
    (tmp_path / "settings.yaml").write_text(f"http: {{listen: '{listen}'}}\n")
    done = healthy(tmp_path / "settings.yaml")
    assert (done.returncode, done.stderr.splitlines()[0].split()[0]) == (1, "unhealthy:")


def test_a_settings_file_that_cannot_be_read_is_unhealthy(tmp_path: Path, healthy: Healthy) -> None:
    path = tmp_path / "settings.yaml"
    for text in ("http: [", "http: {listen: [a]}"):
        path.write_text(text)
        assert healthy(path).stderr.startswith("unhealthy: ")


def test_health_is_asked_at_the_default_where_nothing_else_is_set(docker: Path) -> None:
    default = Settings().http.listen
    assert f'listen = "{default}"' in (docker / "healthy").read_text("utf-8")


def test_asking_for_health_loads_no_settings_schema(tmp_path: Path, healthy: Healthy) -> None:
    """It runs for ever beside the service; pydantic alone would take most of its time."""
    done = healthy(tmp_path / "none.yaml", "-X", "importtime", TWINSIEVE_HTTP__LISTEN="none")
    loaded = set(re.findall(r"\| +(\w+)\.?\w*$", done.stderr, re.MULTILINE))
    assert "yaml" in loaded
    assert not loaded & {"pydantic", "numba", "numpy", "http", "click", "rich"}
