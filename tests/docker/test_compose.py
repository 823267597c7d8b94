"""The image and compose file, read as Docker would read them; there is no engine where these tests run."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client import CollectorRegistry

from scripts.image_steps import context, copy, instructions, is_let_through
from twinsieve.pipeline.operate.topic_plan import plan_of
from twinsieve.pipeline.service.cost import held_by
from twinsieve.pipeline.service.http import HealthServer
from twinsieve.pipeline.settings.load import load_settings
from twinsieve.pipeline.settings.model import Settings

Healthy = Callable[..., subprocess.CompletedProcess[str]]

SERVICE_KEYS = {
    "build",
    "cap_drop",
    "command",
    "depends_on",
    "entrypoint",
    "environment",
    "healthcheck",
    "image",
    "init",
    "mem_limit",
    "pids_limit",
    "ports",
    "pull_policy",
    "read_only",
    "restart",
    "security_opt",
    "stop_grace_period",
    "tmpfs",
    "volumes",
}


@pytest.fixture
def docker(root: Path) -> Path:
    return root / "docker"


@pytest.fixture
def compose(docker: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((docker / "compose.yaml").read_text())
    return loaded


@pytest.fixture
def words(docker: Path) -> list[tuple[str, str]]:
    """Instructions of the Dockerfile in order."""
    return instructions(docker / "Dockerfile")


def test_every_key_of_every_service_is_one_that_compose_knows(compose: dict[str, Any]) -> None:
    assert {key for key in compose if not key.startswith("x-")} == {"name", "services", "volumes"}
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


def test_a_container_may_do_no_more_than_it_needs(compose: dict[str, Any]) -> None:
    for name, service in compose["services"].items():
        assert service.get("security_opt") == ["no-new-privileges:true"], name
        assert not service.get("privileged")
        if service["image"] == "twinsieve":
            assert (service["cap_drop"], service["read_only"], service["tmpfs"]) == (
                ["ALL"],
                True,
                ["/tmp"],
            ), name
            assert (service["init"], service["pids_limit"]) == (True, 256), name


def test_the_memory_of_a_container_holds_what_lint_counts(compose: dict[str, Any], docker: Path) -> None:
    topic = compose["services"]["input"]["command"]
    (partitions,) = (int(word.partition("=")[2]) for word in topic if word.startswith("--partitions="))
    held = held_by(load_settings(docker / "settings.yaml"), partitions).process
    for name in ("sieve-1", "sieve-2"):
        limit = int(compose["services"][name]["mem_limit"].removesuffix("m")) << 20
        assert held + (400 << 20) <= limit <= 2 * held, name


def test_settings_and_compose_name_the_same_topics_and_broker(compose: dict[str, Any], docker: Path) -> None:
    settings = load_settings(docker / "settings.yaml")
    services = compose["services"]
    assert plan_of(settings).inputs == ("posts",)
    assert "--topic=posts" in services["input"]["command"]
    assert f"--topic={settings.output.topic}" in services["viewer"]["command"]
    assert services["producer"]["command"][:2] == [settings.kafka.bootstrap, "posts"]
    assert settings.kafka.bootstrap in services["kafka"]["environment"]["KAFKA_ADVERTISED_LISTENERS"]


def test_images_are_of_a_fixed_version_and_can_be_others(
    compose: dict[str, Any], words: list[tuple[str, str]]
) -> None:
    foreign = {service["image"] for service in compose["services"].values()} - {"twinsieve"}
    (kafka,) = foreign
    assert re.fullmatch(r"\$\{KAFKA_IMAGE:-apache/kafka:\d+\.\d+\.\d+\}", kafka)
    assert words[0][0] == "ARG"
    assert re.fullmatch(r"PYTHON_IMAGE=python:3\.\d+\.\d+-slim-[a-z]+", words[0][1])
    assert {rest.split()[0] for word, rest in words if word == "FROM"} == {"${PYTHON_IMAGE}"}


def test_the_image_has_a_python_that_twinsieve_takes(root: Path, words: list[tuple[str, str]]) -> None:
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]
    (minor,) = re.findall(r"python:(3\.\d+)\.", words[0][1])
    assert f"Programming Language :: Python :: {minor}" in project["classifiers"]
    labels = dict(words)["LABEL"]
    assert f'image.version="{project["version"]}"' in labels
    assert f'image.licenses="{project["license"]}"' in labels
    assert f'image.description="{project["description"]}"' in labels


def test_one_service_builds_and_every_other_one_waits_for_it(compose: dict[str, Any]) -> None:
    """Compose builds all at once what several services build; a second build of the tag fails."""
    services = compose["services"]
    (builder,) = (name for name, service in services.items() if "build" in service)
    assert services[builder]["build"]["args"] == ["PYTHON_IMAGE", "EXTRAS"]
    for name, service in services.items():
        if service["image"] == "twinsieve" and name != builder:
            assert service["pull_policy"] == "never", name
            assert service["depends_on"] == {builder: {"condition": "service_completed_successfully"}}, name


def test_the_image_runs_without_root_and_says_how_it_is(words: list[tuple[str, str]]) -> None:
    last = max(place for place, (word, _) in enumerate(words) if word == "FROM")
    final = dict(words[last:])
    assert final["USER"] == "10001:0"
    assert "healthy" in final["HEALTHCHECK"]
    assert final["ENTRYPOINT"] == '["twinsieve"]'
    order = [word for word, _ in words[last:]]
    assert order.index("USER") < order.index("ENTRYPOINT")
    assert "NUMBA_CPU_NAME" not in final["ENV"]


def test_another_user_of_group_0_may_write_state_and_run_kernels(words: list[tuple[str, str]]) -> None:
    """OpenShift runs an image as a user of its own choice, who is in group 0."""
    runs = [rest for word, rest in words if word == "RUN"]
    (made,) = (rest for rest in runs if "install -d" in rest)
    assert re.search(r"install -d -o 10001 -g 0 -m 0775 /var/lib/twinsieve$", made)
    (compiled,) = (place for place, (_, rest) in enumerate(words) if "twinsieve warm-up --portable" in rest)
    assert compiled < words.index(("USER", "10001:0")), "nobody in a container may change code"
    assert words[compiled][1].endswith("&& chmod -R u=rwX,go=rX /var/cache/twinsieve")


@pytest.mark.parametrize("is_there", [False, True])
def test_packages_of_a_store_come_with_hashes_where_a_file_holds_them(
    words: list[tuple[str, str]], root: Path, tmp_path: Path, is_there: bool
) -> None:
    (rest,) = (rest for word, rest in words if word == "COPY" and "extras" in rest)
    seen, image = tmp_path / "context", tmp_path / "image"
    (seen / "docker").mkdir(parents=True)
    (seen / "requirements.lock").touch()
    if is_there:
        (seen / "docker" / "extras.lock").touch()
    copy(seen, image, "/src", rest)
    assert (image / "src" / "extras.lock").exists() == is_there
    ignored = (root / "docker" / "Dockerfile.dockerignore").read_text("utf-8").splitlines()
    assert is_let_through("docker/extras.lock", ignored)
    runs = [rest for word, rest in words if word == "RUN"]
    (install,) = (run for run in runs if "-r extras.lock" in run)
    assert install.startswith("test ! -e extras.lock")
    assert "--require-hashes" in install


def test_copied_files_exist_and_are_let_through_and_links_resolve(
    words: list[tuple[str, str]], root: Path, tmp_path: Path
) -> None:
    """The COPY steps, performed from what Dockerfile.dockerignore lets through into an empty folder."""
    seen, image = tmp_path / "context", tmp_path / "image"
    names = list(context(root))
    for name in names:
        (seen / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(root / name, seen / name, follow_symlinks=False)
    here = "/"
    for word, rest in words:
        here = {"FROM": "/", "WORKDIR": rest}.get(word, here)
        if word == "COPY":
            copy(seen, image, here, rest)
    source = image / "src"
    links = {path.name for path in (source / "twinsieve").iterdir() if path.is_symlink()}
    assert links == {"examples", "pipeline", "stages"}
    for link in links:
        copied = sorted(path.name for path in (source / "twinsieve" / link).iterdir())
        present = {path.name for path in (root / "twinsieve" / link).iterdir()} - {"__pycache__"}
        assert set(copied) == present
    command = tomllib.loads((source / "pyproject.toml").read_text("utf-8"))["tool"]["setuptools"]["cmdclass"]
    for place in command.values():
        assert (source / place.rpartition(".")[0].replace(".", "/")).with_suffix(".py").is_file()
    assert os.access(image / "usr" / "local" / "bin" / "healthy", os.X_OK)
    unused = {name.split("/")[0] for name in names} - {path.name for path in source.iterdir()} - {"docker"}
    assert not unused, "let through, and copied by no step"


@pytest.mark.parametrize("script", ["healthy", "produce"])
def test_scripts_are_executable_and_parse(docker: Path, script: str) -> None:
    path = docker / script
    assert os.access(path, os.X_OK)
    first, text = path.read_text().splitlines()[0], path.read_text()
    if "python" in first:
        compile(text, str(path), "exec")
    else:
        subprocess.run(["sh", "-n", str(path)], check=True)


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


def test_the_image_sets_nothing_that_a_settings_file_may_set(docker: Path) -> None:
    """The environment counts before the file, so a file with another state.dir would not be obeyed."""
    assert not re.search(r"\bTWINSIEVE_", (docker / "Dockerfile").read_text())


def test_state_is_kept_on_the_volume_and_metrics_reach_the_published_port(
    compose: dict[str, Any], docker: Path
) -> None:
    settings = load_settings(docker / "settings.yaml")
    for name in ("sieve-1", "sieve-2"):
        mounts = [mount.split(":")[1] for mount in compose["services"][name]["volumes"]]
        assert settings.state.dir in mounts
        (port,) = compose["services"][name]["ports"]
        assert settings.http.listen == f"0.0.0.0:{port.rpartition(':')[2]}"
    final = dict(instructions(docker / "Dockerfile"))
    assert final["VOLUME"] == settings.state.dir


def test_health_is_asked_by_the_file_that_the_service_runs_with(
    compose: dict[str, Any], docker: Path
) -> None:
    final = dict(instructions(docker / "Dockerfile"))
    asked = json.loads(final["HEALTHCHECK"].partition("CMD ")[2])
    assert asked == ["healthy", json.loads(final["CMD"])[-1]]
    for name in ("sieve-1", "sieve-2"):
        assert asked[1] in compose["services"][name]["command"]


def test_the_broker_keeps_its_log_on_the_volume(compose: dict[str, Any]) -> None:
    kafka = compose["services"]["kafka"]
    assert [f"kafka:{kafka['environment']['KAFKA_LOG_DIRS']}"] == kafka["volumes"]


def test_the_image_takes_the_confluent_client_that_the_tests_ran_with(docker: Path, root: Path) -> None:
    installs = " ".join(rest for word, rest in instructions(docker / "Dockerfile") if word == "RUN")
    assert "/^confluent-kafka==/" in installs
    assert re.search(r"--require-hashes\s.* -r client\.lock(\s|$)", installs)
    (pinned,) = re.findall(
        r"^confluent-kafka==(\d+)\.(\d+)", (root / "requirements-dev.lock").read_text(), re.MULTILINE
    )
    extra = tomllib.loads((root / "pyproject.toml").read_text())["project"]["optional-dependencies"][
        "confluent"
    ]
    assert extra == ["confluent-kafka>=2.5,<3"]
    assert (2, 5) <= tuple(map(int, pinned)) < (3, 0)
