"""The manifests are valid by the schemas of Kubernetes; their commands, paths, ports and limits fit the program."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from tests.deploy.manifests import EXAMPLES, VERSIONS, mib, of_kind, processes, rendered, validate
from tests.deploy.played import DEPLOY
from twinsieve.pipeline.commands.cli import cli
from twinsieve.pipeline.service.probe_limits import START_S, alive_s
from twinsieve.pipeline.service.stop_limits import stop_s
from twinsieve.pipeline.service.watchdog import HANGS_S
from twinsieve.pipeline.settings.load import Override, load_settings
from twinsieve.pipeline.settings.model import Settings
from twinsieve.pipeline.sizing.process_memory import held_by

pytestmark = [pytest.mark.needs("kubernetes"), pytest.mark.parametrize("example", EXAMPLES)]
_PARTITIONS = 8


@pytest.fixture
def settings(example: str) -> Settings:
    """The settings of the example, without the secret that each app has of its own."""
    (made,) = of_kind(example, "ConfigMap")
    file = DEPLOY / "kubernetes" / example / "settings.yaml"
    assert made["data"] == {file.name: file.read_text("utf-8")}
    return load_settings(file, {}, [Override("digest.seed_file", "none", "test")])


def _selects(selector: dict[str, str]) -> Any:
    return lambda labels: selector.items() <= labels.items()


@pytest.mark.parametrize("version", VERSIONS)
def test_objects_are_valid_by_their_schemas(example: str, version: str) -> None:
    check = validate()
    for each in rendered(example):
        # The schema of a PodMonitor comes with the Prometheus operator.
        if each["kind"] != "PodMonitor":
            check(each, version, strict=True)
    broken = copy.deepcopy(rendered(example))
    (first, *_) = (each for each in broken if each["kind"] == "StatefulSet")
    first["spec"]["template"]["spec"]["containers"][0]["livenessProbe"]["periodSecond"] = 30
    with pytest.raises(Exception, match="periodSecond"):
        check(first, version, strict=True)


def test_commands_are_those_of_the_program(example: str) -> None:
    for name, _, container in processes(example):
        words = list(container["args"])
        words[words.index("-c") + 1] = "/no/such/file.yaml"
        told = CliRunner().invoke(cli, words)
        assert "/no/such/file.yaml" in f"{told.exception} {told.output}", name


def test_limits_are_those_of_lint(example: str, settings: Settings) -> None:
    for name, pod, container in processes(example):
        role = "shard" if "shard" in container["args"] else "both"
        assert pod["terminationGracePeriodSeconds"] >= stop_s(settings, role), name
        memory = mib(container["resources"]["limits"]["memory"])
        assert memory == mib(container["resources"]["requests"]["memory"]), name
        held = held_by(settings, _PARTITIONS)
        least = (held.limit if role == "both" else held.shard_limit) >> 20
        assert least < memory <= 2 * least, name


def test_probes_wait_as_long_as_a_process_may_need(example: str, settings: Settings) -> None:
    for name, _, container in processes(example):
        startup, liveness = container["startupProbe"], container["livenessProbe"]
        assert startup["periodSeconds"] * startup["failureThreshold"] >= START_S, name
        asked_s = liveness["periodSeconds"] * liveness["failureThreshold"]
        assert alive_s(settings) + asked_s <= HANGS_S, f"{name}: the kubelet acts first"


def test_state_lies_in_claims_and_nothing_else_is_written(example: str, settings: Settings) -> None:
    shares = settings.near.answers == "shards"
    own = settings.state.scratch if shares else settings.state.dir
    claims = {each["metadata"]["name"] for each in of_kind(example, "PersistentVolumeClaim")}
    for stateful in of_kind(example, "StatefulSet"):
        (claim,) = stateful["spec"]["volumeClaimTemplates"]
        (container,) = stateful["spec"]["template"]["spec"]["containers"]
        volumes = {each["name"]: each for each in stateful["spec"]["template"]["spec"]["volumes"]}
        mounts = {each["mountPath"]: each for each in container["volumeMounts"]}
        assert mounts[str(own)]["name"] == claim["metadata"]["name"]
        assert container["securityContext"]["readOnlyRootFilesystem"]
        if shares:
            shared = mounts[str(settings.state.dir)]
            assert volumes[shared["name"]]["persistentVolumeClaim"]["claimName"] in claims
            assert shared.get("readOnly", False) == ("shard" in container["args"])


def test_secrets_are_where_settings_look_and_closed_to_others(example: str) -> None:
    text = (DEPLOY / "kubernetes" / example / "settings.yaml").read_text("utf-8")
    seed = Path(yaml.safe_load(text)["digest"]["seed_file"])
    for name, pod, container in processes(example):
        (mount,) = (each for each in container["volumeMounts"] if each["mountPath"] == str(seed.parent))
        (volume,) = (each for each in pod["volumes"] if each["name"] == mount["name"])
        assert volume["secret"]["defaultMode"] & 0o027 == 0, name


def test_pages_are_found_by_all_who_ask(example: str, settings: Settings) -> None:
    assert settings.http.address is not None
    for name, _, container in processes(example):
        (port,) = container["ports"]
        assert port["containerPort"] == settings.http.address[1]
        for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
            assert container[probe]["httpGet"]["port"] == port["name"], name
    (monitor,) = of_kind(example, "PodMonitor")
    (policy,) = of_kind(example, "NetworkPolicy")
    assert {each["port"] for each in monitor["spec"]["podMetricsEndpoints"]} == {port["name"]}
    assert [each["port"] for each in policy["spec"]["ingress"][0]["ports"]] == [port["name"]]


def test_selectors_find_their_processes_and_those_of_no_other_app(example: str) -> None:
    """Each has all labels of the app; those of one component find its pods alone."""
    pods = {
        each["metadata"]["name"]: each["spec"]["template"]["metadata"]["labels"]
        for each in of_kind(example, "StatefulSet")
    }
    selectors = [
        ("Service", lambda spec: spec["selector"], set(pods)),
        ("NetworkPolicy", lambda spec: spec["podSelector"]["matchLabels"], set(pods)),
        ("PodMonitor", lambda spec: spec["selector"]["matchLabels"], set(pods)),
        ("PodDisruptionBudget", lambda spec: spec["selector"]["matchLabels"], None),
        ("StatefulSet", lambda spec: spec["selector"]["matchLabels"], None),
    ]
    for kind, read, wanted in selectors:
        for each in of_kind(example, kind):
            selects = _selects(read(each["spec"]))
            found = {name for name, labels in pods.items() if selects(labels)}
            assert found == (wanted if wanted is not None else {each["metadata"]["name"]}), kind
            assert not any(
                selects(labels | {"app.kubernetes.io/instance": "other"}) for labels in pods.values()
            ), kind
