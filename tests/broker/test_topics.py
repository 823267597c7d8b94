"""`topics check`, `create` and `acls`, on the embedded broker and on real ones."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

import pytest

from tests.broker.worlds import World, fresh, make_topic, write
from tests.memory.broker import ManualClock, MemoryBroker, MemoryCluster
from twinsieve.pipeline.broker.admin import NewTopic, TopicInfo
from twinsieve.pipeline.broker.records import BrokerError, Partition
from twinsieve.pipeline.operate.acls import acls, grants
from twinsieve.pipeline.operate.topic_checks import Severity, block_bytes, check, create
from twinsieve.pipeline.operate.topic_plan import FRAME_BYTES, MOST_BLOCK_BYTES, internal_topic, plan_of
from twinsieve.pipeline.service.start_checks import check_app
from twinsieve.pipeline.settings.model import Settings

GOOD = {"retention.ms": "-1", "max.message.bytes": "1048588"}


def settings_for(app: str, **more: object) -> Settings:
    """Settings whose topics nobody else uses."""
    return Settings.model_validate(
        {
            "app": app,
            "input": {"topics": [f"{app}-in"]},
            "output": {"topic": f"{app}-out", "duplicates": f"{app}-dup", "dead_letter": f"{app}-dead"},
            **more,
        }
    )


def deployment(settings: Settings, wrong: Mapping[str, NewTopic]) -> MemoryBroker:
    """All topics of these settings as they should be, but for the wrong ones."""
    cluster = MemoryCluster(ManualClock())
    plan = plan_of(settings)
    for name in dict.fromkeys((*plan.inputs, *plan.outputs)):
        cluster.create(wrong.get(name, NewTopic(name, 3, 1, dict(GOOD))))
    for need in plan.internal:
        cluster.create(wrong.get(need.name, internal_topic(settings, need)))
    return MemoryBroker(cluster)


def test_created_topics_pass_their_own_check(world: World) -> None:
    settings = settings_for(fresh("app"))
    admin = world.broker().admin()
    admin.create_topic(NewTopic(settings.input.topics[0], 3))
    missing = check(settings, admin)
    assert len(missing) == 7
    assert all("twinsieve topics create" in finding.text for finding in missing)
    assert len(create(settings, admin)) == 7
    assert check(settings, admin) == []
    assert create(settings, admin) == []


def test_blocks_are_as_large_as_all_topics_take(world: World) -> None:
    settings = settings_for(fresh("app"))
    admin = world.broker().admin()
    create(settings, admin, input_partitions=1)
    assert block_bytes(settings, admin) == MOST_BLOCK_BYTES
    set_to = Settings.model_validate(
        {**settings.model_dump(exclude={"kafka"}), "kafka": {"block_bytes": 70_000}}
    )
    assert block_bytes(set_to, admin) == 70_000


@pytest.mark.parametrize("name", ["app.fingerprints", "app.decisions", "app.verdicts"])
def test_a_topic_of_before_makes_blocks_smaller_and_stops_nothing(name: str) -> None:
    settings = settings_for("app")
    old = {need.name: internal_topic(settings, need) for need in plan_of(settings).internal}[name]
    small = NewTopic(name, old.partitions, 1, {**old.settings, "max.message.bytes": "1048588"})
    admin = deployment(settings, {name: small}).admin()
    assert block_bytes(settings, admin) == 1_048_588 - FRAME_BYTES
    (finding,) = check(settings, admin)
    assert finding.severity is Severity.COSTS
    assert str(finding).startswith(f"{name}: takes messages of 1048588 bytes; with max.message.bytes 3211264")


def test_a_broker_that_refuses_the_size_of_a_topic_gets_one_without_it(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    settings = settings_for("app")
    broker = deployment(settings_for("other"), {})
    admin, made = broker.admin(), dict[str, NewTopic]()

    def create_topic(topic: NewTopic) -> None:
        if int(topic.settings.get("max.message.bytes", 0)) > 2_000_000:
            raise BrokerError("PolicyViolationError: at most 2 MB", retryable=False)
        made[topic.name] = topic

    monkeypatch.setattr(type(admin), "create_topic", lambda _, topic: create_topic(topic))
    monkeypatch.setattr(
        type(admin),
        "topics",
        lambda _, names, settings=False: {
            name: TopicInfo(name, bytes(16), 2) if name in made or name == "app-in" else None
            for name in names
        },
    )
    assert set(create(settings, admin)) == set(made)
    assert "max.message.bytes" not in made["app.fingerprints"].settings
    assert (
        "app.fingerprints: created with the broker's own max.message.bytes, as it refused 3211264"
        in caplog.text
    )


def test_the_size_of_a_topic_is_that_of_all_its_partitions(world: World) -> None:
    broker = world.broker()
    name = make_topic(broker, 3)
    sent = [Random(number).randbytes(1_000) for number in range(50)]
    for number in (0, 2):
        write(broker, Partition(name, number), sent)
    found = broker.admin().log_bytes([name, fresh("nowhere")])
    assert set(found) == {name}
    assert 100_000 <= found[name] < 200_000


def test_missing_input_topics_are_created_with_the_partitions_that_were_asked_for(world: World) -> None:
    there, missing = fresh("there"), fresh("missing")
    settings = settings_for(fresh("app"), input={"topics": [there, missing]})
    admin = world.broker().admin()
    admin.create_topic(NewTopic(there, 2))
    assert create(settings, admin, input_partitions=5)[0] == missing
    infos = admin.topics([there, missing, settings.output.topic])
    assert {name: info and info.partitions for name, info in infos.items()} == {
        there: 2,
        missing: 5,
        settings.output.topic: 5,
    }
    assert create(settings, admin, input_partitions=9) == []


def test_a_missing_input_topic_is_found_and_not_created_unasked(world: World) -> None:
    settings = settings_for(fresh("app"))
    admin = world.broker().admin()
    assert "input topic does not exist" in check(settings, admin)[0].text
    with pytest.raises(BrokerError, match="input topic does not exist"):
        create(settings, admin)
    assert admin.topics([settings.output.topic]) == {settings.output.topic: None}


@pytest.mark.parametrize(
    ("name", "partitions", "changed", "says"),
    [
        ("app.fingerprints", 2, {}, "has 2 partitions, must have 1"),
        ("app.decisions", 3, {}, "has 3 partitions, must have 1"),
        ("app.verdicts", 1, {}, "set topics.verdict_partitions to 1, or give the topic 4"),
        (
            "app.verdicts",
            9,
            {},
            "set topics.verdict_partitions to 9, or stop every process, delete the topic",
        ),
        ("app.fingerprints", 1, {"cleanup.policy": "compact"}, "set it to delete"),
        ("app.fingerprints", 1, {"cleanup.policy": "compact,delete"}, "set it to delete"),
        ("app.fingerprints", 1, {"retention.ms": "86400000"}, "deleted after 24 h"),
        ("app.decisions", 1, {"retention.ms": "3600000"}, "to 756000000, or at least 604800000"),
        ("app.verdicts", 4, {"retention.ms": "60000"}, "deleted after 60000 ms"),
        ("app.fingerprints", 1, {"retention.ms": "-1"}, "kept forever, but a restore reads back no further"),
        (
            "app.fingerprints",
            1,
            {"retention.ms": "-1"},
            "set retention.ms to 756000000 (a day takes 151.2 GB",
        ),
        ("app.decisions", 1, {"retention.ms": "2592000000"}, "kept for 30 d, but a restore reads back"),
        ("app.verdicts", 4, {"retention.ms": "-1"}, "no worker reads answers after 24 h"),
        ("app.decisions", 1, {"retention.bytes": "1000000"}, "set retention.bytes to -1"),
        ("app.fingerprints", 1, {"max.message.bytes": "100000"}, "set kafka.block_bytes to 34464"),
        ("app.fingerprints", 1, {"min.insync.replicas": "2"}, "nothing can be written"),
        (
            "app.decisions",
            1,
            {"message.timestamp.type": "CreateTime"},
            "run: kafka-configs.sh --bootstrap-server localhost:9092 --alter --entity-type topics --entity-name "
            "app.decisions --add-config message.timestamp.type=LogAppendTime",
        ),
        ("app-out", 2, {}, "as many partitions as the input"),
        ("app-out", 3, {"cleanup.policy": "compact"}, "refuses messages without a key"),
        ("app-dead", 3, {"max.message.bytes": "500000"}, "larger ones become dead letters"),
        ("app-dup", 3, {"message.timestamp.after.max.ms": "3600000"}, "timestamps more than 1 h ahead"),
    ],
)
def test_each_wrong_setting_is_one_finding(
    name: str, partitions: int, changed: dict[str, str], says: str
) -> None:
    settings = settings_for("app")
    planned = {need.name: internal_topic(settings, need).settings for need in plan_of(settings).internal}
    wrong = NewTopic(name, partitions, 1, {**GOOD, **planned.get(name, {}), **changed})
    findings = check(settings, deployment(settings, {name: wrong}).admin())
    assert len(findings) == 1, findings
    assert findings[0].topic == name
    assert says in findings[0].text
    told = ("retention.", "message.timestamp.")
    harmless = name == "app.verdicts" or any(key.startswith(told) for key in changed)
    assert (findings[0].severity is Severity.STOPS) == (name.startswith("app.") and not harmless)


@pytest.mark.parametrize("output", ["app.unique", "app-out"])
def test_a_warning_about_an_output_does_not_stop_run_whatever_its_name(
    output: str, caplog: pytest.LogCaptureFixture
) -> None:
    settings = settings_for("app", output={"topic": output, "duplicates": "none", "dead_letter": "none"})
    wrong = NewTopic(output, 2, 1, GOOD | {"cleanup.policy": "compact"})
    broker = deployment(settings, {output: wrong})
    check_app(settings, lambda: broker, ManualClock(), auto_create=False)
    said = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert [line.partition(";")[0] for line in said] == [
        f"run: {output}: has 2 partitions, the input 3",
        f"run: {output}: cleanup.policy is compact, which refuses messages without a key and drops older ones"
        " of a key",
    ]


def test_a_wrong_internal_topic_stops_run_and_the_rest_is_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    settings = settings_for("app")
    planned = dict(internal_topic(settings, plan_of(settings).internal[0]).settings)
    wrong = {
        "app.fingerprints": NewTopic("app.fingerprints", 2, 1, planned | {"retention.ms": "756000000"}),
        "app-out": NewTopic("app-out", 2, 1, dict(GOOD)),
    }
    broker = deployment(settings, wrong)
    with pytest.raises(BrokerError) as refused:
        check_app(settings, lambda: broker, ManualClock(), auto_create=False)
    assert str(refused.value).startswith("app.fingerprints: has 2 partitions, must have 1")
    assert "app-out" not in str(refused.value)
    assert [record.getMessage().startswith("run: app-out: has 2") for record in caplog.records] == [True]


def test_a_missing_output_stops_run_whatever_its_name() -> None:
    settings = settings_for("app", output={"topic": "app.unique"})
    cluster = MemoryCluster(ManualClock())
    cluster.create(NewTopic("app-in", 3))
    broker = MemoryBroker(cluster)
    with pytest.raises(BrokerError, match=r"(?m)^app\.unique: does not exist; run: twinsieve topics create$"):
        check_app(settings, lambda: broker, ManualClock(), auto_create=False)


def test_replication_below_the_setting_is_found() -> None:
    settings = settings_for("app", topics={"replication": 3, "min_in_sync": 2})
    names = plan_of(settings)
    wrong = {need.name: NewTopic(need.name, need.partitions, 1, dict(GOOD)) for need in names.internal}
    findings = check(settings, deployment(settings, wrong).admin())
    assert sum("topics.replication is 3" in finding.text for finding in findings) == 7
    assert sum("min.insync.replicas is 1" in finding.text for finding in findings) == 7


def test_an_output_that_is_an_input_is_found() -> None:
    settings = settings_for("app", output={"topic": "app-in", "duplicates": "none", "dead_letter": "none"})
    findings = check(settings, deployment(settings, {}).admin())
    assert list(map(str, findings)) == [
        "app-in: is an input topic too, so messages would circulate; use another output"
    ]


def test_a_window_without_age_wants_the_log_for_ever() -> None:
    window = {"messages": 1000, "age": "none"}
    settings = settings_for("app", near={"window": window}, exact={"window": window})
    wrong = NewTopic("app.fingerprints", 1, 1, GOOD | {"retention.ms": str(1 << 50)})
    findings = check(settings, deployment(settings, {"app.fingerprints": wrong}).admin())
    (finding,) = [finding for finding in findings if finding.severity is Severity.WARNS]
    assert finding.topic == "app.fingerprints"
    assert finding.text.endswith("set retention.ms to -1")


def test_printed_acls_name_everything_once() -> None:
    settings = settings_for("app")
    commands = acls(settings, "User:sieve")
    assert len(commands) == len(set(commands)) == len(grants(settings))
    assert all("--allow-principal User:sieve" in command for command in commands)
    assert any("--topic app-in" in command and "Write" not in command for command in commands)
    assert not any("Read" in command for command in commands if "--topic app-out" in command)
