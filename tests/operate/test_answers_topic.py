"""The topic of answers is there where shards answer, and nowhere else."""

from __future__ import annotations

from typing import Any

import pytest

from tests.memory.broker import ManualClock, MemoryBroker, MemoryCluster
from twinsieve.pipeline.broker.admin import NewTopic
from twinsieve.pipeline.broker.names import Names
from twinsieve.pipeline.broker.records import BrokerError
from twinsieve.pipeline.operate.acls import grants
from twinsieve.pipeline.operate.topic_checks import Severity, check, create
from twinsieve.pipeline.operate.topic_plan import plan_of
from twinsieve.pipeline.settings import ConfigError
from twinsieve.pipeline.settings.load import Override, load_settings
from twinsieve.pipeline.settings.model import Settings

ANSWERS = "t.answers"
_QUESTION = bytes(range(16))


def _settings(answers: str, **more: Any) -> Settings:
    return Settings.model_validate({"app": "t", "near": {"answers": answers}, **more})


def _cluster(settings: Settings) -> MemoryCluster:
    cluster = MemoryCluster(ManualClock())
    cluster.create(NewTopic("posts", 3))
    create(settings, MemoryBroker(cluster).admin())
    return cluster


def _made(settings: Settings) -> MemoryBroker:
    return MemoryBroker(_cluster(settings))


def test_it_is_made_for_shards_and_for_nobody_else() -> None:
    plain, shards = (_made(_settings(answers)).admin() for answers in ("none", "shards"))
    assert plain.topics([ANSWERS])[ANSWERS] is None
    info = shards.topics([ANSWERS], settings=True)[ANSWERS]
    assert info is not None
    assert info.partitions == Settings().topics.verdict_partitions
    assert info.number("retention.ms", 0) == 3_600_000
    assert info.number("segment.bytes", 0) == 64 << 20
    assert check(_settings("shards"), shards) == []
    assert [(one.topic, one.severity) for one in check(_settings("shards"), plain)] == [
        (ANSWERS, Severity.WARNS)
    ]


@pytest.mark.parametrize(
    "setting", ["cleanup.policy: compact", "max.message.bytes: 100", "min.insync.replicas: 3"]
)
def test_what_stops_a_start_with_other_topics_is_said_of_this_one(setting: str) -> None:
    key, value = setting.split(": ")
    cluster = _cluster(_settings("shards"))
    for topic in (ANSWERS, "t.verdicts"):
        cluster.topics[topic].settings[key] = value
    found = {one.topic: one.severity for one in check(_settings("shards"), MemoryBroker(cluster).admin())}
    assert found == {"t.verdicts": Severity.STOPS, ANSWERS: Severity.WARNS}


def test_a_topic_that_this_user_may_not_read_or_describe_is_said() -> None:
    cluster = _cluster(_settings("shards"))
    for closed in (cluster.faults.denied, cluster.faults.hidden):
        closed.add(ANSWERS)
        (found,) = check(_settings("shards"), MemoryBroker(cluster).admin())
        assert (found.topic, found.severity) == (ANSWERS, Severity.WARNS)
        assert "permission" in found.text


def test_create_leaves_a_topic_that_this_user_may_not_describe() -> None:
    cluster = _cluster(_settings("shards"))
    cluster.faults.hidden.add(ANSWERS)
    assert create(_settings("shards"), MemoryBroker(cluster).admin()) == []
    cluster.faults.hidden.add("t.verdicts")
    with pytest.raises(BrokerError, match=r"t\.verdicts"):
        create(_settings("shards"), MemoryBroker(cluster).admin())


def test_the_files_of_other_topics_are_as_the_broker_sets_them() -> None:
    admin = _made(_settings("shards")).admin()
    others = [name for name in plan_of(_settings("shards")).names if name != ANSWERS]
    assert not any(
        "segment.bytes" in info.settings for info in admin.topics(others, settings=True).values() if info
    )


def test_another_number_of_partitions_is_said_with_what_its_own_deletion_costs() -> None:
    admin = _made(_settings("shards", topics={"verdict_partitions": 6})).admin()
    found = {one.topic: one for one in check(_settings("shards"), admin)}
    assert {name: one.severity for name, one in found.items()} == {
        "t.verdicts": Severity.WARNS,
        ANSWERS: Severity.WARNS,
    }
    assert "workers send" in found["t.verdicts"].text
    assert "shards answer again" in found[ANSWERS].text
    assert "workers" not in found[ANSWERS].text


@pytest.mark.parametrize("hours", [0.4, 30])
def test_a_retention_that_is_not_an_hour_is_said(hours: float) -> None:
    cluster = _cluster(_settings("shards"))
    cluster.topics[ANSWERS].settings["retention.ms"] = str(round(hours * 3_600_000))
    (found,) = check(_settings("shards"), MemoryBroker(cluster).admin())
    assert (found.topic, found.severity) == (ANSWERS, Severity.WARNS)
    assert "set retention.ms to 3600000" in found.text


def test_a_process_may_read_and_write_it_and_its_group() -> None:
    found = {grant.name: grant.operations for grant in grants(_settings("shards")) if not grant.prefix}
    assert {"Read", "Write", "Describe"} <= set(found[ANSWERS])
    assert ANSWERS not in {grant.name for grant in grants(_settings("none"))}
    group = Names("t").shards(_QUESTION)
    assert [
        grant.operations
        for grant in grants(_settings("shards"))
        if grant.resource == "group" and grant.prefix and group.startswith(grant.name)
    ] == [("Read", "Describe")]


def _refuses_output(answers: str, topic: str) -> bool:
    keys = {"app": "t", "near.answers": answers, "output.duplicates": topic}
    try:
        load_settings(None, {}, [Override(key, text, key) for key, text in keys.items()])
    except ConfigError as error:
        return "an internal topic of this app" in str(error)
    return False


@pytest.mark.parametrize("answers", ["none", "shards"])
def test_no_output_has_the_name_of_an_internal_topic(answers: str) -> None:
    needed = {need.name for need in plan_of(_settings(answers)).internal}
    parts = ("fingerprints", "decisions", "verdicts", "answers", "key")
    refused = {f"t.{part}" for part in parts if _refuses_output(answers, f"t.{part}")}
    assert refused == needed


def test_a_shard_is_no_stranger_in_its_group_and_a_worker_is_one() -> None:
    names = Names("t")
    group = names.shards(_QUESTION)
    assert group.startswith(names.prefix)
    assert group.endswith("000102030405060708090a0b0c0d0e0f")
    assert group != names.shards(bytes(16))
    shard, worker = names.member("host-1", "shard"), names.member("host-1", "worker")
    assert [names.is_own(group, name) for name in (shard, worker, None)] == [True, False, False]
    assert [names.is_own(names.workers, name) for name in (shard, worker)] == [False, True]
    assert not Names("other").is_own(group, shard)
