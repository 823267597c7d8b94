"""Every file, user, port and path that Dockerfile and compose file name is there, and both name the same."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from twinsieve.pipeline.service.stop_limits import stop_s
from twinsieve.pipeline.settings.load import load_settings
from twinsieve.pipeline.settings.model import Settings
from twinsieve.pipeline.sizing.process_memory import held_by


@pytest.fixture
def docker(root: Path) -> Path:
    return root / "docker"


@pytest.fixture
def compose(docker: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((docker / "compose.yaml").read_text("utf-8"))
    return loaded


@pytest.fixture
def steps(docker: Path) -> list[tuple[str, str]]:
    """Instructions of the Dockerfile in order: word and rest, continued lines joined."""
    text = re.sub(r"^\s*#.*\n", "", (docker / "Dockerfile").read_text("utf-8"), flags=re.MULTILINE)
    lines = [line for line in text.replace("\\\n", " ").splitlines() if line.strip()]
    return [(word, rest.strip()) for word, _, rest in (line.partition(" ") for line in lines)]


def test_copied_files_exist_and_are_let_into_the_build(root: Path, steps: list[tuple[str, str]]) -> None:
    ignored = (root / "docker" / "Dockerfile.dockerignore").read_text("utf-8").splitlines()
    let_in = {line[1:] for line in ignored if line.startswith("!")}
    for word, rest in steps:
        if word != "COPY" or rest.startswith("--from="):
            continue
        for source in rest.split()[:-1]:
            if "[" in source:  # a pattern, which may match nothing
                continue
            assert (root / source).exists(), f"COPY {rest}"
            assert any(source == name or source.startswith(f"{name}/") for name in let_in), f"COPY {rest}"


def test_mounted_files_and_volumes_exist(compose: dict[str, Any], docker: Path) -> None:
    for name, service in compose["services"].items():
        for mount in service.get("volumes", ()):
            source = mount.split(":")[0]
            known = (docker / source).is_file() if source.startswith(".") else source in compose["volumes"]
            assert known, f"{name}: {source}"


def test_scripts_are_executable_and_parse(docker: Path) -> None:
    for script in ("healthy", "produce"):
        path = docker / script
        assert os.access(path, os.X_OK)
        compile(path.read_text("utf-8"), str(path), "exec")
    assert os.access(docker / "twinsieve", os.X_OK)
    subprocess.run(["sh", "-n", docker / "twinsieve"], check=True)


def test_user_paths_and_ports_are_the_same_everywhere(
    compose: dict[str, Any], steps: list[tuple[str, str]], docker: Path
) -> None:
    settings = load_settings(docker / "settings.yaml")
    image = dict(steps)
    uid = image["USER"].partition(":")[0]
    (made,) = (rest for word, rest in steps if word == "RUN" and "useradd" in rest)
    assert f"--uid {uid} " in made
    assert f"-o {uid} " in made
    assert image["VOLUME"] == settings.state.dir == made.split()[-1]
    asked = json.loads(image["HEALTHCHECK"].partition("CMD ")[2])
    assert asked == ["healthy", json.loads(image["CMD"])[-1]]
    for name in ("sieve-1", "sieve-2"):
        service = compose["services"][name]
        inside = [mount.split(":")[1] for mount in service["volumes"]]
        assert settings.state.dir in inside
        assert asked[1] in inside
        assert asked[1] in service["command"]
        (port,) = service["ports"]
        assert settings.http.listen == f"0.0.0.0:{port.rpartition(':')[2]}"
        assert image["EXPOSE"] == port.rpartition(":")[2]
    kafka = compose["services"]["kafka"]
    assert kafka["volumes"] == [f"kafka:{kafka['environment']['KAFKA_LOG_DIRS']}"]


def test_settings_and_compose_name_the_same_topics_and_broker(compose: dict[str, Any], docker: Path) -> None:
    settings = load_settings(docker / "settings.yaml")
    services = compose["services"]
    assert f"--topic={settings.output.topic}" in services["viewer"]["command"]
    assert services["producer"]["command"][:2] == [settings.kafka.bootstrap, *settings.input.topics]
    assert settings.kafka.bootstrap in services["kafka"]["environment"]["KAFKA_ADVERTISED_LISTENERS"]


def test_the_memory_of_a_container_holds_what_lint_counts(compose: dict[str, Any], docker: Path) -> None:
    create = compose["services"]["topics"]["command"]
    partitions = int(create[create.index("--input-partitions") + 1])
    added = yaml.safe_load((docker / "compose.shards.yaml").read_text("utf-8"))["services"]
    shares = held_by(load_settings(docker / "shards.yaml"), partitions)
    least = dict.fromkeys(("shard-1", "shard-2", "shard-3"), shares.shard_limit)
    for name in ("sieve-1", "sieve-2"):
        least[name] = max(held_by(load_settings(docker / "settings.yaml"), partitions).limit, shares.limit)
        assert int(compose["services"][name]["stop_grace_period"].removesuffix("s")) >= stop_s(Settings())
    for name, needed in least.items():
        service = compose["services"].get(name) or added[name]
        limit = int(service["mem_limit"].removesuffix("m")) << 20
        assert needed <= limit <= 2 * needed, name


def test_shards_share_the_state_and_nothing_else(
    compose: dict[str, Any], steps: list[tuple[str, str]], docker: Path
) -> None:
    added = yaml.safe_load((docker / "compose.shards.yaml").read_text("utf-8"))
    settings = load_settings(docker / "shards.yaml")
    assert settings.near.answers == "shards"
    assert settings.near.segment < settings.near.window.messages
    assert settings.state.scratch is not None
    (made,) = (rest for word, rest in steps if word == "RUN" and "useradd" in rest)
    # A volume takes the owner of the folder in the image.
    assert {settings.state.dir, settings.state.scratch} <= set(made.split())
    settings_path = json.loads(dict(steps)["CMD"])[-1]
    volumes = {*compose["volumes"], *(added["volumes"])}
    scratch = []
    for name in ("sieve-1", "sieve-2", "shard-1", "shard-2", "shard-3"):
        mounts = {
            path: source for source, path, *_ in (m.split(":") for m in added["services"][name]["volumes"])
        }
        assert (docker / mounts[settings_path]).is_file()
        assert mounts[settings.state.dir] == "state"
        scratch.append(mounts[settings.state.scratch])
    assert len({*scratch, "state"}) == 6
    assert {*scratch, "state"} <= volumes
    shards = [each for name, each in added["services"].items() if name.startswith("shard-")]
    for name, shard in zip(("shard-1", "shard-2", "shard-3"), shards, strict=True):
        assert shard["command"][1:] == ["-c", settings_path, "--role", "shard", "--member", name]
        assert shard["image"] == compose["services"]["topics"]["image"]
        assert int(shard["stop_grace_period"].removesuffix("s")) >= stop_s(settings, "shard")
        hardening = ("init", "read_only", "tmpfs", "cap_drop", "security_opt", "pids_limit")
        assert all(shard[key] == compose["services"]["sieve-1"][key] for key in hardening)
    assert set(added["services"]) - {"shard-1", "shard-2", "shard-3"} <= set(compose["services"])


def test_the_image_sets_nothing_that_a_settings_file_may_set(docker: Path) -> None:
    """The environment counts before the file, so a file with another state.dir would not be obeyed."""
    assert not re.search(r"\bTWINSIEVE_", (docker / "Dockerfile").read_text("utf-8"))
