"""The rights that `topics acls` prints are those that a process with these settings uses."""

from __future__ import annotations

import shlex
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from tests.memory.broker import ManualClock, MemoryBroker, MemoryCluster
from twinsieve.pipeline.index.config import IndexConfig
from twinsieve.pipeline.operate.acls import acls, grants
from twinsieve.pipeline.operate.topic_plan import plan_of, trims_log
from twinsieve.pipeline.service import build as service_build
from twinsieve.pipeline.service.build import Builder, make_scheme
from twinsieve.pipeline.settings.checks import shadow
from twinsieve.pipeline.settings.model import Settings


def _settings(folder: str, **kafka: object) -> Settings:
    return Settings.model_validate({"state": {"dir": folder}, "kafka": kafka})


@pytest.mark.parametrize(
    ("folder", "shared"),
    [
        ("./state", False),
        ("/var/lib/x", False),
        ("file:///var/lib/x", False),
        ("local:///var/lib/x", False),
        ("dir::file:///var/lib/x", False),
        ("simplecache::local:///var/lib/x", False),
        ("memory://x", False),
        ("s3://bucket/x", True),
    ],
)
def test_delete_is_granted_where_the_index_trims_its_log_and_nowhere_else(
    monkeypatch: pytest.MonkeyPatch, folder: str, shared: bool
) -> None:
    made: list[IndexConfig] = []
    monkeypatch.setattr(service_build, "Index", lambda broker, clock, config, *rest: made.append(config))
    monkeypatch.setattr(service_build, "SnapshotStore", lambda *given: None)
    monkeypatch.setattr(service_build, "state_storage", lambda *given: SimpleNamespace())
    monkeypatch.setattr(service_build, "_is_mapped", lambda *given: False)
    settings = _settings(folder)
    clock = ManualClock()
    cluster = MemoryCluster(clock)
    with ThreadPoolExecutor(1) as background:
        builder = Builder(
            settings, make_scheme(settings), clock, lambda _: MemoryBroker(cluster), "m0", True, background
        )
        builder.index(lambda step: None)
    deletes = [grant.name for grant in grants(settings) if "Delete" in grant.operations]
    assert [config.trim_log for config in made] == [trims_log(settings)] == [shared]
    assert deletes == (["twinsieve.fingerprints", "twinsieve.decisions"] if shared else [])


@pytest.mark.parametrize("protocol", ["plaintext", "ssl", "sasl_plaintext", "sasl_ssl"])
def test_commands_for_a_closed_broker_say_how_to_connect(protocol: str) -> None:
    settings = _settings("state", security={"protocol": protocol})
    for command in acls(settings, command_config="/etc/kafka/the admin.properties"):
        words = shlex.split(command)
        assert ("--command-config" in words) == (protocol != "plaintext")
        if protocol != "plaintext":
            assert words[words.index("--command-config") + 1] == "/etc/kafka/the admin.properties"


@pytest.mark.parametrize("creates", [True, False])
def test_create_is_granted_where_run_makes_topics_and_nowhere_else(creates: bool) -> None:
    settings = Settings.model_validate({"topics": {"auto_create": creates}})
    outputs = {"posts.unique", "posts.duplicates", "posts.dead"}
    own = {f"twinsieve.{name}" for name in ("fingerprints", "decisions", "verdicts", "key")}
    made = {grant.name for grant in grants(settings) if "Create" in grant.operations}
    assert made == (outputs | own if creates else set())


def test_a_dry_run_reads_the_input_and_does_all_else_under_its_own_name() -> None:
    settings = Settings()
    found = grants(settings, dry_run=True)
    others = [grant for grant in found if not grant.name.startswith("twinsieve-shadow.")]
    assert [(grant.name, grant.operations) for grant in others] == [
        ("posts", ("Read", "Describe", "DescribeConfigs"))
    ]
    internal = plan_of(shadow(settings), emits=False).internal
    assert {need.name for need in internal} == {grant.name for grant in found if "Create" in grant.operations}
    assert not {grant.name for grant in found} & {grant.name for grant in grants(settings)} - {"posts"}
