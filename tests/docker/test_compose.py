"""The image and compose file, read as Docker would read them; there is no engine where these tests run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from pipeline.settings_load import load_settings
from pipeline.topics_plan import plan_of

SERVICE_KEYS = {
    "build",
    "command",
    "depends_on",
    "entrypoint",
    "environment",
    "healthcheck",
    "image",
    "ports",
    "restart",
    "stop_grace_period",
    "volumes",
}


@pytest.fixture
def docker(root: Path) -> Path:
    return root / "docker"


@pytest.fixture
def compose(docker: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((docker / "compose.yaml").read_text())
    return loaded


def instructions(docker: Path) -> list[tuple[str, str]]:
    """Instructions of the Dockerfile in order, continued lines joined."""
    text = re.sub(r"^#.*\n", "", (docker / "Dockerfile").read_text(), flags=re.MULTILINE)
    lines = [line for line in text.replace("\\\n", " ").splitlines() if line.strip()]
    return [(word, rest.strip()) for word, _, rest in (line.partition(" ") for line in lines)]


def test_every_key_of_every_service_is_one_that_compose_knows(compose: dict[str, Any]) -> None:
    assert set(compose) == {"name", "services", "volumes"}
    for name, service in compose["services"].items():
        assert set(service) <= SERVICE_KEYS, name
        assert "image" in service or "build" in service, name


def test_services_wait_for_what_exists_and_can_tell(compose: dict[str, Any]) -> None:
    services = compose["services"]
    for name, service in services.items():
        for other, how in service.get("depends_on", {}).items():
            assert other in services, name
            if how["condition"] == "service_healthy":
                assert "healthcheck" in services[other]
            else:
                assert how["condition"] == "service_completed_successfully"
                assert "restart" not in services[other], "a service that ends must not be restarted"


def test_mounted_files_and_volumes_exist(compose: dict[str, Any], docker: Path) -> None:
    for name, service in compose["services"].items():
        for mount in service.get("volumes", ()):
            source = mount.split(":")[0]
            if source.startswith("."):
                assert (docker / source).is_file(), f"{name}: {source}"
            else:
                assert source in compose["volumes"], f"{name}: {source}"


def test_published_ports_are_for_this_machine_alone(compose: dict[str, Any]) -> None:
    published = [port for service in compose["services"].values() for port in service.get("ports", ())]
    assert len(published) == len(set(published)) == 2
    assert all(port.startswith("127.0.0.1:") for port in published)


def test_the_two_processes_differ_in_slot_and_state_alone(compose: dict[str, Any]) -> None:
    one, two = compose["services"]["sieve-1"], compose["services"]["sieve-2"]
    assert one["command"][-1] != two["command"][-1]
    assert one["volumes"][1] != two["volumes"][1]
    different = {"command", "volumes", "ports"}
    assert {key: one[key] for key in one.keys() - different} == {
        key: two[key] for key in two.keys() - different
    }


def test_settings_and_compose_name_the_same_topics_and_broker(compose: dict[str, Any], docker: Path) -> None:
    settings = load_settings(docker / "settings.yaml")
    services = compose["services"]
    assert plan_of(settings).inputs == ("posts",)
    assert "--topic=posts" in services["input"]["command"]
    assert f"--topic={settings.output.topic}" in services["viewer"]["command"]
    assert services["producer"]["command"][:2] == [settings.kafka.bootstrap, "posts"]
    assert settings.kafka.bootstrap in services["kafka"]["environment"]["KAFKA_ADVERTISED_LISTENERS"]


def test_images_are_of_a_fixed_version(compose: dict[str, Any], docker: Path) -> None:
    foreign = {service["image"] for service in compose["services"].values()} - {"twinsieve"}
    foreign |= {rest.split()[0] for word, rest in instructions(docker) if word == "FROM"}
    assert foreign
    assert all(re.search(r":\d+\.\d+\.\d+", image) for image in foreign)


def test_the_image_runs_without_root_and_says_how_it_is(docker: Path) -> None:
    words = instructions(docker)
    last = max(place for place, (word, _) in enumerate(words) if word == "FROM")
    final = dict(words[last:])
    assert final["USER"] == "10001:10001"
    assert "healthy" in final["HEALTHCHECK"]
    assert final["ENTRYPOINT"] == '["twinsieve"]'
    order = [word for word, _ in words[last:]]
    assert order.index("USER") < order.index("ENTRYPOINT")
    assert "NUMBA_CPU_NAME=generic" in final["ENV"]


def test_copied_files_exist_and_are_not_ignored(docker: Path, root: Path) -> None:
    kept = {line[1:] for line in (docker / "Dockerfile.dockerignore").read_text().split() if line[0] == "!"}
    for word, rest in instructions(docker):
        if word == "COPY" and "--from" not in rest:
            for source in rest.split()[:-1]:
                assert (root / source).exists(), source
                assert source in kept, source


@pytest.mark.parametrize("script", ["warm-up", "healthy", "produce"])
def test_scripts_are_executable_and_parse(docker: Path, script: str) -> None:
    path = docker / script
    assert os.access(path, os.X_OK)
    first, text = path.read_text().splitlines()[0], path.read_text()
    if "python" in first:
        compile(text, str(path), "exec")
    else:
        subprocess.run(["sh", "-n", str(path)], check=True)


def test_an_absent_service_is_unhealthy(docker: Path) -> None:
    environment = {**os.environ, "TWINSIEVE_HTTP__LISTEN": "0.0.0.0:1"}
    done = subprocess.run(
        [sys.executable, str(docker / "healthy")],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "unhealthy" in done.stderr
